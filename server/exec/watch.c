/*
 * The registry of watched keys: hash tables in shards, an entry for each key of each watch.
 *
 * Invariants:
 * 1. An entry is added in a run function under the lock of its key's partition, after the observer
 *    has been registered: no change escapes between the look-up of the key and the entry. `existed`
 *    is the key's state then, and stays valid until the watch is dirty.
 * 2. `is_dirty` is set by the observer, under the lock of the changed key's partition. A run
 *    function that holds this lock sees it in time.
 * 3. Entries are added to and removed from a shard under its lock, which is a leaf below the
 *    store's locks. `users` counts the watches; while it is not 0 the registry observes the store.
 */
#include "server/exec/watch.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "server/exec/keyspace.h"
#include "storage/base/checks.h"

#define SHARDS 64
#define BUCKETS_MIN 16
#define ENTRY_MORE 32   /* malloc's and the buckets' overhead of an entry */
#define CHECKED_MOST 64 /* buckets of a shard, and keys of a watch, that checks walk over */

struct watched {
    struct watched *next_bucket, *next; /* of the bucket, of the watch */
    struct watch *watch;
    struct store_key key;
    int64_t expire_ms;
    bool existed; /* when the entry was added */
    bool swapped; /* SWAPDB may have replaced it */
    char bytes[];
};

struct watch {
    struct watch_registry *registry;
    struct watched *first;
    uint32_t count;
    uint64_t bytes; /* of its entries */
    _Atomic bool is_dirty;
};

struct shard {
    pthread_mutex_t lock;
    _Atomic uint32_t count;
    uint32_t size; /* of buckets: 0 or a power of two */
    struct watched **buckets;
};

struct watch_registry {
    struct store *store;
    pthread_mutex_t lock; /* guards is_listening; taken before the store's locks */
    bool is_listening;
    _Atomic uint32_t users;
    struct shard shards[SHARDS];
};

static struct shard *shard_of(struct watch_registry *registry, const struct store_key *key)
{
    return &registry->shards[key->hash % SHARDS];
}

static struct watched **bucket_of(const struct shard *shard, const struct store_key *key)
{
    return &shard->buckets[key->hash / SHARDS % shard->size];
}

/* ---- invariants ---- */

/* Asserts that the entries are in their buckets, and counted; the shard's lock is held. */
static void shard_check(const struct watch_registry *registry, const struct shard *shard)
{
    uint32_t count = 0, listed = atomic_load_explicit(&shard->count, memory_order_relaxed);
    if (shard->size > CHECKED_MOST || listed > CHECKED_MOST)
        return;
    for (uint32_t i = 0; i < shard->size; i++) {
        for (const struct watched *at = shard->buckets[i]; at != NULL; at = at->next_bucket) {
            assert(bucket_of(shard, &at->key) == &shard->buckets[i]);
            assert(at->watch->registry == registry && at->key.data == at->bytes);
            count++;
        }
    }
    assert(count == listed);
    assert(count == 0 || atomic_load_explicit(&registry->users, memory_order_relaxed) > 0);
}

/* Asserts that the counters of a watch agree with its list. Its worker's thread only. */
static void watch_list_check(const struct watch *watch)
{
    uint32_t count = 0;
    uint64_t bytes = 0;
    if (watch->count > CHECKED_MOST)
        return;
    for (const struct watched *at = watch->first; at != NULL; at = at->next, count++) {
        assert(at->watch == watch);
        bytes += sizeof *at + at->key.len + ENTRY_MORE;
    }
    assert(watch->count == count && watch->bytes == bytes);
}

/* ---- observing the store ---- */

/* Deletion of a key that did not exist only removed an expired key: no change. If the key was
 * swapped in from another database, it is a change. */
static bool is_change_of(const struct watched *watched, const struct store_change *change)
{
    return watched->existed || change->fresh != NULL ||
           (watched->swapped && change->cause != STORE_BY_EXPIRY);
}

static void note_key(struct watch_registry *registry, const struct store_change *change)
{
    struct shard *shard = shard_of(registry, change->key);
    if (atomic_load_explicit(&shard->count, memory_order_relaxed) == 0)
        return;
    pthread_mutex_lock(&shard->lock);
    struct watched *watched = shard->size > 0 ? *bucket_of(shard, change->key) : NULL;
    for (; watched != NULL; watched = watched->next_bucket)
        if (key_equals(&watched->key, change->key) && is_change_of(watched, change))
            atomic_store_explicit(&watched->watch->is_dirty, true, memory_order_relaxed);
    pthread_mutex_unlock(&shard->lock);
}

