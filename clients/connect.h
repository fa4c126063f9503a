/*
 * Connecting and closing, and their steps for connections that do not block.
 */
#ifndef VELLUM_CONNECT_H
#define VELLUM_CONNECT_H

#include "clients/connection.h"

/* Creates a connection that is not yet connected, with a copy of the options. NULL: out of
 * memory. */
struct vellum *vellum_new(const struct vellum_options *options);
/* Back to the state after vellum_new(); registered memory stays with it. */
void vellum_close(struct vellum *vellum);
/* A program that the application starts does not keep the connection. Nothing is done without one.
 */
void vellum_close_on_exec(const redisContext *tcp);
/* The options with which to ask the server for a channel. */
struct vellum_channel_options vellum_channel_options(const struct vellum *vellum);
void vellum_take_channel(struct vellum *vellum, struct vellum_channel *channel);

#endif
