/* Rows of the command table (command_table.c): connections, messages, the server itself, scripts
 * and transactions. */

/* ---- connection ---- */

COMMAND("auth", cmd_auth, -2, NS | LS | FAST | OPEN | LOCAL, 0, 0, 0, "connection", "1.0.0",
        "connection", "O(1)", .summary = "Authenticates the connection with a password.",
        .syntax = "[username@6.0.0] password", .redact = REDACT_ALL)
COMMAND("client", NULL, -2, CMD_CONTAINER, 0, 0, 0, NULL, "2.4.0", "connection",
        "Depends on the subcommand.", .summary = "Container for commands about client connections.")
COMMAND("client|getname", cmd_client_getname, 2, NS | LS | LOCAL, 0, 0, 0, "connection", "2.6.9",
        "connection", "O(1)", .summary = "Returns this connection's name.")
COMMAND("client|help", cmd_client_help, 2, LS | PLACE, 0, 0, 0, "connection", "5.0.0", "connection",
        "O(1)", .summary = "Describes the subcommands.")
COMMAND("client|id", cmd_client_id, 2, NS | LS | PLACE, 0, 0, 0, "connection", "5.0.0",
        "connection", "O(1)", .summary = "Returns this connection's id.")
COMMAND("client|info", cmd_client_info, 2, NS | LS | LOCAL, 0, 0, 0, "connection", "6.2.0",
        "connection", "O(1)", .summary = "Describes this connection.", .tips = VARYING)
COMMAND(
    "client|kill", cmd_client_kill, -3, ADMIN | CMD_TOUR | LOCAL, 0, 0, 0, "connection", "2.4.0",
    "connection", "O(N), N being the number of connections", .summary = "Closes connections.",
    .syntax =
        "filter(old-format'ip:port'!2.8.12|new-format([ID client-id@2.8.12]|[TYPE "
        "client-type(NORMAL|MASTER@3.2.0|SLAVE|REPLICA@5.0.0|PUBSUB)@2.8.12]|[USER username]|[ADDR "
        "addr'ip:port']|[LADDR laddr'ip:port'@6.2.0]|[SKIPME skipme(YES|NO)])...)")
COMMAND("client|list", cmd_client_list, -2, ADMIN | CMD_TOUR | LOCAL, 0, 0, 0, "connection",
        "2.4.0", "connection", "O(N), N being the number of connections",
        .summary = "Describes connections.",
        .syntax = "[TYPE client-type(NORMAL|MASTER|REPLICA|PUBSUB)@5.0.0] [ID client-id@6.2.0...]",
        .tips = VARYING)
COMMAND("client|no-evict", cmd_client_no_evict, 3, ADMIN | LOCAL, 0, 0, 0, "connection", "7.0.0",
        "connection", "O(1)", .summary = "Excludes this connection from eviction of clients.",
        .syntax = "enabled(ON|OFF)")
COMMAND("client|no-touch", cmd_client_no_touch, 3, NS | LS | LOCAL, 0, 0, 0, "connection", "7.2.0",
        "connection", "O(1)",
        .summary = "Stops this connection's commands from updating access times.",
        .syntax = "enabled(ON|OFF)")
COMMAND("client|reply", cmd_client_reply, 3, NS | LS | LOCAL, 0, 0, 0, "connection", "3.2.0",
        "connection", "O(1)", .summary = "Turns replies off, on, or skips the next one.",
        .syntax = "action(ON|OFF|SKIP)", .role = ROLE_CLIENT_REPLY)
COMMAND("client|setinfo", cmd_client_setinfo, 4, NS | LS | LOCAL, 0, 0, 0, "connection", "7.2.0",
        "connection", "O(1)", .summary = "Sets the client library's name or version.",
        .syntax = "attr(LIB-NAME libname|LIB-VER libver)")
COMMAND("client|setname", cmd_client_setname, 3, NS | LS | LOCAL, 0, 0, 0, "connection", "2.6.9",
        "connection", "O(1)", .summary = "Names this connection.", .syntax = "connection-name")
COMMAND("client|unblock", cmd_client_unblock, -3, ADMIN | CMD_TOUR | LOCAL, 0, 0, 0, "connection",
        "5.0.0", "connection", "O(N), N being the number of connections",
        .summary = "Unblocks a blocked connection.",
        .syntax = "client-id [unblock-type(TIMEOUT|ERROR)]")
