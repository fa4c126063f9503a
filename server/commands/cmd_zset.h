/*
 * Common to the commands on sorted sets, including the blocking ones.
 */
#ifndef VELLUM_CMD_ZSET_H
#define VELLUM_CMD_ZSET_H

#include "server/exec/steps.h"
#include "server/types/zset.h"

/* Sends the notifications for a change ("new", `event`, "del") and saves the sorted set. */
STORE_MUST_CHECK enum store_result zset_changed(struct zset *zset, const char *event);

/* ---- adding, as ZADD does ---- */

enum zset_add_option {
    ZSET_ADD_NX = 1 << 0,
    ZSET_ADD_XX = 1 << 1,
    ZSET_ADD_GT = 1 << 2,
    ZSET_ADD_LT = 1 << 3,
    ZSET_ADD_CH = 1 << 4,
    ZSET_ADD_INCR = 1 << 5,
};

struct zset_adding {
    struct zset zset;
    unsigned options;
    uint64_t added, updated;
    bool is_done; /* INCR: there is a score to reply */
    double score; /* INCR's result */
    bool is_nan;  /* INCR would have produced it */
};

unsigned zset_add_option(struct resp_slice arg); /* 0: it is none */
STORE_MUST_CHECK enum store_result zset_add_one(struct zset_adding *adding,
                                                struct resp_slice member, double score);
/* Replies, and saves the sorted set if it has changed. */
STORE_MUST_CHECK enum store_result zset_reply_added(struct call *call, struct zset_adding *adding);

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
