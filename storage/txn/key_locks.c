/*
 * Order per key: parked transactions stand in a queue for each of their keys.
 *
 * Invariants
 * 1. A transaction that runs while others are parked either conflicts with none of them, or stands
 *    first (with other readers) in the queues of all its keys.
 * 2. A queue is: claims in turn first (one exclusive, or several shared, or all of one
 * transaction), then waiting ones in order of arrival. Those of one transaction stand together. No
 * step walks over a queue: it may hold a command of every client there is.
 * 3. Claims are taken for all keys at one instant, under the locks of all their partitions: so all
 *    queues agree on the order of any two transactions, and nobody waits in a circle.
 * 4. But one that was summoned (lock_handoff.c) has a claim on one key first, and on others that
 * were kept for it, next behind the transaction that does so, as that one is; on the rest when it
 *    comes to run. There it goes ahead of all that do not run yet, and so waits only for those that
 *    have all their claims, `ungranted` being 0, and wait for nobody's.
 */
#include "storage/txn/key_locks.h"

#include <assert.h>
#include <stdlib.h>

#include "storage/base/array.h"
#include "storage/base/checks.h"
#include "storage/txn/txn_state.h"
#include "storage/txn/wait.h"

#define CHECKED_MOST 64u /* claims of a partition */

static struct claim **bucket_of(struct partition *partition, uint64_t hash)
{
    return &partition->claims[hash % CLAIM_BUCKETS];
}

/* Where the first claim of the key's queue hangs; *result is NULL when there is no queue. */
static struct claim **find_queue(struct partition *partition, uint64_t hash)
{
    struct claim **at = bucket_of(partition, hash);
    while (*at && (*at)->hash != hash)
        at = &(*at)->queue.next_bucket;
    return at;
}

bool admission_conflicts(const struct partition *partition, uint64_t hash, bool exclusive)
{
    if (partition->claim_count == 0)
        return false;
    const struct claim *first = *find_queue((struct partition *)partition, hash);
    return first && (exclusive || first->queue.exclusive_ahead || first->queue.exclusive_from_it);
}

bool admission_refuses(const struct partition *partition, uint64_t hash)
{
    const struct claim *claim = *find_queue((struct partition *)partition, hash);
    while (claim && !claim->txn->refuses)
        claim = claim->next;
    return claim != NULL;
}

bool admission_is_awaited(const struct store_txn *txn)
{
    bool awaited = false;
    for (uint32_t i = 0; i < txn->claim_count && !awaited; i++) {
        struct partition *partition = &txn->store->partitions[txn->claims[i].partition];
        pthread_mutex_lock(&partition->space.lock);
        awaited = (*find_queue(partition, txn->claims[i].hash))->queue.waiting != NULL;
        pthread_mutex_unlock(&partition->space.lock);
    }
    return awaited;
}

/* Whether it is the turn of a claim if all before it are in turn. A transaction's own claims never
 * hold it up; and what stands behind one of its own at the head is behind none but its own. */
static bool may_take_turn(const struct claim *first, const struct claim *claim)
{
    return first->txn == claim->txn || (!first->queue.exclusive_ahead && !claim->exclusive);
}

/* All grants together are one thing that a transaction waits for. */
static void await(struct claim *claim)
{
    claim->in_turn = claim->granted = false;
    if (atomic_fetch_add_explicit(&claim->txn->ungranted, 1, memory_order_acq_rel) == 0)
        request_wait(claim->txn);
}

static void grant(struct claim *claim, struct store_worker *from)
{
    assert(!claim->granted);
    claim->granted = true;
    uint32_t before = atomic_fetch_sub_explicit(&claim->txn->ungranted, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1)
        request_wake(claim->txn, from);
}

/* Those whose turn it is now. */
static void advance(struct claim *first, struct store_worker *from)
{
    struct claim *claim;
    assert(!first->previous); /* only the first of a queue keeps its figures */
    while ((claim = first->queue.waiting) && may_take_turn(first, claim)) {
        first->queue.waiting = claim->next;
        first->queue.exclusive_ahead += claim->exclusive;
        first->queue.exclusive_from_it -= claim->exclusive;
        claim->in_turn = true;
        if (claim->granted)
            continue;
        grant(claim, from);
    }
}

static void append(struct claim *first, struct claim *claim)
{
    assert(first->hash == claim->hash && !first->queue.last->next);
    claim->previous = first->queue.last;
    first->queue.last->next = claim;
    first->queue.last = claim;
    if (!first->queue.waiting && may_take_turn(first, claim)) {
        claim->in_turn = claim->granted = true;
        first->queue.exclusive_ahead += claim->exclusive;
        return;
    }
    await(claim);
    first->queue.exclusive_from_it += claim->exclusive;
    if (!first->queue.waiting)
        first->queue.waiting = claim;
}

static void begin_queue(struct claim **first, struct claim *claim)
{
    assert(!claim->next && !claim->previous);
    claim->granted = claim->in_turn = true;
    claim->queue.last = claim;
    claim->queue.exclusive_ahead = claim->exclusive;
    *first = claim;
}

