/* Rows of the command table (command_table.c): hashes, sets, lists and sorted sets. */

/* ---- hash ---- */

COMMAND("hdel", cmd_hdel, -3, W | FAST, 1, 1, 1, "hash", "2.0.0", "hash",
        "O(N), N being the number of fields named",
        .summary = "Deletes fields of a hash; an empty hash is deleted.", .syntax = "key field...",
        .key_flags = "RW delete", .probes = probes_of, .member_at = 2)
COMMAND("hexists", cmd_hexists, 3, R | FAST, 1, 1, 1, "hash", "2.0.0", "hash", "O(1)",
        .summary = "Tests whether a field exists in a hash.", .syntax = "key field",
        .key_flags = "RO", .probes = probes_of, .member_at = 2)
COMMAND("hget", cmd_hget, 3, R | FAST, 1, 1, 1, "hash", "2.0.0", "hash", "O(1)",
        .summary = "Returns the value of a field in a hash.", .syntax = "key field",
        .key_flags = RO, .probes = probes_of, .member_at = 2)
COMMAND("hgetall", cmd_hgetall, 2, R, 1, 1, 1, "hash", "2.0.0", "hash",
        "O(N), N being the size of the hash",
        .summary = "Returns all fields of a hash with their values.", .syntax = "key",
        .key_flags = RO, .tips = VARYING_ORDER)
COMMAND("hincrby", cmd_hincrby, 4, W | OOM | FAST, 1, 1, 1, "hash", "2.0.0", "hash", "O(1)",
        .summary = "Increments the integer in a field of a hash; a missing field counts as 0.",
        .syntax = "key field increment", .key_flags = RW, .probes = probes_of, .member_at = 2)
COMMAND(
    "hincrbyfloat", cmd_hincrbyfloat, 4, W | OOM | FAST, 1, 1, 1, "hash", "2.6.0", "hash", "O(1)",
    .summary =
        "Increments the floating-point number in a field of a hash; a missing field counts as 0.",
    .syntax = "key field increment:double", .key_flags = RW, .probes = probes_of, .member_at = 2)
COMMAND("hkeys", cmd_hkeys, 2, R, 1, 1, 1, "hash", "2.0.0", "hash",
        "O(N), N being the size of the hash", .summary = "Lists the fields of a hash.",
        .syntax = "key", .key_flags = RO, .tips = VARYING_ORDER)
COMMAND("hlen", cmd_hlen, 2, R | FAST, 1, 1, 1, "hash", "2.0.0", "hash", "O(1)",
        .summary = "Counts the fields of a hash.", .syntax = "key", .key_flags = "RO")
COMMAND("hmget", cmd_hmget, -3, R | FAST, 1, 1, 1, "hash", "2.0.0", "hash",
        "O(N), N being the number of fields named",
        .summary = "Returns the values of several fields of a hash.", .syntax = "key field...",
        .key_flags = RO, .probes = probes_of, .member_at = 2)
COMMAND("hmset", cmd_hmset, -4, W | OOM | FAST, 1, 1, 1, "hash", "2.0.0", "hash",
        "O(N), N being the number of fields named", .summary = "Sets several fields of a hash.",
        .syntax = "key data(field value)...", .key_flags = "RW update",
        .deprecated = "4.0.0 `HSET` with multiple field-value pairs", .probes = probes_of,
        .member_at = 2)
COMMAND("hrandfield", cmd_hrandfield, -2, R, 1, 1, 1, "hash", "6.2.0", "hash",
        "O(N), N being the number of fields wanted", .summary = "Returns random fields of a hash.",
        .syntax = "key [options(count [WITHVALUES])]", .key_flags = RO, .tips = VARYING)
