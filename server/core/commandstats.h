/*
 * INFO's statistics of commands: calls, time, errors, look-ups. Each worker counts its own, see
 * worker.h.
 */
#ifndef VELLUM_COMMANDSTATS_H
#define VELLUM_COMMANDSTATS_H

#include "server/core/command.h"
#include "server/core/worker.h"

/* INFO commandstats, one per entry of the command table. The first calls of a command are timed,
 * and then one in COMMAND_SAMPLE, which counts as that many: no clock on the usual path. */
#define COMMAND_SAMPLE 64
struct command_counters {
    _Atomic uint64_t calls, nsec, rejected, failed;
};

/* The number of calls that the next call's time is sampled for; 0: it is not timed. */
uint32_t commandstats_weight(const struct worker *worker, const struct command *command);
uint64_t commandstats_clock(void); /* nanoseconds */

/* commandstats_is_due: whether a run of up to `most` calls, beginning with the next one, is timed.
 * commandstats_add_run: the time of a run of `count` calls, with `before` calls counted earlier. */
uint64_t commandstats_calls(const struct worker *worker, const struct command *command);
bool commandstats_is_due(uint64_t before, uint32_t most);
void commandstats_add_run(struct worker *worker, const struct command *command, uint64_t before,
                          uint32_t count, uint64_t nsec);

/* How many calls the time of this one stands for in distributions: itself, and those before it
 * since the last one that was timed. */
static inline uint64_t commandstats_stands_for(uint64_t before)
{
    return before < 2 * COMMAND_SAMPLE ? 1 : COMMAND_SAMPLE;
}

void commandstats_add_calls(struct worker *worker, const struct command *command, uint64_t calls);
void commandstats_add_time(struct worker *worker, const struct command *command, uint64_t nsec);
void commandstats_add_lookups(struct worker *worker, uint64_t hits, uint64_t misses);

/* A command has run and failed, with an error that is counted already. */
void commandstats_add_failure(struct worker *worker, const struct command *command);

/* Counts an error reply, "-CODE text...". rejected: the command did not run; NULL: unknown
 * command. */
void commandstats_add_error(struct worker *worker, const struct command *command, const char *reply,
                            size_t len, bool rejected);

#endif
