/*
 * Sets, kept as members.h says; one of integers that is small is sorted by number. The item's type
 * byte follows what Redis's thresholds make of a set (intset, listpack, hashtable).
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

/* Before `count` members are added, of which this is the first: a set yet to be made is one of
 * integers if it is one, and what Redis makes larger for so many, is so. */
void set_expect(struct call *call, struct members *set, struct resp_slice first, size_t count);

STORE_MUST_CHECK enum store_result set_add(struct call *call, struct members *set,
                                           struct resp_slice member, bool *added);

#endif
