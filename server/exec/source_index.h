/*
 * Which of many sources may have a member, so that set algebra need not look each member up in all
 * of them. The index knows 32 bits of a member's hash: false positives are possible, false
 * negatives are not.
 *
 * Invariant: sources are added in descending order, so every chain is in ascending order.
 *
 * Threads: belongs to the request's thread.
 */
#ifndef VELLUM_SOURCE_INDEX_H
#define VELLUM_SOURCE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define FEW_SOURCES 4 /* of so many no index is made: a member is looked up in all of them */

struct source_index;

/* The memory of an index of so many members; 0: too many. */
uint64_t source_index_bytes(uint64_t members);
/* NULL: out of memory. */
struct source_index *source_index_new(uint64_t members);
void source_index_free(struct source_index *index);
void source_index_add(struct source_index *index, uint64_t hash, uint32_t source);

#define SOURCE_NONE UINT32_MAX

/* Walks over the sources that may have a member, in ascending order. */
struct source_walk {
    const struct source_index *index; /* NULL: all sources, without end */
    uint32_t hash, entry, next;       /* sources before `next` were returned */
};

struct source_walk source_walk_begin(const struct source_index *index, uint64_t hash);
uint32_t source_walk_indexed(struct source_walk *walk);
/* SOURCE_NONE: there are no more. */
static inline uint32_t source_walk_next(struct source_walk *walk)
{
    return walk->index == NULL ? walk->next++ : source_walk_indexed(walk);
}

#endif
