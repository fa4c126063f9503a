/*
 * Deleting what has expired: each item by a transaction of its own, whose key is read from the
 * page.
 *
 * A walk over the expiry tables, ten times a second, names (hash slot, tag) pairs, and so do reads
 * that come upon what has expired, which they treat as absent. Names are hints: the item is looked
 * at again, under its key's claim.
 *
 * Invariant: expiry_count of a worker counts its expiries in progress, at most EXPIRY_LIMIT.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#define EXPIRY_LIMIT 256u   /* in progress at once, per worker */
#define WALK_ENTRIES 20000u /* of the tables, per worker and step */

struct expiry {
    struct store_request request;
    struct store_worker *worker;
    struct expiry *next, *previous;
    struct store_key key;
    uint16_t slot;
    uint32_t tag;
    bool found;
    char bytes[STORE_KEY_MAX];
};

static void drop(struct expiry *expiry)
{
    struct store_worker *worker = expiry->worker;
    if (expiry->previous)
        expiry->previous->next = expiry->next;
    else
        worker->expiries = expiry->next;
    if (expiry->next)
        expiry->next->previous = expiry->previous;
    worker->expiry_count--;
    free(expiry);
}

/* ---- second step: delete it, if it is still there and expired ---- */

static enum store_result delete_expired(struct store_txn *txn, struct store_request *request)
{
    struct expiry *expiry = (struct expiry *)request;
    struct found found;
    uint32_t database = txn->store->databases.ids[expiry->key.db];
    enum store_result result = txn_find(txn, &expiry->key, database, &found);
    if (result != STORE_OK || !found.item)
        return result;
    int64_t expires = format_expiry(found.item);
    if (expires == STORE_NO_EXPIRY || expires >= request->now_ms)
        return STORE_OK;
    counter_add(&engine_partition(txn->store, expiry->slot)->expired, 1);
    store_set_cause(txn, STORE_BY_EXPIRY);
    return store_delete(txn, &expiry->key);
}

static void deleted(struct store_request *request, enum store_result result)
{
    (void)result; /* it stays expired, and will be named again */
    drop((struct expiry *)request);
}

/* ---- first step: find its key ---- */

static enum store_result find_key(struct store_txn *txn, struct store_request *request)
{
    struct expiry *expiry = (struct expiry *)request;
    struct store *store = txn->store;
    struct partition *partition = engine_partition(store, expiry->slot);
    struct index *index = &partition->index;
    enum store_result result = STORE_OK;
    pthread_mutex_lock(&partition->space.lock);
    for (uint32_t at = index_find(index, expiry->slot, expiry->tag);
         at != INDEX_NONE && result == STORE_OK && !expiry->found;
         at = index_next(index, expiry->slot, at)) {
        uint64_t entry = index_get(index, expiry->slot, at);
        uint32_t page = index_page(entry), frame;
        result = load_page(txn, &partition->space, page, &frame);
        if (result != STORE_OK)
            break;
        uint32_t size = format_class_size(space_class_of(&partition->space, page));
        const struct format_item *item =
            (const void *)(arena_memory(&store->arena, frame) + index_item_slot(entry) * size);
        int64_t expires = format_expiry(item);
        int db = databases_logical(store, item->database);
        if (db < 0 || expires == STORE_NO_EXPIRY || expires >= request->now_ms)
            continue;
        memcpy(expiry->bytes, format_key(item), item->key_len);
        store_key(store, &expiry->key, (uint32_t)db, expiry->bytes, item->key_len, STORE_EXCLUSIVE);
        expiry->found = true;
    }
    pthread_mutex_unlock(&partition->space.lock);
    return result;
}

static void key_found(struct store_request *request, enum store_result result)
{
    struct expiry *expiry = (struct expiry *)request;
    if (result != STORE_OK || !expiry->found) {
        drop(expiry);
        return;
    }
    *request = (struct store_request){.run = delete_expired,
                                      .done = deleted,
                                      .keys = &expiry->key,
                                      .key_count = 1,
                                      .now_ms = request->now_ms};
    result = store_execute(expiry->worker, request);
    if (result != STORE_WAIT)
        deleted(request, result);
}

static void begin(struct store_worker *worker, uint32_t slot, uint32_t tag)
{
    struct expiry *expiry = calloc(1, sizeof *expiry);
    if (!expiry)
        return;
    expiry->worker = worker;
    expiry->slot = (uint16_t)slot;
    expiry->tag = tag;
    expiry->next = worker->expiries;
    if (expiry->next)
        expiry->next->previous = expiry;
    worker->expiries = expiry;
    worker->expiry_count++;
    expiry->request = (struct store_request){.run = find_key,
                                             .done = key_found,
                                             .scope = STORE_SCOPE_NONE,
                                             .now_ms = store_clock_ms(worker->store)};
    enum store_result result = store_execute(worker, &expiry->request);
    if (result != STORE_WAIT)
        key_found(&expiry->request, result);
}

/* ---- where names come from ---- */

void expire_note(struct store_worker *worker, uint32_t slot, uint32_t tag)
{
    uint32_t count = worker->noted_count;
    const struct expired_name *last = count ? &worker->noted[count - 1] : NULL;
    bool is_known = last && last->slot == slot && last->tag == tag; /* by the run before a rerun */
    if (count < EXPIRED_NOTES && !is_known)
        worker->noted[worker->noted_count++] = (struct expired_name){(uint16_t)slot, tag};
}

void expire_noted(struct store_worker *worker)
{
    uint32_t count = worker->noted_count;
    worker->noted_count = 0; /* of a stopping worker nothing new is begun */
    for (uint32_t i = 0; i < count && !worker->stopping && worker->expiry_count < EXPIRY_LIMIT; i++)
        begin(worker, worker->noted[i].slot, worker->noted[i].tag);
}

struct names {
    uint32_t count;
    struct {
        uint16_t slot;
        uint32_t tag;
    } at[EXPIRY_LIMIT];
};

static void note_due(void *arg, uint32_t slot, uint32_t tag)
{
    struct names *names = arg;
    if (names->count == EXPIRY_LIMIT)
        return;
    names->at[names->count].slot = (uint16_t)slot;
    names->at[names->count++].tag = tag;
}

void expire_step(struct store_worker *worker)
{
    struct store *store = worker->store;
    bool walks = !worker->stopping && atomic_load(&store->walks_expired);
    struct names *names = walks ? malloc(sizeof *names) : NULL;
    if (!names)
        return;
    for (uint32_t i = worker->index; i < store->partition_count; i += store->worker_count) {
        struct partition *partition = &store->partitions[i];
        names->count = 0;
        pthread_mutex_lock(&partition->space.lock);
        if (ttl_count(&partition->ttl) > 0)
            ttl_step(&partition->ttl, store_clock_ms(store), WALK_ENTRIES, note_due, names);
        pthread_mutex_unlock(&partition->space.lock);
        for (uint32_t j = 0; j < names->count && worker->expiry_count < EXPIRY_LIMIT; j++)
            begin(worker, names->at[j].slot, names->at[j].tag);
    }
    free(names);
}
