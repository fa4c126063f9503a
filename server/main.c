/*
 * vellum-server: reads its configuration, opens the store, starts the workers, accepts connections
 * until it is stopped, and then undoes all that in the opposite order.
 */
#include "server/commands/commands.h"
#include "server/base/heap.h"
#include "server/core/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "server/exec/blocked.h"
#include "server/net/client_memory.h"
#include "server/loop/listener.h"
#include "server/commands/function_value.h"
#include "server/config/config_file.h"
#include "server/config/log.h"
#include "server/pubsub/keyspace_events.h"
#include "server/types/hash.h"
#include "server/core/process.h"
#include "server/pubsub/pubsub.h"
#include "server/script/script.h"
#include "server/core/latency.h"
#include "server/core/function_names.h"
#include "server/exec/slowlog.h"
#include "server/exec/long_run.h"
#include "server/exec/tracking.h"
#include "server/exec/watch.h"
#include "server/loop/rdma_loop.h"
#include "server/loop/worker_loop.h"

#define SCAN_THREADS_MOST 4

static void log_note(void *server, const char *text)
{
    log_line(&((struct server *)server)->log, CONFIG_LOG_WARNING, "%s", text);
}

static void log_of_store(void *server, enum store_log_level level, const char *line)
{
    static const enum config_loglevel levels[] = {
        [STORE_LOG_DEBUG] = CONFIG_LOG_DEBUG,
        [STORE_LOG_INFO] = CONFIG_LOG_VERBOSE,
        [STORE_LOG_NOTICE] = CONFIG_LOG_NOTICE,
        [STORE_LOG_WARNING] = CONFIG_LOG_WARNING,
    };
    log_line(&((struct server *)server)->log, levels[level], "%s", line);
}

/* ---- starting ---- */

static void make_run_id(struct server *server)
{
    unsigned char bytes[20];
    for (size_t have = 0; have < sizeof bytes;) {
        ssize_t got = getrandom(bytes + have, sizeof bytes - have, 0);
        if (got > 0)
            have += (size_t)got;
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(server->run_id + 2 * i, 3, "%02x", bytes[i]);
}

static void note_paths(struct server *server)
{
    ssize_t len = readlink("/proc/self/exe", server->executable, sizeof server->executable - 1);
    server->executable[len > 0 ? len : 0] = '\0';
    if (server->config.file != NULL)
        snprintf(server->config_file, sizeof server->config_file, "%s", server->config.file);
}

static void log_start(struct server *server)
{
    static const char *const policies[] = {"always", "everysec", "no"};
    struct config *config = &server->config;
    char directory[4096];
    config_text(config, CONFIG_DIR, directory, sizeof directory);
    const struct log *log = &server->log;
    log_line(log, CONFIG_LOG_NOTICE, "Vellum %s (Redis %s) starting, pid %d", VELLUM_VERSION,
             VELLUM_REDIS_VERSION, (int)getpid());
    if (server->config_file[0] == '\0')
        log_line(log, CONFIG_LOG_NOTICE, "No configuration file: using the defaults");
    else
        log_line(log, CONFIG_LOG_NOTICE, "Configuration file: %s", server->config_file);
    uint64_t memory = (uint64_t)config_number(config, CONFIG_MAXMEMORY);
    log_line(log, CONFIG_LOG_NOTICE,
             "Port %d, data directory %s, %u worker%s, appendfsync %s, maxmemory %llu MB%s",
             (int)config_number(config, CONFIG_PORT), directory, server->worker_count,
             server->worker_count == 1 ? "" : "s",
             policies[config_number(config, CONFIG_APPENDFSYNC)],
             (unsigned long long)((memory != 0 ? memory : process_memory() / 2) >> 20),
             memory != 0 ? "" : " (half of this machine's)");
}

/* At the start nothing else runs: all processors may be used. */
static uint32_t scan_threads(const struct server *server)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    long most = processors < SCAN_THREADS_MOST ? processors : SCAN_THREADS_MOST;
    return most > (long)server->worker_count ? (uint32_t)most : server->worker_count;
}

