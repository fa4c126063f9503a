/*
 * Bringing queue pairs to their peers, on threads that may wait for the network: see resolve.c.
 */
#ifndef VELLUM_RDMA_RESOLVE_H
#define VELLUM_RDMA_RESOLVE_H

#include <pthread.h>
#include <stdint.h>

struct rdma_channel;
struct rdma_service;

#define RESOLVERS_MAX 64 /* threads */

/* See resolve.c. Under the service's lock. */
struct rdma_resolving {
    pthread_cond_t wake;
    struct rdma_channel *queue;
    struct rdma_channel *under_way[RESOLVERS_MAX];
    pthread_t threads[RESOLVERS_MAX];
    uint32_t thread_count, idle;
    uint32_t channels; /* with resolvers now */
};

/* Thread: the helper. Has the channel's queue pair connected, then submits its job. */
void rdma_resolve(struct rdma_service *service, struct rdma_channel *channel);
/* When is_stopping is set and the helper has ended: joins the threads. */
void rdma_resolvers_stop(struct rdma_service *service);

#endif
