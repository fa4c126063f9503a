/*
 * The buffers for pulled bytes, shared by a worker's channels: see stages.c. Thread: the worker.
 */
#ifndef VELLUM_RDMA_STAGES_H
#define VELLUM_RDMA_STAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rdma-ext/jobs.h"
#include "rdma-ext/setup_jobs.h"
#include "server/net/rdma.h"

struct rdma_channel;
struct rdma_link;
struct rdma_worker;

struct rdma_stages {
    struct {
        struct rdma_channel *holder; /* NULL: it is free */
        uint32_t number, looks;      /* of the READ at the last look; how many saw it */
    } all[STAGES];
    TAILQ_HEAD(, rdma_channel) waiting;              /* the first is served first */
    void (*ready)(struct rdma_channel *channel);     /* it has a stage now */
    void (*break_off)(struct rdma_channel *channel); /* its READ takes too long */
    struct rdma_job timer;
    struct worker_message look;
    bool is_timed; /* the helper has the timer */
};

void rdma_stages_begin(struct rdma_worker *worker, void (*ready)(struct rdma_channel *channel),
                       void (*break_off)(struct rdma_channel *channel));
/* rdma_link.borrow: a channel that gets none waits, and is reported when it has one. */
bool rdma_stage_borrow(struct rdma_link *link);
/* rdma_link.give_back */
void rdma_stage_give_back(struct rdma_link *link);
/* Gives free stages to those that wait. Called before the worker polls, and before it sleeps. */
void rdma_stages_hand_out(struct rdma_worker *worker);
bool rdma_has_stage(const struct rdma_channel *channel);
/* The channel ends. */
void rdma_stage_wait_no_more(struct rdma_channel *channel);

#endif
