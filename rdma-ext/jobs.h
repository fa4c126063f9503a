/*
 * Jobs for a device's helper thread: verbs calls that may take long.
 */
#ifndef VELLUM_RDMA_JOBS_H
#define VELLUM_RDMA_JOBS_H

#include <stdint.h>
#include <sys/queue.h>

struct rdma_service;

STAILQ_HEAD(rdma_jobs, rdma_job);

struct rdma_job {
    void (*run)(struct rdma_service *service, struct rdma_job *job);
    STAILQ_ENTRY(rdma_job) link;
    uint64_t due_ns; /* 0: at once */
};

/* Thread: any. A job is not submitted again before it has begun. */
void rdma_submit(struct rdma_service *service, struct rdma_job *job);
void rdma_submit_locked(struct rdma_service *service, struct rdma_job *job); /* the lock is held */
/* Thread: the helper. */
void rdma_delay(struct rdma_service *service, struct rdma_job *job, uint64_t ns);
void rdma_wake_helper(struct rdma_service *service);

uint64_t rdma_clock_ns(void);

#endif
