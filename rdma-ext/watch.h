/*
 * Devices that come and go: see watch.c.
 */
#ifndef VELLUM_RDMA_WATCH_H
#define VELLUM_RDMA_WATCH_H

#include <stdbool.h>

struct rdma_devices;
struct rdma_poll_group;
struct rdma_request;
struct rdma_worker;

bool rdma_watcher_start(struct rdma_devices *devices);
void rdma_watcher_stop(struct rdma_devices *devices); /* when the workers' threads have ended */
/* Has the watcher look whether devices have come or gone, once a second at most; the lock is held.
 */
void rdma_devices_ask(struct rdma_devices *devices);
void rdma_devices_changed(struct rdma_devices *devices); /* at once; the lock is not held */
/* Connects when the watcher has looked. False: out of memory. */
bool rdma_devices_seek(struct rdma_poll_group *group, struct rdma_request *request);
void rdma_has_left(struct rdma_worker *worker); /* by its thread: the group has let go of it */

#endif
