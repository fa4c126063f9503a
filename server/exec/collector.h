/*
 * What a command that works in steps has collected so far: kept in call->progress over its runs. A
 * step ends with store_step, or with any wait; what it has collected until then stays collected.
 *
 * Invariant: between runs `out` holds exactly what belongs to all that lies before the place where
 * the work is to go on.
 */
#ifndef VELLUM_COLLECTOR_H
#define VELLUM_COLLECTOR_H

#include "server/exec/reply_spill.h"
#include "server/core/command.h"
#include "server/base/rng.h"

#define COLLECT_STEP_ENTRIES 1024
#define COLLECT_STEP_BYTES (64 * 1024)
/* Inside another command each step lets what was before it run again. */
#define COLLECT_NESTED_ENTRIES (4 * COLLECT_STEP_ENTRIES)
#define COLLECT_NESTED_BYTES (4 * COLLECT_STEP_BYTES)

#define COLLECT_SHORT_BYTES (8 * 1024) /* when there is little memory for clients */

/* What commands keep from step to step is counted, all together: no more than that share of
 * maxmemory. The store is told, so that frames make room. */
#define COLLECTED_SHARE 3

struct collected {
    struct server *server;
    uint64_t bytes; /* counted so far */
    uint64_t noted; /* of them the store has been told */
};

/* How much it is now; false: it is too much for the command to go on. */
bool collected_set(struct collected *collected, uint64_t bytes);

/* The entries of a tree in an order that is not the tree's: see members_order.h. */
struct collector_place {
    uint64_t sequence;
    int64_t number;
    uint64_t rank; /* in the tree */
};
struct collector_order {
    struct collector_place *places; /* NULL: not begun; freed */
    uint64_t capacity, count;       /* so many were noted */
    bool is_sorted;                 /* all were, and they are in order */
};

struct collector {
    uint64_t at;         /* where to go on, as the command counts */
    uint32_t source;     /* in which of several keys */
    uint64_t count;      /* of what was collected, as the command counts */
    struct rng rng;      /* from the call's seed */
    uint64_t checksum;   /* DUMP: of all that was collected */
    uint64_t *ranks;     /* of what was chosen by it, or places in `out`, in order; freed */
    uint64_t rank_bytes; /* of the latter */
    struct collector_order order;
    struct resp_writer out; /* in the protocol of the reply, or the command's own form */
    struct collected collected;
    struct reply_spill spill; /* what was before it, or before `said` */
    struct resp_writer said;  /* of commands that say it in another order than it was found in */
    bool is_reply;            /* `out` is the reply from its first byte: it may leave in parts */
    bool is_tail;             /* it is what comes behind the reply's head: it may be put aside */
    bool is_nested;
    bool is_over;          /* as the command says */
    uint64_t entries_left; /* of this step, whatever it has to wait for in between */
    struct build {
        struct store_bulk_load *bulk_load; /* NULL: not so much has been collected */
        uint32_t trees;
        uint64_t steps;            /* that are known to be committed */
        uint8_t type, filled_type; /* the item's by then; as the run's planting has left it */
    } build;                       /* of commands that make a collection of it */
    size_t step_end;               /* out.len at which it is full */
};

/* The call's own, made in its first run; NULL: out of memory, or there is too much of it, or
 * the server ends. To be called once in each run. */
struct collector *collector_get(struct call *call);

void collector_begin_step(struct collector *collector);

/* From one of several keys to the next. */
void collector_next_source(struct collector *collector);

/* For a command that makes a collection of what it collects, and is not to keep all of it in
 * memory: when there is much in `out`, or all that was left, `plant` adds it to a building, a step
 * is committed, and `out` is empty in the next run. To be called before going on to collect, and,
 * with `at_end`, when all is collected: STORE_OK then says that the building, if there is one, is
 * whole. A building has so many trees, and is near the key `to`. */
typedef enum store_result collector_planter(struct call *call, struct collector *collector);
STORE_MUST_CHECK enum store_result collector_build(struct call *call, struct collector *collector,
                                                   const struct store_key *to, uint32_t trees,
                                                   bool at_end, collector_planter *fill);
/* The whole building becomes what call->keys[0] is, which is *item then. */
STORE_MUST_CHECK enum store_result
collector_put_built(struct call *call, const struct collector *collector, struct store_item *item);

/* After each entry: whether it is time for collector_step. */
static inline bool collector_step_is_full(struct collector *collector)
{
    return --collector->entries_left == 0 || collector->out.len >= collector->step_end;
}

/* The same after several. */
static inline bool collector_step_fills(struct collector *collector, uint64_t entries)
{
    collector->entries_left -=
        entries < collector->entries_left ? entries : collector->entries_left;
    return collector->entries_left == 0 || collector->out.len >= collector->step_end;
}

/* Before so much is put into `out`; false: there is no memory for it. Little always fits. */
bool collector_has_room(struct collector *collector, uint64_t bytes);

/* The end of a step. */
STORE_MUST_CHECK enum store_result collector_step(struct call *call, struct collector *collector);

/* Puts an item from `offset` on into `out`, as a bulk string; STORE_WAIT and failures: to be cut
 * off again, with all of its entry. */
STORE_MUST_CHECK enum store_result collector_item(struct call *call, struct collector *collector,
                                                  const struct store_item *item, uint64_t offset);

/* Writes what was collected into the reply; STORE_NO_MEMORY if there was too much of it. If it is a
 * tail, another run may be needed for that. */
STORE_MUST_CHECK enum store_result collector_reply(struct call *call, struct collector *collector);

#endif
