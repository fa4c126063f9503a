/* Rows of the command table (command_table.c): hashes, sets, lists and sorted sets. */

/* ---- hash ---- */

COMMAND("hdel", cmd_hdel, -3, W | FAST, 1, 1, 1, "hash", "2.0.0", "hash",
        "O(N), N being the number of fields named",
        .summary = "Deletes fields of a hash, and the hash with its last one.",
        .syntax = "key field...", .key_flags = "RW delete", .probes = probes_of, .member_at = 2)
COMMAND("hexists", cmd_hexists, 3, R | FAST, 1, 1, 1, "hash", "2.0.0", "hash", "O(1)",
        .summary = "Tells whether a hash has a field.", .syntax = "key field", .key_flags = "RO",
        .probes = probes_of, .member_at = 2)
COMMAND("hget", cmd_hget, 3, R | FAST, 1, 1, 1, "hash", "2.0.0", "hash", "O(1)",
        .summary = "Reads a field of a hash.", .syntax = "key field", .key_flags = RO,
        .probes = probes_of, .member_at = 2)
COMMAND("hgetall", cmd_hgetall, 2, R, 1, 1, 1, "hash", "2.0.0", "hash",
        "O(N), N being the size of the hash",
        .summary = "Lists the fields of a hash with their values.", .syntax = "key",
        .key_flags = RO, .tips = VARYING_ORDER)
COMMAND("hincrby", cmd_hincrby, 4, W | OOM | FAST, 1, 1, 1, "hash", "2.0.0", "hash", "O(1)",
        .summary = "Adds to the integer in a field; a missing one counts as 0.",
        .syntax = "key field increment", .key_flags = RW, .probes = probes_of, .member_at = 2)
COMMAND("hincrbyfloat", cmd_hincrbyfloat, 4, W | OOM | FAST, 1, 1, 1, "hash", "2.6.0", "hash",
        "O(1)", .summary = "Adds a fraction to the number in a field; a missing one counts as 0.",
        .syntax = "key field increment:double", .key_flags = RW, .probes = probes_of,
        .member_at = 2)
COMMAND("hkeys", cmd_hkeys, 2, R, 1, 1, 1, "hash", "2.0.0", "hash",
        "O(N), N being the size of the hash", .summary = "Lists the fields of a hash.",
        .syntax = "key", .key_flags = RO, .tips = VARYING_ORDER)
COMMAND("hlen", cmd_hlen, 2, R | FAST, 1, 1, 1, "hash", "2.0.0", "hash", "O(1)",
        .summary = "Counts the fields of a hash.", .syntax = "key", .key_flags = "RO")
COMMAND("hmget", cmd_hmget, -3, R | FAST, 1, 1, 1, "hash", "2.0.0", "hash",
        "O(N), N being the number of fields named", .summary = "Reads several fields of a hash.",
        .syntax = "key field...", .key_flags = RO, .probes = probes_of, .member_at = 2)
COMMAND("hmset", cmd_hmset, -4, W | OOM | FAST, 1, 1, 1, "hash", "2.0.0", "hash",
        "O(N), N being the number of fields named", .summary = "Sets several fields of a hash.",
        .syntax = "key data(field value)...", .key_flags = "RW update",
        .deprecated = "4.0.0 `HSET` with multiple field-value pairs", .probes = probes_of,
        .member_at = 2)
COMMAND("hrandfield", cmd_hrandfield, -2, R, 1, 1, 1, "hash", "6.2.0", "hash",
        "O(N), N being the number of fields wanted", .summary = "Picks fields of a hash by chance.",
        .syntax = "key [options(count [WITHVALUES])]", .key_flags = RO, .tips = VARYING)
COMMAND("hscan", cmd_hscan, -3, R, 1, 1, 1, "hash", "2.8.0", "hash",
        "O(1) for every call, O(N) for all fields",
        .summary = "Walks the fields of a hash in parts.", .syntax = "key " WALK, .key_flags = RO,
        .tips = VARYING)
