/*
 * A worker: one thread and one event loop around libevent, with its own connections and its own
 * store_worker. A round of the loop handles socket events, the store's completions and the inbox;
 * then it serves the ready connections (commands run on), sends the replies of all, and submits to
 * the store.
 *
 * Threads: everything here belongs to the worker's thread. Other threads read the atomic fields and
 * post to the inbox; the listener increments connection_count, SCRIPT KILL sets script.is_killed,
 * and round_clock_longest clears longest_gap_nsec.
 */
#ifndef VELLUM_WORKER_H
#define VELLUM_WORKER_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

#include "server/core/command.h"
#include "server/core/errorstats.h"
#include "server/base/fiber.h"
#include "server/core/server.h"
#include "server/core/session.h"
#include "server/core/worker_inbox.h"

struct event;
struct event_base;
struct command_times;
struct input_buffer;
struct conn;
struct rdma_loop;
struct rdma_poll_group;
struct request;
struct script_state;
struct waiter;
struct worker_inbox;
struct worker_loop;

/* Counters are written by their worker alone (relaxed atomics) and summed up by INFO. */
struct worker_counters {
    _Atomic uint64_t input_bytes, output_bytes, keyspace_hits, keyspace_misses, protocol_errors,
        error_replies, reads, writes, query_buffer_closed, output_buffer_closed, uploads,
        evicted_clients, cycles;
};

/* Adds to a counter that only this thread writes. */
static inline void counter_add(_Atomic uint64_t *counter, uint64_t amount)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + amount, memory_order_relaxed);
}

/* A worker's Lua memory and running script, as visible to other threads. */
struct script_shown {
    _Atomic uint64_t bytes;
    _Atomic bool is_busy;     /* over busy-reply-threshold */
    _Atomic bool is_function; /* then: a function, not EVAL's script */
    pthread_mutex_t lock;     /* of the next three */
    const struct call *call;  /* of the busy function; NULL: there is none */
    const char *name;
    uint64_t began_nsec;
    _Atomic bool has_written;
    _Atomic bool is_killed; /* the script must end */
};

/* The last run of a function that has changed variables of its library: until it has committed,
 * nothing else may see them. See script_function.h. */
struct unsettled {
    const void *request; /* NULL: there is none */
    uint64_t attempt;
    bool is_lost; /* it did not commit */
};

#define WORKER_SPARE_PARSERS 16
#define WORKER_LATE_REPLIES 32
#define WORKER_LATE_BYTES (128 * 1024)

/* The output of a connection's turn, kept until it can be sent together with others. */
struct corked_reply {
    struct conn *conn;
    uint32_t at, len; /* in worker->corked_bytes */
};

/* Backpressure: whether commands are taken although much output is unsent. */
enum client_hold { CLIENTS_GO_ON, CLIENTS_ARE_HELD, CLIENTS_ARE_TOO_SLOW };

/* Calls from lower rooms into the loop: the only way to call upward. See server/README.md. */
struct loop_hooks {
    /* A nested round inside a command that runs for long on `apart`, which is not served: accepts
     * connections, delivers publications, reads input, answers BUSY; everything else waits for the
     * command's end. The command holds no lock of the store. */
    void (*run_nested_round)(struct worker *worker, struct conn *apart);
    /* The script running on the worker is inside a long command, at a point where no data of the
     * store is being accessed. */
    void (*look_from_script)(struct worker *worker);
    bool (*move_listener)(struct listener *listener, int port, const char *addresses);
};

