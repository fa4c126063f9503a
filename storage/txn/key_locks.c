/*
 * Key locks: a queued or parked transaction is in the lock queue of each of its keys.
 *
 * Invariants
 * 1. A transaction runs only if it conflicts with no transaction in a lock queue, or if its locks
 *    are all in turn.
 * 2. A queue begins with the locks in turn (one exclusive, or several shared, or all of one
 *    transaction); the waiting ones follow in order of arrival. Locks of one transaction are
 *    adjacent. A queue may hold a command of every client, so only refusal walks it, and a
 *    hand-off the part in turn.
 * 3. A transaction requests the locks of all its keys at one instant, under the locks of all their
 *    partitions. So all queues agree on the order of any two transactions, and deadlock is
 *    impossible.
 * 4. The exception is a transaction that was handed a key (lock_handoff.c). It follows the
 *    transaction that hands off in the queues of that key and of the keys kept for it; it requests
 *    the other locks at its first attempt. There it goes ahead of all transactions that do not run
 *    yet, and so waits only for transactions that have all their locks (`ungranted` is 0).
 */
#include "storage/txn/key_locks.h"

#include <assert.h>
#include <stdlib.h>

#include "storage/base/array.h"
#include "storage/base/checks.h"
#include "storage/txn/txn_state.h"
#include "storage/txn/wait.h"

#define CHECKED_MOST 64u /* locks of a partition */

static struct key_lock **bucket_of(struct partition *partition, uint64_t hash)
{
    return &partition->key_locks[hash % KEY_LOCK_BUCKETS];
}

/* The link to the first entry of the key's queue; *result is NULL when there is no queue. */
static struct key_lock **find_queue(struct partition *partition, uint64_t hash)
{
    struct key_lock **at = bucket_of(partition, hash);
    while (*at && (*at)->hash != hash)
        at = &(*at)->queue.next_bucket;
    return at;
}

bool key_locks_conflicts(const struct partition *partition, uint64_t hash, bool exclusive)
{
    if (partition->key_lock_count == 0)
        return false;
    const struct key_lock *first = *find_queue((struct partition *)partition, hash);
    return first && (exclusive || first->queue.exclusive_ahead || first->queue.exclusive_from_it);
}

bool key_locks_refuses(const struct partition *partition, uint64_t hash)
{
    const struct key_lock *key_lock = *find_queue((struct partition *)partition, hash);
    while (key_lock && !key_lock->txn->refuses)
        key_lock = key_lock->next;
    return key_lock != NULL;
}

bool key_locks_have_waiters(const struct store_txn *txn)
{
    bool awaited = false;
    for (uint32_t i = 0; i < txn->key_lock_count && !awaited; i++) {
        struct partition *partition = &txn->store->partitions[txn->key_locks[i].partition];
        pthread_mutex_lock(&partition->file.lock);
        awaited = (*find_queue(partition, txn->key_locks[i].hash))->queue.waiting != NULL;
        pthread_mutex_unlock(&partition->file.lock);
    }
    return awaited;
}

/* Whether a lock may take its turn if all before it are in turn. A transaction's own locks never
 * block it; and a lock that follows one of its own at the head has only its own ahead. */
static bool may_take_turn(const struct key_lock *first, const struct key_lock *key_lock)
{
    return first->txn == key_lock->txn || (!first->queue.exclusive_ahead && !key_lock->exclusive);
}

/* A transaction counts all its grants as one thing to wait for. */
static void await(struct key_lock *key_lock)
{
    key_lock->in_turn = key_lock->granted = false;
    if (atomic_fetch_add_explicit(&key_lock->txn->ungranted, 1, memory_order_acq_rel) == 0)
        request_wait(key_lock->txn);
}

static void grant(struct key_lock *key_lock, struct store_worker *from)
{
    assert(!key_lock->granted);
    key_lock->granted = true;
    uint32_t before = atomic_fetch_sub_explicit(&key_lock->txn->ungranted, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1)
        request_wake(key_lock->txn, from);
}

