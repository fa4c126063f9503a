/*
 * A connection, as the files of libvellum share it. Bytes wait in hiredis's context: commands in
 * its output buffer, replies in its reader. Those here move them without waiting, whatever the
 * transport.
 */
#ifndef VELLUM_PRIVATE_H
#define VELLUM_PRIVATE_H

#include <stdbool.h>

#include "clients/channel.h"
#include "clients/vellum.h"

#define VELLUM_USUAL_SPIN_US 50
#define VELLUM_CLOSED_TEXT "the server has closed the channel"

struct vellum_memory {
    struct vellum *vellum;
    struct vellum_memory *previous, *next; /* of the connection's */
    char *bytes;
    size_t size;
    struct ibv_mr *mr; /* NULL: by TCP */
};

/* Where the output is more than bytes. */
enum vellum_splice_kind {
    SPLICE_PULL, /* bytes of the application's memory stand here */
    SPLICE_INTO, /* the next reply may be written into it: sent when it is the next */
    SPLICE_HOLD, /* nothing is sent until that has arrived */
};

struct vellum_splice {
    enum vellum_splice_kind kind;
    struct vellum_span span;
    size_t before; /* bytes of the output buffer between the splice before and this one */
    struct vellum_splice *next;
};

struct vellum_into; /* see get_into.c */

struct vellum {
    struct vellum_options options; /* owns its strings */
    redisContext *tcp;
    struct vellum_channel *channel; /* NULL: by TCP */
    const char *transport;
    int timeout_ms;
    struct vellum_splice *splices, **splices_end;
    size_t spliced;              /* bytes of the output buffer before the last splice */
    uint64_t appended, answered; /* commands; those whose replies were taken */
    struct vellum_into *intos, **intos_end;
    struct vellum_memory *memories;
    bool has_slept; /* TCP may have shown that the server closed */
    char reason[RDMA_MESSAGE_MAX], error[RDMA_MESSAGE_MAX]; /* empty: none */
};

void vellum_fail(struct vellum *vellum, const char *text);

/* Whether there is an error; takes hiredis's over. */
bool vellum_has_failed(struct vellum *vellum);

/* Bytes in the output buffer; and whether there is anything to be sent, splices included. */
size_t vellum_output_length(const struct vellum *vellum);
bool vellum_has_output(const struct vellum *vellum);

/* That, and no reply has to be taken first. */
bool vellum_can_send(const struct vellum *vellum);

/* Adds a splice at the current end of the output. */
int vellum_splice(struct vellum *vellum, enum vellum_splice_kind kind,
                  const struct vellum_span *span);
/* Appends bytes of a command that is counted elsewhere. */
int vellum_append_bytes(struct vellum *vellum, const char *bytes, size_t length);

/* ---- get_into.c ---- */

/* What was granted last gets its reply: that comes by vellum_into_receive, which feeds the reader
 * with what the application gets. REDIS_ERR: nothing will come any more. */
bool vellum_into_is_granted(const struct vellum *vellum);
int vellum_into_receive(struct vellum *vellum);
/* Whether all replies before the first one's have been taken; and its grant. False: not now. */
bool vellum_into_is_due(const struct vellum *vellum);
bool vellum_into_begin(struct vellum *vellum);
/* Counts a reply that is taken, or NULL, and puts a value where it belongs: what the application
 * gets. */
redisReply *vellum_answered(struct vellum *vellum, redisReply *reply);
void vellum_into_forget(struct vellum *vellum);

/* Deregisters memory before a channel closes; registers it again with the next. */
void vellum_unpin_all(struct vellum *vellum);
bool vellum_pin_all(struct vellum *vellum);

/* A connection that is not connected, with a copy of the options; NULL: out of memory. */
struct vellum *vellum_new(const struct vellum_options *options);
/* As it was then, with what is registered. */
void vellum_close(struct vellum *vellum);
/* What the server is to be asked for a channel with. */
struct vellum_channel_options vellum_channel_options(const struct vellum *vellum);
void vellum_take_channel(struct vellum *vellum, struct vellum_channel *channel);

/* Sends and receives what is possible now; REDIS_ERR: the connection is closed. */
int vellum_send_some(struct vellum *vellum);

/* By a socket: waits for room, as long as the connection's time limit allows. */
int vellum_send_some_waiting(struct vellum *vellum);

/* REDIS_ERR: nothing follows what the reader has. */
int vellum_receive_some(struct vellum *vellum);

/* Waits for the reply to what was appended last, with that result; NULL: it has failed. */
redisReply *vellum_reply_to(struct vellum *vellum, int appended);

/* The part of the memory that a value is in. REDIS_ERR: it is not of this connection's. */
int vellum_span_of(struct vellum *vellum, const struct vellum_memory *memory, size_t offset,
                   size_t length, struct vellum_span *span);

/* Takes a whole reply, or NULL. */
int vellum_parse(struct vellum *vellum, redisReply **reply);

#endif
