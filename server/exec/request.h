/*
 * One command in flight, from its arrival to its reply. Requests are kept for reuse by their worker
 * together with their arrays, so that the usual path allocates nothing.
 *
 *     request_new -> [held] -> started -> finished -> answered, request_free
 *
 * A request that does not finish where it started is `held`: its arguments are its own, the bytes
 * they point to are kept alive by `block`, and its reply goes to a buffer of its own.
 *
 * Threads: a request belongs to its connection's worker, but for the calls of a tour, which happen
 * on the other workers one after the other.
 */
#ifndef VELLUM_REQUEST_H
#define VELLUM_REQUEST_H

#include <sys/queue.h>

#include "server/base/input_buffer.h"
#include "server/core/command.h"
#include "server/pubsub/effects.h"
#include "server/core/worker.h"

enum request_state { REQUEST_PARKED, REQUEST_RUNNING, REQUEST_FINISHED };

#define READER_OF_NO_VALUE UINT64_MAX

/* A large value, to be sent when `offset` bytes of the reply have been. */
struct reply_stream {
    size_t offset;
    uint64_t length; /* of the value, if it is one that the client may have a place for */
    struct store_reader *reader;
};

struct fiber;
struct waiter;

struct request {
    struct store_request store;
    struct call call;
    struct conn *conn;
    struct request *next;          /* of the connection, or of the worker's free ones */
    const struct command *named;   /* by the first argument; NULL: there is none */
    const struct store_key *known; /* named's first key, while the request is taken; or NULL */
    enum request_state state;
    enum store_result result;    /* when finished */
    bool is_read;                /* may run beside other reads */
    uint64_t line;               /* see pipeline_ordering_key; 0: none */
    bool discard;                /* CLIENT REPLY: nobody wants the reply */
    const struct command *meant; /* that it names, whether it can run or not; or NULL */
    bool rejected;               /* never ran: the reply says why */
    bool is_withheld;            /* what it would answer must not leave: see conn_withholds */
    size_t reply_start;          /* in *call.reply */

    uint64_t bytes;             /* counted for its connection while it is queued */
    struct input_buffer *block; /* NULL: not held, or no arguments */
    struct input_buffer
        *source; /* what the arguments lie in, while the request is taken; or NULL */
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
    struct worker_message message; /* of a tour */
    struct waiter *waiter;         /* of a command that blocks: see blocked.h; or NULL */
    bool may_block;
    uint64_t began_ns; /* see slowlog.h; 0: nobody asks, or it blocks */
    bool is_monitored; /* monitors have seen it */
    /* of a reply that leaves in parts: see reply_stream.h */
    bool is_streamed;  /* a part has left */
    bool is_suspended; /* is in worker->resting */
    bool is_hurried;   /* it does not rest any more */
    int64_t awaited_ms;
    LIST_ENTRY(request) of_resting;

    /* of a run that takes long: see long_run.h */
    struct fiber *fiber; /* NULL: it has none */
    uint64_t attempt;    /* in which it was left */
    uint64_t looked_ns;  /* when its turn began, or it was asked first; 0: not yet */
    enum store_result run_result;
    bool is_long;     /* its next run is to have a fiber */
    bool is_on_fiber; /* now */

    bool wants_all; /* has come upon keys that were not declared: see nested_declare */
};

/* The request that a call belongs to, be it inside another one. */
static inline struct request *request_of_call(struct call *call)
{
    while (call->outer != NULL)
        call = call->outer;
    return (struct request *)((char *)call - offsetof(struct request, call));
}

/* The command's first key, if it was hashed when it was read ahead; or NULL. */
static inline const struct store_key *request_known_key(const struct request *request,
                                                        const struct command *command)
{
    return command == request->named ? request->known : NULL;
}

struct request *request_new(struct conn *conn); /* NULL: out of memory */
void request_free(struct request *request);
void request_free_spares(struct worker *worker); /* those kept for reuse */

/* Room for the arguments, so that holding them cannot fail later; false: out of memory. */
bool request_reserve_arguments(struct request *request, size_t count);

/* The commands behind this one may form a row with it (batch.h). False: out of memory. */
bool request_offer_row(struct request *request, const struct ahead *commands, uint32_t count);

/* Makes the arguments the request's own: by holding the block they lie in, or by copying them.
 * Keys must be declared after a copy, but may be before a hold. */
void request_hold(struct request *request, struct input_buffer *block);
bool request_hold_copy(struct request *request); /* false: out of memory */

/* Makes sure of `count` keys; false: out of memory. */
bool request_reserve_keys(struct request *request, size_t count);

/* The reply of a run that is thrown away, if it is long: many may wait. */
void request_drop_reply(struct request *request);

#endif
