/*
 * Requests that wait to be called to one of their keys.
 *
 *     run --store_wait_register--> finished, and enlisted --store_hand_off--> ready --> run, as any
 * other
 *                               '--store_wait_cancel--> forgotten
 *
 * Invariants
 * 1. The transaction of an enlisted request waits for one thing, its summons, and has no claims. It
 *    is another than the one whose run enlists it, which is still to be finished.
 * 2. It is its own thread's but for store_hand_off, which is called at most once, and
 * store_hand_off_also, once for a key, by one who holds the lock of the key's partition. Its own
 * thread looks at what they leave under the locks of all its keys.
 * 3. Being summoned it has a lock on that key, next behind the one who summons it: so nobody else
 *    comes in between. So it has on keys that are kept for it. The claims on the rest follow when
 * it is attempted, since that takes locks which the one who summons it does not hold (key_locks.c).
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
    txn_move(waiting, TXN_ENLISTED);
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
    assert(txn_state(txn) == TXN_ENLISTED && !txn->handoffs.txn);
    key_locks_hand_off(txn, key, from);
    request_wake(txn, from);
}

void store_hand_off_also(struct store_request *request, uint32_t index, struct store_worker *from)
{
    if (request->registered_waiter) /* else it has all its claims */
        key_locks_keep(request->registered_waiter, index, from);
}

/* Those who are summoned by one of them have their turn in the same loop. */
void store_run_handoffs(struct store_worker *worker)
{
    if (!worker->handed_off || worker->answers)
        return;
    worker->answers = true;
    for (struct store_txn *txn; (txn = worker->handed_off) != NULL;) {
        worker->handed_off = txn->next;
        request_run_again(txn);
    }
    worker->answers = false;
}
