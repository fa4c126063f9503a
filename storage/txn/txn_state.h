/*
 * The states of a transaction. Private to storage/.
 *
 *   FREE --store_execute----------------------------------> RUNNING
 *    | '---queue: others come first--> QUEUED               ^ |
 *    '---store_wait_register--> REGISTERED | request_wake   | | finished: txn_reset --> FREE
 *         store_wait_cancel: |  |          v                | |
 *                  FREE <----'  |        READY -------------' |
 *          store_hand_off, then |          ^       attempt    | park: STORE_WAIT
 *          request_wake         v          |                  v
 *                        HANDED_OFF        '------------- PARKED, or SUSPENDED
 *                         |                 request_wake  (end_step, until store_resume)
 *                         '--attempt: take_handoffs--> RUNNING, or QUEUED
 *
 *   RUNNING --store_pause--> PAUSED --store_go_on--> RUNNING
 *
 *   FREE        in its worker's free list, or just taken from it by request_new_txn
 *   REGISTERED  a registered waiter: it has no key locks, and waits for a hand-off (lock_handoff.c)
 *   HANDED_OFF  handed a key, ready for its first attempt, which requests the other key locks
 *   QUEUED      not run yet, except as a prefetch run: it waits for the store lock or for its keys
 *   READY       in its worker's inbox or ready list
 *   RUNNING     being attempted, under its partitions' locks: it runs or commits, as `phase` says
 *   PAUSED      in the middle of its run, with the locks released
 *   PARKED      it waits to run or commit again: for pages, extents, the journal, the dirty limit.
 *               Meanwhile it holds its keys, so that what it has read stays true until it commits
 *   SUSPENDED   it waits to run again, for store_resume and nothing else
 *
 * Invariants
 * 1. Only its own thread changes its state, except for the moves to HANDED_OFF and READY: the
 *    thread that takes `waits` to 0 makes these, and has the transaction to itself until it is in
 *    the list.
 * 2. A transaction that names keys holds their locks while it is PAUSED, PARKED or SUSPENDED, or
 *    READY after PARKED or SUSPENDED, unless memory for them ran out and it is about to fail. One
 *    that is QUEUED waits in the queues of its keys or in that of the store lock.
 */
#ifndef VELLUM_STORE_TXN_STATE_H
#define VELLUM_STORE_TXN_STATE_H

#include <assert.h>

#include "storage/txn/engine.h"

/* For each state, the states that may follow it, a bit each. */
extern const uint16_t txn_state_next[TXN_STATES];

/* While another thread is about to wake the transaction, this is the state before or after. */
static inline enum txn_state txn_state(const struct store_txn *txn)
{
    return (enum txn_state)atomic_load_explicit(&txn->state, memory_order_relaxed);
}

/* Asserts the invariants; called by its own thread, while no other thread can wake it. */
void txn_check(const struct store_txn *txn);

static inline void txn_move(struct store_txn *txn, enum txn_state to)
{
    assert(txn_state_next[txn_state(txn)] >> to & 1);
    atomic_store_explicit(&txn->state, (uint8_t)to, memory_order_relaxed);
}

/* At the end of a run, or of a pause: requests another run of this kind. */
static inline void txn_run_again(struct store_txn *txn, enum txn_again again)
{
    if (txn->again < again)
        txn->again = again;
}

#endif
