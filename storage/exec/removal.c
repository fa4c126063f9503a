/*
 * Deletes expired items, and evicts items: each by two transactions, of which the first reads the
 * key from the item's page, and the second deletes it.
 *
 * If only parts of an item have expired (its wake time has passed), the second transaction has
 * store_waker remove some of them. While there are more, such transactions follow each other,
 * between which other requests have their turns at the key.
 *
 * Invariant: removals[cause] of a worker counts its removals in progress, those in `waking`
 * included.
 */
#include "storage/exec/removal.h"

#include <stdlib.h>
#include <string.h>

#include "storage/value/long_key.h"
#include "storage/txn/wait.h"
#include "storage/value/lookup.h"
#include "storage/txn/load.h"
#include "storage/txn/databases.h"
#include "storage/value/extent.h"

#define LONG_KEYS_MOST (16u << 20) /* bytes in memory, per worker; one key may be longer */
#define LONG_KEYS_SHARE 32u        /* of memory, likewise */
#define UNREADABLE_MS 60000        /* a key that could not be read is left alone for this long */

struct removal {
    struct store_request request;
    struct store_worker *worker;
    struct removal_name name;
    struct store_key key;
    bool found;
    counter *deletes; /* counter to increment once committed; NULL: nothing to delete */
    char *bytes;      /* of the key */
    uint64_t counted; /* bytes counted in the worker's removal_bytes */
    uint32_t parts;   /* removed by this run; and whether more are due */
    bool goes_on;
    STAILQ_ENTRY(removal) of_waking;
};

static void end(struct removal *removal)
{
    uint32_t left = --removal->worker->removals[removal->name.cause];
    if (left == 0 && removal->worker->expire_left > 0)
        request_notify(removal->worker); /* expire_step() waits for it */
    removal->worker->removal_bytes -= removal->counted;
    free(removal->bytes);
    free(removal);
}

static bool has_passed(int64_t time_ms, int64_t now_ms)
{
    return time_ms != STORE_NO_EXPIRY && time_ms < now_ms;
}

static bool has_expired(const struct format_item *item, int64_t now_ms)
{
    return has_passed(format_expiry(item), now_ms);
}

/* Whether one of the runs has this size class. A value with nodes is assumed to have runs of two
 * classes: one page, for a node, and a whole extent. */
static bool has_run(struct store *store, const char *at, uint32_t size_class)
{
    struct format_root root;
    struct format_extent extent;
    bool found = false;
    memcpy(&root, at, sizeof root);
    if (root.depth > 0)
        return size_class == FORMAT_RUN_CLASS + 1 ||
               size_class == FORMAT_RUN_CLASS + FORMAT_EXTENT_PAGES;
    pthread_mutex_lock(&store->extents.lock);
    for (uint32_t i = 0; i < root.count && !found; i++) {
        memcpy(&extent, at + sizeof root + i * sizeof extent, sizeof extent);
        found = extent.page != 0 && page_file_class_at(&store->extents, extent.page) == size_class;
    }
    pthread_mutex_unlock(&store->extents.lock);
    return found;
}

bool removal_gives_run(struct store *store, const struct format_item *item, uint32_t size_class)
{
    return (item->flags & FORMAT_LARGE && has_run(store, format_payload(item), size_class)) ||
           (item->flags & FORMAT_LONG_KEY && has_run(store, format_key_root(item), size_class));
}

static bool is_meant(struct removal *removal, const struct format_item *item, uint64_t entry)
{
    const struct removal_name *name = &removal->name;
    if (name->cause == STORE_BY_EXPIRY)
        return has_expired(item, removal->request.now_ms) ||
               has_passed(format_wake(item), removal->request.now_ms);
    return index_page(entry) == name->page && index_item_slot(entry) == name->item_slot &&
           (name->size_class == 0 ||
            removal_gives_run(removal->worker->store, item, name->size_class));
}

/* ---- second step: delete it, if it is still there ---- */