COMMAND("hset", cmd_hset, -4, W | OOM | FAST, 1, 1, 1, "hash", "2.0.0", "hash",
        "O(N), N being the number of fields named",
        .summary = "Sets fields of a hash and counts those that are new.",
        .syntax = "key data(field value)...", .key_flags = "RW update", .probes = probes_of,
        .member_at = 2)
COMMAND("hsetnx", cmd_hsetnx, 4, W | OOM | FAST, 1, 1, 1, "hash", "2.0.0", "hash", "O(1)",
        .summary = "Sets a field of a hash if it does not exist.", .syntax = "key field value",
        .key_flags = "RW insert", .probes = probes_of, .member_at = 2)
COMMAND("hstrlen", cmd_hstrlen, 3, R | FAST, 1, 1, 1, "hash", "3.2.0", "hash", "O(1)",
        .summary = "Tells the length of the value in a field.", .syntax = "key field",
        .key_flags = "RO", .probes = probes_of, .member_at = 2)
COMMAND("hvals", cmd_hvals, 2, R, 1, 1, 1, "hash", "2.0.0", "hash",
        "O(N), N being the size of the hash", .summary = "Lists the values of a hash.",
        .syntax = "key", .key_flags = RO, .tips = VARYING_ORDER)

/* ---- set ---- */

COMMAND("sadd", cmd_sadd, -3, W | OOM | FAST, 1, 1, 1, "set", "1.0.0", "set",
        "O(N), N being the number of members named",
        .summary = "Adds members to a set and counts those that are new.",
        .syntax = "key member...", .key_flags = "RW insert", .probes = probes_of, .member_at = 2)
COMMAND("scard", cmd_scard, 2, R | FAST, 1, 1, 1, "set", "1.0.0", "set", "O(1)",
        .summary = "Counts the members of a set.", .syntax = "key", .key_flags = "RO")
COMMAND("sdiff", cmd_sdiff, -2, R, 1, -1, 1, "set", "1.0.0", "set",
        "O(N), N being the size of all sets",
        .summary = "Lists the members of a set that no other one has.", .syntax = "key...",
        .key_flags = RO, .tips = VARYING_ORDER)
COMMAND("sdiffstore", cmd_sdiffstore, -3, W | OOM, 1, -1, 1, "set", "1.0.0", "set",
        "O(N), N being the size of all sets",
        .summary = "Stores the members of a set that no other one has.",
        .syntax = "destination key#1...", .key_flags = "OW update;RO access")
COMMAND("sinter", cmd_sinter, -2, R, 1, -1, 1, "set", "1.0.0", "set",
        "O(N*M), N being the size of the smallest set and M the number of sets",
        .summary = "Lists the members that all sets have.", .syntax = "key...", .key_flags = RO,
        .tips = VARYING_ORDER)
COMMAND("sintercard", cmd_sintercard, -3, R | CMD_MOVABLE_KEYS, 0, 0, 0, "set", "7.0.0", "set",
        "O(N*M), N being the size of the smallest set and M the number of sets",
        .summary = "Counts the members that all sets have.",
        .syntax = "numkeys key... [LIMIT limit]", .key_flags = RO, .key_count_at = 1)
COMMAND("sinterstore", cmd_sinterstore, -3, W | OOM, 1, -1, 1, "set", "1.0.0", "set",
        "O(N*M), N being the size of the smallest set and M the number of sets",
        .summary = "Stores the members that all sets have.", .syntax = "destination key#1...",
        .key_flags = "RW update;RO access")
COMMAND("sismember", cmd_sismember, 3, R | FAST, 1, 1, 1, "set", "1.0.0", "set", "O(1)",
        .summary = "Tells whether a set has a member.", .syntax = "key member", .key_flags = "RO",
        .probes = probes_of, .member_at = 2)
