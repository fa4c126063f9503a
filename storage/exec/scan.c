/*
 * Walking the index in (hash slot, tag) order: SCAN, KEYS, RANDOMKEY. A cursor is the next position
 * in this order, so a change of the tables in between cannot make it miss an entry.
 *
 * A transaction's own writes are shown where they would stand in the index; entries that they
 * replace are skipped. A place made by a flush of this transaction has no id yet: its number serves
 * instead for the tags of its writes.
 */
#include "storage/value/long_key.h"

#include <assert.h>
#include <string.h>

#include "storage/exec/change.h"
#include "storage/txn/txn_memory.h"
#include "storage/txn/wait.h"
#include "storage/value/lookup.h"
#include "storage/value/write_set.h"
#include "storage/txn/load.h"
#include "storage/txn/databases.h"
#include "storage/value/extent.h"

#define LONG_KEYS_MOST (16u << 20) /* bytes of long keys per step; one key may be longer */
#define LONG_KEYS_SHARE 32u        /* of memory, likewise */
#define CURSOR_END ((uint64_t)STORE_SLOT_COUNT << INDEX_TAG_BITS)

/* Entries of one step: first collected, then loaded, then shown. */
struct step {
    struct store_txn *txn;
    uint64_t *entries;
    const struct format_item **items;
    struct shown_key *keys; /* keys of the entries to be shown */
    uint32_t count, capacity;
};

struct shown_key {
    const char *data;
    uint32_t len;
};

/* Entries with the same tag come in one step, however many colliding keys a client has made. */
static bool grow(struct step *step)
{
    uint32_t capacity = 2 * step->capacity;
    uint64_t *entries = store_alloc(step->txn, capacity * sizeof *entries);
    if (!entries)
        return false;
    memcpy(entries, step->entries, step->count * sizeof *entries);
    step->entries = entries;
    step->capacity = capacity;
    return true;
}

static bool add_entry(void *arg, uint32_t slot, uint64_t entry)
{
    struct step *step = arg;
    (void)slot;
    if (step->count == step->capacity && !grow(step))
        return false;
    step->entries[step->count++] = entry;
    return true;
}

static const struct format_item *item_at(struct page_file *file, uint32_t frame, uint64_t entry)
{
    uint32_t size = format_class_size(page_file_class_of(file, index_page(entry)));
    return (const void *)(arena_memory(file->arena, frame) + index_item_slot(entry) * size);
}

/* Requests all pages before it waits for any. */
static enum store_result load_items(struct store_txn *txn, struct page_file *file,
                                    struct step *step)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < step->count; i++) {
        uint32_t frame;
        enum store_result loaded = load_page(txn, file, index_page(step->entries[i]), &frame);
        if (loaded == STORE_WAIT) {
            result = STORE_WAIT;
            continue;
        }
        if (loaded != STORE_OK)
            return loaded;
        const struct format_item *item = item_at(file, frame, step->entries[i]);
        if (item->database == FORMAT_DAMAGED) {
            item = NULL;
        } else if (txn->blocking_io) {
            uint32_t length = format_head_length(item) + item->key_len + item->payload_len;
            void *copy = store_alloc(txn, length);
            if (!copy)
                return STORE_NO_MEMORY;
            item = memcpy(copy, item, length);
        }
        step->items[i] = item;
    }
    return result;
}

/* Ends the step before entry i, which has a long key, if possible: entries with the same tag belong
 * to one step. */
static bool cut(struct step *step, uint32_t i, uint64_t *end)
{
    uint32_t tag = index_tag(step->entries[i]);
    if (i == 0 || tag == index_tag(step->entries[i - 1]))
        return false;
    *end = (uint64_t)format_key_slot(step->items[i]) << INDEX_TAG_BITS | tag;
    step->count = i;
    return true;
}

static uint64_t most_read(const struct store *store)
{
    uint64_t most =
        atomic_load_explicit(&store->memory_bytes, memory_order_relaxed) / LONG_KEYS_SHARE;
    return most < LONG_KEYS_MOST ? most : LONG_KEYS_MOST;
}

/* Removes entries that are not to be shown; reads keys that are not stored in their items. If these
 * take too much memory, *end is set to an earlier end of the step. */
