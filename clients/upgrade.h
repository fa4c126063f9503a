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

/* The first command of a connection that wants a channel: it asks whether the server offers
 * channels to this client. CONNECT would close an unauthenticated connection, because it has
 * more arguments than such a client may send. */
#define CLIENT_UPGRADE_LOOK "RDMA INFO"
/* False: no channel, for the reason in `message`. */
bool vellum_upgrade_is_offered(const redisReply *reply, char message[RDMA_MESSAGE_MAX]);

/* After that, vellum_upgrade() in two steps, for connections that do not block: the first
 * appends CONNECT to tcp's output, the second takes its reply and opens the channel. */
struct vellum_channel *vellum_upgrade_ask(redisContext *tcp,
                                          const struct vellum_channel_options *options,
                                          char message[RDMA_MESSAGE_MAX]);
bool vellum_upgrade_take(struct vellum_channel *channel, const redisReply *reply,
                         char message[RDMA_MESSAGE_MAX]);

#endif
