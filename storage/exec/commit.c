/*
 * Committing: reserve everything that can run out, then number, journal and apply in one step.
 *
 * Invariants
 * 1. Until journal_begin succeeds, only reservations are made, which commit_abandon gives back;
 *    after it nothing can fail or wait.
 * 2. The locks of all partitions concerned are held from the first look-up to the last change, so
 *    that no other transaction sees half of it.
 * 3. A page is written back only after its frame's newest commit is durable (writeback.c), and
 *    the journal is kept until the page is durable: so each slot's newest version is always in one
 *    of the two.
 */
#include "storage/exec/commit.h"

#include <assert.h>
#include <string.h>

#include "storage/value/long_record.h"
#include "storage/tree/bulk_load.h"
#include "storage/exec/change.h"
#include "storage/exec/flush.h"
#include "storage/value/long_key.h"
#include "storage/cache/access_clock.h"
#include "storage/txn/txn_memory.h"
#include "storage/txn/wait.h"
#include "storage/txn/room_wanted.h"
#include "storage/value/lookup.h"
#include "storage/value/slot_alloc.h"
#include "storage/journal/record.h"
#include "storage/txn/item_access.h"
#include "storage/txn/databases.h"
#include "storage/value/extent_write.h"
#include "storage/tree/tree.h"
#include "storage/tree/tree_owner.h"
#include "storage/tree/tree_edit.h"
#include "storage/tree/tree_drop.h"
#include "storage/tree/key_tree.h"
#include "storage/base/checks.h"
#include "storage/value/free.h"

static bool changes_databases(const struct store_txn *txn)
{
    return txn->arrangement.changed;
}

static bool is_doomed(const struct store_txn *txn, const struct write *write)
{
    return write < txn->writes + txn->arrangement.doomed;
}

/* ---- reserving ---- */

static void give_back_slot(struct store_txn *txn, struct write *write)
{
    if (write->slot_taken)
        page_file_give_slot(&engine_partition(txn->store, write->key.slot)->file, write->new_page,
                            write->new_slot);
    write->slot_taken = false;
}

static enum store_result prepare_put(struct store_txn *txn, struct page_file *file,
                                     struct write *write)
{
    uint32_t payload = write->large ? write->large->root_bytes : write->len;
    uint32_t head =
        format_head_with(write->expire_ms != STORE_NO_EXPIRY, write->wake_ms != STORE_NO_EXPIRY);
    write->item_len = head + long_key_in_item(&write->key) + payload;
    assert(write->item_len <= FORMAT_ITEM_MAX);
    uint32_t size_class = format_class_for(write->item_len);
    if (write->old_page && page_file_class_of(file, write->old_page) == size_class) {
        give_back_slot(txn, write);
        write->new_page = write->old_page;
        write->new_slot = write->old_slot;
        return STORE_OK;
    }
    if (!write->slot_taken) {
        enum store_result result =
            commit_take_slot(txn, file, size_class, &write->new_page, &write->new_slot);
        if (result != STORE_OK)
            return result;
        write->slot_taken = true;
    }
    enum store_result result =
        commit_slot_frame(txn, file, write->new_page, write->new_slot, &write->new_frame);
    if (result != STORE_OK) {
        write->new_frame = 0;
        return result;
    }
    return commit_hold(txn, file, &write->new_frame);
}

/* Copies the old item's references to what is freed with it: a large value, a collection, the bytes
 * of a long key. */