COMMAND("hscan", cmd_hscan, -3, R, 1, 1, 1, "hash", "2.8.0", "hash",
        "O(1) for every call, O(N) for all fields",
        .summary = "Iterates over the fields of a hash.", .syntax = "key " WALK, .key_flags = RO,
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
        .summary = "Returns the length of the value in a field of a hash.", .syntax = "key field",
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
        .summary = "Returns the difference of a set and others.", .syntax = "key...",
        .key_flags = RO, .tips = VARYING_ORDER)
COMMAND("sdiffstore", cmd_sdiffstore, -3, W | OOM, 1, -1, 1, "set", "1.0.0", "set",
        "O(N), N being the size of all sets",
        .summary = "Stores the difference of a set and others.", .syntax = "destination key#1...",
        .key_flags = "OW update;RO access")
COMMAND("sinter", cmd_sinter, -2, R, 1, -1, 1, "set", "1.0.0", "set",
        "O(N*M), N being the size of the smallest set and M the number of sets",
        .summary = "Returns the intersection of sets.", .syntax = "key...", .key_flags = RO,
        .tips = VARYING_ORDER)
COMMAND("sintercard", cmd_sintercard, -3, R | CMD_MOVABLE_KEYS, 0, 0, 0, "set", "7.0.0", "set",
        "O(N*M), N being the size of the smallest set and M the number of sets",
        .summary = "Counts the members of the intersection of sets.",
        .syntax = "numkeys key... [LIMIT limit]", .key_flags = RO, .key_count_at = 1)
COMMAND("sinterstore", cmd_sinterstore, -3, W | OOM, 1, -1, 1, "set", "1.0.0", "set",
        "O(N*M), N being the size of the smallest set and M the number of sets",
        .summary = "Stores the intersection of sets.", .syntax = "destination key#1...",
        .key_flags = "RW update;RO access")
COMMAND("sismember", cmd_sismember, 3, R | FAST, 1, 1, 1, "set", "1.0.0", "set", "O(1)",
        .summary = "Tests whether a set contains a member.", .syntax = "key member",
        .key_flags = "RO", .probes = probes_of, .member_at = 2)
COMMAND("smembers", cmd_smembers, 2, R, 1, 1, 1, "set", "1.0.0", "set",
        "O(N), N being the size of the set", .summary = "Lists the members of a set.",
        .syntax = "key", .key_flags = RO, .tips = VARYING_ORDER)
COMMAND("smismember", cmd_smismember, -3, R | FAST, 1, 1, 1, "set", "6.2.0", "set",
        "O(N), N being the number of members named",
        .summary = "Tests for each of several members whether a set contains it.",
        .syntax = "key member...", .key_flags = RO, .probes = probes_of, .member_at = 2)
COMMAND("smove", cmd_smove, 4, W | FAST, 1, 2, 1, "set", "1.0.0", "set", "O(1)",
        .summary = "Moves a member from one set to another.",
        .syntax = "source destination#1 member", .key_flags = "RW access delete;RW insert")
COMMAND("spop", cmd_spop, -2, W | FAST, 1, 1, 1, "set", "1.0.0", "set",
        "O(N), N being the number of members wanted",
        .summary = "Removes and returns random members of a set.", .syntax = "key [count@3.2.0]",
        .key_flags = "RW access delete", .tips = VARYING)
COMMAND("srandmember", cmd_srandmember, -2, R, 1, 1, 1, "set", "1.0.0", "set",
        "O(N), N being the number of members wanted", .summary = "Returns random members of a set.",
        .syntax = "key [count@2.6.0]", .key_flags = RO, .tips = VARYING)
COMMAND("srem", cmd_srem, -3, W | FAST, 1, 1, 1, "set", "1.0.0", "set",
        "O(N), N being the number of members named",
        .summary = "Removes members from a set; an empty set is deleted.",
        .syntax = "key member...", .key_flags = "RW delete", .probes = probes_of, .member_at = 2)
COMMAND("sscan", cmd_sscan, -3, R, 1, 1, 1, "set", "2.8.0", "set",
        "O(1) for every call, O(N) for all members",
        .summary = "Iterates over the members of a set.", .syntax = "key " WALK, .key_flags = RO,
        .tips = VARYING)
