/*
 * What a worker's thread does with the channels of one device: see completion_loop.c.
 */
#ifndef VELLUM_RDMA_COMPLETION_LOOP_H
#define VELLUM_RDMA_COMPLETION_LOOP_H

#include <stdatomic.h>

#include "server/net/rdma.h"
#include "rdma-ext/setup_jobs.h"
#include "rdma-ext/service.h"
#include "rdma-ext/stages.h"

struct rdma_channel;
struct rdma_link;

#define CHANNEL_HASH 256 /* by queue pair number */

/* Counters for INFO. Each is written by one thread, read by any. */
struct rdma_counters {
    _Atomic uint64_t opened, refused, breaches, broken, frames_in, frames_out, bytes_in, bytes_out,
        copied_bytes, placed_bytes, pulled_bytes, held_bytes;
};

struct rdma_worker {
    struct rdma_service *service;
    struct rdma_poll_group *group;
    struct worker *owner;
    bool is_leaving; /* the group drops it when it has no channels */
    struct worker_message joining, leaving, farewell;
    struct ibv_comp_channel *events;
    bool is_armed;
    _Atomic bool has_failed; /* its queues, or the device: all channels end */
    bool is_ending_all;      /* the channels have been ended because of that */
    bool is_deaf;            /* completion events have stopped for good */

    struct rdma_engine engine; /* cq NULL: none, or being created by the helper */
    struct rdma_chunk *chunks; /* room for service->chunks_max */
    uint32_t chunk_count;
    uint32_t *free_blocks; /* a stack */
    uint32_t free_count;
    struct rdma_channel **channels; /* by place; NULL: free */
    uint32_t channel_count;         /* including those being created or destroyed */
    uint32_t connecting, making;    /* of mode send: being created; of these, with a new chunk */
    struct rdma_channel *by_number[CHANNEL_HASH];
    struct rdma_channel *ready, *touched;
    struct rdma_stages stages;
    uint32_t last_region; /* where the last page was found */

    struct rdma_counters counters;

    /* the helper thread's */
    struct rdma_engine made;
    struct worker_message failing;
    _Atomic bool is_failing_posted;
    struct rdma_job recycling;
    uint32_t recycled_chunks;
};

/* None of its channels still sends what was written before the connection closed. */
bool rdma_worker_has_ended(const struct rdma_worker *worker);

/* Increments a counter that one thread writes. */
static inline void rdma_count(_Atomic uint64_t *counter, uint64_t amount)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + amount, memory_order_relaxed);
}

struct rdma_worker *rdma_worker_new(struct rdma_service *service, struct rdma_poll_group *group);
void rdma_worker_free(struct rdma_worker *worker); /* when no thread uses it */
bool rdma_worker_connect(struct rdma_worker *worker, struct rdma_request *request);
bool rdma_worker_poll(struct rdma_worker *worker);
bool rdma_worker_sleep(struct rdma_worker *worker);
bool rdma_worker_woken(struct rdma_worker *worker);

/* Messages from the helper thread. */
void rdma_on_made(struct worker *owner, struct worker_message *message);
void rdma_on_connected(struct worker *owner, struct worker_message *message);
void rdma_on_settled(struct worker *owner, struct worker_message *message);
void rdma_on_destroyed(struct worker *owner, struct worker_message *message);
/* Message from the watcher: the device is no longer used. */
void rdma_on_leaving(struct worker *owner, struct worker_message *message);

void rdma_note_ready(struct rdma_channel *channel);   /* its callback must be called */
void rdma_note_touched(struct rdma_channel *channel); /* it may have credits to return */
const char *rdma_received_frame(const struct rdma_worker *worker, uint32_t buffer);
void rdma_post_receive(struct rdma_worker *worker, uint32_t buffer);
void rdma_end_channel(struct rdma_channel *channel);    /* released by its connection */
void rdma_break_off(struct rdma_channel *channel);      /* as rdma_break, and counted */
void rdma_give_up_window(struct rdma_channel *channel); /* refuses a waiting client */

/* Posts a receive of a queue pair's own. */
void rdma_post_own_receive(struct rdma_link *link, uint32_t buffer);

#endif
