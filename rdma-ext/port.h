/*
 * The state of the port, as the helper thread last saw it; other threads read it in the service.
 */
#ifndef VELLUM_RDMA_PORT_H
#define VELLUM_RDMA_PORT_H

struct rdma_service;

/* Thread: the helper. Addresses come and go, and the port's state, LID and MTU change. */
void rdma_look_at_gids(struct rdma_service *service);
void rdma_look_at_port(struct rdma_service *service);

#endif
