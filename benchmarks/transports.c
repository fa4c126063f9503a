/*
 * Commands of one kind and size by one transport: each of some clients has a pipeline under way, or
 * sends when it is time (--rate), or does nothing (--command none).
 *
 * Prints one line of name=value: operations per second, percentiles of a pipeline's latency (from
 * when it was due), the server's processor time per operation (spinning included, as the process is
 * told), the time that soft interrupts took of the server's core (--core) per operation, the bytes
 * the server copied between commands and frames, and those it has pinned per client. Exit code 1 on
 * any error.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clients/vellum.h"
#include "benchmarks/histogram.h"
#include "benchmarks/keys.h"

#define CLIENTS_MAX 256
#define CORES_MAX 1024
#define WARM_UP 200             /* pipelines that are not counted */
#define WARM_UP_BYTES (8 << 20) /* or fewer, of long values */

/* By reference: get-into, set-from. */
enum command { GET, SET, GET_INTO, SET_FROM, NONE, COMMANDS };
static const char *const command_names[COMMANDS] = {"get", "set", "get-into", "set-from", "none"};

struct client {
    struct vellum *vellum;
    struct vellum_memory *memory; /* of a value's size */
    char *bytes;
    char *commands; /* a pipeline of them, as they are sent */
    size_t commands_len;
    redisReply *got; /* by reference there is no pipeline: what came at once */
    int64_t sent_ns;
};

struct options {
    struct vellum_options connection;
    const char *transport;
    enum command command;
    int clients, pipeline, size, rate, core;
    double seconds;
};

static void give_up(const char *text)
{
    fprintf(stderr, "bench-transports: %s\n", text);
    exit(EXIT_FAILURE);
}

/* Once, as redis-benchmark does. */
static void form_pipeline(const struct options *options, struct client *client)
{
    char *one = NULL;
    size_t size = (size_t)options->size;
    int len = options->command == GET ? redisFormatCommand(&one, "GET bench:value")
              : options->command == SET
                  ? redisFormatCommand(&one, "SET bench:value %b", client->bytes, size)
                  : 0;
    if (len == 0)
        return;
    client->commands_len = (size_t)len * (size_t)options->pipeline;
    client->commands = len > 0 ? malloc(client->commands_len) : NULL;
    if (client->commands == NULL)
        give_up("out of memory");
    for (int i = 0; i < options->pipeline; i++)
        memcpy(client->commands + (size_t)i * (size_t)len, one, (size_t)len);
    redisFreeCommand(one);
}

static void dial(const struct options *options, struct client *client)
{
    struct vellum *vellum = vellum_connect(&options->connection);
    if (vellum == NULL || vellum_error(vellum) != NULL)
        give_up(vellum != NULL ? vellum_error(vellum) : "out of memory");
    *client = (struct client){.vellum = vellum, .bytes = calloc(1, (size_t)options->size)};
    if (client->bytes == NULL)
        give_up("out of memory");
    memset(client->bytes, 'x', (size_t)options->size);
    form_pipeline(options, client);
    if (options->command == GET_INTO || options->command == SET_FROM)
        client->memory = vellum_register(vellum, client->bytes, (size_t)options->size);
}

static void hang_up(struct client *client)
{
    vellum_unregister(client->memory);
    vellum_free(client->vellum);
    free(client->commands);
    free(client->bytes);
}

static redisReply *take(struct vellum *vellum)
{
    redisReply *reply = NULL;
    if (vellum_get_reply(vellum, &reply) != REDIS_OK)
        give_up(vellum_error(vellum));
    if (reply->type == REDIS_REPLY_ERROR)
        give_up(reply->str);
    return reply;
}

/* ---- the server's figures ---- */

struct figures {
    double cpu_s, softirq_s, copied_bytes, pinned_bytes;
};

/* The number that `format` reads from /proc/NAME/FILE; 0 if there is none. */
static double number_in(const char *name, const char *file, const char *format)
{
    char path[300];
    double value = 0;
    snprintf(path, sizeof path, "/proc/%s/%s", name, file);
    FILE *stream = fopen(path, "r");
    if (stream != NULL && fscanf(stream, format, &value) != 1)
        value = 0;
    if (stream != NULL)
        fclose(stream);
    return value;
}

/* The time of the core's thread for soft interrupts that were put off, which is no other's. */
static double softirq_thread_s(int core)
{
    char wanted[32], path[300], name[32];
    double spent_ns = 0;
    snprintf(wanted, sizeof wanted, "ksoftirqd/%d", core);
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes != NULL && (entry = readdir(processes)) != NULL;) {
        snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        FILE *comm = fopen(path, "r");
        if (comm != NULL && fscanf(comm, "%31s", name) == 1 && strcmp(name, wanted) == 0)
            spent_ns = number_in(entry->d_name, "schedstat", "%lf");
        if (comm != NULL)
            fclose(comm);
    }
    if (processes != NULL)
        closedir(processes);
    return spent_ns / 1e9;
}

