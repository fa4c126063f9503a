/*
 * The devices of a worker, polled together. Thread: the worker.
 */
#ifndef VELLUM_RDMA_POLL_GROUP_H
#define VELLUM_RDMA_POLL_GROUP_H

#include "server/net/rdma.h"

struct rdma_worker;

#define GROUP_WORKERS_MAX (2 * RDMA_DEVICES_MAX) /* including those that are leaving */

/* A worker's queues on each device, in the order in which the devices came into use. */
struct rdma_poll_group {
    struct rdma_devices *devices;
    struct worker *owner;
    int epoll_fd; /* of the workers' completion channels */
    struct rdma_worker *workers[GROUP_WORKERS_MAX];
    uint32_t worker_count;
};

/* False: there is no room for another. */
bool rdma_group_join(struct rdma_worker *worker);
void rdma_group_leave(struct rdma_worker *worker);
void rdma_has_left(struct rdma_worker *worker); /* the group has dropped it */

#endif
