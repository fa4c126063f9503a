/*
 * A worker: one thread, one event loop around libevent, with its own connections and its own
 * store_worker. A round of the loop: socket events, the store's completions, the inbox; then the
 * store is submitted to and replies are written, once.
 */
#ifndef VELLUM_WORKER_H
#define VELLUM_WORKER_H

#include <stdatomic.h>
#include <stdint.h>

#include "command.h"
#include "server.h"
#include "session.h"

struct event_base;

/* Counters are written by their worker alone (relaxed atomics) and summed by INFO. */
struct worker_counters {
    _Atomic uint64_t commands, input_bytes, output_bytes, keyspace_hits, keyspace_misses,
        protocol_errors, error_replies, expired_keys;
};

struct command_counters { /* INFO commandstats, one per command_table row */
    _Atomic uint64_t calls, usec, rejected, failed;
};

struct worker {
    struct server *server;
    uint32_t index;
    pthread_t thread;
    struct event_base *base;
    struct store_worker *store;
    struct worker_counters counters;
    struct command_counters *command_counters; /* command_count of them */
    struct conn *conns;                        /* list of this worker's connections, see conn.h */
    struct worker_private *private;            /* the loop's own, in worker.c */
};

STORE_MUST_CHECK bool worker_start(struct server *server, uint32_t index,
                                   char message[STORE_MESSAGE_MAX]);
void worker_wake(struct worker *worker); /* from any thread */
void worker_join(struct worker *worker);

/* Calls visit(worker, arg) on the thread of `to` in its next round. From any thread. */
void worker_post(struct worker *to, void (*visit)(struct worker *worker, void *arg), void *arg);

#endif
