/*
 * Moves bytes to and from the server without waiting. REDIS_ERR: the connection is closed.
 */
#ifndef VELLUM_IO_H
#define VELLUM_IO_H

#include "clients/connection.h"

/* Whether there is output that can be sent before another reply is taken. */
bool vellum_can_send(const struct vellum *vellum);

/* Sends and receives what is possible now; REDIS_ERR: the connection is closed. */
int vellum_send_some(struct vellum *vellum);

/* Over a socket: waits for room, within the connection's timeout. */
int vellum_send_some_waiting(struct vellum *vellum);

/* REDIS_ERR: nothing more will arrive. */
int vellum_receive_some(struct vellum *vellum);

/* Takes a whole reply, or NULL. */
int vellum_parse(struct vellum *vellum, redisReply **reply);

#endif
