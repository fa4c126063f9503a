/*
 * How many page frames there may be: as many as fit beside all else the process has.
 *
 * Ten times a second the maintenance thread asks how much that is (options.process_bytes); in
 * between, who takes or gives back much tells (store_note_memory), and asks in its place when it is
 * late: it may stand before a lock. Where nobody can be asked, it is index, tables and buffers.
 * Pressure takes frames, whose memory goes back to the system; keys, or new commands, only where
 * what cannot go leaves frames too little.
 */
#include "storage/txn/memory.h"

#include "storage/txn/room_wanted.h"
#include "storage/txn/wait.h"
#include "storage/txn/load.h"

#define FRAMES_LEAST 256u
#define LEAST_SHARE 32u       /* of the memory that frames get in any case */
#define INDEX_SHARE 8u        /* an index of less than that is not worth deleting keys for */
#define OVER_SHARE 16u        /* left for frames: less than that is too little */
#define SLACK_SHARE 32u       /* for what the process takes between two measures, */
#define SLACK_BYTES (2 << 20) /* which a small memory does not make less */
#define MEASURE_MS                                                                                 \
    10             /* while the maintenance thread is busy; at rest it wakes ten times a second */
#define LATE_MS 30 /* then who grows measures */
#define SHRINK_STEP 16u /* frames of a space at a time */

/* What cannot go, as far as it is counted. */
static uint64_t fixed_bytes(struct store *store, uint64_t *index_total)
{
    int64_t noted = atomic_load_explicit(&store->noted_bytes, memory_order_relaxed);
    uint64_t tables = page_file_table_bytes(&store->extents);
    *index_total = 0;
    for (uint32_t i = 0; i < store->partition_count; i++) {
        const struct partition *partition = &store->partitions[i];
        *index_total += index_bytes(&partition->index) + ttl_bytes(&partition->ttl);
        tables += page_file_table_bytes(&partition->file);
    }
    return *index_total + tables + journal_buffer_bytes(&store->journal) +
           (uint64_t)(noted > 0 ? noted : 0);
}

/* What is not frames: as it was measured, and what was told since. */
static int64_t taken_now(const struct store *store)
{
    int64_t taken = atomic_load(&store->taken_bytes) + atomic_load(&store->noted_bytes) -
                    atomic_load(&store->noted_before);
    return taken > 0 ? taken : 0;
}

static void set_limit(struct store *store)
{
    uint64_t budget = atomic_load(&store->memory_bytes);
    int64_t taken = taken_now(store);
    if (store->process_bytes)
        taken += (int64_t)(budget / SLACK_SHARE) + SLACK_BYTES;
    uint64_t left = taken < (int64_t)budget ? budget - (uint64_t)taken : 0;
    uint64_t least = budget / LEAST_SHARE / PAGE_SIZE;
    uint64_t most = (uint64_t)ARENA_CHUNK_MAX * ARENA_CHUNK_FRAMES / 2;
    uint64_t frames = left / (PAGE_SIZE + sizeof(struct frame));
    uint64_t urgent = arena_urgent_frames((uint32_t)(frames < most ? frames : most));
    if (frames > 4 * urgent)
        frames -= urgent;
    if (frames < least)
        frames = least;
    frames = frames < FRAMES_LEAST ? FRAMES_LEAST : frames > most ? most : frames;
    atomic_store_explicit(&store->cache.arena.limit, (uint32_t)frames, memory_order_relaxed);
}

/* What is not frames, of all that the process has. */
static int64_t measure(struct store *store, uint64_t fixed)
{
    uint64_t all = store->process_bytes ? store->process_bytes(store->process_arg) : 0;
    uint64_t frames = (uint64_t)atomic_load(&store->cache.arena.resident) * PAGE_SIZE;
    return all > frames ? (int64_t)(all - frames) : (int64_t)fixed;
}

static void take_measure(struct store *store, uint64_t fixed)
{
    int64_t noted = atomic_load(&store->noted_bytes);
    atomic_store(&store->taken_bytes, measure(store, fixed));
    atomic_store(&store->noted_before, noted);
    set_limit(store);
}

void engine_adjust_memory(struct store *store)
{
    uint64_t index, budget = atomic_load(&store->memory_bytes);
    uint64_t fixed = fixed_bytes(store, &index);
    take_measure(store, fixed);
    bool over = fixed > budget - budget / OVER_SHARE;
    atomic_store(&store->over_memory, over);
    if (over && index > budget / INDEX_SHARE)
        evict_for_memory(store);
    else
        atomic_store(&store->nothing_goes, over);
}

void memory_note_growth(struct store *store, uint64_t bytes)
{
    atomic_fetch_add(&store->taken_bytes, (int64_t)bytes);
    set_limit(store);
}

/* Whether it is the caller's turn to measure. */
static bool measure_is_due(struct store *store, int64_t after_ms)
{
    int64_t now = env_clock_ms(), before = atomic_load(&store->memory_measured_ms);
    return now - before >= after_ms &&
           atomic_compare_exchange_strong(&store->memory_measured_ms, &before, now);
}

void store_set_memory(struct store *store, uint64_t memory_bytes)
{
    atomic_store(&store->memory_bytes, memory_bytes);
    engine_adjust_memory(store);
    maintenance_ask(store);
}

/* Where keys may go they are on their way; unless none was found. */
bool store_is_over_memory(const struct store *store)
{
    return atomic_load_explicit(&store->over_memory, memory_order_relaxed) &&
           (atomic_load_explicit(&store->policy.evicts, memory_order_relaxed) ==
                STORE_EVICT_NOTHING ||
            atomic_load_explicit(&store->nothing_goes, memory_order_relaxed));
}

static bool lock(struct page_file *file, bool may_wait)
{
    return may_wait ? pthread_mutex_lock(&file->lock) == 0
                    : pthread_mutex_trylock(&file->lock) == 0;
}

/* `most` frames, and perhaps some more. Without waiting: of the spaces that nobody has locked, the
 * caller neither. */
static void shrink(struct store *store, uint32_t most, bool may_wait)
{
    uint32_t spaces = store->partition_count + 1, fruitless = 0, count = 0;
    for (uint32_t i = 0; fruitless < spaces && count < most && arena_is_over(&store->cache.arena);
         i++) {
        struct page_file *file = i % spaces == store->partition_count
                                     ? &store->extents
                                     : &store->partitions[i % spaces].file;
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

/* Who grows makes room itself, before it uses what it has told of: the maintenance thread may come
 * too late. */
void store_note_memory(struct store *store, int64_t change)
{
    atomic_fetch_add(&store->noted_bytes, change);
    if (change > 0 && store->process_bytes && measure_is_due(store, LATE_MS))
        take_measure(store, 0);
    else
        set_limit(store);
    if (change > 0 && is_over(store))
        shrink(store, (uint32_t)(change / PAGE_SIZE) + 1, false);
    if (is_over(store))
        maintenance_ask(store);
}

void memory_keep(struct store *store)
{
    if (measure_is_due(store, MEASURE_MS))
        engine_adjust_memory(store);
    shrink(store, UINT32_MAX, true);
}

void store_give_way(struct store *store, uint64_t bytes)
{
    if (is_over(store))
        shrink(store, (uint32_t)(bytes / PAGE_SIZE), true);
}

static bool evict_some(struct store_txn *txn, struct page_file *file)
{
    bool held = file->id != FORMAT_EXTENT_SPACE && request_holds(txn, file->id);
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
