/*
 * The effect on channels when the device refuses a call, or an event reports a failure of:
 *
 *     a queue pair                              its channel ends
 *     a completion queue, a shared receive queue   all channels of their worker end
 *     the device                                its channels end, and none are made (watch.c)
 *     the port                                  logged; channels end by their own retries
 *
 * When a pending channel ends, its connection continues over TCP.
 */
#include "rdma-ext/failure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma-ext/channel.h"
#include "rdma-ext/jobs.h"
#include "rdma-ext/port.h"
#include "rdma-ext/service.h"
#include "rdma-ext/watch_ask.h"
#include "rdma-ext/completion_loop.h"

#define SAY_NS 1000000000

void rdma_say(struct rdma_service *service, const char *text)
{
    uint64_t now = rdma_clock_ns(), last = atomic_load(&service->said_ns);
    if (now - last >= SAY_NS && atomic_compare_exchange_strong(&service->said_ns, &last, now))
        service->warn(service->warn_arg, text);
}

static void describe(char text[RDMA_MESSAGE_MAX], const char *what, int error, const char *effect)
{
    if (error == 0)
        snprintf(text, RDMA_MESSAGE_MAX, "%s has failed: %s", what, effect);
    else
        snprintf(text, RDMA_MESSAGE_MAX, "%s has failed (%s): %s", what, strerror(error), effect);
}

/* ---- failures of a worker's queues ---- */

/* This message wakes the worker. Without channels there is nothing to end: the failed queues are
 * gone, too. */
static void on_failing(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    struct rdma_worker *worker =
        (struct rdma_worker *)((char *)message - offsetof(struct rdma_worker, failing));
    atomic_store(&worker->is_failing_posted, false);
    if (worker->channel_count == 0)
        atomic_store(&worker->has_failed, false);
}

static bool mark_failed(struct rdma_worker *worker)
{
    if (atomic_exchange(&worker->has_failed, true))
        return false;
    if (!atomic_exchange(&worker->is_failing_posted, true)) {
        worker->failing.visit = on_failing;
        worker_post(worker->owner, &worker->failing);
    }
    return true;
}

void rdma_worker_fail(struct rdma_worker *worker, const char *what, int error)
{
    struct rdma_service *service = worker->service;
    char text[RDMA_MESSAGE_MAX];
    if (!mark_failed(worker))
        return;
    atomic_fetch_add(&service->failures, 1);
    describe(text, what, error, "the worker's channels are ended");
    service->warn(service->warn_arg, text);
}

/* Channels on which the helper is working are refused when its job ends. */
static void end_one(struct rdma_channel *channel)
{
    if (channel->is_gone)
        return;
    if (channel->awaits_window)
        rdma_give_up_window(channel);
    else if (channel->request == NULL)
        rdma_break_off(channel);
}

bool rdma_worker_end_failed(struct rdma_worker *worker)
{
    if (worker->is_ending_all || !atomic_load_explicit(&worker->has_failed, memory_order_relaxed))
        return false;
    worker->is_ending_all = true;
    for (uint32_t i = 0; i < worker->service->max_channels; i++)
        if (worker->channels[i] != NULL)
            end_one(worker->channels[i]);
    return true;
}

/* ---- one channel's ---- */

void rdma_channel_fail(struct rdma_channel *channel, const char *what, int error)
{
    struct rdma_service *service = channel->worker->service;
    char text[RDMA_MESSAGE_MAX];
    atomic_fetch_add(&service->failures, 1);
    describe(text, what, error, "the channel is ended");
    rdma_say(service, text);
    rdma_break_off(channel);
}

static void on_trouble(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    struct rdma_channel *channel =
        (struct rdma_channel *)((char *)message - offsetof(struct rdma_channel, trouble));
    if (channel->is_gone || channel->is_broken)
        return;
    rdma_say(channel->worker->service, "a queue pair has failed: the channel is ended");
    if (channel->awaits_window)
        rdma_give_up_window(channel);
    else
        rdma_break_off(channel);
}

/* The worker gets this message before the one that reports the queue pair as destroyed. */
static void queue_pair_failed(const struct ibv_qp *qp)
{
    struct rdma_channel *channel = qp->qp_context;
    if (channel->is_troubled)
        return;
    channel->is_troubled = true;
    channel->trouble.visit = on_trouble;
    worker_post(channel->worker->owner, &channel->trouble);
}

/* ---- windows that clients invalidated ---- */

struct lost_window {
    struct worker_message message; /* first */
    struct rdma_worker *worker;
    uint32_t key;
};

/* Otherwise its client would notice only at its next frame. */
static void on_lost_window(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    struct lost_window *lost = (struct lost_window *)message;
    struct rdma_worker *worker = lost->worker;
    for (uint32_t i = 0; i < worker->service->max_channels; i++) {
        struct rdma_channel *channel = worker->channels[i];
        if (channel == NULL || !channel->is_bound || channel->ring.key != lost->key ||
            channel->is_gone)
            continue;
        worker->service->warn(worker->service->warn_arg,
                              "a client's ring was closed by another: its channel is ended");
        rdma_break_off(channel);
    }
    free(lost);
}