COMMAND("echo", cmd_echo, 2, LS | FAST | PLACE, 0, 0, 0, "connection", "1.0.0", "connection",
        "O(1)", .summary = "Returns its argument.", .syntax = "message")
COMMAND("hello", cmd_hello, -1, NS | LS | FAST | OPEN | PLACE, 0, 0, 0, "connection", "6.0.0",
        "connection", "O(1)",
        .summary = "Selects the protocol version; options authenticate and name the connection.",
        .syntax = "[arguments(protover [AUTH auth(username password)] [SETNAME clientname])]",
        .redact = REDACT_AFTER_AUTH)
COMMAND("ping", cmd_ping, -1, FAST | PLACE | SUBSCRIBED, 0, 0, 0, "connection", "1.0.0",
        "connection", "O(1)", .summary = "Returns PONG, or its argument.", .syntax = "[message]",
        .tips = ALL_OK)
COMMAND("quit", cmd_quit, -1, NS | LS | FAST | OPEN | LOCAL | CMD_QUEUE_APART | SUBSCRIBED, 0, 0, 0,
        "connection", "1.0.0", "connection", "O(1)", .summary = "Closes this connection.",
        .deprecated = "7.2.0 just closing the connection")
COMMAND("reset", cmd_reset, 1, NS | LS | FAST | OPEN | LOCAL | CMD_QUEUE_APART | SUBSCRIBED, 0, 0,
        0, "connection", "6.2.0", "connection", "O(1)",
        .summary = "Resets this connection to the state of a new one.")
COMMAND("select", cmd_select, 2, LS | FAST | PLACE, 0, 0, 0, "connection", "1.0.0", "connection",
        "O(1)", .summary = "Selects this connection's database.", .syntax = "index",
        .role = ROLE_SELECT)

/* ---- pubsub ---- */

COMMAND("psubscribe", cmd_psubscribe, -2, SUBSCRIBES, 0, 0, 0, NULL, "2.0.0", "pubsub",
        "O(N), N being the number of patterns",
        .summary = "Subscribes to the channels that match patterns.", .syntax = "pattern...")
COMMAND("publish", cmd_publish, 3, CMD_PUBSUB | LS | FAST | PLACE, 0, 0, 0, NULL, "2.0.0", "pubsub",
        "O(N+M), N being the number of subscribers and M that of all patterns",
        .summary = "Publishes a message to a channel.", .syntax = "channel message",
        .role = ROLE_PUBLISH)
COMMAND("pubsub", NULL, -2, CMD_CONTAINER, 0, 0, 0, NULL, "2.8.0", "pubsub",
        "Depends on the subcommand.",
        .summary = "Container for commands about channels and patterns.")
COMMAND("pubsub|channels", cmd_pubsub_channels, -2, CMD_PUBSUB | LS | PLACE, 0, 0, 0, NULL, "2.8.0",
        "pubsub", "O(N), N being the number of channels",
        .summary = "Lists the channels that have subscribers.", .syntax = "[pattern]")
COMMAND("pubsub|help", cmd_pubsub_help, 2, LS | PLACE, 0, 0, 0, NULL, "6.2.0", "pubsub", "O(1)",
        .summary = "Describes the subcommands.")
COMMAND("pubsub|numpat", cmd_pubsub_numpat, 2, CMD_PUBSUB | LS | PLACE, 0, 0, 0, NULL, "2.8.0",
        "pubsub", "O(1)", .summary = "Counts the patterns that are subscribed to.")
COMMAND("pubsub|numsub", cmd_pubsub_numsub, -2, CMD_PUBSUB | LS | PLACE, 0, 0, 0, NULL, "2.8.0",
        "pubsub", "O(N), N being the number of channels named",
        .summary = "Counts the subscribers of channels.", .syntax = "[channel...]")
COMMAND("pubsub|shardchannels", cmd_pubsub_shardchannels, -2, CMD_PUBSUB | LS | PLACE, 0, 0, 0,
        NULL, "7.0.0", "pubsub", "O(N), N being the number of shard channels",
        .summary = "Lists the shard channels that have subscribers.", .syntax = "[pattern]")
COMMAND("pubsub|shardnumsub", cmd_pubsub_shardnumsub, -2, CMD_PUBSUB | LS | PLACE, 0, 0, 0, NULL,
        "7.0.0", "pubsub", "O(N), N being the number of shard channels named",
        .summary = "Counts the subscribers of shard channels.", .syntax = "[shardchannel...]")
