/*
 * Observers of changes: commit.c reports every change here before it applies it.
 *
 * Invariants
 * 1. The list of observers changes only while all partitions' locks are held; holding one of them
 *    suffices to read it. So an observer is never called after store_unobserve has returned.
 * 2. Reports are made under the lock of the key's partition (flushes and swaps: under all of them)
 *    and the journal's lock: an observer's own lock is a leaf below these.
 */
#include "storage/exec/change.h"

#include <assert.h>
#include <string.h>

#include "storage/value/lookup.h"

void change_lock_all(struct store *store)
{
    for (uint32_t i = 0; i < store->partition_count; i++)
        pthread_mutex_lock(&store->partitions[i].file.lock);
}

void change_unlock_all(struct store *store)
{
    for (uint32_t i = 0; i < store->partition_count; i++)
        pthread_mutex_unlock(&store->partitions[i].file.lock);
}

bool change_add_observer(struct store *store, store_observer *observer, void *arg)
{
    if (store->observer_count == STORE_OBSERVER_MAX)
        return false;
    store->observers[store->observer_count++] = (struct observer){observer, arg};
    return true;
}

void change_remove_observer(struct store *store, store_observer *observer, void *arg)
{
    uint32_t i = 0;
    while (i < store->observer_count &&
           (store->observers[i].call != observer || store->observers[i].arg != arg))
        i++;
    assert(i < store->observer_count);
    for (store->observer_count--; i < store->observer_count; i++)
        store->observers[i] = store->observers[i + 1];
}

enum store_result store_observe(struct store *store, store_observer *observer, void *arg)
{
    change_lock_all(store);
    bool added = change_add_observer(store, observer, arg);
    change_unlock_all(store);
    return added ? STORE_OK : STORE_INVALID;
}

void store_unobserve(struct store *store, store_observer *observer, void *arg)
{
    change_lock_all(store);
    change_remove_observer(store, observer, arg);
    change_unlock_all(store);
}

void store_set_cause(struct store_txn *txn, enum store_cause cause)
{
    txn->cause = cause;
}

/* ---- reporting ---- */

static void report(const struct store *store, const struct store_change *change)
{
    for (uint32_t i = 0; i < store->observer_count; i++)
        store->observers[i].call(store->observers[i].arg, change);
}

static const struct store_item *describe(const struct format_item *found, struct store_item *item)
{
    if (!found)
        return NULL;
    txn_describe(found, item);
    return item;
}

void change_report_key(const struct store_txn *txn, const struct store_key *key,
                       const struct format_item *old, const struct format_item *fresh,
                       uint64_t commit)
{
    struct store_item items[2];
    struct store_change change = {.kind = STORE_CHANGE_KEY,
                                  .cause = txn->cause,
                                  .worker = txn->worker,
                                  .request = txn->request,
                                  .commit = commit,
                                  .now_ms = txn->request->now_ms,
                                  .key = key,
                                  .old = describe(old, &items[0]),
                                  .fresh = describe(fresh, &items[1])};
    report(txn->store, &change);
}

void change_report_databases(const struct store_txn *txn, uint64_t commit)
{
    const struct arrangement *arrangement = &txn->arrangement;
    struct store_change change = {.kind = STORE_CHANGE_SWAP,
                                  .cause = txn->cause,
                                  .worker = txn->worker,
                                  .request = txn->request,
                                  .commit = commit};
    uint32_t now[STORE_DB_COUNT], flushed = 0;
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
        now[db] = db;
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++) {
        uint32_t other = db;
        while (now[other] != arrangement->origins[db])
            other++;
        now[other] = now[db];
        change.dbs = 1u << db | 1u << other;
        if (other != db)
            report(txn->store, &change);
        if (arrangement->places[db] >= STORE_DB_COUNT)
            flushed |= 1u << db;
    }
    change.kind = STORE_CHANGE_FLUSH;
    change.dbs = flushed;
    if (flushed)
        report(txn->store, &change);
}