/* What soft interrupts took of the core while it ran, or could have run, something else: by the
 * kernel's ticks, so only sums over many of them mean something. */
static double softirq_s(int core)
{
    char line[300], wanted[16];
    double ticks = 0;
    size_t len = (size_t)snprintf(wanted, sizeof wanted, "cpu%d ", core);
    FILE *stat = fopen("/proc/stat", "r");
    while (stat != NULL && fgets(line, sizeof line, stat) != NULL)
        if (strncmp(line, wanted, len) == 0)
            sscanf(line + len, "%*f %*f %*f %*f %*f %*f %lf", &ticks);
    if (stat != NULL)
        fclose(stat);
    return ticks / (double)sysconf(_SC_CLK_TCK) - softirq_thread_s(core);
}

static double figure(const char *info, const char *name)
{
    char line[64];
    int length = snprintf(line, sizeof line, "\n%s:", name);
    const char *at = strstr(info, line);
    return at != NULL ? atof(at + length) : 0;
}

static struct figures figures_of(const struct options *options, struct vellum *vellum)
{
    vellum_append(vellum, "INFO cpu rdma");
    redisReply *reply = take(vellum);
    struct figures figures = {.cpu_s = figure(reply->str, "used_cpu_sys") +
                                       figure(reply->str, "used_cpu_user"),
                              .softirq_s = softirq_s(options->core),
                              .pinned_bytes = figure(reply->str, "rdma_pinned_bytes"),
                              .copied_bytes = figure(reply->str, "rdma_copied_bytes")};
    freeReplyObject(reply);
    return figures;
}

/* ---- the loop ---- */

static void send_pipeline(const struct options *options, struct client *client)
{
    size_t size = (size_t)options->size;
    if (client->commands != NULL)
        vellum_append_formatted(client->vellum, client->commands, client->commands_len);
    for (int i = 0; options->command == SET_FROM && i < options->pipeline; i++)
        vellum_append_set_from(client->vellum, "bench:value", 11, client->memory, 0, size);
    if (options->command == GET_INTO)
        client->got = vellum_get_into(client->vellum, "bench:value", 11, client->memory, 0, size);
    else
        vellum_flush(client->vellum);
    if (vellum_error(client->vellum) != NULL)
        give_up(vellum_error(client->vellum));
}

static void check(const struct options *options, redisReply *reply)
{
    if (options->command == GET &&
        (reply->type != REDIS_REPLY_STRING || reply->len != (size_t)options->size))
        give_up("a reply of another length");
    if (options->command == GET_INTO && reply->integer != options->size)
        give_up("a value of another length");
    freeReplyObject(reply);
}

static void take_pipeline(const struct options *options, struct client *client)
{
    if (options->command == GET_INTO)
        check(options, client->got);
    for (int i = 0; options->command != GET_INTO && i < options->pipeline; i++)
        check(options, take(client->vellum));
}

static uint64_t run(const struct options *options, struct client *clients, double seconds,
                    struct histogram *histogram)
{
    uint64_t count = 0;
    int64_t now_ns = bench_now_ns(), end_ns = now_ns + (int64_t)(seconds * 1e9);
    for (int i = 0; i < options->clients; i++) {
        clients[i].sent_ns = now_ns;
        send_pipeline(options, &clients[i]);
    }
    while (now_ns < end_ns) {
        for (int i = 0; i < options->clients; i++) {
            take_pipeline(options, &clients[i]);
            now_ns = bench_now_ns();
            histogram_add(histogram, (uint64_t)(now_ns - clients[i].sent_ns), 1);
            clients[i].sent_ns = now_ns;
            send_pipeline(options, &clients[i]);
            count += (uint64_t)options->pipeline;
        }
    }
    for (int i = 0; i < options->clients; i++)
        take_pipeline(options, &clients[i]);
    return count + (uint64_t)options->clients * (uint64_t)options->pipeline;
}

