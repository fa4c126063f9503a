/*
 * The interface between the server and an implementation of channels (protocol/RDMA.md). There
 * is one, in rdma-ext/, where the system has verbs; main passes it on. Everywhere else
 * server->rdma_ops is NULL, and the RDMA commands report that.
 *
 * A channel is set up beside a connection's TCP transport and then wraps it: bytes go by TCP until
 * the client's first frame arrives, and by the channel from then on. When TCP ends, so does the
 * channel.
 *
 * Threads: a poll group and its channels belong to their worker's thread. Slow operations run on a
 * thread of the implementation's own. `info` may be called by any thread.
 */
#ifndef VELLUM_RDMA_H
#define VELLUM_RDMA_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/rdma_end.h"
#include "server/core/worker_inbox.h"
#include "server/net/transport.h"

struct rdma_channel;
struct rdma_devices;    /* all devices used by the process */
struct rdma_poll_group; /* a worker's queues on all of them */

#define RDMA_ERROR_MAX 160
#define RDMA_GIDS_MAX 64
#define RDMA_DEVICES_MAX 16 /* the most device ports in use */
#define RDMA_NAME_MAX 64    /* bytes of a device's name, with its zero byte */

struct rdma_options {
    const char *device;        /* names, separated by spaces or commas; empty: all usable ones */
    int port, gid_index;       /* of each device; 0, -1: all usable ones */
    uint32_t max_channels;     /* of all workers and devices together */
    uint64_t max_pinned_bytes; /* likewise */
    uint32_t max_client_bytes; /* of store pages held by the transfers of one channel */
    /* The range of store pages that contains an address. It is registered as a whole at its first
     * use, and stays until stop(). False: no range. Called by the implementation's thread. */
    bool (*pages_around)(void *arg, const void *address, void **start, size_t *size);
    void *pages_arg;
    /* Logs a warning; any thread. */
    void (*warn)(void *arg, const char *text);
    void *warn_arg;
};

/* A port of a device. */
struct rdma_port_info {
    char device[RDMA_NAME_MAX]; /* empty: no device is in use */
    uint32_t port;
    bool is_active, is_ethernet;
    unsigned modes;      /* bit n: enum rdma_mode n is offered */
    struct rdma_end end; /* gid, lid, mtu, frame_bytes, credits */
    uint64_t channels;
};

struct rdma_info {
    struct rdma_port_info chosen; /* for the connection that asked */
    /* Source addresses of its channels: their connection's own address, else end.gid. */
    uint8_t gids[RDMA_GIDS_MAX][16];
    uint32_t gid_count;
    struct rdma_port_info ports[RDMA_DEVICES_MAX]; /* all in use */
    uint32_t port_count;
    uint64_t channels, max_channels, pinned_bytes, max_pinned_bytes;
    uint64_t opened, refused, breaches, broken;
    uint64_t failures; /* of the device: calls refused, queues in error */
    uint64_t frames_in, frames_out, bytes_in, bytes_out, copied_bytes, placed_bytes, pulled_bytes;
    uint64_t registered_bytes;             /* of store pages */
    uint64_t held_bytes, max_client_bytes; /* of those, by transfers in progress */
};

struct rdma_stats {
    enum rdma_mode mode;
    const char *state; /* "pending": no frame has arrived yet; "open" */
    uint32_t qpn, credits;
    uint64_t frames_in, frames_out, bytes_in, bytes_out;
};

/* The addresses a channel is to connect, as GIDs: IPv4 in its mapped form. */
struct rdma_path {
    uint8_t local[16]; /* the server's, as used by the connection */
    uint8_t peer[16];
    bool has_local, has_peer;
};

/* RDMA CONNECT. Must live until done() is called, on the worker's thread. */
struct rdma_request {
    struct rdma_end theirs, ours;
    struct rdma_path path;
    bool is_peers_own;            /* its GID is the connection's peer address, or need not be */
    struct rdma_channel *channel; /* NULL: it failed */
    char error[RDMA_ERROR_MAX];
    /* The channel is not wanted any more: if it is not being connected yet, it will fail. */
    _Atomic bool is_given_up;
    void (*done)(struct rdma_request *request);
};

struct rdma_ops {
    /* Opens the devices. NULL: no usable device; the reason is in message. */
    struct rdma_devices *(*start)(const struct rdma_options *options, char message[RDMA_ERROR_MAX]);
    /* After the end of all workers' threads: no more messages are posted to them. */
    void (*halt)(struct rdma_devices *devices);
    /* When the posted messages have been visited: frees everything, including poll groups. */
    void (*stop)(struct rdma_devices *devices);
    /* `path`: of the connection that would get a channel; NULL: none. */
    void (*info)(struct rdma_devices *devices, const struct rdma_path *path,
                 struct rdma_info *info);

    struct rdma_poll_group *(*attach)(struct rdma_devices *devices, struct worker *worker);
    /* Becomes readable when there is work after sleep(). */
    int (*descriptor)(const struct rdma_poll_group *group);
    /* Handles completions and calls the transports that are ready. True: there was progress, or
     * there is more to do. */
    bool (*poll)(struct rdma_poll_group *group);
    /* No poll will follow until the descriptor is readable. False: poll once more first. */
    bool (*sleep)(struct rdma_poll_group *group);

    /* The descriptor is readable. */
    void (*woken)(struct rdma_poll_group *group);
    /* What closed connections have sent has arrived. */
    bool (*has_ended)(const struct rdma_poll_group *group);

    /* False: refused at once; the reason is in error, done() is not called. */
    bool (*connect)(struct rdma_poll_group *group, struct rdma_request *request);
    /* The connection's new transport, which wraps `tcp` and owns it. NULL: out of memory; nothing
     * has changed. */
    struct transport *(*wrap)(struct rdma_channel *channel, struct transport *tcp);
    /* Instead of wrap(): the channel is not wanted any more. */
    void (*drop)(struct rdma_channel *channel);
    /* Of a transport returned by wrap(). False: the connection continues without the channel. */
    bool (*stats)(const struct transport *transport, struct rdma_stats *stats);
};

/* Implemented by rdma-ext/, where it is built. */
extern const struct rdma_ops rdma_verbs_ops;

#endif
