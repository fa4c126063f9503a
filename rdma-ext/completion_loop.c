/*
 * A worker's channels on one device: completions, turns of the connections, and messages from the
 * helper thread.
 */
#include "rdma-ext/completion_loop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "rdma-ext/channel.h"
#include "rdma-ext/choose.h"
#include "rdma-ext/devices.h"
#include "rdma-ext/setup_jobs.h"
#include "rdma-ext/failure.h"
#include "rdma-ext/jobs.h"
#include "rdma-ext/poll_group.h"
#include "rdma-ext/service.h"

#define POLL_BATCH 16
#define POLL_MAX 64 /* completions taken before the connections get their turn */

/* ---- channels by place and number ---- */

static struct rdma_channel **bucket(struct rdma_worker *worker, uint32_t number)
{
    return &worker->by_number[number % CHANNEL_HASH];
}

static struct rdma_channel *find(struct rdma_worker *worker, uint32_t number)
{
    struct rdma_channel *channel = *bucket(worker, number);
    while (channel != NULL && channel->qp->qp_num != number)
        channel = channel->hash_next;
    return channel;
}

static void unhash(struct rdma_channel *channel, uint32_t number)
{
    struct rdma_channel **at = bucket(channel->worker, number);
    while (*at != NULL && *at != channel)
        at = &(*at)->hash_next;
    if (*at != NULL)
        *at = channel->hash_next;
}

static void unlist(struct rdma_channel *channel)
{
    struct rdma_channel **at = &channel->worker->ready;
    for (; *at != NULL; at = &(*at)->ready_next)
        if (*at == channel) {
            *at = channel->ready_next;
            break;
        }
    for (at = &channel->worker->touched; *at != NULL; at = &(*at)->touched_next)
        if (*at == channel) {
            *at = channel->touched_next;
            break;
        }
}

void rdma_note_ready(struct rdma_channel *channel)
{
    if (channel->is_ready)
        return;
    channel->is_ready = true;
    channel->ready_next = channel->worker->ready;
    channel->worker->ready = channel;
}

void rdma_note_touched(struct rdma_channel *channel)
{
    if (channel->is_touched)
        return;
    channel->is_touched = true;
    channel->touched_next = channel->worker->touched;
    channel->worker->touched = channel;
}

/* ---- memory ---- */

static char *receive_memory(const struct rdma_worker *worker, uint32_t buffer)
{
    const struct rdma_chunk *chunk = &worker->chunks[buffer / CHUNK_RECEIVES];
    size_t first = (size_t)CHUNK_CHANNELS * SEND_BUFFERS;
    return chunk->memory + (first + buffer % CHUNK_RECEIVES) * FRAME_BYTES;
}

const char *rdma_received_frame(const struct rdma_worker *worker, uint32_t buffer)
{
    return receive_memory(worker, buffer);
}

void rdma_post_receive(struct rdma_worker *worker, uint32_t buffer)
{
    assert(buffer / CHUNK_RECEIVES < worker->chunk_count);
    struct ibv_sge piece = {.addr = (uintptr_t)receive_memory(worker, buffer),
                            .length = FRAME_BYTES,
                            .lkey = worker->chunks[buffer / CHUNK_RECEIVES].mr->lkey};
    struct ibv_recv_wr *bad,
        request = {.wr_id = WR_RECEIVE | buffer, .sg_list = &piece, .num_sge = 1};
    if (atomic_load_explicit(&worker->has_failed, memory_order_relaxed))
        return;
    int error = ibv_post_srq_recv(worker->engine.srq, &request, &bad);
    if (error != 0) /* the queue has room for all of them */
        rdma_worker_fail(worker, "ibv_post_srq_recv", error);
}

/* Posts the receives of a channel's share, once: they stay in the queue after the channel is
 * gone. */
static void post_receives(struct rdma_worker *worker, uint32_t block)
{
    struct rdma_chunk *chunk = &worker->chunks[block / CHUNK_CHANNELS];
    uint32_t bit = 1u << block % CHUNK_CHANNELS;
    if ((chunk->posted & bit) != 0)
        return;
    chunk->posted |= bit;
    for (uint32_t i = 0; i < CREDITS; i++)
        rdma_post_receive(worker, block * CREDITS + i);
}

