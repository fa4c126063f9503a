/*
 * Observers of the model store. Reports are made under the store's mutex, before what they tell of
 * is applied; removals of what has expired are not reported.
 */
#include "tests/model/model_private.h"

#include <assert.h>

enum store_result store_observe(struct store *store, store_observer *observer, void *arg)
{
    pthread_mutex_lock(&store->mutex);
    bool has_room = store->observer_count < STORE_OBSERVER_MAX;
    if (has_room)
        store->observers[store->observer_count++] = (struct observer){observer, arg};
    pthread_mutex_unlock(&store->mutex);
    return has_room ? STORE_OK : STORE_INVALID;
}

void store_unobserve(struct store *store, store_observer *observer, void *arg)
{
    pthread_mutex_lock(&store->mutex);
    uint32_t i = 0;
    while (i < store->observer_count &&
           (store->observers[i].call != observer || store->observers[i].arg != arg))
        i++;
    assert(i < store->observer_count);
    store->observers[i] = store->observers[--store->observer_count];
    pthread_mutex_unlock(&store->mutex);
}

static void report(const struct store *store, const struct store_change *change)
{
    for (uint32_t i = 0; i < store->observer_count; i++)
        store->observers[i].call(store->observers[i].arg, change);
}

static void report_databases(const struct store *store, const int map[STORE_DB_COUNT])
{
    struct store_change flush = {.kind = STORE_CHANGE_FLUSH, .commit = store->commits + 1};
    struct store_change swap = {.kind = STORE_CHANGE_SWAP, .commit = store->commits + 1};
    for (int db = 0; db < STORE_DB_COUNT; db++) {
        flush.dbs |= map[db] == MAP_EMPTY ? 1u << db : 0;
        swap.dbs |= map[db] != MAP_EMPTY && map[db] != db ? 1u << db : 0;
    }
    if (swap.dbs != 0)
        report(store, &swap);
    if (flush.dbs != 0)
        report(store, &flush);
}

static const struct store_item *describe(const struct entry *entry, struct store_item *item)
{
    if (entry == NULL || entry->value == NULL)
        return NULL;
    item_fill(item, entry);
    return item;
}

void model_report(const struct store_txn *txn)
{
    struct store *store = txn->worker->store;
    if (store->observer_count == 0)
        return;
    report_databases(store, txn->map);
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++) {
        const struct table *written = &txn->written[db];
        uint64_t bucket_count = written->buckets == NULL ? 0 : (uint64_t)1 << written->bits;
        for (uint64_t i = 0; i < bucket_count; i++) {
            for (struct entry *entry = written->buckets[i]; entry != NULL; entry = entry->next) {
                struct store_key key;
                struct store_item old, fresh;
                store_key(store, &key, db, entry->key, entry->key_len, STORE_EXCLUSIVE);
                struct store_change change = {
                    .kind = STORE_CHANGE_KEY,
                    .cause = txn->cause,
                    .commit = store->commits + 1,
                    .now_ms = txn->request->now_ms,
                    .key = &key,
                    .old = txn->map[db] == MAP_EMPTY
                               ? NULL
                               : describe(table_find(&store->dbs[txn->map[db]], &key), &old),
                    .fresh = describe(entry, &fresh)};
                report(store, &change);
            }
        }
    }
}
