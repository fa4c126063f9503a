/*
 * The duration of a worker's rounds: it bounds the turns of the worker's connections, and measures
 * how long the worker is unresponsive.
 *
 * Threads: the worker's own, except for round_clock_longest.
 */
#ifndef VELLUM_ROUND_CLOCK_H
#define VELLUM_ROUND_CLOCK_H

#include <stdatomic.h>

#include "server/core/command.h"
#include "server/core/server.h"
#include "server/core/worker.h"

/* A round that has taken this long starts no further command of a connection that has had one. */
#define ROUND_NSEC_MAX (4 * 1000 * 1000)
/* The clock is read once per this weight of commands known to be short. */
#define ROUND_LOOK_WEIGHT 16

/* Commands without declared keys, and those that run others, may take any time. */
static inline uint32_t round_clock_weight(const struct command *command)
{
    const uint32_t unbounded =
        CMD_LOCAL | CMD_ALL_WORKERS | CMD_NESTS | CMD_ALL_KEYS | CMD_NO_KEYS | CMD_CONTAINER;
    bool is_long = command != NULL && (command->flags & unbounded) != 0;
    return is_long && (command->flags & CMD_FAST) == 0 ? ROUND_LOOK_WEIGHT : 1;
}

bool round_clock_is_late(struct worker *worker);

/* A command of this weight has run. Returns whether the round is too long for another one. */
static inline bool round_clock_note(struct worker *worker, uint32_t weight)
{
    worker->round_weight += weight;
    return worker->round_weight >= ROUND_LOOK_WEIGHT && round_clock_is_late(worker);
}

/* A new round begins, or a nested one inside a command. */
static inline void round_clock_restart(struct worker *worker)
{
    worker->round_began_nsec = 0;
}

/* ---- measurement, for tests (DEBUG LOOP-GAP) ---- */

void round_clock_measure(struct worker *worker);

/* Called where the worker checks the clock, SCRIPT KILL and stop, or has served all its clients. */
static inline void round_clock_look_up(struct worker *worker)
{
    if (atomic_load_explicit(&worker->server->measures_gaps, memory_order_relaxed))
        round_clock_measure(worker);
}

/* The longest time between two such checks of any worker since the last call, in nanoseconds of
 * its thread's CPU time. The first call starts the measurement. From any thread. */
uint64_t round_clock_longest(struct server *server);

#endif
