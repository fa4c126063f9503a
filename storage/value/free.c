/*
 * Freeing the runs of large values. A commit that gives runs up defers them here; the maintenance
 * thread frees them when two conditions hold:
 * 1. the commit is durable: until then a crash brings the old value back, with its extents;
 * 2. no value reader or snapshot is open that began before the commit: these read versions after
 *    the transaction that has given them up.
 *
 * A run is in at most one entry. free_lock keeps the maintenance thread's freeing apart from a
 * flush of everything, which lists all runs in use.
 */
#include "storage/value/free.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/value/long_record.h"

/* Runs to free once `commit` is durable and no reader sees them. */
struct deferred_free {
    STAILQ_ENTRY(deferred_free) link;
    uint64_t commit;
    uint32_t count, depth;
    struct format_extent extents[];
};

/* ---- readers of old versions ---- */

/* All open run readers see the commits up to this number: runs that those gave up may be freed.
 * extents.lock is held. */
static uint64_t oldest_reader(const struct store *store)
{
    uint64_t oldest = UINT64_MAX;
    const struct run_reader *reader;
    assert(lock_is_held(&store->extents.lock));
    LIST_FOREACH (reader, &store->readers, link)
        if (reader->seen < oldest)
            oldest = reader->seen;
    return oldest;
}

void run_reader_begin(struct store *store, struct run_reader *reader, uint64_t seen)
{
    reader->seen = seen;
    pthread_mutex_lock(&store->extents.lock);
    LIST_INSERT_HEAD(&store->readers, reader, link);
    pthread_mutex_unlock(&store->extents.lock);
}

void run_reader_end(struct store *store, struct run_reader *reader)
{
    pthread_mutex_lock(&store->extents.lock);
    LIST_REMOVE(reader, link);
    pthread_mutex_unlock(&store->extents.lock);
}

/* ---- deferring and freeing ---- */

static void defer(struct store *store, struct deferred_free *entry)
{
    assert(entry->count > 0);
    pthread_mutex_lock(&store->extents.lock);
    STAILQ_INSERT_TAIL(&store->deferred, entry, link);
    pthread_mutex_unlock(&store->extents.lock);
}

void extent_free_list(struct store *store, const struct format_extent *extents, uint32_t count,
                      uint32_t depth, uint64_t commit)
{
    if (count == 0)
        return;
    struct deferred_free *entry = malloc(sizeof *entry + count * sizeof *extents);
    if (!entry) {
        atomic_store(&store->scan_wanted, true);
        env_log(&store->env, STORE_LOG_WARNING,
                "Out of memory: the space of a deleted value is free again after the next start");
        return;
    }
    *entry = (struct deferred_free){.commit = commit, .count = count, .depth = depth};
    memcpy(entry->extents, extents, count * sizeof *extents);
    defer(store, entry);
}

void extent_free_root(struct store *store, const struct format_root *root, uint64_t commit)
{
    extent_free_list(store, root->extents, root->count, root->depth, commit);
}

static void free_root_at(struct store *store, const char *at, uint32_t length)
{
    struct format_root *root = malloc(length);
    if (!root) {
        atomic_store(&store->scan_wanted, true);
        return;
    }
    memcpy(root, at, length);
    extent_free_root(store, root, atomic_load(&store->journal.appended));
    free(root);
}

void extent_free_item(struct store *store, const struct format_item *item)
{
    if (item->flags & FORMAT_LARGE)
        free_root_at(store, format_payload(item), item->payload_len);
    if (item->flags & FORMAT_LONG_KEY)
        free_root_at(store, format_key_root(item), format_key_root_length(item));
}

bool extent_note_disputed(struct store *store, uint32_t page)
{
    assert(lock_is_held(&store->extents.lock));
    return number_list_append(&store->disputed_runs, page);
}

void extent_settle_disputed(struct store *store)
{
    pthread_mutex_lock(&store->extents.lock);
    number_list_sort(&store->disputed_runs);
    pthread_mutex_unlock(&store->extents.lock);
}

void extent_forget_deferred(struct store *store)
{
    for (struct deferred_free *entry; (entry = STAILQ_FIRST(&store->deferred)) != NULL;) {
        STAILQ_REMOVE_HEAD(&store->deferred, link);
        free(entry);
    }
}

/* Defers every run in use, including those given up before: all databases were emptied. Not the
 * runs of uploads, which belong to no database yet, nor long records, which redo may still need. */
void extent_free_all(struct store *store, uint64_t commit)
{
    struct page_file *file = &store->extents;
    pthread_mutex_lock(&store->free_lock);
    pthread_mutex_lock(&file->lock);
    extent_forget_deferred(store);
    number_list_clear(&store->disputed_runs);
    store->hooks->set_uploads_apart(store, true);
    long_record_set_apart(store, true);
    uint32_t used = page_file_used_runs(file, NULL);
    struct format_extent *runs = malloc((used + 1) * sizeof *runs);
    if (runs)
        page_file_used_runs(file, runs);
    long_record_set_apart(store, false);
    store->hooks->set_uploads_apart(store, false);
    pthread_mutex_unlock(&file->lock);
    if (!runs)
        atomic_store(&store->scan_wanted, true);
    if (!runs)
        env_log(&store->env, STORE_LOG_WARNING,
                "Out of memory: the space of large values is free again after the next start");
    else
        extent_free_list(store, runs, used, 0, commit);
    pthread_mutex_unlock(&store->free_lock);
    free(runs);
}