COMMAND("punsubscribe", cmd_punsubscribe, -1, SUBSCRIBES, 0, 0, 0, NULL, "2.0.0", "pubsub",
        "O(N), N being the number of patterns",
        .summary = "Unsubscribes from patterns, or from all of them.", .syntax = "[pattern...]")
COMMAND("spublish", cmd_spublish, 3, CMD_PUBSUB | LS | FAST | PLACE, 1, 1, 1, NULL, "7.0.0",
        "pubsub", "O(N), N being the number of subscribers",
        .summary = "Publishes a message to a shard channel.", .syntax = "shardchannel message",
        .key_flags = "not_key", .role = ROLE_PUBLISH)
COMMAND("ssubscribe", cmd_ssubscribe, -2, SUBSCRIBES, 1, -1, 1, NULL, "7.0.0", "pubsub",
        "O(N), N being the number of shard channels", .summary = "Subscribes to shard channels.",
        .syntax = "shardchannel...", .key_flags = "not_key")
COMMAND("subscribe", cmd_subscribe, -2, SUBSCRIBES, 0, 0, 0, NULL, "2.0.0", "pubsub",
        "O(N), N being the number of channels", .summary = "Subscribes to channels.",
        .syntax = "channel...")
COMMAND("sunsubscribe", cmd_sunsubscribe, -1, SUBSCRIBES, 1, -1, 1, NULL, "7.0.0", "pubsub",
        "O(N), N being the number of shard channels",
        .summary = "Unsubscribes from shard channels, or from all of them.",
        .syntax = "[shardchannel...]", .key_flags = "not_key")
COMMAND("unsubscribe", cmd_unsubscribe, -1, SUBSCRIBES, 0, 0, 0, NULL, "2.0.0", "pubsub",
        "O(N), N being the number of channels",
        .summary = "Unsubscribes from channels, or from all of them.", .syntax = "[channel...]")

/* ---- server ---- */

COMMAND("command", cmd_command, -1, LS | PLACE | CMD_CONTAINER, 0, 0, 0, "connection", "2.8.13",
        "server", "O(N), N being the number of commands", .summary = "Describes all commands.",
        .tips = VARYING_ORDER)
COMMAND("command|count", cmd_command_count, 2, LS | PLACE, 0, 0, 0, "connection", "2.8.13",
        "server", "O(1)", .summary = "Counts the commands.")
COMMAND("command|docs", cmd_command_docs, -2, LS | PLACE, 0, 0, 0, "connection", "7.0.0", "server",
        "O(N), N being the number of commands", .summary = "Documents commands.",
        .syntax = "[command-name...]", .tips = VARYING_ORDER)
COMMAND("command|getkeys", cmd_command_getkeys, -3, LS | PLACE, 0, 0, 0, "connection", "2.8.13",
        "server", "O(N), N being the number of arguments",
        .summary = "Returns the keys among a command's arguments.", .syntax = "command [arg...]")
COMMAND("command|getkeysandflags", cmd_command_getkeysandflags, -3, LS | PLACE, 0, 0, 0,
        "connection", "7.0.0", "server", "O(N), N being the number of arguments",
        .summary = "Returns the keys among a command's arguments, with their access flags.",
        .syntax = "command [arg...]")
COMMAND("command|help", cmd_command_help, 2, LS | PLACE, 0, 0, 0, "connection", "5.0.0", "server",
        "O(1)", .summary = "Describes the subcommands.")
COMMAND("command|info", cmd_command_info, -2, LS | PLACE, 0, 0, 0, "connection", "2.8.13", "server",
        "O(N), N being the number of commands", .summary = "Describes the named commands.",
        .syntax = "[command-name...]", .tips = VARYING_ORDER)
COMMAND("command|list", cmd_command_list, -2, LS | PLACE, 0, 0, 0, "connection", "7.0.0", "server",
        "O(N), N being the number of commands", .summary = "Lists the commands' names.",
        .syntax = "[FILTERBY filterby(MODULE module-name|ACLCAT category|PATTERN pattern)]",
        .tips = VARYING_ORDER)
COMMAND("config", NULL, -2, CMD_CONTAINER, 0, 0, 0, NULL, "2.0.0", "server",
        "Depends on the subcommand.", .summary = "Container for configuration commands.")
