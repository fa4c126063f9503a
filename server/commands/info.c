/*
 * INFO's sections: Redis 7.2's fields in Redis's order, so that exporters and dashboards find
 * them. Figures of features that do not exist are 0. Our own fields are in the section "Vellum".
 *
 * Threads: the counters of other workers are read while they change (relaxed atomics). Every
 * figure is right for some moment of the call, but not all for the same moment.
 */
#include "server/commands/info.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "server/commands/memory_figures.h"
#include "server/config/config_directive.h"
#include "server/exec/tracking.h"
#include "server/exec/blocked.h"
#include "server/exec/pause.h"
#include "server/pubsub/keyspace_events.h"
#include "server/core/commandstats.h"
#include "server/core/latency.h"
#include "server/core/process.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/pubsub/pubsub.h"
#include "server/net/rdma.h"

#define LOAD(counter) ((unsigned long long)atomic_load_explicit(&(counter), memory_order_relaxed))
#define U(value) ((unsigned long long)(value))
#define SAMPLE_MS 900 /* the workers' timers ask for one each second */

/* Sums over all workers. */
#define SUM(server, field) sum_counters(server, offsetof(struct worker_counters, field))

static unsigned long long sum_counters(const struct server *server, size_t offset)
{
    unsigned long long sum = 0;
    for (uint32_t i = 0; i < server->worker_count; i++) {
        const char *counters = (const char *)&server->workers[i]->counters;
        sum += LOAD(*(const _Atomic uint64_t *)(counters + offset));
    }
    return sum;
}

static int64_t now_usec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* "1015.27K": Redis's format of sizes for humans. */
static const char *human(char text[32], uint64_t bytes)
{
    static const char units[] = "KMGTP";
    if (bytes < 1024) {
        snprintf(text, 32, "%lluB", U(bytes));
        return text;
    }
    double value = (double)bytes / 1024;
    int unit = 0;
    while (value >= 1024 && units[unit + 1] != '\0') {
        value /= 1024;
        unit++;
    }
    snprintf(text, 32, "%.2f%c", value, units[unit]);
    return text;
}

/* ---- server ---- */

static void write_listeners(FILE *to, struct server *server)
{
    char text[4096];
    int count = 0;
    long long port = (long long)config_number(&server->config, CONFIG_PORT);
    if (port != 0) {
        char *rest = NULL;
        config_text(&server->config, CONFIG_BIND, text, sizeof text);
        fprintf(to, "listener%d:name=tcp", count++);
        for (char *at = strtok_r(text, " ", &rest); at != NULL; at = strtok_r(NULL, " ", &rest))
            fprintf(to, ",bind=%s", at);
        fprintf(to, ",port=%lld\r\n", port);
    }
    if (config_text(&server->config, CONFIG_UNIXSOCKET, text, sizeof text) > 0)
        fprintf(to, "listener%d:name=unix,bind=%s\r\n", count, text);
}

