/*
 * Snapshots: all items as they were at one commit, while writers continue.
 *
 * The walker visits the index in (hash slot, tag) order, a batch at a time; `position` is the first
 * position it has not visited. A writer that is about to replace an item of the snapshot at a
 * position not yet visited first hands over a copy. The item's version tells whether it belongs to
 * the snapshot: up to `seen` it is unchanged since the beginning. So it is handed over at most
 * once, at its first change.
 *
 * A snapshot never delays writers. Copies that they hand over are given out before the walk
 * continues, so memory holds only the items changed since the caller's last step; over the limit,
 * the snapshot fails with an error.
 *
 * Invariants
 * 1. An item of version <= seen whose database is in the snapshot's own map, unless it is expired
 *    or damaged, is in exactly one place: in the index at or after `position`, in `handed`, in
 *    `ready`, or given out.
 * 2. `position` moves only under the lock of the partition it is in, together with the copying of
 *    the items it passes; and a change is reported under the lock of its own partition. So a
 *    reported key compares with the `position` that is read as with the current one.
 * 3. While a snapshot is open only commits remove items from the index: the maintenance thread does
 *    not sweep flushed databases (sweep.c), and a flush of everything leaves them to be swept later
 *    (flush.c). Runs of large values given up meanwhile are not reused (free.c).
 */
#include "storage/exec/snapshot.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/exec/change.h"
#include "storage/value/long_key.h"
#include "storage/exec/reader.h"
#include "storage/txn/wait.h"
#include "storage/txn/load.h"
#include "storage/value/extent.h"

#define POSITION_END ((uint64_t)STORE_SLOT_COUNT << INDEX_TAG_BITS)
#define BATCH_MOST 64u /* index entries per step, but see batch_limit */

/* A copy of an item. */
struct kept {
    STAILQ_ENTRY(kept) link;
    uint64_t size;
    uint8_t db; /* its logical database when the snapshot began */
    bool handed_over;
    char *long_key;          /* the key's bytes, once they have been read */
    _Alignas(8) char item[]; /* struct format_item with key and payload */
};

STAILQ_HEAD(kept_list, kept);

struct store_snapshot {
    struct store_request request; /* first member: run and done cast it back */
    struct store *store;
    struct store_worker *worker;
    LIST_ENTRY(store_snapshot) of_open;
    struct store_snapshot_options options;
    struct format_databases databases; /* the map when the snapshot began */
    uint64_t seen;
    _Atomic uint64_t position; /* hash slot and tag */

    pthread_mutex_t lock; /* a leaf lock: taken where changes are reported */
    struct kept_list handed;
    enum store_result handing; /* error of a hand-over */
    uint64_t handed_bytes;     /* not yet given out */

    /* only used by the worker */
    struct kept_list ready;
    struct kept *shown;
    struct store_snapshot_item item;
    enum store_result result;
    bool walking; /* the request is in progress */
    bool closed;  /* during the request: freed when that is done */
};

/* ---- copies ---- */

static struct kept *list_take(struct kept_list *list)
{
    struct kept *kept = STAILQ_FIRST(list);
    STAILQ_REMOVE_HEAD(list, link);
    return kept;
}

static void free_kept(struct kept *kept)
{
    if (kept)
        free(kept->long_key);
    free(kept);
}

static void list_free(struct kept_list *list)
{
    while (!STAILQ_EMPTY(list))
        free_kept(list_take(list));
}

static struct kept *copy_item(const struct format_item *item, int db)
{
    uint32_t length = format_head_length(item) + item->key_len + item->payload_len;
    struct kept *kept = malloc(sizeof *kept + length);
    if (!kept)
        return NULL;
    *kept = (struct kept){.size = sizeof *kept + length, .db = (uint8_t)db};
    memcpy(kept->item, item, length);
    return kept;
}

/* The item's logical database when the snapshot began, or -1: not in the snapshot. */
static int place_of(const struct store_snapshot *snapshot, const struct format_item *item)
{
    if (item->database == FORMAT_DAMAGED || item->version > snapshot->seen ||
        item->flags & FORMAT_KEY_TREE)
        return -1;
    int64_t expiry = format_expiry(item);
    if (expiry != STORE_NO_EXPIRY && expiry < snapshot->options.now_ms)
        return -1;
    for (int db = 0; db < STORE_DB_COUNT; db++)
        if (snapshot->databases.ids[db] == item->database)
            return db;
    return -1;
}

