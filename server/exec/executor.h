/*
 * The executor: runs one request, on the store or without it.
 */
#ifndef VELLUM_EXECUTOR_H
#define VELLUM_EXECUTOR_H

#include "server/exec/request.h"

/* Starts a request, whose reply is written to call.reply. STORE_WAIT: the request is running;
 * when it becomes REQUEST_FINISHED, its connection is marked ready. Otherwise it has ended with
 * that result. */
STORE_MUST_CHECK enum store_result executor_start(struct request *request);

/* The command that would run now, without effects; NULL: the request would be answered with an
 * error. The reply is empty, and stays so. */
const struct command *executor_look(struct request *request);

/* After STORE_WAIT, once the request is held: other threads may access it from now on. */
void executor_send_broadcast(struct request *request);

/* Declares the keys that the command table names. False: out of memory. */
bool executor_declare_keys(struct request *request, const struct command *command);

/* Ends a command without transaction that has returned STORE_WAIT, or a blocked one, once its reply
 * is written. Called on its worker's thread, in a later round. */
void executor_finish(struct call *call, enum store_result result);

#endif