void rdma_key_ended(struct rdma_worker *worker, uint32_t key)
{
    struct rdma_service *service = worker->service;
    rdma_say(service, "a client has sent an invalidation, which none may: its channel is ended");
    for (uint32_t i = 0; i < service->worker_count; i++) {
        struct lost_window *lost = malloc(sizeof *lost);
        if (lost == NULL) /* the client notices at its next frame */
            continue;
        *lost = (struct lost_window){
            .message.visit = on_lost_window, .worker = service->workers[i], .key = key};
        worker_post(lost->worker->owner, &lost->message);
    }
}

/* ---- events ---- */

/* `cq` or `srq`: the queue that failed; the other is NULL. */
static void queue_failed(struct rdma_service *service, const struct ibv_cq *cq,
                         const struct ibv_srq *srq)
{
    pthread_mutex_lock(&service->lock);
    for (uint32_t i = 0; i < service->worker_count; i++) {
        struct rdma_worker *worker = service->workers[i];
        if (cq != NULL && worker->made.cq == cq)
            rdma_worker_fail(worker, "a completion queue", 0);
        if (srq != NULL && worker->made.srq == srq)
            rdma_worker_fail(worker, "a shared receive queue", 0);
    }
    pthread_mutex_unlock(&service->lock);
}

/* False: it was marked as lost before. */
static bool lose(struct rdma_service *service)
{
    if (atomic_exchange(&service->is_lost, true))
        return false;
    pthread_mutex_lock(&service->lock);
    for (uint32_t i = 0; i < service->worker_count; i++)
        mark_failed(service->workers[i]);
    pthread_mutex_unlock(&service->lock);
    return true;
}

static void device_failed(struct rdma_service *service, const char *what, int error)
{
    char name[80], text[RDMA_MESSAGE_MAX];
    if (!lose(service))
        return;
    atomic_fetch_add(&service->failures, 1);
    snprintf(name, sizeof name, "%s %s", what, service->device.name);
    describe(text, name, error, "its channels are ended, and no more are made");
    service->warn(service->warn_arg, text);
    rdma_devices_changed(service->devices);
}

void rdma_device_gone(struct rdma_service *service)
{
    char text[RDMA_MESSAGE_MAX];
    if (!lose(service))
        return;
    snprintf(text, sizeof text, "the device %s has gone: its channels are ended",
             service->device.name);
    service->warn(service->warn_arg, text);
}

static void port_changed(struct rdma_service *service, int port, const char *what)
{
    char text[RDMA_MESSAGE_MAX];
    if (port != service->device.port)
        return;
    rdma_look_at_port(service);
    snprintf(text, sizeof text, "port %d of %s %s", port, service->device.name, what);
    service->warn(service->warn_arg, text);
}

static void lid_changed(struct rdma_service *service, int port)
{
    if (port != service->device.port)
        return;
    port_changed(service, port, "has another LID: channels that speak from the old one are ended");
    pthread_mutex_lock(&service->lock);
    for (uint32_t i = 0; i < service->worker_count; i++)
        if (service->workers[i]->made.cq != NULL)
            mark_failed(service->workers[i]);
    pthread_mutex_unlock(&service->lock);
}

static void take_event(struct rdma_service *service, const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: /* of a queue pair that entered the error state by itself */
        queue_pair_failed(event->element.qp);
        return;
    case IBV_EVENT_CQ_ERR:
        queue_failed(service, event->element.cq, NULL);
        return;
    case IBV_EVENT_SRQ_ERR:
        queue_failed(service, NULL, event->element.srq);
        return;
    case IBV_EVENT_DEVICE_FATAL:
        device_failed(service, "the device", 0);
        return;
    case IBV_EVENT_PORT_ERR:
        port_changed(service, event->element.port_num, "is down");
        return;
    case IBV_EVENT_PORT_ACTIVE:
        port_changed(service, event->element.port_num, "is active");
        rdma_devices_changed(service->devices); /* the port may be one that is not in use */
        return;
    case IBV_EVENT_LID_CHANGE:
        lid_changed(service, event->element.port_num);
        return;
    case IBV_EVENT_GID_CHANGE:
        rdma_look_at_gids(service);
        return;
    default: /* unacknowledged events block the destruction of queue pairs */
        return;
    }
}

bool rdma_take_events(struct rdma_service *service)
{
    struct ibv_async_event event;
    while (ibv_get_async_event(service->device.context, &event) == 0) {
        take_event(service, &event);
        ibv_ack_async_event(&event);
    }
    if (errno == EAGAIN || errno == EINTR)
        return true;
    device_failed(service, "the device", errno);
    return false;
}