COMMAND("smembers", cmd_smembers, 2, R, 1, 1, 1, "set", "1.0.0", "set",
        "O(N), N being the size of the set", .summary = "Lists the members of a set.",
        .syntax = "key", .key_flags = RO, .tips = VARYING_ORDER)
COMMAND("smismember", cmd_smismember, -3, R | FAST, 1, 1, 1, "set", "6.2.0", "set",
        "O(N), N being the number of members named",
        .summary = "Tells of each of several members whether a set has it.",
        .syntax = "key member...", .key_flags = RO, .probes = probes_of, .member_at = 2)
COMMAND("smove", cmd_smove, 4, W | FAST, 1, 2, 1, "set", "1.0.0", "set", "O(1)",
        .summary = "Moves a member from one set to another.",
        .syntax = "source destination#1 member", .key_flags = "RW access delete;RW insert")
COMMAND("spop", cmd_spop, -2, W | FAST, 1, 1, 1, "set", "1.0.0", "set",
        "O(N), N being the number of members wanted",
        .summary = "Picks members of a set by chance and takes them out.",
        .syntax = "key [count@3.2.0]", .key_flags = "RW access delete", .tips = VARYING)
COMMAND("srandmember", cmd_srandmember, -2, R, 1, 1, 1, "set", "1.0.0", "set",
        "O(N), N being the number of members wanted",
        .summary = "Picks members of a set by chance.", .syntax = "key [count@2.6.0]",
        .key_flags = RO, .tips = VARYING)
COMMAND("srem", cmd_srem, -3, W | FAST, 1, 1, 1, "set", "1.0.0", "set",
        "O(N), N being the number of members named",
        .summary = "Takes members out of a set, and deletes the set with its last one.",
        .syntax = "key member...", .key_flags = "RW delete", .probes = probes_of, .member_at = 2)
COMMAND("sscan", cmd_sscan, -3, R, 1, 1, 1, "set", "2.8.0", "set",
        "O(1) for every call, O(N) for all members",
        .summary = "Walks the members of a set in parts.", .syntax = "key " WALK, .key_flags = RO,
        .tips = VARYING)
COMMAND("sunion", cmd_sunion, -2, R, 1, -1, 1, "set", "1.0.0", "set",
        "O(N), N being the size of all sets",
        .summary = "Lists the members that any of the sets has.", .syntax = "key...",
        .key_flags = RO, .tips = VARYING_ORDER)
COMMAND("sunionstore", cmd_sunionstore, -3, W | OOM, 1, -1, 1, "set", "1.0.0", "set",
        "O(N), N being the size of all sets",
        .summary = "Stores the members that any of the sets has.", .syntax = "destination key#1...",
        .key_flags = "OW update;RO access")

/* ---- list ---- */

COMMAND("blmove", cmd_blmove, 6, W | OOM | CMD_BLOCKING, 1, 2, 1, "list", "6.2.0", "list",
        "O(log N)",
        .summary = "Moves an element from one list to another, and waits for one to be there.",
        .syntax = "source destination#1 wherefrom(LEFT|RIGHT) whereto(LEFT|RIGHT) timeout",
        .key_flags = "RW access delete;RW insert")
COMMAND(
    "blmpop", cmd_blmpop, -5, W | CMD_BLOCKING | CMD_MOVABLE_KEYS, 0, 0, 0, "list", "7.0.0", "list",
    "O(N+M), N being the number of keys and M that of elements taken",
    .summary = "Takes elements from the first of several lists that has any, and waits for them.",
    .syntax = "timeout numkeys key... where(LEFT|RIGHT) [COUNT count]",
    .key_flags = "RW access delete", .key_count_at = 2)
COMMAND("blpop", cmd_blpop, -3, W | CMD_BLOCKING, 1, -2, 1, "list", "2.0.0", "list",
        "O(N), N being the number of keys",
        .summary = "Takes the first element of the first list that has any, and waits for it.",
        .syntax = "key... timeout", .key_flags = "RW access delete")
