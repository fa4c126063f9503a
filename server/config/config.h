/*
 * The configuration: every directive of a stock redis.conf and a few of our own (workers,
 * maxstore, partitions, journal-size, rdma ...). One table (config_table.c) names each directive
 * with its type, range, default and flags. The file, the command line, CONFIG GET, CONFIG SET and
 * CONFIG REWRITE all use it.
 *
 * Threads. Workers may read values at any time while one of them changes some:
 * - Numbers (booleans, integers, memory sizes, enums) are relaxed atomics: config_number() is one
 *   plain load. A reader may briefly see two related numbers half changed.
 * - Texts are protected by `lock` and are copied out by config_text(). No pointer to one is ever
 *   handed out.
 * - Everything else in the struct is written before the workers start and constant afterwards.
 */
#ifndef VELLUM_CONFIG_H
#define VELLUM_CONFIG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The directives that code looks up by id. All others are in later rows of the table and are kept
 * only for CONFIG GET and CONFIG SET. */
enum config_id {
    CONFIG_PORT,
    CONFIG_BIND, /* text: addresses separated by one space; "-" marks one that may be missing */
    CONFIG_UNIXSOCKET,
    CONFIG_UNIXSOCKETPERM, /* number: the mode; 0: use the umask */
    CONFIG_TCP_BACKLOG,
    CONFIG_TCP_KEEPALIVE, /* seconds; 0: off */
    CONFIG_TIMEOUT,       /* seconds; 0: never */
    CONFIG_MAXCLIENTS,
    CONFIG_PROTECTED_MODE,
    CONFIG_REQUIREPASS,
    CONFIG_DIR,               /* the data directory, as given; absolute after config_read() */
    CONFIG_APPENDFSYNC,       /* number: enum store_sync */
    CONFIG_MAXMEMORY,         /* bytes; 0: a fraction of the machine's memory */
    CONFIG_MAXMEMORY_CLIENTS, /* bytes; 0: a quarter of maxmemory; negative: percent of it */
    CONFIG_MAXMEMORY_POLICY,
    CONFIG_MAXMEMORY_SAMPLES,
    CONFIG_LFU_LOG_FACTOR,
    CONFIG_LFU_DECAY_TIME, /* minutes */
    CONFIG_MAXSTORE,       /* bytes; 0: limited only by the file system */
    CONFIG_WORKERS,
    CONFIG_PARTITIONS,
    CONFIG_JOURNAL_SIZE,
    CONFIG_ORDERED_KEYS,
    CONFIG_LOGLEVEL, /* number: enum config_loglevel */
    CONFIG_LOGFILE,  /* text; empty: standard output */
    CONFIG_DAEMONIZE,
    CONFIG_PIDFILE,
    CONFIG_SUPERVISED, /* enum config_supervised */
    CONFIG_DATABASES,
    CONFIG_PROTO_MAX_BULK_LEN,
    CONFIG_CLIENT_QUERY_BUFFER_LIMIT,
    CONFIG_CLIENT_OUTPUT_BUFFER_LIMIT, /* use config_output_limit() */
    CONFIG_OOM_SCORE_ADJ,              /* number: enum config_oom_score */
    CONFIG_OOM_SCORE_ADJ_VALUES,       /* text: three numbers; the first one applies to a server */
    CONFIG_HZ,
    CONFIG_ENABLE_DEBUG_COMMAND,     /* number: enum config_protection */
    CONFIG_ENABLE_PROTECTED_CONFIGS, /* number: enum config_protection */
    CONFIG_HASH_MAX_LISTPACK_ENTRIES,
    CONFIG_HASH_MAX_LISTPACK_VALUE,
    CONFIG_LIST_MAX_LISTPACK_SIZE, /* entries; negative: -1 is 4 KB, -5 is 64 KB */
    CONFIG_SET_MAX_INTSET_ENTRIES,
    CONFIG_SET_MAX_LISTPACK_ENTRIES,
    CONFIG_SET_MAX_LISTPACK_VALUE,
    CONFIG_STREAM_NODE_MAX_ENTRIES, /* XADD and XTRIM with `~` remove so many at a time */
    CONFIG_ZSET_MAX_LISTPACK_ENTRIES,
    CONFIG_ZSET_MAX_LISTPACK_VALUE,
    CONFIG_HLL_SPARSE_MAX_BYTES,
    CONFIG_NOTIFY_KEYSPACE_EVENTS,  /* use config_notify_classes() */
    CONFIG_BUSY_REPLY_THRESHOLD,    /* milliseconds: a script that runs longer may be killed */
    CONFIG_SLOWLOG_LOG_SLOWER_THAN, /* microseconds; -1: logs nothing */
    CONFIG_SLOWLOG_MAX_LEN,
    CONFIG_LATENCY_MONITOR_THRESHOLD, /* milliseconds; 0: notes nothing */
    CONFIG_TRACKING_TABLE_MAX_KEYS,   /* 0: no limit */
    CONFIG_LATENCY_TRACKING,
    CONFIG_LATENCY_TRACKING_INFO_PERCENTILES, /* text: numbers */
    CONFIG_RDMA,                              /* number: enum config_rdma */
    CONFIG_RDMA_DEVICE,                       /* text; empty: all suitable ones */
    CONFIG_RDMA_PORT,                         /* 0: all suitable ones */
    CONFIG_RDMA_GID_INDEX,                    /* -1: that of each connection's address */
    CONFIG_RDMA_SPIN_US,
    CONFIG_RDMA_MAX_CHANNELS,
    CONFIG_RDMA_MAX_PINNED,
    CONFIG_RDMA_MAX_PINNED_PER_CLIENT,
    CONFIG_RDMA_CHECK_PEER,
    CONFIG_NAMED
};

