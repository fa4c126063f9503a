#include "server/core/server.h"

#include <assert.h>
#include <time.h>
#include <unistd.h>

#include "server/base/heap.h"
#include "server/core/process.h"

#define MEMORY_MIN (64ull * 1024 * 1024)
#define PURGE_SHARE 32 /* of maxmemory */
#define PURGE_LEAST (256 * 1024)
#define SAMPLES_MAX 64u /* more would improve little, and delay requests that wait for room */

void server_stop(struct server *server)
{
    if (atomic_exchange(&server->stopping, true))
        return;
    uint64_t one = 1;
    ssize_t written = write(server->stop_fd, &one, sizeof one);
    assert(written == sizeof one);
}

uint64_t server_memory(uint64_t maxmemory)
{
    uint64_t bound = maxmemory != 0 ? maxmemory : process_memory() / 2;
    return bound < MEMORY_MIN ? MEMORY_MIN : bound;
}

static int64_t monotonic_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Unused memory of the heap takes the place of page frames; malloc does not tell how much of it has
 * been purged before. */
static void purge_heap(struct server *server, uint64_t unused, bool is_short)
{
    uint64_t bound = atomic_load_explicit(&server->memory_bound, memory_order_relaxed);
    uint64_t least = is_short ? PURGE_LEAST : bound / PURGE_SHARE;
    uint64_t purged = atomic_load(&server->purged_bytes);
    bool is_due = unused >= purged + least;
    if (is_due || unused < purged)
        atomic_store(&server->purged_bytes, unused);
    if (is_due)
        heap_purge();
}

void server_purge_heap(struct server *server)
{
    struct heap_usage heap;
    heap_purge();
    heap_measure(&heap);
    atomic_store(&server->purged_bytes, heap.unused);
}

/* At most a hundredth of the time goes into this; a tenth, if memory is to be refused. */
static void measure_heap(struct server *server, int64_t noted, bool is_short)
{
    int64_t began = monotonic_us(), took = atomic_load(&server->heap_took_us);
    if (began < atomic_load(&server->heap_measured_us) + (is_short ? 10 : 100) * took)
        return;
    struct heap_usage heap;
    heap_measure(&heap);
    purge_heap(server, heap.unused, is_short);
    atomic_store(&server->heap_bytes, heap.allocated);
    atomic_store(&server->heap_noted, noted);
    int64_t now = monotonic_us();
    atomic_store(&server->heap_took_us, now - began);
    atomic_store(&server->heap_measured_us, now);
}

/* By the last measurement and what was reported since. */
static uint64_t heap_now(const struct server *server, int64_t noted)
{
    int64_t since = noted - atomic_load(&server->heap_noted);
    int64_t bytes = (int64_t)atomic_load(&server->heap_bytes) + since;
    return bytes > 0 ? (uint64_t)bytes : 0;
}

uint64_t server_process_bytes(void *arg, uint64_t mapped, int64_t noted, bool is_short)
{
    struct server *server = arg;
    measure_heap(server, noted, is_short);
    uint64_t shared, resident = process_resident(&shared);
    if (resident == 0)
        return 0;
    /* The process will take so much at least, once all of its blocks have been written to. */
    uint64_t committed = mapped + shared + heap_now(server, noted);
    return resident > committed ? resident : committed;
}

void server_set_policy(struct server *server)
{
    const struct config *config = &server->config;
    static const struct store_policy policies[] = {
        [CONFIG_POLICY_VOLATILE_LRU] = {.evicts = STORE_EVICT_LRU, .only_expiring = true},
        [CONFIG_POLICY_VOLATILE_LFU] = {.evicts = STORE_EVICT_LFU, .only_expiring = true},
        [CONFIG_POLICY_VOLATILE_RANDOM] = {.evicts = STORE_EVICT_RANDOM, .only_expiring = true},
        [CONFIG_POLICY_VOLATILE_TTL] = {.evicts = STORE_EVICT_TTL, .only_expiring = true},
        [CONFIG_POLICY_ALLKEYS_LRU] = {.evicts = STORE_EVICT_LRU},
        [CONFIG_POLICY_ALLKEYS_LFU] = {.evicts = STORE_EVICT_LFU},
        [CONFIG_POLICY_ALLKEYS_RANDOM] = {.evicts = STORE_EVICT_RANDOM},
        [CONFIG_POLICY_NOEVICTION] = {.evicts = STORE_EVICT_NOTHING},
    };
    struct store_policy policy = policies[config_number(config, CONFIG_MAXMEMORY_POLICY)];
    int64_t samples = config_number(config, CONFIG_MAXMEMORY_SAMPLES);
    policy.samples = samples < SAMPLES_MAX ? (uint32_t)samples : SAMPLES_MAX;
    policy.lfu_log_factor = (uint32_t)config_number(config, CONFIG_LFU_LOG_FACTOR);
    policy.lfu_decay_minutes = (uint32_t)config_number(config, CONFIG_LFU_DECAY_TIME);
    store_set_policy(server->store, &policy);
}

void server_show_libraries(struct server *server, struct libraries_shown *libraries,
                           uint64_t commit)
{
    readonly_names_publish(server->readonly_names, libraries->readonly_names);
    atomic_store_explicit(&server->library_count, libraries->count, memory_order_relaxed);
    atomic_store_explicit(&server->function_count, libraries->functions, memory_order_relaxed);
    atomic_store_explicit(&server->library_bytes, libraries->bytes, memory_order_relaxed);
    atomic_store_explicit(&server->library_commit, commit, memory_order_relaxed);
    atomic_store_explicit(&server->library_stamp, libraries->stamp, memory_order_release);
    libraries->is_set = false;
}
