/* Rows of the command table (command_table.c): strings, and those that are read as bitmaps or
 * HyperLogLogs. */

/* ---- string ---- */

COMMAND("append", cmd_append, 3, W | OOM | FAST, 1, 1, 1, "string", "2.0.0", "string", "O(1)",
        .summary = "Appends bytes to a string; creates the key if it is missing.",
        .syntax = "key value", .key_flags = "RW insert")
COMMAND("decr", cmd_decr, 2, W | OOM | FAST, 1, 1, 1, "string", "1.0.0", "string", "O(1)",
        .summary = "Decrements the integer value of a key by one; a missing key counts as 0.",
        .syntax = "key", .key_flags = RW)
COMMAND("decrby", cmd_decrby, 3, W | OOM | FAST, 1, 1, 1, "string", "1.0.0", "string", "O(1)",
        .summary = "Decrements the integer value of a key by a number; a missing key counts as 0.",
        .syntax = "key decrement", .key_flags = RW)
COMMAND("get", cmd_get, 2, R | FAST, 1, 1, 1, "string", "1.0.0", "string", "O(1)",
        .summary = "Returns the string value of a key.", .syntax = "key", .key_flags = RO)
COMMAND("getdel", cmd_getdel, 2, W | FAST, 1, 1, 1, "string", "6.2.0", "string", "O(1)",
        .summary = "Returns the string value of a key and deletes the key.", .syntax = "key",
        .key_flags = "RW access delete")
COMMAND("getex", cmd_getex, -2, W | FAST, 1, 1, 1, "string", "6.2.0", "string", "O(1)",
        .summary = "Returns the string value of a key; options set or remove its expiry.",
        .syntax = "key [expiration(EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT "
                  "unix-time-milliseconds|PERSIST)]",
        .key_flags = RW)
COMMAND("getrange", cmd_getrange, 4, R, 1, 1, 1, "string", "2.4.0", "string",
        "O(N), N being the length of the part",
        .summary = "Returns a range of the string value of a key.", .syntax = "key start end",
        .key_flags = RO)
COMMAND("getset", cmd_getset, 3, W | OOM | FAST, 1, 1, 1, "string", "1.0.0", "string", "O(1)",
        .summary = "Sets a string and returns the previous one.", .syntax = "key value",
        .value_at = 2, .key_flags = RW, .deprecated = "6.2.0 `SET` with the `!GET` argument")
COMMAND("incr", cmd_incr, 2, W | OOM | FAST, 1, 1, 1, "string", "1.0.0", "string", "O(1)",
        .summary = "Increments the integer value of a key by one; a missing key counts as 0.",
        .syntax = "key", .key_flags = RW)
COMMAND("incrby", cmd_incrby, 3, W | OOM | FAST, 1, 1, 1, "string", "1.0.0", "string", "O(1)",
        .summary = "Increments the integer value of a key by a number; a missing key counts as 0.",
        .syntax = "key increment", .key_flags = RW)
COMMAND("incrbyfloat", cmd_incrbyfloat, 3, W | OOM | FAST, 1, 1, 1, "string", "2.6.0", "string",
        "O(1)",
        .summary = "Increments the floating-point value of a key; a missing key counts as 0.",
        .syntax = "key increment:double", .key_flags = RW)
COMMAND("lcs", cmd_lcs, -3, R, 1, 2, 1, "string", "7.0.0", "string",
        "O(N*M), N and M being the lengths of the two strings",
        .summary = "Finds the longest common subsequence of two strings.",
        .syntax = "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
        .key_flags = RO)
COMMAND("mget", cmd_mget, -2, R | FAST, 1, -1, 1, "string", "1.0.0", "string",
        "O(N), N being the number of keys",
        .summary = "Returns the string values of several keys atomically.", .syntax = "key...",
        .key_flags = RO, .tips = "request_policy:multi_shard")
COMMAND("mset", cmd_mset, -3, W | OOM, 1, -1, 2, "string", "1.0.1", "string",
        "O(N), N being the number of keys", .summary = "Sets several strings atomically.",
        .syntax = "data(key value)...", .key_flags = "OW update",
        .tips = "request_policy:multi_shard response_policy:all_succeeded")
COMMAND("msetnx", cmd_msetnx, -3, W | OOM, 1, -1, 2, "string", "1.0.1", "string",
        "O(N), N being the number of keys",
        .summary = "Sets several strings atomically if none of the keys exists.",
        .syntax = "data(key value)...", .key_flags = "OW insert",
        .tips = "request_policy:multi_shard response_policy:agg_min")
COMMAND("psetex", cmd_psetex, 4, W | OOM, 1, 1, 1, "string", "2.6.0", "string", "O(1)",
        .summary = "Sets a string with an expiry in milliseconds.",
        .syntax = "key milliseconds value", .value_at = 3, .key_flags = "OW update",
        .deprecated = "2.6.12 `SET` with the `PX` argument")
COMMAND(
    "set", cmd_set, -3, W | OOM, 1, 1, 1, "string", "1.0.0", "string", "O(1)",
    .summary = "Sets a string, whatever type the key had; options give conditions and an expiry.",
    .syntax = "key value [condition(NX|XX)@2.6.12] [GET@6.2.0] [expiration(EX seconds@2.6.12|PX "
              "milliseconds@2.6.12|EXAT unix-time-seconds@6.2.0|PXAT "
              "unix-time-milliseconds@6.2.0|KEEPTTL@6.0.0)]",
    .value_at = 2, .key_flags = "RW access update variable_flags")
