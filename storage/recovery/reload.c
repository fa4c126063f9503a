/*
 * Reload: discards all state in memory and recovers it from the files, as at a start, while the
 * workers stay attached. For tests of recovery on a running server.
 *
 * Only the journal is written back first: changes that were only in dirty pages must come from
 * it.
 *
 *   in a request of scope STORE_SCOPE_ALL:
 *   hold the store lock, release the partition locks -> stop the maintenance thread
 *   -> journal durable -> take the partition locks -> forget -> recover
 *   -> start the maintenance thread
 *
 * Invariants
 * 1. While the store lock is held nothing is committed: requests with keys wait for it, and the
 *    maintenance thread, whose segment changes and sweeps would interfere, does not run.
 * 2. While state is discarded or recovered, the locks of all partitions are held. Other threads
 *    may have page reads in flight. Such a page was not in memory, so the file has its newest
 *    state; recovery does not change it, and the frame stays and becomes valid.
 * 3. No value reader or snapshot is open, so nothing reads runs that the deferred list would have
 *    kept. No upload has a run, so nothing writes to runs that no item names.
 */
#include "storage/recovery/reload.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "storage/value/long_record.h"
#include "storage/cache/access_clock.h"
#include "storage/maintenance/writeback.h"
#include "storage/txn/wait.h"
#include "storage/recovery/recover.h"
#include "storage/exec/request.h"
#include "storage/maintenance/maintenance.h"
#include "storage/tree/tree_drop.h"
#include "storage/value/free.h"

/* ---- quiescing ---- */

/* False: runs are in use by value readers or snapshots, or by uploads, to which recovery would find
 * them free. Uploads that begin from here on wait. */
static bool begin(struct store *store)
{
    pthread_mutex_lock(&store->extents.lock);
    bool is_free = LIST_EMPTY(&store->readers) && LIST_EMPTY(&store->open_uploads) &&
                   LIST_EMPTY(&store->snapshots);
    atomic_store(&store->reloading, is_free);
    pthread_mutex_unlock(&store->extents.lock);
    return is_free;
}

/* The maintenance thread may be waiting for a journal group whose write this thread has to
 * reap. */
static void drain(struct disk_queue *queue)
{
    while (queue->in_flight || queue->queued) {
        queue->disk->ops->submit(queue);
        queue->disk->ops->reap(queue, 1);
    }
}

static bool stand_still(struct store_txn *txn)
{
    struct store *store = txn->store;
    request_hold_store_lock(txn);
    request_unlock(txn);
    drain(txn->worker->queue);
    assert(store->store_lock_holder == txn);
    maintenance_halt(store);
    bool durable = writeback_sync(store, atomic_load(&store->journal.appended));
    request_lock(txn);
    return durable;
}

/* ---- discarding the state ---- */

static void forget_page_file(struct page_file *file)
{
    for (uint32_t page = 0; page < file->segment_count * SEGMENT_PAGES; page++) {
        uint32_t number = file->table[page];
        if (number && arena_frame(file->arena, number)->state == FRAME_VALID)
            page_file_drop(file, page);
    }
    assert(file->dirty_count == 0);
    memset(file->free_slots, 0,
           (size_t)file->segment_room * SEGMENT_PAGES * sizeof *file->free_slots);
    memset(file->segment_class, 0, file->segment_room * sizeof *file->segment_class);
    memset(file->segment_blank, 0, file->segment_room * sizeof *file->segment_blank);
    memset(file->segment_free, 0, file->segment_room * sizeof *file->segment_free);
    memset(file->classes, 0, sizeof file->classes);
    access_drop(file);
    file->segment_assigned = file->blank_count = 0;
}

static void forget_partition(struct store *store, struct partition *partition)
{
    uint32_t slots = STORE_SLOT_COUNT / store->partition_count;
    uint32_t first = partition->file.id * slots;
    assert(partition->key_lock_count == 0);
    forget_page_file(&partition->file);
    index_clear(&partition->index);
    ttl_clear(&partition->ttl);
    ttl_init(&partition->ttl, first, slots, env_now_ms(&store->env));
    memset(partition->databases, 0, sizeof partition->databases);
}

void engine_forget(struct store *store)
{
    for (uint32_t i = 0; i < store->partition_count; i++)
        forget_partition(store, &store->partitions[i]);
    pthread_mutex_lock(&store->free_lock);
    pthread_mutex_lock(&store->extents.lock);
    extent_forget_deferred(store);
    long_record_forget(store);
    forget_page_file(&store->extents);
    number_list_clear(&store->disputed_runs);
    pthread_mutex_unlock(&store->extents.lock);
    pthread_mutex_unlock(&store->free_lock);
    store->generation++;
    tree_forget_dropped(store);
    number_list_clear(&store->disputed_collections);
    atomic_store(&store->sweep_asked, false);
    store->sweep_left = store->sweep_partition = store->sweep_segment = 0;
    store->sweep_skipped = 0;
    store->recovered_items = 0;
}

/* ---- the whole reload ---- */

static enum store_result recover_again(struct store *store, char *message)
{
    int64_t latest = env_now_ms(&store->env);
    assert(!store->maintenance_running);
    engine_forget(store);
    enum store_result result = superblock_read(&store->superblock, message);
    env_set_clock(&store->env, latest); /* the last checkpoint's is older */
    if (result == STORE_OK)
        result = recover(store, message);
    if (result == STORE_OK)
        return STORE_OK;
    env_log(&store->env, STORE_LOG_WARNING, "Reloading failed: %s", message);
    return result == STORE_ABSENT ? STORE_CORRUPT : result;
}

enum store_result store_reload(struct store_txn *txn, char message[STORE_MESSAGE_MAX])
{
    struct store *store = txn->store;
    assert(txn->request->scope == STORE_SCOPE_ALL && txn->write_count == 0);
    if (!begin(store)) {
        snprintf(message, STORE_MESSAGE_MAX,
                 "A large value is being sent to a client or received, or a snapshot made");
        return STORE_LOCKED;
    }
    snprintf(message, STORE_MESSAGE_MAX, "Writing to the device has failed");
    enum store_result result = STORE_REFUSED;
    if (stand_still(txn))
        result = recover_again(store, message);
    if (maintenance_start(store) != 0 && result == STORE_OK) {
        snprintf(message, STORE_MESSAGE_MAX, "Cannot start a thread");
        result = STORE_NO_MEMORY;
    }
    if (result == STORE_OK)
        env_log(&store->env, STORE_LOG_NOTICE,
                "Reloaded %llu items and %llu commits of the journal",
                (unsigned long long)store->recovered_items,
                (unsigned long long)store->recovered_commits);
    else
        env_fail(&store->env, "reloading", EIO);
    /* After a failure no upload may take a run: which ones are free is not known. */
    atomic_store(&store->reloading, false);
    return result;
}
