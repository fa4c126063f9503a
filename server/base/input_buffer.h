/*
 * Reference-counted input buffers. They are shared by the connection that parses the bytes and the
 * requests whose arguments point into them. Bytes that a request may read are neither moved nor
 * overwritten while the request holds the buffer.
 *
 * Threads: a buffer belongs to one worker thread.
 */
#ifndef VELLUM_INPUT_BUFFER_H
#define VELLUM_INPUT_BUFFER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct input_buffer {
    uint64_t *counted; /* its owner's sum of capacities, while it has holders */
    uint32_t holders;
    size_t used; /* in a worker's shared buffer: bytes that requests may refer to */
    size_t capacity;
    char data[];
};

/* Has one holder: the caller. `counted` outlives it. NULL: out of memory. */
static inline struct input_buffer *input_buffer_new(uint64_t *counted, size_t capacity)
{
    struct input_buffer *block = malloc(sizeof *block + capacity);
    if (block == NULL)
        return NULL;
    *block = (struct input_buffer){.counted = counted, .holders = 1, .capacity = capacity};
    *counted += capacity;
    return block;
}

/* It has one holder and may be moved. NULL: out of memory; it stays as it is. */
static inline struct input_buffer *input_buffer_resize(struct input_buffer *block, size_t capacity)
{
    assert(block->holders == 1);
    block = realloc(block, sizeof *block + capacity);
    if (block == NULL)
        return NULL;
    *block->counted += capacity - block->capacity;
    block->capacity = capacity;
    return block;
}

static inline struct input_buffer *input_buffer_hold(struct input_buffer *block)
{
    block->holders++;
    return block;
}

static inline void input_buffer_release(struct input_buffer *block)
{
    if (block == NULL || --block->holders > 0)
        return;
    assert(*block->counted >= block->capacity);
    *block->counted -= block->capacity;
    free(block);
}

#endif
