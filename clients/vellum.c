/*
 * hiredis formats commands into its context's output buffer and parses replies with its reader; by
 * a channel only the bytes in between go another way.
 */
#include "vellum.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <time.h>

#include <hiredis/sds.h>

#include "upgrade.h"
#include "vellum_private.h"

/* ---- connecting ---- */

static redisContext *dial(const struct vellum_options *options)
{
    struct timeval limit = {.tv_sec = options->timeout_ms / 1000,
                            .tv_usec = options->timeout_ms % 1000 * 1000};
    const char *host = options->host != NULL ? options->host : "127.0.0.1";
    int port = options->port != 0 ? options->port : 6379;
    redisContext *tcp;
    if (options->path != NULL && options->timeout_ms > 0)
        tcp = redisConnectUnixWithTimeout(options->path, limit);
    else if (options->path != NULL)
        tcp = redisConnectUnix(options->path);
    else if (options->timeout_ms > 0)
        tcp = redisConnectWithTimeout(host, port, limit);
    else
        tcp = redisConnect(host, port);
    if (tcp != NULL && tcp->err == 0 && options->timeout_ms > 0)
        redisSetTimeout(tcp, limit);
    return tcp;
}

static void log_in(struct vellum *vellum, const struct vellum_options *options)
{
    if (options->password == NULL)
        return;
    redisReply *reply =
        options->user != NULL
            ? redisCommand(vellum->tcp, "AUTH %s %s", options->user, options->password)
            : redisCommand(vellum->tcp, "AUTH %s", options->password);
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
        vellum_fail(vellum, reply->str);
    if (reply != NULL)
        freeReplyObject(reply);
}

static void upgrade(struct vellum *vellum, const struct vellum_options *options)
{
    struct client_channel_options wanted = {
        .device = options->device,
        .spin_us = options->spin_us != 0 ? options->spin_us : VELLUM_USUAL_SPIN_US};
    if (options->rdma == VELLUM_RDMA_NEVER) {
        snprintf(vellum->reason, sizeof vellum->reason, "it was not asked for");
        return;
    }
    vellum->channel = client_upgrade(vellum->tcp, &wanted, vellum->reason);
    if (vellum->channel != NULL) {
        vellum->transport = "rdma";
        vellum->reason[0] = '\0';
    } else if (options->rdma == VELLUM_RDMA_ONLY) {
        vellum_fail(vellum, vellum->reason);
    }
}

struct vellum *vellum_connect(const struct vellum_options *options)
{
    struct vellum *vellum = calloc(1, sizeof *vellum);
    if (vellum == NULL)
        return NULL;
    vellum->transport = options->path != NULL ? "unix" : "tcp";
    vellum->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : -1;
    vellum->tcp = dial(options);
    if (!vellum_has_failed(vellum))
        log_in(vellum, options);
    if (!vellum_has_failed(vellum))
        upgrade(vellum, options);
    return vellum;
}

void vellum_free(struct vellum *vellum)
{
    if (vellum == NULL)
        return;
    if (vellum->tcp != NULL)
        redisFree(vellum->tcp);
    client_channel_free(vellum->channel);
    free(vellum);
}

const char *vellum_error(const struct vellum *vellum)
{
    return vellum->error[0] != '\0' ? vellum->error : NULL;
}

const char *vellum_transport(const struct vellum *vellum)
{
    return vellum->transport;
}

const char *vellum_reason(const struct vellum *vellum)
{
    return vellum->reason;
}

/* ---- by the channel ---- */

static long long clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for either direction to move. */
static int wait_until(struct vellum *vellum, long long limit_ms)
{
    int left = -1;
    if (limit_ms >= 0) {
        long long remaining = limit_ms - clock_ms();
        if (remaining <= 0) {
            vellum_fail(vellum, "the time for the reply is over");
            return REDIS_ERR;
        }
        left = (int)remaining;
    }
    client_channel_wait(vellum->channel, left);
    return REDIS_OK;
}