/* Grants the locks whose turn it is now. */
static void advance(struct key_lock *first, struct store_worker *from)
{
    struct key_lock *key_lock;
    assert(!first->previous); /* only the first entry keeps the queue's counters */
    while ((key_lock = first->queue.waiting) && may_take_turn(first, key_lock)) {
        first->queue.waiting = key_lock->next;
        first->queue.exclusive_ahead += key_lock->exclusive;
        first->queue.exclusive_from_it -= key_lock->exclusive;
        key_lock->in_turn = true;
        if (key_lock->granted)
            continue;
        grant(key_lock, from);
    }
}

static void append(struct key_lock *first, struct key_lock *key_lock)
{
    assert(first->hash == key_lock->hash && !first->queue.last->next);
    key_lock->previous = first->queue.last;
    first->queue.last->next = key_lock;
    first->queue.last = key_lock;
    if (!first->queue.waiting && may_take_turn(first, key_lock)) {
        key_lock->in_turn = key_lock->granted = true;
        first->queue.exclusive_ahead += key_lock->exclusive;
        return;
    }
    await(key_lock);
    first->queue.exclusive_from_it += key_lock->exclusive;
    if (!first->queue.waiting)
        first->queue.waiting = key_lock;
}

static void begin_queue(struct key_lock **first, struct key_lock *key_lock)
{
    assert(!key_lock->next && !key_lock->previous);
    key_lock->granted = key_lock->in_turn = true;
    key_lock->queue.last = key_lock;
    key_lock->queue.exclusive_ahead = key_lock->exclusive;
    *first = key_lock;
}

static void enqueue(struct partition *partition, struct key_lock *key_lock)
{
    struct key_lock **first = find_queue(partition, key_lock->hash);
    partition->key_lock_count++;
    if (*first)
        append(*first, key_lock);
    else
        begin_queue(first, key_lock);
}

static struct key_lock key_lock_of(struct store_txn *txn, const struct store_key *key)
{
    return (struct key_lock){.txn = txn,
                             .hash = key->hash + key->db,
                             .partition = (uint16_t)(key->slot >> txn->store->slot_shift),
                             .exclusive = key->mode == STORE_EXCLUSIVE};
}

bool key_locks_reserve(struct store_txn *txn)
{
    uint32_t wanted = txn->request->key_count;
    if (!array_reserve(&txn->key_locks, &txn->key_lock_capacity, wanted, sizeof *txn->key_locks))
        return false;
    for (uint32_t i = 0; i < wanted; i++)
        txn->key_locks[i].txn = NULL;
    return true;
}

static void count_active(struct store_txn *txn)
{
    assert(txn->hold == HOLDS_NOTHING);
    txn->hold = HOLDS_KEYS;
    atomic_fetch_add_explicit(&txn->store->active, 1, memory_order_relaxed);
}

void key_locks_hold_none(struct store_txn *txn)
{
    assert(txn->key_lock_count == 0 && !txn->handoffs.txn);
    count_active(txn);
}

/* Checks invariant 2 of one queue. */
static void check_queue(const struct key_lock *first)
{
    const struct key_lock *waiting = NULL, *last = NULL;
    uint32_t ahead = 0, from_it = 0;
    for (const struct key_lock *key_lock = first; key_lock;
         last = key_lock, key_lock = key_lock->next) {
        assert(key_lock->previous == last && key_lock->hash == first->hash && key_lock->txn);
        assert(key_lock->txn->hold == HOLDS_KEYS && (key_lock->granted || !key_lock->in_turn));
        if (!key_lock->in_turn && !waiting)
            waiting = key_lock;
        assert(key_lock->in_turn == !waiting);
        *(key_lock->in_turn ? &ahead : &from_it) += key_lock->exclusive;
        assert(ahead == 0 || waiting || key_lock->txn == first->txn);
    }
    assert(first->queue.last == last && first->queue.waiting == waiting);
    assert(first->queue.exclusive_ahead == ahead && first->queue.exclusive_from_it == from_it);
    assert(!waiting || !may_take_turn(first, waiting)); /* no later event would grant it */
}

/* Called after a change of the key's queue; skips a long queue, which each command would walk. */
static void key_locks_check(struct partition *partition, uint64_t hash)
{
    const struct key_lock *first = *find_queue(partition, hash);
    if (storage_checks_enabled() && first && partition->key_lock_count <= CHECKED_MOST)
        check_queue(first);
}

