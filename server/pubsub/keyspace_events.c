/*
 * Invariants:
 * 1. The store's observer is called under its locks, by any thread: it makes the messages and posts
 *    them to the workers with subscribers, no more. So they come in the order of the commits, and
 *    before what a later command on the same key has to say.
 * 2. At most PENDING_MAX messages are on their way to workers; what comes above that is dropped and
 *    counted.
 */
#include "server/pubsub/keyspace_events.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "server/pubsub/effects.h"
#include "server/pubsub/notify.h"
#include "server/pubsub/pubsub.h"
#include "server/core/server.h"

#define PENDING_MAX 100000

struct notices {
    struct server *server;
    pthread_mutex_t lock; /* of is_listening; before the store's locks */
    bool is_listening;
    _Atomic uint64_t pending, dropped;
};

/* A request that writes over what had expired lets it expire first. */
static bool had_expired(const struct store_change *change)
{
    struct timespec now;
    if (change->old == NULL || change->old->expire_ms == STORE_NO_EXPIRY)
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    return change->old->expire_ms < (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void send(struct notices *notices, struct publication *publication, uint64_t commit)
{
    if (publication == NULL)
        return;
    if (atomic_fetch_add_explicit(&notices->pending, 1, memory_order_relaxed) >= PENDING_MAX) {
        atomic_fetch_sub_explicit(&notices->pending, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&notices->dropped, 1, memory_order_relaxed);
        publication_release(publication);
        return;
    }
    publication->pending = &notices->pending;
    publication->shown = commit;
    pubsub_publish(notices->server, NULL, publication);
}

static void on_change(void *arg, const struct store_change *change)
{
    struct notices *notices = arg;
    struct server *server = notices->server;
    uint32_t classes = config_notify_classes(&server->config);
    if (change->kind != STORE_CHANGE_KEY || (!pubsub_has(server->pubsub, PUBSUB_CHANNEL) &&
                                             !pubsub_has(server->pubsub, PUBSUB_PATTERN)))
        return;
    const char *event = NULL;
    if (change->cause == STORE_BY_EVICTION)
        event = (classes & NOTIFY_EVICTED) != 0 ? "evicted" : NULL;
    else if (change->cause == STORE_BY_EXPIRY || had_expired(change))
        event = (classes & NOTIFY_EXPIRED) != 0 ? "expired" : NULL;
    if (event == NULL)
        return;
    struct notify_pair pair = notify_publications(server, event, change->key);
    send(notices, pair.keyspace, change->commit);
    send(notices, pair.keyevent, change->commit);
}

struct notices *notices_new(struct server *server)
{
    struct notices *notices = calloc(1, sizeof *notices);
    if (notices == NULL)
        return NULL;
    notices->server = server;
    pthread_mutex_init(&notices->lock, NULL);
    notices_follow(notices);
    return notices;
}

void notices_free(struct notices *notices)
{
    if (notices == NULL)
        return;
    if (notices->is_listening)
        store_unobserve(notices->server->store, on_change, notices);
    assert(atomic_load(&notices->pending) == 0);
    pthread_mutex_destroy(&notices->lock);
    free(notices);
}

void notices_follow(struct notices *notices)
{
    struct server *server = notices->server;
    bool wants = (config_notify_classes(&server->config) & (NOTIFY_EXPIRED | NOTIFY_EVICTED)) != 0;
    pthread_mutex_lock(&notices->lock);
    if (wants && !notices->is_listening)
        notices->is_listening = store_observe(server->store, on_change, notices) == STORE_OK;
    else if (!wants && notices->is_listening)
        store_unobserve(server->store, on_change, notices);
    notices->is_listening = wants && notices->is_listening;
    pthread_mutex_unlock(&notices->lock);
}

uint64_t notices_dropped(const struct notices *notices)
{
    return atomic_load_explicit(&notices->dropped, memory_order_relaxed);
}
