/*
 * hiredis formats commands into its context's output buffer and parses replies with its reader; by
 * a channel only the bytes in between go another way.
 */
#include "clients/vellum.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <time.h>

#include "clients/upgrade.h"
#include "clients/vellum_private.h"

/* ---- connecting ---- */

static char *copy_of(const char *text, bool *has_failed)
{
    char *copy = text != NULL ? strdup(text) : NULL;
    *has_failed = *has_failed || (text != NULL && copy == NULL);
    return copy;
}

struct vellum *vellum_new(const struct vellum_options *options)
{
    struct vellum *vellum = calloc(1, sizeof *vellum);
    bool has_failed = false;
    if (vellum == NULL)
        return NULL;
    vellum->options = *options;
    vellum->options.host =
        copy_of(options->host != NULL ? options->host : "127.0.0.1", &has_failed);
    vellum->options.path = copy_of(options->path, &has_failed);
    vellum->options.user = copy_of(options->user, &has_failed);
    vellum->options.password = copy_of(options->password, &has_failed);
    vellum->options.device = copy_of(options->device, &has_failed);
    if (options->port == 0)
        vellum->options.port = 6379;
    if (options->spin_us == 0)
        vellum->options.spin_us = VELLUM_USUAL_SPIN_US;
    vellum->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : -1;
    vellum->transport = options->path != NULL ? "unix" : "tcp";
    vellum->splices_end = &vellum->splices;
    vellum->intos_end = &vellum->intos;
    if (!has_failed)
        return vellum;
    vellum_free(vellum);
    return NULL;
}

static redisContext *dial(const struct vellum_options *options)
{
    struct timeval limit = {.tv_sec = options->timeout_ms / 1000,
                            .tv_usec = options->timeout_ms % 1000 * 1000};
    redisContext *tcp;
    if (options->path != NULL && options->timeout_ms > 0)
        tcp = redisConnectUnixWithTimeout(options->path, limit);
    else if (options->path != NULL)
        tcp = redisConnectUnix(options->path);
    else if (options->timeout_ms > 0)
        tcp = redisConnectWithTimeout(options->host, options->port, limit);
    else
        tcp = redisConnect(options->host, options->port);
    if (tcp != NULL && tcp->err == 0 && options->timeout_ms > 0)
        redisSetTimeout(tcp, limit);
    if (tcp != NULL && tcp->err == 0 && options->path == NULL)
        redisEnableKeepAlive(tcp); /* an idle channel does not notice a dead peer */
    return tcp;
}

