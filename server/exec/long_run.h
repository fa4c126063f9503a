/*
 * Long-running commands. A function that processes many elements or bytes calls call_yield between
 * them. When the run has used up its time slice, other connections get their turn, while the
 * command keeps its key locks; afterwards the run continues where it stopped:
 *
 *     first run of the command: its work is discarded, and it starts again on a fiber
 *     run on a fiber: suspended with its writes (store_yield)
 *     run inside a script: the script checks for interrupts, as it does between its instructions
 *
 * Invariants:
 * 1. A request that has a fiber is running and holds its arguments, so the function finds all its
 *    data at the same addresses.
 * 2. A suspended run resumes only if the transaction still has its writes (store_attempt).
 *    Otherwise the fiber is released as it is, since command functions need no clean-up.
 */
#ifndef VELLUM_LONG_RUN_H
#define VELLUM_LONG_RUN_H

#include "server/core/command.h"
#include "server/exec/request.h"

/* Units of work, about a microsecond each, between two checks of the clock. Short in the build
 * with random waits, as are the time slices (long_run.c). */
#ifdef VELLUM_WAIT
#define YIELD_EVERY 4
#else
#define YIELD_EVERY 64
#endif

/* Any result but STORE_OK is passed up at once, as STORE_NO_MEMORY if the reply has become too
 * long. Items and entries read before the call are invalid afterwards; cursors stay valid. As with
 * any STORE_WAIT, do not call it after a change that cannot be repeated. */
STORE_MUST_CHECK enum store_result call_yield(struct call *call);

/* The same in a loop, for each `i` from 0 on. */
static inline enum store_result call_yield_at(struct call *call, uint64_t i)
{
    return i % YIELD_EVERY == YIELD_EVERY - 1 ? call_yield(call) : STORE_OK;
}

/* One run of a request in the store: calls the command's function from the top, or resumes it
 * where it was suspended. */
STORE_MUST_CHECK enum store_result long_run_in_store(struct store_txn *txn,
                                                     struct store_request *store_request);

/* A commit of a command that may block had to wait: whether a client still waits for its reply. */
bool long_run_is_wanted(const struct store_request *store_request);

void long_run_free(struct request *request);

/* The request has ended, or begins anew: releases a suspended run. */
static inline void long_run_drop(struct request *request)
{
    if (request->fiber != NULL)
        long_run_free(request);
}

#endif
