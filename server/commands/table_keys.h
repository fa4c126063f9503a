/* Rows of the command table (command_table.c): keys, whatever is at them. */

/* ---- generic ---- */

COMMAND("copy", cmd_copy, -3, W | OOM | CMD_OTHER_DB, 1, 2, 1, "keyspace", "6.2.0", "generic",
        "O(N), N being the length of the value",
        .summary = "Copies a key's value and expiry to another key.",
        .syntax = "source destination#1 [DB destination-db] [REPLACE]",
        .key_flags = "RO access;OW update", .role = ROLE_COPY)
COMMAND("del", cmd_del, -2, W, 1, -1, 1, "keyspace", "1.0.0", "generic",
        "O(N), N being the number of keys", .summary = "Deletes keys.", .syntax = "key...",
        .key_flags = "RM delete", .tips = MULTI_SUM)
COMMAND("exists", cmd_exists, -2, R | FAST | CMD_NO_TOUCH, 1, -1, 1, "keyspace", "1.0.0", "generic",
        "O(N), N being the number of keys", .summary = "Counts how many of the keys exist.",
        .syntax = "key...", .key_flags = "RO", .tips = MULTI_SUM)
COMMAND("expire", cmd_expire, -3, W | FAST, 1, 1, 1, "keyspace", "1.0.0", "generic", "O(1)",
        .summary = "Sets the expiry of a key, in seconds from now.",
        .syntax = "key seconds " EXPIRE_IF, .key_flags = "RW update")
COMMAND("expireat", cmd_expireat, -3, W | FAST, 1, 1, 1, "keyspace", "1.2.0", "generic", "O(1)",
        .summary = "Sets the expiry of a key to a Unix time in seconds.",
        .syntax = "key unix-time-seconds " EXPIRE_IF, .key_flags = "RW update")
COMMAND("expiretime", cmd_expiretime, 2, R | FAST | CMD_NO_TOUCH, 1, 1, 1, "keyspace", "7.0.0",
        "generic", "O(1)", .summary = "Returns the expiry of a key as a Unix time in seconds.",
        .syntax = "key", .key_flags = RO)
COMMAND("dump", cmd_dump, 2, R, 1, 1, 1, "keyspace", "2.6.0", "generic",
        "O(N), N being the size of the value",
        .summary = "Serializes the value of a key for RESTORE.", .syntax = "key", .key_flags = RO,
        .tips = VARYING)
COMMAND("keys", cmd_keys, 2, R | CMD_NO_KEYS, 0, 0, 0, "keyspace dangerous", "1.0.0", "generic",
        "O(N), N being the number of keys in the database",
        .summary = "Lists the keys that match a pattern.", .syntax = "pattern",
        .tips = "request_policy:all_shards " VARYING_ORDER)
COMMAND("move", cmd_move, 3, W | FAST | CMD_OTHER_DB, 1, 1, 1, "keyspace", "1.0.0", "generic",
        "O(1)", .summary = "Moves a key to another database.", .syntax = "key db", .key_flags = RW)
COMMAND("object", NULL, -2, CMD_CONTAINER, 0, 0, 0, NULL, "2.2.3", "generic",
        "Depends on the subcommand.", .summary = "Inspects the representation of a key's value.")
COMMAND("object|encoding", cmd_object_encoding, 3, R | CMD_NO_TOUCH, 2, 2, 1, "keyspace", "2.2.3",
        "generic", "O(1)", .summary = "Returns the internal encoding of a value.", .syntax = "key",
        .key_flags = "RO", .tips = VARYING)
COMMAND("object|freq", cmd_object_freq, 3, R | CMD_NO_TOUCH, 2, 2, 1, "keyspace", "4.0.0",
        "generic", "O(1)", .summary = "Returns a key's access frequency, on a logarithmic scale.",
        .syntax = "key", .key_flags = "RO", .tips = VARYING)
COMMAND("object|help", cmd_object_help, 2, LS | PLACE, 0, 0, 0, "keyspace", "6.2.0", "generic",
        "O(1)", .summary = "Describes the subcommands.")
COMMAND("object|idletime", cmd_object_idletime, 3, R | CMD_NO_TOUCH, 2, 2, 1, "keyspace", "2.2.3",
        "generic", "O(1)", .summary = "Returns the seconds since the last access of a key.",
        .syntax = "key", .key_flags = "RO", .tips = VARYING)
COMMAND("object|refcount", cmd_object_refcount, 3, R | CMD_NO_TOUCH, 2, 2, 1, "keyspace", "2.2.3",
        "generic", "O(1)", .summary = "Returns the reference count of a value.", .syntax = "key",
        .key_flags = "RO", .tips = VARYING)
COMMAND("persist", cmd_persist, 2, W | FAST, 1, 1, 1, "keyspace", "2.2.0", "generic", "O(1)",
        .summary = "Removes the expiry of a key.", .syntax = "key", .key_flags = "RW update")
COMMAND("pexpire", cmd_pexpire, -3, W | FAST, 1, 1, 1, "keyspace", "2.6.0", "generic", "O(1)",
        .summary = "Sets the expiry of a key, in milliseconds from now.",
        .syntax = "key milliseconds " EXPIRE_IF, .key_flags = "RW update")
COMMAND("pexpireat", cmd_pexpireat, -3, W | FAST, 1, 1, 1, "keyspace", "2.6.0", "generic", "O(1)",
        .summary = "Sets the expiry of a key to a Unix time in milliseconds.",
        .syntax = "key unix-time-milliseconds " EXPIRE_IF, .key_flags = "RW update")
