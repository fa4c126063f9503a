/*
 * The memory of clients' buffers: counted turn by turn, reported to the store, which evicts page
 * frames to make room for it, and bounded.
 *
 * Over the soft limit, an eighth of maxmemory, no command of a connection with more than a little
 * unsent output is taken: its input is spooled (spool.h).
 * When unsent replies alone exceed half of the limit (maxmemory-clients, or else a quarter of
 * maxmemory), no commands are taken until half of them has been sent, or it is clear that the
 * clients do not read. Over the limit, the clients with the largest buffers are closed; where what
 * closed ones still hold is enough, others receive long commands later instead (deferred). A
 * publication in the outputs of several connections is counted once; to choose the clients to be
 * closed, it counts for each of them.
 *
 * Threads: each worker counts its own connections and keeps to its share of the soft limit. It may
 * exceed its share of the limit as long as other workers leave room.
 */
#ifndef VELLUM_CLIENT_MEMORY_H
#define VELLUM_CLIENT_MEMORY_H

#include <stdbool.h>

#include "server/core/worker.h"

struct conn;

/* Updates the count of the connection's own memory, at the end of its turns. True: it changed. */
bool client_memory_note(struct conn *conn);
void client_memory_note_leaving(struct conn *conn); /* it is being closed: soon free */
void client_memory_forget(struct conn *conn);       /* it is closed */
/* The publications, which connections share, have grown by `more` bytes. */
void client_memory_note_published(struct server *server, int64_t more);

/* Commands that work in steps have collected more than the soft limit. */
static inline bool client_memory_is_much(const struct server *server)
{
    return atomic_load_explicit(&server->collected_bytes, memory_order_relaxed) >
           atomic_load_explicit(&server->client_soft_limit, memory_order_relaxed);
}

/* Commands have, or the worker's clients exceed its soft limit. */
static inline bool client_memory_is_short(const struct worker *worker)
{
    const struct server *server = worker->server;
    return atomic_load_explicit(&worker->client_bytes, memory_order_relaxed) >
               atomic_load_explicit(&server->client_soft_limit, memory_order_relaxed) ||
           client_memory_is_much(server);
}

/* No command may be taken now. */
static inline bool client_memory_holds(const struct worker *worker)
{
    return worker->hold == CLIENTS_ARE_HELD;
}

/* In every round, if it holds something back: decides whether commands are taken, and long ones
 * received. */
static inline bool client_memory_holds_back(const struct worker *worker)
{
    return worker->awaited_bytes > 0 || worker->hold != CLIENTS_GO_ON;
}
void client_memory_let_go(struct worker *worker);

/* Whether a command of so many bytes may be received; logs that its client will be closed. */
bool client_memory_allows(struct conn *conn, uint64_t bytes);

/* Whether the connection must not receive `more` bytes yet: there is room only when commands of
 * closed clients have ended. It will then get a turn. */
bool client_memory_defers(struct conn *conn, uint64_t more);

/* Closes clients while the limit is exceeded: at the end of each round, and of each turn that has
 * changed the count. */
void client_memory_keep_bound(struct worker *worker);

/* Sets both limits from the configuration. */
void client_memory_set_bounds(struct server *server);

uint64_t client_memory_total(const struct server *server);

#endif