static enum store_result keep_roots(struct store_txn *txn, struct write *write,
                                    const struct format_item *old)
{
    write->old_root = write->old_key = NULL;
    write->old_trees = NULL;
    if (!old || !(old->flags & (FORMAT_LARGE | FORMAT_TREES | FORMAT_LONG_KEY)))
        return STORE_OK;
    bool drops_key =
        old->flags & FORMAT_LONG_KEY && !(write->long_key && write->long_key->bytes.base);
    void *payload = store_alloc(txn, old->payload_len);
    void *key = drops_key ? store_alloc(txn, old->key_len) : NULL;
    if (!payload || (drops_key && !key))
        return STORE_NO_MEMORY;
    memcpy(payload, format_payload(old), old->payload_len);
    if (old->flags & FORMAT_LARGE)
        write->old_root = payload;
    else if (old->flags & FORMAT_TREES)
        write->old_trees = payload;
    if (drops_key)
        write->old_key = memcpy(key, format_key_root(old), format_key_root_length(old));
    return STORE_OK;
}

static enum store_result find_old(struct store_txn *txn, const struct write *write,
                                  uint32_t database, struct found *found)
{
    if (write->is_key_tree)
        return key_tree_find(txn, (uint32_t)write->key.slot >> txn->store->slot_shift, database,
                             found);
    return database ? txn_find(txn, &write->key, database, found) : STORE_OK;
}

/* Finds the item that the write replaces, and reserves slot and frames for the new one. */
static enum store_result prepare(struct store_txn *txn, struct write *write)
{
    struct page_file *file = &engine_partition(txn->store, write->key.slot)->file;
    assert(request_holds(txn, file->id));
    struct found found = {0};
    uint32_t old_database =
        write->is_key_tree ? write->database : databases_committed(txn, write->place);
    enum store_result result = find_old(txn, write, old_database, &found);
    if (result == STORE_DAMAGED) /* the damaged item stays where it is; the key gets a new item */
        found.item = NULL;
    else if (result != STORE_OK)
        return result;
    bool is_moved = changes_databases(txn) && write->key.db < STORE_DB_COUNT;
    write->database = is_moved && !is_doomed(txn, write)
                          ? txn->arrangement.databases.ids[write->key.db]
                          : old_database;
    write->tag = engine_tag(write->key.hash, write->database);
    write->old_page = found.item ? found.page : 0;
    write->old_slot = found.slot;
    result = keep_roots(txn, write, found.item);
    if (result != STORE_OK)
        return result;
    if (found.item) {
        uint32_t frame = found.frame;
        result = commit_hold(txn, file, &frame);
        if (result != STORE_OK)
            return result;
        write->old_frame = frame;
    }
    return write->kind == WRITE_PUT ? prepare_put(txn, file, write) : STORE_OK;
}

/* While one write waits for a page, the others request theirs. In an ordered directory the writes
 * of roots follow, once it is known which keys come and go. One loop, so that prepare() is inlined.
 */
static enum store_result prepare_writes(struct store_txn *txn)
{
    bool lacks_roots = txn->store->is_ordered;
    enum store_result result = STORE_OK;
    for (uint32_t i = 0;; i++) {
        if (i == txn->write_count && lacks_roots && result == STORE_OK) {
            lacks_roots = false;
            result = key_trees_change(txn);
        }
        if (i == txn->write_count)
            return result;
        enum store_result prepared = prepare(txn, &txn->writes[i]);
        if (prepared == STORE_WAIT)
            result = STORE_WAIT;
        else if (prepared != STORE_OK)
            return prepared;
        if (txn->starved)
            return STORE_WAIT;
    }
}

/* Entries of the expiry table that the write will add. */
static uint32_t times_of(const struct write *write)
{
    return (write->expire_ms != STORE_NO_EXPIRY) + (write->wake_ms != STORE_NO_EXPIRY);
}

static bool reserve_times(struct ttl *ttl, const struct write *write)
{
    uint32_t count = 0, wanted = times_of(write);
    while (count < wanted && ttl_reserve(ttl, write->tag))
        count++;
    if (count == wanted)
        return true;
    for (; count > 0; count--)
        ttl_release(ttl, write->tag);
    return false;
}

