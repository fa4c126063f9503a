/*
 * Subscriptions of all connections, over all workers. The publisher looks up a publication once and
 * posts it to the workers that have subscribers; each worker delivers it to its own connections.
 *
 * Threads: a connection's subscriptions belong to its worker's thread. Everything else may be
 * called on any thread, and pubsub_publish also by observers of the store: its locks are leaves.
 */
#ifndef VELLUM_PUBSUB_H
#define VELLUM_PUBSUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/resp.h"
#include "server/core/session.h"

struct conn;
struct effects;
struct publication;
struct pubsub;
struct server;
struct worker;

struct pubsub *pubsub_new(uint32_t worker_count); /* NULL: out of memory */
void pubsub_free(struct pubsub *pubsub);          /* no subscription is left */

/* ---- subscribing ---- */

/* True also if it is subscribed already; false: out of memory. */
bool pubsub_subscribe(struct conn *conn, enum pubsub_kind kind, struct resp_slice name);
void pubsub_unsubscribe(struct conn *conn, enum pubsub_kind kind, struct resp_slice name);
/* The name of one of its subscriptions, valid until that ends; false: it has none of this kind. */
bool pubsub_any(const struct conn *conn, enum pubsub_kind kind, struct resp_slice *name);
void pubsub_leave(struct conn *conn); /* ends those of all kinds */

/* ---- publishing ---- */

/* The number of clients that would receive a message on this channel now. */
uint64_t pubsub_receivers(struct pubsub *pubsub, enum pubsub_kind kind, struct resp_slice channel);

/* Takes ownership of the publication and sends it to all current subscribers. `self`: the worker
 * whose thread calls, within its round; NULL: any other thread, or unknown. */
void pubsub_publish(struct server *server, struct worker *self, struct publication *publication);

/* Sends the effects of a run, in order, on the thread of `self`; empties them. The sender has seen
 * all commits up to `shown`, so the messages may show them. */
void pubsub_send(struct worker *self, struct effects *effects, uint64_t shown);

/* Too much is on its way: connections that have published are not read from until this worker
 * resumes them, on its thread. */
bool pubsub_throttles(struct worker *worker);
void pubsub_hear_again(struct worker *worker); /* resumes them; in every round */

/* Whether there is any subscription of this kind. */
bool pubsub_has(const struct pubsub *pubsub, enum pubsub_kind kind);

/* ---- queries ---- */

uint64_t pubsub_topics(const struct pubsub *pubsub, enum pubsub_kind kind);
uint64_t pubsub_subscribers(struct pubsub *pubsub, enum pubsub_kind kind, struct resp_slice name);
/* `visit` is called under a lock: it must not call back into this file. */
void pubsub_each(struct pubsub *pubsub, enum pubsub_kind kind,
                 void (*visit)(void *arg, struct resp_slice name), void *arg);

#endif
