/*
 * SLOWLOG: the newest of the commands that took as long as slowlog-log-slower-than.
 *
 * A command's time is that from its start to its end, waits for pages and for other commands on its
 * keys included; of one that blocks it is that of its last run. Commands inside of EXEC have
 * theirs, each from its own first run on, but the first one from EXEC's start: it was the one to
 * wait for the keys of all. What they do again since a later one has had to wait is not theirs.
 * Those inside of scripts have theirs as well, and the script all of it.
 *
 * Threads: anybody may note and read, under the log's lock. `request` is its worker's.
 */
#ifndef VELLUM_SLOWLOG_H
#define VELLUM_SLOWLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/resp.h"

struct request;
struct server;
struct slowlog;
struct store;

struct slowlog *slowlog_new(void); /* NULL: out of memory */
void slowlog_free(struct slowlog *slowlog);

/* The time in nanoseconds, from some moment on; 0 if nobody asks how long things take. */
uint64_t slowlog_clock(const struct server *server);
uint64_t slowlog_since(const struct server *server, uint64_t began); /* 0: it was not asked */

/* Whether what took so long is to be noted. */
bool slowlog_is_slow(const struct server *server, uint64_t nsec);

/* The request has ended: it, or the commands that it stands for, are noted if they were slow. */
void slowlog_note(struct request *request);

uint64_t slowlog_count(struct slowlog *slowlog);
void slowlog_clear(struct slowlog *slowlog, struct store *store);

/* Up to `most` entries as Redis shows them, the newest first. */
void slowlog_show(struct slowlog *slowlog, uint64_t most, struct resp_writer *reply);

#endif
