/*
 * A worker's loop and its RDMA channels: when completions are polled for, and when the worker may
 * sleep until the device wakes it.
 *
 * Threads: the worker's, except for rdma_loop_make and rdma_loop_free.
 */
#ifndef VELLUM_RDMA_LOOP_H
#define VELLUM_RDMA_LOOP_H

#include <stdbool.h>

#include "server/net/rdma.h"
#include "server/core/worker.h"

struct rdma_loop;

/* Does nothing where the server has no RDMA. False: out of memory or descriptors. */
STORE_MUST_CHECK bool rdma_loop_make(struct worker *worker);
void rdma_loop_free(struct worker *worker); /* before rdma_ops->stop() */

/* How to call libevent after polling. */
enum rdma_turn {
    RDMA_TURN_SLEEP, /* no event is expected soon: it may block */
    RDMA_TURN_LOOK,  /* without blocking */
    RDMA_TURN_IDLE,  /* without blocking; nothing arrived, but may at any moment */
    RDMA_TURN_SKIP,  /* not in this round: poll first */
};
enum rdma_turn rdma_loop_turn(struct rdma_loop *loop);

/* Whether what the closed connections have sent by channels has arrived: asked when the worker has
 * no connections any more, and from the first question on for two seconds at most. */
bool rdma_loop_has_ended(struct worker *worker);

#endif
