/*
 * All devices that are in use: a service for each port, and for each worker a poll group, which has
 * the worker's queues with every one of them.
 *
 * Invariants:
 * 1. A group belongs to its worker's thread, and has one rdma_worker of each service.
 * 2. The list of services is changed under the lock.
 */
#include "rdma-ext/private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct rdma_devices {
    struct rdma_options options;
    char names[RDMA_DEVICES_MAX * RDMA_NAME_MAX];
    struct rdma_totals totals;
    pthread_mutex_t lock; /* over the lists */
    struct rdma_service *services[RDMA_DEVICES_MAX];
    uint32_t service_count;
    struct rdma_poll_group **groups;
    uint32_t group_count;
};

/* ---- devices ---- */

static bool is_in_use(void *arg, const char *name, int index, uint8_t port)
{
    const struct rdma_devices *devices = arg;
    for (uint32_t i = 0; i < devices->service_count; i++) {
        const struct rdma_device *device = &devices->services[i]->device;
        if (device->index == index && device->port == port && strcmp(device->name, name) == 0)
            return true;
    }
    return false;
}

/* Opens what fits and is not in use. False: nothing was, and message tells why. */
static bool open_all(struct rdma_devices *devices, char message[RDMA_ERROR_MAX])
{
    struct rdma_choice choice = {.name = devices->names,
                                 .port = devices->options.port,
                                 .gid_index = devices->options.gid_index,
                                 .is_left_out = is_in_use,
                                 .arg = devices};
    uint32_t before = devices->service_count;
    while (devices->service_count < RDMA_DEVICES_MAX) {
        struct rdma_service *service =
            rdma_service_open(&devices->options, &choice, &devices->totals, message);
        if (service == NULL)
            break;
        devices->services[devices->service_count++] = service;
    }
    return devices->service_count > before;
}

static void stop(struct rdma_devices *devices)
{
    for (uint32_t i = 0; i < devices->service_count; i++)
        rdma_service_free(devices->services[i]);
    for (uint32_t i = 0; i < devices->group_count; i++) {
        close(devices->groups[i]->epoll_fd);
        free(devices->groups[i]);
    }
    pthread_mutex_destroy(&devices->lock);
    free(devices->groups);
    free(devices);
}

static struct rdma_devices *start(const struct rdma_options *options, char message[RDMA_ERROR_MAX])
{
    struct rdma_devices *devices = calloc(1, sizeof *devices);
    snprintf(message, RDMA_ERROR_MAX, "out of memory");
    if (devices == NULL)
        return NULL;
    pthread_mutex_init(&devices->lock, NULL);
    devices->options = *options;
    snprintf(devices->names, sizeof devices->names, "%s", options->device);
    devices->options.device = devices->names;
    devices->totals.max_channels = options->max_channels;
    devices->totals.max_pinned_bytes = options->max_pinned_bytes;
    if (open_all(devices, message))
        return devices;
    stop(devices);
    return NULL;
}

static void halt(struct rdma_devices *devices)
{
    for (uint32_t i = 0; i < devices->service_count; i++)
        rdma_service_halt(devices->services[i]);
}

/* ---- groups ---- */

static bool join(struct rdma_poll_group *group, struct rdma_worker *worker)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = worker};
    assert(group->worker_count < RDMA_DEVICES_MAX);
    if (epoll_ctl(group->epoll_fd, EPOLL_CTL_ADD, worker->events->fd, &event) != 0)
        return false;
    group->workers[group->worker_count++] = worker;
    return true;
}

static bool join_all(struct rdma_poll_group *group)
{
    struct rdma_devices *devices = group->devices;
    for (uint32_t i = 0; i < devices->service_count; i++) {
        struct rdma_worker *worker = rdma_service_attach(devices->services[i], group->owner);
        if (worker == NULL || !join(group, worker))
            return false;
    }
    return true;
}

static bool enlist(struct rdma_devices *devices, struct rdma_poll_group *group)
{
    struct rdma_poll_group **groups =
        realloc(devices->groups, (devices->group_count + 1) * sizeof(struct rdma_poll_group *));
    if (groups == NULL)
        return false;
    devices->groups = groups;
    groups[devices->group_count++] = group;
    return true;
}

