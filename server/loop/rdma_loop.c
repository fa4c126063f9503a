/*
 * Invariants:
 * 1. The worker blocks only when completions will wake it: sleep() has returned true since the last
 *    poll.
 * 2. While it spins, libevent is called once every LOOK_EVERY rounds with progress, and after
 *    POLLS_PER_LOOK polls without. The clock is read only then, and when progress ends a sleep.
 * 3. Spinning pays if the awaited events arrive within the spin time. After LONG_WAITS longer waits
 *    in a row the worker stops spinning, until a wait is short again.
 */
#include "server/loop/rdma_loop.h"

#include <stdlib.h>
#include <time.h>

#include <event2/event.h>

#define LOOK_EVERY 8
#define POLLS_PER_LOOK 256 /* calling libevent delays completions that arrive meanwhile */
#define LONG_WAITS 4
#define END_NS 2000000000 /* as long as a device repeats what does not arrive */

struct rdma_loop {
    const struct rdma_ops *ops;
    struct rdma_poll_group *group;
    const struct config *config;
    struct event *woken;
    bool is_spinning; /* there was progress since the last sleep */
    bool is_timed;    /* quiet_since_ns is set: no progress since then */
    bool has_slept;   /* no progress since then either, and the spin time was over */
    uint64_t quiet_since_ns;
    uint32_t long_waits; /* in a row */
    uint32_t rounds;
    uint64_t ending_since_ns; /* 0: the worker has not asked yet */
};

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t spin_ns(const struct rdma_loop *loop)
{
    return (uint64_t)config_number(loop->config, CONFIG_RDMA_SPIN_US) * 1000;
}

/* Whether the spin time is not over; it begins with the first look at the clock. */
static bool still_spins(struct rdma_loop *loop)
{
    uint64_t now_ns = clock_ns();
    if (!loop->is_timed)
        loop->quiet_since_ns = now_ns;
    loop->is_timed = true;
    return loop->long_waits < LONG_WAITS && now_ns - loop->quiet_since_ns < spin_ns(loop);
}

/* There was progress after the clock had been read: the wait was short unless the worker slept for
 * longer than the spin time. */
static void note_wait(struct rdma_loop *loop)
{
    bool is_long = loop->has_slept && clock_ns() - loop->quiet_since_ns >= spin_ns(loop);
    if (!is_long)
        loop->long_waits = 0;
    else if (loop->long_waits < LONG_WAITS)
        loop->long_waits++;
    loop->is_timed = loop->has_slept = false;
}

enum rdma_turn rdma_loop_turn(struct rdma_loop *loop)
{
    for (int i = loop->is_spinning ? POLLS_PER_LOOK : 1; i > 0; i--) {
        if (!loop->ops->poll(loop->group))
            continue;
        if (loop->is_timed)
            note_wait(loop);
        loop->is_spinning = true;
        return ++loop->rounds % LOOK_EVERY == 0 ? RDMA_TURN_LOOK : RDMA_TURN_SKIP;
    }
    loop->is_spinning = loop->is_spinning && still_spins(loop);
    if (loop->is_spinning)
        return RDMA_TURN_IDLE;
    loop->has_slept = loop->is_timed;
    return loop->ops->sleep(loop->group) ? RDMA_TURN_SLEEP : RDMA_TURN_SKIP;
}

bool rdma_loop_has_ended(struct worker *worker)
{
    struct rdma_loop *loop = worker->rdma;
    if (loop == NULL || loop->ops->has_ended(loop->group))
        return true;
    uint64_t now_ns = clock_ns();
    if (loop->ending_since_ns == 0)
        loop->ending_since_ns = now_ns;
    return now_ns - loop->ending_since_ns >= END_NS;
}

static void on_woken(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct rdma_loop *loop = arg;
    loop->ops->woken(loop->group);
}

bool rdma_loop_make(struct worker *worker)
{
    struct server *server = worker->server;
    if (server->rdma == NULL)
        return true;
    struct rdma_loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return false;
    worker->rdma = loop;
    loop->ops = server->rdma_ops;
    loop->config = &server->config;
    worker->rdma_group = loop->group = loop->ops->attach(server->rdma, worker);
    if (loop->group == NULL)
        return false;
    loop->woken = event_new(worker->base, loop->ops->descriptor(loop->group), EV_READ | EV_PERSIST,
                            on_woken, loop);
    return loop->woken != NULL && event_add(loop->woken, NULL) == 0;
}

void rdma_loop_free(struct worker *worker)
{
    struct rdma_loop *loop = worker->rdma;
    if (loop == NULL)
        return;
    if (loop->woken != NULL)
        event_free(loop->woken);
    free(loop);
    worker->rdma = NULL;
}