enum config_loglevel {
    CONFIG_LOG_DEBUG,
    CONFIG_LOG_VERBOSE,
    CONFIG_LOG_NOTICE,
    CONFIG_LOG_WARNING,
    CONFIG_LOG_NOTHING /* no line has this level */
};
enum config_rdma { CONFIG_RDMA_NO, CONFIG_RDMA_YES, CONFIG_RDMA_AUTO };
enum config_supervised {
    CONFIG_SUPERVISED_UPSTART,
    CONFIG_SUPERVISED_SYSTEMD,
    CONFIG_SUPERVISED_AUTO,
    CONFIG_SUPERVISED_NO
};
enum config_oom_score { CONFIG_OOM_NO, CONFIG_OOM_RELATIVE, CONFIG_OOM_ABSOLUTE };
enum config_protection { CONFIG_PROTECT_NO, CONFIG_PROTECT_YES, CONFIG_PROTECT_LOCAL };
enum config_policy { /* maxmemory-policy; its names are in config_table.c */
                     CONFIG_POLICY_VOLATILE_LRU,
                     CONFIG_POLICY_VOLATILE_LFU,
                     CONFIG_POLICY_VOLATILE_RANDOM,
                     CONFIG_POLICY_VOLATILE_TTL,
                     CONFIG_POLICY_ALLKEYS_LRU,
                     CONFIG_POLICY_ALLKEYS_LFU,
                     CONFIG_POLICY_ALLKEYS_RANDOM,
                     CONFIG_POLICY_NOEVICTION
};
enum config_client_class { CONFIG_CLIENT_NORMAL, CONFIG_CLIENT_REPLICA, CONFIG_CLIENT_PUBSUB };
#define CONFIG_CLIENT_CLASSES 3

struct config_output_limit {
    uint64_t hard_bytes, soft_bytes, soft_seconds; /* 0: no limit */
};

#define CONFIG_ROW_MAX 256
#define CONFIG_PASSWORD_MAX 512

#define COMMAND_NAME_MAX 64 /* longest name, including renamed ones */

/* rename-command */
struct command_rename {
    const char *from, *to; /* lower case; `to` empty: the command is disabled */
};
struct config_note; /* a warning about a directive, kept until the log is open */

struct config {
    _Atomic int64_t numbers[CONFIG_ROW_MAX]; /* one per table row of a number type */
    _Atomic uint64_t output_limits[CONFIG_CLIENT_CLASSES * 3];
    _Atomic bool has_password;       /* requirepass is not empty: clients must authenticate */
    _Atomic uint32_t notify_classes; /* notify-keyspace-events: a set of enum notify_class */

    pthread_mutex_t changing; /* held while directives change, from first read to last write */
    pthread_mutex_t lock;
    char *texts[CONFIG_ROW_MAX]; /* under lock; one per table row of a text type, never NULL */

    char *file;                     /* absolute path of the configuration file, or NULL */
    mode_t umask;                   /* for a new configuration file */
    struct command_rename *renames; /* rename-command, for command_index_build */
    size_t rename_count, rename_capacity;
    struct config_note *notes; /* once the workers run, under `changing` */
};

/* ---- lifecycle ---- */

bool config_init(struct config *config); /* all defaults; false: out of memory */
void config_free(struct config *config);

/* ---- values ---- */

static inline int64_t config_number(const struct config *config, enum config_id id)
{
    return atomic_load_explicit(&config->numbers[id], memory_order_relaxed);
}

static inline bool config_has_password(const struct config *config)
{
    return atomic_load_explicit(&config->has_password, memory_order_relaxed);
}

static inline uint32_t config_notify_classes(const struct config *config)
{
    return atomic_load_explicit(&config->notify_classes, memory_order_relaxed);
}

/* Copies a text with its terminating NUL, truncated to `size`. Returns the full length. */
size_t config_text(struct config *config, enum config_id id, char *to, size_t size);

struct config_output_limit config_output_limit(const struct config *config,
                                               enum config_client_class client);

/* Takes the same time wherever the passwords differ. */
bool config_password_matches(struct config *config, const char *password, size_t len);

#endif
