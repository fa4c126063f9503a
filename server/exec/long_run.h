/*
 * Runs that take long. A command's function that goes through many elements, or bytes, asks
 * call_yield between them; when the run has taken its time, others have their turn, with the
 * command's keys still held, and then it goes on where it was:
 *
 *     the run is the command's first: it is forgotten, and begins anew on a fiber
 *     it is on a fiber: left there, with what it has written (store_yield)
 *     it is inside a script: that one looks up, as it does between its instructions
 *
 * Invariants:
 * 1. A request that has a fiber is running, and holds its arguments: so the function finds
 *    everything where it was.
 * 2. A run that has been left goes on only with its own writes (store_attempt); else the fiber is
 *    given back as it is, since functions need no clean-up.
 */
#ifndef VELLUM_LONG_RUN_H
#define VELLUM_LONG_RUN_H

#include "server/core/command.h"
#include "server/exec/request.h"

/* So much work between two looks at the clock: of things done, each taking about a microsecond. */
#define YIELD_EVERY 64

/* Any result but STORE_OK is passed up at once. What items and entries the function has read are
 * not to be looked at any more; cursors stay. Not where it has changed what it cannot change
 * again, as with any STORE_WAIT. */
STORE_MUST_CHECK enum store_result call_yield(struct call *call);

/* The same in a loop, for each `i` from 0 on. */
static inline enum store_result call_yield_at(struct call *call, uint64_t i)
{
    return i % YIELD_EVERY == YIELD_EVERY - 1 ? call_yield(call) : STORE_OK;
}

/* A request's run in the store: its command's function, from the top, or on from where it was
 * left. */
STORE_MUST_CHECK enum store_result long_run_in_store(struct store_txn *txn,
                                                     struct store_request *store_request);

/* The request has ended: a run that was left is given up. */
void long_run_drop(struct request *request);

#endif
