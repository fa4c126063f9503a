/*
 * All devices in use: a service for each port, and for each worker a poll group, which has the
 * worker's queues on each of them.
 *
 * Invariants:
 * 1. A group belongs to its worker's thread, and has one rdma_worker of each service.
 * 2. The lists are changed under the lock: that of services after the start only by the watcher
 *    (watch.c), that of groups only during the start, while the watcher runs already.
 */
#include "rdma-ext/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rdma-ext/channel.h"
#include "rdma-ext/choose.h"
#include "rdma-ext/poll_group.h"
#include "rdma-ext/service.h"
#include "rdma-ext/watch.h"
#include "rdma-ext/watch_ask.h"
#include "rdma-ext/completion_loop.h"

/* ---- devices ---- */

static bool is_called(const struct rdma_device *device, const char *name, int index)
{
    return device->index == index && strcmp(device->name, name) == 0;
}

/* Counts the services that use this port of the device; port 0: any of its ports. */
static uint32_t count_of(struct rdma_service *const *services, uint32_t count, const char *name,
                         int index, uint8_t port, int *ports)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct rdma_device *device = &services[i]->device;
        if (!is_called(device, name, index) || (port != 0 && device->port != port))
            continue;
        *ports = device->port_count;
        found++;
    }
    return found;
}

static bool is_failed(const struct rdma_devices *devices, const char *name, int index)
{
    for (uint32_t i = 0; i < devices->failed_count; i++)
        if (devices->failed[i].index == index && strcmp(devices->failed[i].name, name) == 0)
            return true;
    return false;
}

static bool is_left_out(void *arg, const char *name, int index, uint8_t port)
{
    const struct rdma_devices *devices = arg;
    int ports = 1;
    uint32_t used = count_of(devices->services, devices->service_count, name, index, port, &ports) +
                    count_of(devices->leaving, devices->leaving_count, name, index, port, &ports);
    return is_failed(devices, name, index) || used >= (port == 0 ? (uint32_t)ports : 1);
}

bool rdma_devices_note_failed(struct rdma_devices *devices, const struct rdma_listed *device)
{
    bool has_room = devices->failed_count < RDMA_DEVICES_MAX;
    if (has_room)
        devices->failed[devices->failed_count++] = *device;
    return has_room;
}

/* False: it would be tried again and again. */
static bool pass_over(struct rdma_devices *devices, const struct rdma_listed *unusable,
                      const char *problem)
{
    char text[2 * RDMA_MESSAGE_MAX];
    pthread_mutex_lock(&devices->lock);
    bool is_noted = rdma_devices_note_failed(devices, unusable);
    pthread_mutex_unlock(&devices->lock);
    snprintf(text, sizeof text, "the device %s is not used: %s", unusable->name, problem);
    devices->options.warn(devices->options.warn_arg, text);
    return is_noted;
}

struct rdma_service *rdma_devices_open_next(struct rdma_devices *devices,
                                            char message[RDMA_ERROR_MAX])
{
    struct rdma_choice choice = {.name = devices->names,
                                 .port = devices->options.port,
                                 .gid_index = devices->options.gid_index,
                                 .is_left_out = is_left_out,
                                 .arg = devices};
    struct rdma_service *service;
    struct rdma_listed unusable;
    char rest[RDMA_ERROR_MAX], *problem = message; /* the first one is told */
    if (devices->service_count == RDMA_DEVICES_MAX)
        return NULL;
    while ((service = rdma_service_open(devices, &choice, &unusable, problem)) == NULL &&
           unusable.name[0] != '\0' && pass_over(devices, &unusable, problem))
        problem = rest;
    return service;
}

static bool open_all(struct rdma_devices *devices, char message[RDMA_ERROR_MAX])
{
    struct rdma_service *service;
    while ((service = rdma_devices_open_next(devices, message)) != NULL)
        devices->services[devices->service_count++] = service;
    return devices->service_count > 0;
}

static void stop(struct rdma_devices *devices)
{
    for (uint32_t i = 0; i < devices->service_count; i++)
        rdma_service_free(devices->services[i]);
    for (uint32_t i = 0; i < devices->leaving_count; i++)
        rdma_service_free(devices->leaving[i]);
    for (uint32_t i = 0; i < devices->group_count; i++) {
        close(devices->groups[i]->epoll_fd);
        free(devices->groups[i]);
    }
    pthread_cond_destroy(&devices->wake);
    pthread_mutex_destroy(&devices->lock);
    free(devices->groups);
    free(devices);
}

static void halt_all(struct rdma_service *const *services, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!services[i]->is_halted)
            rdma_service_halt(services[i]);
}

static struct rdma_devices *start(const struct rdma_options *options, char message[RDMA_ERROR_MAX])
{
    struct rdma_devices *devices = calloc(1, sizeof *devices);
    snprintf(message, RDMA_ERROR_MAX, "out of memory");
    if (devices == NULL)
        return NULL;
    pthread_mutex_init(&devices->lock, NULL);
    pthread_cond_init(&devices->wake, NULL);
    devices->options = *options;
    snprintf(devices->names, sizeof devices->names, "%s", options->device);
    devices->options.device = devices->names;
    if (open_all(devices, message)) {
        if (rdma_watcher_start(devices))
            return devices;
        snprintf(message, RDMA_ERROR_MAX, "cannot start a thread");
        halt_all(devices->services, devices->service_count);
    }
    stop(devices);
    return NULL;
}