static long long time_limit(const struct vellum *vellum)
{
    return vellum->timeout_ms >= 0 ? clock_ms() + vellum->timeout_ms : -1;
}

/* There is no need to wait. */
static bool can_move(const struct vellum *vellum)
{
    return client_channel_readable(vellum->channel) ||
           (sdslen(vellum->tcp->obuf) > 0 && client_channel_writable(vellum->channel));
}

/* Sends and receives in turns: a server whose replies nobody takes stops taking commands. */
static int get_from_channel(struct vellum *vellum, redisReply **reply)
{
    long long limit_ms = time_limit(vellum);
    if (vellum_parse(vellum, reply) != REDIS_OK)
        return REDIS_ERR;
    while (*reply == NULL) {
        int moved = vellum_receive_some(vellum);
        if (vellum_parse(vellum, reply) != REDIS_OK || *reply != NULL)
            break;
        if (moved != REDIS_OK)
            vellum_fail(vellum, VELLUM_CLOSED_TEXT);
        else if (vellum_send_some(vellum) == REDIS_OK && !can_move(vellum))
            wait_until(vellum, limit_ms);
        if (vellum_has_failed(vellum))
            return REDIS_ERR;
    }
    return vellum_has_failed(vellum) ? REDIS_ERR : REDIS_OK;
}

static int flush_channel(struct vellum *vellum)
{
    long long limit_ms = time_limit(vellum);
    while (sdslen(vellum->tcp->obuf) > 0) {
        if (vellum_receive_some(vellum) != REDIS_OK)
            vellum_fail(vellum, VELLUM_CLOSED_TEXT);
        if (vellum_has_failed(vellum) || vellum_send_some(vellum) != REDIS_OK)
            return REDIS_ERR;
        if (sdslen(vellum->tcp->obuf) > 0 && !can_move(vellum) &&
            wait_until(vellum, limit_ms) != REDIS_OK)
            return REDIS_ERR;
    }
    return REDIS_OK;
}

/* ---- values by reference ---- */

struct vellum_memory {
    char *bytes;
    size_t size;
    struct ibv_mr *mr; /* NULL: by TCP */
};

struct vellum_memory *vellum_register(struct vellum *vellum, void *bytes, size_t size)
{
    struct vellum_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        return NULL;
    memory->bytes = bytes;
    memory->size = size;
    if (vellum->channel == NULL)
        return memory;
    memory->mr = client_channel_register(vellum->channel, bytes, size);
    if (memory->mr != NULL)
        return memory;
    vellum_fail(vellum, "the memory cannot be registered");
    free(memory);
    return NULL;
}

void vellum_unregister(struct vellum_memory *memory)
{
    if (memory->mr != NULL)
        ibv_dereg_mr(memory->mr);
    free(memory);
}

/* The reference takes its place in the stream when there is room for it. */
static int pull(struct vellum *vellum, const struct rdma_reference *reference)
{
    long long limit_ms = time_limit(vellum);
    while (!client_channel_pull(vellum->channel, reference)) {
        if (vellum_receive_some(vellum) != REDIS_OK)
            vellum_fail(vellum, VELLUM_CLOSED_TEXT);
        if (vellum_has_failed(vellum) ||
            (!client_channel_writable(vellum->channel) && wait_until(vellum, limit_ms) != REDIS_OK))
            return REDIS_ERR;
    }
    return REDIS_OK;
}

static int set_by_reference(struct vellum *vellum, const char *key, size_t key_length,
                            const struct rdma_reference *reference)
{
    char head[64], tail[32];
    int head_length = snprintf(head, sizeof head, "*3\r\n$3\r\nSET\r\n$%zu\r\n", key_length);
    int tail_length =
        snprintf(tail, sizeof tail, "\r\n$%llu\r\n", (unsigned long long)reference->length);
    if (redisAppendFormattedCommand(vellum->tcp, head, (size_t)head_length) != REDIS_OK ||
        redisAppendFormattedCommand(vellum->tcp, key, key_length) != REDIS_OK ||
        redisAppendFormattedCommand(vellum->tcp, tail, (size_t)tail_length) != REDIS_OK ||
        flush_channel(vellum) != REDIS_OK || pull(vellum, reference) != REDIS_OK ||
        redisAppendFormattedCommand(vellum->tcp, "\r\n", 2) != REDIS_OK)
        return REDIS_ERR;
    return REDIS_OK;
}