COMMAND("setex", cmd_setex, 4, W | OOM, 1, 1, 1, "string", "2.0.0", "string", "O(1)",
        .summary = "Sets a string with an expiry in seconds.", .syntax = "key seconds value",
        .value_at = 3, .key_flags = "OW update",
        .deprecated = "2.6.12 `SET` with the `EX` argument")
COMMAND("setnx", cmd_setnx, 3, W | OOM | FAST, 1, 1, 1, "string", "1.0.0", "string", "O(1)",
        .summary = "Sets a string if the key does not exist.", .syntax = "key value", .value_at = 2,
        .key_flags = "OW insert", .deprecated = "2.6.12 `SET` with the `NX` argument")
COMMAND("setrange", cmd_setrange, 4, W | OOM, 1, 1, 1, "string", "2.2.0", "string",
        "O(M), M being the length of the part",
        .summary =
            "Overwrites a part of a string, with zero bytes before it where the string is shorter.",
        .syntax = "key offset value", .key_flags = "RW update")
COMMAND("strlen", cmd_strlen, 2, R | FAST, 1, 1, 1, "string", "2.2.0", "string", "O(1)",
        .summary = "Returns the length of the string value of a key.", .syntax = "key",
        .key_flags = "RO")
COMMAND("substr", cmd_substr, 4, R, 1, 1, 1, "string", "1.0.0", "string",
        "O(N), N being the length of the part",
        .summary = "Returns a range of the string value of a key.", .syntax = "key start end",
        .key_flags = RO, .deprecated = "2.0.0 `GETRANGE`")

/* ---- bitmap ---- */

COMMAND("bitcount", cmd_bitcount, -2, R, 1, 1, 1, "bitmap", "2.6.0", "bitmap",
        "O(N), N being the length of the string", .summary = "Counts the set bits of a string.",
        .syntax = "key [range(start end [unit(BYTE|BIT)@7.0.0])]", .key_flags = RO)
COMMAND("bitfield", cmd_bitfield, -2, W | OOM, 1, 1, 1, "bitmap", "3.2.0", "bitmap",
        "O(1) for each operation",
        .summary = "Reads, sets and increments integers of any width inside a string.",
        .syntax = "key [operation(GET get-block(encoding offset)|write([OVERFLOW "
                  "overflow-block(WRAP|SAT|FAIL)] write-operation(SET set-block(encoding offset "
                  "value:integer)|INCRBY incrby-block(encoding offset increment))))...]",
        .key_flags = "RW access update variable_flags")
COMMAND("bitfield_ro", cmd_bitfield_ro, -2, R | FAST, 1, 1, 1, "bitmap", "6.0.0", "bitmap",
        "O(1) for each operation", .summary = "Reads integers of any width inside a string.",
        .syntax = "key [GET get-block(encoding offset)]...", .key_flags = RO)
COMMAND("bitop", cmd_bitop, -4, W | OOM, 2, -1, 1, "bitmap", "2.6.0", "bitmap",
        "O(N), N being the length of the longest string",
        .summary = "Combines strings by a bitwise operation and stores the result.",
        .syntax = "operation(AND|OR|XOR|NOT) destkey key#1...", .key_flags = "OW update;RO access")
COMMAND("bitpos", cmd_bitpos, -3, R, 1, 1, 1, "bitmap", "2.8.7", "bitmap",
        "O(N), N being the length of the string",
        .summary = "Finds the first bit of a string that is set, or clear.",
        .syntax = "key bit [range(start [end-unit-block(end [unit(BYTE|BIT)@7.0.0])])]",
        .key_flags = RO)
COMMAND("getbit", cmd_getbit, 3, R | FAST, 1, 1, 1, "bitmap", "2.2.0", "bitmap", "O(1)",
        .summary = "Returns one bit of a string.", .syntax = "key offset", .key_flags = RO)
COMMAND("setbit", cmd_setbit, 4, W | OOM, 1, 1, 1, "bitmap", "2.2.0", "bitmap", "O(1)",
        .summary = "Sets or clears one bit of a string and returns its previous value.",
        .syntax = "key offset value:integer", .key_flags = RW)

/* ---- hyperloglog ---- */

COMMAND("pfadd", cmd_pfadd, -2, W | OOM | FAST, 1, 1, 1, "hyperloglog", "2.8.9", "hyperloglog",
        "O(1) for each element",
        .summary = "Adds elements to a HyperLogLog; creates the key if it is missing.",
        .syntax = "key [element...]", .key_flags = "RW insert")
COMMAND("pfcount", cmd_pfcount, -2, R | CMD_REMEMBERS, 1, -1, 1, "hyperloglog", "2.8.9",
        "hyperloglog", "O(N), N being the number of keys",
        .summary = "Estimates the cardinality of one HyperLogLog, or of the union of several.",
        .syntax = "key...", .key_flags = "RW access")
COMMAND("pfdebug", cmd_pfdebug, 3, W | OOM | CMD_ADMIN, 2, 2, 1, "hyperloglog", "2.8.9",
        "hyperloglog", "O(1)", .summary = "Shows the internal representation of a HyperLogLog.",
        .syntax = "subcommand key", .key_flags = "RW access")
COMMAND("pfmerge", cmd_pfmerge, -2, W | OOM, 1, -1, 1, "hyperloglog", "2.8.9", "hyperloglog",
        "O(N), N being the number of keys", .summary = "Merges HyperLogLogs into the first one.",
        .syntax = "destkey [sourcekey#1...]", .key_flags = "RW access insert;RO access")
COMMAND("pfselftest", cmd_pfselftest, 1, CMD_ADMIN | CMD_NO_KEYS, 0, 0, 0, "hyperloglog", "2.8.9",
        "hyperloglog", "O(1)", .summary = "Runs a self-test of the HyperLogLog code.")