COMMAND("sunion", cmd_sunion, -2, R, 1, -1, 1, "set", "1.0.0", "set",
        "O(N), N being the size of all sets", .summary = "Returns the union of sets.",
        .syntax = "key...", .key_flags = RO, .tips = VARYING_ORDER)
COMMAND("sunionstore", cmd_sunionstore, -3, W | OOM, 1, -1, 1, "set", "1.0.0", "set",
        "O(N), N being the size of all sets", .summary = "Stores the union of sets.",
        .syntax = "destination key#1...", .key_flags = "OW update;RO access")

/* ---- list ---- */

COMMAND("blmove", cmd_blmove, 6, W | OOM | CMD_BLOCKING, 1, 2, 1, "list", "6.2.0", "list",
        "O(log N)",
        .summary = "Moves an element from one list to another; blocks until there is one.",
        .syntax = "source destination#1 wherefrom(LEFT|RIGHT) whereto(LEFT|RIGHT) timeout",
        .key_flags = "RW access delete;RW insert")
COMMAND("blmpop", cmd_blmpop, -5, W | CMD_BLOCKING | CMD_MOVABLE_KEYS, 0, 0, 0, "list", "7.0.0",
        "list", "O(N+M), N being the number of keys and M that of elements taken",
        .summary =
            "Removes and returns elements of the first non-empty list; blocks until there is one.",
        .syntax = "timeout numkeys key... where(LEFT|RIGHT) [COUNT count]",
        .key_flags = "RW access delete", .key_count_at = 2)
COMMAND("blpop", cmd_blpop, -3, W | CMD_BLOCKING, 1, -2, 1, "list", "2.0.0", "list",
        "O(N), N being the number of keys",
        .summary = "Removes and returns the first element of the first non-empty list; blocks "
                   "until there is one.",
        .syntax = "key... timeout", .key_flags = "RW access delete")
COMMAND("brpop", cmd_brpop, -3, W | CMD_BLOCKING, 1, -2, 1, "list", "2.0.0", "list",
        "O(N), N being the number of keys",
        .summary = "Removes and returns the last element of the first non-empty list; blocks until "
                   "there is one.",
        .syntax = "key... timeout", .key_flags = "RW access delete")
COMMAND("brpoplpush", cmd_brpoplpush, 4, W | OOM | CMD_BLOCKING, 1, 2, 1, "list", "2.2.0", "list",
        "O(log N)",
        .summary =
            "Moves the last element of a list to the head of another; blocks until there is one.",
        .syntax = "source destination#1 timeout", .key_flags = "RW access delete;RW insert",
        .deprecated = "6.2.0 `BLMOVE` with the `RIGHT` and `LEFT` arguments")
COMMAND("lindex", cmd_lindex, 3, R, 1, 1, 1, "list", "1.0.0", "list", "O(log N)",
        .summary = "Returns the element at an index of a list.", .syntax = "key index",
        .key_flags = RO)
COMMAND("linsert", cmd_linsert, 5, W | OOM, 1, 1, 1, "list", "2.2.0", "list",
        "O(N), N being the elements up to the one that is looked for",
        .summary = "Inserts an element before or after the first element with a given value.",
        .syntax = "key where(BEFORE|AFTER) pivot element", .key_flags = "RW insert")
COMMAND("llen", cmd_llen, 2, R | FAST, 1, 1, 1, "list", "1.0.0", "list", "O(1)",
        .summary = "Counts the elements of a list.", .syntax = "key", .key_flags = "RO")
COMMAND("lmove", cmd_lmove, 5, W | OOM, 1, 2, 1, "list", "6.2.0", "list", "O(log N)",
        .summary = "Moves an element from one end of a list to an end of another, or of the same.",
        .syntax = "source destination#1 wherefrom(LEFT|RIGHT) whereto(LEFT|RIGHT)",
        .key_flags = "RW access delete;RW insert")