static struct rdma_poll_group *attach(struct rdma_devices *devices, struct worker *owner)
{
    struct rdma_poll_group *group = calloc(1, sizeof *group);
    if (group == NULL)
        return NULL;
    group->devices = devices;
    group->owner = owner;
    group->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    pthread_mutex_lock(&devices->lock);
    bool is_listed = group->epoll_fd >= 0 && enlist(devices, group);
    bool has_joined = is_listed && join_all(group);
    pthread_mutex_unlock(&devices->lock);
    if (has_joined)
        return group;
    if (!is_listed && group->epoll_fd >= 0)
        close(group->epoll_fd);
    if (!is_listed)
        free(group);
    return NULL;
}

static int descriptor(const struct rdma_poll_group *group)
{
    return group->epoll_fd;
}

static bool poll(struct rdma_poll_group *group)
{
    bool has_moved = false;
    for (uint32_t i = 0; i < group->worker_count; i++)
        has_moved |= rdma_worker_poll(group->workers[i]);
    return has_moved;
}

/* Each has to be armed. */
static bool may_sleep(struct rdma_poll_group *group)
{
    bool may = true;
    for (uint32_t i = 0; i < group->worker_count; i++)
        may &= rdma_worker_sleep(group->workers[i]);
    return may;
}

/* Those that were not armed have nothing to tell. */
static void woken(struct rdma_poll_group *group)
{
    for (uint32_t i = 0; i < group->worker_count; i++) {
        struct rdma_worker *worker = group->workers[i];
        if (worker->is_armed && !worker->is_deaf && !rdma_worker_woken(worker))
            epoll_ctl(group->epoll_fd, EPOLL_CTL_DEL, worker->events->fd, NULL);
    }
}

static struct rdma_worker *worker_of(struct rdma_poll_group *group, const struct rdma_path *path)
{
    struct rdma_service *services[RDMA_DEVICES_MAX];
    for (uint32_t i = 0; i < group->worker_count; i++)
        services[i] = group->workers[i]->service;
    const struct rdma_service *chosen = rdma_choose(services, group->worker_count, path);
    uint32_t i = 0;
    while (group->workers[i]->service != chosen)
        i++;
    return group->workers[i];
}

static bool connect(struct rdma_poll_group *group, struct rdma_request *request)
{
    return rdma_worker_connect(worker_of(group, &request->path), request);
}

/* ---- figures ---- */

/* The lock is held. */
static void describe_chosen(struct rdma_devices *devices, const struct rdma_path *path,
                            struct rdma_info *info)
{
    struct rdma_service *chosen = rdma_choose(devices->services, devices->service_count, path);
    if (chosen == NULL)
        return;
    rdma_service_describe(chosen, &info->chosen);
    rdma_service_gids(chosen, info);
    for (uint32_t i = 0; path->has_local && i < info->gid_count; i++)
        if (memcmp(info->gids[i], path->local, sizeof path->local) == 0)
            memcpy(info->chosen.end.gid, path->local, sizeof path->local);
}

static void info(struct rdma_devices *devices, const struct rdma_path *path, struct rdma_info *to)
{
    static const struct rdma_path any = {.has_local = false};
    const struct rdma_totals *totals = &devices->totals;
    uint64_t room = 0;
    *to = (struct rdma_info){.channels = atomic_load(&totals->channel_count),
                             .pinned_bytes = atomic_load(&totals->pinned_bytes),
                             .max_pinned_bytes = totals->max_pinned_bytes,
                             .max_client_bytes = devices->options.max_client_bytes};
    pthread_mutex_lock(&devices->lock);
    describe_chosen(devices, path != NULL ? path : &any, to);
    for (uint32_t i = 0; i < devices->service_count; i++) {
        struct rdma_service *service = devices->services[i];
        rdma_service_describe(service, &to->ports[to->port_count++]);
        rdma_service_count(service, to);
        room += service->max_channels;
    }
    pthread_mutex_unlock(&devices->lock);
    to->max_channels = room < totals->max_channels ? room : totals->max_channels;
}

const struct rdma_ops rdma_verbs_ops = {
    .start = start,
    .halt = halt,
    .stop = stop,
    .info = info,
    .attach = attach,
    .descriptor = descriptor,
    .poll = poll,
    .sleep = may_sleep,
    .woken = woken,
    .connect = connect,
    .wrap = rdma_channel_wrap,
    .drop = rdma_end_channel,
    .stats = rdma_channel_stats,
};
