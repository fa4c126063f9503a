/*
 * What of a connection may start while earlier commands of it still run, so that its program's
 * order is kept as everybody sees it:
 *
 * 1. Reads, beside reads.
 * 2. Plain commands on one key, in line: when all that run are such commands on the same key, and
 *    one of the two writes, then the store's queue for that key keeps their order, and their pages
 *    are read at the same time.
 *
 * Anything else waits until nothing runs.
 */
#ifndef VELLUM_PIPELINE_H
#define VELLUM_PIPELINE_H

#include "server/exec/request.h"

/* Whether its runs have no other effects than those that are made when it succeeds. */
bool pipeline_may_prefetch(const struct command *command);

/* Whether it is a read of rule 1. */
bool pipeline_is_read(const struct command *command);

/* Of a command whose keys are declared: what it may be in line for; 0: nothing. */
uint64_t pipeline_ordering_key(const struct request *request, const struct command *command);

/* `request` is the first of its connection that has not started. */
bool pipeline_may_start(const struct conn *conn, const struct request *request);

/* It runs from now on, or does not any more. */
void pipeline_note_start(struct conn *conn, const struct request *request);
void pipeline_note_end(struct conn *conn, const struct request *request);

#endif
