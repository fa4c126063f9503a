/*
 * The verbs that both ends of a channel need: a device with a port and a GID to send from, and
 * queue pairs connected by the attributes of the other end. All calls here may take long (they
 * resolve addresses and pin memory): never call them from a worker's loop.
 */
#ifndef VELLUM_RDMA_VERBS_H
#define VELLUM_RDMA_VERBS_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "protocol/rdma_end.h"

#define RDMA_MESSAGE_MAX 160

struct rdma_device {
    struct ibv_context *context;
    struct ibv_pd *pd;
    const char *name; /* the context's */
    int index; /* the system's, which changes when a device of this name comes back; -1: unknown */
    int port_count;
    uint8_t port;
    bool is_ethernet;
    bool has_windows;  /* of type 2: bound to a queue pair */
    unsigned ends_key; /* bits of wc_flags: a message has invalidated a key of this end */
    int gid_index;
    union ibv_gid gid;
    uint16_t lid;
    enum ibv_mtu mtu;
    int max_cqe, max_srq_wr, max_qp_wr, max_read_atomic, max_sge;
};

/* Which device to choose. */
struct rdma_choice {
    const char *name;       /* names, separated by spaces or commas; NULL or empty: any device */
    int port;               /* 0: the first that is active */
    int gid_index;          /* -1: the best one */
    const uint8_t *address; /* the GID must be these 16 bytes; NULL: any */
    /* Whether to skip the port or, with port 0, the whole device. NULL: skip none. */
    bool (*is_left_out)(void *arg, const char *name, int index, uint8_t port);
    void *arg;
};

/* Opens the first suitable device. False: there is none, and `message` says why. */
bool rdma_device_open(struct rdma_device *device, const struct rdma_choice *choice,
                      char message[RDMA_MESSAGE_MAX]);
void rdma_device_close(struct rdma_device *device);

/* The devices of this system. False: they cannot be listed, or are more than `size`. */
struct rdma_listed {
    char name[IBV_SYSFS_NAME_MAX];
    int index;
};
bool rdma_devices_list(struct rdma_listed *listed, uint32_t size, uint32_t *count);

/* Selects the GID of its port that is this address; unchanged if there is none. */
void rdma_device_speak_from(struct rdma_device *device, const uint8_t address[16]);

/* Lists the GIDs of its port, each once, and at most `size`. False: the query failed. */
bool rdma_device_gids(const struct rdma_device *device, uint8_t gids[][16], uint32_t size,
                      uint32_t *count);

/* Writes "memory cannot be pinned" or "queues cannot be had", with the reason by errno. Some
 * devices pin the memory of queues as well. If the reason may be the limit on locked memory,
 * which applies to all processes but root's, the message says so. */
extern const char rdma_no_pin[];
void rdma_memory_problem(char message[RDMA_MESSAGE_MAX], const char *what, int error);

/* The port's current state: whether it is active, its LID and MTU. */
struct rdma_port {
    bool is_active;
    uint16_t lid;
    enum ibv_mtu mtu;
};
/* False: the query failed, `port` is unchanged. */
bool rdma_device_look(const struct rdma_device *device, struct rdma_port *port);

uint32_t rdma_mtu_bytes(enum ibv_mtu mtu);

/* A reliable connection's queue pair, initialised. `attributes` holds completion queues, the shared
 * receive queue if there is one, and the wanted capacities; gets those given. The inline size is
 * lowered to what the device has. `access`: what the other end may do to our memory by this queue
 * pair, of IBV_ACCESS_REMOTE_...; 0: nothing. NULL: failed. */
struct ibv_qp *rdma_qp_make(const struct rdma_device *device, struct ibv_qp_init_attr *attributes,
                            unsigned access);

/* Fills in the attributes that the other end needs, except frame_bytes and credits. */
void rdma_qp_describe(const struct rdma_device *device, const struct ibv_qp *qp, uint32_t psn,
                      struct rdma_end *end);

#define RDMA_USUAL_RNR_TIMER 12 /* 0.64 ms */

/* Makes it ready to send and receive. `min_rnr_timer`: the code of the time that the other end
 * waits before each of its repetitions, if it finds no receive. Returns 0 or an errno. */
int rdma_qp_connect(const struct rdma_device *device, struct ibv_qp *qp,
                    const struct rdma_end *ours, const struct rdma_end *theirs,
                    uint8_t min_rnr_timer);

#endif
