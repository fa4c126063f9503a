/*
 * The client's end of an RDMA channel: a stream of bytes in each direction. Inside libvellum and
 * the proxy; applications use vellum.h.
 *
 * Threads: a channel belongs to one thread at a time.
 */
#ifndef VELLUM_CLIENT_CHANNEL_H
#define VELLUM_CLIENT_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "protocol/rdma_end.h"
#include "protocol/rdma_frame.h"
#include "rdma-ext/verbs.h"
#include "clients/window.h"

struct vellum_channel;

struct vellum_channel_options {
    const char *device; /* NULL: the one that has the TCP connection's address */
    enum rdma_mode mode;
    uint32_t spin_us; /* how long waiting is busy before it sleeps */
};

/* Creates a channel beside a TCP connection, which still belongs to the caller and shows when
 * the server is gone. NULL: no device is suitable, see `message`. */
struct vellum_channel *vellum_channel_new(int tcp, const struct vellum_channel_options *options,
                                          struct rdma_end *ours, char message[RDMA_MESSAGE_MAX]);
/* Connects it with the attributes in the server's answer. */
bool vellum_channel_open(struct vellum_channel *channel, const struct rdma_end *theirs,
                         char message[RDMA_MESSAGE_MAX]);
/* Closes it, and destroys its queue pair: when this returns, the server cannot access registered
 * memory any more. Frames that were taken before can still be read. */
void vellum_channel_stop(struct vellum_channel *channel);
bool vellum_channel_is_stopped(const struct vellum_channel *channel);
void vellum_channel_free(struct vellum_channel *channel);

#define CLIENT_CHANNEL_CLOSED (-1) /* by the server, or broken */

/* Return the number of bytes moved; 0: none now. */
ssize_t vellum_channel_write(struct vellum_channel *channel, const struct iovec *vectors,
                             int count);
ssize_t vellum_channel_read(struct vellum_channel *channel, void *to, size_t size);

/* Registers memory, which the server may read or write while a reference to it is in use;
 * without windows, as long as it is registered. NULL: failed. */
struct ibv_mr *vellum_channel_register(struct vellum_channel *channel, void *memory, size_t size);

bool vellum_channel_has_windows(const struct vellum_channel *channel);

/* Appends the memory's bytes, by reference, to the stream. False: there is no room now. */
bool vellum_channel_pull(struct vellum_channel *channel, const struct vellum_span *span);

/* Whether the server may, for a moment, still access memory of a request whose reply was read. A
 * closed channel is stopped instead. */
bool vellum_channel_is_revoking(struct vellum_channel *channel);

/* Grants memory into which the server may write the next long value instead of sending it, until
 * end_grant(), whose `is_used` says that the value's last bytes were placed. Called when no
 * reply is outstanding. False: there is no room now. */
bool vellum_channel_grant(struct vellum_channel *channel, const struct vellum_span *memory);
void vellum_channel_end_grant(struct vellum_channel *channel, bool is_used);
/* Whether the next bytes of the stream are in that memory. As long as they are, read() returns
 * none. */
bool vellum_channel_placed(struct vellum_channel *channel, struct rdma_place *place);

/* Handles what has arrived, without waiting. False: the channel is closed. */
bool vellum_channel_poll(struct vellum_channel *channel);

bool vellum_channel_readable(const struct vellum_channel *channel);
bool vellum_channel_writable(const struct vellum_channel *channel);

/* Waits until something has moved, the channel is closed, or the timeout (-1: none) has passed. */
void vellum_channel_wait(struct vellum_channel *channel, int timeout_ms);

/* Checks the TCP connection, which shows whether the server is gone. */
void vellum_channel_look(struct vellum_channel *channel);

/* For event loops: after sleep() has returned true, readable when there may be something to
 * poll. False: there is something now, or the channel is closed. */
int vellum_channel_descriptor(const struct vellum_channel *channel);
bool vellum_channel_sleep(struct vellum_channel *channel);

#endif
