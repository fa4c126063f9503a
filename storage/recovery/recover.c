/*
 * Recovery: from the content of the files to a store that can be served.
 *
 * 1. (redo.c) Read the journal from the tail of the last checkpoint up to the first group that is
 *    missing or of another history; collect its operations, for each slot the last ones.
 * 2. Scan the slabs in order, several partitions at once. Apply the operations to the pages while
 *    they pass, write the changed pages back, and enter every valid item in the index. Since redo
 *    is physical, each key then has exactly one valid slot: no look-up is needed, and no page is
 *    read twice. After a clean shutdown there is nothing to redo, and an index checkpoint
 *    (index_stream.h) may replace the scan.
 * 3. Once everything is durable, begin a new epoch with an empty journal.
 *
 * Only checksummed data is trusted: free slots, free runs and counts are the result of the scan.
 * A crash during recovery does no harm: recovering again gives the same pages.
 */
#include "storage/recovery/recover.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "storage/base/array.h"
#include "storage/recovery/redo.h"
#include "storage/maintenance/index_stream.h"
#include "storage/recovery/index_load.h"
#include "storage/recovery/recover_trees.h"
#include "storage/value/free.h"
#include "storage/txn/verify.h"
#include "storage/txn/databases.h"

#define READ_AHEAD 8u
#define SCAN_DEPTH 64u
#define WRITE_GAP 4u /* one write of changed pages includes gaps of so many unchanged ones */
#define LOST_RUNS_LOGGED 100u /* by each scan; of the others the number is */
#define WRITES_MOST (SEGMENT_PAGES / WRITE_GAP)

/* A segment that is being scanned. */
struct segment_buffer {
    char *bytes;
    uint32_t pending; /* operations in flight */
    int error;
    uint64_t changed[SEGMENT_PAGES / 64]; /* pages that differ from the disk */
    struct disk_op read, writes[WRITES_MOST];
    struct iovec read_vector, write_vectors[WRITES_MOST];
};

/* The state of one scan thread. */
struct scan {
    struct store *store;
    const struct redo_log *journal;
    struct disk_queue *queue;
    pthread_t thread;
    uint32_t first; /* partition; then every thread_count-th one */
    uint32_t step;
    struct segment_buffer buffers[READ_AHEAD];
    enum store_result result;
    int error;
    bool out_of_memory;
    struct format_extent *nodes; /* of large values with more than one level */
    uint32_t node_count;
    size_t node_capacity;
    struct found_trees trees;
    uint64_t items, damaged, lost_runs;
};

/* ---- large values ---- */

static void report_lost_run(struct scan *scan, uint32_t page)
{
    if (scan->lost_runs++ >= LOST_RUNS_LOGGED)
        return;
    env_log(&scan->store->env, STORE_LOG_WARNING,
            "A large value refers to page %u of `extents`, which does not belong to it: it is "
            "damaged",
            page);
}

/* Marks a run that a root or node names as used; false: no such run exists. */
static bool keep_extent(struct scan *scan, const struct format_extent *extent)
{
    struct page_file *file = &scan->store->extents;
    if (extent->page == 0)
        return true;
    pthread_mutex_lock(&file->lock);
    bool is_sound = format_extent_is_sound(extent);
    bool kept = is_sound && page_file_try_keep_run(file, extent);
    /* Also where no run begins now: one may, once the segment has another class. */
    bool is_noted = kept || !is_sound || extent_note_disputed(scan->store, extent->page);
    pthread_mutex_unlock(&file->lock);
    if (!kept) {
        scan->damaged++;
        report_lost_run(scan, extent->page);
    }
    scan->out_of_memory |= !is_noted;
    return kept;
}

static bool remember_node(struct scan *scan, const struct format_extent *node)
{
    if (!array_reserve(&scan->nodes, &scan->node_capacity, scan->node_count + 1,
                       sizeof *scan->nodes))
        return false;
    scan->nodes[scan->node_count++] = *node;
    return true;
}