static bool open_store(struct server *server)
{
    struct config *config = &server->config;
    char directory[4096], message[STORE_MESSAGE_MAX] = "";
    config_text(config, CONFIG_DIR, directory, sizeof directory);
    struct store_options options = {
        .directory = directory,
        .partition_count = (uint32_t)config_number(config, CONFIG_PARTITIONS),
        .worker_count = server->worker_count,
        .scan_threads = scan_threads(server),
        .memory_bytes = server_memory((uint64_t)config_number(config, CONFIG_MAXMEMORY)),
        .process_bytes = server_process_bytes,
        .process_arg = server,
        .max_store_bytes = (uint64_t)config_number(config, CONFIG_MAXSTORE),
        .journal_bytes = (uint64_t)config_number(config, CONFIG_JOURNAL_SIZE),
        .ordered_keys =
            config_number(config, CONFIG_ORDERED_KEYS) != 0 ? STORE_ORDERED_YES : STORE_ORDERED_NO,
        .sync = (enum store_sync)config_number(config, CONFIG_APPENDFSYNC),
        .log = log_of_store,
        .log_arg = server,
    };
    if (store_open(&options, &server->store, message) != STORE_OK) {
        log_line(&server->log, CONFIG_LOG_WARNING, "Cannot open the store: %s", message);
        return false;
    }
    store_on_wake(server->store, hash_wake, server);
    server_set_policy(server);
    client_memory_set_bounds(server);
    struct store_stats stats;
    store_stats(server->store, &stats);
    server->commits_at_start = stats.commits;
    /* The directory's number counts, and how many clients fit depends on it. */
    atomic_store_explicit(&config->numbers[CONFIG_PARTITIONS], (int64_t)stats.partition_count,
                          memory_order_relaxed);
    log_line(&server->log, CONFIG_LOG_NOTICE,
             "Store open: %llu items, %llu commits recovered in %llu ms, %u partitions%s",
             (unsigned long long)stats.recovered_items, (unsigned long long)stats.recovered_commits,
             (unsigned long long)stats.recovery_ms, stats.partition_count,
             stats.direct_io ? "" : ", without O_DIRECT");
    return true;
}

static bool pages_around(void *store, const void *address, void **start, size_t *size)
{
    return store_hold_pages(store, address, start, size);
}

static void warn_of_rdma(void *log, const char *text)
{
    log_line(log, CONFIG_LOG_WARNING, "RDMA: %s", text);
}

/* Without RDMA the server serves all the same, unless it was asked for. */
static bool start_rdma(struct server *server)
{
    struct config *config = &server->config;
    _Static_assert(SERVER_PROBLEM_MAX >= RDMA_ERROR_MAX, "where the reason is kept");
    char device[RDMA_DEVICES_MAX * RDMA_NAME_MAX], *problem = server->rdma_problem;
    int64_t wanted = config_number(config, CONFIG_RDMA);
    config_text(config, CONFIG_RDMA_DEVICE, device, sizeof device);
    struct rdma_options options = {
        .device = device,
        .port = (int)config_number(config, CONFIG_RDMA_PORT),
        .gid_index = (int)config_number(config, CONFIG_RDMA_GID_INDEX),
        .max_channels = (uint32_t)config_number(config, CONFIG_RDMA_MAX_CHANNELS),
        .max_pinned_bytes = (uint64_t)config_number(config, CONFIG_RDMA_MAX_PINNED),
        .max_client_bytes = (uint32_t)config_number(config, CONFIG_RDMA_MAX_PINNED_PER_CLIENT),
        .pages_around = pages_around,
        .pages_arg = server->store,
        .warn = warn_of_rdma,
        .warn_arg = &server->log,
    };
#ifdef VELLUM_RDMA
    server->rdma_ops = &rdma_verbs_ops;
#endif
    if (wanted == CONFIG_RDMA_NO)
        snprintf(problem, RDMA_ERROR_MAX, "it is turned off (rdma no)");
    else if (server->rdma_ops == NULL)
        snprintf(problem, RDMA_ERROR_MAX, "this server was built without it");
    else
        server->rdma = server->rdma_ops->start(&options, problem);
    if (server->rdma != NULL)
        log_line(&server->log, CONFIG_LOG_NOTICE, "RDMA channels are offered");
    else if (wanted == CONFIG_RDMA_YES)
        log_line(&server->log, CONFIG_LOG_WARNING, "rdma yes, but RDMA is unavailable: %s",
                 problem);
    else
        log_line(&server->log,
                 wanted == CONFIG_RDMA_NO || server->rdma_ops == NULL ? CONFIG_LOG_VERBOSE
                                                                      : CONFIG_LOG_NOTICE,
                 "No RDMA: %s", problem);
    return server->rdma != NULL || wanted != CONFIG_RDMA_YES;
}