static void enqueue(struct partition *partition, struct claim *claim)
{
    struct claim **first = find_queue(partition, claim->hash);
    partition->claim_count++;
    if (*first)
        append(*first, claim);
    else
        begin_queue(first, claim);
}

static struct claim claim_of(struct store_txn *txn, const struct store_key *key)
{
    return (struct claim){.txn = txn,
                          .hash = key->hash + key->db,
                          .partition = (uint16_t)(key->slot >> txn->store->slot_shift),
                          .exclusive = key->mode == STORE_EXCLUSIVE};
}

bool admission_reserve(struct store_txn *txn)
{
    uint32_t wanted = txn->request->key_count;
    if (!array_reserve(&txn->claims, &txn->claim_capacity, wanted, sizeof *txn->claims))
        return false;
    for (uint32_t i = 0; i < wanted; i++)
        txn->claims[i].txn = NULL;
    return true;
}

static void count_active(struct store_txn *txn)
{
    assert(txn->hold == HOLDS_NOTHING);
    txn->hold = HOLDS_KEYS;
    atomic_fetch_add_explicit(&txn->store->active, 1, memory_order_relaxed);
}

/* Invariant 2, of one queue. */
static void check_queue(const struct claim *first)
{
    const struct claim *waiting = NULL, *last = NULL;
    uint32_t ahead = 0, from_it = 0;
    for (const struct claim *claim = first; claim; last = claim, claim = claim->next) {
        assert(claim->previous == last && claim->hash == first->hash && claim->txn);
        assert(claim->txn->hold == HOLDS_KEYS && (claim->granted || !claim->in_turn));
        if (!claim->in_turn && !waiting)
            waiting = claim;
        assert(claim->in_turn == !waiting);
        *(claim->in_turn ? &ahead : &from_it) += claim->exclusive;
        assert(ahead == 0 || waiting || claim->txn == first->txn);
    }
    assert(first->queue.last == last && first->queue.waiting == waiting);
    assert(first->queue.exclusive_ahead == ahead && first->queue.exclusive_from_it == from_it);
    assert(!waiting || !may_take_turn(first, waiting)); /* or nobody would grant it */
}

/* After a change of the key's queue; not of a long one, each of whose commands would walk over it.
 */
static void check(struct partition *partition, uint64_t hash)
{
    const struct claim *first = *find_queue(partition, hash);
    if (storage_checks_enabled() && first && partition->claim_count <= CHECKED_MOST)
        check_queue(first);
}

bool admission_claim(struct store_txn *txn)
{
    assert(txn->claim_count == 0 && !txn->summons.txn);
    if (!admission_reserve(txn))
        return false;
    txn->claim_count = txn->request->key_count;
    for (uint32_t i = 0; i < txn->claim_count; i++) {
        txn->claims[i] = claim_of(txn, &txn->request->keys[i]);
        enqueue(&txn->store->partitions[txn->claims[i].partition], &txn->claims[i]);
    }
    count_active(txn);
    for (uint32_t i = 0; i < txn->claim_count; i++)
        check(&txn->store->partitions[txn->claims[i].partition], txn->claims[i].hash);
    return true;
}

/* Out of the queue's list and its figures, which the first claim that is left keeps from now on. */
static void unlink_claim(struct claim **first, struct claim *claim)
{
    if ((*first)->queue.waiting == claim)
        (*first)->queue.waiting = claim->next;
    if ((*first)->queue.last == claim)
        (*first)->queue.last = claim->previous;
    uint32_t counted =
        claim->in_turn ? (*first)->queue.exclusive_ahead : (*first)->queue.exclusive_from_it;
    assert(counted >= claim->exclusive);
    if (claim->in_turn)
        (*first)->queue.exclusive_ahead -= claim->exclusive;
    else
        (*first)->queue.exclusive_from_it -= claim->exclusive;
    if (claim->next)
        claim->next->previous = claim->previous;
    if (claim->previous) {
        claim->previous->next = claim->next;
    } else if (claim->next) {
        claim->next->queue = claim->queue;
        *first = claim->next;
    } else {
        *first = claim->queue.next_bucket;
    }
}

static void leave(struct partition *partition, struct claim *claim, struct store_worker *from)
{
    struct claim **first = find_queue(partition, claim->hash);
    assert(*first && partition->claim_count > 0);
    bool others = claim->next || claim->previous;
    unlink_claim(first, claim);
    partition->claim_count--;
    if (others)
        advance(*first, from);
    check(partition, claim->hash);
}

/* ---- going ahead of others ---- */

/* Behind `before`, among those that wait. */
static void link_behind(struct claim *first, struct claim *before, struct claim *claim)
{
    assert(before->hash == claim->hash && !claim->in_turn);
    claim->previous = before;
    claim->next = before->next;
    before->next = claim;
    if (claim->next)
        claim->next->previous = claim;
    else
        first->queue.last = claim;
    first->queue.exclusive_from_it += claim->exclusive;
}

