/*
 * Opening and closing a store, its options and its figures.
 */
#include "storage/store.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "storage/value/annex.h"
#include "storage/cache/use.h"
#include "storage/txn/wait.h"

#define FRAMES_AT_FIRST 256u
#define KEEPER_DEPTH 64u

void engine_durable_advanced(struct store *store, const struct disk_queue *here)
{
    if (atomic_load_explicit(&store->sync, memory_order_relaxed) == STORE_SYNC_ALWAYS ||
        atomic_load(&store->durable_awaited) > 0)
        wait_wake_workers(store, here);
    keeper_release(store);
}

uint64_t store_durable(const struct store *store)
{
    return atomic_load_explicit(&store->journal.durable, memory_order_acquire);
}

void store_await_durable(struct store *store, int change)
{
    atomic_fetch_add(&store->durable_awaited, (uint32_t)change);
}

bool store_has_failed(const struct store *store)
{
    return env_failed(&store->env);
}

int64_t store_clock_ms(struct store *store)
{
    return env_now_ms(&store->env);
}

/* ---- options ---- */

void store_set_sync(struct store *store, enum store_sync sync)
{
    atomic_store(&store->sync, (int)sync);
    engine_wake_workers(store);
}

void store_set_active_expiry(struct store *store, bool active)
{
    atomic_store(&store->walks_expired, active);
}

void store_set_max_store(struct store *store, uint64_t max_store_bytes)
{
    atomic_store(&store->max_store_bytes, max_store_bytes);
    atomic_store(&store->grow_retry_ms, 0);
    keeper_ask(store);
}

void store_set_policy(struct store *store, const struct store_policy *policy)
{
    struct policy *own = &store->policy;
    atomic_store(&own->only_expiring, policy->only_expiring);
    atomic_store(&own->samples, policy->samples);
    atomic_store(&own->log_factor, policy->lfu_log_factor);
    atomic_store(&own->decay_minutes, policy->lfu_decay_minutes);
    atomic_store(&own->evicts, (int)policy->evicts);
    use_want(store, policy->evicts == STORE_EVICT_LRU   ? USE_TIME
                    : policy->evicts == STORE_EVICT_LFU ? USE_FREQUENCY
                                                        : USE_IGNORED);
    keeper_ask(store);
}

/* ---- opening ---- */

static enum store_result open_space(struct store *store, struct space *space, const char *name,
                                    uint8_t id, char *message)
{
    if (!space_init(space, store, id))
        return STORE_NO_MEMORY;
    int error = store->disk->ops->open(store->disk, name, false, &space->file);
    if (error) {
        snprintf(message, STORE_MESSAGE_MAX, "Cannot open %s of the data directory: %s", name,
                 strerror(error));
        return error == ENOENT ? STORE_CORRUPT : STORE_IO;
    }
    uint64_t size = store->disk->ops->size(space->file);
    if (!space_make_room(space, (uint32_t)(size / SEGMENT_BYTES)))
        return STORE_NO_MEMORY;
    space->segment_count = (uint32_t)(size / SEGMENT_BYTES);
    atomic_fetch_add(&store->store_bytes, size);
    return STORE_OK;
}

static enum store_result open_partitions(struct store *store, char *message)
{
    uint32_t count = store->super.partition_count;
    uint32_t slots = STORE_SLOT_COUNT / count;
    store->partition_count = count;
    store->slot_shift = (uint32_t)__builtin_ctz(slots);
    store->partitions = aligned_alloc(64, count * sizeof *store->partitions);
    if (!store->partitions)
        return STORE_NO_MEMORY;
    memset(store->partitions, 0, count * sizeof *store->partitions);
    for (uint32_t i = 0; i < count; i++) {
        struct partition *partition = &store->partitions[i];
        char name[16];
        snprintf(name, sizeof name, "slabs-%02x", i);
        enum store_result result = open_space(store, &partition->space, name, (uint8_t)i, message);
        if (result != STORE_OK)
            return result;
        if (!index_init(&partition->index, i * slots, slots))
            return STORE_NO_MEMORY;
        ttl_init(&partition->ttl, i * slots, slots, store_clock_ms(store));
    }
    return open_space(store, &store->extents, "extents", FORMAT_EXTENT_SPACE, message);
}

