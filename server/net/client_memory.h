/*
 * What clients' buffers take of maxmemory: counted turn by turn, told to the store, whose page
 * frames make room for it, and bounded.
 *
 * Over the comfortable amount, an eighth of maxmemory, connections with unsent output are not read
 * from any more. When unsent replies alone are half of the limit (maxmemory-clients, or else a
 * quarter of maxmemory), no commands are taken until half of that has been sent, or it is clear
 * that the clients do not read. Over the limit those that hold the most are closed. A publication
 * that stands in the outputs of many is counted once; when somebody is to be closed, as part of all
 * who have it.
 *
 * Threads: each worker counts its own connections, and keeps to its share of the comfortable
 * amount. Of the limit it may have more than its share as long as others leave it.
 */
#ifndef VELLUM_CLIENT_MEMORY_H
#define VELLUM_CLIENT_MEMORY_H

#include <stdbool.h>

#include "server/core/worker.h"

struct conn;

/* What the connection has now by itself; at the end of its turns. */
void client_memory_note(struct conn *conn);
void client_memory_forget(struct conn *conn); /* it is closed */
/* What connections have together, as they have publications, has become more. */
void client_memory_note_published(struct server *server, int64_t more);

/* What commands that work in steps keep is more than is comfortable. */
static inline bool client_memory_is_much(const struct server *server)
{
    return atomic_load_explicit(&server->collected_bytes, memory_order_relaxed) >
           atomic_load_explicit(&server->client_soft_limit, memory_order_relaxed);
}

/* That is, or what the worker's clients have. */
static inline bool client_memory_is_short(const struct worker *worker)
{
    const struct server *server = worker->server;
    return atomic_load_explicit(&worker->client_bytes, memory_order_relaxed) >
               atomic_load_explicit(&server->client_soft_limit, memory_order_relaxed) ||
           client_memory_is_much(server);
}

/* No command is to be taken now. */
static inline bool client_memory_holds(const struct worker *worker)
{
    return worker->hold == CLIENTS_ARE_HELD;
}

/* In every round: whether they go on. */
void client_memory_let_go(struct worker *worker);

/* Closes clients while there is more than the limit: at the end of each turn and of each round. */
void client_memory_keep_bound(struct worker *worker);

/* Both bounds, as the configuration has them now. */
void client_memory_set_bounds(struct server *server);

uint64_t client_memory_total(const struct server *server);

#endif
