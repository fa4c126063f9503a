/*
 * Hash tables in shards, an entry for each key, with the trackers of its clients.
 *
 * Invariants:
 * 1. An entry has at least one tracker, which it holds. They are in ascending order of their
 *    addresses, each once.
 * 2. A tracker that has ended stays in its entries until these are taken out, or have no room for
 *    another one. Clients come and go; nobody looks for all their keys then.
 * 3. The counters are those of the entries in buckets. `bytes` includes the dropped ones.
 */
#include "server/exec/tracking_table.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "server/exec/tracker.h"
#include "storage/base/checks.h"

#define SHARDS 64
#define BUCKETS_MIN 16
#define ENTRY_MORE 16   /* malloc's overhead */
#define CHECKED_MOST 64 /* buckets of a shard that checks walk over */

struct tracked {
    struct tracked *next_bucket;
    uint64_t hash;
    struct tracker **clients; /* `only`, or from malloc */
    struct tracker *only[1];
    uint32_t count, capacity;
    uint32_t len;
    char name[];
};

struct shard {
    pthread_mutex_t lock;
    _Atomic uint32_t count;
    _Atomic uint64_t items;
    uint32_t size; /* of buckets: 0 or a power of two */
    struct tracked **buckets;
};

/* The buckets of a shard that was cleared. */
struct dropped {
    struct dropped *next;
    struct tracked **buckets;
    uint32_t size, at;
};

struct tracking_table {
    _Atomic uint64_t keys, bytes;
    pthread_mutex_t dropped_lock;
    struct dropped *dropped;
    _Atomic bool has_dropped;
    struct shard shards[SHARDS];
};

static struct shard *shard_of(struct tracking_table *table, uint64_t hash)
{
    return &table->shards[hash % SHARDS];
}

static struct tracked **bucket_of(const struct shard *shard, uint64_t hash)
{
    return &shard->buckets[hash / SHARDS % shard->size];
}

static void add_to(_Atomic uint64_t *counter, uint64_t change)
{
    atomic_fetch_add_explicit(counter, change, memory_order_relaxed);
}

/* ---- invariants ---- */

/* The shard's lock is held. */
static void shard_check(const struct shard *shard)
{
    uint32_t count = 0;
    uint64_t items = 0;
    if (shard->size > CHECKED_MOST)
        return;
    for (uint32_t i = 0; i < shard->size; i++) {
        for (const struct tracked *at = shard->buckets[i]; at != NULL; at = at->next_bucket) {
            assert(bucket_of(shard, at->hash) == &shard->buckets[i]);
            assert(at->count > 0 && at->count <= at->capacity);
            for (uint32_t j = 1; j < at->count; j++)
                assert((uintptr_t)at->clients[j - 1] < (uintptr_t)at->clients[j]);
            count++;
            items += at->count;
        }
    }
    assert(count == atomic_load_explicit(&shard->count, memory_order_relaxed));
    assert(items == atomic_load_explicit(&shard->items, memory_order_relaxed));
}

/* ---- entries ---- */

static uint64_t list_bytes(uint32_t capacity)
{
    return capacity > 1 ? capacity * sizeof(struct tracker *) + ENTRY_MORE : 0;
}

static uint64_t tracked_bytes(const struct tracked *tracked)
{
    return sizeof *tracked + tracked->len + ENTRY_MORE + list_bytes(tracked->capacity);
}

static struct tracked *tracked_new(struct tracking_table *table, const struct store_key *key)
{
    struct tracked *tracked = malloc(sizeof *tracked + key->len);
    if (tracked == NULL)
        return NULL;
    *tracked = (struct tracked){.hash = key->hash, .len = key->len, .capacity = 1};
    tracked->clients = tracked->only;
    memcpy(tracked->name, key->data, key->len);
    add_to(&table->bytes, tracked_bytes(tracked));
    return tracked;
}

static void tracked_free(struct tracking_table *table, struct tracked *tracked)
{
    add_to(&table->bytes, -tracked_bytes(tracked));
    for (uint32_t i = 0; i < tracked->count; i++)
        tracker_release(tracked->clients[i]);
    if (tracked->capacity > 1)
        free(tracked->clients);
    free(tracked);
}

