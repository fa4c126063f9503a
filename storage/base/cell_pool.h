/*
 * Memory for many small arrays of 64-bit cells that grow all the time. Private to storage/.
 *
 * Tables that grow in step leave a general allocator with holes that nothing fits any more: glibc
 * takes 26 % more than what 16384 growing tables of 600 cells ask for. Here the blocks of one size
 * class stand without gaps in one mapping: a freed block is replaced by the class's last one.
 *
 * Invariants (cell_pool_check):
 *   1. A class's blocks are numbers 0 ... count - 1 of its mapping, each led by the address of the
 *      pointer that its owner keeps; that pointer shows behind this word.
 *   2. Pages behind the last block are given back once they are an eighth of the class's.
 *   3. Blocks beyond the largest class have a mapping each.
 *
 * So blocks move, whenever the pool is asked for anything: owners keep no other pointers into them.
 * An owner's pointer itself must not move.
 */
#ifndef VELLUM_CELL_POOL_H
#define VELLUM_CELL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/counter.h"

/* Words of a block: even numbers up to 32, from there 8 sizes per doubling, up to 128 KB. */
#define CELL_CLASS_COUNT 89
#define CELL_CLASS_WORDS_MAX 16384u

struct cell_class {
    uint64_t *base;    /* the mapping; NULL: none */
    uint32_t count;    /* blocks */
    uint32_t capacity; /* blocks that the mapping has room for */
    size_t touched;    /* bytes of it that may be in memory: whole pages */
};

struct cell_pool {
    counter bytes;  /* in use, whole pages */
    uint64_t limit; /* beyond that the pool gives nothing; UINT64_MAX at first */
    struct cell_class classes[CELL_CLASS_COUNT];
};

void cell_pool_init(struct cell_pool *pool);

/* The number of cells that a request for `cells` really gets. */
uint32_t cell_pool_round(uint32_t cells);

/* Gives *owner, which has `old` cells (0: none), a block of `cells` (0: none), both as rounded by
 * cell_pool_round. Contents are kept as far as they fit; what is new is zero. False: no memory;
 * nothing changed. Never fails for 0 cells. */
bool cell_pool_resize(struct cell_pool *pool, uint64_t **owner, uint32_t old, uint32_t cells);

void cell_pool_check(const struct cell_pool *pool);

#endif