static void write_server(FILE *to, struct server *server)
{
    struct utsname name = {.sysname = "", .release = "", .machine = ""};
    uname(&name);
    int64_t now = now_usec(), up = (now / 1000 - server->start_ms) / 1000;
    long long hz = (long long)config_number(&server->config, CONFIG_HZ);
    fprintf(to, "# Server\r\n");
    fprintf(to, "redis_version:%s\r\n", VELLUM_REDIS_VERSION);
    fprintf(to, "redis_git_sha1:00000000\r\nredis_git_dirty:0\r\nredis_build_id:0\r\n");
    fprintf(to, "redis_mode:standalone\r\n");
    fprintf(to, "os:%s %s %s\r\n", name.sysname, name.release, name.machine);
    fprintf(to, "arch_bits:%zu\r\n", sizeof(void *) * 8);
    fprintf(to, "monotonic_clock:POSIX clock_gettime\r\nmultiplexing_api:epoll\r\n");
    fprintf(to, "atomicvar_api:c11-builtin\r\n");
    fprintf(to, "gcc_version:%d.%d.%d\r\n", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
    fprintf(to, "process_id:%ld\r\n", (long)getpid());
    fprintf(to, "process_supervised:%s\r\n", process_supervised(&server->config));
    fprintf(to, "run_id:%s\r\n", server->run_id);
    fprintf(to, "tcp_port:%lld\r\n", (long long)config_number(&server->config, CONFIG_PORT));
    fprintf(to, "server_time_usec:%lld\r\n", (long long)now);
    fprintf(to, "uptime_in_seconds:%lld\r\n", (long long)up);
    fprintf(to, "uptime_in_days:%lld\r\n", (long long)(up / 86400));
    fprintf(to, "hz:%lld\r\nconfigured_hz:%lld\r\n", hz, hz);
    fprintf(to, "lru_clock:%lld\r\n", (long long)(now / 1000000) & 0xffffff);
    fprintf(to, "executable:%s\r\nconfig_file:%s\r\n", server->executable, server->config_file);
    fprintf(to, "io_threads_active:0\r\n");
    write_listeners(to, server);
}

/* ---- clients ---- */

static void write_clients(FILE *to, struct server *server)
{
    fprintf(to, "# Clients\r\n");
    fprintf(to, "connected_clients:%llu\r\n", LOAD(server->connected_clients));
    fprintf(to, "cluster_connections:0\r\n");
    fprintf(to, "maxclients:%lld\r\n",
            (long long)config_number(&server->config, CONFIG_MAXCLIENTS));
    fprintf(to, "client_recent_max_input_buffer:0\r\nclient_recent_max_output_buffer:0\r\n");
    fprintf(to, "blocked_clients:%llu\r\n",
            U(blocked_clients(server->blocked)) + LOAD(server->paused_clients));
    fprintf(to, "tracking_clients:%llu\r\n", U(tracking_clients(server->tracking)));
    fprintf(to, "clients_in_timeout_table:0\r\n");
    fprintf(to, "total_blocking_keys:%llu\r\n", U(blocked_keys(server->blocked)));
    fprintf(to, "total_blocking_keys_on_nokey:0\r\n");
}

/* ---- memory ---- */

static void write_size(FILE *to, const char *name, uint64_t bytes)
{
    char text[32];
    fprintf(to, "%s:%llu\r\n%s_human:%s\r\n", name, U(bytes), name, human(text, bytes));
}

static void write_used(FILE *to, const struct memory_figures *memory)
{
    write_size(to, "used_memory", memory->used);
    write_size(to, "used_memory_rss", memory->resident);
    write_size(to, "used_memory_peak", memory->peak);
    fprintf(to, "used_memory_peak_perc:%.2f%%\r\n", ratio_of(memory->used, memory->peak) * 100);
    fprintf(to, "used_memory_overhead:%llu\r\n", U(memory->used - memory->data));
    fprintf(to, "used_memory_startup:0\r\n");
    fprintf(to, "used_memory_dataset:%llu\r\n", U(memory->data));
    fprintf(to, "used_memory_dataset_perc:%.2f%%\r\n", ratio_of(memory->data, memory->used) * 100);
    fprintf(to, "allocator_allocated:%llu\r\n", U(memory->heap_in_use));
    fprintf(to, "allocator_active:%llu\r\n", U(memory->heap_size));
    fprintf(to, "allocator_resident:%llu\r\n", U(memory->heap_size));
}

/* The cache of clean pages is no overhead. */
static void write_fragmentation(FILE *to, const struct memory_figures *memory)
{
    uint64_t resident = memory->resident_besides;
    fprintf(to, "allocator_frag_ratio:%.2f\r\n", ratio_of(memory->heap_size, memory->heap_in_use));
    fprintf(to, "allocator_frag_bytes:%llu\r\n", U(memory->heap_size - memory->heap_in_use));
    fprintf(to, "allocator_rss_ratio:1.00\r\nallocator_rss_bytes:0\r\n");
    fprintf(to, "rss_overhead_ratio:%.2f\r\n", ratio_of(resident, memory->heap_size));
    fprintf(to, "rss_overhead_bytes:%lld\r\n", (long long)resident - (long long)memory->heap_size);
    fprintf(to, "mem_fragmentation_ratio:%.2f\r\n", ratio_of(resident, memory->used));
    fprintf(to, "mem_fragmentation_bytes:%lld\r\n", (long long)resident - (long long)memory->used);
    fprintf(to, "mem_not_counted_for_evict:0\r\nmem_replication_backlog:0\r\n");
    fprintf(to, "mem_total_replication_buffers:0\r\nmem_clients_slaves:0\r\n");
    fprintf(to, "mem_clients_normal:%llu\r\n", U(memory->clients));
    fprintf(to, "mem_cluster_links:0\r\nmem_aof_buffer:0\r\n");
    fprintf(to, "mem_allocator:libc\r\nactive_defrag_running:0\r\n");
    fprintf(to, "lazyfree_pending_objects:0\r\nlazyfreed_objects:0\r\n");
}

static void write_scripts(FILE *to, const struct memory_figures *memory)
{
    fprintf(to, "used_memory_vm_eval:%llu\r\n", U(memory->lua));
    write_size(to, "used_memory_lua", memory->lua);
    fprintf(to, "used_memory_scripts_eval:%llu\r\n", U(memory->script_texts));
    fprintf(to, "number_of_cached_scripts:%llu\r\n", U(memory->scripts));
    fprintf(to, "number_of_functions:%llu\r\n", U(memory->functions));
    fprintf(to, "number_of_libraries:%llu\r\n", U(memory->libraries));
    fprintf(to, "used_memory_vm_functions:0\r\n"); /* they share Lua's states with scripts */
    write_size(to, "used_memory_vm_total", memory->lua);
    fprintf(to, "used_memory_functions:%llu\r\n", U(memory->library_bytes));
    write_size(to, "used_memory_scripts", memory->script_texts + memory->library_bytes);
}

static void write_memory(FILE *to, struct server *server)
{
    struct memory_figures memory;
    memory_measure(server, &memory);
    fprintf(to, "# Memory\r\n");
    write_used(to, &memory);
    write_size(to, "total_system_memory", process_memory());
    write_scripts(to, &memory);
    write_size(to, "maxmemory", (uint64_t)config_number(&server->config, CONFIG_MAXMEMORY));
    char *policy = config_show(&server->config, CONFIG_MAXMEMORY_POLICY);
    fprintf(to, "maxmemory_policy:%s\r\n", policy != NULL ? policy : "");
    free(policy);
    write_fragmentation(to, &memory);
}

/* ---- persistence ---- */

static void write_persistence(FILE *to, struct server *server)
{
    const char *status = store_has_failed(server->store) ? "err" : "ok";
    struct store_stats stats;
    store_stats(server->store, &stats);
    fprintf(to, "# Persistence\r\n");
    fprintf(to, "loading:0\r\nasync_loading:0\r\n");
    fprintf(to, "current_cow_peak:0\r\ncurrent_cow_size:0\r\ncurrent_cow_size_age:0\r\n");
    fprintf(to, "current_fork_perc:0.00\r\n");
    fprintf(to, "current_save_keys_processed:0\r\ncurrent_save_keys_total:0\r\n");
    /* There are no explicit saves but the start. */
    fprintf(to, "rdb_changes_since_last_save:%llu\r\n",
            U(stats.commits - server->commits_at_start));
    fprintf(to, "rdb_bgsave_in_progress:0\r\n");
    fprintf(to, "rdb_last_save_time:%lld\r\n", (long long)(server->start_ms / 1000));
    fprintf(to, "rdb_last_bgsave_status:%s\r\n", status);
    fprintf(to, "rdb_last_bgsave_time_sec:-1\r\nrdb_current_bgsave_time_sec:-1\r\n");
    fprintf(to, "rdb_saves:0\r\nrdb_last_cow_size:0\r\n");
    fprintf(to, "rdb_last_load_keys_expired:0\r\nrdb_last_load_keys_loaded:0\r\n");
    fprintf(to, "aof_enabled:0\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\n");
    fprintf(to, "aof_last_rewrite_time_sec:-1\r\naof_current_rewrite_time_sec:-1\r\n");
    fprintf(to, "aof_last_bgrewrite_status:ok\r\naof_rewrites:0\r\n");
    fprintf(to, "aof_rewrites_consecutive_failures:0\r\n");
    fprintf(to, "aof_last_write_status:%s\r\naof_last_cow_size:0\r\n", status);
    fprintf(to, "module_fork_in_progress:0\r\nmodule_fork_last_cow_size:0\r\n");
}

/* ---- stats ---- */

static uint64_t thread_usec(const struct server *server)
{
    uint64_t usec = 0;
    for (uint32_t i = 0; i < server->worker_count; i++)
        usec += worker_busy_usec(server->workers[i]);
    return usec;
}

/* CPU time of the workers' threads since the last reset. */
static uint64_t loop_usec(const struct server *server)
{
    uint64_t usec = thread_usec(server), before = LOAD(server->loop_usec_before);
    return usec > before ? usec - before : 0;
}

void info_forget_loop_time(struct server *server)
{
    atomic_store_explicit(&server->loop_usec_before, thread_usec(server), memory_order_relaxed);
}

/* Summed over commands. Those that run others are left out, because their time includes the
 * others'. */
static uint64_t commands_usec(const struct server *server)
{
    const struct command_index *all = &server->commands;
    uint64_t nsec = 0;
    for (size_t row = 0; row < all->count; row++)
        for (uint32_t i = 0; i < server->worker_count; i++)
            if ((all->table[row].flags & CMD_NESTS) == 0)
                nsec += LOAD(server->workers[i]->command_counters[row].nsec);
    return nsec / 1000;
}

/* Each command that has run, those inside scripts and transactions too. */
static uint64_t commands_run(const struct server *server)
{
    uint64_t calls = 0;
    for (size_t row = 0; row < server->commands.count; row++)
        for (uint32_t i = 0; i < server->worker_count; i++)
            calls += LOAD(server->workers[i]->command_counters[row].calls);
    return calls;
}

void info_sample_rates(struct server *server)
{
    struct info_rates *rates = &server->rates;
    int64_t now = (int64_t)(commandstats_clock() / 1000000);
    int64_t before = atomic_load_explicit(&rates->taken_ms, memory_order_relaxed);
    if (now - before < SAMPLE_MS || !atomic_compare_exchange_strong(&rates->taken_ms, &before, now))
        return;
    const uint64_t totals[RATE_COUNT] = {
        [RATE_COMMANDS] = commands_run(server),    [RATE_INPUT] = SUM(server, input_bytes),
        [RATE_OUTPUT] = SUM(server, output_bytes), [RATE_CYCLES] = SUM(server, cycles),
        [RATE_BUSY_USEC] = loop_usec(server),
    };
    for (int i = 0; i < RATE_COUNT; i++) {
        uint64_t last =
            atomic_exchange_explicit(&rates->totals[i], totals[i], memory_order_relaxed);
        uint64_t grown = totals[i] > last ? totals[i] - last : 0; /* CONFIG RESETSTAT */
        atomic_store_explicit(&rates->per_second[i], grown * 1000 / (uint64_t)(now - before),
                              memory_order_relaxed);
    }
}

static void write_traffic(FILE *to, struct server *server)
{
    const struct info_rates *rates = &server->rates;
    info_sample_rates(server);
    fprintf(to, "total_connections_received:%llu\r\n", LOAD(server->total_connections));
    fprintf(to, "total_commands_processed:%llu\r\n", U(commands_run(server)));
    fprintf(to, "instantaneous_ops_per_sec:%llu\r\n", LOAD(rates->per_second[RATE_COMMANDS]));
    fprintf(to, "total_net_input_bytes:%llu\r\n", SUM(server, input_bytes));
    fprintf(to, "total_net_output_bytes:%llu\r\n", SUM(server, output_bytes));
    fprintf(to, "total_net_repl_input_bytes:0\r\ntotal_net_repl_output_bytes:0\r\n");
    fprintf(to, "instantaneous_input_kbps:%.2f\r\n",
            (double)LOAD(rates->per_second[RATE_INPUT]) / 1024);
    fprintf(to, "instantaneous_output_kbps:%.2f\r\n",
            (double)LOAD(rates->per_second[RATE_OUTPUT]) / 1024);
    fprintf(to, "instantaneous_input_repl_kbps:0.00\r\ninstantaneous_output_repl_kbps:0.00\r\n");
    fprintf(to, "rejected_connections:%llu\r\n", LOAD(server->rejected_connections));
    fprintf(to, "sync_full:0\r\nsync_partial_ok:0\r\nsync_partial_err:0\r\n");
}

/* The event loops of all workers. */
static void write_loops(FILE *to, struct server *server)
{
    const struct info_rates *rates = &server->rates;
    uint64_t cycles = LOAD(rates->per_second[RATE_CYCLES]);
    uint64_t busy = LOAD(rates->per_second[RATE_BUSY_USEC]);
    fprintf(to, "eventloop_cycles:%llu\r\n", SUM(server, cycles));
    fprintf(to, "eventloop_duration_sum:%llu\r\n", U(loop_usec(server)));
    fprintf(to, "eventloop_duration_cmd_sum:%llu\r\n", U(commands_usec(server)));
    fprintf(to, "instantaneous_eventloop_cycles_per_sec:%llu\r\n", U(cycles));
    fprintf(to, "instantaneous_eventloop_duration_usec:%llu\r\n",
            U(cycles > 0 ? busy / cycles : 0));
}

static void write_stats(FILE *to, struct server *server)
{
    struct store_stats stats;
    store_stats(server->store, &stats);
    fprintf(to, "# Stats\r\n");
    write_traffic(to, server);
    fprintf(to, "expired_keys:%llu\r\n", U(stats.expired_keys));
    fprintf(to, "expired_subkeys:%llu\r\n", U(stats.expired_parts));
    fprintf(to, "expired_stale_perc:0.00\r\nexpired_time_cap_reached_count:0\r\n");
    fprintf(to, "expire_cycle_cpu_milliseconds:0\r\nevicted_keys:%llu\r\n", U(stats.evicted_keys));
    fprintf(to, "evicted_clients:%llu\r\n", SUM(server, evicted_clients));
    fprintf(to, "total_eviction_exceeded_time:0\r\ncurrent_eviction_exceeded_time:0\r\n");
    fprintf(to, "keyspace_hits:%llu\r\n", SUM(server, keyspace_hits));
    fprintf(to, "keyspace_misses:%llu\r\n", SUM(server, keyspace_misses));
    const struct pubsub *pubsub = server->pubsub;
    fprintf(to, "pubsub_channels:%llu\r\n", U(pubsub_topics(pubsub, PUBSUB_CHANNEL)));
    fprintf(to, "pubsub_patterns:%llu\r\n", U(pubsub_topics(pubsub, PUBSUB_PATTERN)));
    fprintf(to, "pubsubshard_channels:%llu\r\n", U(pubsub_topics(pubsub, PUBSUB_SHARD)));
    fprintf(to, "client_query_buffer_limit_disconnections:%llu\r\n",
            SUM(server, query_buffer_closed));
    fprintf(to, "client_output_buffer_limit_disconnections:%llu\r\n",
            SUM(server, output_buffer_closed));
    fprintf(to, "dropped_notifications:%llu\r\n",
            U(keyspace_events_dropped(server->keyspace_events)));
    fprintf(to, "latest_fork_usec:0\r\ntotal_forks:0\r\nmigrate_cached_sockets:0\r\n");
    fprintf(to, "slave_expires_tracked_keys:0\r\n");
    fprintf(to, "active_defrag_hits:0\r\nactive_defrag_misses:0\r\n");
    fprintf(to, "active_defrag_key_hits:0\r\nactive_defrag_key_misses:0\r\n");
    fprintf(to, "total_active_defrag_time:0\r\ncurrent_active_defrag_time:0\r\n");
    fprintf(to, "tracking_total_keys:%llu\r\n", U(tracking_keys(server->tracking)));
    fprintf(to, "tracking_total_items:%llu\r\n", U(tracking_items(server->tracking)));
    fprintf(to, "tracking_total_prefixes:%llu\r\n", U(tracking_prefixes(server->tracking)));
    fprintf(to, "unexpected_error_replies:0\r\n");
    fprintf(to, "total_error_replies:%llu\r\n", SUM(server, error_replies));
    fprintf(to, "dump_payload_sanitizations:0\r\n");
    fprintf(to, "total_reads_processed:%llu\r\n", SUM(server, reads));
    fprintf(to, "total_writes_processed:%llu\r\n", SUM(server, writes));
    fprintf(to, "io_threaded_reads_processed:0\r\nio_threaded_writes_processed:0\r\n");
    fprintf(to, "reply_buffer_shrinks:0\r\nreply_buffer_expands:0\r\n");
    write_loops(to, server);
    fprintf(to, "acl_access_denied_auth:%llu\r\n", LOAD(server->denied_auths));
    fprintf(to, "acl_access_denied_cmd:0\r\n");
    fprintf(to, "acl_access_denied_key:0\r\nacl_access_denied_channel:0\r\n");
}

/* ---- replication, cpu, modules, cluster ---- */

static void write_replication(FILE *to, struct server *server)
{
    fprintf(to, "# Replication\r\n");
    fprintf(to, "role:master\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\n");
    fprintf(to, "master_replid:%s\r\nmaster_replid2:%040d\r\n", server->run_id, 0);
    fprintf(to, "master_repl_offset:0\r\nsecond_repl_offset:-1\r\n");
    fprintf(to, "repl_backlog_active:0\r\nrepl_backlog_size:1048576\r\n");
    fprintf(to, "repl_backlog_first_byte_offset:0\r\nrepl_backlog_histlen:0\r\n");
}

static void write_times(FILE *to, int who, const char *suffix)
{
    struct rusage usage;
    if (getrusage(who, &usage) != 0)
        memset(&usage, 0, sizeof usage);
    fprintf(to, "used_cpu_sys%s:%ld.%06ld\r\n", suffix, (long)usage.ru_stime.tv_sec,
            (long)usage.ru_stime.tv_usec);
    fprintf(to, "used_cpu_user%s:%ld.%06ld\r\n", suffix, (long)usage.ru_utime.tv_sec,
            (long)usage.ru_utime.tv_usec);
}

/* Redis's "main thread" is the worker that replies here. */
static void write_cpu(FILE *to, struct server *server)
{
    (void)server;
    fprintf(to, "# CPU\r\n");
    write_times(to, RUSAGE_SELF, "");
    write_times(to, RUSAGE_CHILDREN, "_children");
    write_times(to, RUSAGE_THREAD, "_main_thread");
}

static void write_modules(FILE *to, struct server *server)
{
    (void)server;
    fprintf(to, "# Modules\r\n");
}

static void write_cluster(FILE *to, struct server *server)
{
    (void)server;
    fprintf(to, "# Cluster\r\ncluster_enabled:0\r\n");
}

/* ---- commands ---- */

static void write_commandstats(FILE *to, struct server *server)
{
    const struct command_index *all = &server->commands;
    fprintf(to, "# Commandstats\r\n");
    for (size_t row = 0; row < all->count; row++) {
        unsigned long long calls = 0, nsec = 0, rejected = 0, failed = 0;
        for (uint32_t i = 0; i < server->worker_count; i++) {
            const struct command_counters *counters = &server->workers[i]->command_counters[row];
            calls += LOAD(counters->calls);
            nsec += LOAD(counters->nsec);
            rejected += LOAD(counters->rejected);
            failed += LOAD(counters->failed);
        }
        if (calls == 0 && rejected == 0 && failed == 0)
            continue;
        fprintf(to,
                "cmdstat_%s:calls=%llu,usec=%llu,usec_per_call=%.2f,rejected_calls=%llu,"
                "failed_calls=%llu\r\n",
                all->table[row].name, calls, nsec / 1000, ratio_of(nsec, calls) / 1000, rejected,
                failed);
    }
}

static void write_errorstats(FILE *to, struct server *server)
{
    struct errorstats sum = {.used = 0};
    for (uint32_t i = 0; i < server->worker_count; i++)
        errorstats_add(&sum, &server->workers[i]->errors);
    fprintf(to, "# Errorstats\r\n");
    for (uint32_t i = 0; i < sum.used; i++)
        if (sum.counts[i] > 0)
            fprintf(to, "errorstat_%s:count=%llu\r\n", sum.codes[i], LOAD(sum.counts[i]));
}

static void write_percentiles(FILE *to, const char *name, const struct times_sum *sum,
                              const char *percentiles)
{
    const char *separator = "";
    fprintf(to, "latency_percentiles_usec_%s:", name);
    while (*percentiles != '\0') {
        int len = (int)strcspn(percentiles, " ");
        fprintf(to, "%sp%.*s=%.3f", separator, len, percentiles,
                (double)times_percentile(sum, strtod(percentiles, NULL)) / 1000);
        separator = ",";
        percentiles += len + (percentiles[len] == ' ');
    }
    fprintf(to, "\r\n");
}

static void write_latencystats(FILE *to, struct server *server)
{
    const struct command_index *all = &server->commands;
    struct times_sum sum;
    char *percentiles = config_show(&server->config, CONFIG_LATENCY_TRACKING_INFO_PERCENTILES);
    bool is_on = config_number(&server->config, CONFIG_LATENCY_TRACKING) != 0;
    fprintf(to, "# Latencystats\r\n");
    for (size_t row = 0; is_on && percentiles != NULL && row < all->count; row++)
        if (command_times_sum(server, row, &sum))
            write_percentiles(to, all->table[row].name, &sum, percentiles);
    free(percentiles);
}

/* ---- keyspace and engine ---- */

static void write_database(FILE *to, uint32_t db, const struct store_db_stats *stats,
                           int64_t now_ms)
{
    int64_t ttl = stats->expires > 0 ? stats->mean_expiry_ms - now_ms : 0;
    if (stats->keys > 0)
        fprintf(to, "db%u:keys=%llu,expires=%llu,avg_ttl=%lld\r\n", db, U(stats->keys),
                U(stats->expires), ttl > 0 ? (long long)ttl : 0);
}

static void write_keyspace(FILE *to, struct server *server)
{
    int64_t now_ms = store_clock_ms(server->store);
    fprintf(to, "# Keyspace\r\n");
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++) {
        struct store_db_stats stats = store_db_stats(server->store, db);
        write_database(to, db, &stats, now_ms);
    }
}

