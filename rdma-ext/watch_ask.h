/*
 * Asks the watcher (watch.c) to look for new and removed devices. A file of its own, because the
 * functions that the watcher calls use it.
 */
#ifndef VELLUM_RDMA_WATCH_ASK_H
#define VELLUM_RDMA_WATCH_ASK_H

#include <stdbool.h>

struct rdma_devices;

/* Asks the watcher to look, at most once a second; the lock is held. */
void rdma_devices_ask(struct rdma_devices *devices);
void rdma_devices_changed(struct rdma_devices *devices); /* at once; the lock is not held */
/* Whether the last look was long enough ago; the lock is held. */
bool rdma_devices_look_is_due(const struct rdma_devices *devices);

#endif
