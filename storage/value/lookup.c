/*
 * Looking a key up: finds the transaction's own write, or else the committed item, verified on its
 * page.
 */
#include "storage/value/lookup.h"

#include <assert.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/cache/access_clock.h"
#include "storage/txn/txn_memory.h"
#include "storage/value/long_key.h"
#include "storage/value/write_set.h"
#include "storage/txn/item_access.h"
#include "storage/txn/load.h"
#include "storage/txn/databases.h"

#define COPY_SHARE 4u /* of memory: bytes that a run may copy in blocking mode */
#define COPY_LEAST (4u << 20)

void store_key(const struct store *store, struct store_key *key, uint32_t db, const char *data,
               size_t len, enum store_mode mode)
{
    *key = (struct store_key){.data = data,
                              .len = (uint32_t)len,
                              .slot = (uint16_t)store_hash_slot(data, len),
                              .db = (uint8_t)db,
                              .mode = (uint8_t)mode,
                              .hash = format_hash(&store->superblock.secret, data, len)};
}

enum store_result txn_find(struct store_txn *txn, const struct store_key *key, uint32_t database,
                           struct found *found)
{
    struct store *store = txn->store;
    struct partition *partition = engine_partition(store, key->slot);
    uint32_t tag = engine_tag(key->hash, database);
    const struct index *index = &partition->index;
    bool damaged = false;
    assert(database != 0 && lock_is_held(&partition->file.lock));
    found->item = NULL;
    for (uint32_t at = index_find(index, key->slot, tag); at != INDEX_NONE;
         at = index_next(index, key->slot, at)) {
        uint64_t entry = index_get(index, key->slot, at);
        found->page = index_page(entry);
        found->slot = index_item_slot(entry);
        enum store_result result = load_page(txn, &partition->file, found->page, &found->frame);
        if (result != STORE_OK)
            return result;
        uint32_t size = format_class_size(page_file_class_of(&partition->file, found->page));
        const char *memory = arena_memory(&store->cache.arena, found->frame);
        const struct format_item *item = (const void *)(memory + found->slot * size);
        damaged |= item->database == FORMAT_DAMAGED;
        if (item->database == database && long_key_is_of(store, item, key)) {
            found->item = item;
            return STORE_OK;
        }
    }
    return damaged ? STORE_DAMAGED : STORE_OK;
}

static bool expired(const struct store_txn *txn, int64_t expire_ms)
{
    return expire_ms != STORE_NO_EXPIRY && expire_ms < txn->request->now_ms;
}

const struct store_item *txn_describe_write(const struct store_txn *txn, const struct write *write,
                                            struct store_item *item)
{
    if (write->kind == WRITE_DELETE || expired(txn, write->expire_ms))
        return NULL;
    assert(!write->large || !write->trees);
    *item = (struct store_item){.bytes = write->large ? NULL : write->bytes,
                                .length = write->large ? write->large->length : write->len,
                                .expire_ms = write->expire_ms,
                                .wake_ms = write->wake_ms,
                                .type = write->type,
                                .large = write->large != NULL,
                                .origin = write->large};
    if (write->trees) {
        item->trees = ((const struct format_trees *)write->bytes)->count;
        item->bytes = NULL;
        item->length = 0;
        item->origin = write->trees;
    }
    return item;
}

void txn_describe(const struct format_item *found, struct store_item *item)
{
    *item = (struct store_item){.bytes = format_payload(found),
                                .length = found->payload_len,
                                .expire_ms = format_expiry(found),
                                .wake_ms = format_wake(found),
                                .version = found->version,
                                .type = found->type,
                                .large = (found->flags & FORMAT_LARGE) != 0,
                                .origin = found};
    if (item->large) {
        memcpy(&item->length, item->bytes, sizeof item->length);
        item->bytes = NULL;
    }
    if (found->flags & FORMAT_TREES) {
        item->trees = (uint8_t)item->bytes[offsetof(struct format_trees, count)];
        item->bytes = NULL;
        item->length = 0;
    }
}

/* A script may read any number of keys in one run. */
static bool is_too_much(struct store_txn *txn, uint32_t length)
{
    uint64_t most =
        atomic_load_explicit(&txn->store->memory_bytes, memory_order_relaxed) / COPY_SHARE;
    txn->copied_bytes += length;
    return txn->copied_bytes > most && txn->copied_bytes > COPY_LEAST;
}

static enum store_result item_from_disk(struct store_txn *txn, const struct format_item *found,
                                        struct store_item *item)
{
    if (txn->blocking_io) { /* the next look-up may evict the page */
        uint32_t length = format_head_length(found) + found->key_len + found->payload_len;
        struct format_item *copy = is_too_much(txn, length) ? NULL : store_alloc(txn, length);
        if (!copy)
            return STORE_NO_MEMORY;
        found = memcpy(copy, found, length);
    }
    txn_describe(found, item);
    return STORE_OK;
}

static void show(struct store_txn *txn, uint64_t commit)
{
    if (commit > txn->shown)
        txn->shown = commit;
}

static void expire_note(struct store_worker *worker, uint32_t slot, uint32_t tag)
{
    uint32_t count = worker->noted_count;
    const struct expired_name *last = count ? &worker->noted[count - 1] : NULL;
    bool is_known =
        last && last->slot == slot && last->tag == tag; /* noted by the run before a rerun */
    if (count < EXPIRED_NOTES && !is_known)
        worker->noted[worker->noted_count++] = (struct expired_name){(uint16_t)slot, tag};
}

enum store_result store_get(struct store_txn *txn, const struct store_key *key,
                            struct store_item *item)
{
    if (txn->write_count) {
        const struct write *write = txn_find_write(txn, key);
        if (write)
            return txn_describe_write(txn, write, item) ? STORE_OK : STORE_ABSENT;
    }
    uint32_t database = databases_committed(txn, databases_place(txn, key->db));
    if (!database)
        return STORE_ABSENT;
    struct found found;
    enum store_result result = txn_find(txn, key, database, &found);
    if (result != STORE_OK)
        return result;
    if (!found.item) {
        show(txn, engine_partition(txn->store, key->slot)->last_removal);
        return STORE_ABSENT;
    }
    int64_t expiry = format_expiry(found.item);
    show(txn, found.item->version);
    show(txn, txn->store->databases_commit); /* a swap may show an older item */
    if (expired(txn, expiry)) {
        expire_note(txn->worker, key->slot, engine_tag(key->hash, database));
        return STORE_ABSENT;
    }
    /* The run that removes the parts is told by itself whether more are due. */
    if (__builtin_expect((found.item->flags & FORMAT_HAS_WAKE) != 0, 0) &&
        expired(txn, format_wake(found.item)) && txn->cause != STORE_BY_EXPIRY)
        expire_note(txn->worker, key->slot, engine_tag(key->hash, database));
    if (access_kind(&txn->store->cache.uses) != USE_IGNORED && !txn->leaves_no_trace)
        item_use_touch(txn, &engine_partition(txn->store, key->slot)->file, found.page, found.slot);
    return item_from_disk(txn, found.item, item);
}