COMMAND("brpop", cmd_brpop, -3, W | CMD_BLOCKING, 1, -2, 1, "list", "2.0.0", "list",
        "O(N), N being the number of keys",
        .summary = "Takes the last element of the first list that has any, and waits for it.",
        .syntax = "key... timeout", .key_flags = "RW access delete")
COMMAND(
    "brpoplpush", cmd_brpoplpush, 4, W | OOM | CMD_BLOCKING, 1, 2, 1, "list", "2.2.0", "list",
    "O(log N)",
    .summary = "Moves the last element of a list to the beginning of another, and waits for it.",
    .syntax = "source destination#1 timeout", .key_flags = "RW access delete;RW insert",
    .deprecated = "6.2.0 `BLMOVE` with the `RIGHT` and `LEFT` arguments")
COMMAND("lindex", cmd_lindex, 3, R, 1, 1, 1, "list", "1.0.0", "list", "O(log N)",
        .summary = "Reads the element at a position of a list.", .syntax = "key index",
        .key_flags = RO)
COMMAND("linsert", cmd_linsert, 5, W | OOM, 1, 1, 1, "list", "2.2.0", "list",
        "O(N), N being the elements up to the one that is looked for",
        .summary = "Puts an element before or after the first one with a certain value.",
        .syntax = "key where(BEFORE|AFTER) pivot element", .key_flags = "RW insert")
COMMAND("llen", cmd_llen, 2, R | FAST, 1, 1, 1, "list", "1.0.0", "list", "O(1)",
        .summary = "Counts the elements of a list.", .syntax = "key", .key_flags = "RO")
COMMAND("lmove", cmd_lmove, 5, W | OOM, 1, 2, 1, "list", "6.2.0", "list", "O(log N)",
        .summary = "Moves an element from one end of a list to an end of another, or of the same.",
        .syntax = "source destination#1 wherefrom(LEFT|RIGHT) whereto(LEFT|RIGHT)",
        .key_flags = "RW access delete;RW insert")
COMMAND("lmpop", cmd_lmpop, -4, W | CMD_MOVABLE_KEYS, 0, 0, 0, "list", "7.0.0", "list",
        "O(N+M), N being the number of keys and M that of elements taken",
        .summary = "Takes elements from an end of the first of several lists that has any.",
        .syntax = "numkeys key... where(LEFT|RIGHT) [COUNT count]", .key_flags = "RW access delete",
        .key_count_at = 1)
COMMAND("lpop", cmd_lpop, -2, W | FAST, 1, 1, 1, "list", "1.0.0", "list",
        "O(N), N being the number of elements taken",
        .summary = "Takes one or more elements from the beginning of a list.",
        .syntax = "key [count@6.2.0]", .key_flags = "RW access delete")
COMMAND("lpos", cmd_lpos, -3, R, 1, 1, 1, "list", "6.0.6", "list",
        "O(N), N being the length of the list",
        .summary = "Finds the positions of elements with a certain value.",
        .syntax = "key element [RANK rank] [COUNT num-matches] [MAXLEN len]", .key_flags = RO)
COMMAND("lpush", cmd_lpush, -3, W | OOM | FAST, 1, 1, 1, "list", "1.0.0", "list",
        "O(N), N being the number of elements",
        .summary = "Puts elements before the first of a list, making the key where it is missing.",
        .syntax = "key element...", .key_flags = "RW insert")
COMMAND("lpushx", cmd_lpushx, -3, W | OOM | FAST, 1, 1, 1, "list", "2.2.0", "list",
        "O(N), N being the number of elements",
        .summary = "Puts elements before the first of a list if there is one.",
        .syntax = "key element...", .key_flags = "RW insert")
COMMAND("lrange", cmd_lrange, 4, R, 1, 1, 1, "list", "1.0.0", "list",
        "O(log N+M), M being the number of elements read", .summary = "Reads a part of a list.",
        .syntax = "key start stop", .key_flags = RO)
