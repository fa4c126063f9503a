/*
 * The runner's own replies: why a command was not run, or did not succeed.
 */
#ifndef VELLUM_RUNNER_REPLY_H
#define VELLUM_RUNNER_REPLY_H

#include "server/core/command.h"

#define SCRIPT_BUSY_TEXT                                                                           \
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."

/* The command that is meant, given what its first argument names, if anything; NULL: there is none,
 * or not with so many arguments, and an error was written. */
const struct command *reply_unless_found(struct call *call, const struct command *command);
/* The same, whatever is wrong with the arguments, and nothing is replied. */
const struct command *command_meant(const struct call *call, const struct command *command);

/* A subscriber of RESP2, whose replies and pushes look alike, may do little else; who watches with
 * MONITOR must not touch keys. False: the command is allowed, nothing is written. */
bool reply_if_bound(struct call *call, const struct command *command);

/* What a result other than STORE_OK and STORE_WAIT means to a client. */
void reply_failure(struct call *call, enum store_result result);

#endif
