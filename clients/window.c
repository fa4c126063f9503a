/*
 * Opens and closes memory windows. Threads: see window.h.
 *
 * Invariants:
 * 1. Windows of pulls are opened and closed in turn: pull n uses all[n % CLIENT_PULLS].
 * 2. A window is closed once, by the server or here; which of them does it is known when the server
 *    has reported that it has read. Closing a window twice would put the queue pair into error.
 */
#include "clients/window.h"

#include <assert.h>

#define GRANT CLIENT_PULLS

static bool is_free(const struct vellum_window *window)
{
    return !window->is_bound && !window->is_ending;
}

bool vellum_windows_can_pull(const struct vellum_windows *windows)
{
    return windows->pulled - windows->released < CLIENT_PULLS &&
           is_free(&windows->all[windows->pulled % CLIENT_PULLS]);
}

static bool bind(struct vellum_windows *windows, struct vellum_window *window,
                 const struct vellum_span *span, unsigned access)
{
    if (window->mw == NULL)
        window->mw = ibv_alloc_mw(windows->qp->pd, IBV_MW_TYPE_2);
    if (window->mw == NULL)
        return false;
    struct ibv_send_wr *bad, request = {.opcode = IBV_WR_BIND_MW};
    request.bind_mw.mw = window->mw;
    request.bind_mw.rkey = ibv_inc_rkey(window->mw->rkey);
    request.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = span->mr,
                                                          .addr = (uintptr_t)span->at,
                                                          .length = span->length,
                                                          .mw_access_flags = access};
    if (ibv_post_send(windows->qp, &request, &bad) != 0)
        return false;
    window->mw->rkey = request.bind_mw.rkey; /* not every provider sets it */
    window->is_bound = true;
    return true;
}

static bool open_window(struct vellum_windows *windows, uint32_t index,
                        const struct vellum_span *span, unsigned access,
                        struct rdma_reference *reference)
{
    struct vellum_window *window = &windows->all[index];
    *reference = (struct rdma_reference){
        .address = (uintptr_t)span->at, .length = span->length, .rkey = span->mr->rkey};
    if (!windows->are_offered)
        return true;
    if (!is_free(window) || !bind(windows, window, span, access))
        return false;
    reference->rkey = window->mw->rkey;
    reference->is_window = true;
    return true;
}

bool vellum_windows_pull(struct vellum_windows *windows, const struct vellum_span *span,
                         struct rdma_reference *reference)
{
    if (!open_window(windows, windows->pulled % CLIENT_PULLS, span, IBV_ACCESS_REMOTE_READ,
                     reference))
        return false;
    windows->pulled += reference->is_window;
    assert(windows->pulled - windows->released <= CLIENT_PULLS);
    return true;
}

bool vellum_windows_grant(struct vellum_windows *windows, const struct vellum_span *span,
                          struct rdma_reference *reference)
{
    return open_window(windows, GRANT, span, IBV_ACCESS_REMOTE_WRITE, reference);
}

void vellum_windows_ended_by_server(struct vellum_windows *windows, uint32_t key)
{
    for (uint32_t i = 0; i < CLIENT_WINDOWS; i++)
        if (windows->all[i].is_bound && windows->all[i].mw->rkey == key)
            windows->all[i].is_bound = false;
}

static bool close_window(struct vellum_windows *windows, uint32_t index)
{
    struct vellum_window *window = &windows->all[index];
    struct ibv_send_wr *bad, request = {.wr_id = windows->wr_end + index,
                                        .opcode = IBV_WR_LOCAL_INV,
                                        .send_flags = IBV_SEND_SIGNALED};
    if (!window->is_bound)
        return true;
    assert(!window->is_ending); /* invariant 2 */
    request.invalidate_rkey = window->mw->rkey;
    window->is_bound = false;
    window->is_ending = true;
    windows->ending++;
    return ibv_post_send(windows->qp, &request, &bad) == 0;
}

bool vellum_windows_release(struct vellum_windows *windows)
{
    return windows->pulled != windows->released &&
           close_window(windows, windows->released++ % CLIENT_PULLS);
}

bool vellum_windows_end_grant(struct vellum_windows *windows)
{
    return close_window(windows, GRANT);
}

void vellum_windows_ended(struct vellum_windows *windows, uint64_t wr_id)
{
    uint64_t index = wr_id - windows->wr_end;
    assert(index < CLIENT_WINDOWS && windows->ending > 0);
    windows->all[index].is_ending = false;
    windows->ending--;
}

void vellum_windows_free(struct vellum_windows *windows)
{
    for (uint32_t i = 0; i < CLIENT_WINDOWS; i++) {
        if (windows->all[i].mw != NULL)
            ibv_dealloc_mw(windows->all[i].mw);
        windows->all[i] = (struct vellum_window){.mw = NULL};
    }
}
