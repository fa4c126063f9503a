/*
 * Lock hand-off: requests that wait until one of their keys is handed to them.
 *
 *     run --store_wait_register--> finished; registered waiter --store_hand_off--> ready --> run
 *                                  '--store_wait_cancel--> freed
 *
 * Invariants
 * 1. The transaction of a registered waiter waits for one thing, the hand-off, and has no key
 *    locks. It is a different transaction from the one whose run registers it, which is still to be
 *    finished.
 * 2. It belongs to its own thread, with two exceptions: store_hand_off, called at most once, and
 *    store_hand_off_also, once per key, each by a thread that holds the lock of the key's
 *    partition. Its own thread reads their results under the locks of all its keys' partitions.
 * 3. After the hand-off it is next in the key's lock queue, after the transaction that handed it
 *    off: so no other comes in between. The same holds for keys that were kept for it. It requests
 *    the locks of the other keys when it is attempted, since this takes partition locks that the
 *    thread handing off does not hold (key_locks.c).
 */
#include "storage/txn/engine.h"

#include <assert.h>

#include "storage/txn/txn_state.h"
#include "storage/txn/wait.h"
#include "storage/exec/txn.h"
#include "storage/txn/key_locks.h"
#include "storage/exec/request.h"

enum store_result store_wait_register(struct store_txn *txn)
{
    struct store_request *request = txn->request;
    assert(request->scope == STORE_SCOPE_KEYS && request->key_count > 0);
    if (request->registered_waiter)
        return STORE_OK;
    struct store_txn *waiting = request_new_txn(txn->worker);
    if (!waiting)
        return STORE_NO_MEMORY;
    txn_begin(waiting, request);
    txn_move(waiting, TXN_REGISTERED);
    if (!key_locks_reserve(waiting)) {
        txn_reset(waiting);
        return STORE_NO_MEMORY;
    }
    atomic_store_explicit(&waiting->waits, 1, memory_order_relaxed);
    assert(waiting != txn);
    waiting->worker->parked++;
    request->registered_waiter = waiting;
    return STORE_OK;
}

void store_wait_cancel(struct store_request *request)
{
    struct store_txn *txn = request->registered_waiter;
    if (!txn)
        return;
    assert(!txn->handoffs.txn && txn->worker->parked > 0);
    request->registered_waiter = NULL;
    txn->worker->parked--;
    txn_reset(txn);
}

void store_hand_off(struct store_request *request, const struct store_key *key,
                    struct store_worker *from)
{
    struct store_txn *txn = request->registered_waiter;
    assert(txn_state(txn) == TXN_REGISTERED && !txn->handoffs.txn);
    key_locks_hand_off(txn, key, from);
    request_wake(txn, from);
}

void store_hand_off_also(struct store_request *request, uint32_t index, struct store_worker *from)
{
    if (request->registered_waiter) /* else it already has all its key locks */
        key_locks_keep(request->registered_waiter, index, from);
}

/* A waiter to which one of these hands a key runs in the same loop. */
void store_run_handoffs(struct store_worker *worker)
{
    if (STAILQ_EMPTY(&worker->handed_off) || worker->answers)
        return;
    worker->answers = true;
    for (struct store_txn *txn; (txn = STAILQ_FIRST(&worker->handed_off)) != NULL;) {
        STAILQ_REMOVE_HEAD(&worker->handed_off, of_list);
        request_run_again(txn);
    }
    worker->answers = false;
}
