/*
 * Devices come and go while the server runs: a separate thread, the watcher, starts to use new ones
 * and drops those that have failed or are no longer listed. It looks when it is asked to, at most
 * once a second, and when an event reports a failure or a port; a CONNECT for which no device fits
 * waits for it.
 *
 *     rdma_service    in use --lost--> leaving --no worker has it--> halted --> freed
 *
 * Invariants:
 * 1. After the start only the watcher changes the list of services. It makes no verbs call while it
 *    holds the lock.
 * 2. A service is freed when each worker has handled its farewell message, which is posted when no
 *    other message about the service can follow.
 * 3. A device that has failed, or could not be used, is not opened again, until another one of its
 *    name appears.
 */
#include "rdma-ext/watch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma-ext/choose.h"
#include "rdma-ext/devices.h"
#include "rdma-ext/failure.h"
#include "rdma-ext/poll_group.h"
#include "rdma-ext/service.h"
#include "rdma-ext/watch_ask.h"
#include "rdma-ext/completion_loop.h"

#define LISTED_MAX 512

/* A CONNECT that waits until the watcher has looked. */
struct rdma_seeking {
    struct worker_message message; /* first */
    struct rdma_poll_group *group;
    struct rdma_request *request;
    struct rdma_seeking *next;
};

/* ---- to be called by others ---- */

bool rdma_devices_seek(struct rdma_poll_group *group, struct rdma_request *request)
{
    struct rdma_devices *devices = group->devices;
    struct rdma_seeking *seeking = malloc(sizeof *seeking);
    if (seeking == NULL)
        return false;
    *seeking = (struct rdma_seeking){.group = group, .request = request};
    pthread_mutex_lock(&devices->lock);
    seeking->next = devices->seekers;
    devices->seekers = seeking;
    pthread_cond_signal(&devices->wake);
    pthread_mutex_unlock(&devices->lock);
    return true;
}

/* ---- a device goes ---- */

static bool is_among(const struct rdma_listed *listed, uint32_t count,
                     const struct rdma_listed *one)
{
    uint32_t i = 0;
    while (i < count && !(listed[i].index == one->index && strcmp(listed[i].name, one->name) == 0))
        i++;
    return i < count;
}

static struct rdma_listed entry_of(const struct rdma_service *service)
{
    struct rdma_listed entry = {.index = service->device.index};
    snprintf(entry.name, sizeof entry.name, "%s", service->device.name);
    return entry;
}

/* The service is not chosen any more, and each worker drops it when its last channel is gone. */
static void retire(struct rdma_devices *devices, uint32_t at)
{
    struct rdma_service *service = devices->services[at];
    assert(at < devices->service_count && devices->leaving_count < RDMA_DEVICES_MAX);
    pthread_mutex_lock(&devices->lock);
    devices->service_count--;
    memmove(&devices->services[at], &devices->services[at + 1],
            (devices->service_count - at) * sizeof devices->services[0]);
    devices->leaving[devices->leaving_count++] = service;
    pthread_mutex_unlock(&devices->lock);
    atomic_store(&service->staying, service->worker_count);
    for (uint32_t i = 0; i < service->worker_count; i++) {
        struct rdma_worker *worker = service->workers[i];
        worker->leaving.visit = rdma_on_leaving;
        worker_post(worker->owner, &worker->leaving);
    }
}

static void retire_lost(struct rdma_devices *devices)
{
    for (uint32_t i = devices->service_count; i-- > 0;)
        if (atomic_load(&devices->services[i]->is_lost) &&
            devices->leaving_count < RDMA_DEVICES_MAX)
            retire(devices, i);
}

static void on_farewell(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    rdma_has_left((struct rdma_worker *)((char *)message - offsetof(struct rdma_worker, farewell)));
}

/* No worker uses it: its helper completes its remaining jobs before it ends. */
static void end(struct rdma_service *service)
{
    rdma_service_halt(service);
    atomic_store(&service->staying, service->worker_count);
    for (uint32_t i = 0; i < service->worker_count; i++) {
        struct rdma_worker *worker = service->workers[i];
        worker->farewell.visit = on_farewell;
        worker_post(worker->owner, &worker->farewell);
    }
}

static void drop(struct rdma_devices *devices, uint32_t at)
{
    struct rdma_service *service = devices->leaving[at];
    pthread_mutex_lock(&devices->lock);
    rdma_service_count(service, &devices->past);
    /* These two describe services in use. */
    devices->past.registered_bytes = devices->past.held_bytes = 0;
    devices->leaving[at] = devices->leaving[--devices->leaving_count];
    const struct rdma_listed entry = entry_of(service);
    rdma_devices_note_failed(devices, &entry);
    pthread_mutex_unlock(&devices->lock);
    rdma_service_free(service);
}

static void drop_those_that_left(struct rdma_devices *devices)
{
    for (uint32_t i = devices->leaving_count; i-- > 0;) {
        struct rdma_service *service = devices->leaving[i];
        if (atomic_load(&service->staying) > 0)
            continue;
        if (service->is_halted)
            drop(devices, i);
        else
            end(service);
    }
}

/* ---- a device comes ---- */

static void on_joining(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    rdma_group_join(
        (struct rdma_worker *)((char *)message - offsetof(struct rdma_worker, joining)));
}

/* During the start groups are still added. NULL: the service has a worker in each group, and is in
 * the list now, so that those to come join it themselves. */
static struct rdma_poll_group *group_or_enlist(struct rdma_devices *devices,
                                               struct rdma_service *service, uint32_t at)
{
    struct rdma_poll_group *group = NULL;
    pthread_mutex_lock(&devices->lock);
    if (at < devices->group_count)
        group = devices->groups[at];
    else
        devices->services[devices->service_count++] = service;
    pthread_mutex_unlock(&devices->lock);
    return group;
}

