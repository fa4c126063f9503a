/*
 * The devices of a worker: its part in each, polled together. By the worker's thread.
 */
#ifndef VELLUM_RDMA_POLL_GROUP_H
#define VELLUM_RDMA_POLL_GROUP_H

#include "server/net/rdma.h"

struct rdma_worker;

#define GROUP_WORKERS_MAX (2 * RDMA_DEVICES_MAX) /* those that leave included */

/* A worker's queues with each device, in the order in which these came into use. */
struct rdma_poll_group {
    struct rdma_devices *devices;
    struct worker *owner;
    int epoll_fd; /* of the workers' completion channels */
    struct rdma_worker *workers[GROUP_WORKERS_MAX];
    uint32_t worker_count;
};

/* False: no room for another. */
bool rdma_group_join(struct rdma_worker *worker);
void rdma_group_leave(struct rdma_worker *worker);
void rdma_has_left(struct rdma_worker *worker); /* the group has let go of it */

#endif