static enum store_result write_keyspace_inside(FILE *to, struct store_txn *txn)
{
    fprintf(to, "# Keyspace\r\n");
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++) {
        struct store_db_stats stats;
        enum store_result result = store_txn_db_stats(txn, db, &stats);
        if (result != STORE_OK)
            return result;
        write_database(to, db, &stats, store_now(txn));
    }
    return STORE_OK;
}

static void write_engine_memory(FILE *to, const struct store_stats *stats)
{
    fprintf(to, "index_bytes:%llu\r\n", U(stats->index_bytes));
    fprintf(to, "frame_bytes:%llu\r\n", U(stats->frame_bytes));
    fprintf(to, "frame_limit_bytes:%llu\r\n", U(stats->frame_limit_bytes));
    fprintf(to, "dirty_bytes:%llu\r\n", U(stats->dirty_bytes));
    fprintf(to, "journal_buffer_bytes:%llu\r\n", U(stats->journal_buffer_bytes));
    fprintf(to, "store_bytes:%llu\r\n", U(stats->store_bytes));
    fprintf(to, "live_slots:%llu\r\n", U(stats->live_slots));
}

static void write_engine_work(FILE *to, const struct store_stats *stats)
{
    fprintf(to, "page_hits:%llu\r\n", U(stats->page_hits));
    fprintf(to, "page_misses:%llu\r\n", U(stats->page_misses));
    fprintf(to, "pages_read:%llu\r\n", U(stats->pages_read));
    fprintf(to, "pages_written:%llu\r\n", U(stats->pages_written));
    fprintf(to, "journal_bytes_written:%llu\r\n", U(stats->journal_bytes_written));
    fprintf(to, "journal_groups:%llu\r\n", U(stats->journal_groups));
    fprintf(to, "checkpoints:%llu\r\n", U(stats->checkpoints));
    fprintf(to, "reruns:%llu\r\n", U(stats->reruns));
    fprintf(to, "exclusive_runs:%llu\r\n", U(stats->exclusive_runs));
    fprintf(to, "throttled_commits:%llu\r\n", U(stats->throttled_commits));
    fprintf(to, "commits:%llu\r\n", U(stats->commits));
}

