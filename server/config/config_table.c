/*
 * The table of directives: everything that a redis.conf of 7.0 or 7.2 may contain, and our own. A
 * directive that Vellum does not implement is accepted, stored and shown. The reason is logged
 * once when a file, the command line or CONFIG SET sets it. Refused are those that ask for
 * protection (ACL users, TLS) or for other servers' data (a cluster, a master).
 */
#include "server/config/config_directive.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "storage/store.h"

#define KB 1024LL
#define MB (1024 * KB)
#define GB (1024 * MB)

/* Row macros, one per type. Arguments after the default are further fields. */
#define BOOL(n, value, ...)                                                                        \
    {                                                                                              \
        .name = n, .type = DIRECTIVE_BOOL, .initial = value, .max = 1, __VA_ARGS__                 \
    }
#define INT(n, low, high, value, ...)                                                              \
    {                                                                                              \
        .name = n, .type = DIRECTIVE_INT, .min = low, .max = high, .initial = value, __VA_ARGS__   \
    }
#define MEMORY(n, low, high, value, ...)                                                           \
    {                                                                                              \
        .name = n, .type = DIRECTIVE_MEMORY, .min = low, .max = high, .initial = value,            \
        __VA_ARGS__                                                                                \
    }
#define ENUM(n, names, value, ...)                                                                 \
    {                                                                                              \
        .name = n, .type = DIRECTIVE_ENUM, .choices = names, .initial = value, __VA_ARGS__         \
    }
#define TEXT(n, value, ...)                                                                        \
    {                                                                                              \
        .name = n, .type = DIRECTIVE_TEXT, .initial = value, __VA_ARGS__                           \
    }
#define WORDS(n, low, high, value, ...)                                                            \
    {                                                                                              \
        .name = n, .type = DIRECTIVE_WORDS, .min = low, .max = high, .initial = value, __VA_ARGS__ \
    }
#define FIXED .flags = DIRECTIVE_FIXED
#define KEPT .flags = DIRECTIVE_KEPT
#define SECRET .flags = DIRECTIVE_SECRET
#define UNUSED(reason) .ignored = reason

#define RDB UNUSED("there are no RDB snapshots; every acknowledged write is in the journal")
#define AOF UNUSED("there is no append-only file; every acknowledged write is in the journal")
#define REPLICATION UNUSED("there is no replication yet")
#define CLUSTER UNUSED("there is no cluster mode yet")
#define TLS UNUSED("connections are not encrypted")
#define TYPES UNUSED("there are no such values yet, or they are stored in another form")
#define ACLS UNUSED("there are no ACL users yet; requirepass works")
#define MEMORY_USE UNUSED("the engine manages its memory itself")
#define IN_BACKGROUND UNUSED("space is always freed in the background")
#define PROCESS UNUSED("the server leaves this to the system")
#define THREADS UNUSED("'workers' sets the number of threads")
#define EVICTION UNUSED("keys are evicted in the background, as many as needed")

static const struct directive_choice sync_names[] = {{"everysec", STORE_SYNC_EVERYSEC},
                                                     {"always", STORE_SYNC_ALWAYS},
                                                     {"no", STORE_SYNC_NO},
                                                     {NULL, 0}};
static const struct directive_choice policy_names[] = {
    {"volatile-lru", CONFIG_POLICY_VOLATILE_LRU},
    {"volatile-lfu", CONFIG_POLICY_VOLATILE_LFU},
    {"volatile-random", CONFIG_POLICY_VOLATILE_RANDOM},
    {"volatile-ttl", CONFIG_POLICY_VOLATILE_TTL},
    {"allkeys-lru", CONFIG_POLICY_ALLKEYS_LRU},
    {"allkeys-lfu", CONFIG_POLICY_ALLKEYS_LFU},
    {"allkeys-random", CONFIG_POLICY_ALLKEYS_RANDOM},
    {"noeviction", CONFIG_POLICY_NOEVICTION},
    {NULL, 0}};
static const struct directive_choice loglevel_names[] = {
    {"debug", CONFIG_LOG_DEBUG},     {"verbose", CONFIG_LOG_VERBOSE}, {"notice", CONFIG_LOG_NOTICE},
    {"warning", CONFIG_LOG_WARNING}, {"nothing", CONFIG_LOG_NOTHING}, {NULL, 0}};
