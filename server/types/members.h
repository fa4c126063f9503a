/*
 * A collection of members, each with a value (hash) or without (set), whichever form it is kept in:
 * packed into one item while it is small, a tree of members when it has outgrown PACKED_MAX. Once a
 * tree it stays one.
 *
 * Changes are gathered: nothing that was small is written before members_write, which every
 * function that changes has to end with. A collection that has become empty is deleted by it.
 */
#ifndef VELLUM_MEMBERS_H
#define VELLUM_MEMBERS_H

#include "server/core/command.h"
#include "server/exec/collector.h"
#include "server/types/packed.h"
#include "server/pubsub/notify.h"

struct member;

struct members {
    const struct store_key *key;
    uint32_t width; /* entries of a member when packed: 1, or 2 with a value */
    uint8_t type;   /* the item's, with its bits: what members_write leaves behind */
    bool exists;    /* the key did when it was found */
    bool is_changed;
    const struct member *unread; /* members_each: whose value was left to the visitor */
    bool leaves_long;            /* it leaves those that are long */
    struct packed packed;        /* unless there is a tree */
    struct store_tree *tree;     /* or NULL */
    struct store_item item;      /* as found; of a new one: no expiry */
};

/* A collection that is to be made, over whatever is at the key. */
void members_new(struct members *members, const struct store_key *key, enum item_type type);

/* Finds what is at the key; where nothing is: an empty one. STORE_ANSWERED: it is of another type.
 * With `item` found already: members_open. */
STORE_MUST_CHECK enum store_result members_find(struct call *call, const struct store_key *key,
                                                enum item_type type, struct members *members);
STORE_MUST_CHECK enum store_result members_open(struct call *call, const struct store_key *key,
                                                const struct store_item *item,
                                                struct members *members);

uint64_t members_count(const struct members *members);

/* `value`, if it is asked for (not NULL), holds until the next call about these members. */
STORE_MUST_CHECK enum store_result members_get(struct call *call, struct members *members,
                                               struct resp_slice name, struct resp_slice *value,
                                               bool *found);

/* Writes the value as a bulk reply, or null; a long one is not read for that. */
STORE_MUST_CHECK enum store_result members_reply_value(struct call *call, struct members *members,
                                                       struct resp_slice name);

/* The length of the value alone, which is not read. */
STORE_MUST_CHECK enum store_result members_get_length(struct call *call, struct members *members,
                                                      struct resp_slice name, uint64_t *length,
                                                      bool *found);

/* Gives a member its value, *added if there was none. A new one stands behind the others, or with
 * members_insert at a place in members->packed, if that is where it is kept. */
STORE_MUST_CHECK enum store_result members_put(struct call *call, struct members *members,
                                               struct resp_slice name, struct resp_slice value,
                                               bool *added);
STORE_MUST_CHECK enum store_result members_insert(struct call *call, struct members *members,
                                                  uint32_t at, struct resp_slice name);

STORE_MUST_CHECK enum store_result members_remove(struct call *call, struct members *members,
                                                  struct resp_slice name, bool *removed);

/* Writes what is to be written, and if anything was changed tells of it: "new", `event`, "del". */
STORE_MUST_CHECK enum store_result members_write(struct call *call, struct members *members,
                                                 enum notify_class kind, const char *event);
/* In a loop over many members, for each `i` from 0 on, where others may have their turn
 * (call_yield). What is packed may stand in a page: there are few of them. */
STORE_MUST_CHECK enum store_result members_yield(struct call *call, const struct members *members,
                                                 uint64_t i);

/* ---- by rank, and all of them ---- */

/* Whether it is a tree of what Redis keeps as a listpack or intset: its members are shown in the
 * order they have there (members_order.h), which is not that of their ranks. */
static inline bool members_are_reordered(const struct members *members)
{
    return members->tree != NULL && (members->type & ITEM_BIG) == 0 &&
           (members->type & ITEM_TYPE_MASK) != TYPE_ZSET;
}

/* The member with this rank, below the count; holds until the next call about these members. */
STORE_MUST_CHECK enum store_result members_at(struct call *call, struct members *members,
                                              uint64_t rank, struct resp_slice *name,
                                              struct resp_slice *value);
STORE_MUST_CHECK enum store_result members_remove_at(struct call *call, struct members *members,
                                                     uint64_t rank);

/* Calls `visit` for each member from gather->at on, which it moves, in the order in which Redis
 * has them where it keeps one, and in steps where needed; the command must not have written
 * anything yet. A visit that does not return STORE_OK ends the walk before it moves on;
 * STORE_ABSENT ends it as a success. `value` is empty where there are no values or none are wanted;
 * members->unread, if it is not NULL, has one that was not read. */
typedef enum store_result member_visit(void *arg, struct resp_slice name, struct resp_slice value);
STORE_MUST_CHECK enum store_result members_each(struct call *call, struct members *members,
                                                struct collector *collector, bool with_values,
                                                member_visit *visit, void *arg);

/* With repetitions there may be so many that a reply that leaves meanwhile, its keys held, would
 * never end: then it is gathered, until there is too much of it. */
static inline bool members_pick_ends(int64_t count)
{
    return count >= -(int64_t)INT32_MAX;
}

/* How many members_pick picks. */
uint64_t members_pick_count(const struct members *members, int64_t count);

/* Some of them by chance: as many different ones as there are up to `count`, or, if that is
 * negative, any of them so many times. Like members_each otherwise. */
STORE_MUST_CHECK enum store_result members_pick(struct call *call, struct members *members,
                                                struct collector *collector, int64_t count,
                                                member_visit *visit, void *arg);

/* Those from a cursor of SCAN's kind on, about `count` of them; *cursor becomes where to go on, 0
 * at the end. What Redis would keep packed (not ITEM_BIG) comes whole, whatever the cursor and the
 * count, as it does there. Like members_each otherwise. */
STORE_MUST_CHECK enum store_result members_scan(struct call *call, struct members *members,
                                                struct collector *collector, uint64_t *cursor,
                                                uint64_t count, member_visit *visit, void *arg);

#endif
