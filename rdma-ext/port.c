/*
 * Queries a device's port: its GIDs, state, LID and MTU.
 */
#include "rdma-ext/port.h"

#include <string.h>

#include "rdma-ext/service.h"

/* GIDs change when addresses are added or removed. */
void rdma_look_at_gids(struct rdma_service *service)
{
    uint8_t gids[RDMA_GIDS_MAX][16];
    uint32_t count;
    if (service->is_gid_fixed || !rdma_device_gids(&service->device, gids, RDMA_GIDS_MAX, &count))
        return;
    pthread_mutex_lock(&service->lock);
    memcpy(service->gids, gids, count * sizeof gids[0]);
    service->gid_count = count;
    pthread_mutex_unlock(&service->lock);
}

void rdma_look_at_port(struct rdma_service *service)
{
    struct rdma_port port = {.lid = service->device.lid, .mtu = service->device.mtu};
    rdma_device_look(&service->device, &port);
    pthread_mutex_lock(&service->lock);
    service->device.lid = port.lid;
    service->device.mtu = port.mtu;
    service->is_active = port.is_active;
    service->looked_ns = rdma_clock_ns();
    pthread_mutex_unlock(&service->lock);
}