static const struct directive_choice protection_names[] = {{"no", CONFIG_PROTECT_NO},
                                                           {"yes", CONFIG_PROTECT_YES},
                                                           {"local", CONFIG_PROTECT_LOCAL},
                                                           {NULL, 0}};
static const struct directive_choice supervised_names[] = {{"upstart", CONFIG_SUPERVISED_UPSTART},
                                                           {"systemd", CONFIG_SUPERVISED_SYSTEMD},
                                                           {"auto", CONFIG_SUPERVISED_AUTO},
                                                           {"no", CONFIG_SUPERVISED_NO},
                                                           {NULL, 0}};
static const struct directive_choice facility_names[] = {
    {"user", 0},   {"local0", 1}, {"local1", 2}, {"local2", 3}, {"local3", 4},
    {"local4", 5}, {"local5", 6}, {"local6", 7}, {"local7", 8}, {NULL, 0}};
static const struct directive_choice diskless_names[] = {
    {"disabled", 0}, {"on-empty-db", 1}, {"swapdb", 2}, {NULL, 0}};
static const struct directive_choice sanitize_names[] = {
    {"no", 0}, {"yes", 1}, {"clients", 2}, {NULL, 0}};
static const struct directive_choice oom_names[] = {{"no", CONFIG_OOM_NO},
                                                    {"yes", CONFIG_OOM_RELATIVE},
                                                    {"relative", CONFIG_OOM_RELATIVE},
                                                    {"absolute", CONFIG_OOM_ABSOLUTE},
                                                    {NULL, 0}};
static const struct directive_choice channel_names[] = {
    {"allchannels", 0}, {"resetchannels", 1}, {NULL, 0}};
static const struct directive_choice endpoint_names[] = {
    {"ip", 0}, {"hostname", 1}, {"unknown-endpoint", 2}, {NULL, 0}};
static const struct directive_choice tls_client_names[] = {
    {"no", 0}, {"yes", 1}, {"optional", 2}, {NULL, 0}};
static const struct directive_choice propagation_names[] = {
    {"ignore", 0}, {"panic", 1}, {"panic-on-replicas", 2}, {NULL, 0}};

static const struct directive_choice rdma_names[] = {
    {"no", CONFIG_RDMA_NO}, {"yes", CONFIG_RDMA_YES}, {"auto", CONFIG_RDMA_AUTO}, {NULL, 0}};

static const char *check_databases(int64_t number)
{
    return number == 16 ? NULL : "there are always 16 databases";
}

static const char *check_power_of_two(int64_t number)
{
    return (number & (number - 1)) == 0 ? NULL : "argument must be a power of two";
}

static const char *read_percentile(const char *word, char *shown, size_t size)
{
    char *end;
    double percentile = strtod(word, &end);
    if (word[0] == ' ' || end == word || *end != '\0' || isnan(percentile))
        return "Invalid latency-tracking-info-percentiles parameters";
    if (percentile < 0 || percentile > 100)
        return "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]";
    snprintf(shown, size, "%.10g", percentile);
    return NULL;
}

static const char *read_oom_score(const char *word, char *shown, size_t size)
{
    char *end;
    long long score = strtoll(word, &end, 10);
    if (*end != '\0' || score < -2000 || score > 2000)
        return "Invalid oom-score-adj-values, elements must be between -2000 and 2000.";
    snprintf(shown, size, "%lld", score);
    return NULL;
}

/* ---- what protects data, or others rely on: without it the server does not start ---- */

static const char *refuse_aclfile(char *text)
{
    return text[0] == '\0' ? NULL : "ACL users are not supported; use requirepass";
}

static const char *refuse_tls(int64_t port)
{
    return port == 0 ? NULL : "TLS is not supported";
}

static const char *refuse_cluster(int64_t is_enabled)
{
    return is_enabled == 0 ? NULL : "cluster mode is not supported";
}

static const char *refuse_master(char *text)
{
    if (strcasecmp(text, "no one") == 0)
        text[0] = '\0';
    return text[0] == '\0' ? NULL : "replication is not supported; no master is followed";
}

/* ---- words of shutdown-on-sigint and -sigterm ---- */

