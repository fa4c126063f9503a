/*
 * Requests that wait to be called to one of their keys.
 *
 *     run --store_enlist--> finished, and enlisted --store_summon--> ready --> run, as any other
 *                               '--store_dismiss--> forgotten
 *
 * Invariants
 * 1. The transaction of an enlisted request waits for one thing, its summons, and has no claims. It
 *    is another than the one whose run enlists it, which is still to be finished.
 * 2. It is its own thread's but for store_summon, which is called at most once, and store_keep,
 *    once for a key, by one who holds the lock of the key's partition. Its own thread looks at
 *    what they leave under the locks of all its keys.
 * 3. Being summoned it has a claim on that key, next behind the one who summons it: so nobody else
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

enum store_result store_enlist(struct store_txn *txn)
{
    struct store_request *request = txn->request;
    assert(request->scope == STORE_SCOPE_KEYS && request->key_count > 0);
    if (request->enlisted)
        return STORE_OK;
    struct store_txn *waiting = request_new_txn(txn->worker);
    if (!waiting)
        return STORE_NO_MEMORY;
    txn_begin(waiting, request);
    txn_move(waiting, TXN_ENLISTED);
    if (!admission_reserve(waiting)) {
        txn_reset(waiting);
        return STORE_NO_MEMORY;
    }
    atomic_store_explicit(&waiting->waits, 1, memory_order_relaxed);
    assert(waiting != txn);
    waiting->worker->parked++;
    request->enlisted = waiting;
    return STORE_OK;
}

void store_dismiss(struct store_request *request)
{
    struct store_txn *txn = request->enlisted;
    if (!txn)
        return;
    assert(!txn->summons.txn && txn->worker->parked > 0);
    request->enlisted = NULL;
    txn->worker->parked--;
    txn_reset(txn);
}

void store_summon(struct store_request *request, const struct store_key *key,
                  struct store_worker *from)
{
    struct store_txn *txn = request->enlisted;
    assert(txn_state(txn) == TXN_ENLISTED && !txn->summons.txn);
    admission_summon(txn, key, from);
    request_wake(txn, from);
}

void store_keep(struct store_request *request, uint32_t index, struct store_worker *from)
{
    if (request->enlisted) /* else it has all its claims */
        admission_keep(request->enlisted, index, from);
}

/* Those who are summoned by one of them have their turn in the same loop. */
void store_answer_summons(struct store_worker *worker)
{
    if (!worker->summoned || worker->answers)
        return;
    worker->answers = true;
    for (struct store_txn *txn; (txn = worker->summoned) != NULL;) {
        worker->summoned = txn->next;
        request_run_again(txn);
    }
    worker->answers = false;
}
