/*
 * Notifications of what no command does: keys that have expired, or were evicted. The store tells.
 */
#ifndef VELLUM_KEYSPACE_EVENTS_H
#define VELLUM_KEYSPACE_EVENTS_H

#include <stdint.h>

struct notices;
struct server;

struct notices *notices_new(struct server *server); /* NULL: out of memory */
void notices_free(struct notices *notices);         /* before the store is closed */

/* Listens to the store as long as notify-keyspace-events asks for it: to be called when that may
 * have changed, not from within a run function. */
void notices_follow(struct notices *notices);

/* Those that were not sent because too many were on their way. */
uint64_t notices_dropped(const struct notices *notices);

#endif
