/*
 * RDMA CONNECT on a hiredis connection. Inside libvellum and the proxy.
 */
#ifndef VELLUM_CLIENT_UPGRADE_H
#define VELLUM_CLIENT_UPGRADE_H

#include <hiredis/hiredis.h>

#include "channel.h"

/* Asks the server for a channel. NULL: there is none, as `message` tells; the connection goes on as
 * it was, unless tcp->err is set. */
struct client_channel *client_upgrade(redisContext *tcp,
                                      const struct client_channel_options *options,
                                      char message[RDMA_MESSAGE_MAX]);

#endif
