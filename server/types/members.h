/*
 * A collection of members, each with a value (hash) or without one (set), in either form: packed
 * into one item while it is small, and a tree of members once it exceeds PACKED_MAX. A tree never
 * becomes packed again.
 *
 * Changes to the packed form are buffered until members_write(), which every function that changes
 * a collection must call at the end. It deletes a collection that has become empty.
 */
#ifndef VELLUM_MEMBERS_H
#define VELLUM_MEMBERS_H

#include "server/core/command.h"
#include "server/exec/collector.h"
#include "server/types/packed.h"
#include "server/pubsub/notify.h"
#include "storage/collections.h"

struct member;

/* Which values the visitor reads itself, if it wants them. */
enum members_leaving { LEAVES_NO_VALUE, LEAVES_LONG_VALUES, LEAVES_ALL_VALUES };

struct members {
    const struct store_key *key;
    uint32_t width; /* packed entries per member: 1, or 2 with a value, or 3 with an expiry too */
    uint8_t type;   /* type and flag bits of the item, as members_write() will store them */
    bool exists;    /* the key existed when it was looked up */
    bool is_changed;
    const struct member *unread; /* members_each: the member whose value the visitor has to read */
    enum members_leaving leaves; /* set by the caller */
    struct packed packed;        /* if there is no tree */
    struct store_tree *tree;     /* or NULL */
    struct store_item item;      /* as found; a new one has no expiry */

    /* Members that expire: see members_expiry.h. */
    struct store_tree *order; /* by expiry, if there is a tree and any member expires; or NULL */
    int64_t now_ms;           /* members that expired before are not shown */
    int64_t wake_ms;          /* the earliest expiry of a member; or STORE_NO_EXPIRY */
    int64_t visited_ms;       /* members_each: the expiry of the member visited */
    bool is_earliest_gone;    /* wake_ms is to be found again */
    uint64_t due;             /* members that have expired, but are still there */
    bool keeps_expiry;        /* set by the caller: for members_put() */
    bool has_replaced_due;    /* members_put() has overwritten a member that had expired */
    const char *second_event; /* set by the caller: members_write() sends it, too; or NULL */
};

/* A new collection, which replaces any value at the key. */
void members_new(struct members *members, const struct store_key *key, enum item_type type);

/* Finds the collection at the key; an absent one is empty. STORE_ANSWERED: the key has another
 * type. If `item` was found already, call members_open(). */
STORE_MUST_CHECK enum store_result members_find(struct call *call, const struct store_key *key,
                                                enum item_type type, struct members *members);
STORE_MUST_CHECK enum store_result members_open(struct call *call, const struct store_key *key,
                                                const struct store_item *item,
                                                struct members *members);

/* All that are there, and those of them that are shown: that have not expired. */
uint64_t members_count(const struct members *members);
static inline uint64_t members_shown(const struct members *members)
{
    return members_count(members) - members->due;
}

/* `value`, if not NULL, is valid until the next call on these members. */
STORE_MUST_CHECK enum store_result members_get(struct call *call, struct members *members,
                                               struct resp_slice name, struct resp_slice *value,
                                               bool *found);

/* Writes the value, or null, as a bulk reply. A long value is streamed, not loaded. */
STORE_MUST_CHECK enum store_result members_reply_value(struct call *call, struct members *members,
                                                       struct resp_slice name);

/* The length of the value, which is not loaded. */
STORE_MUST_CHECK enum store_result members_get_length(struct call *call, struct members *members,
                                                      struct resp_slice name, uint64_t *length,
                                                      bool *found);

/* Sets a member's value, and removes its expiry unless keeps_expiry is set. *added: the member is
 * new. New members are appended, or with members_insert() inserted at a position of
 * members->packed, if the collection is packed. */
STORE_MUST_CHECK enum store_result members_put(struct call *call, struct members *members,
                                               struct resp_slice name, struct resp_slice value,
                                               bool *added);
STORE_MUST_CHECK enum store_result members_insert(struct call *call, struct members *members,
                                                  uint32_t at, struct resp_slice name);

STORE_MUST_CHECK enum store_result members_remove(struct call *call, struct members *members,
                                                  struct resp_slice name, bool *removed);