COMMAND("lmpop", cmd_lmpop, -4, W | CMD_MOVABLE_KEYS, 0, 0, 0, "list", "7.0.0", "list",
        "O(N+M), N being the number of keys and M that of elements taken",
        .summary = "Removes and returns elements from one end of the first non-empty list.",
        .syntax = "numkeys key... where(LEFT|RIGHT) [COUNT count]", .key_flags = "RW access delete",
        .key_count_at = 1)
COMMAND("lpop", cmd_lpop, -2, W | FAST, 1, 1, 1, "list", "1.0.0", "list",
        "O(N), N being the number of elements taken",
        .summary = "Removes and returns elements from the head of a list.",
        .syntax = "key [count@6.2.0]", .key_flags = "RW access delete")
COMMAND("lpos", cmd_lpos, -3, R, 1, 1, 1, "list", "6.0.6", "list",
        "O(N), N being the length of the list",
        .summary = "Finds the indexes of elements with a given value.",
        .syntax = "key element [RANK rank] [COUNT num-matches] [MAXLEN len]", .key_flags = RO)
COMMAND("lpush", cmd_lpush, -3, W | OOM | FAST, 1, 1, 1, "list", "1.0.0", "list",
        "O(N), N being the number of elements",
        .summary = "Prepends elements to a list; creates the key if it is missing.",
        .syntax = "key element...", .key_flags = "RW insert")
COMMAND("lpushx", cmd_lpushx, -3, W | OOM | FAST, 1, 1, 1, "list", "2.2.0", "list",
        "O(N), N being the number of elements",
        .summary = "Prepends elements to a list if it exists.", .syntax = "key element...",
        .key_flags = "RW insert")
COMMAND("lrange", cmd_lrange, 4, R, 1, 1, 1, "list", "1.0.0", "list",
        "O(log N+M), M being the number of elements read", .summary = "Returns a range of a list.",
        .syntax = "key start stop", .key_flags = RO)
COMMAND("lrem", cmd_lrem, 4, W, 1, 1, 1, "list", "1.0.0", "list",
        "O(N), N being the length of the list",
        .summary = "Removes elements with a given value from a list.",
        .syntax = "key count element", .key_flags = "RW delete")
COMMAND("lset", cmd_lset, 4, W | OOM, 1, 1, 1, "list", "1.0.0", "list", "O(log N)",
        .summary = "Replaces the element at an index of a list.", .syntax = "key index element",
        .key_flags = "RW update")
COMMAND("ltrim", cmd_ltrim, 4, W, 1, 1, 1, "list", "1.0.0", "list",
        "O(N), N being the number of elements removed, or of those kept where they are fewer",
        .summary = "Trims a list to a range.", .syntax = "key start stop", .key_flags = "RW delete")
COMMAND("rpop", cmd_rpop, -2, W | FAST, 1, 1, 1, "list", "1.0.0", "list",
        "O(N), N being the number of elements taken",
        .summary = "Removes and returns elements from the tail of a list.",
        .syntax = "key [count@6.2.0]", .key_flags = "RW access delete")
COMMAND("rpoplpush", cmd_rpoplpush, 3, W | OOM, 1, 2, 1, "list", "1.2.0", "list", "O(log N)",
        .summary = "Moves the last element of a list to the head of another, or of the same.",
        .syntax = "source destination#1", .key_flags = "RW access delete;RW insert",
        .deprecated = "6.2.0 `LMOVE` with the `RIGHT` and `LEFT` arguments")
COMMAND("rpush", cmd_rpush, -3, W | OOM | FAST, 1, 1, 1, "list", "1.0.0", "list",
        "O(N), N being the number of elements",
        .summary = "Appends elements to a list; creates the key if it is missing.",
        .syntax = "key element...", .key_flags = "RW insert")
