/*
 * Invariants:
 * 1. The worker blocks only when completions wake it: sleep() has said so since the last poll.
 * 2. While it spins, libevent has its turn every LOOK_EVERY rounds in which something came, and
 *    whenever POLLS_PER_LOOK polls have found nothing. The clock is looked at only then.
 * 3. Spinning pays where what it waits for comes within the time to spin. After LONG_WAITS waits in
 *    a row that were longer it is left out, until one is short again.
 */
#include "server/loop/rdma_loop.h"

#include <stdlib.h>
#include <time.h>

#include <event2/event.h>

#define LOOK_EVERY 8
#define POLLS_PER_LOOK 256 /* a look delays what comes meanwhile */
#define LONG_WAITS 4

struct rdma_loop {
    const struct rdma_ops *ops;
    struct rdma_poll_group *group;
    const struct config *config;
    struct event *woken;
    bool is_spinning; /* something has moved since the last sleep */
    bool is_timed;    /* quiet_since_ns is set: nothing has moved since then */
    bool has_slept;   /* likewise, and the time to spin was over */
    uint64_t quiet_since_ns;
    uint32_t long_waits; /* in a row */
    uint32_t rounds;
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

/* Whether the time to spin is not over; it begins with the first look at the clock. */
static bool still_spins(struct rdma_loop *loop)
{
    uint64_t now_ns = clock_ns();
    if (!loop->is_timed)
        loop->quiet_since_ns = now_ns;
    loop->is_timed = true;
    return loop->long_waits < LONG_WAITS && now_ns - loop->quiet_since_ns < spin_ns(loop);
}

/* Something has moved. What came before the first look was no wait. */
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
