/*
 * Connects queue pairs to their peers. If no host has the peer's address, the kernel takes a second
 * to resolve it and cannot be interrupted. So this is done on separate threads, which are started
 * on demand.
 *
 * Invariants:
 * 1. Of one peer's channels one is resolved at a time: an unreachable peer keeps no more than one
 *    thread busy. If it fails, the channels that wait for the same peer fail as well.
 * 2. Channels whose connection has closed, and all channels when the service stops, are skipped.
 */
#include "rdma-ext/resolve.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "rdma-ext/channel.h"
#include "rdma-ext/jobs.h"
#include "rdma-ext/service.h"

#define STACK_BYTES (256 * 1024)

/* Receives of mode send are shared: a client that sends without credits can use up all of them
 * while their worker is busy. Others' frames are then repeated six times before their channels
 * fail: with this timer after 1.5 s, which is longer than nearly all commands keep a worker busy.
 */
#define SHARED_RECEIVES_RNR_TIMER 29 /* 0.25 s */

static bool has_same_peer(const struct rdma_channel *channel, const struct rdma_channel *other)
{
    return memcmp(channel->request->theirs.gid, other->request->theirs.gid,
                  sizeof channel->request->theirs.gid) == 0;
}

static bool is_to_be_passed_by(const struct rdma_service *service,
                               const struct rdma_channel *channel)
{
    return channel->resolve_error != 0 || service->is_stopping ||
           atomic_load(&channel->request->is_given_up);
}

static bool is_next(const struct rdma_service *service, const struct rdma_channel *channel)
{
    const struct rdma_resolving *resolving = &service->resolving;
    if (is_to_be_passed_by(service, channel))
        return true;
    for (uint32_t i = 0; i < RESOLVERS_MAX; i++)
        if (resolving->under_way[i] != NULL && has_same_peer(resolving->under_way[i], channel))
            return false;
    return true;
}

static struct rdma_channel *take_next(struct rdma_service *service)
{
    struct rdma_channel **at = &service->resolving.queue;
    while (*at != NULL && !is_next(service, *at))
        at = &(*at)->resolve_next;
    struct rdma_channel *channel = *at;
    if (channel != NULL)
        *at = channel->resolve_next;
    return channel;
}

static bool is_nobody_there(int error)
{
    return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
}

static uint8_t rnr_timer(const struct rdma_request *request)
{
    return request->theirs.mode == RDMA_MODE_SEND ? SHARED_RECEIVES_RNR_TIMER
                                                  : RDMA_USUAL_RNR_TIMER;
}

/* Returns an errno. The lock is held, except during the call. */
static int connect_one(struct rdma_service *service, struct rdma_channel *channel)
{
    struct rdma_resolving *resolving = &service->resolving;
    struct rdma_request *request = channel->request;
    uint32_t slot = 0;
    if (channel->resolve_error != 0)
        return channel->resolve_error;
    if (is_to_be_passed_by(service, channel))
        return ECANCELED;
    while (resolving->under_way[slot] != NULL) {
        slot++; /* each thread has at most one under way; the helper only while there is none */
        assert(slot < RESOLVERS_MAX);
    }
    resolving->under_way[slot] = channel;
    pthread_mutex_unlock(&service->lock);
    int error = rdma_qp_connect(&channel->speaker, channel->qp, &request->ours, &request->theirs,
                                rnr_timer(request));
    pthread_mutex_lock(&service->lock);
    resolving->under_way[slot] = NULL;
    struct rdma_channel *other = resolving->queue;
    for (; is_nobody_there(error) && other != NULL; other = other->resolve_next)
        if (has_same_peer(channel, other))
            other->resolve_error = error;
    return error;
}

static void give_back(struct rdma_service *service, struct rdma_channel *channel)
{
    assert(service->resolving.channels > 0);
    service->resolving.channels--;
    rdma_submit_locked(service, &channel->job);
}

static void *resolve(void *arg)
{
    struct rdma_service *service = arg;
    struct rdma_resolving *resolving = &service->resolving;
    struct rdma_channel *channel;
    pthread_setname_np(pthread_self(), "rdma-resolver");
    pthread_mutex_lock(&service->lock);
    for (;;) {
        while ((channel = take_next(service)) != NULL) {
            channel->resolve_error = connect_one(service, channel);
            give_back(service, channel);
            pthread_cond_broadcast(&resolving->wake); /* the peer's next channel can start */
        }
        if (service->is_stopping && resolving->queue == NULL)
            break;
        resolving->idle++;
        pthread_cond_wait(&resolving->wake, &service->lock);
        resolving->idle--;
    }
    pthread_mutex_unlock(&service->lock);
    return NULL;
}

/* False: there is no thread, and none can or should be started. */
static bool has_resolver(struct rdma_service *service)
{
    struct rdma_resolving *resolving = &service->resolving;
    pthread_attr_t attributes;
    uint32_t wanted = 0;
    if (service->is_stopping)
        return false;
    for (struct rdma_channel *at = resolving->queue; at != NULL; at = at->resolve_next)
        wanted += is_next(service, at);
    if (wanted <= resolving->idle || resolving->thread_count == RESOLVERS_MAX)
        return true;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(&resolving->threads[resolving->thread_count], &attributes, resolve,
                       service) == 0)
        resolving->thread_count++;
    pthread_attr_destroy(&attributes);
    return resolving->thread_count > 0;
}

void rdma_resolve(struct rdma_service *service, struct rdma_channel *channel)
{
    struct rdma_resolving *resolving = &service->resolving;
    pthread_mutex_lock(&service->lock);
    struct rdma_channel **at = &resolving->queue;
    while (*at != NULL)
        at = &(*at)->resolve_next;
    *at = channel;
    channel->resolve_next = NULL;
    resolving->channels++;
    if (has_resolver(service)) {
        pthread_cond_signal(&resolving->wake);
    } else { /* without a resolver the helper does it, one after the other */
        *at = NULL;
        channel->resolve_error = connect_one(service, channel);
        give_back(service, channel);
    }
    pthread_mutex_unlock(&service->lock);
}

void rdma_resolvers_stop(struct rdma_service *service)
{
    struct rdma_resolving *resolving = &service->resolving;
    uint32_t count = resolving->thread_count;
    for (uint32_t i = 0; i < count; i++)
        pthread_join(resolving->threads[i], NULL);
    assert(resolving->channels == 0 && resolving->queue == NULL);
}