static bool keep_root(struct scan *scan, const char *at)
{
    struct format_root root;
    memcpy(&root, at, sizeof root);
    at += sizeof root;
    for (uint32_t i = 0; i < root.count; i++, at += sizeof(struct format_extent)) {
        struct format_extent extent;
        memcpy(&extent, at, sizeof extent);
        bool kept = keep_extent(scan, &extent);
        if (root.depth > 0 && extent.page && kept && !remember_node(scan, &extent))
            return false;
    }
    return !scan->out_of_memory;
}

static void keep_node(struct scan *scan, const struct format_extent *node,
                      const struct format_extent extents[FORMAT_NODE_FANOUT])
{
    if (node->length != FORMAT_NODE_BYTES ||
        format_checksum(extents, FORMAT_NODE_BYTES) != node->checksum) {
        scan->damaged++;
        env_log(&scan->store->env, STORE_LOG_WARNING,
                "Page %u of `extents` is damaged: a large value cannot be read", node->page);
        return;
    }
    for (uint32_t i = 0; i < FORMAT_NODE_FANOUT; i++)
        (void)keep_extent(scan, &extents[i]);
}

/* A node that cannot be read now might be readable later: its extents must not be treated as
 * free. So the start fails. */
static enum store_result keep_nodes(struct scan *scan)
{
    struct format_extent *extents = disk_alloc(PAGE_SIZE);
    enum store_result result = extents ? STORE_OK : STORE_NO_MEMORY;
    for (uint32_t i = 0; i < scan->node_count && result == STORE_OK; i++) {
        const struct format_extent *node = &scan->nodes[i];
        scan->error = disk_read(scan->queue, scan->store->extents.file, extents, PAGE_SIZE,
                                (uint64_t)node->page * PAGE_SIZE);
        if (scan->error)
            result = STORE_IO;
        else
            keep_node(scan, node, extents);
        if (scan->out_of_memory)
            result = STORE_NO_MEMORY;
    }
    free(extents);
    return result;
}

/* ---- slabs ---- */

/* The hash slot under which the index has the item. */
static uint32_t hash_slot_of(const struct format_item *item)
{
    struct format_overflow_key key;
    if (item->database != FORMAT_HIDDEN)
        return format_key_slot(item);
    memcpy(&key, format_key(item), sizeof key);
    return key.slot;
}

/* Marks what belongs to an item in other places as used. */
static bool keep_roots(struct scan *scan, const struct format_item *item)
{
    if (item->flags & FORMAT_LARGE && !keep_root(scan, format_payload(item)))
        return false;
    if (item->flags & FORMAT_LONG_KEY && !keep_root(scan, format_key_root(item)))
        return false;
    if (item->flags & FORMAT_TREES && !found_owner(&scan->trees, item))
        return false;
    return item->database != FORMAT_HIDDEN || found_overflow(&scan->trees, item);
}

/* The slot of a damaged item stays reserved. */
static void set_aside(struct scan *scan, struct page_file *file, uint32_t page, uint32_t slot)
{
    env_log(&scan->store->env, STORE_LOG_WARNING,
            "Damaged item in partition %u, page %u, slot %u: it is not served", file->id, page,
            slot);
    scan->damaged++;
    page_file_keep_slot(file, page, slot);
}

/* Enters a valid item, if its database is alive. */
static enum store_result enter_item(struct scan *scan, struct partition *partition, uint32_t page,
                                    uint32_t slot, const struct format_item *item)
{
    struct store *store = scan->store;
    bool hidden = item->database == FORMAT_HIDDEN || item->database == FORMAT_META;
    int db = hidden ? STORE_HIDDEN_DB : databases_logical(store, item->database);
    if (db < 0)
        return STORE_OK;
    uint32_t hash_slot = hash_slot_of(item);
    if (hash_slot >> store->slot_shift != partition->file.id) {
        set_aside(scan, &partition->file, page, slot);
        return STORE_OK;
    }
    uint32_t tag = engine_tag(format_key_hash(&store->superblock.secret, item), item->database);
    int64_t expiry = format_expiry(item), wake = format_wake(item);
    bool expires = expiry != STORE_NO_EXPIRY, wakes = wake != STORE_NO_EXPIRY;
    uint32_t flags = engine_flags(item->flags);
    if (!index_insert(&partition->index, hash_slot, tag, page, slot, flags) ||
        (expires && !ttl_add(&partition->ttl, hash_slot, tag, expiry)) ||
        (wakes && !ttl_add(&partition->ttl, hash_slot, tag, wake)) || !keep_roots(scan, item))
        return STORE_NO_MEMORY;
    page_file_keep_slot(&partition->file, page, slot);
    if (item->flags & FORMAT_KEY_TREE)
        return STORE_OK;
    databases_count_key(partition, (uint32_t)db, expiry);
    scan->items += !hidden;
    return STORE_OK;
}

