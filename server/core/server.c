#include "server/core/server.h"

#include <assert.h>
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include "server/core/process.h"

#define MEMORY_MIN (64ull * 1024 * 1024)
#define TRIM_SHARE 32 /* of maxmemory */
#define TRIM_MS 100
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

static int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Free memory in the heap that was not returned to the system; walks the whole heap. */
static uint64_t heap_slack(void)
{
    struct mallinfo2 heap = mallinfo2();
    return heap.fordblks;
}

/* malloc may keep freed memory for long: if it is much, malloc_trim returns it. That takes time,
 * so clients and scripts must have freed a good part, or the process must be over its limit. */
static bool trim_heap(struct server *server, uint64_t resident)
{
    uint64_t bound = atomic_load_explicit(&server->memory_bound, memory_order_relaxed);
    int64_t step = (int64_t)(bound / TRIM_SHARE), now_ms = monotonic_ms();
    int64_t now = atomic_load_explicit(&server->client_bytes, memory_order_relaxed) +
                  (int64_t)atomic_load_explicit(&server->script_bytes, memory_order_relaxed);
    if (now > atomic_load(&server->trim_peak))
        atomic_store(&server->trim_peak, now);
    if (now_ms < atomic_load(&server->trim_next_ms) ||
        (atomic_load(&server->trim_peak) - now < step && resident <= bound))
        return false;
    atomic_store(&server->trim_next_ms, now_ms + TRIM_MS);
    atomic_store(&server->trim_peak, now);
    if (heap_slack() < (uint64_t)step / 2)
        return false;
    malloc_trim(0);
    return true;
}

uint64_t server_resident(void *server)
{
    uint64_t resident = process_resident();
    return trim_heap(server, resident) ? process_resident() : resident;
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
