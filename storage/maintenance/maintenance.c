/*
 * The maintenance thread: one background thread per store. It extends files before they are full,
 * enforces the durability limit of everysec, writes dirty pages back, makes checkpoints, frees
 * what commits have replaced, and wakes the transactions that wait for any of it.
 *
 * Invariant: a round is requested after a transaction has been added to `throttled`, and the
 * maintenance thread wakes all throttled transactions at the end of each round. So none waits
 * longer than the next round, before which the thread sleeps a millisecond at most.
 */
#include "storage/maintenance/maintenance.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "storage/base/checks.h"
#include "storage/value/long_record.h"
#include "storage/maintenance/index_stream.h"
#include "storage/maintenance/index_save.h"
#include "storage/maintenance/reclaim.h"
#include "storage/cache/access_clock.h"
#include "storage/maintenance/writeback.h"
#include "storage/txn/wait.h"
#include "storage/txn/memory.h"
#include "storage/value/free.h"
#include "storage/maintenance/sweep.h"

#define TICK_MS 100
#define GROW_LEAST 4u /* segments */
#define GROW_MOST 16u
#define RETRY_MS 1000 /* interval after which a full disk is tried again */

/* ---- requests and waiting ---- */

/* maintenance_lock is held. */
static void wait_ms(struct store *store, int64_t ms)
{
    struct timespec until;
    assert(lock_is_held(&store->maintenance_lock));
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&store->maintenance_wake, &store->maintenance_lock, &until);
}

void maintenance_nap(struct store *store, int64_t ms)
{
    int64_t end = env_clock_ms() + ms, left;
    pthread_mutex_lock(&store->maintenance_lock);
    while ((left = end - env_clock_ms()) > 0 && !store->maintenance_stop)
        wait_ms(store, left);
    pthread_mutex_unlock(&store->maintenance_lock);
}

/* ---- growing files ---- */

static uint32_t growth(const struct store *store, const struct page_file *file)
{
    uint64_t limit = atomic_load(&store->max_store_bytes);
    uint64_t bytes = atomic_load(&store->store_bytes);
    uint64_t room = limit == 0 ? UINT32_MAX : limit > bytes ? (limit - bytes) / SEGMENT_BYTES : 0;
    uint32_t wanted = file->segment_count / 8;
    wanted = wanted < GROW_LEAST ? GROW_LEAST : wanted > GROW_MOST ? GROW_MOST : wanted;
    /* A share, so that the first file does not take the last of the room. */
    uint64_t share = room / (2 * (store->partition_count + 1));
    if (wanted > share)
        wanted = share > 0 ? (uint32_t)share : 1;
    uint32_t possible = engine_segments_max(file) - file->segment_count;
    wanted = wanted < possible ? wanted : possible;
    return wanted < room ? wanted : (uint32_t)room;
}

static void note_full(struct store *store, int error)
{
    if (!atomic_exchange(&store->full, true))
        env_log(&store->env, STORE_LOG_WARNING,
                "No room for more data: %s. Deletes and reads continue",
                error ? strerror(error) : "maxstore is reached");
    atomic_store(&store->grow_retry_ms, env_clock_ms() + RETRY_MS);
}

static void note_room(struct store *store)
{
    if (atomic_exchange(&store->full, false))
        env_log(&store->env, STORE_LOG_NOTICE, "There is room for more data again");
}

static bool is_lack_of_room(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM;
}

/* Otherwise the file would grow again and again, by segments that cannot be used. */
static bool has_table_for(struct page_file *file, uint32_t count, uint64_t bytes)
{
    pthread_mutex_lock(&file->lock);
    bool has = page_file_make_room(file, (uint32_t)(bytes / SEGMENT_BYTES) + count);
    pthread_mutex_unlock(&file->lock);
    return has;
}

/* The file was cut in the midst of a segment. What is left of that segment becomes zeros, durably,
 * before the file grows: a blank segment must not show its old items again. */
