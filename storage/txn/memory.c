/*
 * The memory account: how many page frames fit beside all other memory of the process.
 *
 * The maintenance thread measures the process (options.process_bytes), at least ten times a second.
 * In between, code that allocates or frees much memory reports it (store_note_memory), and measures
 * itself if the maintenance thread is late: that may be waiting for a lock. Without process_bytes,
 * the sum of index, tables, buffers and reports is used.
 *
 * Memory pressure first takes frames, whose memory goes back to the system. It takes keys, or new
 * commands, only where memory that cannot be freed leaves too little for frames.
 */
#include "storage/txn/memory.h"

#include "storage/txn/room_wanted.h"
#include "storage/txn/wait.h"
#include "storage/txn/load.h"

#define FRAMES_LEAST 256u
#define LEAST_SHARE 32u  /* frames get this share of memory in any case */
#define INDEX_SHARE 8u   /* a smaller index is not worth evicting keys for */
#define RESERVE_SHARE 8u /* of memory, for allocations without store_has_memory */
#define RESERVE_MOST (8u << 20)
#define OVER_SHARE 16u        /* less than this share for frames is too little */
#define SLACK_SHARE 32u       /* reserve for what the process takes between two measurements: */
#define SLACK_BYTES (2 << 20) /* this share of memory, plus this much */
#define MEASURE_MS                                                                                 \
    10 /* while the maintenance thread is busy; at rest it wakes ten times a second */
#define MUCH_BYTES (256u << 10)
#define LATE_MS 10       /* then the thread that reports growth measures */
#define JOURNAL_SHARE 4u /* of the frames' bytes: recovery gets as much memory for the journal */
#define SHRINK_STEP 16u  /* frames evicted from a page file at a time */

/* Of all partitions: mapped, and not part of the heap. */
static uint64_t index_total(const struct store *store)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < store->partition_count; i++)
        sum += index_bytes(&store->partitions[i].index) + ttl_bytes(&store->partitions[i].ttl);
    return sum;
}

/* The counted memory that cannot be freed. */
static uint64_t fixed_bytes(struct store *store, uint64_t index_total)
{
    int64_t noted = atomic_load_explicit(&store->noted_bytes, memory_order_relaxed);
    uint64_t tables = page_file_table_bytes(&store->extents);
    for (uint32_t i = 0; i < store->partition_count; i++)
        tables += page_file_table_bytes(&store->partitions[i].file);
    return index_total + tables + journal_buffer_bytes(&store->journal) +
           (uint64_t)(noted > 0 ? noted : 0);
}

/* All memory but frames: the last measurement plus what was reported since. What was freed counts
 * as long as the process has it: small blocks go back to the system only when the heap is purged.
 */
static int64_t taken_now(const struct store *store)
{
    int64_t since = atomic_load(&store->noted_bytes) - atomic_load(&store->noted_before);
    if (since < 0 && store->process_bytes)
        since = 0;
    int64_t taken = atomic_load(&store->taken_bytes) + since;
    return taken > 0 ? taken : 0;
}

static uint64_t least_frames(const struct store *store)
{
    uint64_t least = atomic_load(&store->memory_bytes) / LEAST_SHARE / PAGE_SIZE;
    return least < FRAMES_LEAST ? FRAMES_LEAST : least;
}

static void set_limit(struct store *store)
{
    uint64_t budget = atomic_load(&store->memory_bytes);
    int64_t taken = taken_now(store);
    if (store->process_bytes)
        taken += (int64_t)(budget / SLACK_SHARE) + SLACK_BYTES;
    uint64_t left = taken < (int64_t)budget ? budget - (uint64_t)taken : 0;
    uint64_t least = least_frames(store);
    uint64_t most = (uint64_t)ARENA_CHUNK_MAX * ARENA_CHUNK_FRAMES / 2;
    uint64_t frames = left / (PAGE_SIZE + sizeof(struct frame));
    uint64_t urgent = arena_urgent_frames((uint32_t)(frames < most ? frames : most));
    if (frames > 4 * urgent)
        frames -= urgent;
    frames = frames < least ? least : frames > most ? most : frames;
    atomic_store_explicit(&store->cache.arena.limit, (uint32_t)frames, memory_order_relaxed);
    journal_bound(&store->journal, frames * PAGE_SIZE / JOURNAL_SHARE);
}

