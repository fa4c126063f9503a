/*
 * What SORT has read so far: the elements, what they weigh, and what is given for them. Kept in
 * call->progress over the runs of a call, since millions are read, weighed, sorted and given in
 * steps, between which others have their turn.
 *
 * Invariants:
 * 1. Between runs `count` elements have been read, `weighed` of them weighed, `given` of the sorted
 *    ones given; what they refer to is the table's own.
 * 2. Each `width` elements are in order (0: not yet), so all are when that is at least `count`.
 *    Those before `merged` are already in runs of twice that, in `spare`, or of the first length;
 *    of the pair that is being merged the elements before `taken` of the first run have gone.
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
    uint64_t from;                /* the position of the first that is read */
    struct collector_order order; /* of what is not sorted */
    bool is_reserved;
    uint64_t weighed, given;
    uint64_t width, merged, taken; /* sorting: see sort_table.c */
    struct sort_block *blocks;     /* of what elements and values refer to */
    struct resp_writer out;        /* the reply's elements, */
    struct reply_spill spill;      /* and those before them */
    struct resp_slice *values;     /* or what is stored */
    struct bulk_store bulk_store;
    struct collected collected;
    uint64_t bytes;
    uint64_t left;   /* elements of this step */
    uint64_t read;   /* bytes that were read for it */
    size_t step_end; /* out.len at which it is full */
};

/* The call's own, made in its first run; NULL: out of memory. To be called once in each run. */
struct sort_table *sort_table_get(struct call *call);

/* Room for `count` elements; once. */
STORE_MUST_CHECK enum store_result sort_table_reserve(struct sort_table *table, uint64_t count);

/* Room for `count` values; again in later runs does nothing. */
STORE_MUST_CHECK enum store_result sort_table_reserve_values(struct sort_table *table,
                                                             uint64_t count);

/* A copy of the table's own; a slice without data stays so. */
STORE_MUST_CHECK enum store_result sort_table_copy(struct sort_table *table, struct resp_slice from,
                                                   struct resp_slice *to);

/* After each element: whether it is time for sort_table_step. */
static inline bool sort_table_step_is_full(struct sort_table *table)
{
    return --table->left == 0 || table->out.len >= table->step_end ||
           table->read >= COLLECT_NESTED_BYTES;
}

/* The end of a step. */
STORE_MUST_CHECK enum store_result sort_table_step(struct call *call, struct sort_table *table);

typedef int sort_compare(const void *a, const void *b, void *arg);

/* Goes on sorting; false: it is time for sort_table_step. */
bool sort_table_sort(struct sort_table *table, sort_compare *compare, void *arg);

#endif
