/*
 * Preloaded into the server or the proxy under test: the device fails.
 *
 * Queues of the kind that VELLUM_FAILING names (cq, srq, qp) cannot be had, with the error
 * VELLUM_ERRNO.
 *
 * Where VELLUM_TROUBLE names a directory: while it has a file of a call's name (poll, arm, send,
 * receive, receive-shared) that call is refused, or (look) asks the port for a second; and a file
 * of an event's name (see `events`) makes that event, about the queues that were made last, and
 * goes away.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <infiniband/verbs.h>

typedef struct ibv_context *open_device(struct ibv_device *device);
typedef struct ibv_cq *create_cq(struct ibv_context *context, int size, void *arg,
                                 struct ibv_comp_channel *channel, int vector);
typedef struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attributes);
typedef struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes);
typedef int get_event(struct ibv_context *context, struct ibv_async_event *event);
typedef int real_poll(struct pollfd *descriptors, nfds_t count, int timeout);
typedef int real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
typedef void ack_event(struct ibv_async_event *event);

static struct {
    struct ibv_context_ops ops; /* the device's own */
    int (*look)(struct ibv_context *context, uint8_t number, struct ibv_port_attr *port,
                size_t size);
    int real_events, own_events;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    bool is_own; /* the event that was handed out last */
} device;

static const struct {
    const char *name;
    enum ibv_event_type type;
} events[] = {
    {"cq-err", IBV_EVENT_CQ_ERR},
    {"srq-err", IBV_EVENT_SRQ_ERR},
    {"qp-fatal", IBV_EVENT_QP_FATAL},
    {"last-wqe", IBV_EVENT_QP_LAST_WQE_REACHED},
    {"port-err", IBV_EVENT_PORT_ERR},
    {"port-active", IBV_EVENT_PORT_ACTIVE},
    {"lid", IBV_EVENT_LID_CHANGE},
    {"device-fatal", IBV_EVENT_DEVICE_FATAL},
    {"comm-est", IBV_EVENT_COMM_EST},
    {"sq-drained", IBV_EVENT_SQ_DRAINED},
    {"srq-limit", IBV_EVENT_SRQ_LIMIT_REACHED},
};
#define EVENTS (sizeof events / sizeof events[0])

static bool fails(const char *kind)
{
    const char *failing = getenv("VELLUM_FAILING"), *error = getenv("VELLUM_ERRNO");
    if (failing == NULL || error == NULL || strcmp(failing, kind) != 0)
        return false;
    errno = atoi(error);
    return true;
}

static bool is_in_trouble(const char *name, bool ends)
{
    const char *directory = getenv("VELLUM_TROUBLE");
    char path[256];
    if (directory == NULL)
        return false;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return ends ? unlink(path) == 0 : access(path, F_OK) == 0;
}

static uintptr_t real(const char *name)
{
    return (uintptr_t)dlsym(RTLD_NEXT, name);
}

/* ---- calls that are refused ---- */

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *completions)
{
    return is_in_trouble("poll", false) ? -1 : device.ops.poll_cq(cq, count, completions);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
    return is_in_trouble("arm", false) ? EIO : device.ops.req_notify_cq(cq, solicited);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    return is_in_trouble("send", false) ? EIO : device.ops.post_send(qp, request, bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *request, struct ibv_recv_wr **bad)
{
    return is_in_trouble("receive", false) ? EIO : device.ops.post_recv(qp, request, bad);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *request, struct ibv_recv_wr **bad)
{
    return is_in_trouble("receive-shared", false) ? EIO
                                                  : device.ops.post_srq_recv(srq, request, bad);
}

static int query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *port,
                      size_t size)
{
    if (is_in_trouble("look", false))
        sleep(1);
    return device.look(context, number, port, size);
}

/* ---- events ---- */

