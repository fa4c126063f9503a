/*
 * Replies that show many members of a set or a hash: all of them, some by chance, those of a scan.
 */
#ifndef VELLUM_MEMBERS_REPLY_H
#define VELLUM_MEMBERS_REPLY_H

#include "server/types/members.h"
#include "server/types/scan_args.h"

enum members_part { PART_NAMES = 1, PART_VALUES = 2, PART_BOTH = 3 };

/* What members_show writes of each member, and where to. */
struct members_showing {
    struct collector *collector; /* its `count` counts what is written: 2 for both parts */
    enum members_part part;
    bool in_pairs;                    /* each name and value an array of their own */
    const struct scan_filter *filter; /* NULL: any name */
    struct call *call;                /* both for values that are left unread; or NULL */
    struct members *members;
};

/* A member_visit whose `arg` is a struct members_showing. */
enum store_result members_show(void *arg, struct resp_slice name, struct resp_slice value);

/* How the reply begins: resp_array, resp_set or resp_map, of so many. */
typedef void members_head(struct resp_writer *out, uint64_t count);

/* Replies with a part of all members. */
STORE_MUST_CHECK enum store_result members_reply_all(struct call *call, struct members *members,
                                                     enum members_part part, members_head *head);

/* Replies with what members_pick picks for `count`; call->progress stays, a struct gather. */
STORE_MUST_CHECK enum store_result members_reply_some(struct call *call, struct members *members,
                                                      int64_t count, enum members_part part,
                                                      bool in_pairs, members_head *head);

/* Replies with the name of one member picked by chance, or null. */
STORE_MUST_CHECK enum store_result members_reply_one(struct call *call, struct members *members);

/* HSCAN, SSCAN: the whole command. */
STORE_MUST_CHECK enum store_result members_reply_scan(struct call *call, enum item_type type);

#endif
