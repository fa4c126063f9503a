/*
 * The internals of the server's side of channels: a service for each port of a device (devices.c),
 * with a helper thread and an rdma_worker in each worker. The life of a channel, and the threads
 * that act on it:
 *
 *     worker            helper thread           worker
 *     rdma_worker_connect   rdma_job_connect   rdma_on_made: it may use the queues and memory
 *                           rdma_resolve       (a resolver's thread, resolve.c)
 *                           (setup_jobs.c)     rdma_on_connected: wrapped or dropped
 *     rdma_end_channel      rdma_job_stop      its last request completes
 *                           (waits for that)   rdma_on_settled: everything is polled
 *                           rdma_job_destroy   rdma_on_destroyed: freed
 *
 * Invariants:
 * 1. Verbs calls that may take long are made by the helper thread, and the one that waits for the
 *    network by resolvers; they work on a channel, an engine or a chunk only between the submission
 *    of its job and the message back.
 * 2. An engine has posted at least as many shared receives as its channels of mode send have
 *    credits in total: the receives of a channel's place are posted when the place is first taken,
 *    and each one is reposted after it has completed. In mode write receives have no memory, and
 *    each queue pair has its own.
 * 3. A queue pair is destroyed when none of its completions can still be in the completion queue,
 * or the queue is not polled any more; buffers are freed after that, all together, when the
 * worker's last channel is gone.
 * 4. The queues of a worker that has failed (failure.c) are not used: no completion is taken or
 *    waited for. They are recreated when its last channel is gone.
 */
#ifndef VELLUM_RDMA_CHANNEL_H
#define VELLUM_RDMA_CHANNEL_H

#include "server/net/rdma.h"
#include "rdma-ext/setup_jobs.h"
#include "rdma-ext/link.h"
#include "rdma-ext/service.h"

struct rdma_worker;

/* What carries the connection: TCP, until the channel's first frame arrives. */
struct rdma_transport {
    struct transport base;
    struct transport *tcp;
    struct rdma_channel *channel; /* NULL: the connection continued by TCP */
    unsigned wanted;
    bool is_open; /* bytes are sent over the channel */
};

struct rdma_channel {
    struct rdma_worker *worker;
    struct rdma_transport *transport; /* NULL: not wrapped yet, or closed */
    struct rdma_link link;
    struct transport *tcp; /* only while is_ending: closed when the last frame has arrived */
    bool is_ending;        /* closed by the connection; written bytes and END are still sent */
    bool has_sent_end;
    bool is_gone;   /* being destroyed */
    bool is_broken; /* the connection must be notified that it is closed */
    bool is_ready, is_touched, has_block, awaits_stage;
    bool awaits_window;      /* complete but for the window: the client has no reply yet */
    _Atomic bool is_drained; /* its last request has completed */
    bool is_bound;
    uint32_t place, block; /* in worker->channels; of send buffers */

    void (*let_go)(void *arg); /* called when no READ fills pages any more; or NULL */
    void *let_go_arg;
    struct transport_place *placing; /* its part is being written to the client; or NULL */
    uint64_t placed, held;           /* bytes of that part; bytes counted in held_bytes */

    struct rdma_channel *hash_next, *ready_next, *touched_next;
    TAILQ_ENTRY(rdma_channel) next_waiting; /* if awaits_stage */

    /* for the helper thread */
    struct rdma_job job;
    struct worker_message message, made;
    struct rdma_request *request;
    struct rdma_device speaker; /* the device, with the address it sends from */
    struct rdma_channel *resolve_next;
    int resolve_error; /* of this resolver, or of another one for the same peer; else 0 */
    struct rdma_engine engine;
    struct ibv_qp *qp;
    struct worker_message trouble; /* an event reported that its queue pair failed */
    bool is_troubled;              /* `trouble` was posted */
    struct rdma_job deadline;      /* of END, if it could not be sent at once */
    bool has_deadline;             /* it is delayed */
    struct worker_message overdue;
    uint32_t max_inline;
    bool makes_chunk;
    struct rdma_chunk chunk;
    struct rdma_ring ring;
};

struct transport *rdma_channel_wrap(struct rdma_channel *channel, struct transport *tcp);
bool rdma_channel_stats(const struct transport *transport, struct rdma_stats *stats);
void rdma_channel_received(struct rdma_channel *channel, const struct ibv_wc *completion);
void rdma_channel_pulled(struct rdma_channel *channel); /* no READ fills pages any more */
void rdma_channel_placed(struct rdma_channel *channel); /* placed memory is not needed any more */
void rdma_count_held(struct rdma_channel *channel);
void rdma_channel_break(struct rdma_channel *channel);  /* nothing more is received or sent */
void rdma_channel_finish(struct rdma_channel *channel); /* is_ending: it goes on, if it can */
/* Message from the helper thread: END has waited too long. */
void rdma_on_overdue(struct worker *owner, struct worker_message *message);
unsigned rdma_channel_readiness(const struct rdma_channel *channel);

#endif
