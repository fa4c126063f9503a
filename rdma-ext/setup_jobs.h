/*
 * Memory and queues of workers and channels, made by the helper thread: see setup_jobs.c.
 */
#ifndef VELLUM_RDMA_SETUP_JOBS_H
#define VELLUM_RDMA_SETUP_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/net/rdma.h"
#include "rdma-ext/verbs.h"

struct rdma_channel;
struct rdma_job;
struct rdma_service;

#define FRAME_BYTES 4096
#define CREDITS 8        /* receives per channel */
#define SEND_BUFFERS 4   /* per channel */
#define CHUNK_CHANNELS 8 /* channels whose memory is registered together */
#define CHUNK_RECEIVES (CHUNK_CHANNELS * CREDITS)
#define STAGES 4 /* buffers for pulled bytes, shared by a worker's channels */
#define STAGE_BYTES (32 * 1024)

/* wr_id: a receive has the top bit, and chunk and buffer below (or WR_OWN: one of the queue pair's
 * own); a send has its channel's place in bits 32 to 60, and the link's number below. */
#define WR_RECEIVE (1ull << 63)
#define WR_DRAIN (1ull << 62)
#define WR_OWN (1ull << 61)
#define WR_BIND WR_OWN /* among sends: the bind of the ring's window */
#define WR_PLACE(wr_id) (((wr_id) & ~(WR_DRAIN | WR_BIND)) >> 32)

struct rdma_chunk {
    struct ibv_mr *mr;
    char *memory;    /* SEND_BUFFERS per channel, then the receives */
    uint32_t posted; /* bit n: the receives of its channel n are posted */
};

/* Memory of one channel of mode write. The ring is a region of its own without remote access,
 * opened by a window that only the channel's queue pair can use. */
struct rdma_ring {
    struct ibv_mr *sends, *mr;
    struct ibv_mw *window;
    uint32_t key; /* the window's */
};

/* Resources of a worker, while it has channels. */
struct rdma_engine {
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_mr *staging;
};

/* Whether the memory of a first channel can be pinned. Called before the helper starts. */
bool rdma_may_pin_at_all(struct rdma_service *service, char message[RDMA_ERROR_MAX]);
/* The capacity that a completion queue needs. */
uint32_t rdma_most_completions(const struct rdma_service *service);
void rdma_engine_free(struct rdma_service *service, struct rdma_engine *engine);
void rdma_chunk_free(struct rdma_service *service, struct rdma_chunk *chunk);
void rdma_channel_dismantle(struct rdma_service *service, struct rdma_channel *channel);
/* Jobs: the steps of a channel (channel.h), and of a worker without channels. */
void rdma_job_connect(struct rdma_service *service, struct rdma_job *job);
void rdma_job_await_end(struct rdma_service *service, struct rdma_job *job); /* its deadline */
void rdma_job_stop(struct rdma_service *service, struct rdma_job *job);
void rdma_job_destroy(struct rdma_service *service, struct rdma_job *job);
void rdma_job_recycle(struct rdma_service *service, struct rdma_job *job);

#endif
