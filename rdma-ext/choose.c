/*
 * Chooses the device that serves a channel, and its address. Ports that are down come after all
 * that are up, and failed devices last. Ports that are up are chosen in this order:
 *
 *     on Ethernet, one that has the address at which the connection arrived
 *     on InfiniBand, one in the peer's subnet
 *     on Ethernet, one that has an address of the peer's family
 *     any, the one in use for longest
 */
#include "rdma-ext/choose.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma-ext/service.h"

#define ANY_PORT 4791  /* RoCE's */
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
                                 const struct rdma_path *path, bool *fits)
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
    *fits = most >= WORTH_UP + WORTH_SUBNET;
    return best;
}

static bool is_address_of(struct rdma_service *service, const struct rdma_path *path)
{
    pthread_mutex_lock(&service->lock);
    uint32_t i = 0;
    while (i < service->gid_count && memcmp(service->gids[i], path->local, sizeof path->local) != 0)
        i++;
    bool is = path->has_local && i < service->gid_count;
    pthread_mutex_unlock(&service->lock);
    return is;
}

bool rdma_is_address_of_any(struct rdma_service *const *services, uint32_t count,
                            const struct rdma_path *path)
{
    uint32_t i = 0;
    while (i < count && !is_address_of(services[i], path))
        i++;
    return i < count;
}

bool rdma_reaches(struct rdma_service *service, const struct rdma_path *path)
{
    const uint8_t *speaker = is_address_of(service, path) ? path->local : service->device.gid.raw;
    return !service->device.is_ethernet || !path->has_peer ||
           is_mapped_ipv4(speaker) == is_mapped_ipv4(path->peer);
}

/* ---- routes ---- */

/* Returns the length. */
static socklen_t address_of(const uint8_t gid[16], struct sockaddr_storage *address)
{
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
    *address = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (is_mapped_ipv4(gid)) {
        *four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(ANY_PORT)};
        memcpy(&four->sin_addr, gid + 12, 4);
        return sizeof *four;
    }
    *six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(ANY_PORT)};
    memcpy(&six->sin6_addr, gid, 16);
    return sizeof *six;
}

static void gid_of(const struct sockaddr_storage *address, uint8_t gid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    memcpy(gid, mapped, sizeof mapped);
    if (address->ss_family == AF_INET)
        memcpy(gid + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    else
        memcpy(gid, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
}

/* Sends nothing: connecting a datagram socket only sets its local address. */
bool rdma_route(const uint8_t peer[16], uint8_t source[16])
{
    struct sockaddr_storage address;
    socklen_t length = address_of(peer, &address);
    int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool is_known = connect(fd, (struct sockaddr *)&address, length) == 0;
    length = sizeof address;
    is_known = is_known && getsockname(fd, (struct sockaddr *)&address, &length) == 0;
    close(fd);
    if (is_known)
        gid_of(&address, source);
    return is_known;
}