struct worker {
    struct server *server;
    uint32_t index;
    pthread_t thread;
    _Atomic clockid_t processor_clock; /* of the thread; 0: not started */
    struct event_base *base;
    struct store_worker *store;
    int64_t now_ms;          /* Unix time of this round; 0: not read yet, see worker_now() */
    LIST_HEAD(, conn) conns; /* open connections, newest first: see conn_turn.c */
    _Atomic uint32_t connection_count; /* the listener chooses the worker by it */
    _Atomic uint64_t client_bytes;     /* of their buffers: see client_memory.h */
    uint64_t shared_bytes;             /* of publications in them, counted in each */
    int64_t client_bytes_reported;     /* as reported to the store */
    uint64_t leaving_bytes;            /* of those being closed, or whose commands still run */
    uint64_t input_bytes;              /* of the shared input blocks, `input` and earlier ones */
    uint64_t counted_input_bytes;      /* of that without `input`, as reported to the store */
    uint64_t unsent_bytes;             /* of replies */
    enum client_hold hold;             /* see client_memory.c */
    uint64_t awaited_bytes;            /* the fewest that a deferred client awaits; 0: none does */
    int64_t held_since_ms;
    uint64_t pushed_bytes; /* into outputs, by the last visit to the inbox */
    struct worker_counters counters;
    struct errorstats errors;
    struct command_counters *command_counters;    /* one per entry of the command table */
    struct command_times *_Atomic *command_times; /* likewise, NULL: not called; see latency.h */

    /* shared by the connections, in turns: see conn_turn.c */
    struct resp_parser *parser;      /* between commands, between turns */
    struct resp_parser ahead_parser; /* of read_ahead.c */
    struct resp_parser *spare_parsers[WORKER_SPARE_PARSERS];
    uint32_t spare_parser_count;
    struct input_buffer *input; /* transports are read into it; NULL: not allocated */
    struct resp_writer output;  /* replies of the connection whose turn it is; otherwise empty */
    uint32_t output_replies;    /* replies in it: see conn_output.c */
    struct corked_reply corked[WORKER_LATE_REPLIES]; /* see conn_output.c */
    uint32_t corked_count, corked_used;
    char *corked_bytes;       /* WORKER_LATE_BYTES */
    struct conn *ready_conns; /* to be served before the round ends */
    struct conn *undurable;   /* connections whose replies wait for the journal */
    struct conn *put_off;     /* connections with commands left for the next round */
    LIST_HEAD(, conn) paused; /* see pause.h */
    struct event *pause_timer;

    /* see round_clock.h */
    uint32_t round_weight;
    uint64_t round_began_nsec; /* 0: not measured yet */
    uint64_t looked_up_nsec;   /* in CPU time of the thread; 0: never */
    _Atomic uint64_t longest_gap_nsec;

    /* used by the runner: see runner.c */
    SLIST_HEAD(, request) free_requests;
    uint32_t free_request_count;
    struct fiber_pool fibers;       /* see long_run.h */
    LIST_HEAD(, request) suspended; /* see reply_stream.h */
    LIST_HEAD(, waiter) awaiting;   /* see blocked_note_durable */
    uint32_t running;               /* requests started and not finished */
    uint64_t random_state;
    int64_t browser_logged_ms;

    struct script_state *scripts; /* NULL: no script has run here yet */
    struct script_shown script;
    struct unsettled unsettled;
    bool is_throttled; /* see pubsub_throttles */
    /* In hooks->run_nested_round: the connection whose command it interrupts; only CMD_ALLOW_BUSY
     * commands run. NULL: no such round. */
    const struct conn *apart;
    struct rdma_loop *rdma; /* NULL: no RDMA here */
    struct rdma_poll_group *rdma_group;
    const struct loop_hooks *hooks;
    struct worker_inbox *inbox; /* see worker_inbox.c */
    struct worker_loop *loop;   /* see worker_loop.c */
};

/* Seeds for commands. Worker's thread only. */
static inline uint64_t worker_random(struct worker *worker)
{
    uint64_t x = worker->random_state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    worker->random_state = x;
    return x;
}

uint64_t worker_busy_usec(const struct worker *worker); /* its thread's CPU time; any thread */

/* Whether a script on any worker has run beyond busy-reply-threshold. */
bool worker_any_script_is_busy(const struct server *server);
/* Whether one of them is a function, or one is not. */
bool worker_any_busy_is(const struct server *server, bool is_function);

/* Runs this worker's blocked requests that the previous command has handed a key to. Called after
 * each command, so that they need not wait for the commands after it. */
void worker_visit_woken(struct worker *worker);

/* The round's time, read at its first use. */
int64_t worker_now(struct worker *worker);

#endif
