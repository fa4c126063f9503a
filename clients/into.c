/*
 * GET into the application's own memory. By a channel the reply is parsed here, since parts of it
 * do not come as bytes: they are in the memory already.
 */
#include "vellum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vellum_private.h"

#define HEAD_MAX 32

enum into_state { INTO_HEAD, INTO_BODY, INTO_TAIL, INTO_WHOLE, INTO_OTHER };

struct into {
    enum into_state state;
    char *to;
    size_t size;
    char head[HEAD_MAX], tail[2];
    size_t head_length, tail_length;
    uint64_t length, at; /* of the value; of it, what is there */
    bool was_placed;     /* what was there last */
};

/* "$5\r\n" of a value for which there is room; anything else is hiredis's business. */
static void parse_head(struct into *into)
{
    char *end;
    if (into->head[into->head_length - 1] != '\n' && into->head_length < HEAD_MAX - 1)
        return;
    into->head[into->head_length] = '\0';
    long long length = into->head[0] == '$' ? strtoll(into->head + 1, &end, 10) : -1;
    into->state = INTO_OTHER;
    if (length < 0 || (unsigned long long)length > into->size)
        return;
    into->length = (uint64_t)length;
    into->state = length > 0 ? INTO_BODY : INTO_TAIL;
}

/* Bytes of the stream, no more than belong to the state. What client_channel_read says. */
static ssize_t read_some(struct into *into, struct client_channel *channel)
{
    ssize_t got;
    if (into->state == INTO_HEAD) {
        got = client_channel_read(channel, into->head + into->head_length, 1);
        into->head_length += got > 0 ? (size_t)got : 0;
        if (got > 0)
            parse_head(into);
    } else if (into->state == INTO_BODY) {
        got = client_channel_read(channel, into->to + into->at, into->length - into->at);
        into->at += got > 0 ? (uint64_t)got : 0;
        into->was_placed = into->was_placed && got <= 0;
    } else {
        got = client_channel_read(channel, into->tail + into->tail_length,
                                  sizeof into->tail - into->tail_length);
        into->tail_length += got > 0 ? (size_t)got : 0;
        if (into->tail_length == sizeof into->tail)
            into->state = INTO_WHOLE;
    }
    if (into->state == INTO_BODY && into->at == into->length)
        into->state = INTO_TAIL;
    return got;
}

/* False: a part is in the wrong place. */
static bool take_placed(struct into *into, const struct rdma_place *place)
{
    if (into->state != INTO_BODY || place->offset != into->at ||
        place->length > into->length - into->at)
        return false;
    into->at += place->length;
    into->was_placed = true;
    if (into->at == into->length)
        into->state = INTO_TAIL;
    return true;
}

static int receive(struct vellum *vellum, struct into *into)
{
    long long limit_ms = vellum_time_limit(vellum);
    while (into->state != INTO_WHOLE && into->state != INTO_OTHER) {
        struct rdma_place place;
        ssize_t got = read_some(into, vellum->channel);
        if (got > 0)
            continue;
        if (got < 0) {
            vellum_fail(vellum, VELLUM_CLOSED_TEXT);
        } else if (client_channel_placed(vellum->channel, &place)) {
            if (!take_placed(into, &place))
                vellum_fail(vellum, "the server has placed what is no part of the reply");
        } else if (!client_channel_readable(vellum->channel)) {
            vellum_wait_until(vellum, limit_ms);
        }
        if (vellum_has_failed(vellum))
            return REDIS_ERR;
    }
    return REDIS_OK;
}

static int grant(struct vellum *vellum, const struct client_span *span)
{
    long long limit_ms = vellum_time_limit(vellum);
    while (!client_channel_grant(vellum->channel, span)) {
        if (!client_channel_poll(vellum->channel))
            vellum_fail(vellum, VELLUM_CLOSED_TEXT);
        else if (!client_channel_writable(vellum->channel))
            vellum_wait_until(vellum, limit_ms);
        if (vellum_has_failed(vellum))
            return REDIS_ERR;
    }
    return REDIS_OK;
}

/* The memory is the application's alone again. */
static int await_revoking(struct vellum *vellum)
{
    long long limit_ms = vellum_time_limit(vellum);
    while (client_channel_is_revoking(vellum->channel))
        if (vellum_wait_until(vellum, limit_ms) != REDIS_OK)
            return REDIS_ERR;
    return REDIS_OK;
}

static redisReply *integer_reply(struct vellum *vellum, uint64_t number)
{
    char text[HEAD_MAX];
    redisReply *reply = NULL;
    int length = snprintf(text, sizeof text, ":%llu\r\n", (unsigned long long)number);
    if (redisReaderFeed(vellum->tcp->reader, text, (size_t)length) != REDIS_OK)
        vellum_fail(vellum, vellum->tcp->reader->errstr);
    return vellum_parse(vellum, &reply) == REDIS_OK ? reply : NULL;
}

static redisReply *get_by_channel(struct vellum *vellum, const char *key, size_t key_length,
                                  const struct vellum_memory *memory, size_t offset, size_t size)
{
    struct into into = {.to = memory->bytes + offset, .size = size};
    struct client_span span = {memory->mr, into.to, size};
    redisReply *reply = NULL;
    if (grant(vellum, &span) != REDIS_OK ||
        vellum_append(vellum, "GET %b", key, key_length) != REDIS_OK ||
        vellum_flush(vellum) != REDIS_OK || receive(vellum, &into) != REDIS_OK)
        return NULL;
    client_channel_end_grant(vellum->channel, into.was_placed);
    if (await_revoking(vellum) != REDIS_OK)
        return NULL;
    if (into.state == INTO_WHOLE)
        return integer_reply(vellum, into.length);
    if (redisReaderFeed(vellum->tcp->reader, into.head, into.head_length) != REDIS_OK)
        vellum_fail(vellum, vellum->tcp->reader->errstr);
    return vellum_get_reply(vellum, &reply) == REDIS_OK ? reply : NULL;
}

redisReply *vellum_get_into(struct vellum *vellum, const char *key, size_t key_length,
                            const struct vellum_memory *memory, size_t offset, size_t size)
{
    if (vellum_has_failed(vellum))
        return NULL;
    if (memory->vellum != vellum || offset > memory->size || size > memory->size - offset) {
        vellum_fail(vellum, "the value's place lies outside of the registered memory");
        return NULL;
    }
    if (memory->mr != NULL && size > 0)
        return get_by_channel(vellum, key, key_length, memory, offset, size);
    redisReply *reply = vellum_command(vellum, "GET %b", key, key_length);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING || (size_t)reply->len > size)
        return reply;
    size_t length = (size_t)reply->len;
    memcpy(memory->bytes + offset, reply->str, length);
    freeReplyObject(reply);
    return integer_reply(vellum, length);
}