static int blank_rest(struct store *store, struct page_file *file, uint64_t begin)
{
    uint64_t size = store->disk->ops->size(file->file);
    if (size == begin)
        return 0;
    uint64_t length = (size - begin + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    char *zeros = disk_alloc(length);
    if (!zeros)
        return ENOMEM;
    memset(zeros, 0, length);
    int error = disk_write(store->maintenance_queue, file->file, zeros, length, begin, true);
    free(zeros);
    return error;
}

enum growing { GREW, CANNOT_GROW, GROWING_FAILED };

/* CANNOT_GROW: for lack of room; *lack says why, 0: maxstore. */
static enum growing grow(struct store *store, struct page_file *file, int *lack)
{
    uint32_t count = growth(store, file);
    uint64_t before = store->disk->ops->size(file->file) / SEGMENT_BYTES * SEGMENT_BYTES;
    int error = ENOSPC;
    if (count && !has_table_for(file, count, before))
        error = ENOMEM;
    else if (count && (error = blank_rest(store, file, before)) == 0)
        error = store->disk->ops->extend(file->file, before + (uint64_t)count * SEGMENT_BYTES);
    if (error && !is_lack_of_room(error)) { /* the flush covers earlier writes, too */
        env_fail(&store->env, "extending a file", error);
        return GROWING_FAILED;
    }
    uint64_t after = store->disk->ops->size(file->file) / SEGMENT_BYTES * SEGMENT_BYTES;
    pthread_mutex_lock(&file->lock);
    assert(after >= before && after / SEGMENT_BYTES >= file->segment_count);
    if (page_file_make_room(file, (uint32_t)(after / SEGMENT_BYTES)))
        while (file->segment_count < after / SEGMENT_BYTES)
            page_file_add_blank(file, file->segment_count++);
    if (!error)
        page_file_grown(file);
    pthread_mutex_unlock(&file->lock);
    atomic_fetch_add(&store->store_bytes, after - before);
    *lack = count ? error : 0;
    bool is_stuck = error && after == before && (count > 0 || growth(store, file) == 0);
    return is_stuck ? CANNOT_GROW : GREW; /* or maxstore was raised meanwhile */
}

static bool reclaim(struct store *store, struct page_file *file, bool only_spare, bool *later)
{
    if (reclaim_segments(store, file, only_spare, later) == 0)
        return false;
    pthread_mutex_lock(&file->lock);
    page_file_grown(file);
    pthread_mutex_unlock(&file->lock);
    return true;
}

/* Reuses segments that other classes have emptied and can spare before it extends the file; if it
 * cannot be extended, all that are empty. */
static void find_room(struct store *store, struct page_file *file)
{
    bool spares_later, others_later = false;
    int lack;
    if (atomic_load(&store->full)) { /* the refused requesters no longer need their free segments */
        pthread_mutex_lock(&file->lock);
        page_file_forget_asked(file);
        pthread_mutex_unlock(&file->lock);
    }
    enum growing growing = GREW;
    if (!reclaim(store, file, true, &spares_later))
        growing = grow(store, file, &lack);
    if (growing == CANNOT_GROW && reclaim(store, file, false, &others_later))
        growing = GREW;
    if (growing == GREW)
        note_room(store);
    else if (growing == CANNOT_GROW && !spares_later && !others_later)
        note_full(store, lack);
}

/* ---- what cannot wait ---- */

/* If a transaction waits for room, and deferred runs wait only for the journal, flushes it.
 * Returns whether one waits. */
static bool hurry_room(struct store *store)
{
    if (!atomic_exchange(&store->room_wanted, false))
        return false;
    pthread_mutex_lock(&store->extents.lock);
    bool is_near = extent_free_is_near(store);
    pthread_mutex_unlock(&store->extents.lock);
    if (is_near)
        writeback_sync(store, atomic_load(&store->journal.appended));
    return true;
}

static bool anything_expires(struct store *store)
{
    bool any = false;
    for (uint32_t i = 0; i < store->partition_count && !any; i++) {
        pthread_mutex_lock(&store->partitions[i].file.lock);
        any = ttl_count(&store->partitions[i].ttl) > 0;
        pthread_mutex_unlock(&store->partitions[i].file.lock);
    }
    return any;
}

static void tick(struct store *store)
{
    store->tick_at_ms = env_clock_ms() + TICK_MS;
    bool expiry = anything_expires(store);
    pthread_mutex_lock(&store->maintenance_lock);
    for (uint32_t i = 0; i < store->worker_count && expiry; i++) {
        struct store_worker *worker = store->workers[i];
        if (!worker)
            continue;
        atomic_store_explicit(&worker->expire_due, true, memory_order_relaxed);
        request_notify(worker);
    }
    pthread_mutex_unlock(&store->maintenance_lock);
    access_tidy(&store->cache);
}

/* Work that cannot wait until a long operation ends. */
static void meanwhile(struct store *store)
{
    long_record_write(store);
    writeback_sync_by_age(store);
    hurry_room(store);
    extent_free_due(store);
    memory_keep(store);
    maintenance_release(store);
    if (env_clock_ms() >= store->tick_at_ms)
        tick(store);
}

static void grow_what_asked(struct store *store)
{
    if (atomic_load(&store->full) && env_clock_ms() < atomic_load(&store->grow_retry_ms))
        return;
    for (uint32_t i = 0; i <= store->partition_count; i++) {
        struct page_file *file =
            i == store->partition_count ? &store->extents : &store->partitions[i].file;
        pthread_mutex_lock(&file->lock);
        bool wanted = file->growing;
        pthread_mutex_unlock(&file->lock);
        if (!wanted)
            continue;
        find_room(store, file);
        meanwhile(store);
    }
}

/* ---- checkpoints ---- */

/* After a crash redo reads all long records into memory: they are bounded as dirty pages are. If
 * `lacks_room`, the runs of any are needed. */
static bool checkpoint_due(struct store *store, bool lacks_room)
{
    uint32_t limit = atomic_load_explicit(&store->cache.arena.limit, memory_order_relaxed);
    return atomic_load_explicit(&store->cache.dirty_frames, memory_order_relaxed) > limit / 4 ||
           journal_needs_checkpoint(&store->journal) || long_record_checkpoint_due(store) ||
           (lacks_room && journal_long_record_bytes(&store->journal) > 0);
}

/* Between two batches, does the work that cannot wait for the end of the checkpoint. */
static bool write_page_file(struct store *store, struct page_file *file, struct batch *batch)
{
    uint32_t cursor = 0;
    while (writeback_step(store, file, batch, &cursor)) {
        grow_what_asked(store);
        meanwhile(store);
    }
    return !env_failed(&store->env);
}

static void check_caches(struct store *store)
{
    for (uint32_t i = 0; i <= store->partition_count; i++) {
        struct page_file *file =
            i == store->partition_count ? &store->extents : &store->partitions[i].file;
        pthread_mutex_lock(&file->lock);
        page_file_check(file);
        pthread_mutex_unlock(&file->lock);
    }
    arena_check(&store->cache.arena);
}

static void checkpoint(struct store *store, bool clean)
{
    struct batch *batch = writeback_batch();
    struct journal_mark mark;
    journal_mark(&store->journal, &mark);
    assert(mark.commit >= store->superblock.latest.tail_commit);
    bool good = batch && writeback_sync(store, mark.commit - 1);
    for (uint32_t i = 0; i < store->partition_count && good; i++)
        good = write_page_file(store, &store->partitions[i].file, batch);
    if (good && write_page_file(store, &store->extents, batch))
        writeback_finish(store, &mark, clean);
    free(batch);
    if (storage_checks_enabled())
        check_caches(store);
}

/* ---- the round ---- */

static void *keep(void *arg)
{
    struct store *store = arg;
    store->tick_at_ms = env_clock_ms() + TICK_MS;
    for (;;) {
        pthread_mutex_lock(&store->maintenance_lock);
        int64_t left = store->tick_at_ms - env_clock_ms();
        if (!store->maintenance_stop && !store->maintenance_asked && left > 0)
            wait_ms(store, left);
        bool stop = store->maintenance_stop;
        store->maintenance_asked = false;
        pthread_mutex_unlock(&store->maintenance_lock);
        if (stop)
            return NULL;
        long_record_write(store);
        grow_what_asked(store);
        writeback_sync_by_age(store);
        bool lacks_room = hurry_room(store);
        bool busy = extent_free_due(store);
        if (checkpoint_due(store, lacks_room) && !env_failed(&store->env))
            checkpoint(store, false);
        busy |= sweep_step(store);
        memory_keep(store);
        maintenance_release(store);
        if (env_clock_ms() >= store->tick_at_ms) {
            tick(store);
        } else if (!busy) {
            maintenance_nap(store, 1); /* a request repeated at once would find nothing new */
        }
    }
}

int maintenance_start(struct store *store)
{
    assert(!store->maintenance_running);
    store->maintenance_stop = false;
    int error = pthread_create(&store->maintenance_thread, NULL, keep, store);
    store->maintenance_running = error == 0;
    return error;
}

void maintenance_halt(struct store *store)
{
    if (!store->maintenance_running)
        return;
    pthread_mutex_lock(&store->maintenance_lock);
    store->maintenance_stop = true;
    pthread_cond_signal(&store->maintenance_wake);
    pthread_mutex_unlock(&store->maintenance_lock);
    pthread_join(store->maintenance_thread, NULL);
    store->maintenance_running = false;
}

/* No worker is attached any more. */
static void check_indexes(const struct store *store)
{
    for (uint32_t i = 0; i < store->partition_count; i++) {
        const struct partition *partition = &store->partitions[i];
        index_check(&partition->index);
        ttl_check(&partition->ttl);
        assert(partition->key_lock_count == 0);
    }
}

void maintenance_finish(struct store *store)
{
    if (!store->maintenance_running)
        return;
    maintenance_halt(store);
    /* A flush or a swap of databases dirties no page whose write-back would make the last group
     * durable. */
    if (!env_failed(&store->env) && writeback_sync(store, atomic_load(&store->journal.appended)))
        checkpoint(store, false);
    if (!env_failed(&store->env))
        checkpoint(store, true); /* the first one's own last records included */
    extent_free_due(store);
    if (storage_checks_enabled())
        check_indexes(store);
    if (!env_failed(&store->env))
        index_save(store);
    assert(STAILQ_EMPTY(&store->throttled));
    while (store->maintenance_queue->in_flight ||
           store->maintenance_queue->queued) { /* after a failure */
        store->disk->ops->submit(store->maintenance_queue);
        store->disk->ops->reap(store->maintenance_queue, 1);
    }
}
