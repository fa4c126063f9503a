/*
 * A connection's life cycle, its input, and the turns in which its worker serves it.
 *
 * Threads: the connection's worker only.
 */
#ifndef VELLUM_CONN_TURN_H
#define VELLUM_CONN_TURN_H

#include "server/net/conn.h"

/* Takes ownership of the transport, also on failure. */
void conn_open(struct worker *worker, struct transport *transport);

/* The events its transport must report: a set of enum transport_ready. */
unsigned conn_wants(const struct conn *conn);

/* One turn of a connection on the ready list. */
void conn_turn(struct conn *conn);

/* Once a second: idle clients, output over its soft limit. */
void conn_tick(struct conn *conn);

/* The connection has nothing left to do: a stopping worker may end. */
bool conn_settled(const struct conn *conn);

#endif
