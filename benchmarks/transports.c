/*
 * GETs of one size by one transport, closed loop: each of some clients has a pipeline under way.
 *
 * Prints one line of name=value: operations per second, percentiles of a pipeline's latency, the
 * server's processor time per operation (spinning included, as the process is told) and the bytes
 * it copied between commands and frames. Exit code 1 on any error.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../clients/vellum.h"
#include "histogram.h"

#define CLIENTS_MAX 256
#define WARM_UP 200 /* pipelines that are not counted */

struct options {
    struct vellum_options connection;
    const char *transport;
    int clients, pipeline, size;
    double seconds;
};

static void give_up(const char *text)
{
    fprintf(stderr, "bench-transports: %s\n", text);
    exit(EXIT_FAILURE);
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct vellum *dial(const struct options *options)
{
    struct vellum *vellum = vellum_connect(&options->connection);
    if (vellum == NULL || vellum_error(vellum) != NULL)
        give_up(vellum != NULL ? vellum_error(vellum) : "out of memory");
    return vellum;
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
    double cpu_s, copied_bytes;
};

static double figure(const char *info, const char *name)
{
    const char *at = strstr(info, name);
    return at != NULL ? atof(at + strlen(name) + 1) : 0;
}

static struct figures figures_of(struct vellum *vellum)
{
    vellum_append(vellum, "INFO everything");
    redisReply *reply = take(vellum);
    struct figures figures = {.cpu_s = figure(reply->str, "used_cpu_sys") +
                                       figure(reply->str, "used_cpu_user"),
                              .copied_bytes = figure(reply->str, "rdma_copied_bytes")};
    freeReplyObject(reply);
    return figures;
}

/* ---- the loop ---- */

static void send_pipeline(const struct options *options, struct vellum *vellum)
{
    for (int i = 0; i < options->pipeline; i++)
        vellum_append(vellum, "GET bench:value");
    if (vellum_flush(vellum) != REDIS_OK)
        give_up(vellum_error(vellum));
}

static void take_pipeline(const struct options *options, struct vellum *vellum)
{
    for (int i = 0; i < options->pipeline; i++) {
        redisReply *reply = take(vellum);
        if (reply->type != REDIS_REPLY_STRING || reply->len != (size_t)options->size)
            give_up("a reply of another length");
        freeReplyObject(reply);
    }
}

static uint64_t run(const struct options *options, struct vellum **clients, double seconds,
                    struct histogram *histogram)
{
    uint64_t sent_ns[CLIENTS_MAX], count = 0;
    uint64_t end_ns = clock_ns() + (uint64_t)(seconds * 1e9);
    for (int i = 0; i < options->clients; i++) {
        sent_ns[i] = clock_ns();
        send_pipeline(options, clients[i]);
    }
    while (clock_ns() < end_ns) {
        for (int i = 0; i < options->clients; i++) {
            take_pipeline(options, clients[i]);
            uint64_t now_ns = clock_ns();
            histogram_add(histogram, now_ns - sent_ns[i], 1);
            sent_ns[i] = now_ns;
            send_pipeline(options, clients[i]);
            count += (uint64_t)options->pipeline;
        }
    }
    for (int i = 0; i < options->clients; i++)
        take_pipeline(options, clients[i]);
    return count;
}

static void prepare(const struct options *options, struct vellum *vellum)
{
    char *value = calloc(1, (size_t)options->size + 1);
    if (value == NULL)
        give_up("out of memory");
    memset(value, 'x', (size_t)options->size);
    vellum_append(vellum, "SET bench:value %b", value, (size_t)options->size);
    freeReplyObject(take(vellum));
    free(value);
    for (int i = 0; i < WARM_UP; i++) {
        send_pipeline(options, vellum);
        take_pipeline(options, vellum);
    }
}

static void measure(const struct options *options)
{
    static struct histogram histogram;
    struct vellum *clients[CLIENTS_MAX];
    for (int i = 0; i < options->clients; i++)
        clients[i] = dial(options);
    prepare(options, clients[0]);
    struct figures before = figures_of(clients[0]);
    uint64_t began_ns = clock_ns();
    uint64_t count = run(options, clients, options->seconds, &histogram);
    double elapsed_s = (double)(clock_ns() - began_ns) / 1e9;
    struct figures after = figures_of(clients[0]);
    printf("transport=%s clients=%d pipeline=%d size=%d ops_s=%.0f ", vellum_transport(clients[0]),
           options->clients, options->pipeline, options->size, (double)count / elapsed_s);
    histogram_print(&histogram);
    printf(" server_cpu_us=%.2f copied_bytes=%.1f\n",
           (after.cpu_s - before.cpu_s) * 1e6 / (double)count,
           (after.copied_bytes - before.copied_bytes) / (double)count);
    for (int i = 0; i < options->clients; i++)
        vellum_free(clients[i]);
}

static int number(const char *text, int max)
{
    int value = atoi(text);
    if (value < 1 || value > max)
        give_up("a number out of its range");
    return value;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"transport", required_argument, NULL, 't'},
                                          {"host", required_argument, NULL, 'h'},
                                          {"port", required_argument, NULL, 'p'},
                                          {"clients", required_argument, NULL, 'c'},
                                          {"pipeline", required_argument, NULL, 'P'},
                                          {"size", required_argument, NULL, 'd'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"spin", required_argument, NULL, 'u'},
                                          {NULL, 0, NULL, 0}};
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
            options.connection.port = number(optarg, 65535);
            break;
        case 'c':
            options.clients = number(optarg, CLIENTS_MAX);
            break;
        case 'P':
            options.pipeline = number(optarg, 10000);
            break;
        case 'd':
            options.size = number(optarg, 64 << 20);
            break;
        case 's':
            options.seconds = atof(optarg);
            break;
        case 'u':
            options.connection.spin_us = (unsigned)number(optarg, 1000000);
            break;
        default:
            give_up("an unknown option");
        }
    }
    bool is_rdma = strcmp(options.transport, "rdma") == 0;
    options.connection.rdma = is_rdma ? VELLUM_RDMA_ONLY : VELLUM_RDMA_NEVER;
    measure(&options);
}
