#include "rdma-ext/watch_ask.h"

#include "rdma-ext/devices.h"
#include "rdma-ext/jobs.h"

#define LOOK_NS 1000000000

bool rdma_devices_look_is_due(const struct rdma_devices *devices)
{
    return rdma_clock_ns() - devices->looked_ns >= LOOK_NS;
}

void rdma_devices_ask(struct rdma_devices *devices)
{
    if (devices->is_asked || !rdma_devices_look_is_due(devices))
        return;
    devices->is_asked = true;
    pthread_cond_signal(&devices->wake);
}

void rdma_devices_changed(struct rdma_devices *devices)
{
    pthread_mutex_lock(&devices->lock);
    devices->is_asked = true;
    pthread_cond_signal(&devices->wake);
    pthread_mutex_unlock(&devices->lock);
}