COMMAND("lrem", cmd_lrem, 4, W, 1, 1, 1, "list", "1.0.0", "list",
        "O(N), N being the length of the list",
        .summary = "Removes elements with a certain value from a list.",
        .syntax = "key count element", .key_flags = "RW delete")
COMMAND("lset", cmd_lset, 4, W | OOM, 1, 1, 1, "list", "1.0.0", "list", "O(log N)",
        .summary = "Replaces the element at a position of a list.", .syntax = "key index element",
        .key_flags = "RW update")
COMMAND("ltrim", cmd_ltrim, 4, W, 1, 1, 1, "list", "1.0.0", "list",
        "O(N), N being the number of elements removed, or of those kept where they are fewer",
        .summary = "Removes all but a part of a list.", .syntax = "key start stop",
        .key_flags = "RW delete")
COMMAND("rpop", cmd_rpop, -2, W | FAST, 1, 1, 1, "list", "1.0.0", "list",
        "O(N), N being the number of elements taken",
        .summary = "Takes one or more elements from the end of a list.",
        .syntax = "key [count@6.2.0]", .key_flags = "RW access delete")
COMMAND("rpoplpush", cmd_rpoplpush, 3, W | OOM, 1, 2, 1, "list", "1.2.0", "list", "O(log N)",
        .summary = "Moves the last element of a list to the beginning of another, or of the same.",
        .syntax = "source destination#1", .key_flags = "RW access delete;RW insert",
        .deprecated = "6.2.0 `LMOVE` with the `RIGHT` and `LEFT` arguments")
COMMAND("rpush", cmd_rpush, -3, W | OOM | FAST, 1, 1, 1, "list", "1.0.0", "list",
        "O(N), N being the number of elements",
        .summary = "Puts elements behind the last of a list, making the key where it is missing.",
        .syntax = "key element...", .key_flags = "RW insert")
COMMAND("rpushx", cmd_rpushx, -3, W | OOM | FAST, 1, 1, 1, "list", "2.2.0", "list",
        "O(N), N being the number of elements",
        .summary = "Puts elements behind the last of a list if there is one.",
        .syntax = "key element...", .key_flags = "RW insert")

/* ---- sorted-set ---- */

COMMAND("bzmpop", cmd_bzmpop, -5, W | CMD_BLOCKING | CMD_MOVABLE_KEYS, 0, 0, 0, "sortedset",
        "7.0.0", "sorted-set",
        "O(K+M*log N), K being the number of keys and M that of members taken",
        .summary = "Takes members as ZMPOP does, or waits until there is one.",
        .syntax = "timeout numkeys key... where(MIN|MAX) [COUNT count]",
        .key_flags = "RW access delete", .key_count_at = 2)
COMMAND("bzpopmax", cmd_bzpopmax, -3, W | FAST | CMD_BLOCKING, 1, -2, 1, "sortedset", "5.0.0",
        "sorted-set", "O(log N)",
        .summary = "Takes the member with the greatest score from the first of several sorted sets "
                   "that has any, or waits for one.",
        .syntax = "key... timeout", .key_flags = "RW access delete")
COMMAND("bzpopmin", cmd_bzpopmin, -3, W | FAST | CMD_BLOCKING, 1, -2, 1, "sortedset", "5.0.0",
        "sorted-set", "O(log N)",
        .summary =
            "Takes the member with the least score from the first of several sorted sets that "
            "has any, or waits for one.",
        .syntax = "key... timeout", .key_flags = "RW access delete")
COMMAND("zadd", cmd_zadd, -4, W | OOM | FAST, 1, 1, 1, "sortedset", "1.2.0", "sorted-set",
        "O(log N) for each member, N being their number",
        .summary = "Adds members to a sorted set or changes their scores; options make conditions.",
        .syntax = "key [condition(NX|XX)@3.0.2] [comparison(GT|LT)@6.2.0] [change=CH@3.0.2] "
                  "[increment=INCR@3.0.2] data(score member)...",
        .key_flags = "RW update", .probes = probes_of, .member_at = 3, .score_at = 2,
        .follows_score = true)
