/*
 * After FLUSHDB of one database among several, the dead items are still in the index. The
 * maintenance thread walks all slabs once, a segment at a time, and removes the items whose
 * database id is dead. On disk nothing changes: recovery ignores dead ids, and ids are never
 * reused.
 *
 * A segment that cannot be read is skipped, with a warning: its dead items keep their space and
 * their entries in the index. The next sweep visits it again, after the next flush or the next
 * start; `sweep_skipped` makes the index checkpoint tell that start.
 */
#include "storage/maintenance/sweep.h"

#include <assert.h>
#include <stdlib.h>

#include "storage/base/checks.h"
#include "storage/txn/wait.h"
#include "storage/txn/databases.h"
#include "storage/txn/verify.h"
#include "storage/tree/tree_drop.h"
#include "storage/value/free.h"

/* Removes an entry only if it names exactly this place: a slot that a transaction has reserved
 * but not written may still hold its old content. */
static bool remove_entry(struct partition *partition, uint32_t slot, uint32_t tag, uint32_t page,
                         uint32_t item_slot)
{
    struct index *index = &partition->index;
    uint32_t at = index_find(index, slot, tag);
    for (; at != INDEX_NONE; at = index_next(index, slot, at)) {
        uint64_t entry = index_get(index, slot, at);
        if (index_page(entry) == page && index_item_slot(entry) == item_slot) {
            index_remove(index, slot, at);
            return true;
        }
    }
    return false;
}

/* An item that is damaged has an entry that it does not name: the next start scans. */
static void sweep_item(struct store *store, struct partition *partition, uint32_t page,
                       uint32_t item_slot, const struct format_item *item)
{
    if (item->database == 0 || !databases_is_dead(store, item->database))
        return;
    if (verify_slot(&partition->file, page, item_slot, item) != SLOT_ITEM) {
        atomic_store(&store->scan_wanted, true);
        return;
    }
    uint32_t slot = format_key_slot(item);
    uint32_t tag = engine_tag(format_key_hash(&store->superblock.secret, item), item->database);
    if (slot >> store->slot_shift != partition->file.id ||
        !remove_entry(partition, slot, tag, page, item_slot))
        return;
    int64_t expiry = format_expiry(item), wake = format_wake(item);
    if (expiry != STORE_NO_EXPIRY)
        ttl_remove(&partition->ttl, slot, tag, expiry);
    if (wake != STORE_NO_EXPIRY)
        ttl_remove(&partition->ttl, slot, tag, wake);
    extent_free_item(store, item);
    if (item->flags & FORMAT_TREES)
        tree_drop_item(store, item);
    page_file_give_slot(&partition->file, page, item_slot);
}

/* A page in the cache is newer than the disk; one that is being read is the same as on disk. */
static const char *page_bytes(struct page_file *file, uint32_t page, const char *segment)
{
    uint32_t number = file->table[page];
    if (number && arena_frame(file->arena, number)->state == FRAME_VALID)
        return arena_memory(file->arena, number);
    return segment + (size_t)(page % SEGMENT_PAGES) * PAGE_SIZE;
}

static void skip_segment(struct store *store)
{
    atomic_fetch_add(&store->read_errors, 1);
    if (store->sweep_skipped++ == 0)
        env_log(&store->env, STORE_LOG_WARNING,
                "Flushed items could not be read: they take space until the next flush or start");
}

static void sweep_segment(struct store *store, struct partition *partition, uint32_t segment,
                          char *buffer)
{
    struct page_file *file = &partition->file;
    assert(lock_is_held(&file->lock) && segment < file->segment_assigned);
    uint32_t size_class = file->segment_class[segment];
    if (size_class == 0)
        return;
    uint32_t count = format_class_slots(size_class), size = format_class_size(size_class);
    if (disk_read(store->maintenance_queue, file->file, buffer, SEGMENT_BYTES,
                  (uint64_t)segment * SEGMENT_BYTES) != 0) {
        skip_segment(store);
        return;
    }
    for (uint32_t i = 1; i < SEGMENT_PAGES; i++) {
        uint32_t page = segment * SEGMENT_PAGES + i;
        const char *bytes = page_bytes(file, page, buffer);
        for (uint32_t slot = 0; slot < count; slot++) {
            const struct format_item *item = (const void *)(bytes + slot * size);
            bool used = !(file->free_slots[page] >> slot & 1);
            if (used)
                sweep_item(store, partition, page, slot, item);
        }
    }
}

/* From where a sweep is, if one is under way, and round to there: frequent flushes must not make it
 * begin anew and never come to the last segments. */
static void begin_round(struct store *store)
{
    bool is_within = store->sweep_segment > 0;
    store->sweep_left = store->partition_count + is_within;
    store->sweep_skipped = 0;
}

/* Reads the segment under the partition's lock, so that it cannot change meanwhile: about a
 * millisecond per segment. */
bool sweep_step(struct store *store)
{
    if (atomic_exchange(&store->sweep_asked, false))
        begin_round(store);
    if (store->sweep_left == 0)
        return false;
    char *buffer = disk_alloc(SEGMENT_BYTES);
    if (!buffer)
        return false;
    assert(store->sweep_partition < store->partition_count);
    struct partition *partition = &store->partitions[store->sweep_partition];
    pthread_mutex_lock(&partition->file.lock);
    /* A snapshot reads flushed items; its end notifies the maintenance thread, which continues. */
    if (!LIST_EMPTY(&store->snapshots)) {
        pthread_mutex_unlock(&partition->file.lock);
        free(buffer);
        return false;
    }
    bool more = store->sweep_segment < partition->file.segment_assigned;
    if (more)
        sweep_segment(store, partition, store->sweep_segment++, buffer);
    pthread_mutex_unlock(&partition->file.lock);
    free(buffer);
    if (!more) {
        engine_wake_workers(store); /* to purge the collections it has dropped */
        store->sweep_segment = 0;
        store->sweep_partition = (store->sweep_partition + 1) % store->partition_count;
        store->sweep_left--;
    }
    if (store->sweep_left > 0)
        maintenance_ask(store);
    return true;
}