COMMAND("rpushx", cmd_rpushx, -3, W | OOM | FAST, 1, 1, 1, "list", "2.2.0", "list",
        "O(N), N being the number of elements",
        .summary = "Appends elements to a list if it exists.", .syntax = "key element...",
        .key_flags = "RW insert")

/* ---- sorted-set ---- */

COMMAND("bzmpop", cmd_bzmpop, -5, W | CMD_BLOCKING | CMD_MOVABLE_KEYS, 0, 0, 0, "sortedset",
        "7.0.0", "sorted-set",
        "O(K+M*log N), K being the number of keys and M that of members taken",
        .summary = "Removes and returns members as ZMPOP does; blocks until there is one.",
        .syntax = "timeout numkeys key... where(MIN|MAX) [COUNT count]",
        .key_flags = "RW access delete", .key_count_at = 2)
COMMAND("bzpopmax", cmd_bzpopmax, -3, W | FAST | CMD_BLOCKING, 1, -2, 1, "sortedset", "5.0.0",
        "sorted-set", "O(log N)",
        .summary = "Removes and returns the member with the highest score from the first non-empty "
                   "sorted set; blocks until there is one.",
        .syntax = "key... timeout", .key_flags = "RW access delete")
COMMAND("bzpopmin", cmd_bzpopmin, -3, W | FAST | CMD_BLOCKING, 1, -2, 1, "sortedset", "5.0.0",
        "sorted-set", "O(log N)",
        .summary = "Removes and returns the member with the lowest score from the first non-empty "
                   "sorted set; blocks until there is one.",
        .syntax = "key... timeout", .key_flags = "RW access delete")
COMMAND("zadd", cmd_zadd, -4, W | OOM | FAST, 1, 1, 1, "sortedset", "1.2.0", "sorted-set",
        "O(log N) for each member, N being their number",
        .summary = "Adds members to a sorted set or updates their scores; options give conditions.",
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
        .summary = "Returns the difference of a sorted set and others.",
        .syntax = "numkeys key... [WITHSCORES]", .key_flags = RO, .key_count_at = 1)
COMMAND("zdiffstore", cmd_zdiffstore, -4, W | OOM | CMD_MOVABLE_KEYS, 1, 1, 1, "sortedset", "6.2.0",
        "sorted-set", "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Stores the difference of a sorted set and others.",
        .syntax = "destination numkeys key#1...", .key_flags = "OW update;RO access",
        .key_count_at = 2)
COMMAND("zincrby", cmd_zincrby, 4, W | OOM | FAST, 1, 1, 1, "sortedset", "1.2.0", "sorted-set",
        "O(log N)",
        .summary = "Increments the score of a member; adds the member if it is missing.",
        .syntax = "key increment member", .key_flags = RW, .probes = probes_of, .member_at = 3,
        .follows_score = true)
COMMAND("zinter", cmd_zinter, -3, R | CMD_MOVABLE_KEYS, 0, 0, 0, "sortedset", "6.2.0", "sorted-set",
        "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Returns the intersection of sorted sets.",
        .syntax = "numkeys key... " WEIGHED " [WITHSCORES]", .key_flags = RO, .key_count_at = 1)
COMMAND("zintercard", cmd_zintercard, -3, R | CMD_MOVABLE_KEYS, 0, 0, 0, "sortedset", "7.0.0",
        "sorted-set", "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Counts the members of the intersection of sorted sets.",
        .syntax = "numkeys key... [LIMIT limit]", .key_flags = RO, .key_count_at = 1)
COMMAND("zinterstore", cmd_zinterstore, -4, W | OOM | CMD_MOVABLE_KEYS, 1, 1, 1, "sortedset",
        "2.0.0", "sorted-set", "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Stores the intersection of sorted sets.",
        .syntax = "destination numkeys key#1... " WEIGHED, .key_flags = "OW update;RO access",
        .key_count_at = 2)
