/*
 * Requests: admission in order, run, wait, run again; see the diagram in txn_state.h.
 *
 * Invariants
 * 1. `waits` of a transaction counts the things it waits for, and one more during an attempt: so it
 *    cannot become ready while its thread attempts it.
 * 2. A parked transaction is in the ready list exactly when `waits` has fallen to 0; only its own
 *    worker attempts it.
 * 3. While store_lock_count > 0 no new request with keys is admitted: it queues after the exclusive
 *    one. store_lock_count changes from 0, and `active` to 0, only under a lock that the reader of
 *    the other one holds too, so that an exclusive request and the last active one cannot miss each
 *    other.
 */
#include "storage/exec/request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/base/checks.h"
#include "storage/tree/bulk_load.h"
#include "storage/txn/txn_state.h"
#include "storage/txn/wait.h"
#include "storage/exec/commit.h"
#include "storage/txn/memory.h"
#include "storage/txn/load.h"
#include "storage/exec/txn.h"
#include "storage/txn/databases.h"
#include "storage/txn/key_locks.h"
#include "storage/exec/prefetch_run.h"

#define SUBMIT_EARLY 16u     /* reads */
#define READY_STEPS 4u       /* steps (store_step) per round: they exist to give others a turn */
#define READY_MORE 256u      /* attempts per round of transactions that became ready during it */
#define READY_NSEC 2000000u  /* time for these per round: the clients need time too */
#define TREE_RERUN_LIMIT 12u /* a descent needs one page per level, one after the other */

/* Without memory for its locks, the transaction fails at its next attempt. */
static void request_key_locks(struct store_txn *txn)
{
    if (!key_locks_request(txn))
        txn->failure = STORE_NO_MEMORY;
}

/* ---- the store lock ---- */

static void store_lock_queue(struct store_txn *txn)
{
    struct store *store = txn->store;
    assert(txn_state(txn) == TXN_QUEUED && txn->hold == HOLDS_NOTHING);
    request_wait(txn);
    pthread_mutex_lock(&store->store_lock_mutex);
    STAILQ_INSERT_TAIL(&store->store_lock, txn, of_list);
    atomic_fetch_add_explicit(&store->store_lock_count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&store->store_lock_mutex);
}

/* The exclusive request at the head runs once no transaction is active. */
static void store_lock_try(struct store *store, struct store_worker *from)
{
    pthread_mutex_lock(&store->store_lock_mutex);
    struct store_txn *head = STAILQ_FIRST(&store->store_lock);
    bool goes = head && !store->store_lock_holder && head->request->scope == STORE_SCOPE_ALL &&
                atomic_load_explicit(&store->active, memory_order_relaxed) == 0;
    if (goes) {
        STAILQ_REMOVE_HEAD(&store->store_lock, of_list);
        store->store_lock_holder = head;
        assert(head->hold == HOLDS_NOTHING);
        head->hold = HOLDS_STORE;
    }
    pthread_mutex_unlock(&store->store_lock_mutex);
    if (goes)
        request_wake(head, from);
}

/* Takes the requests with keys out of the queue, in order; the exclusive ones stay. */
static void store_lock_admit(struct store *store, struct txn_list *admitted)
{
    struct txn_list queued = STAILQ_HEAD_INITIALIZER(queued);
    STAILQ_CONCAT(&queued, &store->store_lock);
    for (struct store_txn *txn; (txn = STAILQ_FIRST(&queued)) != NULL;) {
        STAILQ_REMOVE_HEAD(&queued, of_list);
        if (txn->request->scope == STORE_SCOPE_ALL) {
            STAILQ_INSERT_TAIL(&store->store_lock, txn, of_list);
            continue;
        }
        STAILQ_INSERT_TAIL(admitted, txn, of_list);
        atomic_fetch_sub_explicit(&store->store_lock_count, 1, memory_order_relaxed);
    }
}

/* The exclusive request is finished, and all partitions' locks are held. Admits all requests with
 * keys, also those behind other exclusive ones: each waits for one exclusive run at most, however
 * many are queued. The next exclusive request waits for these, and for none that arrives later. */
