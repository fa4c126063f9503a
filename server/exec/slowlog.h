/*
 * SLOWLOG: the newest of the commands that took at least slowlog-log-slower-than.
 *
 * A command's time runs from its start to its end, including waits for pages and for key locks; a
 * blocking command counts only its last run. Commands in EXEC are timed one by one, each from its
 * own first run on, except for the first, which is timed from EXEC's start: it waited for the locks
 * of all keys. Repeating a command because a later one had to wait does not count. Commands in
 * scripts are timed as well, and the script as a whole. The same times are LATENCY's.
 *
 * Threads: any thread may add and read, under the log's lock. `request` belongs to its worker.
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

/* slowlog-log-slower-than or latency-monitor-threshold has changed, or is known now. */
void slowlog_follow(struct server *server);

/* A clock in nanoseconds, with any origin; 0 if nothing needs the time. */
uint64_t slowlog_clock(const struct server *server);
uint64_t slowlog_since(const struct server *server,
                       uint64_t began); /* 0: `began` was not measured */

/* Whether a command of this duration is logged. */
bool slowlog_is_slow(const struct server *server, uint64_t nsec);

/* The request has ended: logs its commands, batched and nested ones too, that were slow, and notes
 * those that were late. */
void slowlog_note(struct request *request);

uint64_t slowlog_count(struct slowlog *slowlog);
void slowlog_clear(struct slowlog *slowlog, struct store *store);

/* Writes up to `most` entries in Redis's form, newest first. */
void slowlog_show(struct slowlog *slowlog, uint64_t most, struct resp_writer *reply);

#endif
