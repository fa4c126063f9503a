/*
 * MONITOR: every command, as it ends, to those who watch.
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

/* The command stands among its run's effects, in the order in which commands have ended. Those for
 * administrators are not shown. */
void monitor_feed(const struct call *call);

/* A command that runs a script, before it does: what the script runs stands behind it. */
void monitor_feed_script(const struct call *call);

/* monitor_feed for the commands that a request stands for; once. */
void monitor_tell(struct request *request);

/* An argument as it may be shown: passwords are not. */
struct resp_slice monitor_argument(const struct call *call, size_t i);

#endif
