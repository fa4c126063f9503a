/*
 * Opening and closing a store, its options and statistics.
 */
#include "storage/store.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "storage/base/disk_file.h"
#include "storage/value/long_record.h"
#include "storage/cache/access_clock.h"
#include "storage/recovery/open.h"
#include "storage/txn/wait.h"
#include "storage/txn/memory.h"
#include "storage/maintenance/maintenance.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t store_durable(const struct store *store)
{
    return journal_durable(&store->journal);
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
    atomic_store(&store->journal.sync, (int)sync);
    engine_wake_workers(store);
}

void store_set_active_expiry(struct store *store, bool active)
{
    atomic_store(&store->walks_expired, active);
}

void store_on_wake(struct store *store, store_waker *waker, void *arg)
{
    store->waker = waker;
    store->waker_arg = arg;
}

void store_hold_still(struct store *store, int64_t until_ms)
{
    atomic_store(&store->still_until_ms, until_ms);
}

uint64_t store_take_slowest_ns(struct store *store, enum store_work work)
{
    _Atomic int64_t *slowest =
        work == STORE_WORK_JOURNAL ? &store->journal.slowest_ns : &store->slowest_ns[work];
    return (uint64_t)atomic_exchange(slowest, 0);
}

void store_set_max_store(struct store *store, uint64_t max_store_bytes)
{
    atomic_store(&store->max_store_bytes, max_store_bytes);
    atomic_store(&store->grow_retry_ms, 0);
    maintenance_ask(store);
}

void store_set_policy(struct store *store, const struct store_policy *policy)
{
    struct policy *own = &store->policy;
    struct access_clock *uses = &store->cache.uses;
    atomic_store(&own->only_expiring, policy->only_expiring);
    atomic_store(&own->samples, policy->samples);
    atomic_store(&uses->log_factor, policy->lfu_log_factor);
    atomic_store(&uses->decay_minutes, policy->lfu_decay_minutes);
    atomic_store(&own->evicts, (int)policy->evicts);
    access_want(uses,
                policy->evicts == STORE_EVICT_LRU   ? USE_TIME
                : policy->evicts == STORE_EVICT_LFU ? USE_FREQUENCY
                                                    : USE_IGNORED,
                store_clock_ms(store));
    maintenance_ask(store);
}

/* ---- opening ---- */

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
    assert(LIST_EMPTY(&store->open_uploads));
    maintenance_finish(store);
    bool failed = env_failed(&store->env);
    engine_destroy(store);
    return failed ? STORE_REFUSED : STORE_OK;
}

/* ---- statistics ---- */

static void add_partition(struct store_stats *stats, const struct partition *partition)
{
    stats->index_bytes += index_bytes(&partition->index) + ttl_bytes(&partition->ttl);
    stats->table_bytes += page_file_table_bytes(&partition->file);
    stats->live_slots += index_count(&partition->index);
    stats->page_hits += counter_read(&partition->file.hits);
    stats->page_misses += counter_read(&partition->file.misses);
    stats->expired_keys += counter_read(&partition->expired);
    stats->evicted_keys += counter_read(&partition->evicted);
}

/* Takes no lock: a run function may hold them. */
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
    stats->expired_parts = atomic_load(&s->expired_parts);
    stats->table_bytes += page_file_table_bytes(&s->extents);
    stats->frame_bytes = (uint64_t)atomic_load(&s->cache.arena.used) * PAGE_SIZE;
    stats->frame_limit_bytes = (uint64_t)atomic_load(&s->cache.arena.limit) * PAGE_SIZE;
    stats->dirty_bytes = (uint64_t)atomic_load(&s->cache.dirty_frames) * PAGE_SIZE;
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
    stats->exclusive_runs = atomic_load(&s->blocking_io_runs);
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
                                    &store->reruns,         &store->blocking_io_runs,
                                    &store->journal.groups, &store->journal.bytes_written,
                                    &store->expired_parts};
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        atomic_store(counters[i], 0);
}

/* Derived from values that only the superblock has, and mixed, so that it reveals nothing about
 * the seed. */
struct store_secret store_secret(const struct store *store)
{
    const struct format_superblock *super = &store->superblock.latest;
    XXH128_hash_t mixed =
        XXH3_128bits_withSeed(super->store_id, sizeof super->store_id, super->seed);
    return (struct store_secret){{mixed.low64, mixed.high64}};
}
