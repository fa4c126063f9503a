/*
 * Notifications of events that no command causes: keys that have expired or were evicted, as
 * observed in the store.
 */
#ifndef VELLUM_KEYSPACE_EVENTS_H
#define VELLUM_KEYSPACE_EVENTS_H

#include <stdint.h>

struct keyspace_events;
struct server;

struct keyspace_events *keyspace_events_new(struct server *server); /* NULL: out of memory */
void keyspace_events_free(struct keyspace_events *keyspace_events); /* before the store is closed */

/* Observes the store as long as notify-keyspace-events needs it: call when that may have changed,
 * not from within a run function. */
void keyspace_events_follow(struct keyspace_events *keyspace_events);

/* Events dropped because too many were on their way. */
uint64_t keyspace_events_dropped(const struct keyspace_events *keyspace_events);

#endif