static enum store_result open_journal(struct store *store, char *message)
{
    int error = store->disk->ops->open(store->disk, "journal", false, &store->journal.file);
    if (!error && store->disk->ops->size(store->journal.file) < store->super.journal_bytes)
        error = EINVAL;
    if (error) {
        snprintf(message, STORE_MESSAGE_MAX, "Cannot open the journal: %s",
                 error == EINVAL ? "it is shorter than the superblock says" : strerror(error));
        return error == EINVAL || error == ENOENT ? STORE_CORRUPT : STORE_IO;
    }
    atomic_fetch_add(&store->store_bytes, store->super.journal_bytes);
    return STORE_OK;
}

/* The power may have failed between the superblock and the directory's flush, when it was made. */
static enum store_result sync_names(struct store *store, char *message)
{
    int error = store->disk->ops->sync_directory(store->disk);
    if (error)
        snprintf(message, STORE_MESSAGE_MAX, "Cannot flush the data directory: %s",
                 strerror(error));
    return error ? STORE_IO : STORE_OK;
}

static enum store_result open_superblock(struct store *store, const struct store_options *options,
                                         char *message)
{
    int error = store->disk->ops->open(store->disk, "superblock", false, &store->super_file);
    enum store_result result = error == ENOENT ? superblock_missing(store, message)
                               : error         ? STORE_IO
                                               : superblock_read(store, message);
    if (result == STORE_ABSENT) {
        env_log(&store->env, STORE_LOG_NOTICE,
                "Making a new data directory: %u partitions, journal %llu MB",
                options->partition_count, (unsigned long long)options->journal_bytes >> 20);
        return superblock_create(store, options, message);
    }
    if (error == EBUSY) {
        snprintf(message, STORE_MESSAGE_MAX,
                 "The files of the data directory are in use by another server, perhaps under "
                 "another name: stop that one, or choose another directory with --dir");
        return STORE_LOCKED;
    }
    if (error && error != ENOENT)
        snprintf(message, STORE_MESSAGE_MAX, "Cannot open the superblock: %s", strerror(error));
    return result == STORE_OK ? sync_names(store, message) : result;
}

static enum store_result open_files(struct store *store, const struct store_options *options,
                                    char *message)
{
    int error = store->disk->ops->queue_create(store->disk, KEEPER_DEPTH, &store->keeper_queue);
    if (error) {
        snprintf(message, STORE_MESSAGE_MAX,
                 error == EAGAIN ? "Too few AIO slots: raise /proc/sys/fs/aio-max-nr (sysctl -w "
                                   "fs.aio-max-nr=1048576)"
                                 : "Cannot set up asynchronous I/O");
        return STORE_IO;
    }
    if (!(store->super_page = disk_alloc(PAGE_SIZE)))
        return STORE_NO_MEMORY;
    enum store_result result = open_superblock(store, options, message);
    if (result == STORE_OK && !journal_init(&store->journal, store, store->super.journal_bytes))
        result = STORE_NO_MEMORY;
    uint64_t most = store->super.journal_bytes / JOURNAL_RECORD_SHARE;
    uint64_t wanted = options->record_bytes;
    store->record_most = wanted && wanted < most ? wanted : most;
    if (result == STORE_OK)
        result = open_journal(store, message);
    if (result == STORE_OK)
        result = open_partitions(store, message);
    return result;
}

static void on_failure(void *arg)
{
    engine_wake_workers(arg);
}

static struct store *new_store(const struct store_options *options)
{
    struct store *store = aligned_alloc(_Alignof(struct store), sizeof *store);
    if (!store)
        return NULL;
    memset(store, 0, sizeof *store);
    store->env.log = options->log;
    store->env.log_arg = options->log_arg;
    store->env.on_failure = on_failure;
    store->env.arg = store;
    store->process_bytes = options->process_bytes;
    store->process_arg = options->process_arg;
    store->worker_count = options->worker_count;
    store->scans = options->scans;
    store->scan_threads = options->scan_threads ? options->scan_threads : options->worker_count;
    store->workers = calloc(options->worker_count, sizeof *store->workers);
    atomic_store(&store->sync, (int)options->sync);
    atomic_store(&store->memory_bytes, options->memory_bytes);
    atomic_store(&store->max_store_bytes, options->max_store_bytes);
    atomic_store(&store->walks_expired, true);
    arena_init(&store->arena, FRAMES_AT_FIRST);
    pthread_mutex_init(&store->barrier_lock, NULL);
    pthread_mutex_init(&store->throttle_lock, NULL);
    pthread_mutex_init(&store->free_lock, NULL);
    pthread_mutex_init(&store->graves_lock, NULL);
    pthread_mutex_init(&store->keeper_lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&store->keeper_wake, &attributes);
    pthread_condattr_destroy(&attributes);
    return store;
}