/* ---- hand-over by writers ---- */

static void hand_over(struct store_snapshot *snapshot, struct kept *kept)
{
    pthread_mutex_lock(&snapshot->lock);
    bool fits = kept && snapshot->handed_bytes + kept->size <= snapshot->options.memory_bytes;
    if (snapshot->handing == STORE_OK && !fits)
        snapshot->handing = kept ? STORE_TOO_LARGE : STORE_NO_MEMORY;
    if (snapshot->handing == STORE_OK) {
        kept->handed_over = true;
        snapshot->handed_bytes += kept->size;
        STAILQ_INSERT_TAIL(&snapshot->handed, kept, link);
        kept = NULL;
    }
    pthread_mutex_unlock(&snapshot->lock);
    free(kept);
}

static void before_change(void *arg, const struct store_change *change)
{
    struct store_snapshot *snapshot = arg;
    if (change->kind != STORE_CHANGE_KEY || !change->old)
        return;
    const struct format_item *item = change->old->origin;
    int db = place_of(snapshot, item);
    if (db < 0)
        return;
    uint64_t place = (uint64_t)change->key->slot << INDEX_TAG_BITS |
                     engine_tag(change->key->hash, item->database);
    if (place >= atomic_load_explicit(&snapshot->position, memory_order_relaxed))
        hand_over(snapshot, copy_item(item, db));
}

/* ---- opening and closing ---- */

uint64_t snapshot_oldest(const struct store *store)
{
    uint64_t oldest = UINT64_MAX;
    const struct store_snapshot *s;
    LIST_FOREACH (s, &store->snapshots, of_open)
        if (s->seen < oldest)
            oldest = s->seen;
    return oldest;
}