/* The order is that in which Redis shows them. */
static const char *const stop_names[] = {"save", "nosave", "now", "force"};
enum { STOP_SAVE = 1 << 0, STOP_NOSAVE = 1 << 1 }; /* their bits in a set of those */
#define STOP_NAMES (sizeof stop_names / sizeof stop_names[0])

static unsigned stop_bit(const char *word)
{
    for (unsigned i = 0; i < STOP_NAMES; i++)
        if (strcasecmp(word, stop_names[i]) == 0)
            return 1U << i;
    return 0;
}

static const char *read_stop_word(const char *word, char *shown, size_t size)
{
    if (strcasecmp(word, "default") != 0 && stop_bit(word) == 0)
        return "argument(s) must be one of the following: default, save, nosave, now, force";
    snprintf(shown, size, "%s", word);
    return NULL;
}

static const char *check_stop_words(char *text)
{
    unsigned set = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        set |= stop_bit(word);
    if ((set & STOP_SAVE) != 0 && (set & STOP_NOSAVE) != 0)
        return "shutdown options SAVE and NOSAVE can't be used simultaneously";
    char *at = set == 0 ? stpcpy(text, "default") : text;
    for (unsigned i = 0; i < STOP_NAMES; i++) {
        if ((set & 1U << i) == 0)
            continue;
        if (at > text)
            *at++ = ' ';
        at = stpcpy(at, stop_names[i]);
    }
    return NULL;
}

/* ---- the table ---- */

