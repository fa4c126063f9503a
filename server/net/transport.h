/*
 * A transport carries the bytes of one connection: read, write, close, and one readiness callback.
 * TCP and Unix sockets are one implementation (transport_socket.c), RDMA channels another
 * (rdma-ext/); tests have their own.
 *
 * Threads: a transport belongs to its worker's thread.
 */
#ifndef VELLUM_TRANSPORT_H
#define VELLUM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct transport;

#define TRANSPORT_AGAIN (-1)  /* nothing now: the callback reports when */
#define TRANSPORT_CLOSED (-2) /* by the peer, or broken: no more bytes either way */

#define TRANSPORT_NAME_MAX 128

/* ENDED: the peer has disconnected. An implementation that learns of it other than by reading
 * reports it, wanted or not. */
enum transport_ready { TRANSPORT_READABLE = 1, TRANSPORT_WRITABLE = 2, TRANSPORT_ENDED = 4 };

/* A part of a long value that the peer fetches from its place: see `place`. */
struct transport_place {
    uint64_t offset, total; /* of the part within the value; of the value */
    /* Called once for each part taken: its memory is free again. */
    void (*done)(struct transport_place *place);
};

struct transport_ops {
    /* Returns the bytes moved (more than 0), TRANSPORT_AGAIN or TRANSPORT_CLOSED. */
    ssize_t (*read)(struct transport *transport, void *to, size_t size);
    ssize_t (*write)(struct transport *transport, const struct iovec *vectors, int count);
    /* Like read, into several buffers; NULL: read is called for each. They belong to a large
     * value's extent (store_upload_space): after TRANSPORT_AGAIN the next call has the same
     * buffers, so an implementation may fill them meanwhile. */
    ssize_t (*read_vectors)(struct transport *transport, const struct iovec *vectors, int count);
    /* NULL, or whether the next bytes need not be buffered: read_vectors will have them written
     * directly to their place. */
    bool (*refers)(struct transport *transport);
    /* NULL, or whether buffers passed to read_vectors are being filled, or have been since it was
     * called: its next call comes before any call of `read`. */
    bool (*fills)(struct transport *transport);
    /* NULL, or to be called before `close`: whether no buffer passed to read_vectors is being
     * filled. False: done(arg) is called when that is so. */
    bool (*let_go)(struct transport *transport, void (*done)(void *arg), void *arg);
    /* NULL, or like write, but without copying. The bytes taken must stay unchanged until done()
     * is called, which may be after the transport was closed; until then, further calls return
     * only TRANSPORT_AGAIN or TRANSPORT_CLOSED, whatever is passed. 0: these bytes must be
     * written. */
    ssize_t (*place)(struct transport *transport, const struct iovec *vectors, int count,
                     struct transport_place *place);
    /* Whether the peer sends no more, even if there is unread input. NULL: the callback reports it
     * (TRANSPORT_ENDED). */
    bool (*has_ended)(struct transport *transport);
    /* The events to call back for, a set of enum transport_ready. Level-triggered. */
    void (*want)(struct transport *transport, unsigned ready);
    /* Ends the connection and frees the transport; no callback comes after it. */
    void (*close)(struct transport *transport);
    /* A write may wake a sleeping peer: short replies should be written together. */
    bool wakes;
};

/* The head of each implementation's own struct. */
struct transport {
    const struct transport_ops *ops;
    void (*ready)(void *arg, unsigned ready);
    void *arg;
    const char *kind;              /* "tcp", "unix", "rdma" */
    int fd;                        /* for CLIENT LIST; -1 if there is none */
    bool is_unix;                  /* a Unix socket */
    char peer[TRANSPORT_NAME_MAX]; /* "127.0.0.1:40000", "[::1]:40000", "/path/socket:0" */
    char local[TRANSPORT_NAME_MAX];
};

#endif
