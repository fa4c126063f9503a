/*
 * In which order members are shown that stand in a tree, and that Redis would keep as a listpack or
 * an intset: in the order in which they were added, or of their numbers. The tree itself is in the
 * order of a secret hash.
 *
 * Integers without a sequence number come first: a set that was an intset becomes a listpack of
 * them. Others without one are of a directory of format 2, which kept no order.
 */
#ifndef VELLUM_MEMBERS_ORDER_H
#define VELLUM_MEMBERS_ORDER_H

#include "server/exec/collector.h"
#include "server/types/members.h"

/* Notes up to `most` members that were not noted yet, and sorts when that were the last; a wait
 * keeps what is noted. For members_are_reordered, and a table that is empty or of the same members.
 */
STORE_MUST_CHECK enum store_result members_arrange(struct call *call, struct members *members,
                                                   struct collector_order *order, uint64_t most);

#endif
