/*
 * Walking the index in (hash slot, tag) order: SCAN, KEYS, RANDOMKEY. A cursor is the next place of
 * that order, so nothing that happens to the tables in between can make it miss an entry.
 */
#include "engine.h"

#include <string.h>

#define CURSOR_END ((uint64_t)STORE_SLOT_COUNT << INDEX_TAG_BITS)

/* Entries of one step, first named, then loaded, then shown. */
struct step {
    struct store_txn *txn;
    uint64_t *entries;
    const struct format_item **items;
    uint32_t count, capacity;
};

/* Entries with one tag come in one step, however many hostile keys share it. */
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

static const struct format_item *item_at(struct space *space, uint32_t frame, uint64_t entry)
{
    uint32_t size = format_class_size(space_class_of(space, index_page(entry)));
    return (const void *)(arena_memory(space->arena, frame) + index_item_slot(entry) * size);
}

/* All pages are asked for before any is waited for. */
static enum store_result load_items(struct store_txn *txn, struct space *space, struct step *step)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < step->count; i++) {
        uint32_t frame;
        enum store_result loaded = load_page(txn, space, index_page(step->entries[i]), &frame);
        if (loaded == STORE_WAIT) {
            result = STORE_WAIT;
            continue;
        }
        if (loaded != STORE_OK)
            return loaded;
        const struct format_item *item = item_at(space, frame, step->entries[i]);
        if (item->database == FORMAT_DAMAGED) {
            item = NULL;
        } else if (txn->in_place) {
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

static void show_items(struct store_txn *txn, uint32_t db, const struct step *step,
                       void (*visit)(void *arg, const char *key, uint32_t key_len,
                                     const struct store_item *item),
                       void *arg)
{
    for (uint32_t i = 0; i < step->count; i++) {
        const struct format_item *found = step->items[i];
        int64_t expiry = found ? format_expiry(found) : STORE_NO_EXPIRY;
        if (!found || found->database != txn->store->databases.ids[db] ||
            (expiry != STORE_NO_EXPIRY && expiry < txn->request->now_ms))
            continue;
        struct store_item item;
        txn_describe(found, &item);
        visit(arg, format_key(found), found->key_len, &item);
    }
}

static enum store_result scan_step(struct store_txn *txn, struct partition *partition, uint32_t db,
                                   struct index_cursor *at, uint32_t limit,
                                   void (*visit)(void *arg, const char *key, uint32_t key_len,
                                                 const struct store_item *item),
                                   void *arg)
{
    struct step step = {.txn = txn, .capacity = limit + 16};
    step.entries = store_alloc(txn, step.capacity * sizeof *step.entries);
    if (!step.entries)
        return STORE_NO_MEMORY;
    index_scan(&partition->index, at, limit, add_entry, &step);
    step.items = store_alloc(txn, step.count * sizeof *step.items);
    if (!step.items)
        return STORE_NO_MEMORY;
    enum store_result result = load_items(txn, &partition->space, &step);
    if (result == STORE_OK)
        show_items(txn, db, &step, visit, arg);
    return result;
}

enum store_result store_scan(struct store_txn *txn, uint32_t db, uint64_t *cursor, uint32_t limit,
                             void (*visit)(void *arg, const char *key, uint32_t key_len,
                                           const struct store_item *item),
                             void *arg)
{
    struct store *store = txn->store;
    if (*cursor >= CURSOR_END) {
        *cursor = 0;
        return STORE_OK;
    }
    struct index_cursor at = {.slot = (uint32_t)(*cursor >> INDEX_TAG_BITS),
                              .tag = (uint32_t)*cursor & INDEX_TAG_MAX};
    struct partition *partition = engine_partition(store, at.slot);
    bool held = request_holds(txn, partition->space.id);
    if (!held)
        pthread_mutex_lock(&partition->space.lock);
    enum store_result result = scan_step(txn, partition, db, &at, limit, visit, arg);
    if (!held)
        pthread_mutex_unlock(&partition->space.lock);
    txn->shown = atomic_load_explicit(&store->journal.appended, memory_order_acquire);
    if (result != STORE_OK)
        return result;
    *cursor = (uint64_t)at.slot << INDEX_TAG_BITS | at.tag;
    if (*cursor >= CURSOR_END)
        *cursor = 0;
    return STORE_OK;
}

/* A partition by its share of the keys, then a place in it. */
uint64_t store_scan_at(const struct store *store, uint32_t db, uint64_t random)
{
    uint64_t keys = 0, passed = 0;
    uint64_t counts[FORMAT_PARTITION_MAX];
    for (uint32_t i = 0; i < store->partition_count; i++) {
        struct partition *partition = &store->partitions[i];
        pthread_mutex_lock(&partition->space.lock);
        counts[i] = partition->databases[db].keys;
        pthread_mutex_unlock(&partition->space.lock);
        keys += counts[i];
    }
    if (keys == 0)
        return 0;
    uint32_t chosen = 0;
    while (passed + counts[chosen] <= random % keys)
        passed += counts[chosen++];
    uint64_t place = random * 0x9e3779b97f4a7c15ull;
    uint64_t first = ((uint64_t)chosen << store->slot_shift) << INDEX_TAG_BITS;
    return first + place % (1ull << (store->slot_shift + INDEX_TAG_BITS));
}
