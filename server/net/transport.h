/*
 * A transport carries the bytes of one connection: bytes in, space out, close, and one readiness
 * callback. TCP and Unix sockets are one implementation (transport_socket.c); tests have another.
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

struct event_base;
struct transport;

#define TRANSPORT_AGAIN (-1)  /* nothing now: the callback tells when */
#define TRANSPORT_CLOSED (-2) /* by the peer, or broken: nothing more will come or go */

#define TRANSPORT_NAME_MAX 128

/* ENDED: the other end has gone. An implementation that learns of it otherwise than by reading
 * tells so, wanted or not. */
enum transport_ready { TRANSPORT_READABLE = 1, TRANSPORT_WRITABLE = 2, TRANSPORT_ENDED = 4 };

/* A part of a long value that is given to the other end from where it lies: see `place`. */
struct transport_place {
    uint64_t offset, total; /* of the part within the value, of the value */
    /* Once for each part taken: its memory is not needed any more. */
    void (*done)(struct transport_place *place);
};

struct transport_ops {
    /* Bytes moved (more than 0), TRANSPORT_AGAIN or TRANSPORT_CLOSED. */
    ssize_t (*read)(struct transport *transport, void *to, size_t size);
    ssize_t (*write)(struct transport *transport, const struct iovec *vectors, int count);
    /* As read, into several places; NULL: read is called for each. They are parts of a large
     * value's place (store_upload_space): after TRANSPORT_AGAIN the next call begins at the same
     * place, so that an implementation may fill it meanwhile. */
    ssize_t (*read_vectors)(struct transport *transport, const struct iovec *vectors, int count);
    /* NULL, or whether the next bytes need not pass through memory: read_vectors will have them
     * filled in where they belong. */
    bool (*refers)(struct transport *transport);
    /* NULL, or to be called before `close`: whether nothing that read_vectors was given is being
     * filled. False: done(arg) is called when it is so. */
    bool (*let_go)(struct transport *transport, void (*done)(void *arg), void *arg);
    /* NULL, or like write, but without copying: what is taken must stay as it is until done() is
     * called, which may be after the transport was closed; until then it only says TRANSPORT_AGAIN
     * or TRANSPORT_CLOSED, whatever it is given. 0: these bytes are to be written. */
    ssize_t (*place)(struct transport *transport, const struct iovec *vectors, int count,
                     struct transport_place *place);
    /* Whether the other end sends no more, be there something to read before that or not. NULL: the
     * callback tells (TRANSPORT_ENDED). */
    bool (*has_ended)(struct transport *transport);
    /* What the callback is to be called for, a set of enum transport_ready. Level-triggered. */
    void (*want)(struct transport *transport, unsigned ready);
    /* Ends the connection and frees the transport; no callback comes after it. */
    void (*close)(struct transport *transport);
    /* A write may wake a peer that sleeps: short replies are worth being written together. */
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

/* Takes over a connected, non-blocking socket, and closes it also on failure (NULL). */
struct transport *transport_socket(struct event_base *base, int fd, bool is_unix);

#endif
