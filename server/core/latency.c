#include "server/core/latency.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/core/worker.h"

/* ---- events ---- */

/* samples[next] is the oldest when all are in use. */
struct series {
    uint32_t count, next;
    struct latency_sample samples[LATENCY_SAMPLES];
    uint64_t worst_ms;
};

struct latency {
    pthread_mutex_t lock;
    struct series series[LATENCY_EVENTS];
};

struct latency *latency_new(void)
{
    struct latency *latency = calloc(1, sizeof *latency);
    if (latency != NULL && pthread_mutex_init(&latency->lock, NULL) != 0) {
        free(latency);
        return NULL;
    }
    return latency;
}

void latency_free(struct latency *latency)
{
    if (latency == NULL)
        return;
    pthread_mutex_destroy(&latency->lock);
    free(latency);
}

const char *latency_name(enum latency_event event)
{
    static const char *const names[LATENCY_EVENTS] = {[LATENCY_FSYNC_ALWAYS] = "aof-fsync-always",
                                                      [LATENCY_WRITE] = "aof-write",
                                                      [LATENCY_COMMAND] = "command",
                                                      [LATENCY_EVICTION] = "eviction-cycle",
                                                      [LATENCY_EXPIRY] = "expire-cycle",
                                                      [LATENCY_FAST_COMMAND] = "fast-command"};
    return names[event];
}

static struct latency_sample *newest(struct series *series)
{
    uint32_t at = (series->next + LATENCY_SAMPLES - 1) % LATENCY_SAMPLES;
    return series->count > 0 ? &series->samples[at] : NULL;
}

static void add(struct series *series, int64_t now_s, uint64_t ms)
{
    struct latency_sample *last = newest(series);
    if (ms > series->worst_ms)
        series->worst_ms = ms;
    if (last != NULL && last->time_s == now_s) {
        if (ms > last->ms)
            last->ms = ms;
        return;
    }
    series->samples[series->next] = (struct latency_sample){.time_s = now_s, .ms = ms};
    series->next = (series->next + 1) % LATENCY_SAMPLES;
    if (series->count < LATENCY_SAMPLES)
        series->count++;
}

void latency_note(struct server *server, enum latency_event event, uint64_t nsec)
{
    struct latency *latency = server->latency;
    if (!latency_is_late(server, nsec))
        return;
    pthread_mutex_lock(&latency->lock);
    add(&latency->series[event], (int64_t)time(NULL), nsec / 1000000);
    pthread_mutex_unlock(&latency->lock);
}

void latency_note_store(struct server *server)
{
    bool is_awaited = config_number(&server->config, CONFIG_APPENDFSYNC) == STORE_SYNC_ALWAYS;
    struct store *store = server->store;
    latency_note(server, is_awaited ? LATENCY_FSYNC_ALWAYS : LATENCY_WRITE,
                 store_take_slowest_ns(store, STORE_WORK_JOURNAL));
    latency_note(server, LATENCY_EXPIRY, store_take_slowest_ns(store, STORE_WORK_EXPIRY));
    latency_note(server, LATENCY_EVICTION, store_take_slowest_ns(store, STORE_WORK_EVICTION));
}

void latency_history(struct latency *latency, enum latency_event event,
                     struct latency_history *history)
{
    pthread_mutex_lock(&latency->lock);
    const struct series *series = &latency->series[event];
    history->count = series->count;
    history->worst_ms = series->worst_ms;
    for (uint32_t i = 0; i < series->count; i++) {
        uint32_t at = (series->next + LATENCY_SAMPLES - series->count + i) % LATENCY_SAMPLES;
        history->samples[i] = series->samples[at];
    }
    pthread_mutex_unlock(&latency->lock);
}

bool latency_reset(struct latency *latency, enum latency_event event)
{
    pthread_mutex_lock(&latency->lock);
    bool had_any = latency->series[event].count > 0;
    memset(&latency->series[event], 0, sizeof latency->series[event]);
    pthread_mutex_unlock(&latency->lock);
    return had_any;
}

