/*
 * Which commands of a connection may start while earlier ones still run, such that every observer
 * sees them in program order:
 *
 * 1. Reads, beside reads; but not those that may turn out to need all keys (SORT_RO, EVAL_RO).
 * 2. Plain commands on one key, ordered by its lock queue: if all running commands are plain
 *    commands on the same key, the store's lock queue keeps the order of any two of which one
 *    writes, while their pages are read concurrently.
 *
 * Any other command waits until none is running.
 */
#ifndef VELLUM_PIPELINE_H
#define VELLUM_PIPELINE_H

#include "server/exec/request.h"

/* Whether its runs have no effects before they succeed, so that a prefetch run is harmless. */
bool pipeline_may_prefetch(const struct command *command);

/* Whether it is a read. */
bool pipeline_is_read(const struct command *command);

/* The ordering key of a command whose keys are declared, for rule 2; 0: none. */
uint64_t pipeline_ordering_key(const struct request *request, const struct command *command);

/* `request` is the first of its connection that has not started. */
bool pipeline_may_start(const struct conn *conn, const struct request *request);

/* The request has started and is running, or has ended. */
void pipeline_note_start(struct conn *conn, const struct request *request);
void pipeline_note_end(struct conn *conn, const struct request *request);

#endif
