#include "rdma-ext/poll_group.h"

#include <assert.h>
#include <string.h>
#include <sys/epoll.h>

#include "rdma-ext/service.h"
#include "rdma-ext/watch_ask.h"
#include "rdma-ext/completion_loop.h"

void rdma_has_left(struct rdma_worker *worker)
{
    struct rdma_devices *devices = worker->service->devices;
    uint32_t before = atomic_fetch_sub(&worker->service->staying, 1);
    assert(before > 0);
    if (before == 1) /* the service may be gone already */
        rdma_devices_changed(devices);
}

bool rdma_group_join(struct rdma_worker *worker)
{
    struct rdma_poll_group *group = worker->group;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = worker};
    if (group->worker_count == GROUP_WORKERS_MAX ||
        epoll_ctl(group->epoll_fd, EPOLL_CTL_ADD, worker->events->fd, &event) != 0)
        return false;
    group->workers[group->worker_count++] = worker;
    return true;
}

void rdma_group_leave(struct rdma_worker *worker)
{
    struct rdma_poll_group *group = worker->group;
    uint32_t i = 0;
    while (i < group->worker_count && group->workers[i] != worker)
        i++;
    if (i < group->worker_count) {
        epoll_ctl(group->epoll_fd, EPOLL_CTL_DEL, worker->events->fd, NULL);
        group->worker_count--;
        memmove(&group->workers[i], &group->workers[i + 1],
                (group->worker_count - i) * sizeof group->workers[0]);
    }
    rdma_has_left(worker);
}
