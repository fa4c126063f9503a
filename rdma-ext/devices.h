/*
 * All devices that are in use: see devices.c.
 */
#ifndef VELLUM_RDMA_DEVICES_H
#define VELLUM_RDMA_DEVICES_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/net/rdma.h"
#include "rdma-ext/verbs.h"

struct rdma_service;
struct rdma_seeking;
struct rdma_poll_group;

/* All devices that the process uses: see devices.c and watch.c. */
struct rdma_devices {
    struct rdma_options options;
    char names[RDMA_DEVICES_MAX * RDMA_NAME_MAX];
    _Atomic uint32_t channel_count;
    _Atomic uint64_t pinned_bytes;

    pthread_mutex_t lock; /* protects the rest; taken before a service's lock */
    pthread_cond_t wake;  /* of the watcher */
    struct rdma_service *services[RDMA_DEVICES_MAX], *leaving[RDMA_DEVICES_MAX];
    uint32_t service_count, leaving_count;
    struct rdma_poll_group **groups; /* all, from the start on */
    uint32_t group_count;
    struct rdma_listed failed[RDMA_DEVICES_MAX]; /* not to be opened again */
    uint32_t failed_count;
    struct rdma_info past; /* counts of services that were freed */

    pthread_t watcher;
    bool has_watcher, is_asked, is_stopping;
    uint64_t looked_ns;
    struct rdma_seeking *seekers;
};

/* Opens the next suitable port that is not in use. NULL: there is none, and `message` says why.
 * Devices that turn out to be unusable are passed over, now and later. Thread: the watcher. */
struct rdma_service *rdma_devices_open_next(struct rdma_devices *devices,
                                            char message[RDMA_ERROR_MAX]);
/* Notes a device that has failed. False: there is no room for another. The lock is held. */
bool rdma_devices_note_failed(struct rdma_devices *devices, const struct rdma_listed *device);
/* Like rdma_ops.connect, with the group's devices. */
bool rdma_group_connect(struct rdma_poll_group *group, struct rdma_request *request);

#endif
