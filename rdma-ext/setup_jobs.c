/*
 * Slow verbs calls, as jobs of the helper thread: create, connect, stop and destroy queues, memory
 * and queue pairs.
 */
#include "rdma-ext/setup_jobs.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "rdma-ext/channel.h"
#include "rdma-ext/devices.h"
#include "rdma-ext/failure.h"
#include "rdma-ext/jobs.h"
#include "rdma-ext/port.h"
#include "rdma-ext/resolve.h"
#include "rdma-ext/service.h"
#include "rdma-ext/completion_loop.h"

#define SETTLE_NS (20 * 1000 * 1000)
#define DRAIN_LOOK_NS (5 * 1000 * 1000)
#define END_NS 10000000000 /* for the client to return a credit for END */
#define CHUNK_SEND_BYTES (CHUNK_CHANNELS * SEND_BUFFERS * FRAME_BYTES)
#define CHUNK_BYTES (CHUNK_SEND_BYTES + CHUNK_RECEIVES * FRAME_BYTES)
#define RING_BYTES (CREDITS * FRAME_BYTES)
#define RING_SEND_BYTES (SEND_BUFFERS * FRAME_BYTES)

/* ---- a worker's queues and memory ---- */

static bool pin(struct rdma_service *service, size_t size, int access, struct ibv_mr **mr)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        service->error = errno;
        return false;
    }
    *mr = ibv_reg_mr(service->device.pd, memory, size, access);
    if (*mr != NULL) {
        atomic_fetch_add(&service->devices->pinned_bytes, size);
        return true;
    }
    service->error = errno;
    munmap(memory, size);
    return false;
}

static void unpin(struct rdma_service *service, struct ibv_mr **mr)
{
    if (*mr == NULL)
        return;
    void *memory = (*mr)->addr;
    size_t size = (*mr)->length;
    ibv_dereg_mr(*mr);
    munmap(memory, size);
    *mr = NULL;
    uint64_t before = atomic_fetch_sub(&service->devices->pinned_bytes, size);
    assert(before >= size);
    (void)before;
}

bool rdma_may_pin_at_all(struct rdma_service *service, char message[RDMA_ERROR_MAX])
{
    struct ibv_mr *trial;
    if (!pin(service, STAGES * STAGE_BYTES + CHUNK_BYTES, IBV_ACCESS_LOCAL_WRITE, &trial)) {
        rdma_memory_problem(message, rdma_no_pin, service->error);
        return false;
    }
    unpin(service, &trial);
    return true;
}

static const char pin_limit[] = "the limit of pinned memory is reached (rdma-max-pinned)";
static const char no_queues[] = "queues for the channel cannot be had";

uint32_t rdma_most_completions(const struct rdma_service *service)
{
    return service->chunks_max * CHUNK_RECEIVES +
           service->max_channels * (CREDITS + RDMA_LINK_SLOTS + 1);
}

/* Returns NULL, or an error text. */
static const char *engine_make(struct rdma_worker *worker, struct rdma_engine *engine)
{
    struct rdma_service *service = worker->service;
    uint32_t receives = service->chunks_max * CHUNK_RECEIVES;
    uint32_t completions = rdma_most_completions(service);
    struct ibv_srq_init_attr attributes = {.attr = {.max_wr = receives, .max_sge = 1}};
    engine->cq = ibv_create_cq(service->device.context, (int)completions, NULL, worker->events, 0);
    if (engine->cq != NULL)
        engine->srq = ibv_create_srq(service->device.pd, &attributes);
    bool has_queues = engine->srq != NULL;
    if (!has_queues)
        service->error = errno;
    if (has_queues && pin(service, STAGES * STAGE_BYTES, IBV_ACCESS_LOCAL_WRITE, &engine->staging))
        return NULL;
    rdma_engine_free(service, engine);
    return has_queues ? rdma_no_pin : no_queues;
}

void rdma_engine_free(struct rdma_service *service, struct rdma_engine *engine)
{
    if (engine->srq != NULL)
        ibv_destroy_srq(engine->srq);
    if (engine->cq != NULL)
        ibv_destroy_cq(engine->cq);
    unpin(service, &engine->staging);
    *engine = (struct rdma_engine){.cq = NULL};
}

