/*
 * Opens the files of a store, recovers their content and starts its threads; and releases
 * everything again.
 */
#include "storage/recovery/open.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/exec/hooks.h"
#include "storage/value/long_record.h"
#include "storage/txn/wait.h"
#include "storage/txn/memory.h"
#include "storage/recovery/recover.h"
#include "storage/tree/tree_drop.h"
#include "storage/value/free.h"
#include "storage/maintenance/maintenance.h"

#define FRAMES_AT_FIRST 256u
#define MAINTENANCE_DEPTH 64u

/* A file that was cut in the midst of a segment: what is left of it is not served. If it is all
 * zeros, the growing of the file was interrupted, and nothing is lost; of extents only the header
 * tells. */
static enum store_result report_rest(struct store *store, struct page_file *file, const char *name,
                                     uint64_t size)
{
    uint64_t begin = size / SEGMENT_BYTES * SEGMENT_BYTES;
    uint64_t length = (size - begin) / PAGE_SIZE * PAGE_SIZE;
    if (file->id == FORMAT_EXTENT_FILE && length > PAGE_SIZE)
        length = PAGE_SIZE;
    if (length == 0)
        return STORE_OK;
    char *bytes = disk_alloc(length);
    if (!bytes)
        return STORE_NO_MEMORY;
    int error = disk_read(store->maintenance_queue, file->file, bytes, length, begin);
    if (error || !disk_is_blank(bytes, length)) {
        atomic_fetch_add(&store->damaged, 1);
        env_log(&store->env, STORE_LOG_WARNING,
                "%s of the data directory ends in the midst of a segment: the last %llu KB are not "
                "served",
                name, (unsigned long long)(size - begin) >> 10);
    }
    free(bytes);
    return STORE_OK;
}

static enum store_result open_page_file(struct store *store, struct page_file *file,
                                        const char *name, uint8_t id, char *message)
{
    if (!page_file_init(file, &store->cache, id))
        return STORE_NO_MEMORY;
    file->engine = store;
    int error = store->disk->ops->open(store->disk, name, false, &file->file);
    if (error) {
        snprintf(message, STORE_MESSAGE_MAX, "Cannot open %s of the data directory: %s", name,
                 strerror(error));
        return error == ENOENT ? STORE_CORRUPT : STORE_IO;
    }
    uint64_t size = store->disk->ops->size(file->file);
    if (size / SEGMENT_BYTES > engine_segments_max(file)) {
        snprintf(message, STORE_MESSAGE_MAX, "%s of the data directory is larger than can be",
                 name);
        return STORE_CORRUPT;
    }
    if (!page_file_make_room(file, (uint32_t)(size / SEGMENT_BYTES)))
        return STORE_NO_MEMORY;
    file->segment_count = (uint32_t)(size / SEGMENT_BYTES);
    atomic_fetch_add(&store->store_bytes, size);
    return report_rest(store, file, name, size);
}

static enum store_result open_partitions(struct store *store, char *message)
{
    uint32_t count = store->superblock.latest.partition_count;
    uint32_t slots = STORE_SLOT_COUNT / count;
    store->partition_count = count;
    store->cache.seed = store->superblock.latest.seed;
    store->slot_shift = (uint32_t)__builtin_ctz(slots);
    store->partitions = aligned_alloc(64, count * sizeof *store->partitions);
    if (!store->partitions)
        return STORE_NO_MEMORY;
    memset(store->partitions, 0, count * sizeof *store->partitions);
    for (uint32_t i = 0; i < count; i++) {
        struct partition *partition = &store->partitions[i];
        char name[16];
        snprintf(name, sizeof name, "slabs-%02x", i);
        enum store_result result =
            open_page_file(store, &partition->file, name, (uint8_t)i, message);
        if (result != STORE_OK)
            return result;
        if (!index_init(&partition->index, i * slots, slots))
            return STORE_NO_MEMORY;
        ttl_init(&partition->ttl, i * slots, slots, env_now_ms(&store->env));
    }
    return open_page_file(store, &store->extents, "extents", FORMAT_EXTENT_FILE, message);
}

