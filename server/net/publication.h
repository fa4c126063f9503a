/*
 * A message on its way to subscribers, of whom there may be many: they share its bytes.
 *
 * Threads: a publication is written by one thread, then read by all that hold it.
 */
#ifndef VELLUM_PUBLICATION_H
#define VELLUM_PUBLICATION_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/resp.h"
#include "server/base/message.h"
#include "server/core/session.h"

struct server;

/* One stop of a publication: at a worker with somebody who may want it. */
struct publication_visit {
    struct worker_message message;
    struct publication *publication; /* NULL: it does not stop here */
};

/*
 * A message on its way, shared by all who get it, of one of the kinds CHANNEL, SHARD and MONITOR.
 * `bytes` are channel and message as two bulk
 * strings, the same for every subscriber; of a line for monitors the whole reply.
 */
struct publication {
    _Atomic uint32_t holders;
    _Atomic uint32_t queued; /* outputs of connections in which it stands as it is */
    enum pubsub_kind kind;
    struct publication *next;  /* of the same effects */
    uint64_t sequence;         /* who subscribed later does not get it: see pubsub.c */
    uint64_t shown;            /* commit that must be durable before it may leave, see store.h */
    _Atomic uint64_t *pending; /* counts it until it is delivered everywhere; or NULL */
    struct resp_slice channel; /* within bytes */
    size_t len;
    const char *bytes;
    struct publication_visit visits[]; /* one per worker; `bytes` stand behind them */
};

/* Held once. NULL: out of memory. A monitor's line has no channel: {NULL, 0}. */
struct publication *publication_new(const struct server *server, enum pubsub_kind kind,
                                    struct resp_slice channel, struct resp_slice message);
void publication_hold(struct publication *publication);
void publication_release(struct publication *publication);

#endif