COMMAND("zlexcount", cmd_zlexcount, 4, R | FAST, 1, 1, 1, "sortedset", "2.8.9", "sorted-set",
        "O(log N)", .summary = "Counts the members in a lexicographical range.",
        .syntax = "key min:string max:string", .key_flags = RO)
COMMAND("zmpop", cmd_zmpop, -4, W | CMD_MOVABLE_KEYS, 0, 0, 0, "sortedset", "7.0.0", "sorted-set",
        "O(K+M*log N), K being the number of keys and M that of members taken",
        .summary = "Removes and returns the members with the lowest or highest scores of the first "
                   "non-empty sorted set.",
        .syntax = "numkeys key... where(MIN|MAX) [COUNT count]", .key_flags = "RW access delete",
        .key_count_at = 1)
COMMAND("zmscore", cmd_zmscore, -3, R | FAST, 1, 1, 1, "sortedset", "6.2.0", "sorted-set",
        "O(log N) for each member, N being their number",
        .summary = "Returns the scores of members.", .syntax = "key member...", .key_flags = RO,
        .probes = probes_of, .member_at = 2)
COMMAND("zpopmax", cmd_zpopmax, -2, W | FAST, 1, 1, 1, "sortedset", "5.0.0", "sorted-set",
        "O(M*log N), M being the number of members taken",
        .summary = "Removes and returns the members with the highest scores.",
        .syntax = "key [count]", .key_flags = "RW access delete", .probes = probes_of,
        .takes_last = true)
COMMAND("zpopmin", cmd_zpopmin, -2, W | FAST, 1, 1, 1, "sortedset", "5.0.0", "sorted-set",
        "O(M*log N), M being the number of members taken",
        .summary = "Removes and returns the members with the lowest scores.",
        .syntax = "key [count]", .key_flags = "RW access delete", .probes = probes_of,
        .takes_first = true)
COMMAND("zrandmember", cmd_zrandmember, -2, R, 1, 1, 1, "sortedset", "6.2.0", "sorted-set",
        "O(log N) for each member, N being their number",
        .summary = "Returns random members of a sorted set.",
        .syntax = "key [options(count [WITHSCORES])]", .key_flags = RO, .tips = VARYING)
COMMAND("zrange", cmd_zrange, -4, R, 1, 1, 1, "sortedset", "1.2.0", "sorted-set",
        "O(log N+M), M being the number of elements shown",
        .summary = "Returns a range of a sorted set, by rank, score or member.",
        .syntax = "key start:string stop:string [sortby(BYSCORE|BYLEX)@6.2.0] [REV@6.2.0] [LIMIT "
                  "limit(offset count)@6.2.0] [WITHSCORES]",
        .key_flags = RO)
COMMAND("zrangebylex", cmd_zrangebylex, -4, R, 1, 1, 1, "sortedset", "2.8.9", "sorted-set",
        "O(log N+M), M being the number of elements shown",
        .summary = "Returns the members in a lexicographical range.",
        .syntax = "key min:string max:string " LIMIT, .key_flags = RO,
        .deprecated = "6.2.0 `ZRANGE` with the `BYLEX` argument")
COMMAND("zrangebyscore", cmd_zrangebyscore, -4, R, 1, 1, 1, "sortedset", "1.0.5", "sorted-set",
        "O(log N+M), M being the number of elements shown",
        .summary = "Returns the members with scores in a range.",
        .syntax = "key min max [WITHSCORES@2.0.0] " LIMIT, .key_flags = RO,
        .deprecated = "6.2.0 `ZRANGE` with the `BYSCORE` argument")
COMMAND("zrangestore", cmd_zrangestore, -5, W | OOM, 1, 2, 1, "sortedset", "6.2.0", "sorted-set",
        "O(log N+M), M being the number of elements shown",
        .summary = "Stores a range of a sorted set in another key.",
        .syntax = "dst src#1 min:string max:string [sortby(BYSCORE|BYLEX)] [REV] " LIMIT,
        .key_flags = "OW update;RO access")
