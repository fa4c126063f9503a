/*
 * One port of a device in use, with the helper thread that makes the slow calls about it: see
 * service.c.
 */
#ifndef VELLUM_RDMA_SERVICE_H
#define VELLUM_RDMA_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/net/rdma.h"
#include "rdma-ext/jobs.h"
#include "rdma-ext/resolve.h"
#include "rdma-ext/verbs.h"

struct rdma_devices;
struct rdma_poll_group;
struct rdma_worker;

/* One port of a device, in use. */
struct rdma_service {
    struct rdma_device device;
    struct rdma_devices *devices;
    _Atomic uint32_t staying; /* workers that still have it, while it is leaving */
    bool is_halted;
    uint32_t max_channels, chunks_max;
    uint32_t max_held_bytes;         /* of each channel */
    bool is_gid_fixed;               /* all channels use the device's */
    uint8_t gids[RDMA_GIDS_MAX][16]; /* of its port, as last seen by the helper */
    uint32_t gid_count;
    bool is_active;     /* of the port, as are device.lid and device.mtu */
    bool is_looking;    /* the helper has been asked to look at it */
    uint64_t looked_ns; /* when it last did */
    struct rdma_job looking;
    void (*warn)(void *arg, const char *text);
    void *warn_arg;
    _Atomic uint32_t channel_count;
    _Atomic uint64_t failures; /* calls refused, queues and devices that failed */
    _Atomic uint64_t said_ns;  /* last log line of a kind that clients can cause */
    _Atomic bool is_lost;      /* the device has failed, or was removed */
    struct rdma_worker **workers;
    uint32_t worker_count;

    /* page_registration.c */
    bool (*pages_around)(void *arg, const void *address, void **start, size_t *size);
    void *pages_arg;
    struct ibv_mr **regions; /* room for REGIONS_MAX */
    _Atomic uint32_t region_count;
    _Atomic uint64_t registered_bytes;
    _Atomic bool is_registering;
    const void *wanted_page;
    struct rdma_job registering;

    pthread_t helper;
    pthread_mutex_t lock; /* protects jobs, stopping, GIDs, the port, the list of workers */
    struct rdma_jobs jobs;
    struct rdma_resolving resolving;
    bool is_stopping;
    int wake_fd;

    /* the helper thread's own */
    struct rdma_jobs delayed; /* the next one that is due first */
    int error;                /* of the last failure to pin memory or create a queue */
    bool has_warned;          /* it has logged that error */
};

/* Opens a device and starts its service. NULL: none is suitable, or `unusable` is not: a device
 * that was opened, but cannot serve (else its name is empty). `message` says why. */
struct rdma_service *rdma_service_open(struct rdma_devices *devices,
                                       const struct rdma_choice *choice,
                                       struct rdma_listed *unusable, char message[RDMA_ERROR_MAX]);
/* The functions of rdma_ops, for one device. */
void rdma_service_halt(struct rdma_service *service);
void rdma_service_free(struct rdma_service *service);
struct rdma_worker *rdma_service_attach(struct rdma_service *service,
                                        struct rdma_poll_group *group);
/* Its state, the GIDs that its channels may send from, and its share of the counts. Thread: any. */
void rdma_service_describe(struct rdma_service *service, struct rdma_port_info *port);
void rdma_service_gids(struct rdma_service *service, struct rdma_info *info);
void rdma_service_count(struct rdma_service *service, struct rdma_info *info);

#endif
