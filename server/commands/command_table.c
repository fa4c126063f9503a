/*
 * All commands: the one place that knows which there are. Names, arities, flags and positions are
 * the facts of Redis 7.2.
 */
#include "server/core/command.h"

#include "server/commands/commands.h"
#include "server/types/probes.h"

#define R CMD_READONLY
#define W CMD_WRITE
#define OOM CMD_DENYOOM
#define FAST CMD_FAST
#define NS CMD_NOSCRIPT
#define LS (CMD_LOADING | CMD_STALE)
#define LOCAL CMD_LOCAL
#define PLACE (CMD_LOCAL | CMD_IN_PLACE)
#define ADMIN (CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE)
#define APART (CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_QUEUE_APART)
#define SUBSCRIBED CMD_SUBSCRIBED
#define SUBSCRIBES (CMD_PUBSUB | NS | LS | LOCAL | SUBSCRIBED | CMD_PUSHES)
#define OPEN (CMD_NO_AUTH | CMD_ALLOW_BUSY)

#define EVAL (NS | CMD_SKIP_MONITOR | CMD_STALE | CMD_MOVABLE_KEYS | CMD_KEYS_OPTIONAL | CMD_NESTS)
#define THAT_OF_SCRIPT "That of the script"

#define RO "RO access"
#define RW "RW access update"

#define MULTI_SUM "request_policy:multi_shard response_policy:agg_sum"
#define ALL_OK "request_policy:all_shards response_policy:all_succeeded"
#define VARYING "nondeterministic_output"
#define VARYING_ORDER "nondeterministic_output_order"

#define NO_NODE "Answers that this is no node of a cluster."

#define EXPIRE_IF "[condition(NX|XX|GT|LT)@7.0.0]"
#define WALK "cursor [MATCH pattern] [COUNT count]"
#define LIMIT "[LIMIT limit(offset count)]"
#define WEIGHED "[WEIGHTS weight...] [AGGREGATE aggregate(SUM|MIN|MAX)]"
#define KEYS_AND_ARGS "[key...] [arg...]"
#define SORT                                                                                       \
    "key [BY by-pattern'pattern'#1] " LIMIT " [GET get-pattern'pattern'#1]... "                    \
    "[order(ASC|DESC)] [sorting=ALPHA]"

/* A row as struct command has it; the rows stand in files of their own, by group. */
#define COMMAND(...) {__VA_ARGS__},

const struct command command_table[] = {
#include "server/commands/table_strings.h"
#include "server/commands/table_collections.h"
#include "server/commands/table_keys.h"
#include "server/commands/table_server.h"
    {.name = NULL}};

const size_t command_count = sizeof command_table / sizeof command_table[0] - 1;
