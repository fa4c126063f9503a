/*
 * Order per key: parked transactions stand in a queue for each of their keys.
 *
 * Invariants
 * 1. A transaction that runs while others are parked either conflicts with none of them, or stands
 *    first (with other readers) in the queues of all its keys.
 * 2. A queue is: granted claims first (one exclusive, or several shared), then waiting ones in
 * order of arrival.
 * 3. Claims are taken for all keys at one instant, under the locks of all their partitions: so all
 *    queues agree on the order of any two transactions, and nobody waits in a circle.
 */
#include "engine.h"

#include <assert.h>
#include <stdlib.h>

static struct claim **bucket_of(struct partition *partition, uint64_t hash)
{
    return &partition->claims[hash % CLAIM_BUCKETS];
}

/* Where the first claim of the key's queue hangs; *result is NULL when there is no queue. */
static struct claim **find_queue(struct partition *partition, uint64_t hash)
{
    struct claim **at = bucket_of(partition, hash);
    while (*at && (*at)->hash != hash)
        at = &(*at)->next_bucket;
    return at;
}

bool admission_conflicts(const struct partition *partition, uint64_t hash, bool exclusive)
{
    if (partition->claim_count == 0)
        return false;
    const struct claim *claim = *find_queue((struct partition *)partition, hash);
    if (claim && exclusive)
        return true;
    for (; claim; claim = claim->next)
        if (claim->exclusive)
            return true;
    return false;
}

bool admission_refuses(const struct partition *partition, uint64_t hash)
{
    const struct claim *claim = *find_queue((struct partition *)partition, hash);
    while (claim && !claim->txn->refuses)
        claim = claim->next;
    return claim != NULL;
}

/* What stands ahead of a claim in its queue. A transaction's own claims never hold it up. */
struct ahead {
    const struct store_txn *only; /* the one transaction ahead, if there is but one */
    bool several, exclusive;
};

static bool compatible(const struct ahead *ahead, const struct claim *claim)
{
    bool alone = !ahead->several && (!ahead->only || ahead->only == claim->txn);
    return alone || (!ahead->exclusive && !claim->exclusive);
}

static void pass(struct ahead *ahead, const struct claim *claim)
{
    ahead->several |= ahead->only && ahead->only != claim->txn;
    ahead->only = claim->txn;
    ahead->exclusive |= claim->exclusive;
}

static void enqueue(struct partition *partition, struct claim *claim)
{
    struct claim **at = find_queue(partition, claim->hash);
    struct ahead ahead = {0};
    if (!*at)
        claim->next_bucket = NULL;
    for (; *at; at = &(*at)->next)
        pass(&ahead, *at);
    *at = claim;
    partition->claim_count++;
    claim->granted = compatible(&ahead, claim);
    if (!claim->granted)
        request_wait(claim->txn);
}

static void collect(struct store_txn *txn)
{
    const struct store_request *request = txn->request;
    txn->claim_count = request->key_count;
    for (uint32_t i = 0; i < request->key_count; i++) {
        const struct store_key *key = &request->keys[i];
        txn->claims[i] =
            (struct claim){.txn = txn,
                           .hash = key->hash + key->db,
                           .partition = (uint16_t)(key->slot >> txn->store->slot_shift),
                           .exclusive = key->mode == STORE_EXCLUSIVE};
    }
}

bool admission_claim(struct store_txn *txn)
{
    uint32_t wanted = txn->request->key_count;
    if (wanted > txn->claim_capacity) {
        struct claim *grown = realloc(txn->claims, wanted * sizeof *grown);
        if (!grown)
            return false;
        txn->claims = grown;
        txn->claim_capacity = wanted;
    }
    collect(txn);
    for (uint32_t i = 0; i < txn->claim_count; i++)
        enqueue(&txn->store->partitions[txn->claims[i].partition], &txn->claims[i]);
    txn->counts_active = true;
    atomic_fetch_add_explicit(&txn->store->active, 1, memory_order_relaxed);
    return true;
}

/* Grants what nothing ahead holds up any more. */
static void grant(struct claim *first, struct store_worker *from)
{
    struct ahead ahead = {0};
    for (struct claim *claim = first; claim; claim = claim->next) {
        if (!claim->granted && !compatible(&ahead, claim))
            return;
        if (!claim->granted) {
            claim->granted = true;
            request_wake(claim->txn, from);
        }
        pass(&ahead, claim);
    }
}

static void leave(struct partition *partition, struct claim *claim, struct store_worker *from)
{
    struct claim **queue = find_queue(partition, claim->hash);
    struct claim *next_bucket = (*queue)->next_bucket;
    struct claim **at = queue;
    while (*at != claim)
        at = &(*at)->next;
    *at = claim->next;
    partition->claim_count--;
    if (*queue) {
        (*queue)->next_bucket = next_bucket;
        grant(*queue, from);
    } else {
        *queue = next_bucket;
    }
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
            claim->granted = true;
            claim->txn->failure = STORE_BUSY;
            request_wake(claim->txn, txn->worker);
        }
    }
}

void admission_release(struct store_txn *txn, struct store_worker *from)
{
    if (!txn->counts_active)
        return;
    for (uint32_t i = 0; i < txn->claim_count; i++)
        leave(&txn->store->partitions[txn->claims[i].partition], &txn->claims[i], from);
    txn->claim_count = 0;
    txn->counts_active = false;
    atomic_fetch_sub_explicit(&txn->store->active, 1, memory_order_relaxed);
}
