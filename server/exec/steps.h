/*
 * Replies over many elements: collected in steps if that is too much for one run, otherwise written
 * at once.
 *
 *     steps_begin
 *     for each element from *steps.done on: write its output to steps.out, steps_count
 *     steps_finish
 *
 * Any result but STORE_OK is passed up, from these functions too. The next run continues after the
 * last element that was counted: `out` must hold exactly the output of the elements counted.
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
    bool fresh;                  /* nothing is kept from an earlier run: `out` needs its head */
    uint64_t done_here;
};

/* `many`: too much for one run. A command must pass the same value in each run. */
STORE_MUST_CHECK enum store_result steps_begin(struct steps *steps, struct call *call, bool many);

/* One more element was processed. The run must not have written to the store: it may be
 * repeated. */
STORE_MUST_CHECK enum store_result steps_count(struct steps *steps);

/* Writes a value as a bulk string to `out`. */
STORE_MUST_CHECK enum store_result steps_put_item(struct steps *steps,
                                                  const struct store_item *item);

/* Makes the collected output the reply. */
STORE_MUST_CHECK enum store_result steps_finish(struct steps *steps);

/* Whether there are too many elements to read at once, with all their pages held. */
static inline bool steps_are_many(uint64_t elements)
{
    return elements > 64;
}

#endif