/* Enters the content of a slot, if it is valid. */
static enum store_result enter(struct scan *scan, struct partition *partition, uint32_t page,
                               uint32_t slot, const struct format_item *item)
{
    struct page_file *file = &partition->file;
    enum slot_state state = verify_slot(file, page, slot, item);
    if (state == SLOT_BLANK || state == SLOT_REMAINS)
        return STORE_OK;
    if (state == SLOT_DAMAGED) {
        set_aside(scan, file, page, slot);
        return STORE_OK;
    }
    if (item->version >= scan->journal->commit)
        return STORE_CORRUPT; /* its commit was durable before the page was written */
    if (item->flags & FORMAT_NODE)
        return found_node(&scan->trees, file->id, page, item) ? STORE_OK : STORE_NO_MEMORY;
    return enter_item(scan, partition, page, slot, item);
}

static void mark_changed(struct segment_buffer *buffer, uint32_t page)
{
    assert(page < SEGMENT_PAGES);
    buffer->changed[page / 64] |= 1ull << (page % 64);
}

/* False: the ranges do not fit the slot. */
static bool lay_patch(struct segment_buffer *buffer, const struct format_operation *operation,
                      char *slot, uint32_t page, uint32_t slot_size)
{
    const char *at = (const char *)(operation + 1), *end = at + operation->length;
    struct format_range range;
    while (at < end) {
        if (end - at < (ptrdiff_t)sizeof range)
            return false;
        memcpy(&range, at, sizeof range);
        at += sizeof range;
        if (range.length > end - at || range.offset + range.length > slot_size)
            return false;
        if (memcmp(slot + range.offset, at, range.length) != 0) {
            memcpy(slot + range.offset, at, range.length);
            mark_changed(buffer, page);
        }
        at += range.length;
    }
    return true;
}

/* The journal has its own checksum, so only bounds are checked. False: out of bounds. */
static bool lay(struct segment_buffer *buffer, const struct redo *redo, uint32_t page,
                uint32_t size_class)
{
    static const struct format_item blank;
    uint32_t size = format_class_size(size_class);
    char *slot = buffer->bytes + (size_t)page * PAGE_SIZE + redo->slot * size;
    if (redo->slot >= format_class_slots(size_class))
        return false;
    if (redo->operation->kind == FORMAT_PATCH)
        return lay_patch(buffer, redo->operation, slot, page, size);
    bool put = redo->operation->kind == FORMAT_PUT;
    const void *image = put ? (const void *)(redo->operation + 1) : &blank;
    uint32_t length = put ? redo->operation->length : (uint32_t)sizeof blank;
    if (length > size)
        return false;
    if (memcmp(slot, image, length) == 0)
        return true;
    memcpy(slot, image, length);
    mark_changed(buffer, page);
    return true;
}

/* The journal's first operation on a segment; NULL: none. */
static const struct redo *first_redo(const struct scan *scan, const struct page_file *file,
                                     uint32_t segment)
{
    uint32_t first = segment * SEGMENT_PAGES;
    if (scan->journal->redo_count == 0)
        return NULL;
    const struct redo *redo = redo_first(scan->journal, file->id, first);
    bool is_there = redo < scan->journal->redo + scan->journal->redo_count &&
                    redo->file == file->id && redo->page < first + SEGMENT_PAGES;
    return is_there ? redo : NULL;
}

/* Applies the journal's operations to a segment. */
static enum store_result overlay(struct scan *scan, struct page_file *file, uint32_t segment,
                                 struct segment_buffer *buffer)
{
    uint32_t first = segment * SEGMENT_PAGES;
    const struct redo *redo = first_redo(scan, file, segment);
    if (redo == NULL)
        return STORE_OK;
    const struct redo *end = scan->journal->redo + scan->journal->redo_count;
    for (; redo < end && redo->file == file->id && redo->page < first + SEGMENT_PAGES; redo++)
        if (!lay(buffer, redo, redo->page - first, file->segment_class[segment]))
            return STORE_CORRUPT;
    return STORE_OK;
}

