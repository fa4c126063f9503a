/*
 * Connecting and closing; and the steps of it, for connections that wait for nothing.
 */
#ifndef VELLUM_CONNECT_H
#define VELLUM_CONNECT_H

#include "clients/connection.h"

/* A connection that is not connected, with a copy of the options; NULL: out of memory. */
struct vellum *vellum_new(const struct vellum_options *options);
/* As it was then, with what is registered. */
void vellum_close(struct vellum *vellum);
/* What the server is to be asked for a channel with. */
struct vellum_channel_options vellum_channel_options(const struct vellum *vellum);
void vellum_take_channel(struct vellum *vellum, struct vellum_channel *channel);

#endif