/* Reserves room in the index and the expiry table. */
static bool reserve_entries(struct store_txn *txn)
{
    for (uint32_t i = 0; i < txn->write_count; i++) {
        struct write *write = &txn->writes[i];
        struct partition *partition = engine_partition(txn->store, write->key.slot);
        if (write->kind != WRITE_PUT)
            continue;
        if (!write->old_page && !index_reserve(&partition->index, write->key.slot))
            return false;
        if (!reserve_times(&partition->ttl, write)) {
            if (!write->old_page)
                index_release(&partition->index, write->key.slot);
            return false;
        }
        write->reserved = true;
    }
    return true;
}

static void release_entries(struct store_txn *txn)
{
    for (uint32_t i = 0; i < txn->write_count; i++) {
        struct write *write = &txn->writes[i];
        struct partition *partition = engine_partition(txn->store, write->key.slot);
        if (!write->reserved)
            continue;
        write->reserved = false;
        if (!write->old_page)
            index_release(&partition->index, write->key.slot);
        for (uint32_t left = times_of(write); left > 0; left--)
            ttl_release(&partition->ttl, write->tag);
    }
}

static void release_frames(struct store_txn *txn)
{
    for (uint32_t i = 0; i < txn->write_count; i++) {
        struct write *write = &txn->writes[i];
        struct page_file *file = &engine_partition(txn->store, write->key.slot)->file;
        if (write->old_frame)
            page_file_unref(file, write->old_frame);
        if (write->new_frame)
            page_file_unref(file, write->new_frame);
        write->old_frame = write->new_frame = 0;
    }
    txn->held_frames = 0;
}

void commit_abandon(struct store_txn *txn)
{
    for (uint32_t i = 0; i < txn->write_count; i++)
        give_back_slot(txn, &txn->writes[i]);
    extent_abandon(txn);
    if (txn->long_record)
        long_record_abandon(txn);
}

/* ---- the record ---- */

static bool moves(const struct write *write)
{
    return write->old_page &&
           (write->old_page != write->new_page || write->old_slot != write->new_slot);
}

static bool does_nothing(const struct write *write)
{
    return write->kind == WRITE_DELETE && !write->old_page;
}

static uint64_t record_length(const struct store_txn *txn, uint32_t *op_count)
{
    uint64_t length = sizeof(struct format_record), op = sizeof(struct format_operation);
    *op_count = 0;
    for (uint32_t i = 0; i < txn->write_count; i++) {
        const struct write *write = &txn->writes[i];
        if (does_nothing(write))
            continue;
        bool erases = write->kind == WRITE_DELETE || moves(write);
        length += (erases ? op : 0) +
                  (write->kind == WRITE_PUT ? op + commit_padded(write->item_len) : 0);
        *op_count += erases + (write->kind == WRITE_PUT);
    }
    length += tree_record_length(txn, op_count);
    if (changes_databases(txn)) {
        length += op + commit_padded(sizeof(struct format_databases));
        ++*op_count;
    }
    return length;
}

static char *add_key(char *to, const struct write *write)
{
    if (write->long_key)
        return long_key_put(to, write);
    memcpy(to, write->key.data, write->key.len);
    return to + write->key.len;
}

