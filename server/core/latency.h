/*
 * LATENCY: what took latency-monitor-threshold or longer, by kind of event, and the distribution of
 * each command's times.
 *
 * Threads: events may be noted and read by any thread, under the lock. A distribution is written by
 * its worker alone, with relaxed atomics, and lives as long as the worker.
 */
#ifndef VELLUM_LATENCY_H
#define VELLUM_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/server.h"

struct worker;

/* ---- events ---- */

enum latency_event {
    LATENCY_FSYNC_ALWAYS, /* a group of the journal, while replies wait for it */
    LATENCY_WRITE,        /* a group of the journal, while none does */
    LATENCY_COMMAND,
    LATENCY_EVICTION,
    LATENCY_EXPIRY,
    LATENCY_FAST_COMMAND, /* CMD_FAST */
    LATENCY_EVENTS
};

#define LATENCY_SAMPLES 160 /* of an event: the worst of a second each */

struct latency_sample {
    int64_t time_s; /* Unix time */
    uint64_t ms;
};

struct latency_history {
    uint32_t count;
    struct latency_sample samples[LATENCY_SAMPLES]; /* the oldest first */
    uint64_t worst_ms;                              /* since the last reset */
};

struct latency;

struct latency *latency_new(void); /* NULL: out of memory */
void latency_free(struct latency *latency);

/* From this time on an event is noted; 0: none is. */
static inline uint64_t latency_threshold_ms(const struct server *server)
{
    return (uint64_t)config_number(&server->config, CONFIG_LATENCY_MONITOR_THRESHOLD);
}

static inline bool latency_is_late(const struct server *server, uint64_t nsec)
{
    uint64_t threshold = latency_threshold_ms(server);
    return threshold > 0 && nsec / 1000000 >= threshold;
}

/* Notes it if it is late. */
void latency_note(struct server *server, enum latency_event event, uint64_t nsec);

/* Notes the slowest work of the store since the last call. */
void latency_note_store(struct server *server);

const char *latency_name(enum latency_event event);
void latency_history(struct latency *latency, enum latency_event event,
                     struct latency_history *history);
bool latency_reset(struct latency *latency, enum latency_event event); /* false: had none */

/* ---- distributions ---- */

/* Values share a bucket if they differ by less than a 32nd; longer ones than 2^30 ns, about a
 * second, count as that. */
#define TIMES_STEPS_BITS 5
#define TIMES_BITS 30
#define TIMES_BUCKETS ((TIMES_BITS - TIMES_STEPS_BITS + 1) << TIMES_STEPS_BITS)

struct command_times {
    _Atomic uint64_t counts[TIMES_BUCKETS];
};

/* `count` calls of the command took `nsec` each; without memory for it, they are not counted. */
void command_times_add(struct worker *worker, const struct command *command, uint64_t nsec,
                       uint64_t count);

/* The sum over all workers of the command in this row of the table. False: it has no times. */
struct times_sum {
    uint64_t total, counts[TIMES_BUCKETS];
};
bool command_times_sum(const struct server *server, size_t row, struct times_sum *sum);

/* The longest time in nanoseconds that falls into the same bucket as that of the `percent`th. */
uint64_t times_percentile(const struct times_sum *sum, double percent);
/* How many took less than 2^bits nanoseconds. */
uint64_t times_below(const struct times_sum *sum, uint32_t bits);

void command_times_clear(struct worker *worker);
void command_times_free(struct worker *worker);

#endif
