/*
 * MONITOR: sends every command, when it ends, to the monitoring clients.
 */
#ifndef VELLUM_MONITOR_H
#define VELLUM_MONITOR_H

#include "server/pubsub/pubsub.h"
#include "server/core/server.h"

struct call;
struct request;

static inline bool monitor_any(const struct server *server)
{
    uint32_t count = atomic_load_explicit(&server->monitor_count, memory_order_relaxed);
    return __builtin_expect(count > 0, 0);
}

/* Adds the command to its run's effects; commands must be added in the order in which they end.
 * Administrative commands are not shown. */
void monitor_feed(const struct call *call);

/* Called by a command before it runs a script: the script's commands are shown after it. */
void monitor_feed_script(const struct call *call);

/* monitor_feed for each command that the request stands for; once per request. */
void monitor_tell(struct request *request);

/* An argument as monitors may see it: passwords are redacted. */
struct resp_slice monitor_argument(const struct call *call, size_t i);

#endif
