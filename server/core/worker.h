/*
 * A worker: one thread, one event loop around libevent, with its own connections and its own
 * store_worker. A round of the loop: socket events, the store's completions, the inbox; then the
 * connections that need attention (commands run on), the replies of all are written, and the store
 * is submitted to.
 *
 * Threads: everything here belongs to the worker's thread, but for worker_post, worker_wake, the
 * counters and connection_count.
 */
#ifndef VELLUM_WORKER_H
#define VELLUM_WORKER_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

#include "server/core/command.h"
#include "server/core/errorstats.h"
#include "server/base/fiber.h"
#include "server/base/message.h"
#include "server/core/server.h"
#include "server/core/session.h"

struct event_base;
struct input_buffer;
struct conn;
struct rdma_loop;
struct rdma_poll_group;
struct request;
struct script_state;
struct waiter;
struct worker_inbox;
struct worker_loop;

/* Counters are written by their worker alone (relaxed atomics) and summed by INFO. */
struct worker_counters {
    _Atomic uint64_t commands, input_bytes, output_bytes, keyspace_hits, keyspace_misses,
        protocol_errors, error_replies, expired_keys, reads, writes, query_buffer_closed,
        output_buffer_closed, uploads, evicted_clients, cycles;
};

/* INFO commandstats, one per command_table row. Time is taken for the first calls of a command and
 * then for one in COMMAND_SAMPLE, which counts that often: no clock on the usual path. */
#define COMMAND_SAMPLE 64
struct command_counters {
    _Atomic uint64_t calls, nsec, rejected, failed;
};

/* Adds to a counter that only this thread writes. */
static inline void counter_add(_Atomic uint64_t *counter, uint64_t amount)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + amount, memory_order_relaxed);
}

/* A worker's Lua, and the script that runs, as other threads see them. */
struct script_shown {
    _Atomic uint64_t bytes;
    _Atomic bool is_busy; /* over busy-reply-threshold */
    _Atomic bool has_written;
    _Atomic bool is_killed; /* it is to end */
};

#define WORKER_SPARE_PARSERS 16
#define WORKER_LATE_REPLIES 32
#define WORKER_LATE_BYTES (128 * 1024)

/* What a connection's turn has written, kept until those of others can be sent with it. */
struct corked_reply {
    struct conn *conn;
    uint32_t at, len; /* in worker->corked_bytes */
};

/* Whether commands are taken although much is unsent. */
enum client_hold { CLIENTS_GO_ON, CLIENTS_ARE_HELD, CLIENTS_ARE_TOO_SLOW };

/* What lower rooms ask of the loop: the one way to call upward. See server/README.md. */
struct loop_hooks {
    /* A small round from inside a command that runs for long on `apart`, which is left alone: new
     * connections are taken in, input is read, BUSY is answered; everything else waits for the
     * command's end. The command holds no lock of the store. */
    void (*run_nested_round)(struct worker *worker, struct conn *apart);
    /* The script that runs on the worker is inside a command that takes long, at a point where
     * nothing of the store is looked at. */
    void (*look_from_script)(struct worker *worker);
    bool (*move_listener)(struct listener *listener, int port, const char *addresses);
};

struct worker {
    struct server *server;
    uint32_t index;
    pthread_t thread;
    _Atomic clockid_t processor_clock; /* of the thread; 0: it has not begun */
    struct event_base *base;
    struct store_worker *store;
    int64_t now_ms;     /* Unix time of this round; 0: not read yet, see worker_now() */
    struct conn *conns; /* open connections, newest first: see conn.h */
    _Atomic uint32_t connection_count; /* the listener chooses by it */
    _Atomic uint64_t client_bytes;     /* of their buffers: see client_memory.h */
    uint64_t shared_bytes;             /* of publications in them, each time */
    int64_t client_bytes_told;         /* as the store has been told */
    uint64_t unsent_bytes;             /* of replies */
    enum client_hold hold;             /* see client_memory.c */
    int64_t held_since_ms;
    uint64_t pushed_bytes; /* into outputs, by the messages visited last */
    struct worker_counters counters;
    struct errorstats errors;
    struct command_counters *command_counters; /* command_count of them */

