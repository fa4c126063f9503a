/*
 * Who has subscribed to what, over all workers. A publication is looked up once by its publisher
 * and posted to the workers that have subscribers; each hands it to its own connections.
 *
 * Threads: a connection's subscriptions belong to its worker's thread. Everything else is for any
 * thread, and pubsub_publish also for observers of the store: its locks are leaves.
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
void pubsub_free(struct pubsub *pubsub);          /* nobody subscribes any more */

/* ---- subscribing ---- */

/* Also if it is subscribed already; false: out of memory. */
bool pubsub_subscribe(struct conn *conn, enum pubsub_kind kind, struct resp_slice name);
void pubsub_unsubscribe(struct conn *conn, enum pubsub_kind kind, struct resp_slice name);
/* The name of one of its subscriptions, until that ends; false: there is none of the kind. */
bool pubsub_any(const struct conn *conn, enum pubsub_kind kind, struct resp_slice *name);
void pubsub_leave(struct conn *conn); /* of all kinds */

/* ---- publishing ---- */

/* How many would get a message on this channel now. */
uint64_t pubsub_receivers(struct pubsub *pubsub, enum pubsub_kind kind, struct resp_slice channel);

/* Takes the publication over, and sends it to whoever is subscribed by now. `self`: the worker
 * whose thread calls, within its round; NULL: any other thread, or it is not known. */
void pubsub_publish(struct server *server, struct worker *self, struct publication *publication);

/* What a run has gathered, in its order, by the thread of `self`; empties it. Up to the commit
 * `shown` everything is known to the sender, and may be told. */
void pubsub_send(struct worker *self, struct effects *effects, uint64_t shown);

/* More is on its way than there may be: whoever has published is not to be heard, until the worker
 * says so, by its thread. */
bool pubsub_throttles(struct worker *worker);
void pubsub_hear_again(struct worker *worker); /* in every round */

/* Whether anybody has a subscription of this kind. */
bool pubsub_has(const struct pubsub *pubsub, enum pubsub_kind kind);

/* ---- what there is ---- */

uint64_t pubsub_topics(const struct pubsub *pubsub, enum pubsub_kind kind);
uint64_t pubsub_subscribers(struct pubsub *pubsub, enum pubsub_kind kind, struct resp_slice name);
/* `visit` is called under a lock: it must not come back here. */
void pubsub_each(struct pubsub *pubsub, enum pubsub_kind kind,
                 void (*visit)(void *arg, struct resp_slice name), void *arg);

#endif
