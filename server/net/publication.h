/*
 * A message on its way to subscribers, which may be many and share its bytes.
 *
 * Threads: a publication is written by one thread, then read by all threads that hold it.
 */
#ifndef VELLUM_PUBLICATION_H
#define VELLUM_PUBLICATION_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "protocol/resp.h"
#include "server/core/worker_inbox.h"
#include "server/core/session.h"

struct server;

/* One stop of a publication: at a worker that may have subscribers. */
struct publication_visit {
    struct worker_message message;
    struct publication *publication; /* NULL: no stop at this worker */
};

/*
 * A message shared by all its receivers, of kind CHANNEL, SHARD or MONITOR. `bytes` are channel and
 * message as two bulk strings, the same for every subscriber; for MONITOR, the whole reply.
 */
struct publication {
    _Atomic uint32_t holders;
    _Atomic uint32_t queued; /* number of output queues that refer to it */
    enum pubsub_kind kind;
    STAILQ_ENTRY(publication) link; /* of the same effects */
    uint64_t sequence;              /* later subscribers do not get it: see pubsub.c */
    uint64_t shown;            /* commit that must be durable before it may be sent, see store.h */
    _Atomic uint64_t *pending; /* incremented until it is delivered everywhere; or NULL */
    struct resp_slice channel; /* within bytes */
    size_t len;
    const char *bytes;
    struct publication_visit visits[]; /* one per worker; `bytes` follow them */
};

/* Returned with one hold. NULL: out of memory. A monitor line has no channel: {NULL, 0}. */
struct publication *publication_new(const struct server *server, enum pubsub_kind kind,
                                    struct resp_slice channel, struct resp_slice message);
void publication_hold(struct publication *publication);
void publication_release(struct publication *publication);

#endif