COMMAND("zcard", cmd_zcard, 2, R | FAST, 1, 1, 1, "sortedset", "1.2.0", "sorted-set", "O(1)",
        .summary = "Counts the members of a sorted set.", .syntax = "key", .key_flags = "RO")
COMMAND("zcount", cmd_zcount, 4, R | FAST, 1, 1, 1, "sortedset", "2.0.0", "sorted-set", "O(log N)",
        .summary = "Counts the members with scores in a range.", .syntax = "key min max",
        .key_flags = RO)
COMMAND("zdiff", cmd_zdiff, -3, R | CMD_MOVABLE_KEYS, 0, 0, 0, "sortedset", "6.2.0", "sorted-set",
        "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Shows what the first of several sorted sets has and the others have not.",
        .syntax = "numkeys key... [WITHSCORES]", .key_flags = RO, .key_count_at = 1)
COMMAND("zdiffstore", cmd_zdiffstore, -4, W | OOM | CMD_MOVABLE_KEYS, 1, 1, 1, "sortedset", "6.2.0",
        "sorted-set", "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Stores what the first of several sorted sets has and the others have not.",
        .syntax = "destination numkeys key#1...", .key_flags = "OW update;RO access",
        .key_count_at = 2)
COMMAND("zincrby", cmd_zincrby, 4, W | OOM | FAST, 1, 1, 1, "sortedset", "1.2.0", "sorted-set",
        "O(log N)", .summary = "Adds to the score of a member, which is made where it is missing.",
        .syntax = "key increment member", .key_flags = RW, .probes = probes_of, .member_at = 3,
        .follows_score = true)
COMMAND("zinter", cmd_zinter, -3, R | CMD_MOVABLE_KEYS, 0, 0, 0, "sortedset", "6.2.0", "sorted-set",
        "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Shows what all of several sorted sets have.",
        .syntax = "numkeys key... " WEIGHED " [WITHSCORES]", .key_flags = RO, .key_count_at = 1)
COMMAND("zintercard", cmd_zintercard, -3, R | CMD_MOVABLE_KEYS, 0, 0, 0, "sortedset", "7.0.0",
        "sorted-set", "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Counts what all of several sorted sets have.",
        .syntax = "numkeys key... [LIMIT limit]", .key_flags = RO, .key_count_at = 1)
COMMAND("zinterstore", cmd_zinterstore, -4, W | OOM | CMD_MOVABLE_KEYS, 1, 1, 1, "sortedset",
        "2.0.0", "sorted-set", "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Stores what all of several sorted sets have.",
        .syntax = "destination numkeys key#1... " WEIGHED, .key_flags = "OW update;RO access",
        .key_count_at = 2)
COMMAND("zlexcount", cmd_zlexcount, 4, R | FAST, 1, 1, 1, "sortedset", "2.8.9", "sorted-set",
        "O(log N)", .summary = "Counts the members in a range, where all have the same score.",
        .syntax = "key min:string max:string", .key_flags = RO)
COMMAND("zmpop", cmd_zmpop, -4, W | CMD_MOVABLE_KEYS, 0, 0, 0, "sortedset", "7.0.0", "sorted-set",
        "O(K+M*log N), K being the number of keys and M that of members taken",
        .summary =
            "Takes members with the least or greatest scores from the first of several sorted "
            "sets that has any.",
        .syntax = "numkeys key... where(MIN|MAX) [COUNT count]", .key_flags = "RW access delete",
        .key_count_at = 1)