/* All memory of the process but frames. */
static int64_t measure(struct store *store, uint64_t fixed, int64_t noted, bool is_short)
{
    uint64_t frames = (uint64_t)atomic_load(&store->cache.arena.resident) * PAGE_SIZE, all = 0;
    if (store->process_bytes)
        all =
            store->process_bytes(store->process_arg, frames + index_total(store), noted, is_short);
    return all > frames ? (int64_t)(all - frames) : (int64_t)fixed;
}

/* A failed measurement, for want of a descriptor perhaps, leaves the last one. While a thread
 * measures, no other does: the figure and the reports that it contains belong together. */
static void renew(struct store *store, uint64_t fixed, bool is_short)
{
    if (atomic_exchange(&store->measurement_runs, true))
        return;
    int64_t noted = atomic_load(&store->noted_bytes);
    int64_t taken = measure(store, fixed, noted, is_short);
    if (taken > 0) {
        atomic_store(&store->taken_bytes, taken);
        atomic_store(&store->noted_before, noted);
    }
    atomic_store(&store->measurement_runs, false);
}

static void take_measure(struct store *store, uint64_t fixed, bool is_short)
{
    renew(store, fixed, is_short);
    set_limit(store);
}

void engine_adjust_memory(struct store *store)
{
    uint64_t index = index_total(store), budget = atomic_load(&store->memory_bytes);
    uint64_t fixed = fixed_bytes(store, index);
    take_measure(store, fixed, false);
    bool over = fixed > budget - budget / OVER_SHARE;
    atomic_store(&store->over_memory, over);
    if (over && index > budget / INDEX_SHARE)
        evict_for_memory(store);
    else
        atomic_store(&store->eviction_exhausted, over);
}

void memory_note_growth(struct store *store, uint64_t bytes)
{
    atomic_fetch_add(&store->taken_bytes, (int64_t)bytes);
    set_limit(store);
}

/* Whether the caller has to measure. */
static bool measure_is_due(_Atomic int64_t *measured_ms, int64_t after_ms)
{
    int64_t now = env_clock_ms(), before = atomic_load(measured_ms);
    return now - before >= after_ms && atomic_compare_exchange_strong(measured_ms, &before, now);
}

void store_set_memory(struct store *store, uint64_t memory_bytes)
{
    atomic_store(&store->memory_bytes, memory_bytes);
    engine_adjust_memory(store);
    maintenance_ask(store);
}

/* If the policy allows eviction, keys are evicted first: memory is over only when none is left. */
bool store_is_over_memory(const struct store *store)
{
    return atomic_load_explicit(&store->over_memory, memory_order_relaxed) &&
           (atomic_load_explicit(&store->policy.evicts, memory_order_relaxed) ==
                STORE_EVICT_NOTHING ||
            atomic_load_explicit(&store->eviction_exhausted, memory_order_relaxed));
}

static bool lock(struct page_file *file, bool may_wait)
{
    return may_wait ? pthread_mutex_lock(&file->lock) == 0
                    : pthread_mutex_trylock(&file->lock) == 0;
}

/* Frees `most` frames or a few more. Without may_wait, skips page files that any thread, the caller
 * included, has locked. */
static void shrink(struct store *store, uint32_t most, bool may_wait)
{
    uint32_t files = store->partition_count + 1, fruitless = 0, count = 0;
    for (uint32_t i = 0; fruitless < files && count < most && arena_is_over(&store->cache.arena);
         i++) {
        struct page_file *file = i % files == store->partition_count
                                     ? &store->extents
                                     : &store->partitions[i % files].file;
        bool evicted = false;
        if (lock(file, may_wait)) {
            for (uint32_t n = 0; n < SHRINK_STEP && (n == 0 || evicted); n++)
                evicted = page_file_evict(file);
            pthread_mutex_unlock(&file->lock);
        }
        fruitless = evicted ? 0 : fruitless + 1;
        count += evicted ? SHRINK_STEP : 0;
    }
    arena_trim(&store->cache.arena);
}