static enum store_result load_keys(struct store_txn *txn, uint32_t db, struct step *step,
                                   uint64_t *end)
{
    uint32_t database = databases_committed(txn, databases_place(txn, db));
    uint64_t read = 0, most = most_read(txn->store);
    for (uint32_t i = 0; i < step->count; i++) {
        const struct format_item *item = step->items[i];
        int64_t expiry = item ? format_expiry(item) : STORE_NO_EXPIRY;
        if (!item || item->database != database || item->flags & FORMAT_KEY_TREE ||
            (expiry != STORE_NO_EXPIRY && expiry < txn->request->now_ms)) {
            step->items[i] = NULL;
            continue;
        }
        read += item->flags & FORMAT_LONG_KEY ? long_key_length(item) : 0;
        if (read > most && item->flags & FORMAT_LONG_KEY && cut(step, i, end))
            return STORE_OK;
        struct shown_key *key = &step->keys[i];
        enum store_result result = long_key_get(txn, item, &key->data, &key->len);
        if (result == STORE_DAMAGED)
            step->items[i] = NULL;
        else if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

/* Whether this transaction has written the item's key. */
static bool is_replaced(struct store_txn *txn, uint32_t db, const struct format_item *item,
                        const struct shown_key *shown)
{
    if (txn->write_count == 0)
        return false;
    struct store_key key = {.data = shown->data,
                            .len = shown->len,
                            .db = (uint8_t)db,
                            .hash = format_key_hash(&txn->store->superblock.secret, item)};
    return txn_find_write(txn, &key) != NULL;
}

static void show_items(struct store_txn *txn, uint32_t db, const struct step *step,
                       store_visit *visit, void *arg)
{
    for (uint32_t i = 0; i < step->count; i++) {
        const struct format_item *found = step->items[i];
        const struct shown_key *key = &step->keys[i];
        if (!found || is_replaced(txn, db, found, key))
            continue;
        struct store_item item;
        txn_describe(found, &item);
        visit(arg, key->data, key->len, &item);
    }
    extent_drop_keys(txn);
}

/* Shows the transaction's own writes between two positions. */
static void show_writes(struct store_txn *txn, uint32_t db, uint64_t from, uint64_t to,
                        store_visit *visit, void *arg)
{
    uint32_t place = databases_place(txn, db);
    uint32_t id = databases_committed(txn, place);
    for (uint32_t i = 0; i < txn->write_count; i++) {
        const struct write *write = &txn->writes[i];
        struct store_item item;
        uint64_t at = (uint64_t)write->key.slot << INDEX_TAG_BITS |
                      engine_tag(write->key.hash, id ? id : place);
        if (write->place == place && at >= from && at < to && txn_describe_write(txn, write, &item))
            visit(arg, write->key.data, write->key.len, &item);
    }
}

/* Loads the entries to be shown from *cursor on, within one partition; then sets *cursor to the end
 * of the step, which may be the beginning of the next partition. */
static enum store_result load_step(struct step *step, uint32_t db, uint64_t *cursor,
                                   uint32_t budget)
{
    struct store_txn *txn = step->txn;
    struct index_cursor at = {.slot = (uint32_t)(*cursor >> INDEX_TAG_BITS),
                              .tag = (uint32_t)*cursor & INDEX_TAG_MAX};
    struct partition *partition = engine_partition(txn->store, at.slot);
    step->capacity = budget + 16;
    step->entries = store_alloc(txn, step->capacity * sizeof *step->entries);
    if (!step->entries)
        return STORE_NO_MEMORY;
    index_scan(&partition->index, &at, budget, add_entry, step);
    step->items = store_alloc(txn, step->count * sizeof *step->items);
    step->keys = store_alloc(txn, step->count * sizeof *step->keys);
    if (!step->items || !step->keys)
        return STORE_NO_MEMORY;
    *cursor = (uint64_t)at.slot << INDEX_TAG_BITS | at.tag;
    enum store_result result = load_items(txn, &partition->file, step);
    return result == STORE_OK ? load_keys(txn, db, step, cursor) : result;
}

/* One run may walk many steps: each frees its memory except for what `visit` has taken. */
static enum store_result scan_step(struct store_txn *txn, uint32_t db, uint64_t *cursor,
                                   uint32_t *budget, store_visit *visit, void *arg)
{
    struct step step = {.txn = txn};
    uint64_t end = *cursor;
    struct memory_block *of_run = txn_memory_swap(txn, NULL);
    enum store_result result = load_step(&step, db, &end, *budget);
    struct memory_block *of_step = txn_memory_swap(txn, of_run);
    if (result == STORE_OK) {
        show_items(txn, db, &step, visit, arg);
        *cursor = end;
        *budget -= step.count < *budget ? step.count : *budget;
    }
    txn_memory_free(txn, of_step);
    return result;
}

/* With STORE_SCOPE_ALL the partition's lock is held already. */
static enum store_result locked_step(struct store_txn *txn, uint32_t db, uint64_t *cursor,
                                     uint32_t *budget, store_visit *visit, void *arg)
{
    struct page_file *file =
        &engine_partition(txn->store, (uint32_t)(*cursor >> INDEX_TAG_BITS))->file;
    bool held = request_holds(txn, file->id);
    if (!held)
        pthread_mutex_lock(&file->lock);
    enum store_result result = scan_step(txn, db, cursor, budget, visit, arg);
    if (!held)
        pthread_mutex_unlock(&file->lock);
    return result;
}

/* Skips partitions without entries, and ends with the first that has some: a further one might have
 * to wait after entries have been shown. */
enum store_result store_scan(struct store_txn *txn, uint32_t db, uint64_t *cursor, uint32_t *budget,
                             store_visit *visit, void *arg)
{
    assert(txn->request->scope != STORE_SCOPE_KEYS && *budget > 0);
    uint64_t at = *cursor;
    uint32_t left = *budget;
    if (databases_committed(txn, databases_place(txn, db)) == 0)
        at = CURSOR_END;
    while (at < CURSOR_END && left == *budget) {
        enum store_result result = locked_step(txn, db, &at, &left, visit, arg);
        if (result != STORE_OK)
            return result;
    }
    txn->shown = atomic_load_explicit(&txn->store->journal.appended, memory_order_acquire);
    show_writes(txn, db, *cursor, at, visit, arg);
    *cursor = at < CURSOR_END ? at : 0;
    *budget = left;
    return STORE_OK;
}

/* ---- counting ---- */

/* Whether the write adds or removes a key, or one with an expiry: looks up the item that it
 * replaces. */
static enum store_result add_write(struct store_txn *txn, const struct write *write,
                                   struct store_db_stats *stats)
{
    uint32_t database = databases_committed(txn, write->place);
    struct found found = {0};
    if (write->kind == WRITE_PUT) {
        stats->keys++;
        stats->expires += write->expire_ms != STORE_NO_EXPIRY;
    }
    if (!database)
        return STORE_OK;
    enum store_result result = txn_find(txn, &write->key, database, &found);
    if (result == STORE_DAMAGED || (result == STORE_OK && !found.item))
        return STORE_OK;
    if (result != STORE_OK)
        return result;
    stats->keys--;
    stats->expires -= format_expiry(found.item) != STORE_NO_EXPIRY;
    return STORE_OK;
}

/* Sums the partitions' counts. With the locks of all partitions, so that no commit is counted in
 * part, or without being part of `shown`; a transaction that holds locks already may not wait for
 * others. */
static struct store_db_stats sum_counts(struct store_txn *txn, uint32_t place)
{
    struct store_db_stats sum = {0};
    bool holds_none = txn->locked[0] == 0 && txn->locked[1] == 0;
    if (holds_none)
        change_lock_all(txn->store);
    if (place < STORE_DB_COUNT)
        sum = store_db_stats(txn->store, place);
    txn->shown = atomic_load_explicit(&txn->store->journal.appended, memory_order_acquire);
    if (holds_none)
        change_unlock_all(txn->store);
    return sum;
}

enum store_result store_txn_db_stats(struct store_txn *txn, uint32_t db,
                                     struct store_db_stats *stats)
{
    uint32_t place = databases_place(txn, db);
    *stats = sum_counts(txn, place);
    enum store_result waits = STORE_OK;
    for (uint32_t i = 0; i < txn->write_count; i++) {
        if (txn->writes[i].place != place)
            continue;
        enum store_result result = add_write(txn, &txn->writes[i], stats);
        if (result == STORE_WAIT)
            waits = result;
        else if (result != STORE_OK)
            return result;
    }
    return waits;
}

/* Chooses a partition by its share of the keys, then a position in it. */
uint64_t store_scan_at(const struct store_txn *txn, uint32_t db, uint64_t random)
{
    const struct store *store = txn->store;
    uint32_t place = databases_place(txn, db);
    uint64_t keys = 0, passed = 0;
    uint64_t counts[FORMAT_PARTITION_MAX];
    for (uint32_t i = 0; i < store->partition_count && place < STORE_DB_COUNT; i++) {
        counts[i] = counter_read(&store->partitions[i].databases[place].keys);
        keys += counts[i];
    }
    if (keys == 0)
        return 0;
    uint32_t chosen = 0;
    while (passed + counts[chosen] <= random % keys)
        passed += counts[chosen++];
    uint64_t within = random * 0x9e3779b97f4a7c15ull;
    uint64_t first = ((uint64_t)chosen << store->slot_shift) << INDEX_TAG_BITS;
    return first + within % (1ull << (store->slot_shift + INDEX_TAG_BITS));
}
