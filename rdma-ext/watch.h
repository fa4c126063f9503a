/*
 * Devices that come and go: see watch.c.
 */
#ifndef VELLUM_RDMA_WATCH_H
#define VELLUM_RDMA_WATCH_H

#include <stdbool.h>

struct rdma_devices;
struct rdma_poll_group;
struct rdma_request;

bool rdma_watcher_start(struct rdma_devices *devices);
void rdma_watcher_stop(
    struct rdma_devices *devices); /* called when the workers' threads have ended */
/* Connects after the watcher has looked for devices. False: out of memory. */
bool rdma_devices_seek(struct rdma_poll_group *group, struct rdma_request *request);

#endif
