/*
 * Values in the application's own memory, which is registered with the device of the connection's
 * channel, and after a reconnect with that of the new one.
 */
#include "clients/registered_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>

struct vellum_memory {
    struct vellum *vellum;
    LIST_ENTRY(vellum_memory) of_connection;
    char *bytes;
    size_t size;
    struct ibv_mr *mr; /* NULL: by TCP */
};

static bool pin(struct vellum_memory *memory)
{
    struct vellum *vellum = memory->vellum;
    if (vellum->channel == NULL)
        return true;
    char message[RDMA_MESSAGE_MAX];
    memory->mr = vellum_channel_register(vellum->channel, memory->bytes, memory->size);
    if (memory->mr != NULL)
        return true;
    rdma_memory_problem(message, rdma_no_pin, errno);
    vellum_fail(vellum, message);
    return false;
}

static void unpin(struct vellum_memory *memory)
{
    if (memory->mr != NULL && ibv_dereg_mr(memory->mr) != 0) {
        vellum_channel_stop(memory->vellum->channel); /* ends the server's access to it */
        ibv_dereg_mr(memory->mr);
    }
    memory->mr = NULL;
}

struct vellum_memory *vellum_register(struct vellum *vellum, void *bytes, size_t size)
{
    struct vellum_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        return NULL;
    *memory = (struct vellum_memory){.vellum = vellum, .bytes = bytes, .size = size};
    if (!pin(memory)) {
        free(memory);
        return NULL;
    }
    LIST_INSERT_HEAD(&vellum->memories, memory, of_connection);
    return memory;
}

void vellum_unregister(struct vellum_memory *memory)
{
    if (memory == NULL)
        return;
    unpin(memory);
    LIST_REMOVE(memory, of_connection);
    free(memory);
}

void vellum_unpin_all(struct vellum *vellum)
{
    struct vellum_memory *memory;
    LIST_FOREACH (memory, &vellum->memories, of_connection)
        unpin(memory);
}

bool vellum_pin_all(struct vellum *vellum)
{
    struct vellum_memory *memory;
    LIST_FOREACH (memory, &vellum->memories, of_connection)
        if (!pin(memory))
            return false;
    return true;
}

int vellum_span_of(struct vellum *vellum, const struct vellum_memory *memory, size_t offset,
                   size_t length, struct vellum_span *span)
{
    if (vellum_has_failed(vellum))
        return REDIS_ERR;
    if (memory->vellum != vellum || offset > memory->size || length > memory->size - offset) {
        vellum_fail(vellum, "the value lies outside of the registered memory");
        return REDIS_ERR;
    }
    *span = (struct vellum_span){memory->mr, memory->bytes + offset, length};
    return REDIS_OK;
}

/* ---- SET ---- */

static int append_by_reference(struct vellum *vellum, const char *key, size_t key_length,
                               const struct vellum_span *span)
{
    char head[64], tail[32];
    int head_length = snprintf(head, sizeof head, "*3\r\n$3\r\nSET\r\n$%zu\r\n", key_length);
    int tail_length =
        snprintf(tail, sizeof tail, "\r\n$%llu\r\n", (unsigned long long)span->length);
    if (vellum_append_bytes(vellum, head, (size_t)head_length) != REDIS_OK ||
        vellum_append_bytes(vellum, key, key_length) != REDIS_OK ||
        vellum_append_bytes(vellum, tail, (size_t)tail_length) != REDIS_OK ||
        vellum_splice(vellum, SPLICE_PULL, span) != REDIS_OK)
        return REDIS_ERR;
    vellum->appended++;
    return vellum_append_bytes(vellum, "\r\n", 2);
}

int vellum_append_set_from(struct vellum *vellum, const char *key, size_t key_length,
                           const struct vellum_memory *memory, size_t offset, size_t length)
{
    struct vellum_span span;
    if (vellum_span_of(vellum, memory, offset, length, &span) != REDIS_OK)
        return REDIS_ERR;
    const char *words[] = {"SET", key, span.at};
    const size_t lengths[] = {3, key_length, length};
    if (span.mr == NULL || length == 0)
        return vellum_append_argv(vellum, 3, words, lengths);
    return append_by_reference(vellum, key, key_length, &span);
}
