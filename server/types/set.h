/*
 * Sets, stored as members.h describes. A small set of integers is sorted by number. The item's
 * type byte records the encoding that Redis's thresholds would choose (intset, listpack,
 * hashtable).
 */
#ifndef VELLUM_SET_H
#define VELLUM_SET_H

#include "server/types/members.h"

static inline enum store_result set_find(struct call *call, const struct store_key *key,
                                         struct members *set)
{
    return members_find(call, key, TYPE_SET, set);
}

static inline enum store_result set_has(struct call *call, struct members *set,
                                        struct resp_slice member, bool *found)
{
    return members_get(call, set, member, NULL, found);
}

/* Called before `count` members are added, of which this is the first. As in Redis, it
 * decides whether a new set is one of integers, and chooses the large encoding for many members at
 * once. */
void set_expect(struct call *call, struct members *set, struct resp_slice first, size_t count);

/* Whether Redis would keep so many integers as an intset. */
bool set_may_be_integers(const struct call *call, uint64_t count);

STORE_MUST_CHECK enum store_result set_add(struct call *call, struct members *set,
                                           struct resp_slice member, bool *added);

#endif
