/*
 * The functions behind the command table, one block per family of commands.
 */
#ifndef VELLUM_COMMANDS_H
#define VELLUM_COMMANDS_H

#include "server/core/command.h"

/* All commands, by group; subcommands follow their container. There are command_count rows and a
 * terminator without a name. */
extern const struct command command_table[];
extern const size_t command_count;

/* ---- connection and server ---- */
command_fn cmd_auth;
command_fn cmd_client_caching;
command_fn cmd_client_getname;
command_fn cmd_client_getredir;
command_fn cmd_client_help;
command_fn cmd_client_id;
command_fn cmd_client_info;
command_fn cmd_client_kill;
command_fn cmd_client_list;
command_fn cmd_client_no_evict;
command_fn cmd_client_no_touch;
command_fn cmd_client_pause;
command_fn cmd_client_reply;
command_fn cmd_client_setinfo;
command_fn cmd_client_setname;
command_fn cmd_client_tracking;
command_fn cmd_client_trackinginfo;
command_fn cmd_client_unblock;
command_fn cmd_client_unpause;
command_fn cmd_echo;
command_fn cmd_hello;
command_fn cmd_ping;
command_fn cmd_quit;
command_fn cmd_reset;
command_fn cmd_select;
command_fn cmd_cluster;
command_fn cmd_command;
command_fn cmd_command_count;
command_fn cmd_command_docs;
command_fn cmd_command_getkeys;
command_fn cmd_command_getkeysandflags;
command_fn cmd_command_help;
command_fn cmd_command_info;
command_fn cmd_command_list;
command_fn cmd_config_get;
command_fn cmd_config_help;
command_fn cmd_config_resetstat;
command_fn cmd_config_rewrite;
command_fn cmd_config_set;
command_fn cmd_debug_digest;
command_fn cmd_debug_digest_value;
command_fn cmd_debug_error;
command_fn cmd_debug_help;
command_fn cmd_debug_loadaof;
command_fn cmd_debug_log;
command_fn cmd_debug_loop_gap;
command_fn cmd_debug_object;
command_fn cmd_debug_populate;
command_fn cmd_debug_protocol;
command_fn cmd_debug_quicklist_packed_threshold;
command_fn cmd_debug_reload;
command_fn cmd_debug_segfault;
command_fn cmd_debug_set_active_expire;
command_fn cmd_debug_set_disable_deny_scripts;
command_fn cmd_debug_set_skip_checksum_validation;
command_fn cmd_debug_sleep;
command_fn cmd_debug_stringmatch_len;
command_fn cmd_info;
command_fn cmd_lolwut;
command_fn cmd_memory_doctor;
command_fn cmd_memory_help;
command_fn cmd_memory_malloc_stats;
command_fn cmd_memory_purge;
command_fn cmd_memory_stats;
command_fn cmd_memory_usage;
command_fn cmd_module_help;
command_fn cmd_module_list;
command_fn cmd_rdma_close;
command_fn cmd_rdma_connect;
command_fn cmd_rdma_help;
command_fn cmd_rdma_info;
command_fn cmd_rdma_list;
command_fn cmd_role;
command_fn cmd_shutdown;
command_fn cmd_latency_doctor;
command_fn cmd_latency_graph;
command_fn cmd_latency_help;
command_fn cmd_latency_histogram;
command_fn cmd_latency_history;
command_fn cmd_latency_latest;
command_fn cmd_latency_reset;
command_fn cmd_slowlog_get;
command_fn cmd_slowlog_help;
command_fn cmd_slowlog_len;
command_fn cmd_slowlog_reset;
command_fn cmd_time;

/* ---- transactions ---- */
command_fn cmd_discard;
command_fn cmd_exec;
command_fn cmd_multi;
command_fn cmd_unwatch;
command_fn cmd_watch;
declare_fn exec_declare;
declare_fn watch_declare;
/* ---- pubsub ---- */
command_fn cmd_monitor;
command_fn cmd_psubscribe;
command_fn cmd_publish;
command_fn cmd_pubsub_channels;
command_fn cmd_pubsub_help;
command_fn cmd_pubsub_numpat;
command_fn cmd_pubsub_numsub;
command_fn cmd_pubsub_shardchannels;
command_fn cmd_pubsub_shardnumsub;
command_fn cmd_punsubscribe;
command_fn cmd_spublish;
command_fn cmd_ssubscribe;
command_fn cmd_subscribe;
command_fn cmd_sunsubscribe;
command_fn cmd_unsubscribe;