static void on_durable(void *arg, const struct disk_queue *here)
{
    struct store *store = arg;
    if (atomic_load_explicit(&store->journal.sync, memory_order_relaxed) == STORE_SYNC_ALWAYS ||
        atomic_load(&store->durable_awaited) > 0)
        wait_wake_workers(store, here);
    maintenance_release(store);
}

static void on_growth(void *arg, uint64_t bytes)
{
    memory_note_growth(arg, bytes);
}

static bool make_journal(struct store *store, enum store_sync sync)
{
    struct journal *journal = &store->journal;
    bool made = journal_init(journal, &store->env, store->superblock.latest.journal_bytes);
    journal->seed = store->superblock.latest.seed;
    journal->on_durable = on_durable;
    journal->on_growth = on_growth;
    journal->arg = store;
    atomic_store(&journal->sync, (int)sync);
    return made;
}

static enum store_result open_journal(struct store *store, char *message)
{
    int error = store->disk->ops->open(store->disk, "journal", false, &store->journal.file);
    if (!error &&
        store->disk->ops->size(store->journal.file) < store->superblock.latest.journal_bytes)
        error = EINVAL;
    if (error) {
        snprintf(message, STORE_MESSAGE_MAX, "Cannot open the journal: %s",
                 error == EINVAL ? "it is shorter than the superblock says" : strerror(error));
        return error == EINVAL || error == ENOENT ? STORE_CORRUPT : STORE_IO;
    }
    atomic_fetch_add(&store->store_bytes, store->superblock.latest.journal_bytes);
    return STORE_OK;
}

/* The power may have failed between the write of the superblock and the flush of the directory
 * when the store was created. */
static enum store_result sync_names(struct store *store, char *message)
{
    int error = store->disk->ops->sync_directory(store->disk);
    if (error)
        snprintf(message, STORE_MESSAGE_MAX, "Cannot flush the data directory: %s",
                 strerror(error));
    return error ? STORE_IO : STORE_OK;
}

/* A directory keeps the order of its keys from its creation on, or never. */
static enum store_result judge_order(struct store *store, enum store_ordered wanted, char *message)
{
    store->is_ordered = (store->superblock.latest.version & FORMAT_ORDERED) != 0;
    if (wanted == STORE_ORDERED_AS_FOUND || store->is_ordered == (wanted == STORE_ORDERED_YES))
        return STORE_OK;
    snprintf(
        message, STORE_MESSAGE_MAX,
        store->is_ordered
            ? "The data directory was created with ordered keys: start with `ordered-keys yes`"
            : "The data directory was created without ordered keys, and they cannot be added: "
              "start with `ordered-keys no`, or copy the keys to a new directory with DUMP and "
              "RESTORE");
    return STORE_INVALID;
}

static enum store_result open_superblock(struct store *store, const struct store_options *options,
                                         char *message)
{
    int error = store->disk->ops->open(store->disk, "superblock", false, &store->superblock.file);
    enum store_result result = error == ENOENT ? superblock_missing(&store->superblock, message)
                               : error         ? STORE_IO
                                               : superblock_read(&store->superblock, message);
    if (result == STORE_ABSENT) {
        env_log(&store->env, STORE_LOG_NOTICE,
                "Creating a new data directory: %u partitions, journal %llu MB",
                options->partition_count, (unsigned long long)options->journal_bytes >> 20);
        store->is_ordered = options->ordered_keys == STORE_ORDERED_YES;
        return superblock_create(&store->superblock, options, message);
    }
    if (error == EBUSY) {
        snprintf(message, STORE_MESSAGE_MAX,
                 "The files of the data directory are in use by another server, perhaps under "
                 "another name: stop that one, or choose another directory with --dir");
        return STORE_LOCKED;
    }
    if (error && error != ENOENT)
        snprintf(message, STORE_MESSAGE_MAX, "Cannot open the superblock: %s", strerror(error));
    if (result == STORE_OK)
        result = judge_order(store, options->ordered_keys, message);
    return result == STORE_OK ? sync_names(store, message) : result;
}

/* Only when all page files are open: eviction walks this list. */
static bool list_page_files(struct store *store)
{
    struct page_cache *cache = &store->cache;
    cache->page_files = malloc((store->partition_count + 1) * sizeof(struct page_file *));
    if (!cache->page_files)
        return false;
    for (uint32_t i = 0; i < store->partition_count; i++)
        cache->page_files[i] = &store->partitions[i].file;
    cache->page_files[store->partition_count] = &store->extents;
    cache->page_file_count = store->partition_count + 1;
    return true;
}

