/*
 * Memory windows of type 2: they let the server read or write parts of the application's memory, by
 * one key per request, which is valid only for this channel's queue pair and until the request
 * ends. If the device has no such windows, the key is that of the whole registration and valid as
 * long.
 *
 * Threads: those of the channel.
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

#define CLIENT_PULLS 16                   /* in progress, at most */
#define CLIENT_WINDOWS (CLIENT_PULLS + 1) /* and one for a grant */

struct vellum_window {
    struct ibv_mw *mw; /* NULL: not made yet */
    bool is_bound, is_ending;
};

struct vellum_windows {
    bool are_offered;
    struct ibv_qp *qp;
    uint64_t wr_end; /* wr_id of the request that closes window 0 */
    struct vellum_window all[CLIENT_WINDOWS];
    uint32_t pulled, released; /* pulls begun and finished: a ring */
    uint32_t ending;
};

/* The number of sends that the queue pair needs in addition to the link's. */
static inline uint32_t vellum_windows_sends(bool are_offered, uint32_t link_slots)
{
    return are_offered ? link_slots + CLIENT_WINDOWS : 0;
}

/* Whether another pull may begin. */
bool vellum_windows_can_pull(const struct vellum_windows *windows);

/* Open the memory, for a read or as the only memory that may be written. Frames sent after this
 * find it open. False: failed. */
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
