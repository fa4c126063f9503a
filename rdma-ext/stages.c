/*
 * The buffers into which clients' memory is READ if it does not go to the store's pages.
 *
 * Invariants:
 * 1. A channel that waits for a stage has no input for its connection: it is called back when it
 *    has a stage, and not in each round until then.
 * 2. While channels wait, a timer runs: a READ that takes longer than LOOKS looks of it ends its
 *    channel. Clients that answer nothing, or slowly, would otherwise hold up all others.
 */
#include "rdma-ext/stages.h"

#include <assert.h>
#include <stddef.h>

#include "rdma-ext/channel.h"
#include "rdma-ext/completion_loop.h"

#define LOOK_NS 1000000000
#define LOOKS 3 /* the first of them comes up to LOOK_NS after the beginning of a READ */

static struct rdma_channel *channel_of(struct rdma_link *link)
{
    return (struct rdma_channel *)((char *)link - offsetof(struct rdma_channel, link));
}

bool rdma_has_stage(const struct rdma_channel *channel)
{
    uint32_t i = 0;
    while (i < STAGES && channel->worker->stages.all[i].holder != channel)
        i++;
    return i < STAGES;
}

void rdma_stage_wait_no_more(struct rdma_channel *channel)
{
    if (channel->awaits_stage)
        TAILQ_REMOVE(&channel->worker->stages.waiting, channel, next_waiting);
    channel->awaits_stage = false;
}

/* ---- handing out ---- */

static void assign(struct rdma_worker *worker, uint32_t i, struct rdma_channel *channel)
{
    struct rdma_pull *pull = &channel->link.pull;
    assert(!rdma_has_stage(channel)); /* a stage is released with its part */
    worker->stages.all[i].holder = channel;
    worker->stages.all[i].looks = 0;
    pull->memory = (char *)worker->engine.staging->addr + (size_t)i * STAGE_BYTES;
    pull->lkey = worker->engine.staging->lkey;
    pull->size = STAGE_BYTES;
    worker->stages.ready(channel);
}

/* It may have been served otherwise meanwhile, or be closed. */
static bool still_wants_one(const struct rdma_channel *channel)
{
    const struct rdma_pull *pull = &channel->link.pull;
    return !channel->is_gone && !channel->is_broken && !channel->is_ending &&
           pull->rest.length > 0 && pull->memory == NULL && !pull->is_under_way;
}

static struct rdma_channel *next_waiting(struct rdma_stages *stages)
{
    struct rdma_channel *channel;
    while ((channel = TAILQ_FIRST(&stages->waiting)) != NULL && !still_wants_one(channel))
        rdma_stage_wait_no_more(channel);
    return channel;
}

/* A connection that did not read in its turn may not read for a long time: its command may be
 * waiting. Its stage is taken away. */
static bool is_free(const struct rdma_stages *stages, uint32_t i)
{
    struct rdma_channel *holder = stages->all[i].holder;
    return holder == NULL || (!holder->is_ready && rdma_link_unfetch(&holder->link));
}

void rdma_stages_hand_out(struct rdma_worker *worker)
{
    struct rdma_stages *stages = &worker->stages;
    struct rdma_channel *channel;
    for (uint32_t i = 0; i < STAGES && (channel = next_waiting(stages)) != NULL; i++) {
        if (!is_free(stages, i))
            continue;
        rdma_stage_wait_no_more(channel);
        assign(worker, i, channel);
    }
}

void rdma_stage_give_back(struct rdma_link *link)
{
    struct rdma_channel *channel = channel_of(link);
    struct rdma_stages *stages = &channel->worker->stages;
    for (uint32_t i = 0; i < STAGES; i++)
        if (stages->all[i].holder == channel)
            stages->all[i].holder = NULL;
}

/* ---- READs that take too long ---- */

static void time_is_over(struct rdma_service *service, struct rdma_job *job)
{
    (void)service;
    struct rdma_worker *worker =
        (struct rdma_worker *)((char *)job - offsetof(struct rdma_worker, stages.timer));
    worker_post(worker->owner, &worker->stages.look);
}

static void start_timer(struct rdma_service *service, struct rdma_job *job)
{
    job->run = time_is_over;
    rdma_delay(service, job, LOOK_NS);
}

static void keep_time(struct rdma_worker *worker)
{
    struct rdma_stages *stages = &worker->stages;
    if (stages->is_timed)
        return;
    stages->is_timed = true;
    stages->timer.run = start_timer;
    rdma_submit(worker->service, &stages->timer);
}

/* Returns how many looks have seen its READ, this one included. */
static uint32_t look_at(struct rdma_stages *stages, uint32_t i)
{
    struct rdma_channel *holder = stages->all[i].holder;
    if (holder == NULL || holder->is_gone || holder->is_broken || !holder->link.pull.is_under_way)
        return stages->all[i].looks = 0;
    uint32_t number = holder->link.pull.number;
    if (stages->all[i].looks == 0 || stages->all[i].number != number)
        stages->all[i].looks = 0;
    stages->all[i].number = number;
    return ++stages->all[i].looks;
}

static void on_look(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    struct rdma_worker *worker =
        (struct rdma_worker *)((char *)message - offsetof(struct rdma_worker, stages.look));
    struct rdma_stages *stages = &worker->stages;
    uint32_t oldest = 0, most = 0;
    stages->is_timed = false;
    for (uint32_t i = 0; i < STAGES; i++) {
        uint32_t looks = look_at(stages, i);
        if (looks > most)
            oldest = i;
        most = looks > most ? looks : most;
    }
    if (next_waiting(stages) == NULL)
        return;
    if (most >= LOOKS)
        stages->break_off(stages->all[oldest].holder);
    keep_time(worker);
}

/* ---- borrowing ---- */

bool rdma_stage_borrow(struct rdma_link *link)
{
    struct rdma_channel *channel = channel_of(link);
    struct rdma_worker *worker = channel->worker;
    if (!channel->awaits_stage)
        TAILQ_INSERT_TAIL(&worker->stages.waiting, channel, next_waiting);
    channel->awaits_stage = true;
    rdma_stages_hand_out(worker);
    if (channel->awaits_stage)
        keep_time(worker);
    return link->pull.memory != NULL;
}

void rdma_stages_begin(struct rdma_worker *worker, void (*ready)(struct rdma_channel *channel),
                       void (*break_off)(struct rdma_channel *channel))
{
    worker->stages.ready = ready;
    worker->stages.break_off = break_off;
    TAILQ_INIT(&worker->stages.waiting);
    worker->stages.look.visit = on_look;
}
