/*
 * A connection, as the files of libvellum share it. Bytes wait in hiredis's context: commands in
 * its output buffer, replies in its reader. io.h moves them without waiting, whatever the
 * transport.
 */
#ifndef VELLUM_CONNECTION_H
#define VELLUM_CONNECTION_H

#include <stdbool.h>
#include <sys/queue.h>

#include "clients/channel.h"
#include "clients/vellum.h"

#define VELLUM_USUAL_SPIN_US 50
#define VELLUM_CLOSED_TEXT "the server has closed the channel"

/* Points in the output where there is more than bytes. */
enum vellum_splice_kind {
    SPLICE_PULL, /* bytes of the application's memory are inserted here */
    SPLICE_INTO, /* grants memory to the next reply: sent when no reply before it is outstanding */
    SPLICE_HOLD, /* nothing is sent until that reply has arrived */
};

struct vellum_splice {
    enum vellum_splice_kind kind;
    struct vellum_span span;
    size_t before; /* unsent bytes of the output between the splice before and this one */
    STAILQ_ENTRY(vellum_splice) link;
};

struct vellum_into; /* see get_into.c */

struct vellum {
    struct vellum_options options; /* owns its strings */
    redisContext *tcp;
    struct vellum_channel *channel; /* NULL: by TCP */
    const char *transport;
    int timeout_ms;
    STAILQ_HEAD(, vellum_splice) splices;
    size_t sent;                 /* bytes at the beginning of the output buffer: see io.c */
    size_t spliced;              /* unsent bytes of the output before the last splice */
    uint64_t appended, answered; /* number of commands, and of replies that were taken */
    STAILQ_HEAD(, vellum_into) intos;
    LIST_HEAD(, vellum_memory) memories;
    bool has_slept; /* TCP may have shown that the server closed */
    char reason[RDMA_MESSAGE_MAX], error[RDMA_MESSAGE_MAX]; /* empty: none */
};

/* Ends the channel, if there is one: when it returns, the server can neither read nor write the
 * application's memory. What has been received can still be read. */
void vellum_end_access(struct vellum *vellum);

/* Sets the error, if there is none yet, and ends the server's access. */
void vellum_fail(struct vellum *vellum, const char *text);

/* Whether there is an error; copies hiredis's. */
bool vellum_has_failed(struct vellum *vellum);

/* The unsent bytes of the output, and whether there is anything to send, including splices. */
size_t vellum_output_length(const struct vellum *vellum);
bool vellum_has_output(const struct vellum *vellum);

/* Adds a splice at the current end of the output. */
int vellum_splice(struct vellum *vellum, enum vellum_splice_kind kind,
                  const struct vellum_span *span);
/* False: the command would be longer than 2 GB, which hiredis cannot format. `lengths` may be NULL.
 */
bool vellum_command_fits(int argc, const char **argv, const size_t *lengths);
/* Appends bytes of a command that is counted elsewhere. */
int vellum_append_bytes(struct vellum *vellum, const char *bytes, size_t length);

#endif
