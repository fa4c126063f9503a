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
#include <sys/types.h>
#include <sys/uio.h>

struct event_base;
struct transport;

#define TRANSPORT_AGAIN (-1)  /* nothing now: the callback tells when */
#define TRANSPORT_CLOSED (-2) /* by the peer, or broken: nothing more will come or go */

#define TRANSPORT_NAME_MAX 128

enum transport_ready { TRANSPORT_READABLE = 1, TRANSPORT_WRITABLE = 2 };

struct transport_ops {
    /* Bytes moved (more than 0), TRANSPORT_AGAIN or TRANSPORT_CLOSED. */
    ssize_t (*read)(struct transport *transport, void *to, size_t size);
    ssize_t (*write)(struct transport *transport, const struct iovec *vectors, int count);
    /* As read, into several places; NULL: read is called for each. They are parts of a large
     * value's place (store_upload_space): after TRANSPORT_AGAIN the next call begins at the same
     * place, so that an implementation may fill it meanwhile, if it has let go of it when `close`
     * returns. */
    ssize_t (*read_vectors)(struct transport *transport, const struct iovec *vectors, int count);
    /* What the callback is to be called for, a set of enum transport_ready. Level-triggered. */
    void (*want)(struct transport *transport, unsigned ready);
    /* Ends the connection and frees the transport; no callback comes after it. */
    void (*close)(struct transport *transport);
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