COMMAND("config|get", cmd_config_get, -3, ADMIN | LOCAL, 0, 0, 0, NULL, "2.0.0", "server",
        "O(N), N being the number of directives",
        .summary = "Returns the directives that match patterns.", .syntax = "parameter...")
COMMAND("config|help", cmd_config_help, 2, LS | PLACE, 0, 0, 0, NULL, "5.0.0", "server", "O(1)",
        .summary = "Describes the subcommands.")
COMMAND("config|resetstat", cmd_config_resetstat, 2, ADMIN | CMD_TOUR | LOCAL, 0, 0, 0, NULL,
        "2.0.0", "server", "O(1)", .summary = "Resets the counters of INFO.")
COMMAND("config|rewrite", cmd_config_rewrite, 2, ADMIN | LOCAL, 0, 0, 0, NULL, "2.8.0", "server",
        "O(1)", .summary = "Writes the current directives to the configuration file.")
COMMAND("config|set", cmd_config_set, -4, ADMIN | LOCAL, 0, 0, 0, NULL, "2.0.0", "server",
        "O(N), N being the number of directives",
        .summary = "Sets directives, all or none of them.", .syntax = "data(parameter value)...",
        .tips = "request_policy:all_nodes response_policy:all_succeeded",
        .redact = REDACT_PASSWORDS)
COMMAND("dbsize", cmd_dbsize, 1, R | FAST | CMD_NO_KEYS, 0, 0, 0, "keyspace", "1.0.0", "server",
        "O(1)", .summary = "Counts the keys of the database.",
        .tips = "request_policy:all_shards response_policy:agg_sum")
COMMAND("debug", NULL, -2, ADMIN | CMD_CONTAINER, 0, 0, 0, NULL, "1.0.0", "server",
        "Depends on the subcommand.", .summary = "Container for commands that test the server.")
COMMAND("debug|digest", cmd_debug_digest, 2, ADMIN | CMD_ALL_KEYS, 0, 0, 0, NULL, "1.0.0", "server",
        "O(N), N being the size of all values", .summary = "Digests all keys and values.")
COMMAND("debug|digest-value", cmd_debug_digest_value, -3, ADMIN | R, 2, -1, 1, NULL, "1.0.0",
        "server", "O(N), N being the size of the values", .summary = "Digests values.",
        .syntax = "key...", .key_flags = RO)
COMMAND("debug|error", cmd_debug_error, 3, ADMIN | PLACE, 0, 0, 0, NULL, "1.0.0", "server", "O(1)",
        .summary = "Replies with an error.", .syntax = "string")
COMMAND("debug|help", cmd_debug_help, 2, ADMIN | PLACE, 0, 0, 0, NULL, "1.0.0", "server", "O(1)",
        .summary = "Describes the subcommands.")
COMMAND("debug|loadaof", cmd_debug_loadaof, 2, ADMIN | CMD_ALL_KEYS | CMD_NO_MULTI, 0, 0, 0, NULL,
        "1.0.0", "server", "O(N), N being the size of the store",
        .summary = "The same as DEBUG RELOAD.")
COMMAND("debug|log", cmd_debug_log, 3, ADMIN | LOCAL, 0, 0, 0, NULL, "1.0.0", "server", "O(1)",
        .summary = "Writes a line into the log.", .syntax = "message")
COMMAND("debug|loop-gap", cmd_debug_loop_gap, 2, ADMIN | LOCAL, 0, 0, 0, NULL, "1.0.0", "server",
        "O(1)",
        .summary = "Returns the longest time for which a worker did not look at its clients.")
COMMAND("debug|object", cmd_debug_object, 3, ADMIN | R | CMD_NO_TOUCH, 2, 2, 1, NULL, "1.0.0",
        "server", "O(1)", .summary = "Returns details of a value's representation.",
        .syntax = "key", .key_flags = "RO")
COMMAND("debug|populate", cmd_debug_populate, -3, ADMIN | W | OOM | CMD_ALL_KEYS, 0, 0, 0, NULL,
        "1.0.0", "server", "O(N), N being the number of keys", .summary = "Creates keys.",
        .syntax = "count [prefix] [size:integer]")
COMMAND("debug|protocol", cmd_debug_protocol, 3, ADMIN | PLACE, 0, 0, 0, NULL, "1.0.0", "server",
        "O(1)", .summary = "Returns a sample of a protocol type.", .syntax = "type")