static void close_file(struct store *store, struct disk_file *file)
{
    if (file)
        store->disk->ops->close(file);
}

void engine_destroy(struct store *store)
{
    for (uint32_t i = 0; i < store->partition_count && store->partitions; i++) {
        close_file(store, store->partitions[i].space.file);
        index_free(&store->partitions[i].index);
        ttl_clear(&store->partitions[i].ttl);
        space_free(&store->partitions[i].space);
    }
    close_file(store, store->extents.file);
    space_free(&store->extents);
    close_file(store, store->journal.file);
    if (store->journal.size) {
        annex_forget(store);
        journal_free(&store->journal);
    }
    close_file(store, store->super_file);
    if (store->keeper_queue)
        store->disk->ops->queue_free(store->keeper_queue);
    if (store->disk)
        store->disk->ops->free(store->disk);
    extent_forget_deferred(store);
    tree_forget_graves(store);
    free(store->super_page);
    free(store->partitions);
    free(store->workers);
    arena_free(&store->arena);
    pthread_cond_destroy(&store->keeper_wake);
    pthread_mutex_destroy(&store->keeper_lock);
    pthread_mutex_destroy(&store->graves_lock);
    pthread_mutex_destroy(&store->free_lock);
    pthread_mutex_destroy(&store->throttle_lock);
    pthread_mutex_destroy(&store->barrier_lock);
    free(store);
}

static enum store_result start(struct store *store, char *message)
{
    if (!store->disk->ops->direct(store->disk))
        env_log(&store->env, STORE_LOG_WARNING,
                "The file system does not support O_DIRECT: the kernel caches the data once "
                "more, outside of maxmemory");
    engine_adjust_memory(store);
    env_log(&store->env, STORE_LOG_NOTICE,
            "%s %llu items and %llu commits of the journal in %.3f seconds",
            store->is_loaded ? "Loaded the index checkpoint:" : "Recovered",
            (unsigned long long)store->recovered_items,
            (unsigned long long)store->recovered_commits, (double)store->recovery_ms / 1000);
    if (keeper_start(store) != 0) {
        snprintf(message, STORE_MESSAGE_MAX, "Cannot start a thread");
        return STORE_NO_MEMORY;
    }
    return STORE_OK;
}

enum store_result engine_recover_on(struct disk *disk, const struct store_options *options,
                                    struct store **store, char message[STORE_MESSAGE_MAX])
{
    snprintf(message, STORE_MESSAGE_MAX, "Out of memory");
    struct store *s = new_store(options);
    if (!s || !s->workers) {
        free(s);
        disk->ops->free(disk);
        return STORE_NO_MEMORY;
    }
    s->disk = disk;
    enum store_result result = open_files(s, options, message);
    if (result == STORE_OK)
        result = recover(s, message);
    if (result == STORE_OK)
        *store = s;
    else
        engine_destroy(s);
    return result;
}

enum store_result store_open_on(struct disk *disk, const struct store_options *options,
                                struct store **store, char message[STORE_MESSAGE_MAX])
{
    enum store_result result = engine_recover_on(disk, options, store, message);
    if (result == STORE_OK && (result = start(*store, message)) != STORE_OK)
        engine_destroy(*store);
    return result;
}

enum store_result store_open(const struct store_options *options, struct store **store,
                             char message[STORE_MESSAGE_MAX])
{
    struct disk *disk;
    if (options->worker_count == 0) {
        snprintf(message, STORE_MESSAGE_MAX, "At least one worker is needed");
        return STORE_INVALID;
    }
    enum store_result result = disk_open_directory(options->directory, &disk, message);
    return result == STORE_OK ? store_open_on(disk, options, store, message) : result;
}

