/*
 * INFO's figures about commands: calls, their time, errors, look-ups. Each worker counts for
 * itself, see worker.h.
 */
#ifndef VELLUM_COMMANDSTATS_H
#define VELLUM_COMMANDSTATS_H

#include "server/core/command.h"
#include "server/core/worker.h"

/* For how many calls the time of the next one is to stand; 0: it need not be taken. */
uint32_t commandstats_weight(const struct worker *worker, const struct command *command);
uint64_t commandstats_clock(void); /* nanoseconds */

/* Where up to `most` calls run together, the first being the next one: whether their time is to be
 * taken. And the time, `before` having been counted before, of `count` calls. */
uint64_t commandstats_calls(const struct worker *worker, const struct command *command);
bool commandstats_is_due(uint64_t before, uint32_t most);
void commandstats_add_run(struct worker *worker, const struct command *command, uint64_t before,
                          uint32_t count, uint64_t nsec);

void commandstats_add_calls(struct worker *worker, const struct command *command, uint64_t calls);
void commandstats_add_time(struct worker *worker, const struct command *command, uint64_t nsec);
void commandstats_add_lookups(struct worker *worker, uint64_t hits, uint64_t misses);

/* A command has run and failed, with an error that was counted before. */
void commandstats_add_failure(struct worker *worker, const struct command *command);

/* An error reply, "-CODE text...". rejected: the command has not run; NULL: there is none. */
void commandstats_add_error(struct worker *worker, const struct command *command, const char *reply,
                            size_t len, bool rejected);

#endif
