/*
 * The runner: takes the commands of a connection one by one, has the executor run them in the order
 * that the connection's program has, and puts their replies out in that order.
 */
#ifndef VELLUM_RUNNER_H
#define VELLUM_RUNNER_H

#include "server/base/input_buffer.h"
#include "server/core/command.h"
#include "server/net/conn.h"
#include "server/exec/read_ahead.h"
#include "server/core/worker.h"

#define RUNNER_IN_FLIGHT_MAX 128 /* commands of one connection that are taken and not answered */
#define RUNNER_UPLOADS_MAX 2     /* of them, with long values still on their way to the device */

/* Whether another command may be taken from the connection's input now. */
bool runner_may_take(const struct conn *conn);

/* None may be, and nothing changes that but the client, by reading, or another one. */
bool runner_is_stuck(const struct conn *conn);

/* Takes a command. `block` is what the arguments lie in; NULL: some are the parser's own, as it is
 * with inline commands. Behind it `more` others have been read ahead, of which the first may be
 * taken along (batch.h); returns how many were. */
uint32_t runner_take(struct conn *conn, struct input_buffer *block, const struct ahead *ahead,
                     uint32_t more);

/* Answers with an error behind all that is in flight and ends the connection after it. */
void runner_refuse(struct conn *conn, const char *text);

/* Answers what has finished, starts what may start. */
void runner_advance(struct conn *conn);

/* Whether a parked command may start now. */
bool runner_can_advance(const struct conn *conn);

/* The connection is closed: forgets what has not started and what has finished. */
void runner_abandon(struct conn *conn);

#endif
