/*
 * MULTI: commands are queued until EXEC runs them in one transaction. The queue is a nest (see
 * nested.h); it belongs to the session, then to EXEC's call.
 */
#ifndef VELLUM_MULTI_H
#define VELLUM_MULTI_H

#include "request.h"
#include "session.h"

/* Between MULTI and EXEC: queues the command. NULL: it was refused, and the reply says why; EXEC
 * will not run then. Returns whether nothing else is to be done. */
bool multi_takes(struct request *request, const struct command *command);

/* Forgets queue and watched keys. */
void multi_end(struct session *session);

int multi_count(const struct session *session); /* queued commands; -1: there was no MULTI */

/* Memory of the queue. */
uint64_t multi_bytes(const struct session *session);

#endif
