/*
 * Common to the commands on sorted sets, including the blocking ones.
 */
#ifndef VELLUM_CMD_ZSET_H
#define VELLUM_CMD_ZSET_H

#include "server/exec/steps.h"
#include "server/types/zset.h"

/* Sends the notifications for a change ("new", `event`, "del") and saves the sorted set. */
STORE_MUST_CHECK enum store_result zset_changed(struct zset *zset, const char *event);

/* ---- replies ---- */

enum zset_form {
    ZSET_MEMBERS,
    ZSET_FLAT, /* members and scores in turn */
    ZSET_PAIRS /* each member with its score in an array */
};

/* The form of members with scores in this protocol version. */
enum zset_form zset_form(const struct call *call, bool with_scores);
void zset_put_head(struct resp_writer *out, uint64_t count, enum zset_form form);

STORE_MUST_CHECK enum store_result
zset_put_element(struct steps *steps, const struct zset_element *element, enum zset_form form);

/* Replies with `count` elements, from `first` on, or backwards from the one before `first`. The
 * caller writes the head of the reply. */
STORE_MUST_CHECK enum store_result zset_reply_range(struct steps *steps, struct zset *zset,
                                                    uint64_t first, uint64_t count, bool backwards,
                                                    enum zset_form form);

#endif
