/*
 * The states of a transaction. Private to storage/.
 *
 *   FREE --store_execute----------------------------> RUNNING
 *    | '---queue: others come first--> QUEUED           ^ |
 *    '---store_wait_register--> ENLISTED       ^ | request_wake| | its end: txn_reset --> FREE
 *         store_wait_cancel: |  | request_  | v             | |
 *                  FREE <'  | wake      | READY --------' |
 *                           v           |  ^ attempt      | park: STORE_WAIT
 *                        SUMMONED ------'  |              v
 *                         | take_handoffs   '----------- PARKED
 *                         | attempt        request_wake   or
 *                         '--> RUNNING     '----------- RESTING (end_step, until store_resume)
 *
 *   RUNNING --store_pause--> PAUSED --store_go_on--> RUNNING
 *
 *   FREE      in its worker's free list, or not there any more since txn_begin
 *   ENLISTED  it has no claims, and waits for its summons (lock_handoff.c)
 *   SUMMONED  ready for its first attempt, which takes the claims that it lacks
 *   QUEUED    it has not run but as a prefetch run: it waits behind the barrier, or for its keys
 *   READY     in its worker's inbox, or list of what is ready
 *   RUNNING   being attempted, under its partitions' locks: it runs or commits, as `phase` says
 *   PAUSED    its run goes on, but has let go of the locks
 *   PARKED    it waits to run or commit again: for pages, extents, the journal, the dirty limit.
 *             Meanwhile it holds its keys, so that what it has read stays true until it has
 * committed RESTING   it waits to run again, for store_resume and nothing else
 *
 * Invariants
 * 1. Its own thread moves it, but for the moves to SUMMONED and READY: these are made by the one
 * who takes `waits` to 0, and so is alone with it until it stands in the list.
 * 2. What is not FREE, ENLISTED, SUMMONED or QUEUED has run at least once. If it names keys and is
 *    PAUSED, PARKED or RESTING, or READY after it, it holds them; what is QUEUED for keys waits for
 *    them in their queues.
 */
#ifndef VELLUM_STORE_TXN_STATE_H
#define VELLUM_STORE_TXN_STATE_H

#include <assert.h>

#include "storage/txn/engine.h"

/* A bit for each state that may follow this one. */
extern const uint16_t txn_state_next[TXN_STATES];

/* Another thread may be about to wake it: then this is the state before or after. */
static inline enum txn_state txn_state(const struct store_txn *txn)
{
    return (enum txn_state)atomic_load_explicit(&txn->state, memory_order_relaxed);
}

/* Asserts the invariants; by its own thread, while nobody else can wake it. */
void txn_check(const struct store_txn *txn);

static inline void txn_move(struct store_txn *txn, enum txn_state to)
{
    assert(txn_state_next[txn_state(txn)] >> to & 1);
    atomic_store_explicit(&txn->state, (uint8_t)to, memory_order_relaxed);
}

/* Its run is over, or a pause: it asks to be run again in this way. */
static inline void txn_run_again(struct store_txn *txn, enum txn_again again)
{
    if (txn->again < again)
        txn->again = again;
}

#endif
