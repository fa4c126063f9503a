#include "server.h"

#include <assert.h>
#include <malloc.h>
#include <unistd.h>

#include "process.h"

#define MEMORY_MIN (64ull * 1024 * 1024)
#define TRIM_STEP (32ll * 1024 * 1024)

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

/* What clients have given back malloc may keep for long: when it is much, it is made to let go. */
static void trim_heap(struct server *server)
{
    int64_t now = atomic_load_explicit(&server->client_bytes, memory_order_relaxed);
    if (now > server->trim_peak)
        server->trim_peak = now;
    if (server->trim_peak - now < TRIM_STEP)
        return;
    server->trim_peak = now;
    malloc_trim(0);
}

uint64_t server_resident(void *server)
{
    trim_heap(server);
    return process_resident();
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
    policy.samples = (uint32_t)config_number(config, CONFIG_MAXMEMORY_SAMPLES);
    policy.lfu_log_factor = (uint32_t)config_number(config, CONFIG_LFU_LOG_FACTOR);
    policy.lfu_decay_minutes = (uint32_t)config_number(config, CONFIG_LFU_DECAY_TIME);
    store_set_policy(server->store, &policy);
}
