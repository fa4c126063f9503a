/*
 * Memory windows of type 2: what the server may read or write of the application's memory, by one
 * key per request, good for this channel's queue pair and no longer than the request. Where the
 * device has no such windows, the key is that of the whole registration, as long as it lasts.
 *
 * Threads: as the channel's.
 */
#ifndef VELLUM_CLIENT_WINDOW_H
#define VELLUM_CLIENT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "protocol/rdma_frame.h"

/* Registered memory. */
struct vellum_span {
    struct ibv_mr *mr;
    char *at;
    size_t length;
};

#define CLIENT_PULLS 16                   /* under way by windows, at most */
#define CLIENT_WINDOWS (CLIENT_PULLS + 1) /* and one for a grant */

struct vellum_window {
    struct ibv_mw *mw; /* NULL: not made yet */
    bool is_bound, is_ending;
};

struct vellum_windows {
    bool are_offered;
    struct ibv_qp *qp;
    uint64_t wr_end; /* wr_id of what ends window 0 */
    struct vellum_window all[CLIENT_WINDOWS];
    uint32_t pulled, released; /* references of windows given, and done with: a ring */
    uint32_t ending;
};

/* What the queue pair is to take of sends beside the link's. */
static inline uint32_t vellum_windows_sends(bool are_offered, uint32_t link_slots)
{
    return are_offered ? link_slots + CLIENT_WINDOWS : 0;
}

/* Whether a reference to be read may be given. */
bool vellum_windows_can_pull(const struct vellum_windows *windows);

/* Opens the memory: to be read, or as the one place that is written to. What is sent after this
 * finds it open. False: it cannot be had. */
bool vellum_windows_pull(struct vellum_windows *windows, const struct vellum_span *span,
                         struct rdma_reference *reference);
bool vellum_windows_grant(struct vellum_windows *windows, const struct vellum_span *span,
                          struct rdma_reference *reference);

/* The server has invalidated a key itself. */
void vellum_windows_ended_by_server(struct vellum_windows *windows, uint32_t key);
/* The oldest pull has completed: closes its window, unless the server did. False: there is none, or
 * closing failed. */
bool vellum_windows_release(struct vellum_windows *windows);
bool vellum_windows_end_grant(struct vellum_windows *windows);

/* The completion with this wr_id has confirmed a window closed here. */
void vellum_windows_ended(struct vellum_windows *windows, uint64_t wr_id);

void vellum_windows_free(struct vellum_windows *windows);

#endif
