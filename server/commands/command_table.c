/*
 * All commands: the one place that knows which there are. Names, arities, flags and positions are
 * the facts of Redis 7.2. The rows stand in files by group, a block per command, and say what is
 * not 0, false or NULL.
 */
#include "server/core/command.h"

#include "server/commands/commands.h"
#include "server/types/prefetch_hints.h"

/* Arguments that several commands have. */
#define ARGUMENTS_EXPIRE_CONDITION "[condition(NX|XX|GT|LT)@7.0.0]"
#define ARGUMENTS_SCAN "cursor [MATCH pattern] [COUNT count]"
#define ARGUMENTS_LIMIT "[LIMIT limit(offset count)]"
#define ARGUMENTS_WEIGHTS "[WEIGHTS weight...] [AGGREGATE aggregate(SUM|MIN|MAX)]"
#define ARGUMENTS_KEYS_AND_ARGS "[key...] [arg...]"
#define ARGUMENTS_SORT                                                                             \
    "key [BY by-pattern'pattern'#1] " ARGUMENTS_LIMIT " [GET get-pattern'pattern'#1]... "          \
    "[order(ASC|DESC)] [sorting=ALPHA]"

const struct command command_table[] = {
#include "server/commands/strings.def"
#include "server/commands/hashes.def"
#include "server/commands/sets.def"
#include "server/commands/lists.def"
#include "server/commands/zsets.def"
#include "server/commands/keys.def"
#include "server/commands/connections.def"
#include "server/commands/server.def"
#include "server/commands/scripts.def"
    {.name = NULL}};

const size_t command_count = sizeof command_table / sizeof command_table[0] - 1;
