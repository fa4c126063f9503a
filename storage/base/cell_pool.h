/*
 * Memory for many small arrays of 64-bit cells that grow all the time. Private to storage/.
 *
 * Tables that grow in step fragment a general allocator: glibc takes 26 % more than 16384 growing
 * tables of 600 cells request. Here the blocks of one size class lie without gaps in one mapping:
 * a freed block is replaced by the last one of its class.
 *
 * Invariants (cell_pool_check):
 *   1. A class's blocks are numbers 0 ... count - 1 of its mapping. Each starts with the address
 *      of its owner's pointer, which points behind this word.
 *   2. Pages behind the last block are freed once they make up an eighth of the class.
 *   3. Blocks beyond the largest class have their own mappings.
 *
 * So any call of the pool may move blocks: owners keep no other pointers into them. An owner's
 * pointer itself must not move.
 */
#ifndef VELLUM_CELL_POOL_H
#define VELLUM_CELL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/counter.h"

/* Words of a block: even numbers up to 32; above, 8 sizes per doubling, up to 128 KB. */
#define CELL_CLASS_COUNT 89
#define CELL_CLASS_WORDS_MAX 16384u

struct cell_class {
    uint64_t *base;    /* the mapping; NULL: none */
    uint32_t count;    /* blocks */
    uint32_t capacity; /* blocks that fit in the mapping */
    size_t touched;    /* bytes of it that may be resident: whole pages */
};

struct cell_pool {
    counter bytes;  /* in use, whole pages */
    uint64_t limit; /* the pool allocates nothing beyond it; UINT64_MAX at first */
    struct cell_class classes[CELL_CLASS_COUNT];
};

void cell_pool_init(struct cell_pool *pool);

/* The number of cells that a request for `cells` really allocates. */
uint32_t cell_pool_round(uint32_t cells);

/* Gives *owner, which has `old` cells (0: none), a block of `cells` (0: none), both as rounded
 * by cell_pool_round. Contents are kept as far as they fit; new cells are zero. False: no
 * memory; nothing changed. Never fails for 0 cells. */
bool cell_pool_resize(struct cell_pool *pool, uint64_t **owner, uint32_t old, uint32_t cells);

void cell_pool_check(const struct cell_pool *pool);

#endif