enum store_result store_snapshot_begin(struct store_worker *worker,
                                       const struct store_snapshot_options *options,
                                       struct store_snapshot **snapshot)
{
    struct store *store = worker->store;
    struct store_snapshot *s = calloc(1, sizeof *s);
    if (!s)
        return STORE_NO_MEMORY;
    s->store = store;
    s->worker = worker;
    s->options = *options;
    STAILQ_INIT(&s->handed);
    STAILQ_INIT(&s->ready);
    pthread_mutex_init(&s->lock, NULL);
    change_lock_all(store);
    bool added = change_add_observer(store, before_change, s);
    if (added) {
        s->databases = store->databases;
        pthread_mutex_lock(&store->extents.lock);
        s->seen = atomic_load(&store->journal.appended);
        LIST_INSERT_HEAD(&store->snapshots, s, of_open);
        pthread_mutex_unlock(&store->extents.lock);
    }
    change_unlock_all(store);
    if (added) {
        *snapshot = s;
        return STORE_OK;
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
    return STORE_INVALID;
}

uint64_t store_snapshot_commit(const struct store_snapshot *snapshot)
{
    return snapshot->seen;
}

/* Frees the item that was given out last; the caller must not use it any more. */
static void release_shown(struct store_snapshot *snapshot)
{
    if (snapshot->item.reader)
        store_reader_close(snapshot->item.reader);
    snapshot->item.reader = NULL;
    if (snapshot->shown && snapshot->shown->handed_over) {
        pthread_mutex_lock(&snapshot->lock);
        snapshot->handed_bytes -= snapshot->shown->size;
        pthread_mutex_unlock(&snapshot->lock);
    }
    free_kept(snapshot->shown);
    snapshot->shown = NULL;
}

/* No earlier than its request is done, which may be reading a long key that was since deleted. */
static void destroy(struct store_snapshot *snapshot)
{
    struct store *store = snapshot->store;
    change_lock_all(store);
    pthread_mutex_lock(&store->extents.lock);
    LIST_REMOVE(snapshot, of_open);
    pthread_mutex_unlock(&store->extents.lock);
    change_unlock_all(store);
    maintenance_ask(store); /* for the runs and items that it could not free or sweep */
    list_free(&snapshot->ready);
    list_free(&snapshot->handed);
    pthread_mutex_destroy(&snapshot->lock);
    free(snapshot);
}

void store_snapshot_end(struct store_snapshot *snapshot)
{
    struct store *store = snapshot->store;
    release_shown(snapshot);
    change_lock_all(store);
    change_remove_observer(store, before_change, snapshot);
    change_unlock_all(store);
    if (snapshot->walking)
        snapshot->closed = true;
    else
        destroy(snapshot);
}

/* ---- the walk ---- */

/* The entries of one step. */
struct batch {
    struct store_txn *txn;
    uint64_t *entries;
    uint32_t count, capacity;
    bool out_of_memory;
};

/* Entries with the same tag come in one step, however many keys share it. */
static bool add_entry(void *arg, uint32_t slot, uint64_t entry)
{
    struct batch *batch = arg;
    (void)slot;
    if (batch->count == batch->capacity) {
        uint32_t capacity = batch->capacity ? 2 * batch->capacity : BATCH_MOST;
        uint64_t *grown = store_alloc(batch->txn, capacity * sizeof *grown);
        batch->out_of_memory = !grown;
        if (!grown)
            return false;
        if (batch->count)
            memcpy(grown, batch->entries, batch->count * sizeof *grown);
        batch->entries = grown;
        batch->capacity = capacity;
    }
    batch->entries[batch->count++] = entry;
    return true;
}

/* All pages of a step are pinned together: at most a small part of the cache. */
static uint32_t batch_limit(const struct store *store)
{
    uint32_t limit = atomic_load_explicit(&store->cache.arena.limit, memory_order_relaxed) / 16;
    return limit > BATCH_MOST ? BATCH_MOST : limit > 0 ? limit : 1;
}

static enum store_result copy_entry(struct store_snapshot *snapshot, struct page_file *file,
                                    uint32_t frame, uint64_t entry)
{
    uint32_t size = format_class_size(page_file_class_of(file, index_page(entry)));
    const struct format_item *item =
        (const void *)(arena_memory(file->arena, frame) + index_item_slot(entry) * size);
    int db = place_of(snapshot, item);
    if (db < 0)
        return STORE_OK;
    struct kept *kept = copy_item(item, db);
    if (!kept)
        return STORE_NO_MEMORY;
    STAILQ_INSERT_TAIL(&snapshot->ready, kept, link);
    return STORE_OK;
}

/* Requests all pages before it waits for any; then copies all items at once. */
static enum store_result copy_batch(struct store_snapshot *snapshot, struct page_file *file,
                                    const struct batch *batch)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t frame;
        enum store_result one = load_page(batch->txn, file, index_page(batch->entries[i]), &frame);
        if (one == STORE_OK && result == STORE_OK)
            one = copy_entry(snapshot, file, frame, batch->entries[i]);
        if (one == STORE_WAIT)
            result = STORE_WAIT;
        else if (one != STORE_OK)
            return one;
        if (batch->txn->starved)
            return STORE_WAIT;
    }
    return result;
}

static enum store_result walk(struct store_txn *txn, struct store_request *request)
{
    struct store_snapshot *snapshot = (struct store_snapshot *)request;
    uint64_t position = atomic_load_explicit(&snapshot->position, memory_order_relaxed);
    struct index_cursor at = {.slot = (uint32_t)(position >> INDEX_TAG_BITS),
                              .tag = (uint32_t)position & INDEX_TAG_MAX};
    struct partition *partition = engine_partition(txn->store, at.slot);
    struct batch batch = {.txn = txn};
    if (snapshot->closed)
        return STORE_ABSENT;
    txn->starved = false;
    pthread_mutex_lock(&partition->file.lock);
    index_scan(&partition->index, &at, batch_limit(txn->store), add_entry, &batch);
    enum store_result result =
        batch.out_of_memory ? STORE_NO_MEMORY : copy_batch(snapshot, &partition->file, &batch);
    if (result == STORE_OK)
        atomic_store_explicit(&snapshot->position, (uint64_t)at.slot << INDEX_TAG_BITS | at.tag,
                              memory_order_relaxed);
    else
        list_free(&snapshot->ready);
    pthread_mutex_unlock(&partition->file.lock);
    return result;
}

static void walked(struct store_request *request, enum store_result result)
{
    struct store_snapshot *snapshot = (struct store_snapshot *)request;
    snapshot->walking = false;
    snapshot->result = result;
    if (snapshot->closed)
        destroy(snapshot);
    else if (snapshot->options.ready)
        snapshot->options.ready(snapshot->options.arg);
}

