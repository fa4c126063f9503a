/*
 * Client-side caching (CLIENT TRACKING): which clients are told that a key has changed. All clients
 * in tracking mode are in one registry, which observes the changes of the store as long as there
 * are any. Those in broadcasting mode are told of all keys with one of their prefixes, the others
 * of keys that they have read.
 *
 * Threads: a client's mode belongs to its worker's thread; the registry is shared by all.
 */
#ifndef VELLUM_TRACKING_H
#define VELLUM_TRACKING_H

#include "server/core/command.h"
#include "server/core/session.h"
#include "server/exec/tracker.h"

struct request;
struct server;
struct tracking;

/* `run`: of those requests to the store that are a client's. NULL: out of memory. */
typedef enum store_result tracking_run(struct store_txn *txn, struct store_request *request);
struct tracking *tracking_new(struct server *server, tracking_run *run);
void tracking_free(struct tracking *tracking); /* no client tracks; may be NULL */

/* ---- the mode of a client; not from within a run function ---- */

/* Turns it on, or changes its options. `target`, or NULL, is held then. False: out of memory, or
 * the store has too many observers. */
bool tracking_begin(struct conn *conn, uint32_t options, struct tracking_target *target);
void tracking_end(struct conn *conn); /* if it is on */
/* The client is disconnected: the same, and it is no target any more. */
void tracking_leave(struct conn *conn);

/* Adds prefixes, in broadcasting mode; see prefix_table_add. */
bool tracking_add_prefixes(struct conn *conn, const struct resp_slice *names, uint32_t count);

/* ---- reads ---- */

/* A command is about to run, in a run function under the locks of its keys: notes those that it
 * reads, if its client wants to be told of them. False: out of memory. */
bool tracking_note_keys(struct call *call);
static inline bool tracking_note_read(struct call *call)
{
    return __builtin_expect(call->session->tracker == NULL, 1) || tracking_note_keys(call);
}

/* Commands on those keys are about to run: see tracking_table_prefetch. */
void tracking_prefetch(struct tracking *tracking, const struct store_key *keys, uint32_t count);

/* Keys that a transaction has read after it has written to them: notes them when it is committed,
 * under the locks of the keys. Before, its own changes would take them out again. */
void tracking_note_reread(struct request *request);

/* A command has been started: CLIENT CACHING counts for one, or for a transaction. */
void tracking_forget_caching(struct request *request);

/* ---- upkeep and figures ---- */

/* tracking-table-max-keys has been changed. */
void tracking_follow(struct tracking *tracking);

/* Every second, on each worker's thread: stops observing the store when no client tracks, and
 * keeps to tracking-table-max-keys. */
void tracking_rest(struct worker *worker);

uint64_t tracking_clients(const struct tracking *tracking);
uint64_t tracking_keys(const struct tracking *tracking);
uint64_t tracking_items(const struct tracking *tracking);
uint64_t tracking_prefixes(const struct tracking *tracking);

#endif