/* The last messages of its helper thread refer to channels: they are visited while these exist. */
static void stop_rdma(struct server *server, uint32_t workers)
{
    if (server->rdma != NULL)
        server->rdma_ops->halt(server->rdma);
    for (uint32_t i = 0; i < workers; i++) {
        worker_visit_rest(server->workers[i]);
        rdma_loop_free(server->workers[i]);
    }
    if (server->rdma != NULL)
        server->rdma_ops->stop(server->rdma);
    server->rdma = NULL;
}

static void end_workers(struct server *server, uint32_t started, uint32_t made)
{
    for (uint32_t i = 0; i < started; i++)
        worker_wake(server->workers[i]);
    for (uint32_t i = 0; i < started; i++)
        worker_join(server->workers[i]);
    stop_rdma(server, made);
    for (uint32_t i = 0; i < made; i++)
        worker_free(server->workers[i]);
}

/* On failure, no worker is left running. */
static bool start_workers(struct server *server)
{
    if (!start_rdma(server))
        return false;
    char message[STORE_MESSAGE_MAX] = "";
    uint32_t made = 0, started = 0;
    while (made < server->worker_count && worker_make(server, made, message))
        made++;
    atomic_store(&server->workers_busy, server->worker_count);
    if (made == server->worker_count) {
        function_value_show_stored(server, server->workers[0]);
        snprintf(message, sizeof message, "cannot start a thread");
        while (started < made && worker_start(server->workers[started]))
            started++;
    }
    if (started == server->worker_count)
        return true;
    log_line(&server->log, CONFIG_LOG_WARNING, "Cannot start the workers: %s", message);
    atomic_store(&server->workers_busy, 0);
    end_workers(server, started, made);
    return false;
}

static void log_ready(struct server *server)
{
    char path[256];
    if (config_number(&server->config, CONFIG_PORT) != 0)
        log_line(&server->log, CONFIG_LOG_NOTICE, "Ready to accept connections tcp");
    if (config_text(&server->config, CONFIG_UNIXSOCKET, path, sizeof path) > 0)
        log_line(&server->log, CONFIG_LOG_NOTICE, "Ready to accept connections unix");
}

/* ---- running ---- */

static bool serve(struct server *server, struct listener *listener)
{
    if (!start_workers(server))
        return false;
    bool is_open = listener_admit(listener);
    if (is_open) {
        log_ready(server);
        process_tell_ready(server);
        listener_run(listener);
    } else {
        server_stop(server);
    }
    process_tell_stopping(server);
    log_line(&server->log, CONFIG_LOG_NOTICE, "Shutting down: waiting for commands in flight");
    end_workers(server, server->worker_count, server->worker_count);
    return is_open;
}

static void leave_nothing(struct server *server)
{
    listener_remove_name(server->listener);
}

/* A stop does not wait for the end of recovery, which may be interrupted as by a kill at any time:
 * the thread that waits for signals then ends the process. False: failed. */
static bool open_unless_stopped(struct server *server, bool *is_open)
{
    server->leave_nothing = leave_nothing;
    atomic_store(&server->is_opening, true);
    bool is_wanted = !atomic_load(&server->stopping);
    *is_open = is_wanted && open_store(server);
    while (!atomic_exchange(&server->is_opening, false))
        pause();
    return *is_open || !is_wanted;
}