/* Writes the item as it will stand in its slot. */
static char *add_item(const struct store_txn *txn, char *at, const struct write *write,
                      uint32_t file, uint64_t commit_number)
{
    struct format_item *item = (struct format_item *)at;
    uint32_t payload = write->large ? write->large->root_bytes : write->len;
    *item = (struct format_item){.database = write->database,
                                 .version = commit_number,
                                 .key_len = (uint16_t)long_key_in_item(&write->key),
                                 .payload_len = (uint16_t)payload,
                                 .type = write->type};
    if (write->large)
        item->flags |= FORMAT_LARGE;
    if (write->trees)
        item->flags |= write->is_key_tree ? FORMAT_TREES | FORMAT_KEY_TREE : FORMAT_TREES;
    if (write->long_key)
        item->flags |= FORMAT_LONG_KEY;
    if (write->expire_ms != STORE_NO_EXPIRY) {
        item->flags |= FORMAT_HAS_EXPIRY;
        memcpy(item + 1, &write->expire_ms, sizeof write->expire_ms);
    }
    if (write->wake_ms != STORE_NO_EXPIRY) {
        item->flags |= FORMAT_HAS_WAKE;
        memcpy(at + format_head_length(item) - sizeof write->wake_ms, &write->wake_ms,
               sizeof write->wake_ms);
    }
    char *to = add_key(at + format_head_length(item), write);
    if (payload)
        memcpy(to, write->large ? (const char *)write->large->root : write->bytes, payload);
    memset(at + write->item_len, 0, commit_padded(write->item_len) - write->item_len);
    uint32_t mix = format_place_mix(txn->store->superblock.latest.seed, file, write->new_page,
                                    write->new_slot);
    item->checksum = format_item_checksum(item, write->item_len, mix);
    return at + commit_padded(write->item_len);
}

/* ---- applying ---- */

static uint32_t locate(const struct partition *partition, const struct write *write)
{
    const struct index *index = &partition->index;
    uint32_t at = index_find(index, write->key.slot, write->tag);
    for (; at != INDEX_NONE; at = index_next(index, write->key.slot, at)) {
        uint64_t entry = index_get(index, write->key.slot, at);
        if (index_page(entry) == write->old_page && index_item_slot(entry) == write->old_slot)
            return at;
    }
    assert(!"an item that was found is in the index");
    return INDEX_NONE;
}

static struct format_item *slot_memory(struct page_file *file, uint32_t frame, uint32_t page,
                                       uint32_t slot)
{
    uint32_t size = format_class_size(page_file_class_of(file, page));
    return (struct format_item *)(arena_memory(file->arena, frame) + slot * size);
}

/* Removes the old item from the counters and the expiry table. */
static void uncount_old(struct partition *partition, const struct write *write,
                        const struct format_item *old)
{
    int64_t expiry = format_expiry(old), wake = format_wake(old);
    if (write->is_key_tree)
        return;
    databases_uncount_key(partition, write->key.db, expiry);
    if (wake != STORE_NO_EXPIRY)
        ttl_remove(&partition->ttl, write->key.slot, write->tag, wake);
    if (expiry != STORE_NO_EXPIRY)
        ttl_remove(&partition->ttl, write->key.slot, write->tag, expiry);
}

static void erase_old(struct partition *partition, const struct write *write, uint64_t commit)
{
    struct format_item *old =
        slot_memory(&partition->file, write->old_frame, write->old_page, write->old_slot);
    assert(old->version < commit); /* commit numbers only grow */
    memset(old, 0, sizeof *old);
    page_file_mark_dirty(&partition->file, write->old_frame, commit);
    page_file_give_slot(&partition->file, write->old_page, write->old_slot);
}

static void count_time(struct partition *partition, const struct write *write, int64_t time_ms)
{
    bool added = ttl_add(&partition->ttl, write->key.slot, write->tag, time_ms);
    assert(added);
    (void)added;
}

static void count_new(struct partition *partition, struct write *write)
{
    if (write->is_key_tree)
        return;
    databases_count_key(partition, write->key.db, write->expire_ms);
    if (write->expire_ms != STORE_NO_EXPIRY)
        count_time(partition, write, write->expire_ms);
    if (write->wake_ms != STORE_NO_EXPIRY)
        count_time(partition, write, write->wake_ms);
}