/* The share that is used last is posted immediately, as a reserve. */
static void take_chunk(struct rdma_worker *worker, const struct rdma_chunk *chunk)
{
    uint32_t index = worker->chunk_count++;
    assert(index < worker->service->chunks_max);
    worker->chunks[index] = *chunk;
    worker->chunks[index].posted = 0;
    for (uint32_t i = 0; i < CHUNK_CHANNELS; i++)
        worker->free_blocks[worker->free_count++] = index * CHUNK_CHANNELS + i;
    post_receives(worker, index * CHUNK_CHANNELS);
}

static struct rdma_channel *channel_of_link(struct rdma_link *link)
{
    return (struct rdma_channel *)((char *)link - offsetof(struct rdma_channel, link));
}

void rdma_post_own_receive(struct rdma_link *link, uint32_t buffer)
{
    struct ibv_recv_wr *bad, request = {.wr_id = WR_RECEIVE | WR_OWN | buffer};
    int error = ibv_post_recv(channel_of_link(link)->qp, &request, &bad);
    if (error == 0)
        return;
    link->has_failed = true;
    link->post_error = error;
}

static void post_receive_of_link(struct rdma_link *link, uint32_t buffer)
{
    rdma_post_receive(channel_of_link(link)->worker, buffer);
}

static void give_block(struct rdma_channel *channel)
{
    struct rdma_worker *worker = channel->worker;
    assert(worker->free_count > 0 && !channel->has_block);
    channel->block = worker->free_blocks[--worker->free_count];
    channel->has_block = true;
    post_receives(worker, channel->block);
    const struct rdma_chunk *chunk = &worker->chunks[channel->block / CHUNK_CHANNELS];
    struct rdma_link *link = &channel->link;
    link->buffers =
        chunk->memory + (size_t)(channel->block % CHUNK_CHANNELS) * SEND_BUFFERS * FRAME_BYTES;
    link->lkey = chunk->mr->lkey;
    link->post_receive = post_receive_of_link;
}

static void give_ring(struct rdma_channel *channel)
{
    struct rdma_link *link = &channel->link;
    link->buffers = channel->ring.sends->addr;
    link->lkey = channel->ring.sends->lkey;
    link->ring = channel->ring.mr->addr;
    link->slot_bytes = FRAME_BYTES;
    link->post_receive = rdma_post_own_receive;
}

static void give_buffers(struct rdma_channel *channel)
{
    struct rdma_link *link = &channel->link;
    if (channel->ring.mr != NULL)
        give_ring(channel);
    else
        give_block(channel);
    link->max_held = channel->worker->service->max_held_bytes;
    link->buffer_bytes = FRAME_BYTES;
    link->buffer_count = SEND_BUFFERS;
    link->borrow = rdma_stage_borrow;
    link->give_back = rdma_stage_give_back;
    link->takes = RDMA_TAKES(RDMA_FRAME_DATA) | RDMA_TAKES(RDMA_FRAME_CREDIT) |
                  RDMA_TAKES(RDMA_FRAME_PULL) | RDMA_TAKES(RDMA_FRAME_GRANT);
}

/* ---- completions ---- */

void rdma_break_off(struct rdma_channel *channel)
{
    if (!channel->is_gone && !channel->is_broken)
        rdma_count(&channel->worker->counters.broken, 1);
    rdma_channel_break(channel);
}

static void receive_completed(struct rdma_worker *worker, const struct ibv_wc *completion)
{
    uint32_t buffer = (uint32_t)completion->wr_id;
    struct rdma_channel *channel = find(worker, completion->qp_num);
    bool is_good = completion->status == IBV_WC_SUCCESS;
    if (channel != NULL && !channel->is_gone && is_good) {
        rdma_channel_received(channel, completion);
        return;
    }
    if ((completion->wr_id & WR_OWN) == 0)
        rdma_post_receive(worker, buffer);
    if (channel != NULL)
        rdma_break_off(channel);
}

static void tell_client(struct rdma_channel *channel, bool has_begun)
{
    struct rdma_request *request = channel->request;
    struct rdma_counters *counters = &channel->worker->counters;
    assert(request != NULL && !channel->awaits_window); /* a client is told once */
    channel->request = NULL;
    request->channel = has_begun ? channel : NULL;
    request->ours.frame_bytes = FRAME_BYTES;
    request->ours.credits = CREDITS;
    rdma_count(has_begun ? &counters->opened : &counters->refused, 1);
    request->done(request);
}

