/*
 * Keyspace notifications: their classes, as selected by notify-keyspace-events, and call_notify, by
 * which commands report their changes.
 */
#ifndef VELLUM_NOTIFY_H
#define VELLUM_NOTIFY_H

#include <stdint.h>

#include "server/config/notify_class.h"
#include "server/core/command.h"

struct server;

/* One message for each of the two channels, if selected: otherwise NULL. */
struct publication;
struct notify_pair {
    struct publication *keyspace, *keyevent;
};
struct notify_pair notify_publications(const struct server *server, const char *event,
                                       const struct store_key *key);

/*
 * Keyspace notifications (notify-keyspace-events): a command reports its change of a key, with
 * Redis's class and event name. Buffered; published in call order after the run's writes are
 * committed. Discarded if the run is repeated or fails. Call it where the change is put into the
 * transaction, and only if there is one. `event` is static text. It costs no more than a test while
 * the class is not selected.
 *
 *     call_notify(call, NOTIFY_LIST, "lpush", call->keys);
 *
 * The creation of a key is reported first ("new"). A command that knows whether the key exists
 * calls call_notify(call, NOTIFY_NEW, "new", key) if it does not. A command that writes without a
 * look-up calls call_notify_if_new before it writes; this looks the key up only if the class is
 * selected, and its results other than STORE_OK are passed up. Emptying a collection: the event,
 * then NOTIFY_GENERIC "del".
 */
void call_notify(struct call *call, enum notify_class kind, const char *event,
                 const struct store_key *key);
STORE_MUST_CHECK enum store_result call_notify_if_new(struct call *call,
                                                      const struct store_key *key);
bool call_notifies(const struct call *call, enum notify_class kind); /* the class is selected */

#endif
