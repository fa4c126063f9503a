/*
 * The transport of a TCP or Unix socket.
 */
#ifndef VELLUM_TRANSPORT_SOCKET_H
#define VELLUM_TRANSPORT_SOCKET_H

#include "server/net/transport.h"

struct event_base;

/* Takes ownership of a connected, non-blocking socket; closes it also on failure (NULL). */
struct transport *transport_socket(struct event_base *base, int fd, bool is_unix);

#endif
