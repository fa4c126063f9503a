/*
 * The transitions between a transaction's states, and the invariants of each state; see
 * txn_state.h.
 */
#include "storage/txn/txn_state.h"

#define TO(state) (1u << TXN_##state)

const uint16_t txn_state_next[TXN_STATES] = {
    [TXN_FREE] = TO(RUNNING) | TO(QUEUED) | TO(REGISTERED),
    [TXN_REGISTERED] = TO(HANDED_OFF) | TO(FREE),
    [TXN_HANDED_OFF] = TO(RUNNING) | TO(QUEUED),
    [TXN_QUEUED] = TO(READY),
    [TXN_READY] = TO(RUNNING),
    [TXN_RUNNING] = TO(PAUSED) | TO(PARKED) | TO(SUSPENDED) | TO(FREE),
    [TXN_PAUSED] = TO(RUNNING),
    [TXN_PARKED] = TO(READY),
    [TXN_SUSPENDED] = TO(READY),
};

/* A free transaction keeps nothing of its last request. */
static void check_free(const struct store_txn *txn)
{
    assert(txn->hold == HOLDS_NOTHING && txn->key_lock_count == 0 && !txn->handoffs.txn);
    assert(txn->write_count == 0 && txn->pin_count == 0 && !txn->readers && !txn->trees.edits);
    assert(txn->prefetch_run == PREFETCH_RUN_NONE && txn->again == AGAIN_WHEN_LOADED &&
           !txn->throttled);
    assert(!txn->refuses && !txn->blocking_io && !txn->arrangement.changed && !txn->bulk_load);
}

/* A transaction that names keys and has run holds their locks, unless it is about to fail for lack
 * of memory. */
static void check_hold(const struct store_txn *txn)
{
    const struct store_request *request = txn->request;
    if (request->scope == STORE_SCOPE_KEYS && request->key_count > 0)
        assert(txn->hold == HOLDS_KEYS || txn->failure != STORE_OK);
    if (request->scope == STORE_SCOPE_ALL)
        assert(txn->hold == HOLDS_STORE);
}

void txn_check(const struct store_txn *txn)
{
    enum txn_state state = txn_state(txn);
    uint32_t ungranted = atomic_load(&txn->ungranted);
    if (state == TXN_FREE) {
        check_free(txn);
        return;
    }
    assert(atomic_load(&txn->waits) > 0);
    assert(txn->hold == HOLDS_KEYS || (txn->key_lock_count == 0 && !txn->handoffs.txn));
    assert(txn->key_lock_count == 0 || txn->key_lock_count == txn->request->key_count);
    if (state == TXN_REGISTERED || state == TXN_QUEUED)
        assert(txn->phase == TXN_RUN && txn->write_count == 0);
    else
        assert(ungranted == 0 && txn->prefetch_run == PREFETCH_RUN_NONE);
    if (state == TXN_PARKED || state == TXN_SUSPENDED)
        check_hold(txn);
    if (state == TXN_SUSPENDED)
        assert(txn->pin_count == 0 && !txn->throttled && txn->phase == TXN_RUN);
}
