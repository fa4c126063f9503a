/*
 * Blocking commands: they wait until one of their keys has an element for them (BLPOP, ...), until
 * a time-out, or until a commit is durable (WAIT). The command function asks for this with
 * call_block. Its request then stands in the wait queue of each of its keys, ordered by arrival
 * over all workers. When a commit leaves a value of the awaited type at one of the keys, the key
 * lock is handed to the first waiter, and its function runs again before any other request gets the
 * key.
 *
 *     running --call_block--> waiting --handed---> running --call_block--> waiting, in its old
 *        |                       |                     |                    place
 *        '--> finished           |                     '--anything else--> finished
 *                                '--timeout, CLIENT UNBLOCK, connection closed--> finished
 *
 * Threads: a waiter belongs to its connection's worker; the registry is shared by all workers.
 */
#ifndef VELLUM_BLOCKED_H
#define VELLUM_BLOCKED_H

#include "server/core/command.h"

struct blocked;
struct conn;
struct request;
struct waiter;

struct blocked *blocked_new(struct store *store); /* NULL: out of memory */
void blocked_free(struct blocked *blocked);       /* no waiter is left; the store is still open */

/* Called before a blocking command runs, and not from within a run function: the registry
 * observes the store until the request is settled. STORE_NO_MEMORY: the store has too many
 * observers. */
STORE_MUST_CHECK enum store_result blocked_prepare(struct request *request);

/* A run of such a request begins. */
void blocked_look(struct request *request);

/* A run has ended with `result`, and the request still holds its key locks: hands them on. */
void blocked_leave(struct request *request, enum store_result result);

/* A run of such a request has ended with `result`. Returns STORE_WAIT if the request must now
 * wait for its keys; any other result ends it. */
STORE_MUST_CHECK enum store_result blocked_settle(struct request *request,
                                                  enum store_result result);

/* More commits have become durable, or none ever will be: ends the waits for them on this
 * worker. */
void blocked_note_durable(struct worker *worker);

/* Stops observing the store when no request needs it. Not from within a run function. */
void blocked_rest(struct blocked *blocked);

/* Ends the wait of a connection that has a waiter: its request gets the time-out reply or an
 * error. If a key has been handed to the waiter, this happens only if its next run finds nothing.
 * BLOCKED_GOES_ON: the wait has not been ended. */
enum blocked_ending { BLOCKED_GOES_ON, BLOCKED_TIMEOUT, BLOCKED_ERROR };
void blocked_end(struct conn *conn, enum blocked_ending ending);

/* Approximate memory of a waiter; its queues are counted as if it were alone in them. */
uint64_t blocked_memory(const struct waiter *waiter);

uint64_t blocked_clients(const struct blocked *blocked);
uint64_t blocked_keys(const struct blocked *blocked);

/* ---- for command functions ---- */

/*
 * For a command (CMD_BLOCKING) that finds nothing to do: it writes the reply for the time-out and
 * returns
 *
 *     resp_null_array(call->reply);
 *     return call_block(call, call->keys, key_count, TYPE_LIST, timeout_ms);
 *
 * Its request waits. When a commit has left a value of `type` at one of the keys, the function runs
 * again in a transaction of its own, the next one on that key. If it calls call_block again, the
 * request keeps its old place in the queue. timeout_ms counts from the first call; 0: no time-out.
 * Inside MULTI and scripts nothing waits: the time-out reply is the answer. The keys must be
 * declared; without keys, the request waits for the time-out alone. call_has_waited: whether this
 * is a later run. call_timeout parses seconds with fractions.
 */
STORE_MUST_CHECK enum store_result call_block(struct call *call, const struct store_key *keys,
                                              uint32_t count, enum item_type type,
                                              int64_t timeout_ms);
bool call_has_waited(struct call *call);

/*
 * What a waiter for streams wants besides. Their entries are for all waiters; but what is new in a
 * key is only for one of those with the same `audience`, if it is not 0: when one of them finds
 * nothing, the others need not look.
 */
struct block_wish {
    uint64_t audience;
    bool even_if_gone; /* wake it, too, when the key has no stream any more */
    const void *kept;  /* kept_len bytes, which are copied for later runs: see call_kept */
    size_t kept_len;
};

/* call_block for streams, for the first `count` of the call's keys. The wish of the first call
 * stays. */
STORE_MUST_CHECK enum store_result call_block_for_streams(struct call *call, uint32_t count,
                                                          int64_t timeout_ms,
                                                          const struct block_wish *wish);
const void *call_kept(struct call *call); /* NULL in the first run */

/* Like call_block, but waits until `commit` is durable (0: for the time-out alone) and not for
 * keys. However the wait ends, `answer` writes the reply. call_written: the newest commit this
 * connection has written. */
STORE_MUST_CHECK enum store_result call_await(struct call *call, uint64_t commit,
                                              int64_t timeout_ms,
                                              void (*answer)(struct call *call));
uint64_t call_written(struct call *call);

#endif