COMMAND("zmscore", cmd_zmscore, -3, R | FAST, 1, 1, 1, "sortedset", "6.2.0", "sorted-set",
        "O(log N) for each member, N being their number", .summary = "Shows the scores of members.",
        .syntax = "key member...", .key_flags = RO, .probes = probes_of, .member_at = 2)
COMMAND("zpopmax", cmd_zpopmax, -2, W | FAST, 1, 1, 1, "sortedset", "5.0.0", "sorted-set",
        "O(M*log N), M being the number of members taken",
        .summary = "Takes the members with the greatest scores.", .syntax = "key [count]",
        .key_flags = "RW access delete", .probes = probes_of, .takes_last = true)
COMMAND("zpopmin", cmd_zpopmin, -2, W | FAST, 1, 1, 1, "sortedset", "5.0.0", "sorted-set",
        "O(M*log N), M being the number of members taken",
        .summary = "Takes the members with the least scores.", .syntax = "key [count]",
        .key_flags = "RW access delete", .probes = probes_of, .takes_first = true)
COMMAND("zrandmember", cmd_zrandmember, -2, R, 1, 1, 1, "sortedset", "6.2.0", "sorted-set",
        "O(log N) for each member, N being their number",
        .summary = "Shows one or more members picked by chance.",
        .syntax = "key [options(count [WITHSCORES])]", .key_flags = RO, .tips = VARYING)
COMMAND("zrange", cmd_zrange, -4, R, 1, 1, 1, "sortedset", "1.2.0", "sorted-set",
        "O(log N+M), M being the number of elements shown",
        .summary = "Shows a range of a sorted set, by rank, score or member.",
        .syntax = "key start:string stop:string [sortby(BYSCORE|BYLEX)@6.2.0] [REV@6.2.0] [LIMIT "
                  "limit(offset count)@6.2.0] [WITHSCORES]",
        .key_flags = RO)
COMMAND("zrangebylex", cmd_zrangebylex, -4, R, 1, 1, 1, "sortedset", "2.8.9", "sorted-set",
        "O(log N+M), M being the number of elements shown",
        .summary = "Shows the members in a range, where all have the same score.",
        .syntax = "key min:string max:string " LIMIT, .key_flags = RO,
        .deprecated = "6.2.0 `ZRANGE` with the `BYLEX` argument")
COMMAND("zrangebyscore", cmd_zrangebyscore, -4, R, 1, 1, 1, "sortedset", "1.0.5", "sorted-set",
        "O(log N+M), M being the number of elements shown",
        .summary = "Shows the members with scores in a range.",
        .syntax = "key min max [WITHSCORES@2.0.0] " LIMIT, .key_flags = RO,
        .deprecated = "6.2.0 `ZRANGE` with the `BYSCORE` argument")
COMMAND("zrangestore", cmd_zrangestore, -5, W | OOM, 1, 2, 1, "sortedset", "6.2.0", "sorted-set",
        "O(log N+M), M being the number of elements shown",
        .summary = "Stores a range of a sorted set as another.",
        .syntax = "dst src#1 min:string max:string [sortby(BYSCORE|BYLEX)] [REV] " LIMIT,
        .key_flags = "OW update;RO access")
COMMAND("zrank", cmd_zrank, -3, R | FAST, 1, 1, 1, "sortedset", "2.0.0", "sorted-set", "O(log N)",
        .summary = "Tells how many members are before one.", .syntax = "key member [WITHSCORE]",
        .key_flags = RO, .probes = probes_of, .member_at = 2, .follows_score = true)
COMMAND("zrem", cmd_zrem, -3, W | FAST, 1, 1, 1, "sortedset", "1.2.0", "sorted-set",
        "O(log N) for each member, N being their number",
        .summary = "Removes members from a sorted set.", .syntax = "key member...",
        .key_flags = "RW delete", .probes = probes_of, .member_at = 2, .follows_score = true)