/* The window was opened, or failed. */
static void bind_completed(struct rdma_channel *channel, bool is_good)
{
    channel->is_bound = is_good;
    if (!channel->awaits_window) { /* the helper has not announced it yet */
        channel->is_broken = channel->is_broken || !is_good;
        return;
    }
    channel->awaits_window = false;
    if (!is_good)
        snprintf(channel->request->error, sizeof channel->request->error,
                 "the memory window cannot be bound");
    tell_client(channel, is_good);
    if (!is_good)
        rdma_end_channel(channel);
}

void rdma_give_up_window(struct rdma_channel *channel)
{
    bind_completed(channel, false);
}

/* A place is not given away while its channel has requests to complete: the drain, which completes
 * last, has been seen before the queue pair is destroyed, or the queues have failed, and are not
 * polled again before new ones replace them. */
static void send_completed(struct rdma_worker *worker, const struct ibv_wc *completion)
{
    assert(WR_PLACE(completion->wr_id) < worker->service->max_channels);
    struct rdma_channel *channel = worker->channels[WR_PLACE(completion->wr_id)];
    assert(channel != NULL);
    if ((completion->wr_id & WR_BIND) != 0) {
        bind_completed(channel, completion->status == IBV_WC_SUCCESS);
        return;
    }
    if ((completion->wr_id & WR_DRAIN) != 0) {
        atomic_store(&channel->is_drained, true);
        return;
    }
    if (channel->is_gone)
        return;
    if (completion->status != IBV_WC_SUCCESS) {
        rdma_break_off(channel);
        return;
    }
    rdma_link_sent(&channel->link, completion->wr_id);
    if (!channel->link.is_placing)
        rdma_channel_placed(channel);
    if (!channel->link.pull.is_under_way)
        rdma_channel_pulled(channel);
    if (channel->is_ending) {
        rdma_channel_finish(channel);
        return;
    }
    rdma_note_touched(channel);
    rdma_note_ready(channel);
}

/* Returns the number of completions taken: `limit` at most, plus less than a batch. */
static uint32_t take_completions(struct rdma_worker *worker, uint32_t limit)
{
    struct ibv_wc completions[POLL_BATCH];
    uint32_t taken = 0;
    int got;
    do {
        if (atomic_load_explicit(&worker->has_failed, memory_order_relaxed))
            return taken;
        got = ibv_poll_cq(worker->engine.cq, POLL_BATCH, completions);
        if (got < 0)
            rdma_worker_fail(worker, "ibv_poll_cq", 0);
        for (int i = 0; i < got; i++) {
            if ((completions[i].wr_id & WR_RECEIVE) != 0)
                receive_completed(worker, &completions[i]);
            else
                send_completed(worker, &completions[i]);
        }
        taken += got > 0 ? (uint32_t)got : 0;
    } while (got == POLL_BATCH && taken < limit);
    return taken;
}

/* ---- turns ---- */

static void call_back(struct rdma_channel *channel)
{
    struct rdma_transport *transport = channel->transport;
    if (channel->is_gone || transport == NULL || !transport->is_open)
        return;
    unsigned ready = rdma_channel_readiness(channel) & (transport->wanted | TRANSPORT_ENDED);
    if (ready != 0)
        transport->base.ready(transport->base.arg, ready);
    transport = channel->transport; /* the callback may have closed it */
    if (transport != NULL && (rdma_channel_readiness(channel) & transport->wanted) != 0)
        rdma_note_ready(channel);
}

static void tell_credits(struct rdma_worker *worker)
{
    struct rdma_channel *channel, *next = worker->touched;
    worker->touched = NULL;
    while ((channel = next) != NULL) {
        next = channel->touched_next;
        channel->is_touched = false;
        if (channel->is_gone || channel->is_broken || channel->is_ending)
            continue;
        rdma_link_tell(&channel->link);
        if (channel->link.post_error != 0)
            rdma_channel_fail(channel, "a work request", channel->link.post_error);
    }
}

static void give_turns(struct rdma_worker *worker)
{
    struct rdma_channel *channel, *next = worker->ready;
    worker->ready = NULL;
    while ((channel = next) != NULL) {
        next = channel->ready_next;
        channel->is_ready = false;
        call_back(channel);
    }
    tell_credits(worker);
}