static void write_pause(FILE *to, struct server *server)
{
    static const char *const names[] = {
        [PAUSE_NOTHING] = "none", [PAUSE_WRITES] = "write", [PAUSE_ALL] = "all"};
    int64_t left_ms;
    enum pause_mode mode = pause_now(server, &left_ms);
    fprintf(to, "client_pause:%s\r\nclient_pause_ms:%lld\r\n", names[mode], (long long)left_ms);
}

static void write_engine(FILE *to, struct server *server)
{
    struct store_stats stats;
    char *sync = config_show(&server->config, CONFIG_APPENDFSYNC);
    store_stats(server->store, &stats);
    fprintf(to, "# Vellum\r\n");
    fprintf(to, "vellum_version:%s\r\n", VELLUM_VERSION);
    fprintf(to, "workers:%u\r\npartitions:%u\r\n", server->worker_count, stats.partition_count);
    fprintf(to, "appendfsync:%s\r\n", sync != NULL ? sync : "");
    free(sync);
    fprintf(to, "memory_bound:%llu\r\n",
            U(server_memory((uint64_t)config_number(&server->config, CONFIG_MAXMEMORY))));
    fprintf(to, "maxstore:%lld\r\n", (long long)config_number(&server->config, CONFIG_MAXSTORE));
    write_pause(to, server);
    fprintf(to, "spooled_input_bytes:%llu\r\n", LOAD(server->spooled_bytes));
    write_engine_memory(to, &stats);
    write_engine_work(to, &stats);
    fprintf(to, "segments_reclaimed:%llu\r\n", U(stats.segments_reclaimed));
    fprintf(to, "durable_commits:%llu\r\n", U(store_durable(server->store)));
    fprintf(to, "read_errors:%llu\r\n", U(stats.read_errors));
    fprintf(to, "write_errors:%llu\r\n", U(stats.write_errors));
    fprintf(to, "damaged_items:%llu\r\n", U(stats.damaged_items));
    fprintf(to, "recovered_items:%llu\r\n", U(stats.recovered_items));
    fprintf(to, "recovered_commits:%llu\r\n", U(stats.recovered_commits));
    fprintf(to, "recovery_ms:%llu\r\n", U(stats.recovery_ms));
    fprintf(to, "recovered_from:%s\r\n", stats.is_loaded ? "checkpoint" : "slabs");
    fprintf(to, "protocol_errors:%llu\r\n", SUM(server, protocol_errors));
    fprintf(to, "uploads:%llu\r\n", SUM(server, uploads));
    fprintf(to, "direct_io:%d\r\nfailed:%d\r\nfull:%d\r\nover_memory:%d\r\n", stats.direct_io,
            stats.failed, stats.full, stats.over_memory);
}