static void store_lock_open(struct store *store, struct store_worker *from)
{
    struct txn_list admitted = STAILQ_HEAD_INITIALIZER(admitted);
    pthread_mutex_lock(&store->store_lock_mutex);
    assert(store->store_lock_holder &&
           atomic_load_explicit(&store->store_lock_count, memory_order_relaxed) > 0);
    store->store_lock_holder = NULL;
    atomic_fetch_sub_explicit(&store->store_lock_count, 1, memory_order_relaxed);
    store_lock_admit(store, &admitted);
    pthread_mutex_unlock(&store->store_lock_mutex);
    for (struct store_txn *txn; (txn = STAILQ_FIRST(&admitted)) != NULL;) {
        STAILQ_REMOVE_HEAD(&admitted, of_list);
        request_key_locks(txn);
        request_wake(txn, from);
    }
    store_lock_try(store, from);
}

/* ---- attempts ---- */

enum store_result store_suspend(struct store_txn *txn)
{
    txn_run_again(txn, AGAIN_WHEN_RESUMED);
    return STORE_WAIT;
}

void store_resume(struct store_request *request)
{
    struct store_txn *txn = request->parked;
    if (txn_state(txn) == TXN_SUSPENDED)
        request_wake(txn, txn->worker);
}

bool store_has_waiters(const struct store_request *request)
{
    const struct store_txn *txn = request->parked;
    return atomic_load_explicit(&txn->store->store_lock_count, memory_order_relaxed) > 0 ||
           key_locks_have_waiters(txn);
}

uint64_t store_shown(const struct store_txn *txn)
{
    return txn->shown;
}

/* Between two steps a transaction keeps only its key locks, or the store lock. */
static void end_step(struct store_txn *txn, bool is_suspended)
{
    assert(txn->phase == TXN_RUN && txn->write_count == 0);
    txn->worker->steps++;
    if (atomic_load_explicit(&txn->waits, memory_order_acquire) > 1)
        return; /* pending waits refer to its pins */
    if (is_suspended) {
        request_wait(txn);
        txn_move(txn, TXN_SUSPENDED);
    }
    load_release_pins(txn);
    txn->reruns = 0;
    txn->frame_waits = 0;
    txn->blocking_io = false;
}

static uint32_t rerun_limit(struct store_txn *txn)
{
#ifdef VELLUM_WAIT /* in the test build, some that read collections block on the disk early */
    txn->random = txn->random * 6364136223846793005ull + 1442695040888963407ull;
    if (txn->trees.collections && txn->random >> 60 == 0)
        return 1;
#endif
    return txn->trees.collections ? TREE_RERUN_LIMIT : RERUN_LIMIT;
}

/* A run returned STORE_WAIT. One that yields keeps its state, as in store_pause, and its count of
 * reruns: it may have to start over. */
static void discard_run(struct store_txn *txn)
{
    uint32_t limit = rerun_limit(txn);
    enum txn_again again = txn->again;
    if (again == AGAIN_AFTER_YIELD) {
        txn->again = AGAIN_WHEN_LOADED;
        txn->worker->steps++;
        return;
    }
    txn_discard(txn);
    txn->again = AGAIN_WHEN_LOADED;
    if (again >= AGAIN_IN_TURN)
        end_step(txn, again == AGAIN_WHEN_RESUMED);
    if (again != AGAIN_WHEN_LOADED)
        return;
    atomic_fetch_add_explicit(&txn->store->reruns, 1, memory_order_relaxed);
    if (++txn->reruns >= limit && !txn->blocking_io) {
        atomic_fetch_add_explicit(&txn->store->blocking_io_runs, 1, memory_order_relaxed);
        txn->blocking_io = true;
    }
}

/* Commits what the step has added to a bulk load, and discards the rest of its run. */
static enum store_result commit_step(struct store_txn *txn)
{
    assert(txn->phase == TXN_BUILD && txn->bulk_load);
    enum store_result result = commit(txn);
    if (result != STORE_OK)
        return result;
    txn->room_since_ms = 0;
    txn->frame_waits = 0;
    bulk_load_committed(txn);
    txn->phase = TXN_RUN;
    discard_run(txn);
    return STORE_WAIT;
}

/* STORE_OK: the commit comes next, as txn->phase says. */
static enum store_result run(struct store_txn *txn)
{
    txn->bulk_load = NULL;
    enum store_result result = txn->request->run(txn, txn->request);
    load_leave_pages(txn);
    if (result == STORE_OK)
        result = databases_settle(txn);
    if (result == STORE_OK) {
        txn->phase = TXN_COMMIT;
    } else if (result == STORE_WAIT && txn->bulk_load) {
        bulk_load_settle(txn);
        txn->phase = TXN_BUILD;
        return STORE_OK;
    } else if (result == STORE_WAIT) {
        discard_run(txn);
    }
    return result;
}