static void apply_put(struct store_txn *txn, struct partition *partition, struct write *write,
                      const char *image, uint64_t commit)
{
    struct page_file *file = &partition->file;
    uint32_t flags = engine_flags(((const struct format_item *)image)->flags);
    uint32_t frame = write->new_frame ? write->new_frame : write->old_frame;
    if (write->old_page) {
        const struct format_item *old =
            slot_memory(file, write->old_frame, write->old_page, write->old_slot);
        bool stays = !moves(write) && engine_flags(old->flags) == flags;
        uncount_old(partition, write, old);
        if (!stays)
            index_set(&partition->index, write->key.slot, locate(partition, write), write->new_page,
                      write->new_slot, flags);
        if (moves(write))
            erase_old(partition, write, commit);
    } else {
        bool inserted = index_insert(&partition->index, write->key.slot, write->tag,
                                     write->new_page, write->new_slot, flags);
        assert(inserted);
        (void)inserted;
    }
    memcpy(slot_memory(file, frame, write->new_page, write->new_slot), image, write->item_len);
    page_file_mark_dirty(file, frame, commit);
    count_new(partition, write);
    if (access_kind(&file->cache->uses) != USE_IGNORED)
        item_use_write(txn, file, write);
    write->slot_taken = false;
    write->reserved = false;
}

static void apply_delete(struct partition *partition, struct write *write, uint64_t commit)
{
    assert(write->old_page && write->old_frame && !write->slot_taken);
    uncount_old(partition, write,
                slot_memory(&partition->file, write->old_frame, write->old_page, write->old_slot));
    index_remove(&partition->index, write->key.slot, locate(partition, write));
    erase_old(partition, write, commit);
    partition->last_removal = commit;
}

/* Reports to the observers before the change is applied; `image` is NULL for a deletion. */
static void report(const struct store_txn *txn, struct partition *partition,
                   const struct write *write, const char *image, uint64_t commit)
{
    const struct format_item *old = NULL;
    if (write->old_page)
        old = slot_memory(&partition->file, write->old_frame, write->old_page, write->old_slot);
    change_report_key(txn, &write->key, old, (const struct format_item *)image, commit);
}

static char *put_and_apply(struct store_txn *txn, struct write *write, char *at, uint64_t commit)
{
    struct partition *partition = engine_partition(txn->store, write->key.slot);
    uint32_t file = partition->file.id;
    if (does_nothing(write))
        return at;
    if (write->kind == WRITE_DELETE || moves(write))
        at = commit_add_operation(at, FORMAT_ERASE, file, write->old_page, write->old_slot, 0);
    char *image = NULL;
    if (write->kind == WRITE_PUT) {
        image = at = commit_add_operation(at, FORMAT_PUT, file, write->new_page, write->new_slot,
                                          write->item_len);
        at = add_item(txn, at, write, file, commit);
    }
    if (change_is_observed(txn->store) && write->key.db < STORE_DB_COUNT)
        report(txn, partition, write, image, commit);
    if (image)
        apply_put(txn, partition, write, image, commit);
    else
        apply_delete(partition, write, commit);
    return at;
}

/* Drops the collections that this transaction gave up. */
static void drop_replaced(struct store_txn *txn)
{
    bool any = false;
    for (uint32_t i = 0; i < txn->write_count; i++) {
        const struct format_trees *old = txn->writes[i].old_trees;
        if (old && !tree_is_kept(txn, old->collection)) {
            tree_drop(txn->store, old);
            any = true;
        }
    }
    if (any)
        request_notify(txn->worker);
}

static bool is_same_root(const struct format_root *a, const struct format_root *b)
{
    return a->count == b->count &&
           memcmp(a, b, sizeof *a + a->count * sizeof(struct format_extent)) == 0;
}

/* A cell of the writes' table, which from enter_bases on maps bases, not keys. */
static uint32_t *base_cell(const struct store_txn *txn, const struct format_root *root)
{
    uint32_t mask = txn->write_table_size - 1;
    assert(txn->write_count <= mask &&
           !(mask & txn->write_table_size)); /* at least one cell stays empty */
    uint64_t hash = root->length;
    for (uint32_t i = 0; i < root->count; i++)
        hash = (hash ^ root->extents[i].checksum ^ root->extents[i].page) * 0x9e3779b97f4a7c15ull;
    uint32_t at = (uint32_t)(hash >> 32) & mask;
    while (txn->write_table[at] &&
           !is_same_root(txn->writes[txn->write_table[at] - 1].large->base, root))
        at = (at + 1) & mask;
    return &txn->write_table[at];
}

