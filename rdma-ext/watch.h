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
/* Called when the workers' threads have ended. */
void rdma_watcher_stop(struct rdma_devices *devices);
/* Connects after the watcher has looked for devices. False: out of memory. */
bool rdma_devices_seek(struct rdma_poll_group *group, struct rdma_request *request);

#endif
