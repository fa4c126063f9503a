/*
 * Commands that wait until a key has something for them (BLPOP, ...), or until a time has passed
 * (WAIT). The command function says so by call_block; its request then stands in the
 * queues of its keys, in the order of arrival over all workers, and is run again when a commit has
 * left a value of its type there: as the next on this key, before anybody else.
 *
 *     running --call_block--> waiting --summoned--> running --call_block--> waiting, in its old
 *        |                       |                     |                    place
 *        '--> finished           |                     '--anything else--> finished
 *                                '--timeout, CLIENT UNBLOCK, the client is gone--> finished
 *
 * Threads: a waiter belongs to its connection's worker; the registry is everybody's.
 */
#ifndef VELLUM_BLOCKED_H
#define VELLUM_BLOCKED_H

#include "server/core/command.h"

struct blocked;
struct conn;
struct request;
struct waiter;

struct blocked *blocked_new(struct store *store); /* NULL: out of memory */
void blocked_free(struct blocked *blocked);       /* nobody waits any more; the store is open */

/* Before a command that may block is run, and not from within a run function: the registry listens
 * to the store until the request is settled. STORE_NO_MEMORY: the store has too many observers. */
STORE_MUST_CHECK enum store_result blocked_prepare(struct request *request);

/* A run of such a request begins. */
void blocked_look(struct request *request);

/* It has ended so, and its keys are still its own: they are handed on. */
void blocked_leave(struct request *request, enum store_result result);

/* A run of such a request has ended so: STORE_WAIT, if it is to wait now for its keys. Otherwise it
 * is settled. */
STORE_MUST_CHECK enum store_result blocked_settle(struct request *request,
                                                  enum store_result result);

/* More has become durable, or nothing ever will: ends what waits for that on this worker. */
void blocked_note_durable(struct worker *worker);

/* Stops listening when no request needs it; not from within a run function. */
void blocked_rest(struct blocked *blocked);

/* Ends the wait of a connection that has a waiter: its request is answered as if the time were up,
 * or with an error, or is not to be answered at all. */
enum blocked_ending { BLOCKED_GOES_ON, BLOCKED_TIMEOUT, BLOCKED_ERROR };
void blocked_end(struct conn *conn, enum blocked_ending ending);

/* About what it takes: queues as if nobody else waited in them. */
uint64_t blocked_memory(const struct waiter *waiter);

uint64_t blocked_clients(const struct blocked *blocked);
uint64_t blocked_keys(const struct blocked *blocked);

/* ---- for command functions ---- */

/*
 * A command that finds nothing to do and waits for it (CMD_BLOCKING): it writes the reply that is
 * to be given when the time is up, and returns
 *
 *     resp_null_array(call->reply);
 *     return call_block(call, call->keys, key_count, TYPE_LIST, timeout_ms);
 *
 * Its request waits, and when a commit has left a value of the type at one of the keys, its
 * function runs again as a transaction of its own, the next on that key; calling call_block again
 * it goes on waiting in its old place. timeout_ms counts from the first time; 0: for ever. Inside
 * MULTI and scripts nothing waits: the reply stands. Declared keys only; none: it just waits for
 * the time. call_has_waited: this is not the first look. call_timeout reads seconds, with
 * fractions.
 */
STORE_MUST_CHECK enum store_result call_block(struct call *call, const struct store_key *keys,
                                              uint32_t count, enum item_type type,
                                              int64_t timeout_ms);
bool call_has_waited(struct call *call);

/* call_block for no key, but until `commit` is durable (0: just for the time). However it ends,
 * `answer` writes the reply, as it does now. call_written: what this connection has written. */
STORE_MUST_CHECK enum store_result call_await(struct call *call, uint64_t commit,
                                              int64_t timeout_ms,
                                              void (*answer)(struct call *call));
uint64_t call_written(struct call *call);

#endif
