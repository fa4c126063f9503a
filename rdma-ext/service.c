/*
 * A port of a device, and the helper thread that makes all long verbs calls on it.
 *
 * Invariants:
 * 1. Jobs run one after the other, in the order they were submitted; delayed ones when they are
 * due.
 */
#include "rdma-ext/service.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rdma-ext/devices.h"
#include "rdma-ext/setup_jobs.h"
#include "rdma-ext/failure.h"
#include "rdma-ext/jobs.h"
#include "rdma-ext/link.h"
#include "rdma-ext/page_registration.h"
#include "rdma-ext/port.h"
#include "rdma-ext/resolve.h"
#include "rdma-ext/completion_loop.h"

#define LOOK_NS 1000000000
#define SPARE_CHANNELS 16

/* ---- jobs ---- */

static struct rdma_job *next_job(struct rdma_service *service, bool *is_over)
{
    pthread_mutex_lock(&service->lock);
    struct rdma_job *job = STAILQ_FIRST(&service->jobs);
    if (job != NULL)
        STAILQ_REMOVE_HEAD(&service->jobs, link);
    *is_over = service->is_stopping && service->resolving.channels == 0;
    pthread_mutex_unlock(&service->lock);
    return job;
}

static void run_due(struct rdma_service *service)
{
    struct rdma_job *job;
    while ((job = STAILQ_FIRST(&service->delayed)) != NULL && job->due_ns <= rdma_clock_ns()) {
        STAILQ_REMOVE_HEAD(&service->delayed, link);
        job->run(service, job);
    }
}

static void job_look(struct rdma_service *service, struct rdma_job *job)
{
    (void)job;
    rdma_look_at_port(service);
    pthread_mutex_lock(&service->lock);
    service->is_looking = false; /* not earlier: the job would be in the list twice */
    pthread_mutex_unlock(&service->lock);
}

/* Not every device reports every change, so INFO shows the last known state and asks the helper
 * to look again. */
static void keep_looking(struct rdma_service *service)
{
    if (service->is_looking || rdma_clock_ns() - service->looked_ns < LOOK_NS)
        return;
    service->is_looking = true;
    service->looking.run = job_look;
    rdma_submit_locked(service, &service->looking);
}

static int time_to_wait(const struct rdma_service *service)
{
    const struct rdma_job *next = STAILQ_FIRST(&service->delayed);
    if (next == NULL)
        return -1;
    uint64_t now = rdma_clock_ns(), due = next->due_ns;
    return due <= now ? 0 : (int)((due - now) / 1000000 + 1);
}

static void *help(void *arg)
{
    struct rdma_service *service = arg;
    int events = service->device.context->async_fd; /* -1: no more events can be read */
    pthread_setname_np(pthread_self(), "rdma");
    for (;;) {
        bool is_over;
        struct rdma_job *job;
        while ((job = next_job(service, &is_over)) != NULL)
            job->run(service, job);
        if (is_over)
            return NULL;
        run_due(service);
        struct pollfd ready[] = {{.fd = service->wake_fd, .events = POLLIN},
                                 {.fd = events, .events = POLLIN}};
        uint64_t ignored;
        poll(ready, 2, time_to_wait(service));
        if (ready[0].revents != 0 && read(service->wake_fd, &ignored, sizeof ignored) < 0)
            assert(errno == EAGAIN || errno == EINTR);
        if (ready[1].revents != 0 && !rdma_take_events(service))
            events = -1;
    }
}

/* ---- life ---- */

/* How many channels fit into a queue of the device, if each takes that many entries. The receives
 * of two more chunks take the room of SPARE_CHANNELS. */
static uint32_t channels_in(int entries, uint32_t of_channel)
{
    uint32_t channels = entries > 0 ? (uint32_t)entries / of_channel : 0;
    return channels > SPARE_CHANNELS ? channels - SPARE_CHANNELS : 0;
}

/* Limits the channels to the room in the device's queues. False: there is none. */
static bool set_limits(struct rdma_service *service, const struct rdma_options *options,
                       char message[RDMA_ERROR_MAX])
{
    const struct rdma_device *device = &service->device;
    uint32_t by_completions = channels_in(device->max_cqe, 2 * CREDITS + RDMA_LINK_SLOTS + 1);
    uint32_t by_receives = channels_in(device->max_srq_wr, CREDITS);
    service->max_channels = options->max_channels;
    if (service->max_channels > by_completions)
        service->max_channels = by_completions;
    if (service->max_channels > by_receives)
        service->max_channels = by_receives;
    service->chunks_max = service->max_channels / CHUNK_CHANNELS + 2;
    service->max_held_bytes = options->max_client_bytes;
    snprintf(message, RDMA_ERROR_MAX,
             "the device's queues are too short: %d completions, %d shared receives",
             device->max_cqe, device->max_srq_wr);
    return by_completions > 0 && by_receives > 0;
}

void rdma_service_free(struct rdma_service *service)
{
    for (uint32_t i = 0; i < service->worker_count; i++)
        rdma_worker_free(service->workers[i]);
    rdma_pages_free(service);
    if (service->device.context != NULL)
        rdma_device_close(&service->device);
    if (service->wake_fd >= 0)
        close(service->wake_fd);
    pthread_cond_destroy(&service->resolving.wake);
    pthread_mutex_destroy(&service->lock);
    free(service->workers);
    free(service);
}