COMMAND("zrank", cmd_zrank, -3, R | FAST, 1, 1, 1, "sortedset", "2.0.0", "sorted-set", "O(log N)",
        .summary = "Returns the rank of a member, in ascending order of scores.",
        .syntax = "key member [WITHSCORE]", .key_flags = RO, .probes = probes_of, .member_at = 2,
        .follows_score = true)
COMMAND("zrem", cmd_zrem, -3, W | FAST, 1, 1, 1, "sortedset", "1.2.0", "sorted-set",
        "O(log N) for each member, N being their number",
        .summary = "Removes members from a sorted set.", .syntax = "key member...",
        .key_flags = "RW delete", .probes = probes_of, .member_at = 2, .follows_score = true)
COMMAND("zremrangebylex", cmd_zremrangebylex, 4, W, 1, 1, 1, "sortedset", "2.8.9", "sorted-set",
        "O(log N+M), M being the number of elements removed",
        .summary = "Removes the members in a lexicographical range.",
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
        .summary = "Returns the members with ranks in a range, in reverse order.",
        .syntax = "key start stop [WITHSCORES]", .key_flags = RO,
        .deprecated = "6.2.0 `ZRANGE` with the `REV` argument")
COMMAND("zrevrangebylex", cmd_zrevrangebylex, -4, R, 1, 1, 1, "sortedset", "2.8.9", "sorted-set",
        "O(log N+M), M being the number of elements shown",
        .summary = "Returns the members in a lexicographical range, in reverse order.",
        .syntax = "key max:string min:string " LIMIT, .key_flags = RO,
        .deprecated = "6.2.0 `ZRANGE` with the `REV` and `BYLEX` arguments")
COMMAND("zrevrangebyscore", cmd_zrevrangebyscore, -4, R, 1, 1, 1, "sortedset", "2.2.0",
        "sorted-set", "O(log N+M), M being the number of elements shown",
        .summary = "Returns the members with scores in a range, in reverse order.",
        .syntax = "key max min [WITHSCORES] " LIMIT, .key_flags = RO,
        .deprecated = "6.2.0 `ZRANGE` with the `REV` and `BYSCORE` arguments")
COMMAND("zrevrank", cmd_zrevrank, -3, R | FAST, 1, 1, 1, "sortedset", "2.0.0", "sorted-set",
        "O(log N)", .summary = "Returns the rank of a member, in descending order of scores.",
        .syntax = "key member [WITHSCORE]", .key_flags = RO, .probes = probes_of, .member_at = 2,
        .follows_score = true)
COMMAND("zscan", cmd_zscan, -3, R, 1, 1, 1, "sortedset", "2.8.0", "sorted-set",
        "O(1) for each call, O(N) for a whole walk",
        .summary = "Iterates over the members of a sorted set.", .syntax = "key " WALK,
        .key_flags = RO, .tips = VARYING)
COMMAND("zscore", cmd_zscore, 3, R | FAST, 1, 1, 1, "sortedset", "1.2.0", "sorted-set", "O(1)",
        .summary = "Returns the score of a member.", .syntax = "key member", .key_flags = RO,
        .probes = probes_of, .member_at = 2)
COMMAND("zunion", cmd_zunion, -3, R | CMD_MOVABLE_KEYS, 0, 0, 0, "sortedset", "6.2.0", "sorted-set",
        "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Returns the union of sorted sets.",
        .syntax = "numkeys key... " WEIGHED " [WITHSCORES]", .key_flags = RO, .key_count_at = 1)
COMMAND("zunionstore", cmd_zunionstore, -4, W | OOM | CMD_MOVABLE_KEYS, 1, 1, 1, "sortedset",
        "2.0.0", "sorted-set", "O(N*K*log M), N being the size of all sources and K their number",
        .summary = "Stores the union of sorted sets.",
        .syntax = "destination numkeys key#1... " WEIGHED, .key_flags = "OW update;RO access",
        .key_count_at = 2)