static const struct format_root *base_of(const struct write *write)
{
    return write->large ? write->large->base : NULL;
}

static void enter_bases(struct store_txn *txn)
{
    memset(txn->write_table, 0, txn->write_table_size * sizeof *txn->write_table);
    for (uint32_t i = 0; i < txn->write_count; i++)
        if (base_of(&txn->writes[i]))
            *base_cell(txn, base_of(&txn->writes[i])) = i + 1;
}

static bool lives_on(const struct store_txn *txn, const struct format_root *root)
{
    if (txn->write_table_size)
        return *base_cell(txn, root) != 0;
    for (uint32_t i = 0; i < txn->write_count; i++) {
        const struct format_root *base = base_of(&txn->writes[i]);
        if (base && is_same_root(base, root))
            return true;
    }
    return false;
}

/* Frees the large values that this transaction gave up. A value that lives on under another name or
 * expiry is the base of a write. */
static void free_replaced(struct store_txn *txn, uint64_t commit)
{
    if (txn->write_table_size)
        enter_bases(txn);
    for (uint32_t i = 0; i < txn->write_count; i++) {
        const struct write *write = &txn->writes[i];
        if (write->old_root && !lives_on(txn, write->old_root))
            extent_free_root(txn->store, write->old_root, commit);
        if (write->old_key)
            extent_free_root(txn->store, write->old_key, commit);
    }
    txn->write_table_size = 0;
    extent_free_patched(txn, commit);
}

/* The operation that changes the databases. *dead: how many keys were flushed. */
static char *put_and_apply_databases(struct store_txn *txn, char *at, uint64_t commit_number,
                                     uint64_t *dead)
{
    struct store *store = txn->store;
    if (change_is_observed(store))
        change_report_databases(txn, commit_number);
    *dead = databases_change(txn, commit_number);
    at = commit_add_operation(at, FORMAT_DATABASES, 0, 0, 0, sizeof store->databases);
    memcpy(at, &store->databases, sizeof store->databases);
    return at + commit_padded(sizeof store->databases);
}

/* Writes the operations at `at`, one after the other; returns their end. The doomed writes come
 * before the change of the databases. One loop, so that put_and_apply() is inlined. */
static char *put_and_apply_all(struct store_txn *txn, char *at, uint64_t commit_number,
                               uint64_t *dead)
{
    uint32_t doomed = changes_databases(txn) ? txn->arrangement.doomed : UINT32_MAX;
    *dead = 0;
    for (uint32_t i = 0;; i++) {
        if (i == doomed)
            at = put_and_apply_databases(txn, at, commit_number, dead);
        if (i == txn->write_count)
            return tree_put_and_apply(txn, at, commit_number);
        at = put_and_apply(txn, &txn->writes[i], at, commit_number);
    }
}

/* Reserves room for the record, and for a long record if it is too long for the journal. */
static enum store_result begin_record(struct store_txn *txn, uint64_t length, char **record,
                                      uint64_t *commit_number)
{
    enum store_result result = long_record_reserve(txn, length);
    if (result != STORE_OK)
        return result;
    uint64_t in_ring = txn->long_record ? long_record_record_length(txn->long_record) : length;
    result = journal_begin(&txn->store->journal, in_ring, record, commit_number);
    if (result == STORE_WAIT)
        maintenance_throttle(txn);
    return result;
}