/* Where the tracker is, or belongs. */
static uint32_t place_of(const struct tracked *tracked, const struct tracker *tracker)
{
    uint32_t from = 0, to = tracked->count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if ((uintptr_t)tracked->clients[middle] < (uintptr_t)tracker)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static void drop_ended(struct shard *shard, struct tracked *tracked)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < tracked->count; i++) {
        struct tracker *tracker = tracked->clients[i];
        if (atomic_load_explicit(&tracker->has_ended, memory_order_relaxed))
            tracker_release(tracker);
        else
            tracked->clients[kept++] = tracker;
    }
    add_to(&shard->items, -(uint64_t)(tracked->count - kept));
    tracked->count = kept;
}

/* False: out of memory. */
static bool widen(struct tracking_table *table, struct tracked *tracked)
{
    uint32_t capacity = tracked->capacity == 1 ? 4 : 2 * tracked->capacity;
    bool is_inside = tracked->capacity == 1;
    struct tracker **clients =
        realloc(is_inside ? NULL : tracked->clients, capacity * sizeof(struct tracker *));
    if (clients == NULL)
        return false;
    if (is_inside)
        clients[0] = tracked->only[0];
    add_to(&table->bytes, list_bytes(capacity) - list_bytes(tracked->capacity));
    tracked->clients = clients;
    tracked->capacity = capacity;
    return true;
}

/* False: out of memory. */
static bool add_client(struct tracking_table *table, struct shard *shard, struct tracked *tracked,
                       struct tracker *tracker)
{
    uint32_t at = place_of(tracked, tracker);
    if (at < tracked->count && tracked->clients[at] == tracker)
        return true;
    if (tracked->count == tracked->capacity)
        drop_ended(shard, tracked);
    if (tracked->count == tracked->capacity && !widen(table, tracked))
        return false;
    at = place_of(tracked, tracker);
    memmove(&tracked->clients[at + 1], &tracked->clients[at],
            (tracked->count - at) * sizeof(struct tracker *));
    tracked->clients[at] = tracker;
    tracked->count++;
    tracker_hold(tracker);
    add_to(&shard->items, 1);
    return true;
}

/* ---- buckets ---- */

/* Where the entry is, or NULL at the end of its bucket; the shard has buckets. */
static struct tracked **find(const struct shard *shard, const struct store_key *key)
{
    struct tracked **at = bucket_of(shard, key->hash);
    while (*at != NULL && ((*at)->hash != key->hash || (*at)->len != key->len ||
                           memcmp((*at)->name, key->data, key->len) != 0))
        at = &(*at)->next_bucket;
    return at;
}

void tracking_table_prefetch(struct tracking_table *table, const struct store_key *keys,
                             uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct shard *shard = shard_of(table, keys[i].hash);
        pthread_mutex_lock(&shard->lock);
        if (shard->size > 0)
            __builtin_prefetch(bucket_of(shard, keys[i].hash));
        pthread_mutex_unlock(&shard->lock);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct shard *shard = shard_of(table, keys[i].hash);
        pthread_mutex_lock(&shard->lock);
        if (shard->size > 0)
            __builtin_prefetch(*bucket_of(shard, keys[i].hash));
        pthread_mutex_unlock(&shard->lock);
    }
}

/* False: out of memory, and there are no buckets; otherwise longer chains will do. */
static bool grow(struct tracking_table *table, struct shard *shard)
{
    uint32_t old_size = shard->size, size = old_size == 0 ? BUCKETS_MIN : 2 * old_size;
    struct tracked **old = shard->buckets;
    struct tracked **buckets = calloc(size, sizeof *buckets);
    if (buckets == NULL)
        return old_size > 0;
    shard->buckets = buckets;
    shard->size = size;
    for (uint32_t i = 0; i < old_size; i++) {
        for (struct tracked *tracked; (tracked = old[i]) != NULL;) {
            old[i] = tracked->next_bucket;
            struct tracked **at = bucket_of(shard, tracked->hash);
            tracked->next_bucket = *at;
            *at = tracked;
        }
    }
    free(old);
    add_to(&table->bytes, (size - old_size) * sizeof *buckets);
    return true;
}