static enum store_result open_files(struct store *store, const struct store_options *options,
                                    char *message)
{
    int error =
        store->disk->ops->queue_create(store->disk, MAINTENANCE_DEPTH, &store->maintenance_queue);
    if (error) {
        snprintf(message, STORE_MESSAGE_MAX, "%s", disk_queue_refused(error));
        return STORE_IO;
    }
    store->superblock = (struct superblock){.disk = store->disk,
                                            .queue = store->maintenance_queue,
                                            .env = &store->env,
                                            .page = disk_alloc(PAGE_SIZE)};
    if (!store->superblock.page)
        return STORE_NO_MEMORY;
    enum store_result result = open_superblock(store, options, message);
    if (result == STORE_OK && !make_journal(store, options->sync))
        result = STORE_NO_MEMORY;
    uint64_t most = store->superblock.latest.journal_bytes / JOURNAL_RECORD_SHARE;
    uint64_t wanted = options->record_bytes;
    store->record_most = wanted && wanted < most ? wanted : most;
    if (result == STORE_OK)
        result = open_journal(store, message);
    if (result == STORE_OK)
        result = open_partitions(store, message);
    if (result == STORE_OK && !list_page_files(store))
        result = STORE_NO_MEMORY;
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
    store->hooks = &exec_hooks;
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
    atomic_store(&store->memory_bytes, options->memory_bytes);
    atomic_store(&store->max_store_bytes, options->max_store_bytes);
    atomic_store(&store->walks_expired, true);
    STAILQ_INIT(&store->store_lock);
    STAILQ_INIT(&store->throttled);
    STAILQ_INIT(&store->deferred);
    arena_init(&store->cache.arena, FRAMES_AT_FIRST);
    pthread_mutex_init(&store->store_lock_mutex, NULL);
    pthread_mutex_init(&store->throttle_lock, NULL);
    pthread_mutex_init(&store->free_lock, NULL);
    pthread_mutex_init(&store->dropped_trees_lock, NULL);
    pthread_mutex_init(&store->maintenance_lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&store->maintenance_wake, &attributes);
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
    assert(!store->maintenance_running);
    for (uint32_t i = 0; i < store->partition_count && store->partitions; i++) {
        close_file(store, store->partitions[i].file.file);
        index_free(&store->partitions[i].index);
        ttl_clear(&store->partitions[i].ttl);
        page_file_free(&store->partitions[i].file);
    }
    close_file(store, store->extents.file);
    page_file_free(&store->extents);
    close_file(store, store->journal.file);
    if (store->journal.size) {
        long_record_forget(store);
        journal_free(&store->journal);
    }
    close_file(store, store->superblock.file);
    if (store->maintenance_queue)
        store->disk->ops->queue_free(store->maintenance_queue);
    if (store->disk)
        store->disk->ops->free(store->disk);
    extent_forget_deferred(store);
    tree_forget_dropped(store);
    number_list_clear(&store->disputed_runs);
    number_list_clear(&store->disputed_collections);
    free(store->superblock.page);
    free(store->partitions);
    free(store->cache.page_files);
    free(store->workers);
    arena_free(&store->cache.arena);
    pthread_cond_destroy(&store->maintenance_wake);
    pthread_mutex_destroy(&store->maintenance_lock);
    pthread_mutex_destroy(&store->dropped_trees_lock);
    pthread_mutex_destroy(&store->free_lock);
    pthread_mutex_destroy(&store->throttle_lock);
    pthread_mutex_destroy(&store->store_lock_mutex);
    free(store);
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

/* ---- with its threads ---- */

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
    if (maintenance_start(store) != 0) {
        snprintf(message, STORE_MESSAGE_MAX, "Cannot start a thread");
        return STORE_NO_MEMORY;
    }
    return STORE_OK;
}

enum store_result store_open_on(struct disk *disk, const struct store_options *options,
                                struct store **store, char message[STORE_MESSAGE_MAX])
{
    enum store_result result = engine_recover_on(disk, options, store, message);
    if (result == STORE_OK && (result = start(*store, message)) != STORE_OK)
        engine_destroy(*store);
    return result;
}