/* ---- distributions ---- */

/* Up to 2^STEPS_BITS each value has a bucket; then each power of two has as many. */
static uint32_t bucket_of(uint64_t nsec)
{
    if (nsec >> TIMES_BITS != 0)
        return TIMES_BUCKETS - 1;
    uint32_t steps = 1u << TIMES_STEPS_BITS;
    if (nsec < steps)
        return (uint32_t)nsec;
    uint32_t shift = 63 - (uint32_t)__builtin_clzll(nsec) - TIMES_STEPS_BITS;
    return (shift << TIMES_STEPS_BITS) + (uint32_t)(nsec >> shift);
}

/* The longest time of a bucket. */
static uint64_t end_of(uint32_t bucket)
{
    uint32_t steps = 1u << TIMES_STEPS_BITS;
    if (bucket < steps)
        return bucket;
    uint32_t shift = (bucket >> TIMES_STEPS_BITS) - 1;
    uint64_t first = (uint64_t)(bucket - (shift << TIMES_STEPS_BITS)) << shift;
    return first + (1ull << shift) - 1;
}

static struct command_times *make_times(struct worker *worker, size_t row)
{
    struct command_times *times = calloc(1, sizeof *times);
    if (times == NULL)
        return NULL;
    store_note_memory(worker->server->store, (int64_t)sizeof *times);
    atomic_store_explicit(&worker->command_times[row], times, memory_order_release);
    return times;
}

void command_times_add(struct worker *worker, const struct command *command, uint64_t nsec,
                       uint64_t count)
{
    size_t row = (size_t)(command - worker->server->commands.table);
    if (config_number(&worker->server->config, CONFIG_LATENCY_TRACKING) == 0)
        return;
    struct command_times *times =
        atomic_load_explicit(&worker->command_times[row], memory_order_relaxed);
    if (times == NULL)
        times = make_times(worker, row);
    if (times != NULL)
        counter_add(&times->counts[bucket_of(nsec)], count);
}

bool command_times_sum(const struct server *server, size_t row, struct times_sum *sum)
{
    memset(sum, 0, sizeof *sum);
    for (uint32_t i = 0; i < server->worker_count; i++) {
        const struct command_times *times =
            atomic_load_explicit(&server->workers[i]->command_times[row], memory_order_acquire);
        for (uint32_t at = 0; times != NULL && at < TIMES_BUCKETS; at++) {
            uint64_t count = atomic_load_explicit(&times->counts[at], memory_order_relaxed);
            sum->counts[at] += count;
            sum->total += count;
        }
    }
    return sum->total > 0;
}

uint64_t times_percentile(const struct times_sum *sum, double percent)
{
    uint64_t wanted = (uint64_t)ceil((double)sum->total * percent / 100), passed = 0;
    assert(sum->total > 0);
    if (wanted == 0)
        wanted = 1;
    for (uint32_t at = 0; at < TIMES_BUCKETS; at++) {
        passed += sum->counts[at];
        if (passed >= wanted)
            return end_of(at);
    }
    return end_of(TIMES_BUCKETS - 1);
}

uint64_t times_below(const struct times_sum *sum, uint32_t bits)
{
    uint64_t passed = 0;
    for (uint32_t at = 0; at < TIMES_BUCKETS && end_of(at) >> bits == 0; at++)
        passed += sum->counts[at];
    return passed;
}

void command_times_clear(struct worker *worker)
{
    for (size_t row = 0; row < worker->server->commands.count; row++) {
        struct command_times *times =
            atomic_load_explicit(&worker->command_times[row], memory_order_relaxed);
        for (uint32_t at = 0; times != NULL && at < TIMES_BUCKETS; at++)
            atomic_store_explicit(&times->counts[at], 0, memory_order_relaxed);
    }
}

void command_times_free(struct worker *worker)
{
    for (size_t row = 0; worker->command_times != NULL && row < worker->server->commands.count;
         row++)
        free(atomic_load(&worker->command_times[row]));
    free(worker->command_times);
}