COMMAND("debug|quicklist-packed-threshold", cmd_debug_quicklist_packed_threshold, 3, ADMIN | PLACE,
        0, 0, 0, NULL, "1.0.0", "server", "O(1)",
        .summary = "Does nothing: lists have no nodes of two kinds.", .syntax = "size")
COMMAND("debug|reload", cmd_debug_reload, -2, ADMIN | CMD_ALL_KEYS | CMD_NO_MULTI, 0, 0, 0, NULL,
        "1.0.0", "server", "O(N), N being the size of the store",
        .summary = "Discards the contents of memory and recovers them from the files.",
        .syntax = "[option(MERGE|NOFLUSH|NOSAVE)...]")
COMMAND("debug|segfault", cmd_debug_segfault, 2, ADMIN | LOCAL, 0, 0, 0, NULL, "1.0.0", "server",
        "O(1)", .summary = "Crashes the server.")
COMMAND("debug|set-active-expire", cmd_debug_set_active_expire, 3, ADMIN | LOCAL, 0, 0, 0, NULL,
        "1.0.0", "server", "O(1)", .summary = "Turns background expiry on or off.",
        .syntax = "enabled:integer")
COMMAND("debug|set-disable-deny-scripts", cmd_debug_set_disable_deny_scripts, 3, ADMIN | LOCAL, 0,
        0, 0, NULL, "1.0.0", "server", "O(1)",
        .summary = "Allows or denies scripts the commands that are marked noscript.",
        .syntax = "enabled:integer")
COMMAND("debug|sleep", cmd_debug_sleep, 3, ADMIN | CMD_ALL_KEYS, 0, 0, 0, NULL, "1.0.0", "server",
        "O(1)", .summary = "Blocks all keys for some seconds.", .syntax = "seconds:double")
COMMAND("debug|stringmatch-len", cmd_debug_stringmatch_len, 4, CMD_ADMIN | NS | LS | LOCAL, 0, 0, 0,
        NULL, "1.0.0", "server", "O(N*M), N and M being the two lengths",
        .summary = "Matches a pattern against a long text.", .syntax = "len pattern")
COMMAND("flushall", cmd_flushall, -1, W | CMD_ALL_KEYS, 0, 0, 0, "keyspace dangerous", "1.0.0",
        "server", "O(1)", .summary = "Deletes all keys of all databases.",
        .syntax = "[flush-type(ASYNC@4.0.0|SYNC@6.2.0)]", .tips = ALL_OK)
COMMAND("flushdb", cmd_flushdb, -1, W | CMD_ALL_KEYS, 0, 0, 0, "keyspace dangerous", "1.0.0",
        "server", "O(1)", .summary = "Deletes all keys of the database.",
        .syntax = "[flush-type(ASYNC@4.0.0|SYNC@6.2.0)]", .tips = ALL_OK)
COMMAND("info", cmd_info, -1, LS | PLACE, 0, 0, 0, "dangerous", "1.0.0", "server", "O(1)",
        .summary = "Returns information and statistics about the server.", .syntax = "[section...]",
        .tips = VARYING " request_policy:all_shards response_policy:special")
COMMAND("lolwut", cmd_lolwut, -1, R | FAST | PLACE, 0, 0, 0, NULL, "5.0.0", "server", "O(1)",
        .summary = "Returns the versions, without a picture.", .syntax = "[VERSION version]")
COMMAND("monitor", cmd_monitor, 1, ADMIN | LOCAL, 0, 0, 0, NULL, "1.0.0", "server", "O(1)",
        .summary = "Streams every command that the server runs.")
COMMAND("memory", NULL, -2, CMD_CONTAINER, 0, 0, 0, NULL, "4.0.0", "server",
        "Depends on the subcommand.", .summary = "Container for memory commands.")
COMMAND("memory|help", cmd_memory_help, 2, LS | PLACE, 0, 0, 0, NULL, "4.0.0", "server", "O(1)",
        .summary = "Describes the subcommands.")
COMMAND("memory|usage", cmd_memory_usage, -3, R, 2, 2, 1, NULL, "4.0.0", "server",
        "O(N), N being the number of samples",
        .summary = "Estimates the memory of a key and its value.", .syntax = "key [SAMPLES count]",
        .key_flags = "RO")
COMMAND("module", NULL, -2, CMD_CONTAINER, 0, 0, 0, NULL, "4.0.0", "server",
        "Depends on the subcommand.", .summary = "Container for module commands.")