/* The class of a segment: the one the journal assigns (already in segment_class), or its
 * header's; 0: none. Also whether the header must be written again. */
static int class_of(struct scan *scan, struct page_file *file, uint32_t segment, const char *header,
                    bool *anew)
{
    bool whole;
    int size_class = page_file_segment_class(file, segment, header, &whole);
    bool journaled = redo_assigns(scan->store, scan->journal, file, segment);
    *anew = journaled || (size_class > 0 && !whole);
    if (journaled)
        return file->segment_class[segment];
    if (size_class < 0)
        scan->damaged++;
    if (size_class < 0 || !whole)
        env_log(&scan->store->env, STORE_LOG_WARNING,
                "The header of segment %u of page file %u is damaged: %s", segment, file->id,
                size_class < 0 ? "its items are not served" : "its copy is used to repair it");
    return size_class;
}

static void arrived(struct disk_op *op)
{
    struct segment_buffer *buffer = op->arg;
    assert(buffer->pending > 0);
    buffer->pending--;
    if (op->error)
        buffer->error = op->error;
}

static void wait_for(struct scan *scan, struct segment_buffer *buffer)
{
    while (buffer->pending) {
        scan->queue->disk->ops->submit(scan->queue); /* also submits the rest of a short transfer */
        scan->queue->disk->ops->reap(scan->queue, 1);
    }
}

static uint32_t next_changed(const struct segment_buffer *buffer, uint32_t page)
{
    while (page < SEGMENT_PAGES && !(buffer->changed[page / 64] >> (page % 64) & 1))
        page++;
    return page;
}

/* Starts writing the changed pages; the buffer is reused only when they are written. */
static void write_changed(struct scan *scan, struct page_file *file, uint32_t segment,
                          struct segment_buffer *buffer)
{
    uint32_t count = 0, page = next_changed(buffer, 0);
    while (page < SEGMENT_PAGES) {
        uint32_t first = page, last = page, next;
        while ((next = next_changed(buffer, last + 1)) < SEGMENT_PAGES && next - last <= WRITE_GAP)
            last = next;
        assert(count < WRITES_MOST);
        buffer->write_vectors[count] = (struct iovec){buffer->bytes + (size_t)first * PAGE_SIZE,
                                                      (size_t)(last - first + 1) * PAGE_SIZE};
        buffer->writes[count] =
            (struct disk_op){.kind = DISK_WRITE,
                             .file = file->file,
                             .vectors = &buffer->write_vectors[count],
                             .vector_count = 1,
                             .offset = ((uint64_t)segment * SEGMENT_PAGES + first) * PAGE_SIZE,
                             .done = arrived,
                             .arg = buffer};
        disk_queue_op(scan->queue, &buffer->writes[count++]);
        buffer->pending++;
        page = next;
    }
    scan->queue->disk->ops->submit(scan->queue);
}

/* Whether a segment without a header has had one: a blank one is all zeros, and the journal has
 * nothing for it, since it would also assign the class. */
static bool has_lost_header(const struct scan *scan, const struct page_file *file, uint32_t segment,
                            const char *bytes)
{
    return !disk_is_blank(bytes, SEGMENT_BYTES) || first_redo(scan, file, segment);
}

/* Skips a segment without a valid class. A damaged one stays unused: under another class, its old
 * items could come back. One that has lost its class becomes blank; it may still be full of its
 * old content, and is zeroed. */
static void pass_over(struct scan *scan, struct page_file *file, uint32_t segment, int size_class,
                      bool emptied)
{
    struct segment_buffer *buffer = &scan->buffers[segment % READ_AHEAD];
    if (size_class < 0)
        return;
    if (!emptied && has_lost_header(scan, file, segment, buffer->bytes)) {
        scan->damaged++;
        env_log(&scan->store->env, STORE_LOG_WARNING,
                "The header of segment %u of page file %u is missing: its items are not served",
                segment, file->id);
        return;
    }
    page_file_add_blank(file, segment);
    if (emptied) {
        memset(buffer->bytes, 0, SEGMENT_BYTES);
        memset(buffer->changed, 0xff, sizeof buffer->changed);
        write_changed(scan, file, segment, buffer);
    }
}

