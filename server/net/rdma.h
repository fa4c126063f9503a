/*
 * What the server asks of an implementation of channels (../protocol/RDMA.md). There is one, in
 * rdma-ext/, where the system has verbs; main hands it over. Everywhere else server->rdma_ops is
 * NULL, and the commands say so.
 *
 * A channel is made beside a connection's TCP transport and then wraps it: bytes go by TCP until
 * the client's first frame comes, from then on by the channel. When TCP ends, the channel does.
 *
 * Threads: a poll group and its channels belong to their worker's thread. What takes long
 * happens on a thread of the implementation's own. `info` may be asked by any thread.
 */
#ifndef VELLUM_RDMA_H
#define VELLUM_RDMA_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/rdma_end.h"
#include "server/base/message.h"
#include "server/net/transport.h"

struct rdma_channel;
struct rdma_devices;    /* all that the process uses */
struct rdma_poll_group; /* a worker's queues with all of them */

#define RDMA_ERROR_MAX 160
#define RDMA_GIDS_MAX 64
#define RDMA_DEVICES_MAX 16 /* ports of devices that are used at a time */
#define RDMA_NAME_MAX 64    /* bytes of a device's name, with its zero byte */

struct rdma_options {
    const char *device;        /* names, separated by spaces or commas; empty: all that fit */
    int port, gid_index;       /* of each device; 0, -1: all that fit */
    uint32_t max_channels;     /* of all workers and devices together */
    uint64_t max_pinned_bytes; /* likewise */
    uint32_t
        max_client_bytes; /* of the store's pages that one channel's transfers hold at a time */
    /* The stretch of the store's pages that holds an address: registered as a whole, at the first
     * use of one. It stays until stop(). False: none does. Called by the implementation's thread.
     */
    bool (*pages_around)(void *arg, const void *address, void **start, size_t *size);
    void *pages_arg;
    /* Something to be logged, by any thread. */
    void (*warn)(void *arg, const char *text);
    void *warn_arg;
};

/* A port of a device. */
struct rdma_port_info {
    char device[RDMA_NAME_MAX]; /* empty: none is in use */
    uint32_t port;
    bool is_active, is_ethernet;
    unsigned modes;      /* bit n: enum rdma_mode n is offered */
    struct rdma_end end; /* gid, lid, mtu, frame_bytes, credits */
    uint64_t channels;
};

struct rdma_info {
    struct rdma_port_info chosen; /* by the connection that was asked for */
    /* What its channels speak from: the one that is their connection's address, else end.gid. */
    uint8_t gids[RDMA_GIDS_MAX][16];
    uint32_t gid_count;
    struct rdma_port_info ports[RDMA_DEVICES_MAX]; /* all in use */
    uint32_t port_count;
    uint64_t channels, max_channels, pinned_bytes, max_pinned_bytes;
    uint64_t opened, refused, breaches, broken;
    uint64_t failures; /* of the device: calls refused, queues that ended */
    uint64_t frames_in, frames_out, bytes_in, bytes_out, copied_bytes, placed_bytes, pulled_bytes;
    uint64_t registered_bytes;             /* of the store's pages */
    uint64_t held_bytes, max_client_bytes; /* of those, by transfers under way */
};

struct rdma_stats {
    enum rdma_mode mode;
    const char *state; /* "pending": no frame has come yet; "open" */
    uint32_t qpn, credits;
    uint64_t frames_in, frames_out, bytes_in, bytes_out;
};

/* Between which addresses a channel is to run, as GIDs: IPv4 in its mapped form. */
struct rdma_path {
    uint8_t local[16]; /* at which the connection has arrived */
    uint8_t peer[16];
    bool has_local, has_peer;
};

/* RDMA CONNECT. Must live until done() is called, on the worker's thread. */
struct rdma_request {
    struct rdma_end theirs, ours;
    struct rdma_path path;
    bool is_peers_own; /* its GID is the address that the connection comes from, or need not be */
    struct rdma_channel *channel; /* NULL: it failed */
    char error[RDMA_ERROR_MAX];
    /* Nobody waits for the channel any more: one that is not being connected yet will fail. */
    _Atomic bool is_given_up;
    void (*done)(struct rdma_request *request);
};

struct rdma_ops {
    /* Opens the devices. NULL: there is none that fits, and message tells why. */
    struct rdma_devices *(*start)(const struct rdma_options *options, char message[RDMA_ERROR_MAX]);
    /* When all workers' threads have ended: nothing is posted to them any more. */
    void (*halt)(struct rdma_devices *devices);
    /* When what was posted has been visited: frees everything, the poll groups too. */
    void (*stop)(struct rdma_devices *devices);
    /* `path`: of the connection that would have a channel; NULL: of none. */
    void (*info)(struct rdma_devices *devices, const struct rdma_path *path,
                 struct rdma_info *info);

    struct rdma_poll_group *(*attach)(struct rdma_devices *devices, struct worker *worker);
    /* Becomes readable when something has come after sleep(). */
    int (*descriptor)(const struct rdma_poll_group *group);
    /* Takes up what has completed and calls the transports that are ready. True: something moved,
     * or there is more to do. */
    bool (*poll)(struct rdma_poll_group *group);
    /* Nothing will be polled until the descriptor is readable. False: poll once more first. */
    bool (*sleep)(struct rdma_poll_group *group);

    /* The descriptor is readable. */
    void (*woken)(struct rdma_poll_group *group);

    /* False: refused at once; error tells why, done() is not called. */
    bool (*connect)(struct rdma_poll_group *group, struct rdma_request *request);
    /* The connection's new transport, like `tcp`, which belongs to it from now on. NULL: out of
     * memory; nothing has changed. */
    struct transport *(*wrap)(struct rdma_channel *channel, struct transport *tcp);
    /* A channel that nobody wants any more, instead of wrap(). */
    void (*drop)(struct rdma_channel *channel);
    /* Of a transport that wrap() returned. False: the connection has gone on without the channel.
     */
    bool (*stats)(const struct transport *transport, struct rdma_stats *stats);
};

/* Of rdma-ext/, where it is built. */
extern const struct rdma_ops rdma_verbs_ops;

#endif
