/*
 * The partial result of a command that works in steps, kept in call->progress over its runs. A step
 * ends with store_step or with any wait; the entries collected before that are kept.
 *
 * Invariant: between runs `out` holds exactly the output of all entries before the position where
 * the work continues.
 */
#ifndef VELLUM_COLLECTOR_H
#define VELLUM_COLLECTOR_H

#include "server/core/collected.h"
#include "server/exec/reply_spill.h"
#include "server/core/command.h"
#include "server/base/rng.h"
#include "server/exec/source_index.h"
#include "storage/ordered.h"

#define COLLECT_STEP_ENTRIES 1024
#define COLLECT_STEP_BYTES (64 * 1024)
/* A step inside another command repeats all that ran before it in the outer command. */
#define COLLECT_NESTED_ENTRIES (4 * COLLECT_STEP_ENTRIES)
#define COLLECT_NESTED_BYTES (4 * COLLECT_STEP_BYTES)

#define COLLECT_SHORT_BYTES (8 * 1024) /* when client memory is short */

/* The entries of a tree, in an order other than the tree's: see members_order.h. */
struct collector_place {
    uint64_t sequence;
    int64_t number;
    uint64_t rank; /* in the tree */
};
struct collector_order {
    struct collector_place *places; /* owned; NULL: not begun */
    uint64_t capacity, count;       /* entries noted so far */
    bool is_sorted;                 /* all entries are noted and sorted */
};

struct collector {
    uint64_t at;              /* where to continue, in the command's own units */
    uint32_t source;          /* index of the current source key */
    uint64_t count;           /* entries collected, in the command's own units */
    uint64_t looked_up;       /* SCAN: keys whose type was compared */
    uint64_t measured;        /* MEMORY USAGE: bytes of the trees before the current one */
    struct rng rng;           /* from the call's seed */
    uint64_t checksum;        /* DUMP: of all bytes collected */
    uint64_t compared;        /* LPOS ...: bytes of the current element that are equal */
    uint64_t *ranks;          /* of the chosen entries, or offsets in `out`; ordered; owned */
    uint64_t rank_bytes;      /* of `ranks` and `spare`, as far as counted */
    uint64_t *spare;          /* of the same size, while `ranks` are being sorted; owned */
    uint64_t width;           /* of the sorted runs in `ranks`; 0: none */
    uint64_t chosen;          /* GEOSEARCH: of the sorted results, so far or to be stored */
    uint64_t passed, sampled; /* HRANDFIELD, while members have expired: visited, and picked */
    double farthest;          /* GEOSEARCH: no result from this distance on is wanted */
    struct collector_order order;
    struct {                  /* DUMP of a stream: where it is in its groups */
        uint64_t group, list; /* index; list 0 is the group's own, the others its consumers' */
        uint64_t ms, seq;     /* ID where the list continues, if it has_more */
        bool has_more;
    } in_group;
    struct store_range *range;    /* VELLUM.RANGE: the walk; owned */
    struct source_index *sources; /* of set algebra; owned; NULL: none */
    uint64_t source_bytes;        /* its memory */
    bool is_indexed;              /* it is complete, or there is no memory for it */
    struct resp_writer out;       /* in the protocol of the reply, or the command's own form */
    struct collected collected;
    struct reply_spill spill;     /* output before `out`, or before `reordered` */
    struct resp_writer reordered; /* for commands that reply in another order than they read */
    bool is_reply;                /* `out` is the reply from its first byte and may be streamed */
    bool is_tail;                 /* `out` follows the reply's head and may be spilled to disk */
    bool is_nested;
    bool is_over;          /* set by the command */
    uint64_t entries_left; /* in this step, over all waits within it */
    struct build {
        struct store_bulk_load *bulk_load; /* NULL: still collected in memory alone */
        const struct store_key *to;        /* of this run */
        uint32_t trees;
        uint64_t steps;            /* known to be committed */
        uint8_t type, filled_type; /* of the item: committed; and after this fill */
    } build;                       /* for commands that store a collection */
    size_t step_end;               /* the step is full when out.len reaches it */
};

/* Returns the call's collector, made in its first run. NULL: out of memory, too much collected,
 * or the server is stopping. Call it once in each run. */
struct collector *collector_get(struct call *call);

void collector_begin_step(struct collector *collector);

/* Picks ranks below `size` at random and visits them: `count` distinct ones in ascending order, or,
 * if it is negative, -count of them with repetitions. A visit that does not return STORE_OK ends
 * the walk, and is repeated in the next run. A count that is not negative must be below `size`. */
typedef enum store_result rank_visit(void *arg, uint64_t rank);
STORE_MUST_CHECK enum store_result collector_pick(struct call *call, struct collector *collector,
                                                  uint64_t size, int64_t count, rank_visit *visit,
                                                  void *arg);

/* Moves on to the next source key. */
void collector_next_source(struct collector *collector);

/* Makes an index of the sources, which have so many members. False: there is no memory for it. */
bool collector_new_index(struct collector *collector, uint64_t members);

/* For a command that stores a collection too large to be kept in memory. When `out` holds
 * enough, or the rest of the entries, `fill` adds it to a bulk load, the step is committed, and
 * `out` is empty in the next run. Call it before collecting more and, with `at_end`, when all
 * entries are collected: STORE_OK then says that the bulk load, if there is one, is complete.
 * The bulk load has `trees` trees and is placed near the key `to`. */
typedef enum store_result collector_planter(struct call *call, struct collector *collector);
STORE_MUST_CHECK enum store_result collector_build(struct call *call, struct collector *collector,
                                                   const struct store_key *to, uint32_t trees,
                                                   bool at_end, collector_planter *fill);
/* Makes the complete bulk load the value of build.to, and reads it into *item. */
STORE_MUST_CHECK enum store_result
collector_put_built(struct call *call, const struct collector *collector, struct store_item *item);

/* After each entry: whether to call collector_step. */
static inline bool collector_step_is_full(struct collector *collector)
{
    return --collector->entries_left == 0 || collector->out.len >= collector->step_end;
}

/* The same after several entries. */
static inline bool collector_step_fills(struct collector *collector, uint64_t entries)
{
    collector->entries_left -=
        entries < collector->entries_left ? entries : collector->entries_left;
    return collector->entries_left == 0 || collector->out.len >= collector->step_end;
}

/* Call before adding `bytes` to `out`. False: not enough memory. Small amounts always fit. */
bool collector_has_room(struct collector *collector, uint64_t bytes);

/* Ends a step. */
STORE_MUST_CHECK enum store_result collector_step(struct call *call, struct collector *collector);

/* Within a step: others have their turns, as in call_yield, and what it holds is counted. */
STORE_MUST_CHECK enum store_result collector_yield(struct call *call, struct collector *collector);

/* Appends an item from `offset` on to `out` as a bulk string. On STORE_WAIT and failures the
 * caller truncates `out` to the start of the entry. */
STORE_MUST_CHECK enum store_result collector_item(struct call *call, struct collector *collector,
                                                  const struct store_item *item, uint64_t offset);

/* Writes the collected result into the reply; STORE_NO_MEMORY if it is too large. With `is_tail` it
 * may return STORE_WAIT first. */
STORE_MUST_CHECK enum store_result collector_reply(struct call *call, struct collector *collector);

#endif