static enum store_result scan_segment(struct scan *scan, struct partition *partition,
                                      uint32_t segment, struct segment_buffer *buffer)
{
    struct page_file *file = &partition->file;
    bool anew;
    memset(buffer->changed, 0, sizeof buffer->changed);
    int size_class = class_of(scan, file, segment, buffer->bytes, &anew);
    if (size_class <= 0) {
        pass_over(scan, file, segment, size_class, anew);
        return STORE_OK;
    }
    page_file_assign(file, segment, (uint32_t)size_class);
    if (anew) {
        page_file_segment_header(file, segment, buffer->bytes);
        mark_changed(buffer, 0);
    }
    enum store_result laid = overlay(scan, file, segment, buffer);
    if (laid != STORE_OK)
        return laid;
    write_changed(scan, file, segment, buffer);
    uint32_t size = format_class_size((uint32_t)size_class);
    uint32_t count = format_class_slots((uint32_t)size_class);
    for (uint32_t page = 1; page < SEGMENT_PAGES; page++)
        for (uint32_t slot = 0; slot < count; slot++) {
            const char *at = buffer->bytes + (size_t)page * PAGE_SIZE + slot * size;
            enum store_result result = enter(scan, partition, segment * SEGMENT_PAGES + page, slot,
                                             (const struct format_item *)at);
            if (result != STORE_OK)
                return result;
        }
    return STORE_OK;
}

/* Before a buffer is reused, the writes of its changed pages must have completed. */
static enum store_result start_read(struct scan *scan, struct page_file *file, uint32_t segment)
{
    struct segment_buffer *buffer = &scan->buffers[segment % READ_AHEAD];
    wait_for(scan, buffer);
    if ((scan->error = buffer->error))
        return STORE_IO;
    assert(segment < file->segment_count && buffer->pending == 0);
    buffer->read_vector = (struct iovec){buffer->bytes, SEGMENT_BYTES};
    buffer->read = (struct disk_op){.kind = DISK_READ,
                                    .file = file->file,
                                    .vectors = &buffer->read_vector,
                                    .vector_count = 1,
                                    .offset = (uint64_t)segment * SEGMENT_BYTES,
                                    .done = arrived,
                                    .arg = buffer};
    buffer->pending++;
    disk_queue_op(scan->queue, &buffer->read);
    scan->queue->disk->ops->submit(scan->queue);
    return STORE_OK;
}

static enum store_result scan_next(struct scan *scan, struct partition *partition, uint32_t segment,
                                   uint32_t *started)
{
    struct page_file *file = &partition->file;
    struct segment_buffer *buffer = &scan->buffers[segment % READ_AHEAD];
    while (*started < file->segment_count && *started < segment + READ_AHEAD) {
        enum store_result result = start_read(scan, file, (*started)++);
        if (result != STORE_OK)
            return result;
    }
    assert(*started > segment);
    wait_for(scan, buffer);
    if ((scan->error = buffer->error))
        return STORE_IO;
    return scan_segment(scan, partition, segment, buffer);
}

/* Scans segment by segment, reading ahead the next ones. */
static enum store_result scan_partition(struct scan *scan, struct partition *partition)
{
    struct page_file *file = &partition->file;
    uint32_t started = 0;
    enum store_result result = STORE_OK;
    for (uint32_t segment = 0; segment < file->segment_count && result == STORE_OK; segment++)
        result = scan_next(scan, partition, segment, &started);
    for (uint32_t i = 0; i < READ_AHEAD; i++) {
        wait_for(scan, &scan->buffers[i]);
        if (scan->buffers[i].error && result == STORE_OK) {
            scan->error = scan->buffers[i].error;
            result = STORE_IO;
        }
    }
    if (result == STORE_OK && (scan->error = disk_flush(scan->queue, file->file)))
        result = STORE_IO;
    return result;
}

