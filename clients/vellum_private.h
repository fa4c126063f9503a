/*
 * A connection, as the files of libvellum share it. Bytes wait in hiredis's context: commands in
 * its output buffer, replies in its reader. Those here move them without waiting, whatever the
 * transport.
 */
#ifndef VELLUM_PRIVATE_H
#define VELLUM_PRIVATE_H

#include <stdbool.h>

#include "channel.h"
#include "vellum.h"

#define VELLUM_USUAL_SPIN_US 50
#define VELLUM_CLOSED_TEXT "the server has closed the channel"

struct vellum {
    redisContext *tcp;
    struct client_channel *channel; /* NULL: by TCP */
    const char *transport;
    int timeout_ms;
    bool has_slept; /* the server's end may have shown by TCP */
    char reason[RDMA_MESSAGE_MAX], error[RDMA_MESSAGE_MAX]; /* empty: none */
};

void vellum_fail(struct vellum *vellum, const char *text);

/* Whether there is an error; takes hiredis's over. */
bool vellum_has_failed(struct vellum *vellum);

/* Moves what can be moved now; REDIS_ERR when the connection is closed. */
int vellum_send_some(struct vellum *vellum);

/* REDIS_ERR: nothing will come behind what the reader has. */
int vellum_receive_some(struct vellum *vellum);

/* Takes a whole reply, or NULL. */
int vellum_parse(struct vellum *vellum, redisReply **reply);

#endif