static bool has_event(enum ibv_event_type *type, bool takes)
{
    for (size_t i = 0; i < EVENTS; i++)
        if (is_in_trouble(events[i].name, takes)) {
            *type = events[i].type;
            return true;
        }
    return false;
}

static void *watch(void *arg)
{
    (void)arg;
    enum ibv_event_type type;
    uint64_t one = 1;
    for (;; usleep(20000))
        if (has_event(&type, false) && write(device.own_events, &one, sizeof one) < 0)
            return NULL;
}

static void add_events(struct ibv_context *context)
{
    pthread_t watcher;
    device.real_events = context->async_fd;
    device.own_events = eventfd(0, EFD_NONBLOCK);
    pthread_create(&watcher, NULL, watch, NULL);
}

/* A thread that waits for the device's events also waits for the injected ones. */
int poll(struct pollfd *descriptors, nfds_t count, int timeout)
{
    real_poll *wait = (real_poll *)real("poll");
    struct pollfd both[8];
    nfds_t at = 0;
    while (at < count && (device.own_events == 0 || descriptors[at].fd != device.real_events))
        at++;
    if (at == count || count >= 8)
        return wait(descriptors, count, timeout);
    memcpy(both, descriptors, count * sizeof both[0]);
    both[count] = (struct pollfd){.fd = device.own_events, .events = POLLIN};
    int ready = wait(both, count + 1, timeout);
    memcpy(descriptors, both, count * sizeof both[0]);
    if (ready > 0 && both[count].revents != 0)
        descriptors[at].revents |= POLLIN;
    return ready;
}

/* The same for one that waits by an epoll descriptor. */
int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    real_epoll_ctl *control = (real_epoll_ctl *)real("epoll_ctl");
    if (operation == EPOLL_CTL_ADD && device.own_events != 0 && fd == device.real_events)
        control(epoll, operation, device.own_events, event);
    return control(epoll, operation, fd, event);
}

struct ibv_context *ibv_open_device(struct ibv_device *candidate)
{
    open_device *open = (open_device *)real("ibv_open_device");
    struct ibv_context *context = open(candidate);
    if (context == NULL || getenv("VELLUM_TROUBLE") == NULL || device.own_events != 0)
        return context;
    device.ops = context->ops;
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = req_notify_cq;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.post_srq_recv = post_srq_recv;
    struct verbs_context *more = verbs_get_ctx(context);
    device.look = more->query_port;
    more->query_port = query_port;
    add_events(context);
    return context;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    get_event *get = (get_event *)real("ibv_get_async_event");
    uint64_t ignored;
    device.is_own = device.own_events != 0 && has_event(&event->event_type, true);
    if (!device.is_own) {
        ssize_t taken =
            device.own_events == 0 ? 0 : read(device.own_events, &ignored, sizeof ignored);
        (void)taken; /* whether it told of this one */
        return get(context, event);
    }
    if (event->event_type == IBV_EVENT_CQ_ERR)
        event->element.cq = device.cq;
    else if (event->event_type == IBV_EVENT_SRQ_ERR ||
             event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
        event->element.srq = device.srq;
    else if (event->event_type < IBV_EVENT_DEVICE_FATAL ||
             event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
        event->element.qp = device.qp;
    else
        event->element.port_num = 1;
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    ack_event *ack = (ack_event *)real("ibv_ack_async_event");
    if (!device.is_own)
        ack(event);
}

/* ---- queues ---- */

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int size, void *arg,
                             struct ibv_comp_channel *channel, int vector)
{
    create_cq *create = (create_cq *)real("ibv_create_cq");
    return fails("cq") ? NULL : (device.cq = create(context, size, arg, channel, vector));
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attributes)
{
    create_srq *create = (create_srq *)real("ibv_create_srq");
    return fails("srq") ? NULL : (device.srq = create(pd, attributes));
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes)
{
    create_qp *create = (create_qp *)real("ibv_create_qp");
    return fails("qp") ? NULL : (device.qp = create(pd, attributes));
}
