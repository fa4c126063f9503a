/*
 * Waiting for reads, key locks and the maintenance thread; and the locks of a transaction's
 * partitions.
 *
 * Invariants
 * 1. The thread that takes a transaction's `waits` to 0 puts it into the ready list: once, and
 *    never during an attempt, which counts as one more.
 * 2. After adding a transaction to `throttled`, its thread requests a round of the maintenance
 *    thread, which wakes all throttled transactions at the end of each round.
 */
#include "storage/txn/wait.h"

#include <assert.h>
#include <unistd.h>

#include "storage/txn/txn_state.h"

/* ---- waiting and waking ---- */

void request_wait(struct store_txn *txn)
{
    atomic_fetch_add_explicit(&txn->waits, 1, memory_order_relaxed);
}

void request_notify(struct store_worker *worker)
{
    uint64_t one = 1;
    if (write(worker->fd, &one, sizeof one) < 0) {
        /* the counter is at its maximum: the descriptor is readable all the same */
    }
}

void request_wake(struct store_txn *txn, struct store_worker *from)
{
    uint32_t before = atomic_fetch_sub_explicit(&txn->waits, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    struct store_worker *worker = txn->worker;
    bool is_handed_off = txn_state(txn) == TXN_REGISTERED;
    txn_move(txn, is_handed_off ? TXN_HANDED_OFF : TXN_READY);
    if (worker == from) {
        if (is_handed_off)
            STAILQ_INSERT_TAIL(&worker->handed_off, txn, of_list);
        else
            STAILQ_INSERT_TAIL(&worker->ready, txn, of_list);
        if (!worker->polling)
            request_notify(worker);
        return;
    }
    pthread_mutex_lock(&worker->inbox_lock);
    STAILQ_INSERT_TAIL(&worker->inbox, txn, of_list);
    request_notify(worker); /* under the lock: store_detach takes it last */
    pthread_mutex_unlock(&worker->inbox_lock);
}

void wait_wake_workers(struct store *store, const struct disk_queue *here)
{
    pthread_mutex_lock(&store->maintenance_lock);
    for (uint32_t i = 0; i < store->worker_count; i++) {
        struct store_worker *worker = store->workers[i];
        if (worker && (worker->queue != here || !worker->polling))
            request_notify(worker);
    }
    pthread_mutex_unlock(&store->maintenance_lock);
}

void engine_wake_workers(struct store *store)
{
    wait_wake_workers(store, NULL);
}

/* ---- locks ---- */

bool request_holds(const struct store_txn *txn, uint32_t partition)
{
    return txn->locked[partition / 64] >> (partition % 64) & 1;
}

#define MANY_KEYS 64

/* Then further keys of a request add no partition. */
static bool locks_all(const struct store_txn *txn)
{
    uint32_t locked =
        (uint32_t)(__builtin_popcountll(txn->locked[0]) + __builtin_popcountll(txn->locked[1]));
    return locked == txn->store->partition_count;
}

static void add_partition_of(struct store_txn *txn, const struct store_key *key)
{
    uint32_t partition = key->slot >> txn->store->slot_shift;
    txn->locked[partition / 64] |= 1ull << (partition % 64);
}

/* The partitions of many keys are collected once: later attempts find them in txn->more. */
static void add_those_of_many_keys(struct store_txn *txn)
{
    const struct store_request *request = txn->request;
    for (uint32_t i = 0; i < request->key_count; i++) {
        add_partition_of(txn, &request->keys[i]);
        if (i % 64 == 63 && locks_all(txn))
            break;
    }
    txn->more[0] = txn->locked[0];
    txn->more[1] = txn->locked[1];
    txn->more_has_keys = true;
}

void request_lock(struct store_txn *txn)
{
    struct store *store = txn->store;
    const struct store_request *request = txn->request;
    assert(!txn->locked[0] && !txn->locked[1]);
    txn->locked[0] = txn->more[0];
    txn->locked[1] = txn->more[1];
    if (request->key_count < MANY_KEYS)
        for (uint32_t i = 0; i < request->key_count; i++)
            add_partition_of(txn, &request->keys[i]);
    else if (!txn->more_has_keys)
        add_those_of_many_keys(txn);
    if (request->scope == STORE_SCOPE_ALL)
        for (uint32_t i = 0; i < store->partition_count; i++)
            txn->locked[i / 64] |= 1ull << (i % 64);
    for (uint32_t word = 0; word < 2; word++)
        for (uint64_t bits = txn->locked[word]; bits; bits &= bits - 1)
            pthread_mutex_lock(
                &store->partitions[64 * word + (uint32_t)__builtin_ctzll(bits)].file.lock);
}

enum store_result request_lock_too(struct store_txn *txn, uint32_t partition)
{
    assert(partition < txn->store->partition_count);
    if (request_holds(txn, partition))
        return STORE_OK;
    txn->more[partition / 64] |= 1ull << (partition % 64);
    txn_run_again(txn, AGAIN_AT_ONCE);
    return STORE_WAIT;
}

void request_unlock(struct store_txn *txn)
{
    for (uint32_t word = 0; word < 2; word++)
        for (uint64_t bits = txn->locked[word]; bits; bits &= bits - 1)
            pthread_mutex_unlock(
                &txn->store->partitions[64 * word + (uint32_t)__builtin_ctzll(bits)].file.lock);
    txn->locked[0] = txn->locked[1] = 0;
}

enum store_result store_step(struct store_txn *txn)
{
    txn_run_again(txn, AGAIN_IN_TURN);
    return STORE_WAIT;
}

enum store_result store_yield(struct store_txn *txn)
{
    txn_run_again(txn, AGAIN_AFTER_YIELD);
    return STORE_WAIT;
}

uint64_t store_attempt(const struct store_txn *txn)
{
    return txn->attempt;
}

/* ---- the maintenance thread ---- */

void maintenance_ask(struct store *store)
{
    pthread_mutex_lock(&store->maintenance_lock);
    store->maintenance_asked = true;
    pthread_cond_signal(&store->maintenance_wake);
    pthread_mutex_unlock(&store->maintenance_lock);
}

void maintenance_throttle(struct store_txn *txn)
{
    struct store *store = txn->store;
    assert(txn_state(txn) == TXN_RUNNING && txn->prefetch_run == PREFETCH_RUN_NONE);
    pthread_mutex_lock(&store->throttle_lock);
    if (!txn->throttled) {
        request_wait(txn);
        txn->throttled = true;
        STAILQ_INSERT_TAIL(&store->throttled, txn, of_throttled);
    }
    pthread_mutex_unlock(&store->throttle_lock);
    atomic_fetch_add_explicit(&store->throttle_count, 1, memory_order_relaxed);
    maintenance_ask(store);
}

void maintenance_release(struct store *store)
{
    pthread_mutex_lock(&store->throttle_lock);
    for (struct store_txn *txn; (txn = STAILQ_FIRST(&store->throttled)) != NULL;) {
        STAILQ_REMOVE_HEAD(&store->throttled, of_throttled);
        assert(txn->throttled);
        txn->throttled = false;
        request_wake(txn, NULL);
    }
    pthread_mutex_unlock(&store->throttle_lock);
}

void sweep_ask(struct store *store)
{
    atomic_store(&store->sweep_asked, true);
    maintenance_ask(store);
}