static bool may_pin(struct rdma_service *service, size_t size)
{
    return atomic_load(&service->devices->pinned_bytes) + size <=
           service->devices->options.max_pinned_bytes;
}

/* Returns NULL, or an error text. */
static const char *chunk_make(struct rdma_service *service, struct rdma_chunk *chunk)
{
    if (!may_pin(service, CHUNK_BYTES))
        return pin_limit;
    if (!pin(service, CHUNK_BYTES, IBV_ACCESS_LOCAL_WRITE, &chunk->mr))
        return rdma_no_pin;
    chunk->memory = chunk->mr->addr;
    return NULL;
}

void rdma_chunk_free(struct rdma_service *service, struct rdma_chunk *chunk)
{
    unpin(service, &chunk->mr);
}

void rdma_job_recycle(struct rdma_service *service, struct rdma_job *job)
{
    struct rdma_worker *worker =
        (struct rdma_worker *)((char *)job - offsetof(struct rdma_worker, recycling));
    assert(worker->recycled_chunks <= service->chunks_max);
    rdma_engine_free(service, &worker->made);
    for (uint32_t i = 0; i < worker->recycled_chunks; i++)
        rdma_chunk_free(service, &worker->chunks[i]);
}

/* ---- a channel's steps ---- */

static struct rdma_channel *channel_of(struct rdma_job *job)
{
    return (struct rdma_channel *)((char *)job - offsetof(struct rdma_channel, job));
}

static void send_back(struct rdma_channel *channel,
                      void (*visit)(struct worker *, struct worker_message *))
{
    channel->message.visit = visit;
    worker_post(channel->worker->owner, &channel->message);
}

static uint32_t random_psn(void)
{
    uint32_t psn = 0;
    ssize_t got = getrandom(&psn, sizeof psn, 0);
    (void)got; /* a predictable sequence number is worse, but works */
    return psn & 0xffffff;
}

/* ---- rings ---- */

static const char *ring_make(struct rdma_service *service, struct rdma_ring *ring)
{
    if (!may_pin(service, RING_BYTES + RING_SEND_BYTES))
        return pin_limit;
    if (!pin(service, RING_SEND_BYTES, IBV_ACCESS_LOCAL_WRITE, &ring->sends) ||
        !pin(service, RING_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, &ring->mr))
        return rdma_no_pin;
    return NULL;
}

/* Opens the ring to the client; the worker gets the completion. The window is created after the
 * queue pair: if the process is killed, the kernel then frees the window first, as it must. */
static bool ring_open(struct rdma_service *service, struct rdma_channel *channel)
{
    struct rdma_ring *ring = &channel->ring;
    ring->window = ibv_alloc_mw(service->device.pd, IBV_MW_TYPE_2);
    if (ring->window == NULL)
        return false;
    struct rdma_end *ours = &channel->request->ours;
    struct ibv_send_wr *bad, bind = {.wr_id = channel->link.wr_id | WR_BIND,
                                     .opcode = IBV_WR_BIND_MW,
                                     .send_flags = IBV_SEND_SIGNALED};
    bind.bind_mw.mw = ring->window;
    bind.bind_mw.rkey = ibv_inc_rkey(ring->window->rkey);
    bind.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = ring->mr,
                                                       .addr = (uintptr_t)ring->mr->addr,
                                                       .length = RING_BYTES,
                                                       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
    ours->ring = (uintptr_t)ring->mr->addr;
    ours->ring_key = ring->key = bind.bind_mw.rkey;
    if (ibv_post_send(channel->qp, &bind, &bad) != 0)
        return false;
    ring->window->rkey = bind.bind_mw.rkey; /* not every provider sets it */
    return true;
}

/* The window is freed first: it holds references to the region and to the queue pair. */
void rdma_channel_dismantle(struct rdma_service *service, struct rdma_channel *channel)
{
    struct rdma_ring *ring = &channel->ring;
    if (ring->window != NULL)
        ibv_dealloc_mw(ring->window);
    ring->window = NULL;
    if (channel->qp != NULL)
        ibv_destroy_qp(channel->qp);
    channel->qp = NULL;
    unpin(service, &ring->mr);
    unpin(service, &ring->sends);
}

