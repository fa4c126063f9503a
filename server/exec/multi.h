/*
 * MULTI: commands are queued until EXEC runs them in one transaction. The queue is a list of nested
 * calls (see nested.h); it belongs to the session, then to EXEC's call.
 */
#ifndef VELLUM_MULTI_H
#define VELLUM_MULTI_H

#include "server/exec/request.h"
#include "server/core/session.h"

/* Between MULTI and EXEC: queues the command, unless it is one that runs at once. True: the
 * request is answered. */
bool multi_takes(struct request *request, const struct command *command);

/* The command was refused, and the reply holds the error: EXEC will fail. If EXEC itself was
 * refused, the transaction ends. */
void multi_refused(struct request *request);

/* Discards the queue and the watched keys. */
void multi_end(struct session *session);

int multi_count(const struct session *session); /* queued commands; -1: no MULTI */

/* Call when the queue or the watched keys have changed: they count as the connection's memory. */
void multi_note_memory(struct session *session);

#endif
