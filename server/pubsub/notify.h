/*
 * Keyspace notifications: their classes, as notify-keyspace-events chooses them. Commands tell of
 * what they do with call_notify.
 */
#ifndef VELLUM_NOTIFY_H
#define VELLUM_NOTIFY_H

#include <stdint.h>

#include "server/config/notify_class.h"
#include "server/core/command.h"

struct server;

/* One message on each of the two channels, as far as they are chosen: NULL where not. */
struct publication;
struct notify_pair {
    struct publication *keyspace, *keyevent;
};
struct notify_pair notify_publications(const struct server *server, const char *event,
                                       const struct store_key *key);

/*
 * Keyspace notifications (notify-keyspace-events): a command tells with Redis's class and event
 * what it does to a key. It is heard of when the run's writes are committed, in the order of the
 * calls; what a run says that is run again or fails is forgotten. Call it where the change is put
 * into the transaction, and only if there is one. `event` is static text. A test and no more while
 * nobody has asked for the class.
 *
 *     call_notify(call, NOTIFY_LIST, "lpush", call->keys);
 *
 * A key that comes to be is told of first ("new"). A command that knows whether the key exists
 * calls call_notify(call, NOTIFY_NEW, "new", key) if not; one that writes without looking calls
 * call_notify_if_new before it writes, which looks only if somebody has asked, and whose results
 * other than STORE_OK are passed up. Emptying a collection: the event, then NOTIFY_GENERIC "del".
 */
void call_notify(struct call *call, enum notify_class kind, const char *event,
                 const struct store_key *key);
STORE_MUST_CHECK enum store_result call_notify_if_new(struct call *call,
                                                      const struct store_key *key);
bool call_notifies(const struct call *call, enum notify_class kind); /* somebody has asked */

#endif