/* Whole databases were flushed or swapped. */
static void note_databases(struct watch_registry *registry, const struct store_change *change)
{
    for (uint32_t s = 0; s < SHARDS; s++) {
        struct shard *shard = &registry->shards[s];
        pthread_mutex_lock(&shard->lock);
        for (uint32_t i = 0; i < shard->size; i++) {
            for (struct watched *at = shard->buckets[i]; at != NULL; at = at->next_bucket) {
                if ((change->dbs >> at->key.db & 1) == 0)
                    continue;
                if (at->existed)
                    atomic_store_explicit(&at->watch->is_dirty, true, memory_order_relaxed);
                at->swapped |= change->kind == STORE_CHANGE_SWAP;
            }
        }
        pthread_mutex_unlock(&shard->lock);
    }
}

static void note(void *arg, const struct store_change *change)
{
    if (change->kind == STORE_CHANGE_KEY)
        note_key(arg, change);
    else
        note_databases(arg, change);
}

/* ---- the registry ---- */

struct watch_registry *watch_registry_new(struct store *store)
{
    struct watch_registry *registry = calloc(1, sizeof *registry);
    if (registry == NULL)
        return NULL;
    registry->store = store;
    pthread_mutex_init(&registry->lock, NULL);
    for (uint32_t i = 0; i < SHARDS; i++)
        pthread_mutex_init(&registry->shards[i].lock, NULL);
    return registry;
}

void watch_registry_rest(struct watch_registry *registry)
{
    if (atomic_load_explicit(&registry->users, memory_order_relaxed) > 0)
        return;
    pthread_mutex_lock(&registry->lock);
    bool has_users = atomic_load_explicit(&registry->users, memory_order_relaxed) > 0;
    if (registry->is_listening && !has_users) {
        store_unobserve(registry->store, note, registry);
        registry->is_listening = false;
    }
    pthread_mutex_unlock(&registry->lock);
}

bool watch_registry_has(struct watch_registry *registry, const struct store_key *key)
{
    return atomic_load_explicit(&shard_of(registry, key)->count, memory_order_relaxed) > 0;
}

void watch_registry_free(struct watch_registry *registry)
{
    if (registry == NULL)
        return;
    assert(atomic_load(&registry->users) == 0);
    watch_registry_rest(registry);
    for (uint32_t i = 0; i < SHARDS; i++) {
        pthread_mutex_destroy(&registry->shards[i].lock);
        free(registry->shards[i].buckets);
    }
    pthread_mutex_destroy(&registry->lock);
    free(registry);
}

/* ---- watches ---- */

struct watch *watch_new(struct watch_registry *registry)
{
    struct watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return NULL;
    watch->registry = registry;
    pthread_mutex_lock(&registry->lock);
    if (!registry->is_listening)
        registry->is_listening = store_observe(registry->store, note, registry) == STORE_OK;
    bool is_listening = registry->is_listening;
    if (is_listening)
        atomic_fetch_add_explicit(&registry->users, 1, memory_order_relaxed);
    pthread_mutex_unlock(&registry->lock);
    if (is_listening)
        return watch;
    free(watch);
    return NULL;
}

static void take_out(struct watch_registry *registry, const struct watched *watched)
{
    struct shard *shard = shard_of(registry, &watched->key);
    pthread_mutex_lock(&shard->lock);
    struct watched **at = bucket_of(shard, &watched->key);
    while (*at != watched) {
        assert(*at != NULL);
        at = &(*at)->next_bucket;
    }
    *at = watched->next_bucket;
    atomic_fetch_sub_explicit(&shard->count, 1, memory_order_relaxed);
    if (storage_checks_enabled())
        shard_check(registry, shard);
    pthread_mutex_unlock(&shard->lock);
}

void watch_free(struct watch *watch)
{
    if (watch == NULL)
        return;
    if (storage_checks_enabled())
        watch_list_check(watch);
    for (struct watched *watched; (watched = watch->first) != NULL;) {
        watch->first = watched->next;
        take_out(watch->registry, watched);
        free(watched);
    }
    uint32_t users = atomic_fetch_sub_explicit(&watch->registry->users, 1, memory_order_relaxed);
    assert(users > 0);
    (void)users;
    free(watch);
}

