/*
 * The display order of members that are in a tree here but that Redis would keep in a listpack or
 * an intset: the order in which they were added, or numeric order. The tree itself is ordered by a
 * secret hash.
 *
 * Integers without a sequence number come first: a set that was an intset becomes a listpack of
 * them. Other members without one come from a data directory of format 2, which recorded no order.
 */
#ifndef VELLUM_MEMBERS_ORDER_H
#define VELLUM_MEMBERS_ORDER_H

#include "server/exec/collector.h"
#include "server/types/members.h"

/* Records up to `most` further members, and sorts them all once the last one is recorded. Recorded
 * members are kept if the run has to wait. Only if members_are_reordered(), with a table that is
 * empty or belongs to the same members. */
STORE_MUST_CHECK enum store_result members_arrange(struct call *call, struct members *members,
                                                   struct collector_order *order, uint64_t most);

#endif