COMMAND("zremrangebylex", cmd_zremrangebylex, 4, W, 1, 1, 1, "sortedset", "2.8.9", "sorted-set",
        "O(log N+M), M being the number of elements removed",
        .summary = "Removes the members in a range, where all have the same score.",
        .syntax = "key min:string max:string", .key_flags = "RW delete")
COMMAND("zremrangebyrank", cmd_zremrangebyrank, 4, W, 1, 1, 1, "sortedset", "2.0.0", "sorted-set",
        "O(log N+M), M being the number of elements removed",
        .summary = "Removes the members with ranks in a range.", .syntax = "key start stop",
        .key_flags = "RW delete")
COMMAND("zremrangebyscore", cmd_zremrangebyscore, 4, W, 1, 1, 1, "sortedset", "1.2.0", "sorted-set",
        "O(log N+M), M being the number of elements removed",
        .summary = "Removes the members with scores in a range.", .syntax = "key min max",
        .key_flags = "RW delete")
COMMAND("zrevrange", cmd_zrevrange, -4, R, 1, 1, 1, "sortedset", "1.2.0", "sorted-set",
        "O(log N+M), M being the number of elements shown",
        .summary = "Shows the members with ranks in a range, the last one first.",
        .syntax = "key start stop [WITHSCORES]", .key_flags = RO,
        .deprecated = "6.2.0 `ZRANGE` with the `REV` argument")
COMMAND(
    "zrevrangebylex", cmd_zrevrangebylex, -4, R, 1, 1, 1, "sortedset", "2.8.9", "sorted-set",
    "O(log N+M), M being the number of elements shown",
    .summary = "Shows the members in a range, the last one first, where all have the same score.",
    .syntax = "key max:string min:string " LIMIT, .key_flags = RO,
    .deprecated = "6.2.0 `ZRANGE` with the `REV` and `BYLEX` arguments")
COMMAND("zrevrangebyscore", cmd_zrevrangebyscore, -4, R, 1, 1, 1, "sortedset", "2.2.0",
        "sorted-set", "O(log N+M), M being the number of elements shown",
        .summary = "Shows the members with scores in a range, the greatest first.",
        .syntax = "key max min [WITHSCORES] " LIMIT, .key_flags = RO,
        .deprecated = "6.2.0 `ZRANGE` with the `REV` and `BYSCORE` arguments")
COMMAND("zrevrank", cmd_zrevrank, -3, R | FAST, 1, 1, 1, "sortedset", "2.0.0", "sorted-set",
        "O(log N)", .summary = "Tells how many members are behind one.",
        .syntax = "key member [WITHSCORE]", .key_flags = RO, .probes = probes_of, .member_at = 2,
        .follows_score = true)
COMMAND("zscan", cmd_zscan, -3, R, 1, 1, 1, "sortedset", "2.8.0", "sorted-set",
        "O(1) for each call, O(N) for a whole walk",
        .summary = "Walks the members of a sorted set, some in each call.", .syntax = "key " WALK,
        .key_flags = RO, .tips = VARYING)
COMMAND("zscore", cmd_zscore, 3, R | FAST, 1, 1, 1, "sortedset", "1.2.0", "sorted-set", "O(1)",
        .summary = "Shows the score of a member.", .syntax = "key member", .key_flags = RO,
        .probes = probes_of, .member_at = 2)
COMMAND("zunion", cmd_zunion, -3, R | CMD_MOVABLE_KEYS, 0, 0, 0, "sortedset", "6.2.0", "sorted-set",
        "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Shows what any of several sorted sets has.",
        .syntax = "numkeys key... " WEIGHED " [WITHSCORES]", .key_flags = RO, .key_count_at = 1)
COMMAND("zunionstore", cmd_zunionstore, -4, W | OOM | CMD_MOVABLE_KEYS, 1, 1, 1, "sortedset",
        "2.0.0", "sorted-set", "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Stores what any of several sorted sets has.",
        .syntax = "destination numkeys key#1... " WEIGHED, .key_flags = "OW update;RO access",
        .key_count_at = 2)
