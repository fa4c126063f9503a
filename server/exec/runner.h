/*
 * The runner: takes a connection's commands one by one, has the executor run them in program order,
 * and outputs their replies in that order.
 */
#ifndef VELLUM_RUNNER_H
#define VELLUM_RUNNER_H

#include "server/base/input_buffer.h"
#include "server/core/command.h"
#include "server/net/conn.h"
#include "server/exec/read_ahead.h"
#include "server/core/worker.h"

#define RUNNER_IN_FLIGHT_MAX 128 /* commands of a connection, taken and not yet answered */
#define RUNNER_UPLOADS_MAX 2     /* of them, with long values not yet written: see UPLOAD_WEIGHT */

/* Whether another command may be taken from the connection's input now. */
bool runner_may_take(const struct conn *conn);

/* No command may be taken until the client reads, or another client acts. */
bool runner_is_stuck(const struct conn *conn);

/* Takes a command. `block` holds the arguments; NULL: the parser owns some of them, as with inline
 * commands. `more` further commands have been read ahead; the first of them may be executed in a
 * batch with this one (batch.h). Returns how many were. */
uint32_t runner_take(struct conn *conn, struct input_buffer *block, const struct ahead *ahead,
                     uint32_t more);

/* Answers with an error after all commands in flight, and then closes the connection. */
void runner_refuse(struct conn *conn, const char *text);

/* Answers finished commands and starts those that may start. */
void runner_advance(struct conn *conn);

/* Whether a parked command may start now. */
bool runner_can_advance(const struct conn *conn);

/* The connection is closed: drops the commands that have not started or are finished. */
void runner_abandon(struct conn *conn);

#endif
