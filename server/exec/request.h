/*
 * One command in flight, from its arrival to its reply. Each worker keeps freed requests and their
 * arrays for reuse, so that the usual path allocates nothing.
 *
 *     request_new -> [held] -> started -> finished -> answered, request_free
 *
 * A request that does not finish in the call that started it is `held`: it owns its arguments,
 * `block` keeps the bytes they point to alive, and its reply goes to a buffer of its own.
 *
 * Threads: a request belongs to its connection's worker, except for the calls of a broadcast, which
 * run on the other workers one after the other.
 */
#ifndef VELLUM_REQUEST_H
#define VELLUM_REQUEST_H

#include <sys/queue.h>

#include "server/base/input_buffer.h"
#include "server/core/command.h"
#include "server/core/collected.h"
#include "server/exec/invalidation.h"
#include "server/pubsub/effects.h"
#include "server/core/worker.h"

enum request_state { REQUEST_PARKED, REQUEST_RUNNING, REQUEST_FINISHED };

struct fiber;
struct waiter;

struct request {
    struct store_request store;
    struct call call;
    struct conn *conn;
    STAILQ_ENTRY(request) of_conn;
    SLIST_ENTRY(request) of_free;
    const struct command *named;   /* by the first argument; NULL: unknown */
    const struct store_key *known; /* named's first key, while the request is taken; or NULL */
    enum request_state state;
    enum store_result result;    /* when finished */
    bool is_read;                /* may run beside other reads */
    uint64_t line;               /* see pipeline_ordering_key; 0: none */
    bool discard;                /* CLIENT REPLY: the reply is not sent */
    const struct command *meant; /* the command it names, even if it cannot run; or NULL */
    bool rejected;               /* never ran: the reply is the reason */
    bool is_withheld;            /* its reply must not be sent: see conn_withholds */
    size_t reply_start;          /* in *call.reply */

    uint64_t bytes;              /* counted for its connection while it is queued */
    struct input_buffer *block;  /* NULL: not held, or no arguments */
    struct input_buffer *source; /* holds the arguments while the request is taken; or NULL */
    struct resp_slice *argv;
    size_t argv_capacity;
    struct store_key *keys;
    size_t key_capacity;
    struct resp_writer reply;

    struct reply_stream *readers; /* of the last run, in the order of their offsets */
    uint32_t reader_count;
    size_t reader_capacity;

    struct effects effects;        /* of the last run */
    struct call *broadcasting;     /* `call`, or one inside it; NULL: none */
    struct worker_message message; /* of a broadcast */
    struct waiter *waiter;         /* of a command that blocks: see blocked.h; or NULL */
    bool may_block;                /* from blocked_prepare on: counted in the registry's users */
    uint64_t began_ns;             /* see slowlog.h; 0: not measured, or it blocks */
    uint64_t timed_from;  /* in commandstats_clock(), for LATENCY HISTOGRAM; 0: not timed */
    uint64_t timed_calls; /* then: see commandstats_stands_for */
    bool is_monitored;    /* monitors have seen it */
    /* for streamed replies, see reply_stream.h */
    bool is_streamed;  /* a part has been sent */
    bool is_suspended; /* on worker->suspended */
    bool is_hurried;   /* must not be suspended any more */
    int64_t awaited_ms;
    LIST_ENTRY(request) of_suspended;

    /* for long runs, see long_run.h */
    struct fiber *fiber;      /* NULL: it has none */
    uint64_t stack_bytes;     /* its memory, as far as counted in `bytes` */
    uint64_t attempt;         /* in which it was suspended */
    struct collected replied; /* a reply that grows */
    uint64_t looked_ns;       /* when its time slice began; 0: not started */
    enum store_result run_result;
    bool is_long;     /* its next run gets a fiber */
    bool is_on_fiber; /* at this moment */

    bool caches_first, caches;  /* CLIENT CACHING: at the start, and for the commands to come */
    struct invalidation reread; /* see tracking_note_reread */

    bool wants_all; /* it needs undeclared keys: see nested_declare */
    /* FCALL: it needs the libraries' key, which follows the declared ones. The commit that its
     * libraries are from if it has not read them; otherwise 0. */
    bool wants_libraries;
    uint64_t library_commit;
};

/* The request that a call belongs to, even if nested. */
static inline struct request *request_of_call(struct call *call)
{
    while (call->outer != NULL)
        call = call->outer;
    return (struct request *)((char *)call - offsetof(struct request, call));
}

/* The command's first key, if the read-ahead has hashed it; or NULL. */
static inline const struct store_key *request_known_key(const struct request *request,
                                                        const struct command *command)
{
    return command == request->named ? request->known : NULL;
}

struct request *request_new(struct conn *conn); /* NULL: out of memory */
void request_free(struct request *request);
void request_free_spares(struct worker *worker); /* the free list */

/* Reserves room for the arguments, so that holding them cannot fail later; false: out of memory. */
bool request_reserve_arguments(struct request *request, size_t count);

/* Offers the commands after this one for a batch (batch.h). False: out of memory. */
bool request_offer_row(struct request *request, const struct ahead *commands, uint32_t count);

/* Makes the request own its arguments: by holding the block they lie in, or by copying them. Keys
 * must be declared after a copy, but may be declared before a hold. */
void request_hold(struct request *request, struct input_buffer *block);
bool request_hold_copy(struct request *request); /* false: out of memory */

/* Reserves room for `count` keys; false: out of memory. */
bool request_reserve_keys(struct request *request, size_t count);

/* The reply has ended, or counts elsewhere. */
static inline void request_uncount_reply(struct request *request)
{
    if (request->replied.bytes > 0)
        (void)collected_set(&request->replied, 0);
}

/* Drops the reply of a discarded run, if it is long: many requests may wait. */
void request_drop_reply(struct request *request);

#endif