/* ---- strings ---- */
command_fn cmd_append;
command_fn cmd_decr;
command_fn cmd_decrby;
command_fn cmd_delifeq;
command_fn cmd_get;
command_fn cmd_getdel;
command_fn cmd_getex;
command_fn cmd_getrange;
command_fn cmd_getset;
command_fn cmd_incr;
command_fn cmd_incrby;
command_fn cmd_incrbyfloat;
command_fn cmd_lcs;
command_fn cmd_mget;
command_fn cmd_mset;
command_fn cmd_msetnx;
command_fn cmd_psetex;
command_fn cmd_set;
command_fn cmd_setex;
command_fn cmd_setnx;
command_fn cmd_setrange;
command_fn cmd_strlen;
command_fn cmd_substr;

/* ---- bitmaps ---- */
command_fn cmd_bitcount;
command_fn cmd_bitfield;
command_fn cmd_bitfield_ro;
command_fn cmd_bitop;
command_fn cmd_bitpos;
command_fn cmd_getbit;
command_fn cmd_setbit;

/* ---- HyperLogLogs ---- */
command_fn cmd_pfadd;
command_fn cmd_pfcount;
command_fn cmd_pfdebug;
command_fn cmd_pfmerge;
command_fn cmd_pfselftest;

/* ---- hashes ---- */
command_fn cmd_hdel;
command_fn cmd_hexists;
command_fn cmd_hget;
command_fn cmd_hgetall;
command_fn cmd_hincrby;
command_fn cmd_hincrbyfloat;
command_fn cmd_hkeys;
command_fn cmd_hlen;
command_fn cmd_hmget;
command_fn cmd_hmset;
command_fn cmd_hrandfield;
command_fn cmd_hscan;
command_fn cmd_hset;
command_fn cmd_hsetnx;
command_fn cmd_hstrlen;
command_fn cmd_hvals;

/* cmd_hash_expiry.c */
command_fn cmd_hexpire;
command_fn cmd_hexpireat;
command_fn cmd_hexpiretime;
command_fn cmd_hgetdel;
command_fn cmd_hgetex;
command_fn cmd_hpersist;
command_fn cmd_hpexpire;
command_fn cmd_hpexpireat;
command_fn cmd_hpexpiretime;
command_fn cmd_hpttl;
command_fn cmd_hsetex;
command_fn cmd_httl;

/* ---- sets ---- */
command_fn cmd_sadd;
command_fn cmd_scard;
command_fn cmd_sdiff;
command_fn cmd_sdiffstore;
command_fn cmd_sinter;
command_fn cmd_sintercard;
command_fn cmd_sinterstore;
command_fn cmd_sismember;
command_fn cmd_smembers;
command_fn cmd_smismember;
command_fn cmd_smove;
command_fn cmd_spop;
command_fn cmd_srandmember;
command_fn cmd_srem;
command_fn cmd_sscan;
command_fn cmd_sunion;
command_fn cmd_sunionstore;
/* ---- lists ---- */
command_fn cmd_blmove;
command_fn cmd_blmpop;
command_fn cmd_blpop;
command_fn cmd_brpop;
command_fn cmd_brpoplpush;
command_fn cmd_lindex;
command_fn cmd_linsert;
command_fn cmd_llen;
command_fn cmd_lmove;
command_fn cmd_lmpop;
command_fn cmd_lpop;
command_fn cmd_lpos;
command_fn cmd_lpush;
command_fn cmd_lpushx;
command_fn cmd_lrange;
command_fn cmd_lrem;
command_fn cmd_lset;
command_fn cmd_ltrim;
command_fn cmd_rpop;
command_fn cmd_rpoplpush;
command_fn cmd_rpush;
command_fn cmd_rpushx;

/* ---- geo ---- */
command_fn cmd_geoadd;
command_fn cmd_geodist;
command_fn cmd_geohash;
command_fn cmd_geopos;
command_fn cmd_georadius;
command_fn cmd_georadius_ro;
command_fn cmd_georadiusbymember;
command_fn cmd_georadiusbymember_ro;
command_fn cmd_geosearch;
command_fn cmd_geosearchstore;