/* Usually finds nothing, and must then be cheap. */
bool rdma_worker_poll(struct rdma_worker *worker)
{
    if (worker->engine.cq == NULL)
        return false;
    bool has_ended = rdma_worker_end_failed(worker);
    rdma_stages_hand_out(worker);
    bool has_moved = take_completions(worker, POLL_MAX) > 0 || has_ended || worker->ready != NULL;
    if (has_moved || worker->touched != NULL)
        give_turns(worker);
    return has_moved;
}

bool rdma_worker_sleep(struct rdma_worker *worker)
{
    if (worker->engine.cq == NULL)
        return true;
    rdma_stages_hand_out(worker);
    if (worker->ready != NULL)
        return false;
    if (worker->is_ending_all || worker->is_armed)
        return !atomic_load(&worker->has_failed) || worker->is_ending_all;
    int error = ibv_req_notify_cq(worker->engine.cq, 0);
    worker->is_armed = error == 0;
    if (error != 0)
        rdma_worker_fail(worker, "ibv_req_notify_cq", error);
    return false;
}

/* Arming yields one event: asking for a second would waste a system call. */
bool rdma_worker_woken(struct rdma_worker *worker)
{
    struct ibv_cq *cq;
    void *context;
    if (ibv_get_cq_event(worker->events, &cq, &context) == 0) {
        ibv_ack_cq_events(cq, 1);
        worker->is_armed = false;
        return true;
    }
    if (errno == EAGAIN || errno == EINTR)
        return true;
    worker->is_deaf = true;
    rdma_worker_fail(worker, "ibv_get_cq_event", errno);
    return false;
}

/* ---- beginning ---- */

static struct rdma_channel *new_channel(struct rdma_worker *worker, struct rdma_request *request)
{
    struct rdma_channel *channel = calloc(1, sizeof *channel);
    if (channel == NULL)
        return NULL;
    while (worker->channels[channel->place] != NULL)
        channel->place++;
    assert(channel->place < worker->service->max_channels);
    worker->channels[channel->place] = channel;
    worker->channel_count++;
    channel->worker = worker;
    channel->request = request;
    channel->link.wr_id = (uint64_t)channel->place << 32;
    return channel;
}

static const char out_of_order[] = "the device has failed, or has gone";

static bool is_out_of_order(struct rdma_worker *worker)
{
    return worker->is_deaf || atomic_load(&worker->has_failed) ||
           atomic_load(&worker->service->is_lost);
}

static bool take_one(_Atomic uint32_t *count, uint32_t most)
{
    bool has_room = atomic_fetch_add(count, 1) < most;
    if (!has_room)
        atomic_fetch_sub(count, 1);
    return has_room;
}

/* Takes a place among the channels of this device, and of all devices. */
static bool take_place(struct rdma_service *service)
{
    struct rdma_devices *devices = service->devices;
    if (!take_one(&devices->channel_count, devices->options.max_channels))
        return false;
    if (take_one(&service->channel_count, service->max_channels))
        return true;
    atomic_fetch_sub(&devices->channel_count, 1);
    return false;
}

static void give_place_back(struct rdma_service *service)
{
    atomic_fetch_sub(&service->channel_count, 1);
    atomic_fetch_sub(&service->devices->channel_count, 1);
}

static bool refuse(struct rdma_worker *worker, struct rdma_request *request, const char *problem)
{
    rdma_count(&worker->counters.refused, 1);
    snprintf(request->error, sizeof request->error, "%s", problem);
    return false;
}

/* Whether the device can serve the request; if not, the request gets the reason. */
static bool may_connect(struct rdma_worker *worker, struct rdma_request *request)
{
    struct rdma_service *service = worker->service;
    if (request->theirs.mode == RDMA_MODE_WRITE && !service->device.has_windows)
        return refuse(worker, request, "the mode offered to this connection is send");
    if (service->device.is_ethernet && !request->is_peers_own)
        return refuse(worker, request,
                      "the GID is not the address of this connection (rdma-check-peer)");
    if (!rdma_reaches(service, &request->path))
        return refuse(worker, request,
                      "of IPv4 and IPv6 the GID is not the one that is offered to this "
                      "connection (rdma-gid-index)");
    return true;
}