COMMAND("pexpiretime", cmd_pexpiretime, 2, R | FAST | CMD_NO_TOUCH, 1, 1, 1, "keyspace", "7.0.0",
        "generic", "O(1)", .summary = "Returns the expiry of a key as a Unix time in milliseconds.",
        .syntax = "key", .key_flags = RO)
COMMAND("pttl", cmd_pttl, 2, R | FAST | CMD_NO_TOUCH, 1, 1, 1, "keyspace", "2.6.0", "generic",
        "O(1)", .summary = "Returns the remaining time to live of a key in milliseconds.",
        .syntax = "key", .key_flags = RO, .tips = VARYING)
COMMAND("randomkey", cmd_randomkey, 1, R | CMD_NO_KEYS, 0, 0, 0, "keyspace", "1.0.0", "generic",
        "O(1)", .summary = "Returns a random key of the database.",
        .tips = "request_policy:all_shards " VARYING)
COMMAND("rename", cmd_rename, 3, W, 1, 2, 1, "keyspace", "1.0.0", "generic", "O(1)",
        .summary = "Renames a key; overwrites an existing key.", .syntax = "key newkey#1",
        .key_flags = "RW access delete;OW update")
COMMAND("renamenx", cmd_renamenx, 3, W | FAST, 1, 2, 1, "keyspace", "1.0.0", "generic", "O(1)",
        .summary = "Renames a key unless the new name exists.", .syntax = "key newkey#1",
        .key_flags = "RW access delete;OW insert")
COMMAND("restore", cmd_restore, -4, W | OOM, 1, 1, 1, "keyspace dangerous", "2.6.0", "generic",
        "O(N), N being the size of the value",
        .summary = "Creates a key from a value serialized by DUMP.",
        .syntax = "key ttl serialized-value [REPLACE@3.0.0] [ABSTTL@5.0.0] [IDLETIME "
                  "seconds@5.0.0] [FREQ frequency@5.0.0]",
        .key_flags = "OW update")
COMMAND("scan", cmd_scan, -2, R | CMD_NO_KEYS, 0, 0, 0, "keyspace", "2.8.0", "generic",
        "O(1) for every call, O(N) for all keys",
        .summary = "Iterates over the keys of a database.", .syntax = WALK " [TYPE type@6.0.0]",
        .tips = VARYING " request_policy:special")
COMMAND("sort", cmd_sort, -2, W | OOM | CMD_MOVABLE_KEYS | CMD_STORE_OPTION, 1, 1, 1,
        "set sortedset list dangerous", "1.0.0", "generic",
        "O(N+M*log(M)), N being the number of elements and M that of those replied",
        .summary = "Sorts a list, a set or a sorted set by its elements or by external keys; may "
                   "store the result.",
        .syntax = SORT " [STORE destination#2]", .key_flags = "RO access;?RO access;?OW update")
COMMAND("sort_ro", cmd_sort_ro, -2, R | CMD_MOVABLE_KEYS, 1, 1, 1, "set sortedset list dangerous",
        "7.0.0", "generic",
        "O(N+M*log(M)), N being the number of elements and M that of those replied",
        .summary = "Sorts as SORT does; read-only, without STORE.", .syntax = SORT,
        .key_flags = "RO access;?RO access")
COMMAND("touch", cmd_touch, -2, R | FAST, 1, -1, 1, "keyspace", "3.2.1", "generic",
        "O(N), N being the number of keys",
        .summary = "Updates the access time of keys and counts those that exist.",
        .syntax = "key...", .key_flags = "RO", .tips = MULTI_SUM, .role = ROLE_TOUCH)
COMMAND("ttl", cmd_ttl, 2, R | FAST | CMD_NO_TOUCH, 1, 1, 1, "keyspace", "1.0.0", "generic", "O(1)",
        .summary = "Returns the remaining time to live of a key in seconds.", .syntax = "key",
        .key_flags = RO, .tips = VARYING)
COMMAND("type", cmd_type, 2, R | FAST | CMD_NO_TOUCH, 1, 1, 1, "keyspace", "1.0.0", "generic",
        "O(1)", .summary = "Returns the type of a key's value.", .syntax = "key", .key_flags = "RO")
COMMAND("unlink", cmd_unlink, -2, W | FAST, 1, -1, 1, "keyspace", "4.0.0", "generic",
        "O(N), N being the number of keys",
        .summary = "Deletes keys; their space is reclaimed in the background.", .syntax = "key...",
        .key_flags = "RM delete", .tips = MULTI_SUM)
COMMAND("wait", cmd_wait, 3, CMD_BLOCKING | PLACE, 0, 0, 0, "connection", "3.0.0", "generic",
        "O(1)", .summary = "Waits until replicas have acknowledged this connection's writes.",
        .syntax = "numreplicas timeout:integer",
        .tips = "request_policy:all_shards response_policy:agg_min")
COMMAND("waitaof", cmd_waitaof, 4, CMD_BLOCKING | PLACE, 0, 0, 0, "connection", "7.2.0", "generic",
        "O(1)", .summary = "Waits until this connection's writes are durable, here or elsewhere.",
        .syntax = "numlocal numreplicas timeout:integer",
        .tips = "request_policy:all_shards response_policy:agg_min")