static void log_in(struct vellum *vellum)
{
    const struct vellum_options *options = &vellum->options;
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

struct vellum_channel_options vellum_channel_options(const struct vellum *vellum)
{
    return (struct vellum_channel_options){
        .device = vellum->options.device,
        .mode = vellum->options.mode == VELLUM_RDMA_WRITE ? RDMA_MODE_WRITE : RDMA_MODE_SEND,
        .spin_us = vellum->options.spin_us};
}

/* NULL: there is none, for the reason in `reason`. */
void vellum_take_channel(struct vellum *vellum, struct vellum_channel *channel)
{
    vellum->channel = channel;
    if (channel != NULL) {
        vellum->transport = "rdma";
        vellum->reason[0] = '\0';
        vellum_pin_all(vellum);
    } else if (vellum->options.rdma == VELLUM_RDMA_ONLY) {
        vellum_fail(vellum, vellum->reason);
    }
}

static void upgrade(struct vellum *vellum)
{
    struct vellum_channel_options wanted = vellum_channel_options(vellum);
    if (vellum->options.rdma == VELLUM_RDMA_NEVER)
        snprintf(vellum->reason, sizeof vellum->reason, "it was not asked for");
    else
        vellum_take_channel(vellum, vellum_upgrade(vellum->tcp, &wanted, vellum->reason));
}

static void connect_now(struct vellum *vellum)
{
    vellum->transport = vellum->options.path != NULL ? "unix" : "tcp";
    vellum->tcp = dial(&vellum->options);
    if (!vellum_has_failed(vellum))
        log_in(vellum);
    if (!vellum_has_failed(vellum))
        upgrade(vellum);
}

struct vellum *vellum_connect(const struct vellum_options *options)
{
    struct vellum *vellum = vellum_new(options);
    if (vellum != NULL)
        connect_now(vellum);
    return vellum;
}

void vellum_close(struct vellum *vellum)
{
    for (struct vellum_splice *next, *splice = vellum->splices; splice != NULL; splice = next) {
        next = splice->next;
        free(splice);
    }
    vellum->splices = NULL;
    vellum->splices_end = &vellum->splices;
    vellum->spliced = 0;
    vellum->appended = vellum->answered = 0;
    vellum_into_forget(vellum);
    if (vellum->channel != NULL)
        vellum_channel_stop(vellum->channel);
    vellum_unpin_all(vellum);
    if (vellum->tcp != NULL)
        redisFree(vellum->tcp);
    vellum_channel_free(vellum->channel);
    vellum->tcp = NULL;
    vellum->channel = NULL;
    vellum->has_slept = false;
    vellum->error[0] = vellum->reason[0] = '\0';
}

int vellum_reconnect(struct vellum *vellum)
{
    vellum_close(vellum);
    connect_now(vellum);
    return vellum_has_failed(vellum) ? REDIS_ERR : REDIS_OK;
}

void vellum_free(struct vellum *vellum)
{
    if (vellum == NULL)
        return;
    vellum_close(vellum);
    free((char *)vellum->options.host);
    free((char *)vellum->options.path);
    free((char *)vellum->options.user);
    free((char *)vellum->options.password);
    free((char *)vellum->options.device);
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

const char *vellum_revoking(const struct vellum *vellum)
{
    return vellum->channel == NULL                       ? ""
           : vellum_channel_has_windows(vellum->channel) ? "reply"
                                                         : "unregister";
}

/* ---- by the channel ---- */

static long long clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for the channel to move, within the time that began with the first wait: `limit_ms` is 0
 * then. What need not wait does not look at the clock. */
static int wait_until(struct vellum *vellum, long long *limit_ms)
{
    long long left = -1;
    if (vellum->timeout_ms >= 0) {
        long long now_ms = clock_ms();
        if (*limit_ms == 0)
            *limit_ms = now_ms + vellum->timeout_ms;
        left = *limit_ms - now_ms;
        if (left <= 0) {
            vellum_fail(vellum, "the time for the reply is over");
            return REDIS_ERR;
        }
    }
    vellum_channel_wait(vellum->channel, (int)left);
    return REDIS_OK;
}

/* Nothing to wait for. */
static bool can_move(const struct vellum *vellum)
{
    return vellum_channel_readable(vellum->channel) ||
           (vellum_can_send(vellum) && vellum_channel_writable(vellum->channel));
}

/* Sends and receives alternately: a server stops reading commands while its replies are not read.
 */
static int get_from_channel(struct vellum *vellum, redisReply **reply)
{
    long long limit_ms = 0;
    if (vellum_parse(vellum, reply) != REDIS_OK)
        return REDIS_ERR;
    while (*reply == NULL) {
        int moved = vellum_receive_some(vellum);
        if (vellum_parse(vellum, reply) != REDIS_OK || *reply != NULL)
            break;
        if (moved != REDIS_OK)
            vellum_fail(vellum, VELLUM_CLOSED_TEXT);
        else if (vellum_send_some(vellum) == REDIS_OK && !can_move(vellum))
            wait_until(vellum, &limit_ms);
        if (vellum_has_failed(vellum))
            return REDIS_ERR;
    }
    return vellum_has_failed(vellum) ? REDIS_ERR : REDIS_OK;
}

static int flush_channel(struct vellum *vellum)
{
    long long limit_ms = 0;
    while (vellum_can_send(vellum)) {
        if (vellum_send_some(vellum) != REDIS_OK)
            return REDIS_ERR;
        if (!vellum_can_send(vellum))
            break;
        if (vellum_receive_some(vellum) != REDIS_OK)
            vellum_fail(vellum, VELLUM_CLOSED_TEXT);
        if (vellum_has_failed(vellum) ||
            (!can_move(vellum) && wait_until(vellum, &limit_ms) != REDIS_OK))
            return REDIS_ERR;
    }
    return REDIS_OK;
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
    vellum->appended++;
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
    vellum->appended++;
    return result(vellum, redisAppendCommandArgv(vellum->tcp, argc, argv, lengths));
}

/* The line at `at`, behind its end; the number behind its first byte. */
static size_t skip_line(const char *bytes, size_t length, size_t at, size_t *number)
{
    *number = 0;
    for (at++; at < length && bytes[at] != '\n'; at++)
        if (bytes[at] >= '0' && bytes[at] <= '9' && *number <= length)
            *number = *number * 10 + (size_t)(bytes[at] - '0');
    return at + 1;
}

static uint64_t count_commands(const char *bytes, size_t length)
{
    uint64_t count = 0;
    for (size_t at = 0; at < length; count++) {
        size_t words = 0, bulk;
        bool is_array = bytes[at] == '*';
        at = skip_line(bytes, length, at, &words);
        for (; is_array && words > 0 && at < length; words--) {
            at = skip_line(bytes, length, at, &bulk);
            at += bulk + 2;
        }
    }
    return count;
}

int vellum_append_formatted(struct vellum *vellum, const char *bytes, size_t length)
{
    vellum->appended += count_commands(bytes, length);
    return vellum_append_bytes(vellum, bytes, length);
}

int vellum_append_bytes(struct vellum *vellum, const char *bytes, size_t length)
{
    if (vellum_has_failed(vellum))
        return REDIS_ERR;
    return result(vellum, redisAppendFormattedCommand(vellum->tcp, bytes, length));
}

/* hiredis's write would raise SIGPIPE if the server is gone. */
static int flush_socket(struct vellum *vellum)
{
    while (vellum_has_output(vellum))
        if (vellum_send_some_waiting(vellum) != REDIS_OK)
            return REDIS_ERR;
    return REDIS_OK;
}

static int get_from_socket(struct vellum *vellum, redisReply **reply)
{
    void *got = NULL;
    if (vellum_parse(vellum, reply) != REDIS_OK || *reply != NULL)
        return result(vellum, REDIS_OK);
    if (flush_socket(vellum) != REDIS_OK)
        return REDIS_ERR;
    int status = redisGetReply(vellum->tcp, &got);
    *reply = vellum_answered(vellum, got);
    return result(vellum, status);
}

int vellum_get_reply(struct vellum *vellum, redisReply **reply)
{
    if (vellum_has_failed(vellum))
        return REDIS_ERR;
    return vellum->channel != NULL ? get_from_channel(vellum, reply)
                                   : get_from_socket(vellum, reply);
}

int vellum_flush(struct vellum *vellum)
{
    if (vellum_has_failed(vellum))
        return REDIS_ERR;
    return vellum->channel != NULL ? flush_channel(vellum) : flush_socket(vellum);
}

redisReply *vellum_reply_to(struct vellum *vellum, int appended)
{
    redisReply *reply = NULL;
    if (appended != REDIS_OK || vellum_get_reply(vellum, &reply) != REDIS_OK)
        return NULL;
    return reply;
}

redisReply *vellum_vcommand(struct vellum *vellum, const char *format, va_list arguments)
{
    return vellum_reply_to(vellum, vellum_vappend(vellum, format, arguments));
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
    return vellum_reply_to(vellum, vellum_append_argv(vellum, argc, argv, lengths));
}