static void count_key(struct tracking_table *table, struct shard *shard, int32_t change)
{
    atomic_fetch_add_explicit(&shard->count, (uint32_t)change, memory_order_relaxed);
    add_to(&table->keys, (uint64_t)(int64_t)change);
}

/* With the tracker as its only client. False: out of memory. */
static bool add_tracked(struct tracking_table *table, struct shard *shard,
                        const struct store_key *key, struct tracker *tracker)
{
    if (atomic_load_explicit(&shard->count, memory_order_relaxed) >= shard->size &&
        !grow(table, shard))
        return false;
    struct tracked *tracked = tracked_new(table, key);
    if (tracked == NULL)
        return false;
    bool is_added = add_client(table, shard, tracked, tracker); /* it has room for one */
    assert(is_added);
    (void)is_added;
    struct tracked **at = bucket_of(shard, key->hash);
    tracked->next_bucket = *at;
    *at = tracked;
    count_key(table, shard, 1);
    return true;
}

bool tracking_table_add(struct tracking_table *table, const struct store_key *key,
                        struct tracker *tracker)
{
    struct shard *shard = shard_of(table, key->hash);
    pthread_mutex_lock(&shard->lock);
    struct tracked *tracked = shard->size > 0 ? *find(shard, key) : NULL;
    bool is_added = tracked != NULL ? add_client(table, shard, tracked, tracker)
                                    : add_tracked(table, shard, key, tracker);
    if (storage_checks_enabled())
        shard_check(shard);
    pthread_mutex_unlock(&shard->lock);
    return is_added;
}

/* Takes an entry out of its bucket, and the shard's lock is released: its trackers are told. */
static void invalidate(struct tracking_table *table, struct shard *shard, struct tracked **at,
                       const struct tracker *except, struct worker *self)
{
    struct tracked *tracked = *at;
    *at = tracked->next_bucket;
    count_key(table, shard, -1);
    add_to(&shard->items, -(uint64_t)tracked->count);
    if (storage_checks_enabled())
        shard_check(shard);
    pthread_mutex_unlock(&shard->lock);
    struct store_key key = {.data = tracked->name, .len = tracked->len, .hash = tracked->hash};
    for (uint32_t i = 0; i < tracked->count; i++)
        if (tracked->clients[i] != except)
            tracker_note(tracked->clients[i], &key, 0, self);
    tracked_free(table, tracked);
}

void tracking_table_take(struct tracking_table *table, const struct store_key *key,
                         const struct tracker *except, struct worker *self)
{
    struct shard *shard = shard_of(table, key->hash);
    if (atomic_load_explicit(&shard->count, memory_order_relaxed) == 0)
        return;
    pthread_mutex_lock(&shard->lock);
    struct tracked **at = shard->size > 0 ? find(shard, key) : NULL;
    if (at != NULL && *at != NULL)
        invalidate(table, shard, at, except, self);
    else
        pthread_mutex_unlock(&shard->lock);
}

bool tracking_table_evict(struct tracking_table *table, uint64_t random, struct worker *self)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *shard = shard_of(table, random + i);
        if (atomic_load_explicit(&shard->count, memory_order_relaxed) == 0)
            continue;
        pthread_mutex_lock(&shard->lock);
        for (uint32_t j = 0; j < shard->size; j++) {
            struct tracked **at = &shard->buckets[(random / SHARDS + j) % shard->size];
            if (*at == NULL)
                continue;
            invalidate(table, shard, at, NULL, self);
            return true;
        }
        pthread_mutex_unlock(&shard->lock);
    }
    return false;
}

/* ---- clearing ---- */

