/*
 * What a command does besides its reply and its transaction: messages to be sent out. They are
 * gathered during a run, forgotten when the function is run again or fails, and sent in their order
 * once it has succeeded and its writes are committed.
 *
 * Threads: effects belong to the thread of their request. A publication is written by one thread,
 * then read by all that hold it.
 */
#ifndef VELLUM_EFFECTS_H
#define VELLUM_EFFECTS_H

#include "server/core/command.h"
#include "server/config/log.h"
#include "server/pubsub/pubsub.h"
#include "server/core/worker.h"

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

/* A line for the log. */
struct effects_line {
    struct effects_line *next;
    enum config_loglevel level;
    char text[];
};

struct effects {
    struct publication *first, *last;
    struct effects_line *lines, *last_line;
};

void effects_add(struct effects *effects, struct publication *publication); /* takes it over */
bool effects_log(struct effects *effects, enum config_loglevel level,
                 struct resp_slice text); /* false: out of memory */
void effects_drop(struct effects *effects);
void effects_write_lines(struct effects *effects, const struct log *log); /* and forgets them */
static inline bool effects_any(const struct effects *effects)
{
    return __builtin_expect(effects->first != NULL || effects->lines != NULL, 0);
}

#endif
