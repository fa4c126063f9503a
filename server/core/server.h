/*
 * The one object owned by main: configuration, store, workers, and process-wide counters. There is
 * no other global state.
 */
#ifndef VELLUM_SERVER_H
#define VELLUM_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "storage/store.h"
#include "server/base/version.h"
#include "server/core/command.h"
#include "server/core/function_names.h"
#include "server/config/config.h"
#include "server/config/log.h"

struct blocked;
struct latency;
struct listener;
struct keyspace_events;
struct pubsub;
struct rdma_ops;
struct rdma_devices;
struct scripts;
struct slowlog;
struct worker;
struct tracking;
struct watch_registry;

/* The last values shown by INFO. */
enum info_rate { RATE_COMMANDS, RATE_INPUT, RATE_OUTPUT, RATE_CYCLES, RATE_BUSY_USEC, RATE_COUNT };
struct info_rates {
    _Atomic int64_t taken_ms;
    _Atomic uint64_t totals[RATE_COUNT], per_second[RATE_COUNT];
};

#define SERVER_PROBLEM_MAX 160

/* What is known of the libraries of functions without reading them, for INFO and FUNCTION STATS
 * among others. */
struct libraries_shown {
    bool is_set;
    uint64_t count, functions, bytes, stamp;
    struct name_set *readonly_names; /* owned; NULL: none */
};

/* Frees what they own. They are no longer set. */
static inline void libraries_shown_drop(struct libraries_shown *libraries)
{
    if (libraries->is_set)
        name_set_free(libraries->readonly_names);
    libraries->is_set = false;
}

struct server {
    struct config config; /* see config.h for its locking */
    struct log log;
    struct command_index commands; /* main builds it from config.renames before workers start */
    struct store *store;
    struct pubsub *pubsub;
    struct keyspace_events *keyspace_events;
    struct blocked *blocked;
    struct scripts *scripts;
    struct slowlog *slowlog;
    struct latency *latency;
    _Atomic uint32_t monitor_count; /* clients in MONITOR, for a quick check that there is none */
    struct listener *listener;      /* NULL until it is open */
    struct worker **workers;
    uint32_t worker_count;
    struct watch_registry *watches;           /* observes `store` */
    struct tracking *tracking;                /* likewise */
    char run_id[41];                          /* 40 hex digits, new at each start */
    char executable[4096], config_file[4096]; /* absolute; config_file empty if none */
    int64_t start_ms;                         /* Unix time */
    uint64_t commits_at_start;                /* the number of the newest one */
    bool oom_score_is_ours;                   /* this and the next: under config.changing */
    int oom_score_before;
    _Atomic uint64_t next_session_id;
    _Atomic uint32_t connected_clients; /* accepted and not yet closed */
    _Atomic uint64_t total_connections, rejected_connections, denied_auths;
    _Atomic uint64_t loop_usec_before; /* the workers' time at the last reset of the statistics */
    _Atomic uint64_t script_bytes;     /* granted to Lua, in all workers: see script_state.h */
    _Atomic uint64_t spooled_bytes;    /* of clients' input, on the device: see spool.h */
    _Atomic uint64_t collected_bytes;  /* by the commands that work in steps: see collector.h */
    /* the libraries of functions, as of the last commit, which is `library_commit` or an earlier
     * one */
    _Atomic uint64_t library_count, function_count, library_bytes;
    _Atomic uint64_t library_stamp, library_commit;
    struct readonly_names *readonly_names;
    struct info_rates rates;
    const struct rdma_ops *rdma_ops; /* set by main; NULL: built without RDMA */
    struct rdma_devices *rdma;       /* NULL: none; then `rdma_problem`, if any, says why */
    char rdma_problem[SERVER_PROBLEM_MAX];
    _Atomic uint64_t memory_peak;       /* of used_memory, as far as INFO has seen it */
    _Atomic uint64_t client_soft_limit; /* of a worker's clients: see client_memory.h */
    _Atomic uint64_t client_limit;      /* of all clients */
    _Atomic uint64_t published_bytes;   /* of publications in outputs, each counted once */
    _Atomic int64_t published_untold;   /* of that, not yet reported to the store */
    _Atomic uint64_t memory_bound;      /* maxmemory, or its default */
    _Atomic uint64_t purged_bytes;      /* unused memory of the heap that needs no heap_purge */
    _Atomic uint64_t heap_bytes;        /* in its blocks, as last measured */
    _Atomic int64_t heap_noted;         /* what had been reported to the store then */
    _Atomic int64_t heap_measured_us, heap_took_us; /* when, and how long that took */
    _Atomic bool stopping;                          /* set by server_stop alone */
    _Atomic uint64_t pause;                         /* CLIENT PAUSE: see exec/pause.h; 0: none */
    _Atomic uint32_t paused_clients;                /* whose next command waits for its end */
    _Atomic bool
        is_opening; /* the store: whoever clears it decides how a stop goes, see process.h */
    void (*leave_nothing)(struct server *); /* set by main: before a stop that ends the process */
    _Atomic bool measures_gaps;             /* DEBUG LOOP-GAP */
    _Atomic bool scripts_may_all;           /* DEBUG SET-DISABLE-DENY-SCRIPTS */
    _Atomic bool skips_checksums;           /* DEBUG SET-SKIP-CHECKSUM-VALIDATION */
    _Atomic uint32_t workers_busy; /* of a stopping server: workers with requests in flight */
    int stop_fd;                   /* eventfd: readable from server_stop on */
};

/* Begins a graceful stop: accepts no more connections and commands, finishes the running commands,
 * sends their replies as far as the clients take them at once, and closes the store. From any
 * thread; a second call has no effect. */
void server_stop(struct server *server);

/* The effective maxmemory: half of what the process may use, if it is 0; at least 64 MB. */
uint64_t server_memory(uint64_t maxmemory);

/* For store_options.process_bytes. */
uint64_t server_process_bytes(void *server, uint64_t mapped, int64_t noted, bool is_short);

/* Returns unused pages of the heap to the system: see heap_purge. */
void server_purge_heap(struct server *server);

/* They have been changed by this commit. Called before its lock of them is released. Takes what
 * `libraries` owns. */
void server_show_libraries(struct server *server, struct libraries_shown *libraries,
                           uint64_t commit);

/* Sets the store's eviction policy from the configuration. */
void server_set_policy(struct server *server);

#endif
