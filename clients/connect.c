/*
 * Connects by TCP or a Unix socket, logs in, and asks for a channel.
 */
#include "clients/connect.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "clients/get_into.h"
#include "clients/registered_memory.h"
#include "clients/upgrade.h"

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
    STAILQ_INIT(&vellum->splices);
    STAILQ_INIT(&vellum->intos);
    if (!has_failed)
        return vellum;
    vellum_free(vellum);
    return NULL;
}

void vellum_close_on_exec(const redisContext *tcp)
{
    if (tcp != NULL && tcp->err == 0)
        fcntl(tcp->fd, F_SETFD, fcntl(tcp->fd, F_GETFD) | FD_CLOEXEC);
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
    vellum_close_on_exec(tcp);
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

/* `channel` NULL: there is none, for the reason in vellum->reason. */
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
    for (struct vellum_splice *splice; (splice = STAILQ_FIRST(&vellum->splices)) != NULL;) {
        STAILQ_REMOVE_HEAD(&vellum->splices, link);
        free(splice);
    }
    vellum->sent = vellum->spliced = 0;
    vellum->appended = vellum->answered = 0;
    vellum_into_forget(vellum);
    if (vellum->channel != NULL)
        vellum_channel_stop(vellum->channel);
    vellum_unpin_all(vellum);
    /* Without its queue pair it is of no use to a process that was forked and has it open. */
    if (vellum->tcp != NULL && vellum->channel != NULL)
        shutdown(vellum->tcp->fd, SHUT_RDWR);
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
