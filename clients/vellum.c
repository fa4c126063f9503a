/*
 * hiredis formats commands into its context's output buffer and parses replies with its reader;
 * with a channel only the transport of the bytes is different.
 */
#include "clients/vellum.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clients/get_into.h"
#include "clients/io.h"

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

/* Waits for the channel, until the timeout that began with the first wait, at which *limit_ms is
 * 0. A reply that is there already costs no look at the clock. */
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

/* Whether it can continue without waiting. */
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
    if (!vellum_command_fits(argc, argv, lengths)) {
        vellum_fail(vellum, "a command cannot be longer than 2 GB");
        return REDIS_ERR;
    }
    vellum->appended++;
    return result(vellum, redisAppendCommandArgv(vellum->tcp, argc, argv, lengths));
}

/* Returns the position after the line at `at`; *number is the number after its first byte. */
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

/* Waits for the reply to the command appended last; `appended` is the result of that. NULL:
 * failed. */
static redisReply *reply_to(struct vellum *vellum, int appended)
{
    redisReply *reply = NULL;
    if (appended != REDIS_OK || vellum_get_reply(vellum, &reply) != REDIS_OK)
        return NULL;
    return reply;
}

redisReply *vellum_vcommand(struct vellum *vellum, const char *format, va_list arguments)
{
    return reply_to(vellum, vellum_vappend(vellum, format, arguments));
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
    return reply_to(vellum, vellum_append_argv(vellum, argc, argv, lengths));
}

redisReply *vellum_set_from(struct vellum *vellum, const char *key, size_t key_length,
                            const struct vellum_memory *memory, size_t offset, size_t length)
{
    return reply_to(vellum,
                    vellum_append_set_from(vellum, key, key_length, memory, offset, length));
}

redisReply *vellum_get_into(struct vellum *vellum, const char *key, size_t key_length,
                            const struct vellum_memory *memory, size_t offset, size_t size)
{
    return reply_to(vellum, vellum_append_get_into(vellum, key, key_length, memory, offset, size));
}
