/*
 * A random load on a store, checked against an oracle as it goes: several calls are under way at
 * once, on all workers of a rig; scans and streams run between them.
 *
 * `now` is what the store shows; `base` what it held when it was opened. The calls in between are
 * kept in the order of their commits, so that after a crash the state after any commit is known.
 */
#ifndef VELLUM_TEST_STORAGE_WORKLOAD_H
#define VELLUM_TEST_STORAGE_WORKLOAD_H

#include "storage/format/format.h"
#include "tests/storage/fault_disk.h"
#include "tests/storage/oracle.h"

#define WORKLOAD_STREAMS 3u

/* Longest values: by default, and where roots are to have nodes. */
#define WORKLOAD_NODE (FORMAT_NODE_FANOUT * FORMAT_EXTENT_BYTES)
#define WORKLOAD_LARGE (SIZES_ARE_TINY ? 3 * WORKLOAD_NODE : 400u << 10)
#define WORKLOAD_LARGEST (SIZES_ARE_TINY ? STORE_VALUE_MAX / 4 : 12u << 20)

struct workload_stream {
    struct store_reader *reader;
    struct blob *expected;
    uint64_t offset;
};

struct workload_scan {
    struct store_request request;
    struct workload *workload;
    uint64_t cursor;
    uint32_t db;
    bool running, under_way;
    bool seen[ORACLE_KEYS];    /* since it began */
    bool missing[ORACLE_KEYS]; /* absent at some time since then: need not be seen */
};

struct workload {
    struct rng rng;
    struct rig *rig;
    struct oracle *now, *base;
    struct call *log, *log_last; /* changes since base, in the order of commits */
    uint64_t last_commit;        /* of the log */
    uint32_t under_way, window;
    uint64_t calls, large_bytes;
    uint32_t large_percent;  /* of puts */
    uint32_t alone_permille; /* calls on whole databases, with others mixed in */
    uint64_t large_max;
    struct medium *medium; /* or NULL; once its power is cut, calls may fail */
    bool tolerant;         /* they may at any time */
    struct workload_stream readers[WORKLOAD_STREAMS];
    struct workload_scan scan;
};

void workload_init(struct workload *load, struct rig *rig, uint64_t seed);
void workload_free(struct workload *load);
/* Starts one more call, after waiting for room in the window. */
void workload_step(struct workload *load);
/* Starts this call, which becomes the workload's. */
void workload_start(struct workload *load, struct call *call);
/* Waits for all calls; scans and streams end. */
void workload_drain(struct workload *load);
/* The store was closed in order: all calls happened. */
void workload_settle(struct workload *load);
/* The store crashed and has recovered the commits up to this one: the calls behind it did not
 * happen. */
void workload_rewind(struct workload *load, uint64_t commit);

#endif