/* Reads the key of the next item to give out; the runs that it names stay allocated while the
 * snapshot is open. */
static enum store_result load_long_key(struct store_txn *txn, struct store_request *request)
{
    struct store_snapshot *snapshot = (struct store_snapshot *)request;
    const char *bytes;
    if (snapshot->closed)
        return STORE_ABSENT;
    struct kept *kept = STAILQ_FIRST(&snapshot->ready);
    enum store_result result = extent_load_key(txn, (const void *)kept->item, &bytes);
    if (result == STORE_OK)
        kept->long_key = extent_take_key(txn, bytes);
    if (result != STORE_DAMAGED)
        return result;
    snapshot->shown = list_take(&snapshot->ready); /* taken to be freed, not given out */
    release_shown(snapshot);
    return STORE_OK;
}

static bool lacks_key(const struct kept *kept)
{
    const struct format_item *item = (const void *)kept->item;
    return item->flags & FORMAT_LONG_KEY && !kept->long_key;
}

/* Loads one more batch, or the key of the next item, now or later. */
static void go_on(struct store_snapshot *snapshot,
                  enum store_result (*run)(struct store_txn *txn, struct store_request *request))
{
    snapshot->request =
        (struct store_request){.run = run, .done = walked, .scope = STORE_SCOPE_NONE};
    snapshot->walking = true;
    enum store_result result = store_execute(snapshot->worker, &snapshot->request);
    if (result == STORE_WAIT)
        return;
    snapshot->walking = false;
    snapshot->result = result;
}

/* ---- output ---- */

/* Moves the items that writers have handed over to `ready`. */
static void take_handed(struct store_snapshot *snapshot)
{
    pthread_mutex_lock(&snapshot->lock);
    STAILQ_CONCAT(&snapshot->ready, &snapshot->handed);
    if (snapshot->result == STORE_OK)
        snapshot->result = snapshot->handing;
    pthread_mutex_unlock(&snapshot->lock);
}

static enum store_result show(struct store_snapshot *snapshot,
                              const struct store_snapshot_item **item)
{
    struct kept *kept = snapshot->shown = list_take(&snapshot->ready);
    const struct format_item *found = (const void *)kept->item;
    const char *payload = format_payload(found);
    snapshot->item =
        (struct store_snapshot_item){.db = kept->db,
                                     .type = found->type,
                                     .key_len = (uint32_t)long_key_length(found),
                                     .key = kept->long_key ? kept->long_key : format_key(found),
                                     .expire_ms = format_expiry(found),
                                     .version = found->version,
                                     .length = found->payload_len,
                                     .bytes = payload};
    *item = &snapshot->item;
    if (found->flags & FORMAT_TREES) {
        snapshot->item.trees = (uint8_t)payload[offsetof(struct format_trees, count)];
        snapshot->item.bytes = NULL;
        snapshot->item.length = 0;
    }
    if (!(found->flags & FORMAT_LARGE))
        return STORE_OK;
    snapshot->item.bytes = NULL;
    memcpy(&snapshot->item.length, payload, sizeof snapshot->item.length);
    snapshot->result = reader_open_root(snapshot->worker, payload, found->payload_len,
                                        snapshot->seen, &snapshot->item.reader);
    if (snapshot->result == STORE_OK)
        store_reader_on_ready(snapshot->item.reader, snapshot->options.ready,
                              snapshot->options.arg);
    return snapshot->result;
}

enum store_result store_snapshot_next(struct store_snapshot *snapshot,
                                      const struct store_snapshot_item **item)
{
    release_shown(snapshot);
    while (!snapshot->walking) {
        take_handed(snapshot);
        if (snapshot->result != STORE_OK)
            return snapshot->result;
        const struct kept *first = STAILQ_FIRST(&snapshot->ready);
        if (first && lacks_key(first))
            go_on(snapshot, load_long_key);
        else if (first)
            return show(snapshot, item);
        else if (atomic_load_explicit(&snapshot->position, memory_order_relaxed) == POSITION_END)
            return STORE_ABSENT;
        else
            go_on(snapshot, walk);
    }
    return STORE_WAIT;
}