/* Has some of the parts removed that have expired. */
static enum store_result wake(struct store_txn *txn, struct removal *removal)
{
    struct store *store = txn->store;
    struct store_item item;
    if (!store->waker || engine_holds_still(store))
        return STORE_OK;
    store_set_cause(txn, STORE_BY_EXPIRY);
    enum store_result result = store->waker(store->waker_arg, txn, &removal->key, &removal->parts);
    if (result != STORE_OK)
        return result;
    result = store_get(txn, &removal->key, &item);
    removal->goes_on = result == STORE_OK && has_passed(item.wake_ms, removal->request.now_ms);
    return result == STORE_ABSENT ? STORE_OK : result;
}

static enum store_result delete_found(struct store_txn *txn, struct store_request *request)
{
    struct removal *removal = (struct removal *)request;
    struct store *store = txn->store;
    struct partition *partition = engine_partition(store, removal->name.slot);
    struct found found;
    uint32_t database = store->databases.ids[removal->key.db];
    removal->deletes = NULL;
    removal->parts = 0;
    removal->goes_on = false;
    enum store_result result = txn_find(txn, &removal->key, database, &found);
    if (result != STORE_OK || !found.item)
        return result;
    bool expired = has_expired(found.item, request->now_ms);
    if (removal->name.cause == STORE_BY_EXPIRY && !expired &&
        has_passed(format_wake(found.item), request->now_ms))
        return wake(txn, removal);
    if (removal->name.cause == STORE_BY_EXPIRY && (!expired || engine_holds_still(store)))
        return STORE_OK;
    if (!expired && atomic_load(&store->policy.only_expiring) &&
        format_expiry(found.item) == STORE_NO_EXPIRY)
        return STORE_OK;
    removal->deletes = expired ? &partition->expired : &partition->evicted;
    store_set_cause(txn, expired ? STORE_BY_EXPIRY : STORE_BY_EVICTION);
    return store_delete(txn, &removal->key);
}

static void note_unreadable(struct store_worker *worker, const struct removal_name *name)
{
    worker->unreadable[worker->unreadable_count++ % EXPIRED_NOTES] =
        (struct unreadable_name){(uint16_t)name->slot, name->tag, env_clock_ms()};
}

/* After a transaction that was to remove parts. */
static void woken(struct removal *removal, enum store_result result)
{
    struct store_worker *worker = removal->worker;
    if (result == STORE_DAMAGED || result == STORE_IO)
        note_unreadable(worker, &removal->name);
    if (result != STORE_OK || !removal->goes_on) {
        end(removal);
        return;
    }
    STAILQ_INSERT_TAIL(&worker->waking, removal, of_waking);
    request_notify(worker);
}

static void deleted(struct store_request *request, enum store_result result)
{
    struct removal *removal = (struct removal *)request;
    struct partition *partition = engine_partition(removal->worker->store, removal->name.slot);
    if (result == STORE_OK && removal->deletes) { /* else it stays, and will be named again */
        pthread_mutex_lock(&partition->file.lock);
        counter_add(removal->deletes, 1);
        pthread_mutex_unlock(&partition->file.lock);
    }
    if (removal->name.cause == STORE_BY_EVICTION)
        maintenance_ask(removal->worker->store); /* a writer may be waiting for the room */
    if (result == STORE_OK)
        atomic_fetch_add(&removal->worker->store->expired_parts, removal->parts);
    woken(removal, result);
}

static void delete_item(struct removal *removal)
{
    struct store_request *request = &removal->request;
    *request = (struct store_request){.run = delete_found,
                                      .done = deleted,
                                      .keys = &removal->key,
                                      .key_count = 1,
                                      .now_ms = request->now_ms};
    enum store_result result = store_execute(removal->worker, request);
    if (result != STORE_WAIT)
        deleted(request, result);
}

bool removal_go_on(struct store_worker *worker)
{
    struct removal *removal = STAILQ_FIRST(&worker->waking);
    if (!removal)
        return false;
    STAILQ_REMOVE_HEAD(&worker->waking, of_waking);
    if (worker->stopping)
        end(removal);
    else
        delete_item(removal);
    return true;
}

/* ---- first step: find its key ---- */

