/*
 * RDMA CONNECT on a hiredis connection. Inside libvellum and the proxy.
 */
#ifndef VELLUM_CLIENT_UPGRADE_H
#define VELLUM_CLIENT_UPGRADE_H

#include <hiredis/hiredis.h>

#include "clients/channel.h"

/* Asks the server for a channel. NULL: there is none, for the reason in `message`; the connection
 * continues as before, unless tcp->err is set. */
struct vellum_channel *vellum_upgrade(redisContext *tcp,
                                      const struct vellum_channel_options *options,
                                      char message[RDMA_MESSAGE_MAX]);

/* What a connection begins with that wants a channel: whether there are any, and for this client. A
 * stranger's connection would not survive CONNECT, which has more words than strangers may say. */
#define CLIENT_UPGRADE_LOOK "RDMA INFO"
/* False: no channel, for the reason in `message`. */
bool vellum_upgrade_is_offered(const redisReply *reply, char message[RDMA_MESSAGE_MAX]);

/* After that, the same in two steps, between which others wait: the question is appended to what
 * tcp sends; the channel is of use, and its own, when its reply has been taken. */
struct vellum_channel *vellum_upgrade_ask(redisContext *tcp,
                                          const struct vellum_channel_options *options,
                                          char message[RDMA_MESSAGE_MAX]);
bool vellum_upgrade_take(struct vellum_channel *channel, const redisReply *reply,
                         char message[RDMA_MESSAGE_MAX]);

#endif