/* ---- connecting ---- */

/* Returns NULL, or an error text. */
static const char *make_queue_pair(struct rdma_service *service, struct rdma_channel *channel)
{
    const struct rdma_engine *engine = &channel->engine;
    bool is_write = channel->request->theirs.mode == RDMA_MODE_WRITE;
    struct ibv_qp_init_attr attributes = {.qp_context = channel,
                                          .send_cq = engine->cq,
                                          .recv_cq = engine->cq,
                                          .cap = rdma_link_capacity()};
    attributes.cap.max_send_sge = service->device.max_sge < RDMA_LINK_PIECES
                                      ? (uint32_t)service->device.max_sge
                                      : RDMA_LINK_PIECES;
    if (is_write) {
        attributes.cap.max_recv_wr = CREDITS;
    } else {
        attributes.srq = engine->srq;
        attributes.cap.max_recv_sge = 0; /* receives are in the shared queue */
    }
    channel->qp =
        rdma_qp_make(&service->device, &attributes, is_write ? IBV_ACCESS_REMOTE_WRITE : 0);
    if (channel->qp == NULL) {
        service->error = errno;
        return no_queues;
    }
    channel->max_inline = attributes.cap.max_inline_data;
    channel->link.max_pieces = attributes.cap.max_send_sge < RDMA_LINK_PIECES
                                   ? attributes.cap.max_send_sge
                                   : RDMA_LINK_PIECES;
    for (int i = 0; is_write && i < CREDITS; i++)
        rdma_post_own_receive(&channel->link, 0);
    return channel->link.has_failed ? "the channel's queue pair takes nothing" : NULL;
}

/* Adds the system's reason, if there is one. Logged once: the failure will repeat. */
static const char *tell(struct rdma_service *service, struct rdma_request *request,
                        const char *problem)
{
    if (problem != rdma_no_pin && problem != no_queues)
        return problem;
    rdma_memory_problem(request->error, problem, service->error);
    if (!service->has_warned)
        service->warn(service->warn_arg, request->error);
    service->has_warned = true;
    return request->error;
}

/* Makes the resources shared by channels, which the worker gets before this channel is
 * connected. Returns NULL, or an error text. */
static const char *make_shared(struct rdma_service *service, struct rdma_channel *channel)
{
    struct rdma_worker *worker = channel->worker;
    const char *problem = NULL;
    if (worker->made.cq == NULL)
        problem = engine_make(worker, &worker->made);
    channel->engine = worker->made;
    if (problem == NULL && channel->makes_chunk)
        problem = chunk_make(service, &channel->chunk);
    channel->made.visit = rdma_on_made;
    worker_post(worker->owner, &channel->made);
    return problem;
}

/* Returns NULL, or an error text; the caller then destroys what was created. */
static const char *make_own(struct rdma_service *service, struct rdma_channel *channel)
{
    struct rdma_request *request = channel->request;
    const char *problem = NULL;
    if (atomic_load(&request->is_given_up))
        return "nobody waits for it";
    if (request->theirs.mode == RDMA_MODE_WRITE)
        problem = ring_make(service, &channel->ring);
    if (problem == NULL)
        problem = make_queue_pair(service, channel);
    if (problem != NULL)
        return problem;
    rdma_look_at_port(service);
    if (!service->is_active)
        return "the port of the device is down";
    channel->speaker = service->device;
    if (request->path.has_local && !service->is_gid_fixed)
        rdma_device_speak_from(&channel->speaker, request->path.local);
    rdma_qp_describe(&channel->speaker, channel->qp, random_psn(), &request->ours);
    request->ours.mode = request->theirs.mode;
    return NULL;
}

static void answer(struct rdma_service *service, struct rdma_channel *channel, const char *problem)
{
    struct rdma_request *request = channel->request;
    if (problem != NULL && problem != request->error)
        snprintf(request->error, sizeof request->error, "%s", problem);
    if (problem != NULL)
        rdma_channel_dismantle(service, channel); /* nothing was sent on it */
    send_back(channel, rdma_on_connected);
}