/* False: long keys of removals in progress take too much memory; the item will be named again. */
static bool count_long_key(struct removal *removal, uint64_t length)
{
    uint64_t *under_way = &removal->worker->removal_bytes;
    if (removal->counted)
        return true;
    uint64_t memory = atomic_load(&removal->worker->store->memory_bytes);
    uint64_t share = memory / LONG_KEYS_SHARE;
    uint64_t most = share < LONG_KEYS_MOST ? share : LONG_KEYS_MOST;
    if (*under_way > 0 && *under_way + length > most)
        return false;
    *under_way += removal->counted = length;
    return true;
}

/* An unreadable key would be named over and over, and the damage logged each time. */
static bool is_unreadable(const struct store_worker *worker, const struct removal_name *name)
{
    uint32_t count = worker->unreadable_count;
    for (uint32_t i = 0; i < count && i < EXPIRED_NOTES; i++) {
        const struct unreadable_name *known = &worker->unreadable[i];
        if (known->slot == name->slot && known->tag == name->tag &&
            env_clock_ms() - known->since_ms < UNREADABLE_MS)
            return true;
    }
    return false;
}

static enum store_result take_key(struct store_txn *txn, struct removal *removal,
                                  const struct format_item *item, uint32_t db)
{
    bool is_long = item->flags & FORMAT_LONG_KEY;
    const char *data;
    uint32_t len;
    if (is_long && !count_long_key(removal, long_key_length(item)))
        return STORE_BUSY;
    enum store_result result = long_key_get(txn, item, &data, &len);
    if (result == STORE_DAMAGED)
        note_unreadable(removal->worker, &removal->name);
    if (result != STORE_OK)
        return result;
    removal->bytes = is_long ? extent_take_key(txn, data) : malloc(len + 1u);
    if (!removal->bytes)
        return STORE_NO_MEMORY;
    if (!is_long)
        memcpy(removal->bytes, data, len);
    store_key(txn->store, &removal->key, db, removal->bytes, len, STORE_EXCLUSIVE);
    removal->found = true;
    return STORE_OK;
}

static enum store_result find_key(struct store_txn *txn, struct store_request *request)
{
    struct removal *removal = (struct removal *)request;
    struct store *store = txn->store;
    uint32_t slot = removal->name.slot;
    struct partition *partition = engine_partition(store, slot);
    struct index *index = &partition->index;
    enum store_result result = STORE_OK;
    pthread_mutex_lock(&partition->file.lock);
    for (uint32_t at = index_find(index, slot, removal->name.tag);
         at != INDEX_NONE && result == STORE_OK && !removal->found;
         at = index_next(index, slot, at)) {
        uint64_t entry = index_get(index, slot, at);
        uint32_t page = index_page(entry), frame;
        result = load_page(txn, &partition->file, page, &frame);
        if (result == STORE_IO)
            note_unreadable(removal->worker, &removal->name);
        if (result != STORE_OK)
            break;
        uint32_t size = format_class_size(page_file_class_of(&partition->file, page));
        const struct format_item *item = (const void *)(arena_memory(&store->cache.arena, frame) +
                                                        index_item_slot(entry) * size);
        int db = databases_logical(store, item->database);
        if (db < 0 || item->flags & FORMAT_KEY_TREE || !is_meant(removal, item, entry))
            continue;
        result = take_key(txn, removal, item, (uint32_t)db);
    }
    pthread_mutex_unlock(&partition->file.lock);
    return result;
}

static void key_found(struct store_request *request, enum store_result result)
{
    struct removal *removal = (struct removal *)request;
    if (result != STORE_OK || !removal->found) {
        end(removal);
        return;
    }
    delete_item(removal);
}

void removal_begin(struct store_worker *worker, const struct removal_name *name)
{
    struct removal *removal = is_unreadable(worker, name) ? NULL : calloc(1, sizeof *removal);
    if (!removal)
        return;
    removal->worker = worker;
    removal->name = *name;
    worker->removals[name->cause]++;
    removal->request = (struct store_request){.run = find_key,
                                              .done = key_found,
                                              .scope = STORE_SCOPE_NONE,
                                              .now_ms = env_now_ms(&worker->store->env)};
    enum store_result result = store_execute(worker, &removal->request);
    if (result != STORE_WAIT)
        key_found(&removal->request, result);
}

uint32_t removal_count(const struct store_worker *worker, enum store_cause cause)
{
    return worker->removals[cause];
}