COMMAND("module|help", cmd_module_help, 2, LS | PLACE, 0, 0, 0, NULL, "5.0.0", "server", "O(1)",
        .summary = "Describes the subcommands.")
COMMAND("module|list", cmd_module_list, 2, CMD_ADMIN | NS | PLACE, 0, 0, 0, NULL, "4.0.0", "server",
        "O(1)", .summary = "Lists the modules, of which there are none.", .tips = VARYING_ORDER)
COMMAND("rdma", NULL, -2, CMD_CONTAINER, 0, 0, 0, NULL, "7.2.0", "server",
        "Depends on the subcommand.", .summary = "Container for commands about RDMA channels.")
COMMAND("rdma|close", cmd_rdma_close, 3, ADMIN | CMD_TOUR | LOCAL, 0, 0, 0, "connection", "7.2.0",
        "server", "O(N), N being the number of connections", .summary = "Closes a channel.",
        .syntax = "client-id")
COMMAND("rdma|connect", cmd_rdma_connect, -4, NS | LS | CMD_NO_MULTI | LOCAL, 0, 0, 0, "connection",
        "7.2.0", "server", "O(1)", .summary = "Opens a channel for this connection.",
        .syntax = "version mode [attribute(name value)...]")
COMMAND("rdma|help", cmd_rdma_help, 2, LS | PLACE, 0, 0, 0, NULL, "7.2.0", "server", "O(1)",
        .summary = "Describes the subcommands.")
COMMAND("rdma|info", cmd_rdma_info, 2, NS | LS | LOCAL, 0, 0, 0, "connection", "7.2.0", "server",
        "O(1)", .summary = "Returns what the server offers for channels.")
COMMAND("rdma|list", cmd_rdma_list, 2, ADMIN | CMD_TOUR | LOCAL, 0, 0, 0, "connection", "7.2.0",
        "server", "O(N), N being the number of connections", .summary = "Describes the channels.")
COMMAND("role", cmd_role, 1, NS | LS | FAST | PLACE, 0, 0, 0, "admin dangerous", "2.8.12", "server",
        "O(1)", .summary = "Returns the replication role: a master without replicas.")
COMMAND("shutdown", cmd_shutdown, -1, ADMIN | CMD_NO_MULTI | CMD_ALLOW_BUSY | LOCAL, 0, 0, 0, NULL,
        "1.0.0", "server", "O(1)",
        .summary = "Stops the server; everything acknowledged is on disk then.",
        .syntax = "[save-selector(NOSAVE|SAVE)] [NOW@7.0.0] [FORCE@7.0.0] [ABORT@7.0.0]")
COMMAND("slowlog", NULL, -2, CMD_CONTAINER, 0, 0, 0, NULL, "2.2.12", "server",
        "Depends on the subcommand.", .summary = "Container for commands about the slow log.")
COMMAND("slowlog|get", cmd_slowlog_get, -2, CMD_ADMIN | LS | PLACE, 0, 0, 0, NULL, "2.2.12",
        "server", "O(N), N being the number of entries",
        .summary = "Returns the newest entries of the slow log.", .syntax = "[count]",
        .tips = "request_policy:all_nodes nondeterministic_output")
COMMAND("slowlog|help", cmd_slowlog_help, 2, LS | PLACE, 0, 0, 0, NULL, "6.2.0", "server", "O(1)",
        .summary = "Describes the subcommands.")
COMMAND("slowlog|len", cmd_slowlog_len, 2, CMD_ADMIN | LS | PLACE, 0, 0, 0, NULL, "2.2.12",
        "server", "O(1)", .summary = "Counts the entries of the slow log.",
        .tips = "request_policy:all_nodes response_policy:agg_sum nondeterministic_output")
COMMAND("slowlog|reset", cmd_slowlog_reset, 2, CMD_ADMIN | LS | PLACE, 0, 0, 0, NULL, "2.2.12",
        "server", "O(N), N being the number of entries",
        .summary = "Removes all entries of the slow log.",
        .tips = "request_policy:all_nodes response_policy:all_succeeded")
COMMAND("swapdb", cmd_swapdb, 3, W | FAST | CMD_ALL_KEYS, 0, 0, 0, "keyspace dangerous", "4.0.0",
        "server", "O(1)", .summary = "Swaps two databases.", .syntax = "index1 index2")
COMMAND("time", cmd_time, 1, LS | FAST | PLACE, 0, 0, 0, NULL, "2.6.0", "server", "O(1)",
        .summary = "Returns the server's time.", .tips = VARYING)

