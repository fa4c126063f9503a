/*
 * GET into the application's own memory. Over a channel the reply is parsed here, since parts of it
 * do not arrive as bytes: they are in the memory already. Over other transports, and if the
 * application gives no room, the reply arrives as usual and is copied there.
 *
 * Invariants:
 * 1. vellum->intos are those whose replies have not arrived, in order; only the first may be
 *    granted: then no other reply is outstanding, and everything received belongs to its reply.
 * 2. There is a splice before the command of each one to be granted, at which the output stops
 *    until all previous replies have been taken, and one after it, until its own reply has
 *    arrived.
 */
#include "clients/get_into.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/registered_memory.h"

#define HEAD_MAX 32

enum into_state { INTO_HEAD, INTO_BODY, INTO_TAIL, INTO_WHOLE, INTO_OTHER };

struct vellum_into {
    STAILQ_ENTRY(vellum_into) link;
    uint64_t turn; /* number of commands before it */
    struct vellum_span span;
    bool is_by_reply, is_granted;
    enum into_state state;
    char head[HEAD_MAX], tail[2];
    size_t head_length, tail_length;
    uint64_t length, at; /* of the value; of its part that has arrived */
    bool was_placed;     /* the last part was placed by the server */
};

/* Parses "$5\r\n" of a value for which there is room; hiredis parses anything else. */
static void parse_head(struct vellum_into *into)
{
    char *end;
    assert(into->head_length > 0 && into->head_length < HEAD_MAX); /* room for the NUL */
    if (into->head[into->head_length - 1] != '\n' && into->head_length < HEAD_MAX - 1)
        return;
    into->head[into->head_length] = '\0';
    long long length = into->head[0] == '$' ? strtoll(into->head + 1, &end, 10) : -1;
    into->state = INTO_OTHER;
    if (length < 0 || (unsigned long long)length > into->span.length)
        return;
    into->length = (uint64_t)length;
    into->state = length > 0 ? INTO_BODY : INTO_TAIL;
}

/* Reads bytes of the stream, no more than belong to the state. Returns what vellum_channel_read
 * returns. */
static ssize_t read_some(struct vellum_into *into, struct vellum_channel *channel)
{
    ssize_t got;
    if (into->state == INTO_HEAD) {
        got = vellum_channel_read(channel, into->head + into->head_length, 1);
        into->head_length += got > 0 ? (size_t)got : 0;
        if (got > 0)
            parse_head(into);
    } else if (into->state == INTO_BODY) {
        got = vellum_channel_read(channel, into->span.at + into->at, into->length - into->at);
        into->at += got > 0 ? (uint64_t)got : 0;
        into->was_placed = into->was_placed && got <= 0;
    } else {
        got = vellum_channel_read(channel, into->tail + into->tail_length,
                                  sizeof into->tail - into->tail_length);
        into->tail_length += got > 0 ? (size_t)got : 0;
        if (into->tail_length == sizeof into->tail)
            into->state = INTO_WHOLE;
    }
    if (into->state == INTO_BODY && into->at == into->length)
        into->state = INTO_TAIL;
    return got;
}

/* False: a part was placed at the wrong position. */
static bool take_placed(struct vellum_into *into, const struct rdma_place *place)
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

static bool is_over(const struct vellum_into *into)
{
    return into->state == INTO_WHOLE || into->state == INTO_OTHER;
}

static void drop_first(struct vellum *vellum)
{
    struct vellum_into *into = STAILQ_FIRST(&vellum->intos);
    STAILQ_REMOVE_HEAD(&vellum->intos, link);
    free(into);
}

/* Feeds hiredis's reader with a reply of ours (the length), or the beginning of one that is not
 * a value. */
static int give_to_reader(struct vellum *vellum)
{
    struct vellum_into *into = STAILQ_FIRST(&vellum->intos);
    char text[HEAD_MAX];
    const char *bytes = into->head;
    size_t length = into->head_length;
    vellum_channel_end_grant(vellum->channel, into->was_placed);
    if (into->state == INTO_WHOLE) {
        length = (size_t)snprintf(text, sizeof text, ":%llu\r\n", (unsigned long long)into->length);
        bytes = text;
    }
    int fed = redisReaderFeed(vellum->tcp->reader, bytes, length);
    if (fed != REDIS_OK)
        vellum_fail(vellum, vellum->tcp->reader->errstr);
    drop_first(vellum);
    return fed;
}