bool key_locks_request(struct store_txn *txn)
{
    assert(txn->key_lock_count == 0 && !txn->handoffs.txn);
    if (!key_locks_reserve(txn))
        return false;
    txn->key_lock_count = txn->request->key_count;
    for (uint32_t i = 0; i < txn->key_lock_count; i++) {
        txn->key_locks[i] = key_lock_of(txn, &txn->request->keys[i]);
        enqueue(&txn->store->partitions[txn->key_locks[i].partition], &txn->key_locks[i]);
    }
    count_active(txn);
    for (uint32_t i = 0; i < txn->key_lock_count; i++)
        key_locks_check(&txn->store->partitions[txn->key_locks[i].partition],
                        txn->key_locks[i].hash);
    return true;
}

/* Removes it from the queue's list and counters; the first remaining entry keeps the counters from
 * now on. */
static void unlink_key_lock(struct key_lock **first, struct key_lock *key_lock)
{
    if ((*first)->queue.waiting == key_lock)
        (*first)->queue.waiting = key_lock->next;
    if ((*first)->queue.last == key_lock)
        (*first)->queue.last = key_lock->previous;
    uint32_t counted =
        key_lock->in_turn ? (*first)->queue.exclusive_ahead : (*first)->queue.exclusive_from_it;
    assert(counted >= key_lock->exclusive);
    if (key_lock->in_turn)
        (*first)->queue.exclusive_ahead -= key_lock->exclusive;
    else
        (*first)->queue.exclusive_from_it -= key_lock->exclusive;
    if (key_lock->next)
        key_lock->next->previous = key_lock->previous;
    if (key_lock->previous) {
        key_lock->previous->next = key_lock->next;
    } else if (key_lock->next) {
        key_lock->next->queue = key_lock->queue;
        *first = key_lock->next;
    } else {
        *first = key_lock->queue.next_bucket;
    }
}

static void leave(struct partition *partition, struct key_lock *key_lock, struct store_worker *from)
{
    struct key_lock **first = find_queue(partition, key_lock->hash);
    assert(*first && partition->key_lock_count > 0);
    bool others = key_lock->next || key_lock->previous;
    unlink_key_lock(first, key_lock);
    partition->key_lock_count--;
    if (others)
        advance(*first, from);
    key_locks_check(partition, key_lock->hash);
}

/* ---- hand-off: ahead of the queue ---- */

/* Links it after `before`, among the waiting ones. */
static void link_behind(struct key_lock *first, struct key_lock *before, struct key_lock *key_lock)
{
    assert(before->hash == key_lock->hash && !key_lock->in_turn);
    key_lock->previous = before;
    key_lock->next = before->next;
    before->next = key_lock;
    if (key_lock->next)
        key_lock->next->previous = key_lock;
    else
        first->queue.last = key_lock;
    first->queue.exclusive_from_it += key_lock->exclusive;
}

/* Links it after the locks in turn, and before all others. */
static void push_in(struct key_lock *first, struct key_lock *key_lock)
{
    link_behind(first, first->queue.waiting ? first->queue.waiting->previous : first->queue.last,
                key_lock);
    first->queue.waiting = key_lock;
}

/* It waits for one more grant. False: it has all its locks, so it runs or soon will. */
static bool hold_up(struct store_txn *txn)
{
    uint32_t ungranted = atomic_load_explicit(&txn->ungranted, memory_order_acquire);
    while (ungranted > 0)
        if (atomic_compare_exchange_weak_explicit(&txn->ungranted, &ungranted, ungranted + 1,
                                                  memory_order_acq_rel, memory_order_acquire))
            return true;
    return false;
}

/* Enqueues ahead of all transactions but those that run already. One that is in turn here but waits
 * in another queue may wait for this transaction there, a deadlock: it loses its turn. */
static void enqueue_ahead(struct partition *partition, struct key_lock *key_lock,
                          struct store_worker *from)
{
    struct key_lock **first = find_queue(partition, key_lock->hash), *behind = key_lock, *next;
    assert(key_lock->txn->hold == HOLDS_KEYS);
    partition->key_lock_count++;
    if (!*first) {
        begin_queue(first, key_lock);
        return;
    }
    await(key_lock);
    push_in(*first, key_lock);
    for (struct key_lock *at = *first; at != key_lock; at = next) {
        next = at->next;
        if (at->txn == key_lock->txn || !hold_up(at->txn))
            continue;
        unlink_key_lock(first, at);
        at->in_turn = at->granted = false;
        link_behind(*first, behind, at);
        behind = at;
    }
    advance(*first, from);
    key_locks_check(partition, key_lock->hash);
}

