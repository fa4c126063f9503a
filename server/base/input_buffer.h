/*
 * Input bytes that several may hold: the connection that parses them and the requests whose
 * arguments lie in them. Bytes that a request may look at are never moved or overwritten while it
 * holds the block.
 *
 * Threads: a block belongs to one worker's thread.
 */
#ifndef VELLUM_INPUT_BUFFER_H
#define VELLUM_INPUT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct input_buffer {
    uint32_t holders;
    size_t used; /* the worker's block: bytes that requests may hold */
    size_t capacity;
    char data[];
};

/* One holder; NULL: out of memory. */
static inline struct input_buffer *input_buffer_new(size_t capacity)
{
    struct input_buffer *block = malloc(sizeof *block + capacity);
    if (block != NULL)
        *block = (struct input_buffer){.holders = 1, .capacity = capacity};
    return block;
}

static inline struct input_buffer *input_buffer_hold(struct input_buffer *block)
{
    block->holders++;
    return block;
}

static inline void input_buffer_release(struct input_buffer *block)
{
    if (block != NULL && --block->holders == 0)
        free(block);
}

#endif