/* *count: of the workers that were attached here. */
static bool attach_all(struct rdma_devices *devices, struct rdma_service *service, uint32_t *count)
{
    struct rdma_poll_group *group;
    for (*count = 0; (group = group_or_enlist(devices, service, *count)) != NULL; ++*count)
        if (rdma_service_attach(service, group) == NULL)
            return false;
    return true;
}

static struct rdma_worker *worker_at(struct rdma_service *service, uint32_t at)
{
    pthread_mutex_lock(&service->lock);
    struct rdma_worker *worker = service->workers[at];
    pthread_mutex_unlock(&service->lock);
    return worker;
}

/* False: out of memory or descriptors. */
static bool take_into_use(struct rdma_devices *devices, struct rdma_service *service)
{
    char text[RDMA_MESSAGE_MAX];
    uint32_t count;
    if (!attach_all(devices, service, &count)) {
        rdma_service_halt(service);
        rdma_service_free(service);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct rdma_worker *worker = worker_at(service, i);
        worker->joining.visit = on_joining;
        worker_post(worker->owner, &worker->joining);
    }
    snprintf(text, sizeof text, "port %d of the device %s is in use from now on",
             service->device.port, service->device.name);
    devices->options.warn(devices->options.warn_arg, text);
    return true;
}

static void look(struct rdma_devices *devices)
{
    struct rdma_listed listed[LISTED_MAX];
    uint32_t count = 0, kept = 0;
    struct rdma_service *service;
    char message[RDMA_ERROR_MAX];
    if (!rdma_devices_list(listed, LISTED_MAX, &count))
        return;
    for (uint32_t i = 0; i < devices->service_count; i++) {
        struct rdma_listed entry = entry_of(devices->services[i]);
        if (!is_among(listed, count, &entry))
            rdma_device_gone(devices->services[i]);
    }
    retire_lost(devices);
    for (uint32_t i = 0; i < devices->failed_count; i++)
        if (is_among(listed, count, &devices->failed[i]))
            devices->failed[kept++] = devices->failed[i];
    devices->failed_count = kept;
    do
        service = rdma_devices_open_next(devices, message);
    while (service != NULL && take_into_use(devices, service));
}

/* ---- those that wait for it ---- */

/* If the connection's own address belongs to no device (as with Unix sockets), takes the address
 * from which the system would send to the peer. */
static void find_route(struct rdma_devices *devices, struct rdma_path *path)
{
    uint8_t source[16];
    struct rdma_path routed = *path;
    if (!path->has_peer ||
        rdma_is_address_of_any(devices->services, devices->service_count, path) ||
        !rdma_route(path->peer, source))
        return;
    memcpy(routed.local, source, sizeof source);
    routed.has_local = true;
    if (rdma_is_address_of_any(devices->services, devices->service_count, &routed))
        *path = routed;
}

static bool has_stopped(struct rdma_devices *devices)
{
    pthread_mutex_lock(&devices->lock);
    bool has = devices->is_stopping;
    pthread_mutex_unlock(&devices->lock);
    return has;
}

static void on_sought(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    struct rdma_seeking *seeking = (struct rdma_seeking *)message;
    struct rdma_request *request = seeking->request;
    struct rdma_poll_group *group = seeking->group;
    free(seeking);
    if (!has_stopped(group->devices) && rdma_group_connect(group, request))
        return;
    if (request->error[0] == '\0')
        snprintf(request->error, sizeof request->error, "the server is stopping");
    request->done(request);
}

static void answer(struct rdma_devices *devices, struct rdma_seeking *seekers)
{
    struct rdma_seeking *next;
    for (; seekers != NULL; seekers = next) {
        next = seekers->next;
        find_route(devices, &seekers->request->path);
        seekers->message.visit = on_sought;
        worker_post(seekers->group->owner, &seekers->message);
    }
}

/* ---- the thread ---- */

static void *watch(void *arg)
{
    struct rdma_devices *devices = arg;
    bool is_stopping = false;
    pthread_setname_np(pthread_self(), "rdma-devices");
    pthread_mutex_lock(&devices->lock);
    while (!is_stopping) {
        while (!devices->is_asked && !devices->is_stopping && devices->seekers == NULL)
            pthread_cond_wait(&devices->wake, &devices->lock);
        struct rdma_seeking *seekers = devices->seekers;
        bool looks = devices->is_asked || rdma_devices_look_is_due(devices);
        devices->seekers = NULL;
        devices->is_asked = false;
        is_stopping = devices->is_stopping;
        pthread_mutex_unlock(&devices->lock);
        if (!is_stopping)
            drop_those_that_left(devices);
        if (looks && !is_stopping)
            look(devices);
        answer(devices, seekers);
        pthread_mutex_lock(&devices->lock);
        if (looks)
            devices->looked_ns = rdma_clock_ns();
    }
    pthread_mutex_unlock(&devices->lock);
    return NULL;
}

bool rdma_watcher_start(struct rdma_devices *devices)
{
    devices->looked_ns = rdma_clock_ns();
    devices->has_watcher = pthread_create(&devices->watcher, NULL, watch, devices) == 0;
    return devices->has_watcher;
}

void rdma_watcher_stop(struct rdma_devices *devices)
{
    pthread_mutex_lock(&devices->lock);
    devices->is_stopping = true;
    pthread_cond_signal(&devices->wake);
    pthread_mutex_unlock(&devices->lock);
    pthread_join(devices->watcher, NULL);
}
