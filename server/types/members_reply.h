/*
 * Replies with many members of a set or a hash: all of them, random ones, or those of a scan.
 */
#ifndef VELLUM_MEMBERS_REPLY_H
#define VELLUM_MEMBERS_REPLY_H

#include "server/types/members.h"
#include "server/types/scan_args.h"

enum members_part { PART_NAMES = 1, PART_VALUES = 2, PART_BOTH = 3 };

/* How the reply begins: resp_array, resp_set or resp_map, with the given count. */
typedef void members_head(struct resp_writer *out, uint64_t count);

/* Replies with one part of all members, or both. */
STORE_MUST_CHECK enum store_result members_reply_all(struct call *call, struct members *members,
                                                     enum members_part part, members_head *head);

/* Replies with the members that members_pick() picks for `count`. call->progress remains a struct
 * collector. */
STORE_MUST_CHECK enum store_result members_reply_some(struct call *call, struct members *members,
                                                      int64_t count, enum members_part part,
                                                      bool in_pairs, members_head *head);

/* Replies with the name of one random member, or null. */
STORE_MUST_CHECK enum store_result members_reply_one(struct call *call, struct members *members);

/* HSCAN, SSCAN: the whole command. */
STORE_MUST_CHECK enum store_result members_reply_scan(struct call *call, enum item_type type);

#endif