static enum store_result journal_and_apply(struct store_txn *txn)
{
    struct store *store = txn->store;
    uint32_t op_count;
    uint64_t length = record_length(txn, &op_count), commit_number, dead;
    char *record;
    if (op_count == 0)
        return STORE_OK;
    enum store_result result = begin_record(txn, length, &record, &commit_number);
    if (result != STORE_OK)
        return result;
    bool is_beside = txn->long_record;
    char *first =
        is_beside ? long_record_bytes(txn->long_record) : record + sizeof(struct format_record);
    char *end = put_and_apply_all(txn, first, commit_number, &dead);
    assert(end == first + length - sizeof(struct format_record));
    (void)end;
    if (is_beside)
        long_record_seal(txn, record, commit_number);
    else
        *(struct format_record *)record = (struct format_record){(uint32_t)length, op_count};
    journal_end(&store->journal, changes_databases(txn) ? &store->databases : NULL);
    if (is_beside)
        maintenance_ask(store);
    free_replaced(txn, commit_number);
    drop_replaced(txn);
    if (txn->phase == TXN_COMMIT)
        bulk_load_hand_over(txn);
    databases_reclaim(txn, dead, commit_number);
    txn->shown = commit_number;
    return STORE_OK;
}

/* Writers, not readers, wait while too much of the cache is dirty. */
static bool over_dirty_limit(const struct store *store)
{
    uint32_t limit = atomic_load_explicit(&store->cache.arena.limit, memory_order_relaxed) / 2;
    return atomic_load_explicit(&store->cache.dirty_frames, memory_order_relaxed) > limit;
}

/* What the transaction has before an attempt. */
struct attempt_mark {
    struct store_mark memory;
    struct key_trees_mark trees;
};

/* After an attempt that has failed, or has to wait: frees what it has allocated, and takes back
 * what it has changed in trees of keys. */
KEY_TREE_APART static void take_back(struct store_txn *txn, const struct attempt_mark *mark,
                                     enum store_result result)
{
    if (txn->store->is_ordered) {
        for (uint32_t i = mark->trees.write_count; i < txn->write_count; i++)
            give_back_slot(txn, &txn->writes[i]);
        key_trees_undo(txn, &mark->trees);
    }
    if (result == STORE_WAIT)
        txn_memory_return(txn, &mark->memory);
}

static enum store_result attempt(struct store_txn *txn, struct attempt_mark *mark)
{
    store_mark(txn, &mark->memory);
    if (txn->store->is_ordered)
        mark->trees = key_trees_mark(txn);
    enum store_result result = prepare_writes(txn);
    if (result == STORE_OK)
        result = tree_prepare(txn);
    if (result == STORE_OK && !reserve_entries(txn))
        result = STORE_NO_MEMORY;
    if (result == STORE_OK)
        result = journal_and_apply(txn);
    if (storage_checks_enabled() && result == STORE_OK && txn->store->is_ordered)
        key_trees_check(txn);
    return result;
}

static enum store_result commit_changes(struct store_txn *txn)
{
    assert(txn->phase != TXN_RUN && txn->prefetch_run == PREFETCH_RUN_NONE);
    if (env_failed(&txn->store->env))
        return STORE_REFUSED;
    if (over_dirty_limit(txn->store)) {
        maintenance_throttle(txn);
        return STORE_WAIT;
    }
    txn->starved = false;
    enum store_result result = tree_settle(txn);
    if (result == STORE_OK)
        result = extent_write_all(txn);
    bool is_attempted = result == STORE_OK;
    struct attempt_mark mark;
    if (is_attempted)
        result = attempt(txn, &mark);
    release_entries(txn);
    release_frames(txn);
    tree_release(txn);
    if (result != STORE_OK && is_attempted)
        take_back(txn, &mark, result);
    return result;
}

/* Small, so that reads pay no call. */
enum store_result commit(struct store_txn *txn)
{
    bool changes = txn->write_count > 0 || changes_databases(txn) || txn->phase == TXN_BUILD;
    return changes ? commit_changes(txn) : STORE_OK;
}
