/*
 * What the helper sees of its port, kept in the service for others.
 */
#ifndef VELLUM_RDMA_PORT_H
#define VELLUM_RDMA_PORT_H

struct rdma_service;

/* By the helper: addresses come and go, and the port's state, LID and MTU change. */
void rdma_look_at_gids(struct rdma_service *service);
void rdma_look_at_port(struct rdma_service *service);

#endif