const struct directive directive_table[] = {
    [CONFIG_PORT] = INT("port", 0, 65535, "6379"),
    [CONFIG_BIND] = WORDS("bind", 0, 16, "* -::*"),
    [CONFIG_UNIXSOCKET] = TEXT("unixsocket", "", FIXED),
    [CONFIG_UNIXSOCKETPERM] =
        {.name = "unixsocketperm", .type = DIRECTIVE_OCTAL, .max = 0777, .initial = "0", FIXED},
    [CONFIG_TCP_BACKLOG] = INT("tcp-backlog", 0, INT_MAX, "511", FIXED),
    [CONFIG_TCP_KEEPALIVE] = INT("tcp-keepalive", 0, INT_MAX, "300"),
    [CONFIG_TIMEOUT] = INT("timeout", 0, INT_MAX, "0"),
    [CONFIG_MAXCLIENTS] = INT("maxclients", 1, UINT_MAX, "10000"),
    [CONFIG_PROTECTED_MODE] = BOOL("protected-mode", "yes"),
    [CONFIG_REQUIREPASS] = TEXT("requirepass", "", SECRET, .max = CONFIG_PASSWORD_MAX),
    [CONFIG_DIR] = TEXT("dir", "./vellum-data", .flags = DIRECTIVE_KEPT | DIRECTIVE_PROTECTED),
    [CONFIG_APPENDFSYNC] = ENUM("appendfsync", sync_names, "everysec"),
    [CONFIG_MAXMEMORY] = MEMORY("maxmemory", 0, INT64_MAX, "0"),
    [CONFIG_MAXMEMORY_CLIENTS] = {.name = "maxmemory-clients",
                                  .type = DIRECTIVE_PERCENT,
                                  .max = INT64_MAX,
                                  .initial = "0"},
    [CONFIG_MAXMEMORY_POLICY] = ENUM("maxmemory-policy", policy_names, "noeviction"),
    [CONFIG_MAXMEMORY_SAMPLES] = INT("maxmemory-samples", 1, INT32_MAX, "5"),
    [CONFIG_LFU_LOG_FACTOR] = INT("lfu-log-factor", 0, INT_MAX, "10"),
    [CONFIG_LFU_DECAY_TIME] = INT("lfu-decay-time", 0, INT_MAX, "1"),
    [CONFIG_MAXSTORE] = MEMORY("maxstore", 0, INT64_MAX, "0"),
    [CONFIG_WORKERS] = INT("workers", 1, 128, "1", KEPT),
    [CONFIG_PARTITIONS] = INT("partitions", 1, 128, "16", KEPT, .check = check_power_of_two),
    [CONFIG_JOURNAL_SIZE] = MEMORY("journal-size", 8 * MB, 8 * GB, "256mb", KEPT),
    [CONFIG_ORDERED_KEYS] = BOOL("ordered-keys", "no", KEPT),
    [CONFIG_LOGLEVEL] = ENUM("loglevel", loglevel_names, "notice"),
    [CONFIG_LOGFILE] = TEXT("logfile", "", FIXED),
    [CONFIG_DAEMONIZE] = BOOL("daemonize", "no", FIXED),
    [CONFIG_PIDFILE] = TEXT("pidfile", "", FIXED),
    [CONFIG_SUPERVISED] = ENUM("supervised", supervised_names, "no", FIXED),
    [CONFIG_DATABASES] = INT("databases", 1, INT_MAX, "16", FIXED, .check = check_databases),
    [CONFIG_PROTO_MAX_BULK_LEN] = MEMORY("proto-max-bulk-len", MB, INT64_MAX, "512mb"),
    [CONFIG_CLIENT_QUERY_BUFFER_LIMIT] = MEMORY("client-query-buffer-limit", MB, INT64_MAX, "1gb"),
    [CONFIG_CLIENT_OUTPUT_BUFFER_LIMIT] = {.name = "client-output-buffer-limit",
                                           .type = DIRECTIVE_LIMITS,
                                           .initial = "normal 0 0 0 slave 256mb 64mb 60 "
                                                      "pubsub 32mb 8mb 60"},
    [CONFIG_OOM_SCORE_ADJ] = ENUM("oom-score-adj", oom_names, "no"),
    [CONFIG_OOM_SCORE_ADJ_VALUES] =
        WORDS("oom-score-adj-values", 3, 3, "0 200 800", .read_word = read_oom_score),
    [CONFIG_HZ] = INT("hz", 0, INT_MAX, "10", PROCESS),
    [CONFIG_ENABLE_DEBUG_COMMAND] = ENUM("enable-debug-command", protection_names, "no", FIXED),
    [CONFIG_ENABLE_PROTECTED_CONFIGS] =
        ENUM("enable-protected-configs", protection_names, "no", FIXED),
    [CONFIG_HASH_MAX_LISTPACK_ENTRIES] =
        INT("hash-max-listpack-entries", 0, INT64_MAX, "512", .alias = "hash-max-ziplist-entries"),
    [CONFIG_HASH_MAX_LISTPACK_VALUE] =
        MEMORY("hash-max-listpack-value", 0, INT64_MAX, "64", .alias = "hash-max-ziplist-value"),
    [CONFIG_LIST_MAX_LISTPACK_SIZE] =
        INT("list-max-listpack-size", INT_MIN, INT_MAX, "-2", .alias = "list-max-ziplist-size"),
    [CONFIG_SET_MAX_INTSET_ENTRIES] = INT("set-max-intset-entries", 0, INT64_MAX, "512"),
    [CONFIG_SET_MAX_LISTPACK_ENTRIES] = INT("set-max-listpack-entries", 0, INT64_MAX, "128"),
    [CONFIG_SET_MAX_LISTPACK_VALUE] = MEMORY("set-max-listpack-value", 0, INT64_MAX, "64"),
    [CONFIG_STREAM_NODE_MAX_ENTRIES] = INT("stream-node-max-entries", 0, INT64_MAX, "100"),
    [CONFIG_ZSET_MAX_LISTPACK_ENTRIES] =
        INT("zset-max-listpack-entries", 0, INT64_MAX, "128", .alias = "zset-max-ziplist-entries"),
    [CONFIG_ZSET_MAX_LISTPACK_VALUE] =
        MEMORY("zset-max-listpack-value", 0, INT64_MAX, "64", .alias = "zset-max-ziplist-value"),
    [CONFIG_HLL_SPARSE_MAX_BYTES] = MEMORY("hll-sparse-max-bytes", 0, INT64_MAX, "3000"),
    [CONFIG_NOTIFY_KEYSPACE_EVENTS] = {.name = "notify-keyspace-events",
                                       .type = DIRECTIVE_EVENTS,
                                       .initial = ""},

    [CONFIG_BUSY_REPLY_THRESHOLD] =
        INT("busy-reply-threshold", 0, INT64_MAX, "5000", .alias = "lua-time-limit"),
    [CONFIG_SLOWLOG_LOG_SLOWER_THAN] = INT("slowlog-log-slower-than", -1, INT64_MAX, "10000"),
    [CONFIG_SLOWLOG_MAX_LEN] = INT("slowlog-max-len", 0, INT64_MAX, "128"),
    [CONFIG_LATENCY_MONITOR_THRESHOLD] = INT("latency-monitor-threshold", 0, INT64_MAX, "0"),
    [CONFIG_TRACKING_TABLE_MAX_KEYS] = INT("tracking-table-max-keys", 0, INT64_MAX, "1000000"),
    [CONFIG_LATENCY_TRACKING] = BOOL("latency-tracking", "yes"),
    [CONFIG_LATENCY_TRACKING_INFO_PERCENTILES] = WORDS("latency-tracking-info-percentiles", 0, 64,
                                                       "50 99 99.9", .read_word = read_percentile),
    [CONFIG_RDMA] = ENUM("rdma", rdma_names, "auto", KEPT),
    [CONFIG_RDMA_DEVICE] = TEXT("rdma-device", "", KEPT),
    [CONFIG_RDMA_PORT] = INT("rdma-port", 0, 255, "0", KEPT),
    [CONFIG_RDMA_GID_INDEX] = INT("rdma-gid-index", -1, 255, "-1", KEPT),
    [CONFIG_RDMA_SPIN_US] = INT("rdma-spin-us", 0, 1000000, "50"),
    [CONFIG_RDMA_MAX_CHANNELS] = INT("rdma-max-channels", 1, 100000, "256", KEPT),
    [CONFIG_RDMA_MAX_PINNED] = MEMORY("rdma-max-pinned", MB, INT64_MAX, "256mb", KEPT),
    [CONFIG_RDMA_MAX_PINNED_PER_CLIENT] =
        MEMORY("rdma-max-pinned-per-client", 4096, 1024 * MB, "1mb", KEPT),
    [CONFIG_RDMA_CHECK_PEER] = BOOL("rdma-check-peer", "yes"),

    /* ---- persistence ---- */
    {.name = "save", .type = DIRECTIVE_SAVE, .initial = "", RDB},
    BOOL("stop-writes-on-bgsave-error", "yes", RDB),
    BOOL("rdbcompression", "yes", RDB),
    BOOL("rdbchecksum", "yes", FIXED, RDB),
    TEXT("dbfilename", "dump.rdb", .flags = DIRECTIVE_PROTECTED, RDB),
    BOOL("rdb-del-sync-files", "no", RDB),
    BOOL("rdb-save-incremental-fsync", "yes", RDB),
    TEXT("bgsave_cpulist", "", FIXED, RDB),
    BOOL("appendonly", "no", AOF),
    TEXT("appendfilename", "appendonly.aof", FIXED, AOF),
    TEXT("appenddirname", "appendonlydir", FIXED, AOF),
    BOOL("no-appendfsync-on-rewrite", "no", AOF),
    INT("auto-aof-rewrite-percentage", 0, INT_MAX, "100", AOF),
    MEMORY("auto-aof-rewrite-min-size", 0, INT64_MAX, "64mb", AOF),
    BOOL("aof-load-truncated", "yes", AOF),
    BOOL("aof-use-rdb-preamble", "yes", AOF),
    BOOL("aof-timestamp-enabled", "no", AOF),
    BOOL("aof-rewrite-incremental-fsync", "yes", AOF),
    BOOL("aof-disable-auto-gc", "no", AOF),
    TEXT("aof_rewrite_cpulist", "", FIXED, AOF),

    /* ---- replication ---- */
    WORDS("replicaof", 2, 2, "", FIXED, REPLICATION, .alias = "slaveof",
          .check_text = refuse_master),
    TEXT("masterauth", "", SECRET, REPLICATION),
    TEXT("masteruser", "", REPLICATION),
    BOOL("replica-serve-stale-data", "yes", REPLICATION, .alias = "slave-serve-stale-data"),
    BOOL("replica-read-only", "yes", REPLICATION, .alias = "slave-read-only"),
    BOOL("replica-lazy-flush", "no", REPLICATION, .alias = "slave-lazy-flush"),
    BOOL("replica-ignore-maxmemory", "yes", REPLICATION, .alias = "slave-ignore-maxmemory"),
    BOOL("replica-ignore-disk-write-errors", "no", REPLICATION),
    BOOL("replica-announced", "yes", REPLICATION),
    INT("replica-priority", 0, INT_MAX, "100", REPLICATION, .alias = "slave-priority"),
    TEXT("replica-announce-ip", "", REPLICATION, .alias = "slave-announce-ip"),
    INT("replica-announce-port", 0, 65535, "0", REPLICATION, .alias = "slave-announce-port"),
    BOOL("repl-diskless-sync", "yes", REPLICATION),
    INT("repl-diskless-sync-delay", 0, INT_MAX, "5", REPLICATION),
    INT("repl-diskless-sync-max-replicas", 0, INT_MAX, "0", REPLICATION),
    ENUM("repl-diskless-load", diskless_names, "disabled", REPLICATION),
    INT("repl-ping-replica-period", 1, INT_MAX, "10", REPLICATION,
        .alias = "repl-ping-slave-period"),
    INT("repl-timeout", 1, INT_MAX, "60", REPLICATION),
    BOOL("repl-disable-tcp-nodelay", "no", REPLICATION),
    MEMORY("repl-backlog-size", 1, INT64_MAX, "1mb", REPLICATION),
    INT("repl-backlog-ttl", 0, INT64_MAX, "3600", REPLICATION),
    INT("min-replicas-to-write", 0, INT_MAX, "0", REPLICATION, .alias = "min-slaves-to-write"),
    INT("min-replicas-max-lag", 0, INT_MAX, "10", REPLICATION, .alias = "min-slaves-max-lag"),
    ENUM("propagation-error-behavior", propagation_names, "ignore", REPLICATION),

    /* ---- cluster ---- */
    BOOL("cluster-enabled", "no", FIXED, CLUSTER, .check = refuse_cluster),
    TEXT("cluster-config-file", "nodes.conf", FIXED, CLUSTER),
    INT("cluster-node-timeout", 0, INT64_MAX, "15000", CLUSTER),
    INT("cluster-port", 0, 65535, "0", FIXED, CLUSTER),
    INT("cluster-replica-validity-factor", 0, INT_MAX, "10", CLUSTER,
        .alias = "cluster-slave-validity-factor"),
    INT("cluster-migration-barrier", 0, INT_MAX, "1", CLUSTER),
    BOOL("cluster-allow-replica-migration", "yes", CLUSTER),
    BOOL("cluster-require-full-coverage", "yes", CLUSTER),
    BOOL("cluster-replica-no-failover", "no", CLUSTER, .alias = "cluster-slave-no-failover"),
    BOOL("cluster-allow-reads-when-down", "no", CLUSTER),
    BOOL("cluster-allow-pubsubshard-when-down", "yes", CLUSTER),
    MEMORY("cluster-link-sendbuf-limit", 0, INT64_MAX, "0", CLUSTER),
    TEXT("cluster-announce-ip", "", CLUSTER),
    TEXT("cluster-announce-hostname", "", CLUSTER),
    TEXT("cluster-announce-human-nodename", "", CLUSTER),
    INT("cluster-announce-port", 0, 65535, "0", CLUSTER),
    INT("cluster-announce-tls-port", 0, 65535, "0", CLUSTER),
    INT("cluster-announce-bus-port", 0, 65535, "0", CLUSTER),
    ENUM("cluster-preferred-endpoint-type", endpoint_names, "ip", CLUSTER),

    /* ---- TLS ---- */
    INT("tls-port", 0, 65535, "0", TLS, .check = refuse_tls),
    TEXT("tls-cert-file", "", TLS),
    TEXT("tls-key-file", "", TLS),
    TEXT("tls-key-file-pass", "", SECRET, TLS),
    TEXT("tls-client-cert-file", "", TLS),
    TEXT("tls-client-key-file", "", TLS),
    TEXT("tls-client-key-file-pass", "", SECRET, TLS),
    TEXT("tls-dh-params-file", "", TLS),
    TEXT("tls-ca-cert-file", "", TLS),
    TEXT("tls-ca-cert-dir", "", TLS),
    ENUM("tls-auth-clients", tls_client_names, "yes", TLS),
    BOOL("tls-replication", "no", TLS),
    BOOL("tls-cluster", "no", TLS),
    TEXT("tls-protocols", "", TLS),
    TEXT("tls-ciphers", "", TLS),
    TEXT("tls-ciphersuites", "", TLS),
    BOOL("tls-prefer-server-ciphers", "no", TLS),
    BOOL("tls-session-caching", "yes", TLS),
    INT("tls-session-cache-size", 0, INT_MAX, "20480", TLS),
    INT("tls-session-cache-timeout", 0, INT_MAX, "300", TLS),

    /* ---- data types and scripts ---- */
    INT("list-compress-depth", 0, INT_MAX, "0", TYPES),
    MEMORY("stream-node-max-bytes", 0, INT64_MAX, "4096", TYPES),
    ENUM("sanitize-dump-payload", sanitize_names, "no", TYPES),
    TEXT("locale-collate", "", TYPES),

    /* ---- users and protection ---- */
    TEXT("aclfile", "", FIXED, ACLS, .check_text = refuse_aclfile),
    INT("acllog-max-len", 0, INT64_MAX, "128", ACLS),
    ENUM("acl-pubsub-default", channel_names, "resetchannels", ACLS),
    ENUM("enable-module-command", protection_names, "no", FIXED, UNUSED("there are no modules")),

    /* ---- memory ---- */
    INT("maxmemory-eviction-tenacity", 0, 100, "10", EVICTION),
    INT("active-expire-effort", 1, 10, "1", IN_BACKGROUND),
    BOOL("lazyfree-lazy-eviction", "no", IN_BACKGROUND),
    BOOL("lazyfree-lazy-expire", "no", IN_BACKGROUND),
    BOOL("lazyfree-lazy-server-del", "no", IN_BACKGROUND),
    BOOL("lazyfree-lazy-user-del", "no", IN_BACKGROUND),
    BOOL("lazyfree-lazy-user-flush", "no", IN_BACKGROUND),
    BOOL("activerehashing", "yes", MEMORY_USE),
    BOOL("activedefrag", "no", MEMORY_USE),
    MEMORY("active-defrag-ignore-bytes", 1, INT64_MAX, "100mb", MEMORY_USE),
    INT("active-defrag-threshold-lower", 0, 1000, "10", MEMORY_USE),
    INT("active-defrag-threshold-upper", 0, 1000, "100", MEMORY_USE),
    INT("active-defrag-cycle-min", 1, 99, "1", MEMORY_USE),
    INT("active-defrag-cycle-max", 1, 99, "25", MEMORY_USE),
    INT("active-defrag-max-scan-fields", 1, INT64_MAX, "1000", MEMORY_USE),
    BOOL("jemalloc-bg-thread", "yes", MEMORY_USE),
    BOOL("disable-thp", "yes", FIXED, PROCESS),

    /* ---- process ---- */
    INT("io-threads", 1, 128, "1", FIXED, THREADS),
    BOOL("io-threads-do-reads", "no", FIXED, THREADS),
    TEXT("server_cpulist", "", FIXED, PROCESS),
    TEXT("bio_cpulist", "", FIXED, PROCESS),
    BOOL("dynamic-hz", "yes", PROCESS),
    BOOL("always-show-logo", "no", FIXED, PROCESS),
    BOOL("set-proc-title", "yes", FIXED, PROCESS),
    TEXT("proc-title-template", "{title} {listen-addr} {server-mode}", PROCESS),
    BOOL("syslog-enabled", "no", FIXED, PROCESS),
    TEXT("syslog-ident", "redis", FIXED, PROCESS),
    ENUM("syslog-facility", facility_names, "local0", FIXED, PROCESS),
    BOOL("crash-log-enabled", "yes", PROCESS),
    BOOL("crash-memcheck-enabled", "yes", PROCESS),
    TEXT("ignore-warnings", "", PROCESS),
    WORDS("shutdown-on-sigint", 1, 16, "default", PROCESS, .read_word = read_stop_word,
          .check_text = check_stop_words),
    WORDS("shutdown-on-sigterm", 1, 16, "default", PROCESS, .read_word = read_stop_word,
          .check_text = check_stop_words),
    INT("shutdown-timeout", 0, INT_MAX, "10", PROCESS),
    TEXT("bind-source-addr", "", PROCESS),
    INT("socket-mark-id", 0, UINT_MAX, "0", FIXED, PROCESS),
};

const size_t directive_count = sizeof directive_table / sizeof directive_table[0];

_Static_assert(sizeof directive_table / sizeof directive_table[0] <= CONFIG_ROW_MAX,
               "struct config holds a value for each row");
