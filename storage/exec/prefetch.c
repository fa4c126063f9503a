/*
 * Prefetching for keys: fetches their index lines, their pages' frames and their items into the
 * processor's cache, and reads pages that are not in memory. A look-up follows five pointers that
 * depend on each other; for a batch of keys each step is done for all of them before the next, so
 * that the memory latencies overlap.
 *
 * Only hints: nothing found here is relied upon later.
 */
#include "storage/exec/prefetch.h"

#include <time.h>

#include "storage/txn/load.h"

#define BATCH 16
#define ITEM_BYTES 256 /* the processor fetches the rest of a longer item as it is copied */

struct hint {
    struct partition *partition;
    uint32_t slot, tag;
    uint32_t page; /* 0: unknown */
    uint32_t item;
    bool has_trees;
};

struct batch {
    struct store_worker *worker;
    struct prefetch_locks locks;
    uint32_t count;
    struct hint hints[BATCH];
};

static void find_page(const struct batch *batch, struct hint *hint)
{
    const struct index *index = &hint->partition->index;
    prefetch_enter(&batch->locks, hint->partition);
    uint32_t at = index_find(index, hint->slot, hint->tag);
    if (at != INDEX_NONE) {
        uint64_t entry = index_get(index, hint->slot, at);
        hint->page = index_page(entry);
        hint->item = index_item_slot(entry);
        hint->has_trees = (index_flags(entry) & INDEX_TREES) != 0;
        __builtin_prefetch(&hint->partition->file.table[hint->page]);
    }
    prefetch_leave(&batch->locks, hint->partition);
}

/* If the lock was released since the page was found, its segment may have been emptied and
 * freed. */
static bool holds_items(const struct page_file *file, uint32_t page)
{
    uint32_t size_class =
        page < file->segment_count * SEGMENT_PAGES ? page_file_class_of(file, page) : 0;
    return size_class != 0 && size_class <= FORMAT_SLAB_CLASSES;
}

/* Reads a page only if a frame is available at once. */
static void fetch_page(const struct batch *batch, const struct hint *hint)
{
    struct page_file *file = &hint->partition->file;
    prefetch_enter(&batch->locks, hint->partition);
    bool is_there = holds_items(file, hint->page);
    uint32_t frame = is_there ? file->table[hint->page] : 0;
    if (is_there && frame == 0) {
        load_prefetch(batch->worker, file, hint->page);
    } else if (is_there) {
        uint32_t size = format_class_size(page_file_class_of(file, hint->page));
        const char *item = arena_memory(file->arena, frame) + (size_t)hint->item * size;
        __builtin_prefetch(&arena_frame(file->arena, frame)->state);
        for (uint32_t at = 0; at < size && at < ITEM_BYTES; at += PREFETCH_LINE)
            __builtin_prefetch(item + at);
    }
    prefetch_leave(&batch->locks, hint->partition);
}

#ifdef VELLUM_WAIT
/* The test build sometimes gives other threads a turn between two steps. */
static void pretend_slow(const struct batch *batch)
{
    uint64_t moment = atomic_load(&batch->worker->store->journal.appended);
    if (!batch->locks.is_alone && (batch->hints[0].tag + moment) % 32 == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
#else
static void pretend_slow(const struct batch *batch)
{
    (void)batch;
}
#endif

static void find_pages(struct batch *batch, const struct store_key *keys)
{
    const struct store *store = batch->worker->store;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct hint *hint = &batch->hints[i];
        prefetch_enter(&batch->locks, hint->partition);
        hint->tag = engine_tag(keys[i].hash, engine_database(store, keys[i].db));
        index_prefetch(&hint->partition->index, hint->slot, hint->tag);
        prefetch_leave(&batch->locks, hint->partition);
    }
    for (uint32_t i = 0; i < batch->count; i++)
        find_page(batch, &batch->hints[i]);
    pretend_slow(batch);
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->hints[i].page != 0)
            fetch_page(batch, &batch->hints[i]);
}

/* Returns which of the keys have trees, a bit each. */
static uint32_t prefetch_batch(struct store_worker *worker, const struct store_key *keys,
                               uint32_t count)
{
    struct store *store = worker->store;
    struct batch batch;
    uint32_t with_trees = 0;
    batch.worker = worker;
    batch.locks = (struct prefetch_locks){.store = store, .is_alone = store->worker_count == 1};
    batch.count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct partition *partition = engine_partition(store, keys[i].slot);
        batch.hints[i] = (struct hint){.partition = partition, .slot = keys[i].slot};
        prefetch_locks_add(&batch.locks, partition);
        index_prefetch_table(&partition->index, keys[i].slot);
    }
    prefetch_locks_each(&batch.locks, pthread_mutex_lock);
    find_pages(&batch, keys);
    prefetch_locks_each(&batch.locks, pthread_mutex_unlock);
    for (uint32_t i = 0; i < count; i++)
        with_trees |= (uint32_t)batch.hints[i].has_trees << i;
    return with_trees;
}

uint64_t store_prefetch(struct store_worker *worker, const struct store_key *keys, uint32_t count)
{
    uint64_t with_trees = 0;
    for (uint32_t done = 0; done < count; done += BATCH) {
        uint32_t some = count - done < BATCH ? count - done : BATCH;
        uint64_t found = prefetch_batch(worker, keys + done, some);
        with_trees |= done < 64 ? found << done : 0;
    }
    return with_trees;
}
