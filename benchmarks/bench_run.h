/*
 * One run: a test by one transport, closed loop or open loop.
 */
#ifndef VELLUM_BENCH_RUN_H
#define VELLUM_BENCH_RUN_H

#include <pthread.h>

#include "benchmarks/bench_options.h"
#include "benchmarks/bench_tests.h"
#include "benchmarks/histogram.h"
#include "benchmarks/keys.h"

/* Keys inserted while others are read: tracks which exist already. */
#define BENCH_INSERTS_WINDOW 65536

struct bench_inserts {
    pthread_mutex_t lock;
    uint64_t next;  /* to be inserted */
    uint64_t there; /* all below have been acknowledged */
    bool is_done[BENCH_INSERTS_WINDOW];
};

struct bench_run {
    const struct bench_options *options;
    const struct bench_transport *transport;
    const struct bench_mix *mix; /* of read and update; NULL: `command` alone */
    struct bench_command command, read, update;
    struct bench_inserts *inserts;
    struct keys keys;        /* copied and seeded by each thread */
    bool counts_up;          /* by one thread: numbers go from 0 up, not at random */
    int64_t wanted_length;   /* of read values; -1: any */
    int64_t wanted_elements; /* of arrays; -1: any */
    uint64_t requests;       /* 0: until the time is over */
    double seconds, rate;    /* rate 0: closed loop */
    uint32_t clients, threads, pipeline;
    uint64_t seed;
};

struct bench_result {
    struct histogram latencies;
    uint64_t operations, commands;
    uint64_t absent; /* the key was missing or empty */
    uint64_t odd;    /* a value or array of another length than the test expects */
    double seconds, client_cpu_s;
};

void bench_result_add(struct bench_result *result, const struct bench_result *part);

/* All give up on any error. The clients are connected in between: a server's figures taken then
 * show the run alone. */
struct bench_team *bench_team_gather(const struct bench_run *run);
void bench_team_run(struct bench_team *team, struct bench_result *result);
void bench_team_free(struct bench_team *team);

#endif