static struct rdma_service *new_service(struct rdma_devices *devices)
{
    const struct rdma_options *options = &devices->options;
    struct rdma_service *service = calloc(1, sizeof *service);
    if (service == NULL)
        return NULL;
    pthread_mutex_init(&service->lock, NULL);
    pthread_cond_init(&service->resolving.wake, NULL);
    STAILQ_INIT(&service->jobs);
    STAILQ_INIT(&service->delayed);
    service->devices = devices;
    service->is_gid_fixed = options->gid_index >= 0;
    service->pages_around = options->pages_around;
    service->pages_arg = options->pages_arg;
    service->warn = options->warn;
    service->warn_arg = options->warn_arg;
    service->regions = calloc(REGIONS_MAX, sizeof(struct ibv_mr *));
    service->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return service;
}

/* Queries the device, before the helper starts. */
static bool begin(struct rdma_service *service, char message[RDMA_ERROR_MAX])
{
    int events = service->device.context->async_fd;
    if (!set_limits(service, &service->devices->options, message))
        return false;
    memcpy(service->gids[0], service->device.gid.raw, sizeof service->gids[0]);
    service->gid_count = 1;
    rdma_look_at_gids(service);
    rdma_look_at_port(service);
    fcntl(events, F_SETFL, fcntl(events, F_GETFL) | O_NONBLOCK);
    if (!rdma_may_pin_at_all(service, message))
        return false;
    snprintf(message, RDMA_ERROR_MAX, "cannot start a thread");
    return pthread_create(&service->helper, NULL, help, service) == 0;
}

struct rdma_service *rdma_service_open(struct rdma_devices *devices,
                                       const struct rdma_choice *choice,
                                       struct rdma_listed *unusable, char message[RDMA_ERROR_MAX])
{
    struct rdma_service *service = new_service(devices);
    unusable->name[0] = '\0';
    snprintf(message, RDMA_ERROR_MAX, "out of memory or descriptors");
    if (service == NULL)
        return NULL;
    if (service->wake_fd >= 0 && service->regions != NULL &&
        rdma_device_open(&service->device, choice, message)) {
        if (begin(service, message))
            return service;
        snprintf(unusable->name, sizeof unusable->name, "%s", service->device.name);
        unusable->index = service->device.index;
    }
    rdma_service_free(service);
    return NULL;
}

void rdma_service_halt(struct rdma_service *service)
{
    assert(!service->is_halted); /* its thread can be joined once */
    pthread_mutex_lock(&service->lock);
    service->is_stopping = true;
    pthread_cond_broadcast(&service->resolving.wake);
    pthread_mutex_unlock(&service->lock);
    rdma_wake_helper(service);
    pthread_join(service->helper, NULL);
    rdma_resolvers_stop(service);
    service->is_halted = true;
}

struct rdma_worker *rdma_service_attach(struct rdma_service *service, struct rdma_poll_group *group)
{
    struct rdma_worker *worker = rdma_worker_new(service, group);
    if (worker == NULL)
        return NULL;
    pthread_mutex_lock(&service->lock);
    struct rdma_worker **workers =
        realloc(service->workers, (service->worker_count + 1) * sizeof *workers);
    if (workers != NULL) {
        service->workers = workers;
        workers[service->worker_count++] = worker;
    }
    pthread_mutex_unlock(&service->lock);
    if (workers != NULL)
        return worker;
    rdma_worker_free(worker);
    return NULL;
}

/* ---- figures ---- */

#define LOAD(counter) atomic_load_explicit(&(counter), memory_order_relaxed)

void rdma_service_describe(struct rdma_service *service, struct rdma_port_info *port)
{
    const struct rdma_device *device = &service->device;
    *port = (struct rdma_port_info){
        .port = device->port,
        .is_ethernet = device->is_ethernet,
        .modes = 1u << RDMA_MODE_SEND | (unsigned)device->has_windows << RDMA_MODE_WRITE,
        .end = {.frame_bytes = FRAME_BYTES, .credits = CREDITS},
        .channels = LOAD(service->channel_count),
    };
    snprintf(port->device, sizeof port->device, "%s", device->name);
    memcpy(port->end.gid, device->gid.raw, sizeof port->end.gid);
    pthread_mutex_lock(&service->lock);
    keep_looking(service);
    port->is_active = service->is_active && !LOAD(service->is_lost);
    port->end.lid = device->lid;
    port->end.mtu = rdma_mtu_bytes(device->mtu);
    pthread_mutex_unlock(&service->lock);
}

void rdma_service_gids(struct rdma_service *service, struct rdma_info *info)
{
    pthread_mutex_lock(&service->lock);
    memcpy(info->gids, service->gids, sizeof info->gids);
    info->gid_count = service->gid_count;
    pthread_mutex_unlock(&service->lock);
}

void rdma_service_count(struct rdma_service *service, struct rdma_info *info)
{
    info->registered_bytes += LOAD(service->registered_bytes);
    info->failures += LOAD(service->failures);
    for (uint32_t i = 0; i < service->worker_count; i++) {
        const struct rdma_counters *counters = &service->workers[i]->counters;
        info->opened += LOAD(counters->opened);
        info->refused += LOAD(counters->refused);
        info->breaches += LOAD(counters->breaches);
        info->broken += LOAD(counters->broken);
        info->frames_in += LOAD(counters->frames_in);
        info->frames_out += LOAD(counters->frames_out);
        info->bytes_in += LOAD(counters->bytes_in);
        info->bytes_out += LOAD(counters->bytes_out);
        info->copied_bytes += LOAD(counters->copied_bytes);
        info->placed_bytes += LOAD(counters->placed_bytes);
        info->held_bytes += LOAD(counters->held_bytes);
        info->pulled_bytes += LOAD(counters->pulled_bytes);
    }
}
