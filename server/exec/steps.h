/*
 * Replies over many elements: gathered in steps where that is too much for one run, else written at
 * once.
 *
 *     steps_begin; from element *steps.done on: put what it gives into steps.out, steps_count;
 *     at the end steps_finish.
 *
 * Any result but STORE_OK, of these functions too, is passed up, and the next run goes on behind
 * the last element that was counted: `out` must hold exactly what the elements counted have given.
 */
#ifndef VELLUM_STEPS_H
#define VELLUM_STEPS_H

#include "server/core/command.h"
#include "server/exec/collector.h"

struct steps {
    struct call *call;
    struct collector *collector; /* NULL: all in one run */
    uint64_t *done;              /* elements counted, by all runs so far */
    struct resp_writer *out;     /* the reply itself, if one run is enough */
    bool fresh;                  /* no run was before this one: `out` needs its head */
    uint64_t done_here;
};

/* `many`: not to be done in one run. A command must say the same in each of its runs. */
STORE_MUST_CHECK enum store_result steps_begin(struct steps *steps, struct call *call, bool many);

/* One element more was dealt with. Nothing may have been written to the store. */
STORE_MUST_CHECK enum store_result steps_count(struct steps *steps);

/* A value as a bulk reply into `out`. */
STORE_MUST_CHECK enum store_result steps_put_item(struct steps *steps,
                                                  const struct store_item *item);

/* Makes what was collected the reply. */
STORE_MUST_CHECK enum store_result steps_finish(struct steps *steps);

/* Whether so many elements are not to be read out at once, their pages all held. */
static inline bool steps_are_many(uint64_t elements)
{
    return elements > 64;
}

#endif
