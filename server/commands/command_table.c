/*
 * All commands: the only place that lists them. Names, arities, flags and key positions are the
 * facts of Redis 7.2. The rows are in one file per group, with a block per command, which sets
 * only the fields that are not 0, false or NULL.
 */
#include "server/core/command.h"

#include "server/commands/commands.h"
#include "server/types/prefetch_hints.h"

/* Arguments shared by several commands. */
#define ARGUMENTS_EXPIRE_CONDITION "[condition(NX|XX|GT|LT)@7.0.0]"
#define ARGUMENTS_EXPIRE_CONDITION_ONE "[condition(NX|XX|GT|LT)]"
#define ARGUMENTS_FIELDS "FIELDS fields(numfields:integer field...)"
#define ARGUMENTS_SCAN "cursor [MATCH pattern] [COUNT count]"
#define ARGUMENTS_LIMIT "[LIMIT limit(offset count)]"
#define ARGUMENTS_WEIGHTS "[WEIGHTS weight...] [AGGREGATE aggregate(SUM|MIN|MAX)]"
#define ARGUMENTS_UNIT "unit(M|KM|FT|MI)"
#define ARGUMENTS_GEO_COUNT "[count-block(COUNT count [ANY])]"
#define ARGUMENTS_GEO_OLD_COUNT "[count-block(COUNT count [ANY@6.2.0])]"
#define ARGUMENTS_GEO_WITH "[WITHCOORD] [WITHDIST] [WITHHASH]"
#define ARGUMENTS_GEO_STORE "[store(STORE storekey:key#1'key'|STOREDIST storedistkey:key#2'key')]"
#define ARGUMENTS_GEO_SHAPE                                                                        \
    "from(FROMMEMBER member|FROMLONLAT fromlonlat(longitude:double latitude:double)) "             \
    "by(circle(BYRADIUS radius:double " ARGUMENTS_UNIT                                             \
    ")|box(BYBOX width:double height:double " ARGUMENTS_UNIT "))"
#define ARGUMENTS_KEYS_AND_ARGS "[key...] [arg...]"
#define ARGUMENTS_SORT                                                                             \
    "key [BY by-pattern'pattern'#1] " ARGUMENTS_LIMIT " [GET get-pattern'pattern'#1]... "          \
    "[order(ASC|DESC)] [sorting=ALPHA]"

#define ARGUMENTS_TRIM                                                                             \
    "trim(strategy(MAXLEN|MINID@6.2.0) [operator(equal==|approximately=~)] threshold "             \
    "[LIMIT count@6.2.0])"

const struct command command_table[] = {
#include "server/commands/strings.def"
#include "server/commands/hashes.def"
#include "server/commands/sets.def"
#include "server/commands/lists.def"
#include "server/commands/zsets.def"
#include "server/commands/streams.def"
#include "server/commands/geo.def"
#include "server/commands/keys.def"
#include "server/commands/connections.def"
#include "server/commands/server.def"
#include "server/commands/scripts.def"
    {.name = NULL}};

const size_t command_count = sizeof command_table / sizeof command_table[0] - 1;