bool watch_is_dirty(const struct watch *watch)
{
    return atomic_load_explicit(&watch->is_dirty, memory_order_relaxed);
}

uint32_t watch_count(const struct watch *watch)
{
    return watch == NULL ? 0 : watch->count;
}

uint64_t watch_bytes(const struct watch *watch)
{
    return watch == NULL ? 0 : sizeof *watch + watch->bytes;
}

static bool grow(struct shard *shard)
{
    uint32_t old_size = shard->size, size = old_size == 0 ? BUCKETS_MIN : 2 * old_size;
    struct watched **old = shard->buckets;
    struct watched **buckets = calloc(size, sizeof *buckets);
    if (buckets == NULL)
        return old_size > 0; /* longer chains will do */
    shard->buckets = buckets;
    shard->size = size;
    for (uint32_t i = 0; i < old_size; i++) {
        for (struct watched *watched; (watched = old[i]) != NULL;) {
            old[i] = watched->next_bucket;
            struct watched **at = bucket_of(shard, &watched->key);
            watched->next_bucket = *at;
            *at = watched;
        }
    }
    free(old);
    return true;
}

/* False: out of memory. */
static bool put_in(struct watch_registry *registry, struct watched *watched)
{
    struct shard *shard = shard_of(registry, &watched->key);
    pthread_mutex_lock(&shard->lock);
    bool has_room = atomic_load_explicit(&shard->count, memory_order_relaxed) < shard->size;
    if (has_room || grow(shard)) {
        struct watched **at = bucket_of(shard, &watched->key);
        watched->next_bucket = *at;
        *at = watched;
        atomic_fetch_add_explicit(&shard->count, 1, memory_order_relaxed);
        has_room = true;
    }
    if (storage_checks_enabled())
        shard_check(registry, shard);
    pthread_mutex_unlock(&shard->lock);
    return has_room;
}

static bool is_watched(const struct watch *watch, const struct store_key *key)
{
    struct shard *shard = shard_of(watch->registry, key);
    pthread_mutex_lock(&shard->lock);
    struct watched *at = shard->size > 0 ? *bucket_of(shard, key) : NULL;
    while (at != NULL && (at->watch != watch || !key_equals(&at->key, key)))
        at = at->next_bucket;
    pthread_mutex_unlock(&shard->lock);
    return at != NULL;
}

bool watch_add(struct watch *watch, const struct store_key *key, const struct store_item *item)
{
    if (is_watched(watch, key))
        return true;
    struct watched *watched = calloc(1, sizeof *watched + key->len);
    if (watched == NULL)
        return false;
    memcpy(watched->bytes, key->data, key->len);
    watched->watch = watch;
    watched->key = *key;
    watched->key.data = watched->bytes;
    watched->existed = item != NULL;
    watched->expire_ms = item != NULL ? item->expire_ms : STORE_NO_EXPIRY;
    if (!put_in(watch->registry, watched)) {
        free(watched);
        return false;
    }
    watched->next = watch->first;
    watch->first = watched;
    watch->count++;
    watch->bytes += sizeof *watched + key->len + ENTRY_MORE;
    if (storage_checks_enabled())
        watch_list_check(watch);
    return true;
}

void watch_keys(const struct watch *watch, struct store_key *keys)
{
    for (const struct watched *at = watch == NULL ? NULL : watch->first; at != NULL; at = at->next)
        *keys++ = at->key;
}

enum store_result watch_check(const struct watch *watch, struct store_txn *txn, bool *has_changed)
{
    *has_changed = watch_is_dirty(watch);
    for (struct watched *at = watch->first; at != NULL && !*has_changed; at = at->next) {
        struct store_item item;
        if (at->existed) {
            *has_changed = at->expire_ms != STORE_NO_EXPIRY && at->expire_ms < store_now(txn);
        } else if (at->swapped) {
            enum store_result result = store_get(txn, &at->key, &item);
            if (result != STORE_OK && result != STORE_ABSENT)
                return result;
            *has_changed = result == STORE_OK;
        }
    }
    return STORE_OK;
}