void key_locks_hand_off(struct store_txn *txn, const struct store_key *key,
                        struct store_worker *from)
{
    assert(txn_state(txn) == TXN_REGISTERED && !txn->handoffs.txn);
    struct partition *partition = engine_partition(txn->store, key->slot);
    txn->handoffs = key_lock_of(txn, key);
    struct key_lock **first = find_queue(partition, txn->handoffs.hash);
    partition->key_lock_count++;
    count_active(txn);
    if (!*first) {
        begin_queue(first, &txn->handoffs);
    } else {
        await(&txn->handoffs);
        push_in(*first, &txn->handoffs);
        advance(*first, from);
    }
    key_locks_check(partition, txn->handoffs.hash);
}

/* Granted at once: the transaction waits for the handed-off key only, until its first attempt. */
void key_locks_keep(struct store_txn *txn, uint32_t index, struct store_worker *from)
{
    assert(index < txn->request->key_count && index < txn->key_lock_capacity);
    struct key_lock *key_lock = &txn->key_locks[index];
    if (key_lock->txn)
        return;
    *key_lock = key_lock_of(txn, &txn->request->keys[index]);
    struct partition *partition = &txn->store->partitions[key_lock->partition];
    struct key_lock **first = find_queue(partition, key_lock->hash);
    partition->key_lock_count++;
    if (!*first) {
        begin_queue(first, key_lock);
    } else {
        key_lock->granted = true;
        push_in(*first, key_lock);
        advance(*first, from);
    }
    key_locks_check(partition, key_lock->hash);
}

static void leave_handoffs(struct store_txn *txn, struct store_worker *from)
{
    if (!txn->handoffs.txn)
        return;
    leave(&txn->store->partitions[txn->handoffs.partition], &txn->handoffs, from);
    txn->handoffs.txn = NULL;
}

void key_locks_request_ahead(struct store_txn *txn, struct store_worker *from)
{
    assert(txn->hold == HOLDS_KEYS && txn->handoffs.txn);
    if (txn->request->key_count == 1)
        return; /* the key that was handed off to it */
    txn->key_lock_count = txn->request->key_count;
    for (uint32_t i = 0; i < txn->key_lock_count; i++) {
        struct key_lock *key_lock = &txn->key_locks[i];
        if (key_lock->txn && !key_lock->in_turn)
            await(key_lock);
        if (key_lock->txn)
            continue;
        *key_lock = key_lock_of(txn, &txn->request->keys[i]);
        enqueue_ahead(&txn->store->partitions[key_lock->partition], key_lock, from);
    }
    leave_handoffs(txn, from);
}

/* A refused transaction does not wait in this queue any more; it leaves it when it is finished. */
void key_locks_refuse_waiting(struct store_txn *txn)
{
    for (uint32_t i = 0; i < txn->key_lock_count; i++) {
        struct partition *partition = &txn->store->partitions[txn->key_locks[i].partition];
        struct key_lock *key_lock = *find_queue(partition, txn->key_locks[i].hash);
        for (; key_lock; key_lock = key_lock->next) {
            if (key_lock->granted || !key_lock->txn->request->may_be_refused)
                continue;
            key_lock->txn->failure = STORE_BUSY;
            grant(key_lock, txn->worker);
        }
    }
}

void key_locks_release(struct store_txn *txn, struct store_worker *from)
{
    if (txn->hold != HOLDS_KEYS)
        return;
    assert(atomic_load_explicit(&txn->ungranted, memory_order_relaxed) == 0);
    for (uint32_t i = 0; i < txn->key_lock_count; i++)
        leave(&txn->store->partitions[txn->key_locks[i].partition], &txn->key_locks[i], from);
    leave_handoffs(txn, from);
    txn->key_lock_count = 0;
    txn->hold = HOLDS_NOTHING;
    atomic_fetch_sub_explicit(&txn->store->active, 1, memory_order_relaxed);
}