static bool serve_store(struct server *server, struct listener *listener)
{
    bool is_open, is_well = open_unless_stopped(server, &is_open);
    if (!is_open)
        return is_well;
    process_write_pidfile(server);
    server->watches = watch_registry_new(server->store);
    server->tracking = tracking_new(server, long_run_in_store);
    server->keyspace_events = keyspace_events_new(server);
    server->blocked = blocked_new(server->store);
    is_well = process_raise_descriptors(server) && server->watches != NULL &&
              server->tracking != NULL && server->keyspace_events != NULL &&
              server->blocked != NULL &&
              (atomic_load(&server->stopping) || serve(server, listener));
    blocked_free(server->blocked);
    keyspace_events_free(server->keyspace_events);
    tracking_free(server->tracking);
    watch_registry_free(server->watches);
    log_line(&server->log, CONFIG_LOG_NOTICE, "Closing the store");
    if (store_close(server->store) != STORE_OK) {
        log_line(&server->log, CONFIG_LOG_WARNING,
                 "Writing to the store has failed: unacknowledged writes may be lost");
        is_well = false;
    }
    process_remove_pidfile(server);
    return is_well;
}

static void adjust_oom_score(struct server *server)
{
    char values[64];
    config_text(&server->config, CONFIG_OOM_SCORE_ADJ_VALUES, values, sizeof values);
    (void)process_adjust_oom_score(server, config_number(&server->config, CONFIG_OOM_SCORE_ADJ),
                                   values); /* the server works without it, too */
}

static bool run_server(struct server *server)
{
    log_start(server);
    adjust_oom_score(server);
    const char *problem = command_index_build(&server->commands, command_table,
                                              server->config.renames, server->config.rename_count);
    if (problem != NULL) {
        log_line(&server->log, CONFIG_LOG_WARNING, "rename-command: %s", problem);
        return false;
    }
    if (!process_raise_descriptors(server))
        return false;
    struct listener *listener = listener_open(server);
    if (listener == NULL)
        return false;
    server->listener = listener;
    bool is_well = serve_store(server, listener);
    listener_free(listener);
    return is_well;
}

/* The log is open: from here on everything is logged there. */
static bool run_process(struct server *server)
{
    pthread_t signals;
    config_each_note(&server->config, log_note, server);
    server->worker_count = (uint32_t)config_number(&server->config, CONFIG_WORKERS);
    server->workers = calloc(server->worker_count, sizeof *server->workers);
    server->pubsub = pubsub_new(server->worker_count);
    server->scripts = scripts_new();
    server->slowlog = slowlog_new();
    server->latency = latency_new();
    server->readonly_names = readonly_names_new();
    server->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->workers == NULL || server->pubsub == NULL || server->scripts == NULL ||
        server->slowlog == NULL || server->latency == NULL || server->readonly_names == NULL ||
        server->stop_fd < 0 || !process_catch_signals(server, &signals)) {
        log_line(&server->log, CONFIG_LOG_WARNING, "Cannot start: %s", strerror(errno));
        return false;
    }
    slowlog_follow(server);
    bool is_well = run_server(server);
    log_line(&server->log, CONFIG_LOG_NOTICE, "Vellum has ended%s, bye",
             is_well ? "" : " after a failure");
    process_release_signals(signals);
    close(server->stop_fd);
    readonly_names_free(server->readonly_names);
    latency_free(server->latency);
    slowlog_free(server->slowlog);
    scripts_free(server->scripts);
    pubsub_free(server->pubsub);
    free(server->workers);
    return is_well;
}

static bool start(struct server *server)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    server->start_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    tzset();
    make_run_id(server);
    note_paths(server);
    log_init(&server->log, &server->config);
    if (!log_file_usable(&server->log)) {
        fprintf(stderr, "Can't open the log file %s: %s\n", server->log.file, strerror(errno));
        return false;
    }
    if (process_is_daemon(&server->config) && !process_daemonize()) {
        fprintf(stderr, "Cannot become a daemon: %s\n", strerror(errno));
        return false;
    }
    return run_process(server);
}

int main(int argc, char *argv[])
{
    heap_tune();
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL || !config_init(&server->config)) {
        fprintf(stderr, "Out of memory\n");
        free(server);
        return EXIT_FAILURE;
    }
    int status = EXIT_FAILURE;
    switch (config_read(&server->config, argc, argv, stdout, stderr)) {
    case CONFIG_START:
        if (config_enter_dir(&server->config, stderr) && start(server))
            status = EXIT_SUCCESS;
        break;
    case CONFIG_EXIT_SUCCESS:
        status = EXIT_SUCCESS;
        break;
    case CONFIG_EXIT_FAILURE:
        break;
    }
    config_free(&server->config);
    free(server);
    return status;
}