bool rdma_worker_connect(struct rdma_worker *worker, struct rdma_request *request)
{
    struct rdma_service *service = worker->service;
    struct rdma_channel *channel;
    if (is_out_of_order(worker))
        return refuse(worker, request, out_of_order);
    if (!may_connect(worker, request))
        return false;
    if (!take_place(service))
        return refuse(worker, request, "too many channels are open (rdma-max-channels)");
    channel = new_channel(worker, request);
    if (channel == NULL) {
        give_place_back(service);
        return refuse(worker, request, "out of memory");
    }
    if (request->theirs.mode == RDMA_MODE_SEND) {
        channel->makes_chunk =
            worker->free_count + worker->making * CHUNK_CHANNELS <= worker->connecting;
        worker->making += channel->makes_chunk;
        worker->connecting++;
    }
    channel->job.run = rdma_job_connect;
    rdma_submit(service, &channel->job);
    return true;
}

static void recycle(struct rdma_worker *worker)
{
    assert(worker->channel_count == 0 && worker->connecting == 0 && worker->making == 0);
    assert(worker->free_count == worker->chunk_count * CHUNK_CHANNELS); /* all shares are back */
    worker->engine = (struct rdma_engine){.cq = NULL};
    worker->is_armed = worker->is_ending_all = false;
    atomic_store(&worker->has_failed, false);
    worker->recycled_chunks = worker->chunk_count;
    worker->chunk_count = worker->free_count = 0;
    worker->recycling.run = rdma_job_recycle;
    rdma_submit(worker->service, &worker->recycling);
}

static void forget(struct rdma_channel *channel)
{
    struct rdma_worker *worker = channel->worker;
    assert(!rdma_has_stage(channel) && !channel->awaits_stage && channel->qp == NULL);
    assert(worker->channels[channel->place] == channel && worker->channel_count > 0);
    worker->channels[channel->place] = NULL;
    worker->channel_count--;
    give_place_back(worker->service);
    unlist(channel);
    free(channel);
    if (worker->channel_count > 0)
        return;
    recycle(worker);
    if (worker->is_leaving)
        rdma_group_leave(worker);
}

void rdma_on_leaving(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    struct rdma_worker *worker =
        (struct rdma_worker *)((char *)message - offsetof(struct rdma_worker, leaving));
    worker->is_leaving = true;
    if (worker->channel_count == 0)
        rdma_group_leave(worker);
}

/* False: it has failed and is being destroyed. */
static bool begin(struct rdma_channel *channel)
{
    struct rdma_worker *worker = channel->worker;
    struct rdma_request *request = channel->request;
    const char *problem = NULL;
    if (channel->qp == NULL)
        return false;
    uint32_t number = channel->qp->qp_num;
    channel->hash_next = *bucket(worker, number);
    *bucket(worker, number) = channel;
    if (is_out_of_order(worker))
        problem = out_of_order;
    else if (channel->is_broken)
        problem = "the channel has failed before it began";
    else if (channel->ring.mr == NULL && worker->free_count == 0)
        problem = "no memory for the channel"; /* creating a chunk failed */
    if (problem != NULL) {
        snprintf(request->error, sizeof request->error, "%s", problem);
        rdma_end_channel(channel);
        return false;
    }
    give_buffers(channel);
    rdma_link_begin(&channel->link, channel->qp, channel->max_inline, CREDITS, &request->theirs);
    return true;
}

static struct rdma_channel *channel_of(struct worker_message *message)
{
    return (struct rdma_channel *)((char *)message - offsetof(struct rdma_channel, message));
}

void rdma_on_made(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    struct rdma_channel *channel =
        (struct rdma_channel *)((char *)message - offsetof(struct rdma_channel, made));
    struct rdma_worker *worker = channel->worker;
    assert(worker->making >= channel->makes_chunk);
    worker->making -= channel->makes_chunk;
    worker->engine = channel->engine;
    if (channel->chunk.mr != NULL)
        take_chunk(worker, &channel->chunk);
}