static void write_rdma(FILE *to, struct server *server)
{
    struct rdma_info info = {.port_count = 0};
    if (server->rdma != NULL)
        server->rdma_ops->info(server->rdma, NULL, &info);
    fprintf(to, "# RDMA\r\n");
    fprintf(to, "rdma_offered:%d\r\n", server->rdma != NULL);
    fprintf(to, "rdma_device:%s\r\n", info.chosen.device);
    fprintf(to, "rdma_port:%u\r\n", info.chosen.port);
    fprintf(to, "rdma_port_active:%d\r\n", info.chosen.is_active);
    fprintf(to, "rdma_devices:%u\r\n", info.port_count);
    for (uint32_t i = 0; i < info.port_count; i++)
        fprintf(to, "rdma_device%u:name=%s,port=%u,active=%d,channels=%llu\r\n", i,
                info.ports[i].device, info.ports[i].port, info.ports[i].is_active,
                U(info.ports[i].channels));
    fprintf(to, "rdma_channels:%llu\r\n", U(info.channels));
    fprintf(to, "rdma_max_channels:%llu\r\n", U(info.max_channels));
    fprintf(to, "rdma_pinned_bytes:%llu\r\n", U(info.pinned_bytes));
    fprintf(to, "rdma_max_pinned_bytes:%llu\r\n", U(info.max_pinned_bytes));
    fprintf(to, "rdma_channels_opened:%llu\r\n", U(info.opened));
    fprintf(to, "rdma_channels_refused:%llu\r\n", U(info.refused));
    fprintf(to, "rdma_channels_broken:%llu\r\n", U(info.broken));
    fprintf(to, "rdma_device_failures:%llu\r\n", U(info.failures));
    fprintf(to, "rdma_breaches:%llu\r\n", U(info.breaches));
    fprintf(to, "rdma_frames_in:%llu\r\n", U(info.frames_in));
    fprintf(to, "rdma_frames_out:%llu\r\n", U(info.frames_out));
    fprintf(to, "rdma_bytes_in:%llu\r\n", U(info.bytes_in));
    fprintf(to, "rdma_bytes_out:%llu\r\n", U(info.bytes_out));
    fprintf(to, "rdma_copied_bytes:%llu\r\n", U(info.copied_bytes));
    fprintf(to, "rdma_placed_bytes:%llu\r\n", U(info.placed_bytes));
    fprintf(to, "rdma_pulled_bytes:%llu\r\n", U(info.pulled_bytes));
    fprintf(to, "rdma_registered_bytes:%llu\r\n", U(info.registered_bytes));
    fprintf(to, "rdma_held_bytes:%llu\r\n", U(info.held_bytes));
    fprintf(to, "rdma_max_pinned_per_client:%llu\r\n", U(info.max_client_bytes));
}

const struct info_section info_sections[] = {
    {"server", write_server, true, NULL},
    {"clients", write_clients, true, NULL},
    {"memory", write_memory, true, NULL},
    {"persistence", write_persistence, true, NULL},
    {"stats", write_stats, true, NULL},
    {"replication", write_replication, true, NULL},
    {"cpu", write_cpu, true, NULL},
    {"modules", write_modules, true, NULL},
    {"commandstats", write_commandstats, false, NULL},
    {"errorstats", write_errorstats, true, NULL},
    {"latencystats", write_latencystats, false, NULL},
    {"cluster", write_cluster, true, NULL},
    {"keyspace", write_keyspace, true, write_keyspace_inside},
    {"vellum", write_engine, true, NULL},
    {"rdma", write_rdma, true, NULL},
};
const size_t info_section_count = sizeof info_sections / sizeof info_sections[0];
