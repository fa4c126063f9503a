/*
 * vellum-benchmark's command line.
 */
#ifndef VELLUM_BENCH_OPTIONS_H
#define VELLUM_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "clients/vellum.h"

#define BENCH_TRANSPORTS_MAX 8
#define BENCH_SIZES_MAX 32
#define BENCH_CLIENTS_MAX 10000
#define BENCH_THREADS_MAX 256

struct bench_transport {
    const char *name;
    bool is_unix, is_rdma;
    bool by_reference; /* by reference: the server READs values from the client's memory and WRITEs
                          them there */
    enum vellum_rdma_mode mode;
};

enum bench_format { BENCH_TEXT, BENCH_QUIET, BENCH_CSV, BENCH_JSON };

struct bench_options {
    const char *host, *path, *user, *password, *device;
    uint32_t port, database;
    uint32_t clients, threads, pipeline, rounds, spin_us;
    uint64_t requests; /* of each transport in each test, over all rounds */
    double seconds;    /* runs last so long, and requests are only for the fill; 0: none */
    double rate;       /* requests per second, open loop; 0: closed loop */
    uint64_t keys;     /* of the key space; 0: not given */
    uint64_t seed;
    uint64_t sizes[BENCH_SIZES_MAX];
    uint32_t size_count;
    const struct bench_transport *transports[BENCH_TRANSPORTS_MAX];
    uint32_t transport_count;
    const char *tests; /* names with commas; NULL: the usual ones */
    int word_count;    /* the user's own command */
    const char **words;
    enum bench_format format;
    const char *plot; /* a file; NULL: none */
    bool repeats, only_waits;
};

/* False: the command line is wrong, or asked for help only; *status is the exit code. */
bool bench_options_parse(struct bench_options *options, int argc, char **argv, int *status);

/* A client by a transport, logged in, its database selected. Gives up if that fails. */
struct vellum *bench_connect(const struct bench_options *options,
                             const struct bench_transport *transport);

/* Ends the program, with a line on stderr. */
_Noreturn void bench_give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