static void *scan_thread(void *arg)
{
    struct scan *scan = arg;
    struct store *store = scan->store;
    for (uint32_t i = scan->first; i < store->partition_count && scan->result == STORE_OK;
         i += scan->step)
        scan->result = scan_partition(scan, &store->partitions[i]);
    if (scan->result == STORE_OK)
        scan->result = keep_nodes(scan);
    return NULL;
}

/* ---- extents: only the headers are read; roots tell which runs are used ---- */

static enum store_result scan_extent_headers(struct scan *scan)
{
    struct page_file *file = &scan->store->extents;
    for (uint32_t segment = 0; segment < file->segment_count; segment++) {
        char *header = scan->buffers[0].bytes;
        uint64_t offset = (uint64_t)segment * SEGMENT_BYTES;
        bool anew;
        if ((scan->error = disk_read(scan->queue, file->file, header, PAGE_SIZE, offset)))
            return STORE_IO;
        int size_class = class_of(scan, file, segment, header, &anew);
        if (size_class > 0)
            page_file_assign(file, segment, (uint32_t)size_class);
        else if (size_class == 0)
            page_file_add_blank(file, segment);
        if (!anew)
            continue;
        page_file_segment_header(file, segment, header);
        if ((scan->error = disk_write(scan->queue, file->file, header, PAGE_SIZE, offset, true)))
            return STORE_IO;
    }
    return STORE_OK;
}

/* ---- the whole recovery ---- */

static enum store_result prepare_scan(struct scan *scan, struct store *store,
                                      const struct redo_log *journal)
{
    scan->store = store;
    scan->journal = journal;
    for (uint32_t i = 0; i < READ_AHEAD; i++)
        if (!(scan->buffers[i].bytes = disk_alloc(SEGMENT_BYTES)))
            return STORE_NO_MEMORY;
    scan->error = store->disk->ops->queue_create(store->disk, SCAN_DEPTH, &scan->queue);
    return scan->error ? STORE_IO : STORE_OK;
}

static void end_scan(struct scan *scan)
{
    for (uint32_t i = 0; i < READ_AHEAD; i++) {
        assert(scan->buffers[i].pending == 0);
        free(scan->buffers[i].bytes);
    }
    free(scan->nodes);
    found_free(&scan->trees);
    if (scan->queue)
        scan->queue->disk->ops->queue_free(scan->queue);
}

/* As many as there are queues and memory for, which may be fewer. Returns the number. */
static uint32_t prepare_scans(struct store *store, struct scan *scans, uint32_t count,
                              const struct redo_log *journal, enum store_result *result)
{
    uint32_t ready = 0;
    while (ready < count && (*result = prepare_scan(&scans[ready], store, journal)) == STORE_OK)
        ready++;
    for (uint32_t i = 0; i < ready; i++) {
        scans[i].first = i;
        scans[i].step = ready;
    }
    return ready;
}

/* The runs that were lost. */
static void settle_lost(struct store *store, const struct scan *scans, uint32_t count)
{
    uint64_t unlogged = 0;
    for (uint32_t i = 0; i < count; i++)
        if (scans[i].lost_runs > LOST_RUNS_LOGGED)
            unlogged += scans[i].lost_runs - LOST_RUNS_LOGGED;
    if (unlogged > 0)
        env_log(&store->env, STORE_LOG_WARNING,
                "Large values refer to %llu more pages of `extents` that do not belong to them",
                (unsigned long long)unlogged);
    extent_settle_disputed(store);
}

