/*
 * Invariants:
 * 1. The store calls the observer under its locks, on any thread: the observer only creates the
 *    messages and posts them to the workers with subscribers. They therefore arrive in commit
 *    order, and before the messages of later commands on the same key.
 * 2. At most PENDING_MAX messages are on their way to workers; further ones are dropped and
 *    counted.
 */
#include "server/pubsub/keyspace_events.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "server/pubsub/effects.h"
#include "server/pubsub/notify.h"
#include "server/pubsub/pubsub.h"
#include "server/core/server.h"

#define PENDING_MAX 100000

struct keyspace_events {
    struct server *server;
    pthread_mutex_t lock; /* guards is_listening; taken before the store's locks */
    bool is_listening;
    _Atomic uint64_t pending, dropped;
};

/* A request that overwrites an expired key first lets it expire. */
static bool had_expired(const struct store_change *change)
{
    return change->old != NULL && change->old->expire_ms != STORE_NO_EXPIRY &&
           change->old->expire_ms < change->now_ms;
}

static void send(struct keyspace_events *keyspace_events, struct publication *publication,
                 uint64_t commit)
{
    if (publication == NULL)
        return;
    if (atomic_fetch_add_explicit(&keyspace_events->pending, 1, memory_order_relaxed) >=
        PENDING_MAX) {
        atomic_fetch_sub_explicit(&keyspace_events->pending, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&keyspace_events->dropped, 1, memory_order_relaxed);
        publication_release(publication);
        return;
    }
    publication->pending = &keyspace_events->pending;
    publication->shown = commit;
    pubsub_publish(keyspace_events->server, NULL, publication);
}

static void send_event(struct keyspace_events *keyspace_events, const char *event,
                       const struct store_change *change)
{
    struct notify_pair pair = notify_publications(keyspace_events->server, event, change->key);
    send(keyspace_events, pair.keyspace, change->commit);
    send(keyspace_events, pair.keyevent, change->commit);
}

/* Fields of a hash have expired, though the key itself has not, and perhaps all of them. */
static void tell_of_fields(struct keyspace_events *keyspace_events, uint32_t classes,
                           const struct store_change *change)
{
    if ((classes & NOTIFY_HASH) != 0)
        send_event(keyspace_events, "hexpired", change);
    if ((classes & NOTIFY_GENERIC) != 0 && change->fresh == NULL)
        send_event(keyspace_events, "del", change);
}

static void on_change(void *arg, const struct store_change *change)
{
    struct keyspace_events *keyspace_events = arg;
    struct server *server = keyspace_events->server;
    uint32_t classes = config_notify_classes(&server->config);
    if (change->kind != STORE_CHANGE_KEY || (!pubsub_has(server->pubsub, PUBSUB_CHANNEL) &&
                                             !pubsub_has(server->pubsub, PUBSUB_PATTERN)))
        return;
    const char *event = NULL;
    if (change->cause == STORE_BY_EVICTION)
        event = (classes & NOTIFY_EVICTED) != 0 ? "evicted" : NULL;
    else if (had_expired(change))
        event = (classes & NOTIFY_EXPIRED) != 0 ? "expired" : NULL;
    else if (change->cause == STORE_BY_EXPIRY)
        tell_of_fields(keyspace_events, classes, change);
    if (event != NULL)
        send_event(keyspace_events, event, change);
}

struct keyspace_events *keyspace_events_new(struct server *server)
{
    struct keyspace_events *keyspace_events = calloc(1, sizeof *keyspace_events);
    if (keyspace_events == NULL)
        return NULL;
    keyspace_events->server = server;
    pthread_mutex_init(&keyspace_events->lock, NULL);
    keyspace_events_follow(keyspace_events);
    return keyspace_events;
}

void keyspace_events_free(struct keyspace_events *keyspace_events)
{
    if (keyspace_events == NULL)
        return;
    if (keyspace_events->is_listening)
        store_unobserve(keyspace_events->server->store, on_change, keyspace_events);
    assert(atomic_load(&keyspace_events->pending) == 0);
    pthread_mutex_destroy(&keyspace_events->lock);
    free(keyspace_events);
}

void keyspace_events_follow(struct keyspace_events *keyspace_events)
{
    struct server *server = keyspace_events->server;
    uint32_t wanted = NOTIFY_EXPIRED | NOTIFY_EVICTED | NOTIFY_HASH | NOTIFY_GENERIC;
    bool wants = (config_notify_classes(&server->config) & wanted) != 0;
    pthread_mutex_lock(&keyspace_events->lock);
    if (wants && !keyspace_events->is_listening)
        keyspace_events->is_listening =
            store_observe(server->store, on_change, keyspace_events) == STORE_OK;
    else if (!wants && keyspace_events->is_listening)
        store_unobserve(server->store, on_change, keyspace_events);
    keyspace_events->is_listening = wants && keyspace_events->is_listening;
    pthread_mutex_unlock(&keyspace_events->lock);
}

uint64_t keyspace_events_dropped(const struct keyspace_events *keyspace_events)
{
    return atomic_load_explicit(&keyspace_events->dropped, memory_order_relaxed);
}