static bool is_over(const struct store *store)
{
    return atomic_load(&store->cache.arena.resident) > atomic_load(&store->cache.arena.limit);
}

bool memory_measure_late(struct store *store)
{
    if (!store->process_bytes || !measure_is_due(&store->memory_asked_ms, LATE_MS))
        return false;
    take_measure(store, 0, atomic_load(&store->cache.arena.limit) <= least_frames(store));
    return true;
}

/* The growing thread makes room itself, before it uses the memory reported: the maintenance thread
 * may come too late. */
void store_note_memory(struct store *store, int64_t change)
{
    atomic_fetch_add(&store->noted_bytes, change);
    if (!memory_measure_late(store))
        set_limit(store);
    if (change > 0 && is_over(store))
        shrink(store, (uint32_t)(change / PAGE_SIZE) + 1, false);
    if (is_over(store))
        maintenance_ask(store);
}

void memory_keep(struct store *store)
{
    if (measure_is_due(&store->memory_measured_ms, MEASURE_MS))
        engine_adjust_memory(store);
    shrink(store, UINT32_MAX, true);
}

/* Frames that have to give way and have not: as long as they are dirty or in use, they cannot. */
static uint64_t late_frames(const struct store *store)
{
    uint64_t resident = atomic_load(&store->cache.arena.resident);
    uint64_t limit = atomic_load(&store->cache.arena.limit);
    return resident > limit ? (resident - limit) * PAGE_SIZE : 0;
}

static bool has_memory(const struct store *store, uint64_t bytes)
{
    uint64_t budget = atomic_load_explicit(&store->memory_bytes, memory_order_relaxed);
    uint64_t kept = budget / RESERVE_SHARE < RESERVE_MOST ? budget / RESERVE_SHARE : RESERVE_MOST;
    return (uint64_t)taken_now(store) + late_frames(store) + kept + bytes <= budget;
}

/* Before much is granted, and before anything is refused, measures again, unless a thread has just
 * done so or is doing it. */
bool store_has_memory(struct store *store, uint64_t bytes)
{
    if (!store->process_bytes)
        return true;
    bool is_short = !has_memory(store, bytes);
    if ((is_short || bytes >= MUCH_BYTES) && measure_is_due(&store->memory_asked_ms, 1))
        take_measure(store, 0, is_short);
    return has_memory(store, bytes);
}

void store_give_way(struct store *store, uint64_t bytes)
{
    if (is_over(store))
        shrink(store, (uint32_t)(bytes / PAGE_SIZE), true);
}

static bool evict_some(struct store_txn *txn, struct page_file *file)
{
    bool held = file->id != FORMAT_EXTENT_FILE && request_holds(txn, file->id);
    if (!held && pthread_mutex_trylock(&file->lock) != 0)
        return false;
    bool evicted = false;
    for (uint32_t n = 0; n < SHRINK_STEP && (n == 0 || evicted); n++)
        evicted = page_file_evict(file);
    if (!held)
        pthread_mutex_unlock(&file->lock);
    return evicted;
}

void store_make_room(struct store_txn *txn)
{
    struct store *store = txn->store;
    struct arena *arena = &store->cache.arena;
    load_leave_pages(txn);
    if (atomic_load_explicit(&arena->resident, memory_order_relaxed) <=
        atomic_load_explicit(&arena->limit, memory_order_relaxed))
        return;
    for (bool any = true; any && arena_is_over(arena);) {
        any = false;
        for (uint32_t i = 0; i <= store->partition_count && arena_is_over(arena); i++)
            any |= evict_some(txn, i == store->partition_count ? &store->extents
                                                               : &store->partitions[i].file);
    }
    arena_trim(arena);
}