static void sleep_until(int64_t due_ns)
{
    struct timespec due = {.tv_sec = (time_t)(due_ns / 1000000000),
                           .tv_nsec = (long)(due_ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) {
    }
}

/* One client after the other, at times that do not depend on the answers. */
static uint64_t run_at_rate(const struct options *options, struct client *clients, double seconds,
                            struct histogram *histogram)
{
    uint64_t count = 0;
    int64_t due_ns = bench_now_ns(), end_ns = due_ns + (int64_t)(seconds * 1e9);
    for (; due_ns < end_ns; due_ns += 1000000000 / options->rate) {
        struct client *client = &clients[count % (unsigned)options->clients];
        sleep_until(due_ns);
        send_pipeline(options, client);
        take_pipeline(options, client);
        histogram_add(histogram, (uint64_t)(bench_now_ns() - due_ns), 1);
        count += (uint64_t)options->pipeline;
    }
    return count;
}

static void prepare(const struct options *options, struct client *client)
{
    vellum_append(client->vellum, "SET bench:value %b", client->bytes, (size_t)options->size);
    freeReplyObject(take(client->vellum));
    int most = WARM_UP_BYTES / options->size / options->pipeline + 1;
    for (int i = 0; options->command != NONE && i < WARM_UP && i < most; i++) {
        send_pipeline(options, client);
        take_pipeline(options, client);
    }
}

/* The connection that asks for the server's figures is not one of the measured clients. */
static void measure(const struct options *options)
{
    static struct histogram histogram;
    struct client clients[CLIENTS_MAX], watcher;
    struct options beside = *options;
    beside.connection.rdma = VELLUM_RDMA_NEVER;
    beside.command = NONE;
    dial(&beside, &watcher);
    for (int i = 0; i < options->clients; i++)
        dial(options, &clients[i]);
    prepare(options, &clients[0]);
    if (options->command == NONE) /* until no worker spins any more */
        sleep_until(bench_now_ns() + 1000000000);
    struct figures before = figures_of(options, watcher.vellum);
    int64_t began_ns = bench_now_ns();
    uint64_t count = 0;
    if (options->command == NONE)
        sleep_until(began_ns + (int64_t)(options->seconds * 1e9));
    else
        count =
            (options->rate > 0 ? run_at_rate : run)(options, clients, options->seconds, &histogram);
    double elapsed_s = (double)(bench_now_ns() - began_ns) / 1e9;
    struct figures after = figures_of(options, watcher.vellum);
    double per = count > 0 ? 1 / (double)count : 0;
    printf("transport=%s clients=%d pipeline=%d size=%d ops_s=%.0f ",
           vellum_transport(clients[0].vellum), options->clients, options->pipeline, options->size,
           (double)count / elapsed_s);
    histogram_print(&histogram);
    printf(" server_cpu_us=%.2f softirq_us=%.2f copied_bytes=%.1f server_cpu_percent=%.3f "
           "pinned_bytes=%.0f\n",
           (after.cpu_s - before.cpu_s) * 1e6 * per,
           (after.softirq_s - before.softirq_s) * 1e6 * per,
           (after.copied_bytes - before.copied_bytes) * per,
           (after.cpu_s - before.cpu_s) * 100 / elapsed_s, after.pinned_bytes / options->clients);
    for (int i = 0; i < options->clients; i++)
        hang_up(&clients[i]);
    hang_up(&watcher);
}

static int number(const char *text, int min, int max)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < min || value > max)
        give_up("a number out of its range");
    return (int)value;
}

static enum command command_named(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(command_names[i], name) == 0)
            return (enum command)i;
    give_up("an unknown command");
    return NONE;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"transport", required_argument, NULL, 't'}, {"host", required_argument, NULL, 'h'},
        {"port", required_argument, NULL, 'p'},      {"clients", required_argument, NULL, 'c'},
        {"pipeline", required_argument, NULL, 'P'},  {"size", required_argument, NULL, 'd'},
        {"seconds", required_argument, NULL, 's'},   {"spin", required_argument, NULL, 'u'},
        {"command", required_argument, NULL, 'C'},   {"rate", required_argument, NULL, 'r'},
        {"core", required_argument, NULL, 'k'},      {NULL, 0, NULL, 0}};
    struct options options = {.transport = "tcp",
                              .clients = 1,
                              .pipeline = 1,
                              .size = 64,
                              .seconds = 1,
                              .connection = {.timeout_ms = 30000}};
    int name;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (name) {
        case 't':
            options.transport = optarg;
            break;
        case 'h':
            options.connection.host = optarg;
            break;
        case 'p':
            options.connection.port = number(optarg, 1, 65535);
            break;
        case 'c':
            options.clients = number(optarg, 1, CLIENTS_MAX);
            break;
        case 'P':
            options.pipeline = number(optarg, 1, 10000);
            break;
        case 'd':
            options.size = number(optarg, 1, 64 << 20);
            break;
        case 's':
            options.seconds = atof(optarg);
            break;
        case 'C':
            options.command = command_named(optarg);
            break;
        case 'r':
            options.rate = number(optarg, 1, 1000000);
            break;
        case 'k':
            options.core = number(optarg, 0, CORES_MAX - 1);
            break;
        case 'u':
            options.connection.spin_us = (unsigned)number(optarg, 1, 1000000);
            break;
        default:
            give_up("an unknown option");
        }
    }
    bool is_rdma = strncmp(options.transport, "rdma", 4) == 0;
    if (strcmp(options.transport, "rdma-write") == 0)
        options.connection.mode = VELLUM_RDMA_WRITE;
    if (options.command == GET_INTO)
        options.pipeline = 1;
    options.connection.rdma = is_rdma ? VELLUM_RDMA_ONLY : VELLUM_RDMA_NEVER;
    measure(&options);
}