static bool is_wanted(const struct store_txn *txn)
{
    const struct store_request *request = txn->request;
    return !request->is_wanted || request->is_wanted(request);
}

static enum store_result run_and_commit(struct store_txn *txn)
{
    enum store_result result = STORE_OK;
    if (txn->phase == TXN_COMMIT && !is_wanted(txn))
        return STORE_CANCELLED;
    if (txn->phase == TXN_RUN)
        result = run(txn);
    if (result != STORE_OK)
        return result;
    return txn->phase == TXN_BUILD ? commit_step(txn) : commit(txn);
}

/* At the first attempt after a hand-off. False: it waits for the locks of its other keys. */
static bool take_handoffs(struct store_txn *txn)
{
    assert(txn->request->registered_waiter == txn && txn->phase == TXN_RUN);
    txn->request->registered_waiter = NULL;
    key_locks_request_ahead(txn, txn->worker);
    if (atomic_load_explicit(&txn->waits, memory_order_acquire) == 1)
        return true;
    txn_move(txn, TXN_QUEUED);
    return false;
}

/* A transaction that fails while something is pending, such as other pages, is finished only when
 * all of that has arrived: the pending waits refer to it. */
static enum store_result attempt(struct store_txn *txn)
{
    if (txn_state(txn) == TXN_HANDED_OFF && !take_handoffs(txn))
        return STORE_WAIT;
    txn_move(txn, TXN_RUNNING);
    if (storage_checks_enabled())
        txn_check(txn);
    if (txn->failure)
        return txn->failure;
    enum store_result result = run_and_commit(txn);
    if (result == STORE_OK || result == STORE_WAIT ||
        atomic_load_explicit(&txn->waits, memory_order_acquire) == 1)
        return result;
    txn->failure = result;
    return STORE_WAIT;
}

/* The last step of a transaction, under its partitions' locks. */
static void finish(struct store_txn *txn, enum store_result result, struct store_worker *from)
{
    struct store *store = txn->store;
    assert(atomic_load_explicit(&txn->waits, memory_order_relaxed) == 1);
    if (result != STORE_OK)
        txn_discard(txn);
    txn->request->shown = txn->shown;
    if (txn->request->leave)
        txn->request->leave(txn->request, result);
    if (txn->refuses)
        atomic_fetch_sub_explicit(&store->refusing, 1, memory_order_relaxed);
    key_locks_release(txn, from);
    if (txn->hold == HOLDS_STORE)
        store_lock_open(store, from);
    else if (atomic_load_explicit(&store->store_lock_count, memory_order_relaxed) > 0)
        store_lock_try(store, from);
}

struct store_txn *request_new_txn(struct store_worker *worker)
{
    struct store_txn *txn = SLIST_FIRST(&worker->free_txns);
    if (txn) {
        SLIST_REMOVE_HEAD(&worker->free_txns, of_free);
        worker->free_txn_count--;
        return txn;
    }
    txn = calloc(1, sizeof *txn);
    if (!txn)
        return NULL;
    txn->store = worker->store;
    txn->worker = worker;
    txn->random = (uint64_t)(uintptr_t)txn;
    return txn;
}

static bool conflicts(const struct store_txn *txn)
{
    const struct store_request *request = txn->request;
    for (uint32_t i = 0; i < request->key_count; i++) {
        const struct store_key *key = &request->keys[i];
        if (key_locks_conflicts(engine_partition(txn->store, key->slot), key->hash + key->db,
                                key->mode == STORE_EXCLUSIVE))
            return true;
    }
    return false;
}

/* Whether a transaction that it would wait for refuses it. At the store lock any refusing
 * transaction counts: it holds the store lock, or the exclusive request waits for it. */
static bool is_refused(struct store_txn *txn, bool at_store_lock)
{
    struct store *store = txn->store;
    const struct store_request *request = txn->request;
    if (!request->may_be_refused ||
        atomic_load_explicit(&store->refusing, memory_order_relaxed) == 0)
        return false;
    bool refused = at_store_lock;
    for (uint32_t i = 0; i < request->key_count && !refused; i++) {
        const struct store_key *key = &request->keys[i];
        refused = key_locks_refuses(engine_partition(store, key->slot), key->hash + key->db);
    }
    return refused;
}

