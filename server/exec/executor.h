/*
 * The executor: runs one request, on the store or without it.
 */
#ifndef VELLUM_EXECUTOR_H
#define VELLUM_EXECUTOR_H

#include "server/exec/request.h"

/* Starts a request, whose reply goes to call.reply. STORE_WAIT: it runs, and is REQUEST_FINISHED
 * later, of which its connection is notified. Else it has ended with that result. */
STORE_MUST_CHECK enum store_result executor_start(struct request *request);

/* After STORE_WAIT, once the request is held: other threads may see it from now on. */
void executor_send_broadcast(struct request *request);

/* Declares the keys that the table names. False: out of memory. */
bool executor_declare_keys(struct request *request, const struct command *command);

/* Ends a command without transaction that has returned STORE_WAIT, or one that waits for its keys,
 * on its worker's thread, in a later round: its reply is written. */
void executor_finish(struct call *call, enum store_result result);

#endif