/* Behind those whose turn it is, and before all others. */
static void push_in(struct claim *first, struct claim *claim)
{
    link_behind(first, first->queue.waiting ? first->queue.waiting->previous : first->queue.last,
                claim);
    first->queue.waiting = claim;
}

/* It waits for one more grant. False: it has all its claims, and so runs, or soon will. */
static bool hold_up(struct store_txn *txn)
{
    uint32_t ungranted = atomic_load_explicit(&txn->ungranted, memory_order_acquire);
    while (ungranted > 0)
        if (atomic_compare_exchange_weak_explicit(&txn->ungranted, &ungranted, ungranted + 1,
                                                  memory_order_acq_rel, memory_order_acquire))
            return true;
    return false;
}

/* Before all but those that run already. Whoever has its turn here but waits elsewhere may wait for
 * this transaction there: it loses its turn. */
static void enqueue_ahead(struct partition *partition, struct claim *claim,
                          struct store_worker *from)
{
    struct claim **first = find_queue(partition, claim->hash), *behind = claim, *next;
    assert(claim->txn->hold == HOLDS_KEYS);
    partition->claim_count++;
    if (!*first) {
        begin_queue(first, claim);
        return;
    }
    await(claim);
    push_in(*first, claim);
    for (struct claim *at = *first; at != claim; at = next) {
        next = at->next;
        if (at->txn == claim->txn || !hold_up(at->txn))
            continue;
        unlink_claim(first, at);
        at->in_turn = at->granted = false;
        link_behind(*first, behind, at);
        behind = at;
    }
    advance(*first, from);
    check(partition, claim->hash);
}

void admission_summon(struct store_txn *txn, const struct store_key *key, struct store_worker *from)
{
    assert(txn_state(txn) == TXN_ENLISTED && !txn->summons.txn);
    struct partition *partition = engine_partition(txn->store, key->slot);
    txn->summons = claim_of(txn, key);
    struct claim **first = find_queue(partition, txn->summons.hash);
    partition->claim_count++;
    count_active(txn);
    if (!*first) {
        begin_queue(first, &txn->summons);
    } else {
        await(&txn->summons);
        push_in(*first, &txn->summons);
        advance(*first, from);
    }
}

/* It does not wait for this one before it is attempted: so it is granted from the beginning. */
void admission_keep(struct store_txn *txn, uint32_t index, struct store_worker *from)
{
    assert(index < txn->request->key_count && index < txn->claim_capacity);
    struct claim *claim = &txn->claims[index];
    if (claim->txn)
        return;
    *claim = claim_of(txn, &txn->request->keys[index]);
    struct partition *partition = &txn->store->partitions[claim->partition];
    struct claim **first = find_queue(partition, claim->hash);
    partition->claim_count++;
    if (!*first) {
        begin_queue(first, claim);
    } else {
        claim->granted = true;
        push_in(*first, claim);
        advance(*first, from);
    }
}

static void leave_summons(struct store_txn *txn, struct store_worker *from)
{
    if (!txn->summons.txn)
        return;
    leave(&txn->store->partitions[txn->summons.partition], &txn->summons, from);
    txn->summons.txn = NULL;
}

void admission_claim_ahead(struct store_txn *txn, struct store_worker *from)
{
    assert(txn->hold == HOLDS_KEYS && txn->summons.txn);
    if (txn->request->key_count == 1)
        return; /* the one that it was called to */
    txn->claim_count = txn->request->key_count;
    for (uint32_t i = 0; i < txn->claim_count; i++) {
        struct claim *claim = &txn->claims[i];
        if (claim->txn && !claim->in_turn)
            await(claim);
        if (claim->txn)
            continue;
        *claim = claim_of(txn, &txn->request->keys[i]);
        enqueue_ahead(&txn->store->partitions[claim->partition], claim, from);
    }
    leave_summons(txn, from);
}

/* A refused one has nothing to wait for in this queue; it leaves it when it is finished. */
void admission_refuse_waiting(struct store_txn *txn)
{
    for (uint32_t i = 0; i < txn->claim_count; i++) {
        struct partition *partition = &txn->store->partitions[txn->claims[i].partition];
        struct claim *claim = *find_queue(partition, txn->claims[i].hash);
        for (; claim; claim = claim->next) {
            if (claim->granted || !claim->txn->request->may_be_refused)
                continue;
            claim->txn->failure = STORE_BUSY;
            grant(claim, txn->worker);
        }
    }
}

void admission_release(struct store_txn *txn, struct store_worker *from)
{
    if (txn->hold != HOLDS_KEYS)
        return;
    assert(atomic_load_explicit(&txn->ungranted, memory_order_relaxed) == 0);
    for (uint32_t i = 0; i < txn->claim_count; i++)
        leave(&txn->store->partitions[txn->claims[i].partition], &txn->claims[i], from);
    leave_summons(txn, from);
    txn->claim_count = 0;
    txn->hold = HOLDS_NOTHING;
    atomic_fetch_sub_explicit(&txn->store->active, 1, memory_order_relaxed);
}