/* Queues a transaction that cannot run now. False: it runs now, or `failure` says that it is
 * refused. */
static bool queue(struct store_txn *txn)
{
    struct store *store = txn->store;
    bool alone = txn->request->scope == STORE_SCOPE_ALL;
    bool behind = atomic_load_explicit(&store->store_lock_count, memory_order_relaxed) > 0;
    bool busy = alone && atomic_load_explicit(&store->active, memory_order_relaxed) > 0;
    if (!alone && txn->request->key_count == 0) /* without keys there is no order to keep */
        return false;
    if (!behind && !busy && !conflicts(txn))
        return false;
    if (is_refused(txn, behind || busy)) {
        txn->failure = STORE_BUSY;
        return false;
    }
    txn_move(txn, TXN_QUEUED);
    if (behind || busy)
        store_lock_queue(txn);
    else
        request_key_locks(txn);
    return true;
}

void request_hold_store_lock(struct store_txn *txn)
{
    struct store *store = txn->store;
    if (txn->hold == HOLDS_STORE)
        return;
    assert(txn->hold == HOLDS_NOTHING && txn->request->scope == STORE_SCOPE_ALL);
    pthread_mutex_lock(&store->store_lock_mutex);
    assert(!store->store_lock_holder);
    store->store_lock_holder = txn;
    txn->hold = HOLDS_STORE;
    atomic_fetch_add_explicit(&store->store_lock_count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&store->store_lock_mutex);
}

/* Takes the key locks, or the store lock, after a first attempt that has to wait, or for a pause.
 * False: no memory. */
static bool hold_place(struct store_txn *txn)
{
    if (txn->hold != HOLDS_NOTHING)
        return true; /* since it paused */
    if (txn->request->scope == STORE_SCOPE_KEYS && txn->request->key_count > 0)
        return key_locks_request(txn);
    if (txn->request->scope == STORE_SCOPE_ALL)
        request_hold_store_lock(txn);
    return true;
}

static void park(struct store_txn *txn)
{
    if (txn_state(txn) == TXN_RUNNING)
        txn_move(txn, TXN_PARKED);
    if (storage_checks_enabled())
        txn_check(txn);
    request_unlock(txn);
    request_wake(txn, txn->worker);
}

/* A round may start many reads: submit the first ones while it finds the rest. */
static void submit_early(struct store_worker *worker)
{
    if (worker->queue->queued >= SUBMIT_EARLY)
        worker->store->disk->ops->submit(worker->queue);
}

enum store_result store_execute(struct store_worker *worker, struct store_request *request)
{
    struct store_txn *txn = request_new_txn(worker);
    if (!txn)
        return STORE_NO_MEMORY;
    txn_begin(txn, request);
    atomic_store_explicit(&txn->waits, 1, memory_order_relaxed);
    request_lock(txn);
    bool queued = queue(txn);
    enum store_result result = queued ? STORE_WAIT : attempt(txn);
    if (result == STORE_WAIT) {
        if (!queued && !hold_place(txn)) {
            key_locks_hold_none(txn); /* else a flush would free what it has reserved */
            txn->failure = STORE_NO_MEMORY;
        } else if (queued && request->may_prefetch && txn->hold == HOLDS_KEYS) {
            prefetch_run_begin(txn);
        }
        worker->parked++;
        park(txn);
        submit_early(worker);
        return STORE_WAIT;
    }
    finish(txn, result, worker);
    if (txn->pin_count)
        load_release_pins(txn);
    request_unlock(txn);
    txn_reset(txn);
    return result;
}

void request_run_again(struct store_txn *txn)
{
    struct store_worker *worker = txn->worker;
    struct store_request *request = txn->request;
    prefetch_run_end(txn);
    assert(atomic_load_explicit(&txn->waits, memory_order_relaxed) == 0 && worker->parked > 0);
    atomic_store_explicit(&txn->waits, 1, memory_order_relaxed);
    request_lock(txn);
    enum store_result result = attempt(txn);
    if (result == STORE_WAIT) {
        park(txn);
        return;
    }
    finish(txn, result, worker);
    load_release_pins(txn);
    request_unlock(txn);
    txn_reset(txn);
    worker->parked--;
    request->done(request, result);
}

/* Attempts each ready transaction once; returns whether there is time for more. Those left over
 * stay before those that became ready in the meantime. */