/* Writes the changes, if any, and sends the notifications "new", `event` and "del" that apply. */
STORE_MUST_CHECK enum store_result members_write(struct call *call, struct members *members,
                                                 enum notify_class kind, const char *event);
/* The same without notifications. */
STORE_MUST_CHECK enum store_result members_store(struct call *call, struct members *members);
/* Converts the packed form to a tree. */
STORE_MUST_CHECK enum store_result members_outgrow(struct call *call, struct members *members);
/* Called for each `i` from 0 on in a loop over many members, or over arguments that name members;
 * lets other requests run (call_yield). Members read before are invalid afterwards. */
STORE_MUST_CHECK enum store_result members_yield(struct call *call, struct members *members,
                                                 uint64_t i);
/* Copies a packed form out of its page. For a command that uses it while it visits a tree:
 * members_each() yields then, and the page may go. */
STORE_MUST_CHECK enum store_result members_keep(struct call *call, struct members *members);

/* ---- by rank, and all of them ---- */

/* Whether it is a tree, but small enough for Redis to use a listpack or intset. Its members are
 * then shown in Redis's order (members_order.h), not in the order of their ranks. */
static inline bool members_are_reordered(const struct members *members)
{
    return members->tree != NULL && (members->type & ITEM_BIG) == 0 &&
           (members->type & ITEM_TYPE_MASK) != TYPE_ZSET;
}

/* The member with this rank, which must be below the count; `value` may be NULL. Valid until the
 * next call on these members. */
STORE_MUST_CHECK enum store_result members_at(struct call *call, struct members *members,
                                              uint64_t rank, struct resp_slice *name,
                                              struct resp_slice *value);
STORE_MUST_CHECK enum store_result members_remove_at(struct call *call, struct members *members,
                                                     uint64_t rank);

/* Calls `visit` for each member from collector->at on, and advances that. Uses Redis's order where
 * Redis defines one, and proceeds in steps where needed, so the command must not have written
 * anything before. If a visit does not return STORE_OK, the walk ends without advancing;
 * STORE_ABSENT ends it successfully. `value` is empty if there are no values or none were
 * requested. If members->unread is not NULL, its value was not read: see members->leaves. */
typedef enum store_result member_visit(void *arg, struct resp_slice name, struct resp_slice value);
STORE_MUST_CHECK enum store_result members_each(struct call *call, struct members *members,
                                                struct collector *collector, bool with_values,
                                                member_visit *visit, void *arg);

/* Makes collector->sources the index of so many sources, each at the start of `stride` bytes from
 * `first` on; without memory there is none. In steps; packed ones must have been kept. To be called
 * in each run before collector->source and collector->at are used. */
STORE_MUST_CHECK enum store_result members_index(struct call *call, struct collector *collector,
                                                 struct members *first, size_t stride,
                                                 uint32_t count);

/* Between two of `sources` sources that can be walked without ending a step: others have their
 * turn, and a full step is ended. Since each step finds all sources anew, it may be the larger the
 * more there are. */
STORE_MUST_CHECK enum store_result
members_between_sources(struct call *call, struct collector *collector, uint32_t sources);

/* With repetitions the count may be so large that a streamed reply, which holds its key locks,
 * would never end. Such a reply is collected instead, up to the memory limit. */
static inline bool members_pick_ends(int64_t count)
{
    return count >= -(int64_t)INT32_MAX;
}

/* The number of members that members_pick() picks. */
uint64_t members_pick_count(const struct members *members, int64_t count);

/* Picks random members: up to `count` distinct ones in Redis's order, or, if `count` is negative,
 * that many with repetitions. Otherwise like members_each(). The distinct ones' ranks are those of
 * collector->ranks, through collector->order if that is not empty. */
STORE_MUST_CHECK enum store_result members_pick(struct call *call, struct members *members,
                                                struct collector *collector, int64_t count,
                                                bool with_values, member_visit *visit, void *arg);

/* Visits about `count` members from a SCAN cursor on. *cursor becomes the cursor of the next call,
 * 0 at the end. As in Redis, a collection that Redis would keep packed (not ITEM_BIG) is returned
 * whole, whatever the cursor and the count. Otherwise like members_each(). */
STORE_MUST_CHECK enum store_result members_scan(struct call *call, struct members *members,
                                                struct collector *collector, uint64_t *cursor,
                                                uint64_t count, member_visit *visit, void *arg);

#endif
