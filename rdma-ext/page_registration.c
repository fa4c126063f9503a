/*
 * Registers the store's pages with the device in large regions, so that values are written to
 * clients directly from the pages.
 *
 * Invariants:
 * 1. Regions are only added, and by the helper thread; a worker may read those below region_count.
 * 2. One region at a time is being added: is_registering is set by the worker that asks for it. If
 *    it cannot be registered, is_registering stays set, and values outside of the existing regions
 *    are copied from then on.
 */
#include "rdma-ext/page_registration.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "rdma-ext/jobs.h"
#include "rdma-ext/service.h"
#include "rdma-ext/completion_loop.h"

void rdma_job_register(struct rdma_service *service, struct rdma_job *job)
{
    (void)job;
    uint32_t count = atomic_load_explicit(&service->region_count, memory_order_relaxed);
    void *start;
    size_t size;
    assert(atomic_load(&service->is_registering)); /* until this job clears it */
    if (count == REGIONS_MAX)
        return;
    if (!service->pages_around(service->pages_arg, service->wanted_page, &start, &size)) {
        atomic_store(&service->is_registering,
                     false); /* the address is in a copy of a page, or in no page */
        return;
    }
    struct ibv_mr *mr = ibv_reg_mr(service->device.pd, start, size, IBV_ACCESS_LOCAL_WRITE);
    if (mr == NULL) {
        char text[RDMA_MESSAGE_MAX];
        rdma_memory_problem(text, rdma_no_pin, errno);
        service->warn(service->warn_arg, text);
        service->warn(service->warn_arg, "values by reference are copied from now on");
        return;
    }
    assert(service->regions[count] == NULL);
    service->regions[count] = mr;
    atomic_fetch_add(&service->registered_bytes, size);
    atomic_store_explicit(&service->region_count, count + 1, memory_order_release);
    atomic_store(&service->is_registering, false);
}

static bool holds(const struct ibv_mr *mr, const void *address, size_t len)
{
    size_t offset = (uintptr_t)address - (uintptr_t)mr->addr;
    return offset < mr->length && len <= mr->length - offset;
}

bool rdma_pages_key(struct rdma_worker *worker, const void *address, size_t len, uint32_t *lkey)
{
    struct rdma_service *service = worker->service;
    uint32_t count = atomic_load_explicit(&service->region_count, memory_order_acquire);
    if (worker->last_region < count && holds(service->regions[worker->last_region], address, len)) {
        *lkey = service->regions[worker->last_region]->lkey;
        return true;
    }
    for (uint32_t i = 0; i < count; i++)
        if (holds(service->regions[i], address, len)) {
            worker->last_region = i;
            *lkey = service->regions[i]->lkey;
            return true;
        }
    if (!atomic_exchange(&service->is_registering, true)) {
        service->wanted_page = address;
        service->registering.run = rdma_job_register;
        rdma_submit(service, &service->registering);
    }
    return false;
}

void rdma_pages_free(struct rdma_service *service)
{
    uint32_t count = atomic_load(&service->region_count);
    for (uint32_t i = 0; i < count; i++)
        ibv_dereg_mr(service->regions[i]);
    free(service->regions);
}
