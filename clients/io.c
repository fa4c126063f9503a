/*
 * Moves bytes to and from the server without waiting; the functions for the application's own event
 * loop.
 *
 * Invariant: the first `sent` bytes of hiredis's output buffer have been sent. They are at most
 * half of it when a function here returns, and none if all have been sent: then hiredis itself may
 * send.
 */
#include "clients/io.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <hiredis/sds.h>

#include "clients/get_into.h"

#define READ_BYTES (16 * 1024)

/* Converts the result of send() or recv(): bytes, 0 for none now, -1 for the end. */
static ssize_t outcome(ssize_t moved)
{
    if (moved > 0)
        return moved;
    return moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

static ssize_t write_bytes(struct vellum *vellum, void *bytes, size_t len, int flags)
{
    struct iovec vector = {.iov_base = bytes, .iov_len = len};
    if (vellum->channel != NULL)
        return vellum_channel_write(vellum->channel, &vector, 1);
    return outcome(send(vellum->tcp->fd, bytes, len, flags | MSG_NOSIGNAL));
}

static ssize_t read_bytes(struct vellum *vellum, void *bytes, size_t size)
{
    if (vellum->channel != NULL)
        return vellum_channel_read(vellum->channel, bytes, size);
    return outcome(recv(vellum->tcp->fd, bytes, size, MSG_DONTWAIT));
}

static const char *closed_text(const struct vellum *vellum)
{
    return vellum->channel != NULL ? VELLUM_CLOSED_TEXT : "the server has closed the connection";
}

/* Removes what has been sent, if no more than that is left: so in all no more bytes are moved than
 * sent, however little is sent at a time. (sdsrange() would move them too, but only up to 2 GB.) */
static void compact(struct vellum *vellum)
{
    sds output = vellum->tcp->obuf;
    size_t left = vellum_output_length(vellum);
    if (left > vellum->sent)
        return;
    memmove(output, output + vellum->sent, left);
    output[left] = '\0';
    sdssetlen(output, left);
    vellum->sent = 0;
}

/* Removes the beginning of the output, which has been sent. */
static void drop_output(struct vellum *vellum, size_t sent)
{
    struct vellum_splice *first = STAILQ_FIRST(&vellum->splices);
    assert(first == NULL || sent <= first->before); /* sending stops there */
    if (first != NULL) {
        first->before -= sent;
        vellum->spliced -= sent;
    }
    vellum->sent += sent;
    compact(vellum);
}

static bool is_due(const struct vellum *vellum, const struct vellum_splice *splice)
{
    return splice->kind == SPLICE_PULL ||
           (!vellum_into_is_granted(vellum) &&
            (splice->kind == SPLICE_HOLD || vellum_into_is_due(vellum)));
}

bool vellum_can_send(const struct vellum *vellum)
{
    const struct vellum_splice *first = STAILQ_FIRST(&vellum->splices);
    return vellum_has_output(vellum) &&
           (first == NULL || first->before > 0 || is_due(vellum, first));
}

/* Sends the first splice, which is at the beginning of the output. False: a reply must come
 * first, or there is no room now. */
static bool send_splice(struct vellum *vellum)
{
    struct vellum_splice *splice = STAILQ_FIRST(&vellum->splices);
    if (!is_due(vellum, splice) ||
        (splice->kind == SPLICE_PULL && !vellum_channel_pull(vellum->channel, &splice->span)) ||
        (splice->kind == SPLICE_INTO && !vellum_into_begin(vellum)))
        return false;
    STAILQ_REMOVE_HEAD(&vellum->splices, link);
    free(splice);
    return true;
}

static int send_output(struct vellum *vellum, int flags)
{
    while (vellum_has_output(vellum)) {
        const struct vellum_splice *first = STAILQ_FIRST(&vellum->splices);
        size_t len = first != NULL ? first->before : vellum_output_length(vellum);
        char *bytes = vellum->tcp->obuf + vellum->sent;
        ssize_t sent = len > 0 ? write_bytes(vellum, bytes, len, flags) : 0;
        if (sent < 0) {
            vellum_fail(vellum, closed_text(vellum));
            return REDIS_ERR;
        }
        drop_output(vellum, (size_t)sent);
        if ((size_t)sent < len || first == NULL || !send_splice(vellum))
            break;
    }
    return REDIS_OK;
}

int vellum_send_some(struct vellum *vellum)
{
    return send_output(vellum, MSG_DONTWAIT);
}

int vellum_send_some_waiting(struct vellum *vellum)
{
    size_t before = vellum_output_length(vellum);
    if (send_output(vellum, 0) != REDIS_OK)
        return REDIS_ERR;
    if (vellum_output_length(vellum) < before || errno == EINTR)
        return REDIS_OK;
    vellum_fail(vellum, "the server takes nothing more");
    return REDIS_ERR;
}

/* A socket that returned less than asked for has no more, so it is not read again. */
static bool may_have_more(const struct vellum *vellum, bool is_full)
{
    return vellum->channel != NULL ? vellum_channel_readable(vellum->channel) : is_full;
}

int vellum_receive_some(struct vellum *vellum)
{
    char bytes[READ_BYTES];
    ssize_t got;
    if (vellum_into_is_granted(vellum) && vellum_into_receive(vellum) != REDIS_OK)
        return REDIS_ERR;
    if (vellum_into_is_granted(vellum))
        return REDIS_OK;
    do {
        got = read_bytes(vellum, bytes, sizeof bytes);
        if (got > 0 && redisReaderFeed(vellum->tcp->reader, bytes, (size_t)got) != REDIS_OK) {
            vellum_fail(vellum, vellum->tcp->reader->errstr);
            return REDIS_ERR;
        }
    } while (got > 0 && may_have_more(vellum, got == (ssize_t)sizeof bytes));
    return got < 0 ? REDIS_ERR : REDIS_OK;
}

int vellum_parse(struct vellum *vellum, redisReply **reply)
{
    void *parsed = NULL;
    if (vellum->channel != NULL && vellum_channel_is_revoking(vellum->channel)) {
        *reply = NULL;
        return vellum_has_failed(vellum) ? REDIS_ERR : REDIS_OK;
    }
    if (redisReaderGetReply(vellum->tcp->reader, &parsed) != REDIS_OK)
        vellum_fail(vellum, vellum->tcp->reader->errstr);
    *reply = vellum_answered(vellum, parsed);
    return vellum_has_failed(vellum) ? REDIS_ERR : REDIS_OK;
}

/* ---- loops of the application's own ---- */

int vellum_try(struct vellum *vellum, redisReply **reply)
{
    *reply = NULL;
    if (vellum_has_failed(vellum) || vellum_parse(vellum, reply) != REDIS_OK)
        return REDIS_ERR;
    if (*reply != NULL)
        return REDIS_OK;
    if (vellum->has_slept && vellum->channel != NULL)
        vellum_channel_look(vellum->channel);
    vellum->has_slept = false;
    bool is_open = vellum_send_some(vellum) == REDIS_OK;
    is_open = vellum_receive_some(vellum) == REDIS_OK && is_open;
    if (vellum_parse(vellum, reply) == REDIS_OK && *reply == NULL && !is_open)
        vellum_fail(vellum, closed_text(vellum));
    return *reply != NULL || !vellum_has_failed(vellum) ? REDIS_OK : REDIS_ERR;
}

bool vellum_sleep(struct vellum *vellum, struct vellum_wait *wait)
{
    bool has_output = vellum_can_send(vellum);
    *wait = (struct vellum_wait){.descriptor = vellum->tcp->fd, .channel = -1};
    vellum->has_slept = true;
    if (vellum->channel == NULL) {
        wait->writes = has_output;
        return true;
    }
    wait->channel = vellum_channel_descriptor(vellum->channel);
    return vellum_channel_sleep(vellum->channel) && !vellum_channel_readable(vellum->channel) &&
           !(has_output && vellum_channel_writable(vellum->channel));
}
