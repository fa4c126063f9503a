/*
 * Prefetch runs: a transaction that waits for its turn is run ahead of it only to start its reads;
 * the results and effects of this run are discarded. When a page has arrived, the run may be
 * repeated to find the next one.
 *
 * Invariants
 * 1. A prefetch run happens between the queueing of a transaction and its first real run: NONE
 *    --prefetch_run_begin--> [LISTED --prefetch_run_more-->] ACTIVE --> DONE
 *    --prefetch_run_resume--> ACTIVE ..., and from LISTED or DONE prefetch_run_end leads back to
 *    NONE. All of this happens on the transaction's own thread.
 * 2. A transaction makes its first prefetch run only while fewer than window() of its worker's are
 *    in PREFETCH_RUN_DONE, so that the pages they have read are still in memory at their turn. The
 *    others are in worker->unprefetched, in order of arrival.
 */
#include "storage/exec/prefetch_run.h"

#include <assert.h>

#include "storage/txn/txn_state.h"
#include "storage/txn/wait.h"
#include "storage/txn/load.h"
#include "storage/exec/txn.h"

#define WINDOW_SHARE 16u /* a share of the cache for prefetched pages, one page per run */
#define WINDOW_LEAST 8u
#define WINDOW_MOST 256u /* fewer keep the device busy already */
#define RUNS 6u          /* per transaction */
#define PROBES 16u

static uint32_t window(const struct store *store)
{
    uint32_t pages = atomic_load_explicit(&store->cache.arena.limit, memory_order_relaxed);
    uint32_t share = pages / WINDOW_SHARE / store->worker_count;
    return share < WINDOW_LEAST ? WINDOW_LEAST : share > WINDOW_MOST ? WINDOW_MOST : share;
}

/* The locks of its partitions are held. */
static void run(struct store_txn *txn)
{
    assert(txn->phase == TXN_RUN && txn->write_count == 0 && txn->pin_count == 0);
    txn->prefetch_run = PREFETCH_RUN_ACTIVE;
    txn->found_absent = false;
    enum store_result forgotten = txn->request->run(txn, txn->request);
    (void)forgotten;
    txn->prefetch_run = PREFETCH_RUN_DONE;
    txn->again = AGAIN_WHEN_LOADED;
    txn->bulk_load = NULL;
    txn->prefetch_runs++;
    txn_discard(txn);
    load_release_pins(txn);
}

bool store_is_prefetch_run(const struct store_txn *txn)
{
    return txn->prefetch_run == PREFETCH_RUN_ACTIVE;
}

static void join_unprefetched(struct store_worker *worker, struct store_txn *txn)
{
    txn->prefetch_run = PREFETCH_RUN_LISTED;
    TAILQ_INSERT_TAIL(&worker->unprefetched, txn, of_unprefetched);
}

void prefetch_run_begin(struct store_txn *txn)
{
    struct store_worker *worker = txn->worker;
    assert(txn->prefetch_run == PREFETCH_RUN_NONE && txn_state(txn) == TXN_QUEUED);
    txn->prefetch_runs = 0;
    if (!TAILQ_EMPTY(&worker->unprefetched) || worker->prefetched >= window(worker->store)) {
        join_unprefetched(worker, txn);
        return;
    }
    worker->prefetched++;
    run(txn);
}

void prefetch_run_end(struct store_txn *txn)
{
    if (txn->prefetch_run == PREFETCH_RUN_NONE)
        return;
    assert(txn->prefetch_run != PREFETCH_RUN_ACTIVE);
    if (txn->prefetch_run == PREFETCH_RUN_LISTED) {
        TAILQ_REMOVE(&txn->worker->unprefetched, txn, of_unprefetched);
    } else {
        assert(txn->worker->prefetched > 0);
        txn->worker->prefetched--;
    }
    txn->prefetch_run = PREFETCH_RUN_NONE;
}

void prefetch_run_more(struct store_worker *worker)
{
    uint32_t most = TAILQ_EMPTY(&worker->unprefetched) ? 0 : window(worker->store);
    struct store_txn *txn;
    while (worker->prefetched < most && (txn = TAILQ_FIRST(&worker->unprefetched))) {
        TAILQ_REMOVE(&worker->unprefetched, txn, of_unprefetched);
        worker->prefetched++;
        request_lock(txn);
        run(txn);
        request_unlock(txn);
    }
}

/* Most commands miss one page only, so that repeating their prefetch run finds nothing more; others
 * find in each page which one is next. Adaptive: while recent prefetch runs found no further
 * missing page, only one in PROBES is repeated. */
static bool is_hopeful(struct store_worker *worker)
{
    return worker->prefetch_run_luck >= PROBES || ++worker->prefetch_run_luck == PROBES;
}

void prefetch_run_resume(struct store_txn *txn)
{
    struct store_worker *worker = txn->worker;
    bool is_waiting = txn->prefetch_run == PREFETCH_RUN_DONE && txn_state(txn) == TXN_QUEUED;
    if (!is_waiting || txn->prefetch_runs == RUNS || !is_hopeful(worker))
        return;
    request_lock(txn);
    run(txn);
    request_unlock(txn);
    if (txn->found_absent)
        worker->prefetch_run_luck = 2 * PROBES;
    else if (--worker->prefetch_run_luck < PROBES)
        worker->prefetch_run_luck = 0;
}
