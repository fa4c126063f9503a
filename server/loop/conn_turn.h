/*
 * A connection's life, its input, and the turns in which its worker serves it.
 *
 * Threads: the connection's worker's.
 */
#ifndef VELLUM_CONN_TURN_H
#define VELLUM_CONN_TURN_H

#include "server/net/conn.h"

/* Takes over the transport, also on failure. */
void conn_open(struct worker *worker, struct transport *transport);

/* What its transport is to tell of: a set of enum transport_ready. */
unsigned conn_wants(const struct conn *conn);

/* One turn of a connection on the attention list. */
void conn_turn(struct conn *conn);

/* Once a second: idle clients, output over its soft limit. */
void conn_tick(struct conn *conn);

/* Nothing more is to be done for it: a stopping worker may end. */
bool conn_settled(const struct conn *conn);

#endif
