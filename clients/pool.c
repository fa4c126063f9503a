/*
 * Buffers of one size in one registered piece of memory: registering takes long, so it is done
 * once.
 *
 * Invariant: free_next[i], for a buffer i that is free, is the next free one, or `count`.
 */
#include "clients/vellum.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

struct vellum_pool {
    struct vellum_memory *memory;
    char *bytes;
    size_t buffer_bytes, count, size;
    size_t first_free;
    size_t free_next[];
};

#define ALIGNMENT 64
#define TAKEN SIZE_MAX

struct vellum_pool *vellum_pool_new(struct vellum *vellum, size_t buffer_bytes, size_t count)
{
    if (buffer_bytes == 0 || count == 0 || buffer_bytes > SIZE_MAX / 2 / count - ALIGNMENT)
        return NULL;
    struct vellum_pool *pool = calloc(1, sizeof *pool + count * sizeof *pool->free_next);
    if (pool == NULL)
        return NULL;
    pool->buffer_bytes = (buffer_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    pool->count = count;
    pool->size = pool->buffer_bytes * count;
    pool->bytes =
        mmap(NULL, pool->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool->bytes == MAP_FAILED) {
        free(pool);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        pool->free_next[i] = i + 1;
    pool->memory = vellum_register(vellum, pool->bytes, pool->size);
    if (pool->memory == NULL) {
        vellum_pool_free(pool);
        return NULL;
    }
    return pool;
}

void vellum_pool_free(struct vellum_pool *pool)
{
    if (pool == NULL)
        return;
    vellum_unregister(pool->memory);
    munmap(pool->bytes, pool->size);
    free(pool);
}

void *vellum_pool_take(struct vellum_pool *pool)
{
    size_t taken = pool->first_free;
    if (taken == pool->count)
        return NULL;
    pool->first_free = pool->free_next[taken];
    pool->free_next[taken] = TAKEN;
    return pool->bytes + taken * pool->buffer_bytes;
}

static bool is_taken(const struct vellum_pool *pool, const void *buffer, size_t *index)
{
    size_t offset = (size_t)((const char *)buffer - pool->bytes);
    *index = offset / pool->buffer_bytes;
    return offset < pool->size && offset % pool->buffer_bytes == 0 &&
           pool->free_next[*index] == TAKEN;
}

int vellum_pool_give(struct vellum_pool *pool, void *buffer)
{
    size_t index;
    if (!is_taken(pool, buffer, &index))
        return REDIS_ERR;
    pool->free_next[index] = pool->first_free;
    pool->first_free = index;
    return REDIS_OK;
}

const struct vellum_memory *vellum_pool_memory(const struct vellum_pool *pool)
{
    return pool->memory;
}

size_t vellum_pool_offset(const struct vellum_pool *pool, const void *buffer)
{
    return (size_t)((const char *)buffer - pool->bytes);
}