/* ---- cluster ---- */

COMMAND("asking", cmd_cluster, 1, FAST | PLACE, 0, 0, 0, "connection", "3.0.0", "cluster", "O(1)",
        .summary = NO_NODE)
COMMAND("cluster", NULL, -2, CMD_CONTAINER, 0, 0, 0, NULL, "3.0.0", "cluster",
        "Depends on the subcommand.",
        .summary = "Container for cluster commands; this server is not a cluster node.")
COMMAND("cluster|countkeysinslot", cmd_cluster, 3, CMD_STALE | PLACE, 0, 0, 0, NULL, "3.0.0",
        "cluster", "O(1)", .summary = NO_NODE, .syntax = "slot:integer")
COMMAND("cluster|getkeysinslot", cmd_cluster, 4, CMD_STALE | PLACE, 0, 0, 0, NULL, "3.0.0",
        "cluster", "O(1)", .summary = NO_NODE, .syntax = "slot:integer count", .tips = VARYING)
COMMAND("cluster|help", cmd_cluster, 2, LS | PLACE, 0, 0, 0, NULL, "5.0.0", "cluster", "O(1)",
        .summary = NO_NODE)
COMMAND("cluster|info", cmd_cluster, 2, CMD_STALE | PLACE, 0, 0, 0, NULL, "3.0.0", "cluster",
        "O(1)", .summary = NO_NODE, .tips = VARYING)
COMMAND("cluster|keyslot", cmd_cluster, 3, CMD_STALE | PLACE, 0, 0, 0, NULL, "3.0.0", "cluster",
        "O(1)", .summary = NO_NODE, .syntax = "key:string")
COMMAND("cluster|links", cmd_cluster, 2, CMD_STALE | PLACE, 0, 0, 0, NULL, "7.0.0", "cluster",
        "O(1)", .summary = NO_NODE, .tips = VARYING)
COMMAND("cluster|myid", cmd_cluster, 2, CMD_STALE | PLACE, 0, 0, 0, NULL, "3.0.0", "cluster",
        "O(1)", .summary = NO_NODE)
COMMAND("cluster|nodes", cmd_cluster, 2, CMD_STALE | PLACE, 0, 0, 0, NULL, "3.0.0", "cluster",
        "O(1)", .summary = NO_NODE, .tips = VARYING)
COMMAND("cluster|reset", cmd_cluster, -2, CMD_ADMIN | NS | CMD_STALE | LOCAL, 0, 0, 0, NULL,
        "3.0.0", "cluster", "O(1)", .summary = NO_NODE, .syntax = "[hard-soft(HARD|SOFT)]")
COMMAND("cluster|shards", cmd_cluster, 2, CMD_STALE | PLACE, 0, 0, 0, NULL, "7.0.0", "cluster",
        "O(1)", .summary = NO_NODE, .tips = VARYING)
COMMAND("cluster|slots", cmd_cluster, 2, CMD_STALE | PLACE, 0, 0, 0, NULL, "3.0.0", "cluster",
        "O(1)", .summary = NO_NODE, .tips = VARYING, .deprecated = "7.0.0 `CLUSTER SHARDS`")
COMMAND("readonly", cmd_cluster, 1, LS | FAST | PLACE, 0, 0, 0, "connection", "3.0.0", "cluster",
        "O(1)", .summary = NO_NODE)
COMMAND("readwrite", cmd_cluster, 1, LS | FAST | PLACE, 0, 0, 0, "connection", "3.0.0", "cluster",
        "O(1)", .summary = NO_NODE)

/* ---- scripts ---- */

COMMAND("eval", cmd_eval, -3, EVAL, 0, 0, 0, "scripting", "2.6.0", "scripting", THAT_OF_SCRIPT,
        .summary = "Executes a Lua script.", .syntax = "script numkeys " KEYS_AND_ARGS,
        .key_flags = RW, .key_count_at = 2, .declare = eval_declare)
COMMAND("eval_ro", cmd_eval, -3, EVAL | R, 0, 0, 0, "scripting", "7.0.0", "scripting",
        THAT_OF_SCRIPT, .summary = "Executes a read-only Lua script.",
        .syntax = "script numkeys " KEYS_AND_ARGS, .key_flags = RO, .key_count_at = 2,
        .declare = eval_declare)