    /* shared by the connections, which take turns: see conn.c */
    struct resp_parser *parser;      /* at a command's start between turns */
    struct resp_parser prefetch_run; /* of read_ahead.c */
    struct resp_parser *spare_parsers[WORKER_SPARE_PARSERS];
    uint32_t spare_parser_count;
    struct input_buffer *input; /* what transports are read into; NULL: to be made */
    struct resp_writer output;  /* replies of the connection whose turn it is; else empty */
    uint32_t output_replies;    /* how many: see conn_output.c */
    struct corked_reply corked[WORKER_LATE_REPLIES]; /* see conn_output.c */
    uint32_t corked_count, corked_used;
    char *corked_bytes;       /* WORKER_LATE_BYTES */
    struct conn *ready_conns; /* connections to be looked at before the round ends */
    struct conn *undurable;   /* connections whose replies wait for the journal */
    struct conn *put_off;     /* connections with commands left for the next round */

    /* see round_clock.h */
    uint32_t round_weight;
    uint64_t round_began_nsec; /* as first seen; 0: not yet */
    uint64_t looked_up_nsec;   /* of the thread's processor time; 0: never */
    _Atomic uint64_t longest_gap_nsec;

    /* the runner's: see runner.c */
    struct request *free_requests;
    uint32_t free_request_count;
    struct fiber_pool fibers;       /* see long_run.h */
    LIST_HEAD(, request) suspended; /* see reply_stream.h */
    LIST_HEAD(, waiter) awaiting;   /* see blocked_note_durable */
    uint32_t running;               /* requests started and not finished */
    uint64_t random_state;
    int64_t browser_logged_ms;

    struct script_state *scripts; /* NULL: none has run here yet */
    struct script_shown script;
    bool is_throttled;      /* see pubsub_throttles */
    bool is_spilled;        /* in hooks->run_nested_round: only CMD_ALLOW_BUSY commands run */
    struct rdma_loop *rdma; /* NULL: no RDMA here */
    struct rdma_poll_group *rdma_group;
    const struct loop_hooks *hooks;
    struct worker_inbox *inbox; /* see worker.c */
    struct worker_loop *loop;   /* see worker_loop.c */
};

/* Seeds for commands; by the worker's thread. */
static inline uint64_t worker_random(struct worker *worker)
{
    uint64_t x = worker->random_state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    worker->random_state = x;
    return x;
}

void worker_wake(struct worker *worker);                /* from any thread */
uint64_t worker_busy_usec(const struct worker *worker); /* its thread's time, from any thread */

/* Whether a script runs beyond busy-reply-threshold, on any worker. */
bool worker_any_script_is_busy(const struct server *server);

/* The inbox. False: out of memory or descriptors; it is to be closed nevertheless, when it is empty
 * and nobody posts any more. Its descriptor is readable when something has been posted. */
STORE_MUST_CHECK bool worker_open_inbox(struct worker *worker);
void worker_close_inbox(struct worker *worker);
int worker_inbox_fd(const struct worker *worker);
bool worker_has_messages(const struct worker *worker);
/* Messages for so many subscribers may have come that their connections have to have turns in
 * between, in which they send, and count what they hold: then some are left. */
void worker_visit_inbox(struct worker *worker);
void worker_visit_urgent(struct worker *worker); /* holds the others, in their order */
void worker_visit_rest(struct worker *worker);   /* all that it was sent, when it has ended */

/* Clients that the command before has woken are served, if they are this worker's: behind each
 * command, so that they need not wait for those that come after it. */
void worker_visit_woken(struct worker *worker);

/* The round's time, read at its first use. */
int64_t worker_now(struct worker *worker);

/* worker_post (message.h) by the worker's own thread, to be visited in this round when all
 * connections have had their turn; nothing need be woken. Not while the worker stands outside of
 * its round. */
void worker_post_self(struct worker *self, struct worker_message *message);

#endif
