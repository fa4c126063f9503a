/*
 * Jobs for a device's helper thread, which service.c runs.
 */
#include "rdma-ext/jobs.h"

#include <assert.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "rdma-ext/service.h"

uint64_t rdma_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void rdma_wake_helper(struct rdma_service *service)
{
    uint64_t one = 1;
    ssize_t written = write(service->wake_fd, &one, sizeof one);
    assert(written == sizeof one || errno == EAGAIN);
}

void rdma_submit_locked(struct rdma_service *service, struct rdma_job *job)
{
    assert(job->run != NULL && *service->jobs.stqh_last == NULL);
    STAILQ_INSERT_TAIL(&service->jobs, job, link);
    rdma_wake_helper(service);
}

void rdma_submit(struct rdma_service *service, struct rdma_job *job)
{
    pthread_mutex_lock(&service->lock);
    rdma_submit_locked(service, job);
    pthread_mutex_unlock(&service->lock);
}

void rdma_delay(struct rdma_service *service, struct rdma_job *job, uint64_t ns)
{
    job->due_ns = rdma_clock_ns() + ns;
    struct rdma_job *at, *before = NULL;
    STAILQ_FOREACH (at, &service->delayed, link) {
        if (at->due_ns > job->due_ns)
            break;
        before = at;
    }
    if (before == NULL)
        STAILQ_INSERT_HEAD(&service->delayed, job, link);
    else
        STAILQ_INSERT_AFTER(&service->delayed, before, job, link);
}
