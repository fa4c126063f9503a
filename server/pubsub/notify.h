/*
 * Keyspace notifications: their classes, as notify-keyspace-events chooses them. Commands tell of
 * what they do with call_notify (command.h).
 */
#ifndef VELLUM_NOTIFY_H
#define VELLUM_NOTIFY_H

#include <stdint.h>

#include "server/config/notify_class.h"

struct server;
struct store_key;

/* One message on each of the two channels, as far as they are chosen: NULL where not. */
struct publication;
struct notify_pair {
    struct publication *keyspace, *keyevent;
};
struct notify_pair notify_publications(const struct server *server, const char *event,
                                       const struct store_key *key);

#endif
