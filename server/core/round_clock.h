/*
 * How long a round of a worker's loop takes: the bound on the turns of its connections, and the
 * measure of what keeps a worker from looking up.
 *
 * Threads: the worker's own, but for round_clock_longest.
 */
#ifndef VELLUM_ROUND_CLOCK_H
#define VELLUM_ROUND_CLOCK_H

#include <stdatomic.h>

#include "server/core/command.h"
#include "server/core/server.h"
#include "server/core/worker.h"

/* A round that has taken so long starts no further command of a connection that has had some. */
#define ROUND_NSEC_MAX (4 * 1000 * 1000)
/* The clock is read once per so many commands that are known to be short. */
#define ROUND_LOOK_WEIGHT 16

/* Commands without declared keys, and those that run others, take whatever there is to go through.
 */
static inline uint32_t round_clock_weight(const struct command *command)
{
    const uint32_t unbounded =
        CMD_LOCAL | CMD_ALL_WORKERS | CMD_NESTS | CMD_ALL_KEYS | CMD_NO_KEYS | CMD_CONTAINER;
    bool is_long = command != NULL && (command->flags & unbounded) != 0;
    return is_long && (command->flags & CMD_FAST) == 0 ? ROUND_LOOK_WEIGHT : 1;
}

bool round_clock_is_late(struct worker *worker);

/* A command of such a weight has run: whether the round has taken too long for another one. */
static inline bool round_clock_note(struct worker *worker, uint32_t weight)
{
    worker->round_weight += weight;
    return worker->round_weight >= ROUND_LOOK_WEIGHT && round_clock_is_late(worker);
}

/* A new round begins, or a small one inside a command. */
static inline void round_clock_restart(struct worker *worker)
{
    worker->round_began_nsec = 0;
}

/* ---- the measure, for tests (DEBUG LOOP-GAP) ---- */

void round_clock_measure(struct worker *worker);

/* The worker looks up: at clock, SCRIPT KILL and stop, or at all its clients. */
static inline void round_clock_look_up(struct worker *worker)
{
    if (atomic_load_explicit(&worker->server->measures_gaps, memory_order_relaxed))
        round_clock_measure(worker);
}

/* The longest time between two looks of any worker since the last call, in nanoseconds of its
 * thread's processor time. The first call begins to measure. From any thread. */
uint64_t round_clock_longest(struct server *server);

#endif