/* The scan at the next start repairs the list of free runs. */
static void report_damage(struct store *store, const struct format_extent *run)
{
    atomic_store(&store->scan_wanted, true);
    atomic_fetch_add_explicit(&store->damaged, 1, memory_order_relaxed);
    env_log(&store->env, STORE_LOG_WARNING,
            "A deleted large value refers to page %u of `extents`, which does not belong to it: "
            "it is damaged, and the page remains allocated",
            run->page);
}

/* Whether a transaction waits for one of its pages: then the run belongs to another value, too. */
static bool is_awaited(const struct page_file *file, const struct format_extent *run)
{
    uint32_t pages = page_file_run_pages(page_file_class_of(file, run->page));
    for (uint32_t i = 0; i < pages; i++) {
        uint32_t frame = file->table[run->page + i];
        if (frame && arena_frame(file->arena, frame)->waiters)
            return true;
    }
    return false;
}

/* A descriptor from a root or node on disk is not trusted: freeing a run that is free already, or
 * that is none, would corrupt its next owner. extents.lock is held. */
static void free_extent(struct page_file *file, const struct format_extent *run)
{
    assert(lock_is_held(&file->lock));
    if (!format_extent_is_sound(run) || !page_file_has_run(file, run) || is_awaited(file, run) ||
        number_list_has(&file->engine->disputed_runs, run->page)) {
        report_damage(file->engine, run);
        return;
    }
    uint32_t pages = page_file_run_pages(page_file_class_of(file, run->page));
    for (uint32_t i = 0; i < pages; i++)
        page_file_drop(file, run->page + i);
    page_file_give_slot(file, run->page, 0);
}

/* A segment with a damaged header has no class, which was logged at the start: its runs are not
 * reused. */
static bool has_no_class(const struct page_file *file, uint32_t page)
{
    return page / SEGMENT_PAGES < file->segment_count && page_file_class_of(file, page) == 0;
}

static void free_extents(struct page_file *file, const struct format_extent *extents,
                         uint32_t count)
{
    pthread_mutex_lock(&file->lock);
    for (uint32_t i = 0; i < count; i++)
        if (extents[i].page != 0 && !has_no_class(file, extents[i].page))
            free_extent(file, &extents[i]);
    pthread_mutex_unlock(&file->lock);
}

/* False also for a disputed node: the scan regarded the extents that it names as free. */
static bool has_run(struct store *store, const struct format_extent *run)
{
    pthread_mutex_lock(&store->extents.lock);
    bool there = page_file_has_run(&store->extents, run) &&
                 !number_list_has(&store->disputed_runs, run->page);
    pthread_mutex_unlock(&store->extents.lock);
    return there;
}

/* Reads the node past the cache. False: it cannot be read or is no node; it stays allocated with
 * its extents until the next start. */
static bool free_node(struct store *store, const struct format_extent *node)
{
    struct format_extent *extents = disk_alloc(PAGE_SIZE);
    bool there = has_run(store, node);
    bool read = there && extents &&
                disk_read(store->maintenance_queue, store->extents.file, extents, PAGE_SIZE,
                          (uint64_t)node->page * PAGE_SIZE) == 0;
    bool good = read && node->length == FORMAT_NODE_BYTES &&
                format_checksum(extents, FORMAT_NODE_BYTES) == node->checksum;
    if (good)
        free_extents(&store->extents, extents, FORMAT_NODE_FANOUT);
    else if (read || !there)
        report_damage(store, node);
    else
        atomic_store(&store->scan_wanted, true);
    free(extents);
    return good;
}

/* No value reader or snapshot reads the version with these runs any more. */
static bool is_unread(const struct store *store, const struct deferred_free *entry)
{
    return entry->commit <= oldest_reader(store) &&
           entry->commit <= store->hooks->oldest_snapshot(store);
}

bool extent_free_is_near(const struct store *store)
{
    const struct deferred_free *oldest = STAILQ_FIRST(&store->deferred);
    return oldest && is_unread(store, oldest);
}

static struct deferred_free *take_due(struct store *store)
{
    uint64_t durable = journal_durable(&store->journal);
    assert(lock_is_held(&store->free_lock));
    pthread_mutex_lock(&store->extents.lock);
    struct deferred_free *entry = STAILQ_FIRST(&store->deferred);
    if (entry && entry->commit <= durable && is_unread(store, entry))
        STAILQ_REMOVE_HEAD(&store->deferred, link);
    else
        entry = NULL;
    pthread_mutex_unlock(&store->extents.lock);
    return entry;
}

static bool free_one(struct store *store)
{
    pthread_mutex_lock(&store->free_lock);
    struct deferred_free *entry = take_due(store);
    if (entry) {
        for (uint32_t i = 0; entry->depth == 1 && i < entry->count; i++)
            if (entry->extents[i].page && !free_node(store, &entry->extents[i]))
                entry->extents[i].page = 0;
        free_extents(&store->extents, entry->extents, entry->count);
    }
    pthread_mutex_unlock(&store->free_lock);
    bool any = entry != NULL;
    free(entry);
    return any;
}

bool extent_free_due(struct store *store)
{
    bool any = false;
    while (free_one(store))
        any = true;
    return any;
}
