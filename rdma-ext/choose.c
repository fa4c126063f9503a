/*
 * Which device serves a channel. A port that is down is chosen after all that are up, and a device
 * that has failed last of all. Among those that are up, in this order:
 *
 *     on Ethernet, one that has the address which the connection has come to
 *     on InfiniBand, one of the peer's subnet
 *     on Ethernet, one that has an address of the peer's family
 *     any, the one that came into use first
 */
#include "rdma-ext/private.h"

#include <string.h>

#define SUBNET_BYTES 8 /* of an InfiniBand GID */

enum worth { WORTH_ANY = 1, WORTH_FAMILY, WORTH_SUBNET, WORTH_ADDRESS, WORTH_UP = 8 };

static bool is_mapped_ipv4(const uint8_t gid[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid, prefix, sizeof prefix) == 0;
}

/* The service's lock is held. */
static int worth_on_ethernet(const struct rdma_service *service, const struct rdma_path *path)
{
    int best = WORTH_ANY;
    for (uint32_t i = 0; i < service->gid_count; i++) {
        const uint8_t *gid = service->gids[i];
        if (path->has_local && memcmp(gid, path->local, sizeof path->local) == 0)
            return WORTH_ADDRESS;
        if (path->has_peer && is_mapped_ipv4(gid) == is_mapped_ipv4(path->peer))
            best = WORTH_FAMILY;
    }
    return best;
}

static int worth_on_infiniband(const struct rdma_service *service, const struct rdma_path *path)
{
    bool is_near = path->has_peer && memcmp(service->device.gid.raw, path->peer, SUBNET_BYTES) == 0;
    return is_near ? WORTH_SUBNET : WORTH_ANY;
}

static int worth_of(struct rdma_service *service, const struct rdma_path *path)
{
    if (atomic_load(&service->is_lost))
        return 0;
    pthread_mutex_lock(&service->lock);
    int worth = service->device.is_ethernet ? worth_on_ethernet(service, path)
                                            : worth_on_infiniband(service, path);
    if (service->is_active)
        worth += WORTH_UP;
    pthread_mutex_unlock(&service->lock);
    return worth;
}

struct rdma_service *rdma_choose(struct rdma_service *const *services, uint32_t count,
                                 const struct rdma_path *path)
{
    struct rdma_service *best = NULL;
    int most = -1;
    for (uint32_t i = 0; i < count; i++) {
        int worth = worth_of(services[i], path);
        if (worth > most) {
            most = worth;
            best = services[i];
        }
    }
    return best;
}