/* At most so many entries; returns how many. */
static uint32_t free_dropped(struct tracking_table *table, struct dropped *dropped, uint32_t most)
{
    uint32_t count = 0;
    for (; dropped->at < dropped->size && count < most; count++) {
        struct tracked *tracked = dropped->buckets[dropped->at];
        if (tracked == NULL) {
            dropped->at++;
            continue;
        }
        dropped->buckets[dropped->at] = tracked->next_bucket;
        tracked_free(table, tracked);
    }
    return count;
}

static bool end_dropped(struct tracking_table *table, struct dropped *dropped)
{
    if (dropped->at < dropped->size)
        return false;
    add_to(&table->bytes, -(dropped->size * sizeof *dropped->buckets));
    free(dropped->buckets);
    free(dropped);
    return true;
}

static void drop_buckets(struct tracking_table *table, struct shard *shard)
{
    struct dropped *dropped = malloc(sizeof *dropped);
    if (dropped == NULL) { /* at once, then */
        struct dropped own = {.buckets = shard->buckets, .size = shard->size};
        (void)free_dropped(table, &own, UINT32_MAX);
        return;
    }
    *dropped = (struct dropped){.buckets = shard->buckets, .size = shard->size};
    shard->buckets = NULL;
    shard->size = 0;
    pthread_mutex_lock(&table->dropped_lock);
    dropped->next = table->dropped;
    table->dropped = dropped;
    atomic_store(&table->has_dropped, true);
    pthread_mutex_unlock(&table->dropped_lock);
}

void tracking_table_clear(struct tracking_table *table)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &table->shards[i];
        pthread_mutex_lock(&shard->lock);
        uint32_t count = atomic_load_explicit(&shard->count, memory_order_relaxed);
        if (count > 0) {
            atomic_store_explicit(&shard->items, 0, memory_order_relaxed);
            count_key(table, shard, -(int32_t)count);
            drop_buckets(table, shard);
        }
        pthread_mutex_unlock(&shard->lock);
    }
}

void tracking_table_rest(struct tracking_table *table, uint32_t most)
{
    if (!atomic_load(&table->has_dropped))
        return;
    pthread_mutex_lock(&table->dropped_lock);
    struct dropped *dropped = table->dropped;
    if (dropped != NULL)
        table->dropped = dropped->next;
    else
        atomic_store(&table->has_dropped, false);
    pthread_mutex_unlock(&table->dropped_lock);
    if (dropped == NULL)
        return;
    (void)free_dropped(table, dropped, most);
    if (end_dropped(table, dropped))
        return;
    pthread_mutex_lock(&table->dropped_lock);
    dropped->next = table->dropped;
    table->dropped = dropped;
    atomic_store(&table->has_dropped, true);
    pthread_mutex_unlock(&table->dropped_lock);
}

/* ---- life cycle ---- */

struct tracking_table *tracking_table_new(void)
{
    struct tracking_table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return NULL;
    pthread_mutex_init(&table->dropped_lock, NULL);
    for (uint32_t i = 0; i < SHARDS; i++)
        pthread_mutex_init(&table->shards[i].lock, NULL);
    return table;
}

void tracking_table_free(struct tracking_table *table)
{
    if (table == NULL)
        return;
    tracking_table_clear(table);
    while (atomic_load(&table->has_dropped))
        tracking_table_rest(table, UINT32_MAX);
    for (uint32_t i = 0; i < SHARDS; i++) {
        pthread_mutex_destroy(&table->shards[i].lock);
        free(table->shards[i].buckets);
    }
    pthread_mutex_destroy(&table->dropped_lock);
    free(table);
}

/* ---- figures ---- */

uint64_t tracking_table_keys(const struct tracking_table *table)
{
    return atomic_load_explicit(&table->keys, memory_order_relaxed);
}

uint64_t tracking_table_items(const struct tracking_table *table)
{
    uint64_t items = 0;
    for (uint32_t i = 0; i < SHARDS; i++)
        items += atomic_load_explicit(&table->shards[i].items, memory_order_relaxed);
    return items;
}

uint64_t tracking_table_bytes(const struct tracking_table *table)
{
    return atomic_load_explicit(&table->bytes, memory_order_relaxed);
}