/* ---- sorted sets ---- */
command_fn cmd_bzmpop;
command_fn cmd_bzpopmax;
command_fn cmd_bzpopmin;
command_fn cmd_zadd;
command_fn cmd_zcard;
command_fn cmd_zcount;
command_fn cmd_zdiff;
command_fn cmd_zdiffstore;
command_fn cmd_zincrby;
command_fn cmd_zinter;
command_fn cmd_zintercard;
command_fn cmd_zinterstore;
command_fn cmd_zlexcount;
command_fn cmd_zmpop;
command_fn cmd_zmscore;
command_fn cmd_zpopmax;
command_fn cmd_zpopmin;
command_fn cmd_zrandmember;
command_fn cmd_zrange;
command_fn cmd_zrangebylex;
command_fn cmd_zrangebyscore;
command_fn cmd_zrangestore;
command_fn cmd_zrank;
command_fn cmd_zrem;
command_fn cmd_zremrangebylex;
command_fn cmd_zremrangebyrank;
command_fn cmd_zremrangebyscore;
command_fn cmd_zrevrange;
command_fn cmd_zrevrangebylex;
command_fn cmd_zrevrangebyscore;
command_fn cmd_zrevrank;
command_fn cmd_zscan;
command_fn cmd_zscore;
command_fn cmd_zunion;
command_fn cmd_zunionstore;

/* ---- streams ---- */
command_fn cmd_xack;
command_fn cmd_xadd;
command_fn cmd_xautoclaim;
command_fn cmd_xclaim;
command_fn cmd_xdel;
command_fn cmd_xgroup_create;
command_fn cmd_xgroup_createconsumer;
command_fn cmd_xgroup_delconsumer;
command_fn cmd_xgroup_destroy;
command_fn cmd_xgroup_help;
command_fn cmd_xgroup_setid;
command_fn cmd_xinfo_consumers;
command_fn cmd_xinfo_groups;
command_fn cmd_xinfo_help;
command_fn cmd_xinfo_stream;
command_fn cmd_xlen;
command_fn cmd_xpending;
command_fn cmd_xrange;
command_fn cmd_xread;
command_fn cmd_xreadgroup;
command_fn cmd_xrevrange;
command_fn cmd_xsetid;
command_fn cmd_xtrim;

/* ---- keys of any type, whole databases ---- */
command_fn cmd_del;
command_fn cmd_unlink;
command_fn cmd_exists;
command_fn cmd_touch;
command_fn cmd_type;
command_fn cmd_wait;
command_fn cmd_waitaof;
command_fn cmd_rename;
command_fn cmd_renamenx;
command_fn cmd_copy;
command_fn cmd_move;
command_fn cmd_object_encoding;
command_fn cmd_object_freq;
command_fn cmd_object_help;
command_fn cmd_object_idletime;
command_fn cmd_object_refcount;
command_fn cmd_expire;
command_fn cmd_pexpire;
command_fn cmd_expireat;
command_fn cmd_pexpireat;
command_fn cmd_persist;
command_fn cmd_ttl;
command_fn cmd_pttl;
command_fn cmd_expiretime;
command_fn cmd_pexpiretime;
command_fn cmd_keys;
command_fn cmd_scan;
command_fn cmd_vellum_range;
command_fn cmd_randomkey;
command_fn cmd_dump;
command_fn cmd_restore;
command_fn cmd_sort;
command_fn cmd_sort_ro;
command_fn cmd_dbsize;
command_fn cmd_flushdb;
command_fn cmd_flushall;
command_fn cmd_swapdb;

/* ---- scripts ---- */
command_fn cmd_eval;
command_fn cmd_evalsha;
command_fn cmd_script_debug;
command_fn cmd_script_exists;
command_fn cmd_script_flush;
command_fn cmd_script_help;
command_fn cmd_script_kill;
command_fn cmd_script_load;
command_fn cmd_fcall;
command_fn cmd_function_delete;
command_fn cmd_function_dump;
command_fn cmd_function_flush;
command_fn cmd_function_help;
command_fn cmd_function_kill;
command_fn cmd_function_list;
command_fn cmd_function_load;
command_fn cmd_function_restore;
command_fn cmd_function_stats;
declare_fn eval_declare;
declare_fn fcall_declare;
declare_fn function_declare_read;
declare_fn function_declare_write;
may_write_fn eval_may_write;
may_write_fn fcall_may_write;

#endif
