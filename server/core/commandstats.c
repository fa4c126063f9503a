#include "server/core/commandstats.h"

#include <time.h>

static struct command_counters *counters_of(const struct worker *worker,
                                            const struct command *command)
{
    return &worker->command_counters[command - worker->server->commands.table];
}

uint64_t commandstats_calls(const struct worker *worker, const struct command *command)
{
    return atomic_load_explicit(&counters_of(worker, command)->calls, memory_order_relaxed);
}

bool commandstats_is_due(uint64_t before, uint32_t most)
{
    return before < COMMAND_SAMPLE ||
           (COMMAND_SAMPLE - before % COMMAND_SAMPLE) % COMMAND_SAMPLE < most;
}

uint32_t commandstats_weight(const struct worker *worker, const struct command *command)
{
    uint64_t calls = commandstats_calls(worker, command);
    if (calls < COMMAND_SAMPLE)
        return 1;
    return commandstats_is_due(calls, 1) ? COMMAND_SAMPLE : 0;
}

uint64_t commandstats_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void commandstats_add_calls(struct worker *worker, const struct command *command, uint64_t calls)
{
    counter_add(&counters_of(worker, command)->calls, calls);
}

void commandstats_add_time(struct worker *worker, const struct command *command, uint64_t nsec)
{
    counter_add(&counters_of(worker, command)->nsec, nsec);
}

void commandstats_add_run(struct worker *worker, const struct command *command, uint64_t before,
                          uint32_t count, uint64_t nsec)
{
    if (before < COMMAND_SAMPLE)
        commandstats_add_time(worker, command, nsec);
    else if (commandstats_is_due(before, count))
        commandstats_add_time(worker, command, nsec * COMMAND_SAMPLE / count);
}

void commandstats_add_lookups(struct worker *worker, uint64_t hits, uint64_t misses)
{
    if (hits != 0)
        counter_add(&worker->counters.keyspace_hits, hits);
    if (misses != 0)
        counter_add(&worker->counters.keyspace_misses, misses);
}

void commandstats_add_failure(struct worker *worker, const struct command *command)
{
    counter_add(&counters_of(worker, command)->failed, 1);
}

void commandstats_add_error(struct worker *worker, const struct command *command, const char *reply,
                            size_t len, bool rejected)
{
    counter_add(&worker->counters.error_replies, 1);
    errorstats_count(&worker->errors, reply, len);
    if (command == NULL)
        return;
    struct command_counters *counters = counters_of(worker, command);
    counter_add(rejected ? &counters->rejected : &counters->failed, 1);
}
