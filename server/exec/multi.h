/*
 * MULTI: commands are queued until EXEC runs them in one transaction. The queue is a nest (see
 * nested.h); it belongs to the session, then to EXEC's call.
 */
#ifndef VELLUM_MULTI_H
#define VELLUM_MULTI_H

#include "server/exec/request.h"
#include "server/core/session.h"

/* Between MULTI and EXEC: queues the command, unless it is one of those that run. Returns whether
 * nothing else is to be done. */
bool multi_takes(struct request *request, const struct command *command);

/* The command was refused, and the reply says why: EXEC will not run. If it was EXEC itself, that
 * is the end of the transaction. */
void multi_refused(struct request *request);

/* Forgets queue and watched keys. */
void multi_end(struct session *session);

int multi_count(const struct session *session); /* queued commands; -1: there was no MULTI */

/* To be called when the queue or the watched keys have changed: they count as the connection's. */
void multi_note_memory(struct session *session);

#endif