enum store_result store_close(struct store *store)
{
    assert(!store->open_uploads);
    keeper_finish(store);
    bool failed = env_failed(&store->env);
    engine_destroy(store);
    return failed ? STORE_REFUSED : STORE_OK;
}

/* ---- figures ---- */

static void add_partition(struct store_stats *stats, const struct partition *partition)
{
    stats->index_bytes += index_bytes(&partition->index) + ttl_bytes(&partition->ttl);
    stats->table_bytes += space_table_bytes(&partition->space);
    stats->live_slots += index_count(&partition->index);
    stats->page_hits += counter_read(&partition->space.hits);
    stats->page_misses += counter_read(&partition->space.misses);
    stats->expired_keys += counter_read(&partition->expired);
    stats->evicted_keys += counter_read(&partition->evicted);
}

/* Without locks: a run function may hold them. */
void store_stats(const struct store *store, struct store_stats *stats)
{
    *stats = (struct store_stats){0};
    for (uint32_t i = 0; i < store->partition_count; i++)
        add_partition(stats, &store->partitions[i]);
    struct store *s = (struct store *)store;
    stats->page_hits -= atomic_load(&s->hits_before);
    stats->page_misses -= atomic_load(&s->misses_before);
    stats->expired_keys -= atomic_load(&s->expired_before);
    stats->evicted_keys -= atomic_load(&s->evicted_before);
    stats->table_bytes += space_table_bytes(&s->extents);
    stats->frame_bytes = (uint64_t)atomic_load(&s->arena.used) * PAGE_SIZE;
    stats->frame_limit_bytes = (uint64_t)atomic_load(&s->arena.limit) * PAGE_SIZE;
    stats->dirty_bytes = (uint64_t)atomic_load(&s->dirty_frames) * PAGE_SIZE;
    stats->journal_buffer_bytes = journal_buffer_bytes(&s->journal);
    stats->store_bytes = atomic_load(&s->store_bytes);
    stats->segments_reclaimed = atomic_load(&s->segments_reclaimed);
    stats->pages_read = atomic_load(&s->pages_read);
    stats->pages_written = atomic_load(&s->pages_written);
    stats->journal_bytes_written = atomic_load(&s->journal.bytes_written);
    stats->journal_groups = atomic_load(&s->journal.groups);
    stats->checkpoints = atomic_load(&s->checkpoints);
    stats->commits = atomic_load(&s->journal.appended);
    stats->reruns = atomic_load(&s->reruns);
    stats->exclusive_runs = atomic_load(&s->in_place_runs);
    stats->throttled_commits = atomic_load(&s->throttle_count);
    stats->read_errors = atomic_load(&s->read_errors);
    stats->write_errors = atomic_load(&s->env.write_errors);
    stats->damaged_items = atomic_load(&s->damaged);
    stats->recovered_items = s->recovered_items;
    stats->recovered_commits = s->recovered_commits;
    stats->recovery_ms = s->recovery_ms;
    stats->partition_count = s->partition_count;
    stats->worker_count = s->worker_count;
    stats->direct_io = s->disk->ops->direct(s->disk);
    stats->is_loaded = s->is_loaded;
    stats->failed = env_failed(&s->env);
    stats->full = atomic_load(&s->full);
    stats->over_memory = atomic_load(&s->over_memory);
}

void store_reset_counters(struct store *store)
{
    struct store_stats stats;
    store_stats(store, &stats);
    atomic_fetch_add(&store->hits_before, stats.page_hits);
    atomic_fetch_add(&store->misses_before, stats.page_misses);
    atomic_fetch_add(&store->expired_before, stats.expired_keys);
    atomic_fetch_add(&store->evicted_before, stats.evicted_keys);
    _Atomic uint64_t *counters[] = {&store->pages_read,     &store->pages_written,
                                    &store->read_errors,    &store->env.write_errors,
                                    &store->checkpoints,    &store->throttle_count,
                                    &store->reruns,         &store->in_place_runs,
                                    &store->journal.groups, &store->journal.bytes_written};
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        atomic_store(counters[i], 0);
}
