/*
 * Walks strings of any length in little memory: piece by piece, over several runs if that takes
 * long. Other requests run in between, while the key stays locked. The position is kept in
 * call->progress.
 *
 *     walk = string_walk(...); in each run, starting with the first piece not yet delivered:
 *     while string_walk_next() returns STORE_OK: process the piece, and keep totals in the walk.
 *     STORE_ABSENT: there are no more pieces. Pass up all other results.
 */
#ifndef VELLUM_STRING_WALK_H
#define VELLUM_STRING_WALK_H

#include "server/core/command.h"

/* The most work of one run, counted in pieces without bytes. */
#define STRING_STEP_WORK 256
#define STRING_PIECE_WORK 32     /* the work of a piece with bytes */
#define STRING_NESTED_STEPS 4    /* in one run of a nested call: a rerun repeats all before it */
#define STRING_SHORT (64 * 1024) /* a string up to this length is one piece, in one run */

struct string_walk {
    uint64_t at, end; /* of the value: the range still to visit */
    uint64_t sum;     /* for the command's use; initially 0 */
    uint32_t work;    /* done by this run */
    char *room;       /* scratch memory of this run */
};

/* Bytes [offset, offset + len) of an existing value in one piece. Valid until the request is
 * finished. */
enum store_result string_view(struct call *call, const struct store_item *item, uint64_t offset,
                              size_t len, const char **bytes);

/* Walks bytes [from, from + len) of the item, which must be within it. `here` is used if the walk
 * need not be kept. NULL: out of memory. Call it once in each run. */
struct string_walk *string_walk(struct call *call, const struct store_item *item, uint64_t from,
                                uint64_t len, struct string_walk *here);

STORE_MUST_CHECK enum store_result string_walk_next(struct call *call, struct string_walk *walk,
                                                    const struct store_item *item,
                                                    struct store_piece *piece);

static inline uint32_t string_work_of(const struct store_piece *piece)
{
    return piece->bytes != NULL ? STRING_PIECE_WORK : 1;
}

/* Whether a run has done enough work. */
static inline bool string_step_is_full(const struct call *call, uint32_t work)
{
    return work >= STRING_STEP_WORK * (call->outer != NULL ? STRING_NESTED_STEPS : 1);
}

#endif
