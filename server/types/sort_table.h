/*
 * State of SORT: the elements read so far, their weights, and the values to output. It is kept in
 * call->progress over the runs of a call: millions of elements are read, weighed, sorted and
 * output in steps, between which other requests run.
 *
 * Invariants:
 * 1. Between runs `count` elements have been read, `weighed` of them have weights, and `given` of
 *    the sorted ones were output. All bytes that they point to belong to the table.
 * 2. Each `width` elements are sorted (0: not yet), so all are if that is at least `count`. Those
 *    before `merged` are already merged into runs of twice that length, in `spare`, or sorted as
 *    initial runs. In the pair that is being merged, the elements before `taken` of the first run
 *    have been moved.
 */
#ifndef VELLUM_SORT_TABLE_H
#define VELLUM_SORT_TABLE_H

#include "server/exec/reply_spill.h"
#include "server/types/bulk_store.h"
#include "server/core/command.h"
#include "server/exec/collector.h"

struct sort_block;

struct sort_element {
    struct resp_slice name;
    struct resp_slice weight; /* data == NULL: there is none */
    double number;
};

struct sort_table {
    struct sort_element *elements, *spare;
    uint64_t count, capacity;
    uint64_t from;                /* position of the first element to read */
    struct collector_order order; /* of an unsorted result */
    bool is_reserved;
    uint64_t weighed;    /* elements */
    uint64_t given;      /* values of the result: one per element, or per element and GET */
    bool has_bad_weight; /* one that is no number */
    struct sort_lookups {
        uint64_t counted;      /* look-ups, in the order of SORT's work; each counts once */
        uint64_t hits, misses; /* of them */
        struct resp_writer
            keys; /* absent ones to be notified, the first of them, each after its length */
    } lookups;    /* of keys that BY and GET name */
    uint64_t width, merged, taken; /* of sorting: see invariant 2 */
    struct sort_block *blocks;     /* memory of elements and values */
    struct resp_writer out;        /* the reply's latest elements */
    struct reply_spill spill;      /* and the earlier ones */
    struct resp_slice *values;     /* or the result to be stored */
    struct bulk_store bulk_store;
    struct collected collected;
    uint64_t bytes;
    uint64_t left;   /* elements left in this step */
    uint64_t read;   /* bytes read in this step */
    size_t step_end; /* value of out.len at which the step ends */
};

/* The call's table, created in its first run. NULL: out of memory. Call it once in each run. */
struct sort_table *sort_table_get(struct call *call);

/* Reserves memory for `count` elements. Call it only once. */
STORE_MUST_CHECK enum store_result sort_table_reserve(struct sort_table *table, uint64_t count);

/* Reserves memory for `count` values. Does nothing in later runs. */
STORE_MUST_CHECK enum store_result sort_table_reserve_values(struct sort_table *table,
                                                             uint64_t count);

/* Copies a slice into the table's memory. A slice without data stays so. */
STORE_MUST_CHECK enum store_result sort_table_copy(struct sort_table *table, struct resp_slice from,
                                                   struct resp_slice *to);

/* After each element: whether sort_table_step() is due. */
static inline bool sort_table_step_is_full(struct sort_table *table)
{
    return --table->left == 0 || table->out.len >= table->step_end ||
           table->read >= COLLECT_NESTED_BYTES;
}

/* Ends a step. */
STORE_MUST_CHECK enum store_result sort_table_step(struct call *call, struct sort_table *table);

/* Counts look-up number `number`, unless an earlier run has. */
STORE_MUST_CHECK enum store_result sort_table_count_lookup(struct call *call,
                                                           struct sort_table *table,
                                                           uint64_t number,
                                                           const struct store_key *key, bool found);
/* Passes all that were counted on to the call. */
STORE_MUST_CHECK enum store_result sort_table_tell_lookups(struct call *call,
                                                           const struct sort_table *table);

typedef int sort_compare(const void *a, const void *b, void *arg);

/* Continues sorting. False: sort_table_step() is due. */
bool sort_table_sort(struct sort_table *table, sort_compare *compare, void *arg);

#endif
