/*
 * Writes the index checkpoint at the end of a clean shutdown. The file is extended first, so that
 * a full disk is detected before anything is written, and it is kept for the next time.
 */
#include "storage/maintenance/index_save.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "storage/maintenance/index_stream.h"

#define GROW_SHARE 8u /* a file that is too short gets this fraction of its need extra */

/* ---- whether it would agree with a scan ---- */

static const char *why_not(struct store *store)
{
    if (atomic_load(&store->damaged) > 0)
        return "the store contains damaged data";
    if (atomic_load(&store->scan_wanted))
        return "the next start must scan for lost space";
    if (atomic_load(&store->dropped_tree_count) > 0)
        return "a deleted collection is not yet purged";
    if (!STAILQ_EMPTY(&store->deferred) || !LIST_EMPTY(&store->snapshots) ||
        !LIST_EMPTY(&store->open_uploads))
        return "large values are still being read or written";
    return NULL;
}

/* ---- its size ---- */

static uint64_t mask_words(const struct page_file *file)
{
    return file->id == FORMAT_EXTENT_FILE ? FORMAT_RUN_MASKS : SEGMENT_PAGES;
}

static uint64_t page_file_bytes(const struct page_file *file)
{
    uint64_t masks = 8 * mask_words(file);
    return sizeof(struct format_index_page_file) + file->segment_assigned * (1 + masks);
}

static uint64_t bytes_needed(const struct store *store)
{
    uint64_t bytes = sizeof(struct format_index_head) + sizeof(uint64_t);
    for (uint32_t i = 0; i < store->partition_count; i++) {
        const struct partition *partition = &store->partitions[i];
        uint64_t tables = partition->index.slot_count + TTL_TABLE_COUNT;
        uint64_t cells = index_count(&partition->index) + ttl_count(&partition->ttl);
        bytes += page_file_bytes(&partition->file) + tables * sizeof(struct format_index_cells) +
                 cells * sizeof(uint64_t);
    }
    bytes += page_file_bytes(&store->extents);
    uint64_t room = FORMAT_INDEX_BLOCK - sizeof(struct format_index_block);
    return (bytes + room - 1) / room * FORMAT_INDEX_BLOCK;
}

/* ---- writing ---- */

static bool put_cells(struct index_stream *stream, uint32_t table, const struct otable *from)
{
    struct format_index_cells head = {table, from->count};
    if (from->count == 0)
        return true;
    if (!index_stream_put(stream, &head, sizeof head))
        return false;
    uint32_t put = 0;
    for (uint32_t i = 0; i < from->size; i++) {
        if (!from->cells[i])
            continue;
        if (!index_stream_put(stream, &from->cells[i], sizeof from->cells[i]))
            return false;
        put++;
    }
    assert(put == from->count);
    return true;
}

static bool put_segments(struct index_stream *stream, const struct page_file *file)
{
    if (!index_stream_put(stream, file->segment_class, file->segment_assigned))
        return false;
    for (uint32_t i = 0; i < file->segment_assigned; i++)
        if (file->segment_class[i] &&
            !index_stream_put(stream, &file->free_slots[(size_t)i * SEGMENT_PAGES],
                              mask_words(file) * sizeof(uint64_t)))
            return false;
    return true;
}

static bool put_partition(struct index_stream *stream, const struct store *store,
                          const struct partition *partition)
{
    const struct page_file *file = &partition->file;
    bool is_swept =
        store->sweep_left == 0 && !atomic_load(&store->sweep_asked) && store->sweep_skipped == 0;
    struct format_index_page_file head = {.segment_count = file->segment_count,
                                          .segment_assigned = file->segment_assigned,
                                          .entries = index_count(&partition->index),
                                          .expiries = ttl_count(&partition->ttl),
                                          .expiry_base_ms = partition->ttl.base_ms,
                                          .is_swept = is_swept};
    uint64_t expires = 0;
    for (uint32_t db = 0; db <= STORE_DB_COUNT; db++) {
        head.databases[db] =
            (struct format_index_count){counter_read(&partition->databases[db].keys),
                                        counter_read(&partition->databases[db].expires),
                                        counter_read(&partition->databases[db].expiries)};
        expires += head.databases[db].expires;
    }
    head.wakes = is_swept ? (uint32_t)(head.expiries - expires) : 0;
    bool good = index_stream_put(stream, &head, sizeof head) && put_segments(stream, file);
    for (uint32_t i = 0; i < partition->index.slot_count && good; i++)
        good = put_cells(stream, partition->index.first_slot + i, &partition->index.tables[i]);
    for (uint32_t i = 0; i < TTL_TABLE_COUNT && good; i++)
        good = put_cells(stream, i, &partition->ttl.tables[i]);
    return good;
}

static bool put_all(struct index_stream *stream, const struct store *store,
                    const struct format_index_head *head)
{
    const struct page_file *extents = &store->extents;
    struct format_index_page_file last = {.segment_count = extents->segment_count,
                                          .segment_assigned = extents->segment_assigned,
                                          .is_swept = 1};
    const uint64_t end = FORMAT_INDEX_END;
    bool good = index_stream_put(stream, head, sizeof *head);
    for (uint32_t i = 0; i < store->partition_count && good; i++)
        good = put_partition(stream, store, &store->partitions[i]);
    return good && index_stream_put(stream, &last, sizeof last) && put_segments(stream, extents) &&
           index_stream_put(stream, &end, sizeof end) && index_stream_end(stream);
}

/* ---- the file ---- */

static int make_room(struct store *store, struct disk_file *file)
{
    uint64_t needed = bytes_needed(store), size = store->disk->ops->size(file);
    uint64_t limit = atomic_load(&store->max_store_bytes);
    if (needed <= size)
        return 0;
    uint64_t wanted = needed + (size ? needed / GROW_SHARE : 0);
    wanted = (wanted + SEGMENT_BYTES - 1) / SEGMENT_BYTES * SEGMENT_BYTES;
    if (limit && atomic_load(&store->store_bytes) + wanted - size > limit)
        return ENOSPC;
    int error = store->disk->ops->extend(file, wanted);
    atomic_fetch_add(&store->store_bytes, store->disk->ops->size(file) - size);
    return error;
}

static int open_file(struct store *store, struct disk_file **file)
{
    int error = store->disk->ops->open(store->disk, "index", false, file);
    if (error != ENOENT)
        return error;
    error = store->disk->ops->open(store->disk, "index", true, file);
    if (error)
        return error;
    error = store->disk->ops->sync_directory(store->disk);
    if (error)
        store->disk->ops->close(*file);
    return error;
}

static int write_file(struct store *store, struct disk_file *file)
{
    struct format_index_head head = index_head(&store->superblock.latest);
    struct index_stream stream;
    int error = make_room(store, file);
    if (error)
        return error;
    if (!index_stream_open(&stream, store, file, &head))
        return ENOMEM;
    if (put_all(&stream, store, &head))
        error = disk_flush(store->maintenance_queue, file);
    else
        error = stream.error;
    index_stream_close(&stream);
    return error;
}

void index_save(struct store *store)
{
    assert(!store->maintenance_running);
    const char *reason = why_not(store);
    struct disk_file *file;
    int error = 0;
    if (!reason && !(error = open_file(store, &file))) {
        error = write_file(store, file);
        store->disk->ops->close(file);
    }
    if (error == ENOSPC)
        reason = "there is no room for it (maxstore or the file system)";
    if (reason || error)
        env_log(&store->env, STORE_LOG_NOTICE,
                "No index checkpoint was written: %s. The next start reads the slabs",
                reason ? reason : strerror(error));
}