static void job_connected(struct rdma_service *service, struct rdma_job *job)
{
    struct rdma_channel *channel = channel_of(job);
    struct rdma_request *request = channel->request;
    const char *problem = NULL;
    if (channel->resolve_error != 0) {
        snprintf(request->error, sizeof request->error, "the other end cannot be reached: %s",
                 strerror(channel->resolve_error));
        problem = request->error;
    } else if (channel->ring.mr != NULL && !ring_open(service, channel)) {
        problem = "the memory window cannot be had";
    }
    answer(service, channel, problem);
}

void rdma_job_connect(struct rdma_service *service, struct rdma_job *job)
{
    struct rdma_channel *channel = channel_of(job);
    assert(channel->qp == NULL && channel->chunk.mr == NULL && channel->ring.mr == NULL);
    const char *problem = make_shared(service, channel);
    if (problem == NULL)
        problem = make_own(service, channel);
    if (problem != NULL) {
        answer(service, channel, tell(service, channel->request, problem));
        return;
    }
    job->run = job_connected;
    rdma_resolve(service, channel);
}

static void settled(struct rdma_service *service, struct rdma_job *job)
{
    (void)service;
    send_back(channel_of(job), rdma_on_settled);
}

/* A receive that was being filled may still complete: not every device reports its last one. Failed
 * queues report nothing. */
static void await_drain(struct rdma_service *service, struct rdma_job *job)
{
    struct rdma_channel *channel = channel_of(job);
    bool is_over = atomic_load(&channel->is_drained) || atomic_load(&channel->worker->has_failed);
    if (is_over)
        job->run = settled;
    rdma_delay(service, job, is_over ? SETTLE_NS : DRAIN_LOOK_NS);
}

static struct rdma_channel *channel_of_deadline(struct rdma_job *job)
{
    return (struct rdma_channel *)((char *)job - offsetof(struct rdma_channel, deadline));
}

static void end_is_overdue(struct rdma_service *service, struct rdma_job *job)
{
    (void)service;
    struct rdma_channel *channel = channel_of_deadline(job);
    channel->has_deadline = false;
    channel->overdue.visit = rdma_on_overdue;
    worker_post(channel->worker->owner, &channel->overdue);
}

void rdma_job_await_end(struct rdma_service *service, struct rdma_job *job)
{
    channel_of_deadline(job)->has_deadline = true;
    job->run = end_is_overdue;
    rdma_delay(service, job, END_NS);
}

/* Called before the channel is destroyed: the deadline's job and message are part of it. */
static void drop_deadline(struct rdma_service *service, struct rdma_channel *channel)
{
    if (channel->has_deadline)
        STAILQ_REMOVE(&service->delayed, &channel->deadline, rdma_job, link);
    channel->has_deadline = false;
}

/* Everything posted completes with an error, in order: the last request marks the end. */
void rdma_job_stop(struct rdma_service *service, struct rdma_job *job)
{
    struct rdma_channel *channel = channel_of(job);
    assert(channel->is_gone && channel->qp != NULL); /* job_connected has succeeded */
    drop_deadline(service, channel);
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_send_wr *bad, last = {.wr_id = channel->link.wr_id | WR_DRAIN,
                                     .opcode = IBV_WR_SEND,
                                     .send_flags = IBV_SEND_SIGNALED};
    int problem = ibv_modify_qp(channel->qp, &error, IBV_QP_STATE);
    if (problem == 0)
        problem = ibv_post_send(channel->qp, &last, &bad);
    if (problem != 0) /* what the queue pair will still complete is unknown */
        rdma_worker_fail(channel->worker, "the end of a queue pair", problem);
    job->run = await_drain;
    await_drain(service, job);
}

void rdma_job_destroy(struct rdma_service *service, struct rdma_job *job)
{
    struct rdma_channel *channel = channel_of(job);
    assert(channel->is_gone);
    rdma_channel_dismantle(service, channel);
    send_back(channel, rdma_on_destroyed);
}
