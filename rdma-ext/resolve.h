/*
 * Connects queue pairs to their peers, on threads that may wait for the network: see resolve.c.
 */
#ifndef VELLUM_RDMA_RESOLVE_H
#define VELLUM_RDMA_RESOLVE_H

#include <pthread.h>
#include <stdint.h>

struct rdma_channel;
struct rdma_service;

#define RESOLVERS_MAX 64 /* threads */

/* See resolve.c. The service's lock protects it. */
struct rdma_resolving {
    pthread_cond_t wake;
    struct rdma_channel *queue;
    struct rdma_channel *under_way[RESOLVERS_MAX];
    pthread_t threads[RESOLVERS_MAX];
    uint32_t thread_count, idle;
    uint32_t channels; /* held by resolvers now */
};

/* Thread: the helper. Has the channel's queue pair connected, then submits its job. */
void rdma_resolve(struct rdma_service *service, struct rdma_channel *channel);
/* Joins the threads. Called when is_stopping is set and the helper has ended. */
void rdma_resolvers_stop(struct rdma_service *service);

#endif