bool vellum_into_is_granted(const struct vellum *vellum)
{
    const struct vellum_into *first = STAILQ_FIRST(&vellum->intos);
    return first != NULL && first->is_granted;
}

int vellum_into_receive(struct vellum *vellum)
{
    struct vellum_into *into = STAILQ_FIRST(&vellum->intos);
    while (!is_over(into)) {
        struct rdma_place place;
        ssize_t got = read_some(into, vellum->channel);
        if (got < 0)
            return REDIS_ERR;
        if (got > 0)
            continue;
        if (!vellum_channel_placed(vellum->channel, &place))
            return REDIS_OK;
        if (!take_placed(into, &place)) {
            vellum_fail(vellum, "the server has placed what is no part of the reply");
            return REDIS_ERR;
        }
    }
    return give_to_reader(vellum);
}

/* A first one that is answered by an ordinary reply has no part in the stream: the part at the head
 * of the stream belongs to a later one. */
bool vellum_into_is_due(const struct vellum *vellum)
{
    const struct vellum_into *into = STAILQ_FIRST(&vellum->intos);
    return into->turn == vellum->answered && !into->is_by_reply;
}

bool vellum_into_begin(struct vellum *vellum)
{
    struct vellum_into *into = STAILQ_FIRST(&vellum->intos);
    if (!vellum_into_is_due(vellum) || !vellum_channel_grant(vellum->channel, &into->span))
        return false;
    into->is_granted = true;
    return true;
}

/* An integer reply instead of the value. NULL: out of memory. */
static redisReply *integer_reply(uint64_t number)
{
    char text[HEAD_MAX];
    void *reply = NULL;
    int length = snprintf(text, sizeof text, ":%llu\r\n", (unsigned long long)number);
    redisReader *reader = redisReaderCreate();
    if (reader != NULL && redisReaderFeed(reader, text, (size_t)length) == REDIS_OK &&
        redisReaderGetReply(reader, &reply) != REDIS_OK)
        reply = NULL;
    if (reader != NULL)
        redisReaderFree(reader);
    return reply;
}

redisReply *vellum_answered(struct vellum *vellum, redisReply *reply)
{
    struct vellum_into *into = STAILQ_FIRST(&vellum->intos);
    if (reply == NULL || vellum->answered == vellum->appended)
        return reply;
    uint64_t turn = vellum->answered++;
    if (into == NULL || !into->is_by_reply || into->turn != turn)
        return reply;
    size_t length = (size_t)reply->len, size = into->span.length;
    char *to = into->span.at;
    drop_first(vellum);
    if (reply->type != REDIS_REPLY_STRING || length > size)
        return reply;
    memcpy(to, reply->str, length);
    freeReplyObject(reply);
    reply = integer_reply(length);
    if (reply == NULL)
        vellum_fail(vellum, "out of memory");
    return reply;
}

static int append(struct vellum *vellum, const char *key, size_t key_length,
                  const struct vellum_span *span)
{
    struct vellum_into *into = calloc(1, sizeof *into);
    if (into == NULL) {
        vellum_fail(vellum, "out of memory");
        return REDIS_ERR;
    }
    *into = (struct vellum_into){.turn = vellum->appended,
                                 .span = *span,
                                 .is_by_reply = span->mr == NULL || span->length == 0};
    STAILQ_INSERT_TAIL(&vellum->intos, into, link);
    if (into->is_by_reply)
        return vellum_append(vellum, "GET %b", key, key_length);
    if (vellum_splice(vellum, SPLICE_INTO, span) != REDIS_OK ||
        vellum_append(vellum, "GET %b", key, key_length) != REDIS_OK)
        return REDIS_ERR;
    return vellum_splice(vellum, SPLICE_HOLD, span);
}

int vellum_append_get_into(struct vellum *vellum, const char *key, size_t key_length,
                           const struct vellum_memory *memory, size_t offset, size_t size)
{
    struct vellum_span span;
    if (vellum_span_of(vellum, memory, offset, size, &span) != REDIS_OK)
        return REDIS_ERR;
    return append(vellum, key, key_length, &span);
}

void vellum_into_forget(struct vellum *vellum)
{
    while (!STAILQ_EMPTY(&vellum->intos))
        drop_first(vellum);
}
