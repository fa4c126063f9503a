/*
 * Transport over a connected stream socket, TCP or Unix, driven by libevent.
 *
 * Invariants: an event is pending exactly for the directions in `wanted`; the socket is
 * non-blocking.
 */
#include "server/net/transport_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

struct transport_socket {
    struct transport base;
    unsigned wanted;
    struct event readable, writable;
};

static ssize_t result_of(ssize_t moved)
{
    if (moved > 0)
        return moved;
    if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return TRANSPORT_AGAIN;
    return TRANSPORT_CLOSED;
}

static ssize_t socket_read(struct transport *transport, void *to, size_t size)
{
    return result_of(read(transport->fd, to, size));
}

static ssize_t socket_read_vectors(struct transport *transport, const struct iovec *vectors,
                                   int count)
{
    return result_of(readv(transport->fd, vectors, count));
}

static ssize_t socket_write(struct transport *transport, const struct iovec *vectors, int count)
{
    if (count == 1)
        return result_of(write(transport->fd, vectors->iov_base, vectors->iov_len));
    return result_of(writev(transport->fd, vectors, count));
}

static bool socket_has_ended(struct transport *transport)
{
    struct pollfd end = {.fd = transport->fd, .events = POLLRDHUP};
    return poll(&end, 1, 0) > 0;
}

static void want_one(struct event *event, bool is_wanted, bool was_wanted)
{
    if (is_wanted && !was_wanted)
        event_add(event, NULL);
    else if (!is_wanted && was_wanted)
        event_del(event);
}

static void socket_want(struct transport *transport, unsigned ready)
{
    struct transport_socket *self = (struct transport_socket *)transport;
    if (ready == self->wanted)
        return;
    want_one(&self->readable, ready & TRANSPORT_READABLE, self->wanted & TRANSPORT_READABLE);
    want_one(&self->writable, ready & TRANSPORT_WRITABLE, self->wanted & TRANSPORT_WRITABLE);
    self->wanted = ready;
}

static void socket_close(struct transport *transport)
{
    socket_want(transport, 0);
    close(transport->fd);
    free(transport);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    struct transport_socket *self = arg;
    self->base.ready(self->base.arg,
                     (what & EV_READ) != 0 ? TRANSPORT_READABLE : TRANSPORT_WRITABLE);
}

static const struct transport_ops socket_ops = {.read = socket_read,
                                                .read_vectors = socket_read_vectors,
                                                .write = socket_write,
                                                .has_ended = socket_has_ended,
                                                .want = socket_want,
                                                .close = socket_close,
                                                .wakes = true};

/* For CLIENT LIST; both ends of a Unix socket have the name of the listening one. */
static void name_of(char name[TRANSPORT_NAME_MAX], const struct sockaddr_storage *address)
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
        snprintf(name, TRANSPORT_NAME_MAX, "%s:%u", text, ntohs(in->sin_port));
    } else if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)address;
        inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
        snprintf(name, TRANSPORT_NAME_MAX, "[%s]:%u", text, ntohs(in->sin6_port));
    } else if (address->ss_family == AF_UNIX) {
        const struct sockaddr_un *un = (const struct sockaddr_un *)address;
        snprintf(name, TRANSPORT_NAME_MAX, "%.100s:0", un->sun_path);
    } else {
        snprintf(name, TRANSPORT_NAME_MAX, "?:0");
    }
}

static void socket_names(struct transport *transport, int fd, bool is_unix)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        address.ss_family = AF_UNSPEC;
    name_of(transport->local, &address);
    if (is_unix) {
        memcpy(transport->peer, transport->local, sizeof transport->peer);
        return;
    }
    address = (struct sockaddr_storage){0};
    len = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &len) != 0)
        address.ss_family = AF_UNSPEC;
    name_of(transport->peer, &address);
}

struct transport *transport_socket(struct event_base *base, int fd, bool is_unix)
{
    struct transport_socket *self = calloc(1, sizeof *self);
    if (self == NULL) {
        close(fd);
        return NULL;
    }
    self->base.ops = &socket_ops;
    self->base.kind = is_unix ? "unix" : "tcp";
    self->base.fd = fd;
    self->base.is_unix = is_unix;
    socket_names(&self->base, fd, is_unix);
    event_assign(&self->readable, base, fd, EV_READ | EV_PERSIST, on_event, self);
    event_assign(&self->writable, base, fd, EV_WRITE | EV_PERSIST, on_event, self);
    return &self->base;
}
