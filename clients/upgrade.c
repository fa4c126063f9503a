#include "clients/upgrade.h"

#include <stdio.h>
#include <string.h>

#include "protocol/rdma_frame.h"

static int append_question(redisContext *tcp, const struct rdma_end *ours)
{
    char values[RDMA_END_ATTRIBUTES][RDMA_END_TEXT_MAX], version[16];
    const char *words[4 + 2 * RDMA_END_ATTRIBUTES] = {"RDMA", "CONNECT", version,
                                                      rdma_mode_name(ours->mode)};
    int count = 4;
    snprintf(version, sizeof version, "%d", RDMA_VERSION);
    for (uint32_t i = 0; i < rdma_end_attributes(ours); i++) {
        words[count++] = rdma_end_print(ours, i, values[i]);
        words[count++] = values[i];
    }
    return redisAppendCommandArgv(tcp, count, words, NULL);
}

/* A map, which in RESP2 is an array of names and values. */
static bool read_answer(const redisReply *reply, struct rdma_end *theirs)
{
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        const redisReply *name = reply->element[i], *value = reply->element[i + 1];
        if (name->type == REDIS_REPLY_STRING && value->type == REDIS_REPLY_STRING &&
            !rdma_end_read(theirs, name->str, (size_t)name->len, value->str, (size_t)value->len))
            return false;
    }
    return true;
}

struct vellum_channel *vellum_upgrade_ask(redisContext *tcp,
                                          const struct vellum_channel_options *options,
                                          char message[RDMA_MESSAGE_MAX])
{
    struct rdma_end ours;
    struct vellum_channel *channel = vellum_channel_new(tcp->fd, options, &ours, message);
    if (channel == NULL || append_question(tcp, &ours) == REDIS_OK)
        return channel;
    snprintf(message, RDMA_MESSAGE_MAX, "%s", tcp->errstr);
    vellum_channel_free(channel);
    return NULL;
}

bool vellum_upgrade_take(struct vellum_channel *channel, const redisReply *reply,
                         char message[RDMA_MESSAGE_MAX])
{
    struct rdma_end theirs = {.present = 0};
    if (reply->type != REDIS_REPLY_ARRAY) {
        snprintf(message, RDMA_MESSAGE_MAX, "%s", reply->str != NULL ? reply->str : "no answer");
        return false;
    }
    if (!read_answer(reply, &theirs)) {
        snprintf(message, RDMA_MESSAGE_MAX, "the server's answer is not understood");
        return false;
    }
    return vellum_channel_open(channel, &theirs, message);
}

bool vellum_upgrade_is_offered(const redisReply *reply, char message[RDMA_MESSAGE_MAX])
{
    if (reply->type == REDIS_REPLY_ERROR)
        snprintf(message, RDMA_MESSAGE_MAX, "%s", reply->str);
    return reply->type != REDIS_REPLY_ERROR;
}

static bool look(redisContext *tcp, char message[RDMA_MESSAGE_MAX])
{
    redisReply *reply = redisCommand(tcp, CLIENT_UPGRADE_LOOK);
    if (reply == NULL)
        snprintf(message, RDMA_MESSAGE_MAX, "%s", tcp->errstr);
    bool is_offered = reply != NULL && vellum_upgrade_is_offered(reply, message);
    if (reply != NULL)
        freeReplyObject(reply);
    return is_offered;
}

struct vellum_channel *vellum_upgrade(redisContext *tcp,
                                      const struct vellum_channel_options *options,
                                      char message[RDMA_MESSAGE_MAX])
{
    void *reply = NULL;
    if (!look(tcp, message))
        return NULL;
    struct vellum_channel *channel = vellum_upgrade_ask(tcp, options, message);
    if (channel == NULL)
        return NULL;
    if (redisGetReply(tcp, &reply) != REDIS_OK)
        snprintf(message, RDMA_MESSAGE_MAX, "%s", tcp->errstr);
    bool is_open = reply != NULL && vellum_upgrade_take(channel, reply, message);
    if (reply != NULL)
        freeReplyObject(reply);
    if (is_open)
        return channel;
    vellum_channel_free(channel);
    return NULL;
}
