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

/* Once a second: closes an idle client, checks the output's soft limit and the spool, and whether a
 * blocked client has disconnected. */
void conn_tick(struct conn *conn);

/* A stopping worker may close the connection: no command of it is left that would end by itself,
 * and no reply waits for the journal. */
bool conn_settled(const struct conn *conn);

#endif