COMMAND("evalsha", cmd_evalsha, -3, EVAL, 0, 0, 0, "scripting", "2.6.0", "scripting",
        THAT_OF_SCRIPT, .summary = "Executes a cached Lua script by its SHA1.",
        .syntax = "sha1 numkeys " KEYS_AND_ARGS, .key_flags = RW, .key_count_at = 2,
        .declare = eval_declare)
COMMAND("evalsha_ro", cmd_evalsha, -3, EVAL | R, 0, 0, 0, "scripting", "7.0.0", "scripting",
        THAT_OF_SCRIPT, .summary = "Executes a cached read-only Lua script by its SHA1.",
        .syntax = "sha1 numkeys " KEYS_AND_ARGS, .key_flags = RO, .key_count_at = 2,
        .declare = eval_declare)
COMMAND("script", NULL, -2, CMD_CONTAINER, 0, 0, 0, NULL, "2.6.0", "scripting",
        "Depends on the subcommand.", .summary = "Container for commands about Lua scripts.")
COMMAND("script|debug", cmd_script_debug, 3, NS | LOCAL, 0, 0, 0, "scripting", "3.2.0", "scripting",
        "O(1)", .summary = "Returns that there is no script debugger.",
        .syntax = "mode(YES|SYNC|NO)")
COMMAND("script|exists", cmd_script_exists, -3, NS | LOCAL, 0, 0, 0, "scripting", "2.6.0",
        "scripting", "O(N), N being the number of scripts",
        .summary = "Tests which scripts are in the cache.", .syntax = "sha1...",
        .tips = "request_policy:all_shards response_policy:agg_logical_and")
COMMAND("script|flush", cmd_script_flush, -2, NS | LOCAL, 0, 0, 0, "scripting", "2.6.0",
        "scripting", "O(N), N being the number of scripts",
        .summary = "Removes all scripts from the cache.",
        .syntax = "[flush-type(ASYNC|SYNC)@6.2.0]",
        .tips = "request_policy:all_nodes response_policy:all_succeeded")
COMMAND("script|help", cmd_script_help, 2, LS | PLACE, 0, 0, 0, "scripting", "5.0.0", "scripting",
        "O(1)", .summary = "Describes the subcommands.")
COMMAND("script|kill", cmd_script_kill, 2, NS | CMD_ALLOW_BUSY | LOCAL, 0, 0, 0, "scripting",
        "2.6.0", "scripting", "O(1)", .summary = "Kills the running script.",
        .tips = "request_policy:all_shards response_policy:one_succeeded")
COMMAND("script|load", cmd_script_load, 3, NS | CMD_STALE | LOCAL, 0, 0, 0, "scripting", "2.6.0",
        "scripting", "O(N), N being the length of the script",
        .summary = "Adds a script to the cache.", .syntax = "script",
        .tips = "request_policy:all_nodes response_policy:all_succeeded")

/* ---- transactions ---- */

COMMAND("discard", cmd_discard, 1, APART | FAST | CMD_ALLOW_BUSY | LOCAL, 0, 0, 0, "transaction",
        "2.0.0", "transactions", "O(N), N being the number of queued commands",
        .summary = "Discards the queued commands and the watched keys.")
COMMAND("exec", cmd_exec, 1, APART | CMD_SKIP_SLOWLOG | CMD_NESTS, 0, 0, 0, "transaction", "1.2.0",
        "transactions", "That of the queued commands",
        .summary = "Executes the queued commands in one transaction.", .declare = exec_declare,
        .role = ROLE_EXEC)
COMMAND("multi", cmd_multi, 1, APART | FAST | CMD_ALLOW_BUSY | LOCAL, 0, 0, 0, "transaction",
        "1.2.0", "transactions", "O(1)",
        .summary = "Starts a transaction: queues commands until EXEC.")
COMMAND("unwatch", cmd_unwatch, 1, NS | LS | FAST | CMD_ALLOW_BUSY | PLACE, 0, 0, 0, "transaction",
        "2.2.0", "transactions", "O(1)", .summary = "Clears the watched keys.")
COMMAND("watch", cmd_watch, -2, APART | FAST | CMD_ALLOW_BUSY, 1, -1, 1, "transaction", "2.2.0",
        "transactions", "O(N), N being the number of keys",
        .summary = "Watches keys: the next EXEC fails if one of them has changed.",
        .syntax = "key...", .key_flags = "RO", .declare = watch_declare)