redisReply *vellum_set_from(struct vellum *vellum, const char *key, size_t key_length,
                            const struct vellum_memory *memory, size_t offset, size_t length)
{
    if (vellum_has_failed(vellum))
        return NULL;
    if (offset > memory->size || length > memory->size - offset) {
        vellum_fail(vellum, "the value lies outside of the registered memory");
        return NULL;
    }
    if (memory->mr == NULL || length == 0)
        return vellum_command(vellum, "SET %b %b", key, key_length, memory->bytes + offset, length);
    struct rdma_reference reference = {
        .address = (uintptr_t)memory->bytes + offset, .length = length, .rkey = memory->mr->rkey};
    redisReply *reply = NULL;
    if (set_by_reference(vellum, key, key_length, &reference) != REDIS_OK ||
        vellum_get_reply(vellum, &reply) != REDIS_OK)
        return NULL;
    return reply;
}

/* ---- commands ---- */

static int result(struct vellum *vellum, int of_hiredis)
{
    return vellum_has_failed(vellum) ? REDIS_ERR : of_hiredis;
}

int vellum_vappend(struct vellum *vellum, const char *format, va_list arguments)
{
    if (vellum_has_failed(vellum))
        return REDIS_ERR;
    return result(vellum, redisvAppendCommand(vellum->tcp, format, arguments));
}

int vellum_append(struct vellum *vellum, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int appended = vellum_vappend(vellum, format, arguments);
    va_end(arguments);
    return appended;
}

int vellum_append_argv(struct vellum *vellum, int argc, const char **argv, const size_t *lengths)
{
    if (vellum_has_failed(vellum))
        return REDIS_ERR;
    return result(vellum, redisAppendCommandArgv(vellum->tcp, argc, argv, lengths));
}

int vellum_append_formatted(struct vellum *vellum, const char *bytes, size_t length)
{
    if (vellum_has_failed(vellum))
        return REDIS_ERR;
    return result(vellum, redisAppendFormattedCommand(vellum->tcp, bytes, length));
}

int vellum_get_reply(struct vellum *vellum, redisReply **reply)
{
    void *got = NULL;
    if (vellum_has_failed(vellum))
        return REDIS_ERR;
    if (vellum->channel != NULL)
        return get_from_channel(vellum, reply);
    int status = result(vellum, redisGetReply(vellum->tcp, &got));
    *reply = got;
    return status;
}

int vellum_flush(struct vellum *vellum)
{
    int done = 0;
    if (vellum_has_failed(vellum))
        return REDIS_ERR;
    if (vellum->channel != NULL)
        return flush_channel(vellum);
    while (done == 0 && redisBufferWrite(vellum->tcp, &done) == REDIS_OK) {
    }
    return result(vellum, REDIS_OK);
}

static redisReply *reply_of(struct vellum *vellum, int appended)
{
    redisReply *reply = NULL;
    if (appended != REDIS_OK || vellum_get_reply(vellum, &reply) != REDIS_OK)
        return NULL;
    return reply;
}

redisReply *vellum_vcommand(struct vellum *vellum, const char *format, va_list arguments)
{
    return reply_of(vellum, vellum_vappend(vellum, format, arguments));
}

redisReply *vellum_command(struct vellum *vellum, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = vellum_vcommand(vellum, format, arguments);
    va_end(arguments);
    return reply;
}

redisReply *vellum_command_argv(struct vellum *vellum, int argc, const char **argv,
                                const size_t *lengths)
{
    return reply_of(vellum, vellum_append_argv(vellum, argc, argv, lengths));
}