void rdma_on_connected(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    struct rdma_channel *channel = channel_of(message);
    struct rdma_worker *worker = channel->worker;
    bool is_send = channel->request->theirs.mode == RDMA_MODE_SEND;
    assert(!channel->is_gone && worker->connecting >= is_send);
    worker->connecting -= is_send;
    bool has_begun = begin(channel);
    channel->awaits_window = has_begun && channel->ring.mr != NULL && !channel->is_bound;
    if (channel->awaits_window)
        return;
    tell_client(channel, has_begun);
    if (channel->qp == NULL)
        forget(channel);
}

/* ---- ending ---- */

void rdma_end_channel(struct rdma_channel *channel)
{
    assert(!channel->is_gone && channel->qp != NULL);
    channel->is_gone = true;
    channel->transport = NULL;
    rdma_stage_wait_no_more(channel);
    if (channel->tcp != NULL)
        channel->tcp->ops->close(channel->tcp);
    channel->tcp = NULL;
    rdma_link_drop_input(&channel->link);
    channel->job.run = rdma_job_stop;
    rdma_submit(channel->worker->service, &channel->job);
}

void rdma_on_settled(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    struct rdma_channel *channel = channel_of(message);
    struct rdma_worker *worker = channel->worker;
    uint32_t taken,
        left = rdma_most_completions(worker->service); /* its own receives are among the oldest */
    assert(channel->is_gone && channel->qp != NULL);
    while ((taken = take_completions(worker, POLL_MAX)) > 0 && taken < left)
        left -= taken;
    unhash(channel, channel->qp->qp_num);
    channel->job.run = rdma_job_destroy;
    rdma_submit(worker->service, &channel->job);
}

void rdma_on_destroyed(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    struct rdma_channel *channel = channel_of(message);
    assert(channel->is_gone && channel->qp == NULL);
    rdma_stage_give_back(&channel->link); /* nothing is received into its stage any more */
    channel->link.pull.is_under_way = false;
    rdma_channel_pulled(channel);
    rdma_channel_placed(channel); /* nor sent from its pages */
    if (channel->has_block)
        channel->worker->free_blocks[channel->worker->free_count++] = channel->block;
    forget(channel);
}

bool rdma_worker_has_ended(const struct rdma_worker *worker)
{
    for (uint32_t i = 0; worker->channel_count > 0 && i < worker->service->max_channels; i++) {
        const struct rdma_channel *channel = worker->channels[i];
        if (channel != NULL && channel->is_ending && !channel->is_gone)
            return false;
    }
    return true;
}

/* ---- life ---- */

struct rdma_worker *rdma_worker_new(struct rdma_service *service, struct rdma_poll_group *group)
{
    struct rdma_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return NULL;
    worker->service = service;
    worker->group = group;
    worker->owner = group->owner;
    rdma_stages_begin(worker, rdma_note_ready, rdma_break_off);
    worker->chunks = calloc(service->chunks_max, sizeof *worker->chunks);
    worker->free_blocks =
        calloc((size_t)service->chunks_max * CHUNK_CHANNELS, sizeof *worker->free_blocks);
    worker->channels = calloc(service->max_channels, sizeof *worker->channels);
    worker->events = ibv_create_comp_channel(service->device.context);
    if (worker->chunks != NULL && worker->free_blocks != NULL && worker->channels != NULL &&
        worker->events != NULL) {
        fcntl(worker->events->fd, F_SETFL, fcntl(worker->events->fd, F_GETFL) | O_NONBLOCK);
        return worker;
    }
    rdma_worker_free(worker);
    return NULL;
}

void rdma_worker_free(struct rdma_worker *worker)
{
    struct rdma_service *service = worker->service;
    for (uint32_t i = 0; worker->channels != NULL && i < service->max_channels; i++) {
        struct rdma_channel *channel = worker->channels[i];
        if (channel != NULL && channel->tcp != NULL)
            channel->tcp->ops->close(channel->tcp);
        if (channel != NULL) {
            rdma_channel_dismantle(service, channel);
            rdma_channel_pulled(channel);
            rdma_channel_placed(channel);
        }
        free(channel);
    }
    rdma_engine_free(service, &worker->made);
    for (uint32_t i = 0; worker->chunks != NULL && i < service->chunks_max; i++)
        rdma_chunk_free(service, &worker->chunks[i]);
    if (worker->events != NULL)
        ibv_destroy_comp_channel(worker->events);
    free(worker->channels);
    free(worker->free_blocks);
    free(worker->chunks);
    free(worker);
}
