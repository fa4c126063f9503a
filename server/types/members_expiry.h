/*
 * The expiry of single members: of the fields of hashes. members.h shows no member whose time has
 * passed; here is how the times are kept, and how such members are removed.
 *
 * Part of the data format. A hash has ITEM_TIMED from the first expiry of a field on, and keeps it.
 * Then, if it is packed, a third entry follows each field and its value: the expiry as 8 bytes
 * (Unix ms, big-endian), or none. If it is a tree, a field's expiry is in the key of its entry
 * (member_tree.h), and the value has a second tree, in the order of expiry, without values:
 *
 *     OFFSET  SIZE    DESCRIPTION
 *     0       8       expiry, Unix ms, big-endian
 *     8       8       the field's hash, as in its entry's key
 *
 * Invariants
 * 1. The second tree has an entry for each member that has an expiry, and no others.
 * 2. The item's wake time (store_set_wake) is the earliest expiry of all members. So a hash whose
 *    wake time has not passed has no expired member, and is read without looking for any; and one
 *    whose wake time has passed has at least one.
 */
#ifndef VELLUM_MEMBERS_EXPIRY_H
#define VELLUM_MEMBERS_EXPIRY_H

#include "server/types/member_tree.h"
#include "server/types/members.h"
#include "storage/collections.h"

/* Whether a member with this expiry is not shown any more. */
static inline bool members_is_due(const struct members *members, int64_t expire_ms)
{
    return expire_ms != STORE_NO_EXPIRY && expire_ms < members->now_ms;
}

/* The expiry of the packed member whose name is this entry; and whether it is not shown any more.
 */
int64_t members_packed_expiry(const struct members *members, struct packed_entry entry);
static inline bool members_packed_is_due(const struct members *members, struct packed_entry entry)
{
    return __builtin_expect(members->due > 0, 0) &&
           members_is_due(members, members_packed_expiry(members, entry));
}

/* For members.c, of members with ITEM_TIMED: finds what has expired, after the packed form or the
 * tree is open; and before they are stored, the earliest expiry. */
STORE_MUST_CHECK enum store_result members_open_expiry(struct call *call, struct members *members);
STORE_MUST_CHECK enum store_result members_find_earliest(struct members *members);

/* For members.c: the member is about to be removed; or, at the cursor, is to lose its expiry. */
STORE_MUST_CHECK enum store_result members_forget_expiry(struct members *members,
                                                         const struct member *member);
STORE_MUST_CHECK enum store_result members_drop_expiry(struct call *call, struct members *members,
                                                       struct store_cursor *cursor,
                                                       const struct member *member);

/* *found: the member is there and has not expired. */
STORE_MUST_CHECK enum store_result members_get_expiry(struct call *call, struct members *members,
                                                      struct resp_slice name, int64_t *expire_ms,
                                                      bool *found);
/* Of a member that is there; STORE_NO_EXPIRY removes it. */
STORE_MUST_CHECK enum store_result members_set_expiry(struct call *call, struct members *members,
                                                      struct resp_slice name, int64_t expire_ms);

/* The rank of the first member from `rank` on that is shown; after the last one, from the first one
 * on. At least one must be. */
STORE_MUST_CHECK enum store_result members_skip_due(struct call *call, struct members *members,
                                                    uint64_t *rank);

/* Removes expired members, those of a tree earliest first and at most `most`. *removed: how many.
 */
STORE_MUST_CHECK enum store_result members_remove_due(struct call *call, struct members *members,
                                                      uint32_t most, uint32_t *removed);

#endif