/* One scan per thread; the first runs here. */
static enum store_result scan_all(struct store *store, struct scan *scans, uint32_t count,
                                  const struct redo_log *journal, int *error)
{
    enum store_result result = STORE_OK;
    assert(count > 0);
    count = prepare_scans(store, scans, count, journal, &result);
    *error = scans[0].error;
    if (count == 0)
        return result;
    result = scan_extent_headers(&scans[0]);
    *error = scans[0].error;
    if (result != STORE_OK)
        return result;
    uint32_t started = 1;
    while (started < count &&
           pthread_create(&scans[started].thread, NULL, scan_thread, &scans[started]) == 0)
        started++;
    scan_thread(&scans[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(scans[i].thread, NULL);
    for (uint32_t i = started; i < count; i++)
        scan_thread(&scans[i]);
    for (uint32_t i = 0; i < count; i++) {
        store->recovered_items += scans[i].items;
        atomic_fetch_add(&store->damaged, scans[i].damaged);
        if (scans[i].result != STORE_OK && result == STORE_OK) {
            result = scans[i].result;
            *error = scans[i].error;
        }
    }
    settle_lost(store, scans, count);
    for (uint32_t i = 1; i < count && result == STORE_OK; i++)
        if (!found_merge(&scans[0].trees, &scans[i].trees))
            result = STORE_NO_MEMORY;
    if (result == STORE_OK && !found_settle(store, &scans[0].trees))
        result = STORE_NO_MEMORY;
    return result;
}

/* Only a clean shutdown leaves an index checkpoint, and both superblock copies must confirm it:
 * a lost copy may be the one that says that the store has continued since. */
static bool was_clean(const struct store *store, const struct redo_log *journal)
{
    return store->superblock.latest.clean && !store->superblock.is_damaged &&
           store->superblock.is_in_turn && journal->commits == 0;
}

/* Makes the old journal stale, and the index checkpoint too. */
static int begin_epoch(struct store *store, const struct redo_log *scan)
{
    struct journal_mark mark = {
        .sequence = scan->sequence, .commit = scan->commit, .databases = store->databases};
    if (getrandom(&mark.previous, sizeof mark.previous, 0) != sizeof mark.previous)
        return EIO;
    struct format_superblock *super = &store->superblock.latest;
    super->epoch++;
    atomic_store(&store->tree_ids, 1);
    atomic_store(&store->sequences, 0);
    super->tail_position = mark.position;
    super->tail_sequence = mark.sequence;
    super->tail_previous = mark.previous;
    super->tail_commit = mark.commit;
    super->databases = store->databases;
    super->clean = 0;
    super->clock_ms = (uint64_t)env_now_ms(&store->env);
    journal_start_at(&store->journal, &mark, super->epoch);
    for (uint32_t i = 0; i < store->partition_count; i++)
        store->partitions[i].last_removal = mark.commit - 1;
    return superblock_write(&store->superblock);
}

static void explain(enum store_result result, int error, char *message)
{
    if (result == STORE_IO && error == EAGAIN) /* of a queue; other operations are tried again */
        snprintf(message, STORE_MESSAGE_MAX, "%s", disk_queue_refused(error));
    else if (result == STORE_IO)
        snprintf(message, STORE_MESSAGE_MAX, "Recovery failed: %s",
                 error ? strerror(error) : "the journal cannot be read");
    else if (result == STORE_NO_MEMORY)
        snprintf(message, STORE_MESSAGE_MAX, "Out of memory during recovery");
    else if (result == STORE_CORRUPT)
        snprintf(
            message, STORE_MESSAGE_MAX,
            "Journal and slabs do not belong together, or commits that were durable are missing "
            "from a damaged journal: restore the directory from a backup");
}

enum store_result recover(struct store *store, char *message)
{
    int64_t start = env_clock_ms();
    struct redo_log journal = {0};
    uint32_t threads =
        store->scan_threads < store->partition_count ? store->scan_threads : store->partition_count;
    struct scan *scans = calloc(threads, sizeof *scans);
    int error = 0;
    message[0] = 0;
    enum store_result result = scans ? redo_read(store, &journal, message) : STORE_NO_MEMORY;
    enum store_result loaded = STORE_ABSENT;
    store->stopped = store->superblock.latest;
    store->was_clean = result == STORE_OK && was_clean(store, &journal);
    if (store->was_clean && !store->scans)
        loaded = index_load(store, &store->stopped, message);
    store->is_loaded = loaded == STORE_OK;
    if (result == STORE_OK && loaded == STORE_ABSENT)
        result = scan_all(store, scans, threads, &journal, &error);
    else if (result == STORE_OK)
        result = loaded;
    if (result == STORE_OK && (error = begin_epoch(store, &journal)))
        result = STORE_IO;
    store->recovered_commits = journal.commits;
    store->recovery_ms = (uint64_t)(env_clock_ms() - start);
    for (uint32_t i = 0; scans && i < threads; i++)
        end_scan(&scans[i]);
    free(scans);
    redo_free(&journal);
    if (result != STORE_OK && !message[0])
        explain(result, error, message);
    return result;
}
