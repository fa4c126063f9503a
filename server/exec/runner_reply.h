/*
 * The runner's own replies: why a command was not run, or failed.
 */
#ifndef VELLUM_RUNNER_REPLY_H
#define VELLUM_RUNNER_REPLY_H

#include "server/core/command.h"

/* The error of a command that waits for a busy script, or a busy function. */
#define SCRIPT_BUSY_TEXT                                                                           \
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
#define FUNCTION_BUSY_TEXT                                                                         \
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
/* The one that tells how to end what is busy now. */
const char *reply_busy_text(const struct server *server);

/* The command to run: `command`, which the first argument names (NULL: none), or its subcommand.
 * NULL: no such command, or wrong number of arguments; the error has been written. */
const struct command *reply_unless_found(struct call *call, const struct command *command);
/* The same, whatever is wrong with the arguments; writes no reply. */
const struct command *command_meant(const struct call *call, const struct command *command);

/* In RESP2, a subscriber's replies and pushes look alike, so few commands are allowed; a client in
 * MONITOR must not access keys. True: the command is refused, the error has been written. */
bool reply_if_bound(struct call *call, const struct command *command);

/* Writes the error for a result other than STORE_OK and STORE_WAIT. */
void reply_failure(struct call *call, enum store_result result);

#endif