static bool run_ready_once(struct store_worker *worker, int64_t end_ns, uint32_t *count)
{
    struct txn_list ready = STAILQ_HEAD_INITIALIZER(ready);
    bool is_late = false;
    STAILQ_CONCAT(&ready, &worker->ready);
    for (struct store_txn *txn; !is_late && (txn = STAILQ_FIRST(&ready)) != NULL;) {
        STAILQ_REMOVE_HEAD(&ready, of_list);
        request_run_again(txn);
        ++*count;
        is_late = env_clock_ns() >= end_ns;
    }
    STAILQ_CONCAT(&ready, &worker->ready);
    STAILQ_CONCAT(&worker->ready, &ready);
    return !is_late;
}

/* Transactions that become ready meanwhile, such as the waiters of one key in turn, run in this
 * round too, up to a limit; the rest run in the next round. */
static void run_ready(struct store_worker *worker)
{
    int64_t end_ns = env_clock_ns() + READY_NSEC;
    uint32_t steps = worker->steps, first = 0, more = 0;
    bool goes_on = run_ready_once(worker, end_ns, &first);
    while (goes_on && !STAILQ_EMPTY(&worker->ready) && more < READY_MORE &&
           worker->steps - steps < READY_STEPS)
        goes_on = run_ready_once(worker, end_ns, &more);
}

void request_run_ready(struct store_worker *worker)
{
    pthread_mutex_lock(&worker->inbox_lock);
    STAILQ_CONCAT(&worker->ready, &worker->inbox);
    pthread_mutex_unlock(&worker->inbox_lock);
    store_run_handoffs(worker);
    if (!STAILQ_EMPTY(&worker->ready))
        run_ready(worker);
    prefetch_run_more(worker);
}

/* ---- pausing a long run ---- */

/* Refuses the transactions queued for the store lock that may be refused; the others stay, in
 * order. */
static void refuse_behind_store_lock(struct store_txn *txn)
{
    struct store *store = txn->store;
    struct txn_list queued = STAILQ_HEAD_INITIALIZER(queued);
    struct txn_list refused = STAILQ_HEAD_INITIALIZER(refused);
    pthread_mutex_lock(&store->store_lock_mutex);
    STAILQ_CONCAT(&queued, &store->store_lock);
    for (struct store_txn *waiting; (waiting = STAILQ_FIRST(&queued)) != NULL;) {
        STAILQ_REMOVE_HEAD(&queued, of_list);
        if (!waiting->request->may_be_refused) {
            STAILQ_INSERT_TAIL(&store->store_lock, waiting, of_list);
            continue;
        }
        assert(waiting->hold == HOLDS_NOTHING);
        waiting->failure = STORE_BUSY;
        STAILQ_INSERT_HEAD(&refused, waiting, of_list);
        atomic_fetch_sub_explicit(&store->store_lock_count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&store->store_lock_mutex);
    for (struct store_txn *waiting; (waiting = STAILQ_FIRST(&refused)) != NULL;) {
        STAILQ_REMOVE_HEAD(&refused, of_list);
        request_wake(waiting, txn->worker);
    }
}

static void begin_to_refuse(struct store_txn *txn)
{
    assert(txn_state(txn) == TXN_RUNNING);
    txn->refuses = true;
    atomic_fetch_add_explicit(&txn->store->refusing, 1, memory_order_relaxed);
    if (txn->hold == HOLDS_STORE)
        refuse_behind_store_lock(txn);
    else
        key_locks_refuse_waiting(txn);
}

bool store_pause(struct store_txn *txn, bool refuses)
{
    struct store_worker *worker = txn->worker;
    if (!hold_place(txn))
        return false;
    if (refuses && !txn->refuses)
        begin_to_refuse(txn);
    load_leave_pages(txn);
    txn_move(txn, TXN_PAUSED);
    request_unlock(txn);
    memory_keep(worker->store);
    worker->store->disk->ops->reap(worker->queue, 0);
    return true;
}

void store_go_on(struct store_txn *txn)
{
    struct store_worker *worker = txn->worker;
    journal_kick(&worker->store->journal, worker->queue, JOURNAL_GROUP_TARGET);
    if (worker->queue->queued > 0)
        worker->store->disk->ops->submit(worker->queue);
    request_lock(txn);
    txn_move(txn, TXN_RUNNING);
}

uint32_t store_parked(const struct store_worker *worker)
{
    return worker->parked;
}