static void halt(struct rdma_devices *devices)
{
    rdma_watcher_stop(devices);
    halt_all(devices->services, devices->service_count);
    halt_all(devices->leaving, devices->leaving_count);
}

/* ---- groups ---- */

static bool join_all(struct rdma_poll_group *group)
{
    struct rdma_devices *devices = group->devices;
    for (uint32_t i = 0; i < devices->service_count; i++) {
        struct rdma_worker *worker = rdma_service_attach(devices->services[i], group);
        if (worker == NULL || !rdma_group_join(worker))
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

/* All of them must be armed. */
static bool may_sleep(struct rdma_poll_group *group)
{
    bool may = true;
    for (uint32_t i = 0; i < group->worker_count; i++)
        may &= rdma_worker_sleep(group->workers[i]);
    return may;
}

/* Those that were not armed have no event. */
static void woken(struct rdma_poll_group *group)
{
    for (uint32_t i = 0; i < group->worker_count; i++) {
        struct rdma_worker *worker = group->workers[i];
        if (worker->is_armed && !worker->is_deaf && !rdma_worker_woken(worker))
            epoll_ctl(group->epoll_fd, EPOLL_CTL_DEL, worker->events->fd, NULL);
    }
}

static bool has_ended(const struct rdma_poll_group *group)
{
    uint32_t i = 0;
    while (i < group->worker_count && rdma_worker_has_ended(group->workers[i]))
        i++;
    return i == group->worker_count;
}

/* The group's worker for a channel of that path. NULL: there is none. */
static struct rdma_worker *worker_for(struct rdma_poll_group *group, const struct rdma_path *path,
                                      bool *fits)
{
    struct rdma_service *services[GROUP_WORKERS_MAX];
    for (uint32_t i = 0; i < group->worker_count; i++)
        services[i] = group->workers[i]->service;
    const struct rdma_service *chosen = rdma_choose(services, group->worker_count, path, fits);
    for (uint32_t i = 0; i < group->worker_count; i++)
        if (services[i] == chosen)
            return group->workers[i];
    return NULL;
}

bool rdma_group_connect(struct rdma_poll_group *group, struct rdma_request *request)
{
    bool fits;
    struct rdma_worker *worker = worker_for(group, &request->path, &fits);
    if (worker != NULL)
        return rdma_worker_connect(worker, request);
    snprintf(request->error, sizeof request->error, "the device has failed, or has gone");
    return false;
}

/* If no device fits, one that has been added meanwhile may. */
static bool connect(struct rdma_poll_group *group, struct rdma_request *request)
{
    struct rdma_devices *devices = group->devices;
    bool fits;
    struct rdma_worker *worker = worker_for(group, &request->path, &fits);
    if (!fits && rdma_devices_seek(group, request))
        return true;
    pthread_mutex_lock(&devices->lock);
    rdma_devices_ask(devices);
    pthread_mutex_unlock(&devices->lock);
    if (worker != NULL)
        return rdma_worker_connect(worker, request);
    snprintf(request->error, sizeof request->error, "out of memory");
    return false;
}

/* ---- figures ---- */

/* The lock is held. */
static void describe_chosen(struct rdma_devices *devices, const struct rdma_path *path,
                            struct rdma_info *info)
{
    bool fits;
    struct rdma_service *chosen =
        rdma_choose(devices->services, devices->service_count, path, &fits);
    if (chosen == NULL)
        return;
    rdma_service_describe(chosen, &info->chosen);
    rdma_service_gids(chosen, info);
    for (uint32_t i = 0; path->has_local && i < info->gid_count; i++)
        if (memcmp(info->gids[i], path->local, sizeof path->local) == 0)
            memcpy(info->chosen.end.gid, path->local, sizeof path->local);
}

static void count(struct rdma_devices *devices, struct rdma_info *to)
{
    for (uint32_t i = 0; i < devices->service_count; i++)
        rdma_service_count(devices->services[i], to);
    for (uint32_t i = 0; i < devices->leaving_count; i++)
        rdma_service_count(devices->leaving[i], to);
}

static void info(struct rdma_devices *devices, const struct rdma_path *path, struct rdma_info *to)
{
    static const struct rdma_path any = {.has_local = false};
    const struct rdma_options *options = &devices->options;
    uint64_t room = 0;
    pthread_mutex_lock(&devices->lock);
    rdma_devices_ask(devices);
    *to = devices->past;
    to->channels = atomic_load(&devices->channel_count);
    to->pinned_bytes = atomic_load(&devices->pinned_bytes);
    to->max_pinned_bytes = options->max_pinned_bytes;
    to->max_client_bytes = options->max_client_bytes;
    describe_chosen(devices, path != NULL ? path : &any, to);
    count(devices, to);
    for (uint32_t i = 0; i < devices->service_count; i++) {
        rdma_service_describe(devices->services[i], &to->ports[to->port_count++]);
        room += devices->services[i]->max_channels;
    }
    pthread_mutex_unlock(&devices->lock);
    to->max_channels = room < options->max_channels ? room : options->max_channels;
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
    .has_ended = has_ended,
    .connect = connect,
    .wrap = rdma_channel_wrap,
    .drop = rdma_end_channel,
    .stats = rdma_channel_stats,
};
