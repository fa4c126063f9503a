/*
 * Going through strings of any length in little memory: piece by piece, over several runs where
 * that takes long; others have their turn in between, while the key stays held. How far it has
 * got is kept in call->progress.
 *
 *     walk = string_walk(...); in each run, from the first piece that no run before it was given:
 *     while string_walk_next says STORE_OK: deal with the piece, and keep in the walk what it adds
 *     up to; STORE_ABSENT: that was the last. Anything else is passed up.
 */
#ifndef VELLUM_STRING_WALK_H
#define VELLUM_STRING_WALK_H

#include "server/core/command.h"

/* What a run takes at most: its work is counted in pieces without bytes. */
#define STRING_STEP_WORK 256
#define STRING_PIECE_WORK 32     /* of one with bytes */
#define STRING_NESTED_STEPS 4    /* inside another command each step lets all before it run again */
#define STRING_SHORT (64 * 1024) /* up to this length a string is one piece, in one run */

struct string_walk {
    uint64_t at, end; /* of the value: where to go on */
    uint64_t sum;     /* as the command counts; at first 0 */
    uint32_t work;    /* that this run has done */
    char *room;       /* this run's */
};

/* Bytes [offset, offset + len) of an existing value in one piece, until the request is finished. */
enum store_result string_view(struct call *call, const struct store_item *item, uint64_t offset,
                              size_t len, const char **bytes);

/* Bytes [from, from + len) of the item, which are in it. `here`: room for one that is not kept.
 * NULL: out of memory. Once in each run. */
struct string_walk *string_walk(struct call *call, const struct store_item *item, uint64_t from,
                                uint64_t len, struct string_walk *here);

STORE_MUST_CHECK enum store_result string_walk_next(struct call *call, struct string_walk *walk,
                                                    const struct store_item *item,
                                                    struct store_piece *piece);

static inline uint32_t string_work_of(const struct store_piece *piece)
{
    return piece->bytes != NULL ? STRING_PIECE_WORK : 1;
}

/* Whether a run has done enough. */
static inline bool string_step_is_full(const struct call *call, uint32_t work)
{
    return work >= STRING_STEP_WORK * (call->outer != NULL ? STRING_NESTED_STEPS : 1);
}

#endif
