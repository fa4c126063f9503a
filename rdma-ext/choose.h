/*
 * Which device serves a channel: see choose.c.
 */
#ifndef VELLUM_RDMA_CHOOSE_H
#define VELLUM_RDMA_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

struct rdma_path;
struct rdma_service;

/* The service that suits a channel of that path best. NULL: there is none. *fits: it is up, and
 * has the path's address or is in the peer's subnet. */
struct rdma_service *rdma_choose(struct rdma_service *const *services, uint32_t count,
                                 const struct rdma_path *path, bool *fits);
bool rdma_is_address_of_any(struct rdma_service *const *services, uint32_t count,
                            const struct rdma_path *path);
/* Whether it can send to the peer from an address of the same family. */
bool rdma_reaches(struct rdma_service *service, const struct rdma_path *path);
/* The address from which the system would send to the peer. False: there is no route. */
bool rdma_route(const uint8_t peer[16], uint8_t source[16]);

#endif
