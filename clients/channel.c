/*
 * The client's end of a channel. Threads: see channel.h.
 *
 * Invariants:
 * 1. All receives are posted, except for those of frames in the link's inbox.
 * 2. `is_armed`: the device will make the descriptor readable at the next completion.
 */
#include "clients/channel.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rdma-ext/link.h"

#define FRAME_BYTES 4096
#define CREDITS RDMA_LINK_WINDOW
#define SEND_BUFFERS 16
#define MEMORY_BYTES ((CREDITS + SEND_BUFFERS) * FRAME_BYTES)
#define POLL_BATCH 16
#define POLLS_PER_LOOK 256 /* reading the clock may take longer than many polls */
#define WR_RECEIVE (1ull << 63)
#define WR_END (1ull << 62) /* the end of a window, whose number is in the lower bits */

struct vellum_channel {
    struct rdma_link link;
    struct rdma_device device;
    struct ibv_comp_channel *events;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr, *ring; /* ring: of the receives' memory, in mode write */
    char *memory;             /* send buffers, then receives or ring */
    struct rdma_end ours;
    struct vellum_windows windows;
    uint32_t max_inline, spin_us;
    int tcp, wakes; /* wakes: readable at a completion, and at an event of the device */
    bool is_closed, is_armed;
    bool ends_grant; /* the server must be notified */
};

static uint64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- making ---- */

/* The GID of the socket's local address. False: it has none. */
static bool gid_of_socket(int tcp, uint8_t gid[16])
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    if (getsockname(tcp, (struct sockaddr *)&address, &len) != 0)
        return false;
    if (address.ss_family == AF_INET6) {
        memcpy(gid, &((struct sockaddr_in6 *)&address)->sin6_addr, 16);
    } else if (address.ss_family == AF_INET) {
        memset(gid, 0, 10);
        gid[10] = gid[11] = 0xff;
        memcpy(gid + 12, &((struct sockaddr_in *)&address)->sin_addr, 4);
    } else {
        return false;
    }
    return true;
}

/* A Unix socket has no address, and an InfiniBand GID is not an address: then any device is
 * suitable. */
static bool open_device(struct vellum_channel *channel,
                        const struct vellum_channel_options *options,
                        char message[RDMA_MESSAGE_MAX])
{
    uint8_t gid[16];
    struct rdma_choice choice = {.name = options->device, .gid_index = -1};
    if (gid_of_socket(channel->tcp, gid)) {
        choice.address = gid;
        if (rdma_device_open(&channel->device, &choice, message))
            return true;
        choice.address = NULL;
    }
    return rdma_device_open(&channel->device, &choice, message);
}

static char *receive_memory(const struct vellum_channel *channel, uint32_t buffer)
{
    return channel->memory + (size_t)(SEND_BUFFERS + buffer) * FRAME_BYTES;
}

static bool make_memory(struct vellum_channel *channel)
{
    channel->memory =
        mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (channel->memory == MAP_FAILED) {
        channel->memory = NULL;
        return false;
    }
    channel->mr =
        ibv_reg_mr(channel->device.pd, channel->memory, MEMORY_BYTES, IBV_ACCESS_LOCAL_WRITE);
    if (channel->mr == NULL || channel->ours.mode != RDMA_MODE_WRITE)
        return channel->mr != NULL;
    channel->ring =
        ibv_reg_mr(channel->device.pd, receive_memory(channel, 0), CREDITS * FRAME_BYTES,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    return channel->ring != NULL;
}

static bool add_to_wakes(struct vellum_channel *channel, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0 &&
           epoll_ctl(channel->wakes, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* The device's context, and so its events, are the channel's alone. */
static bool make_events(struct vellum_channel *channel)
{
    channel->events = ibv_create_comp_channel(channel->device.context);
    channel->wakes = epoll_create1(EPOLL_CLOEXEC);
    return channel->events != NULL && channel->wakes >= 0 &&
           add_to_wakes(channel, channel->events->fd) &&
           add_to_wakes(channel, channel->device.context->async_fd);
}

static bool make_queues(struct vellum_channel *channel)
{
    struct ibv_qp_init_attr attributes = {.cap = rdma_link_capacity()};
    attributes.cap.max_recv_wr = CREDITS;
    attributes.cap.max_send_wr +=
        vellum_windows_sends(channel->device.has_windows, RDMA_LINK_SLOTS);
    uint32_t completions = CREDITS + attributes.cap.max_send_wr;
    if (!make_events(channel))
        return false;
    channel->cq =
        ibv_create_cq(channel->device.context, (int)completions, NULL, channel->events, 0);
    if (channel->cq == NULL)
        return false;
    attributes.send_cq = attributes.recv_cq = channel->cq;
    channel->qp = rdma_qp_make(&channel->device, &attributes,
                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    channel->max_inline = attributes.cap.max_inline_data;
    channel->windows = (struct vellum_windows){
        .are_offered = channel->device.has_windows, .qp = channel->qp, .wr_end = WR_END};
    return channel->qp != NULL;
}

static void post_receive(struct rdma_link *link, uint32_t buffer)
{
    struct vellum_channel *channel = (struct vellum_channel *)link;
    struct ibv_sge piece = {.addr = (uintptr_t)receive_memory(channel, buffer),
                            .length = FRAME_BYTES,
                            .lkey = channel->mr->lkey};
    struct ibv_recv_wr *bad,
        request = {.wr_id = WR_RECEIVE | buffer, .sg_list = &piece, .num_sge = 1};
    if (channel->ours.mode == RDMA_MODE_WRITE) /* its payload is in the ring */
        request.num_sge = 0;
    if (channel->is_closed)
        return;
    if (ibv_post_recv(channel->qp, &request, &bad) != 0)
        channel->is_closed = true;
}

static void describe(struct vellum_channel *channel, struct rdma_end *ours)
{
    uint32_t psn = 0;
    ssize_t got = getrandom(&psn, sizeof psn, 0);
    (void)got; /* any number will do */
    rdma_qp_describe(&channel->device, channel->qp, psn & 0xffffff, &channel->ours);
    channel->ours.frame_bytes = FRAME_BYTES;
    channel->ours.credits = CREDITS;
    if (channel->ring != NULL) {
        channel->ours.ring = (uintptr_t)channel->ring->addr;
        channel->ours.ring_key = channel->ring->rkey;
    }
    *ours = channel->ours;
}

struct vellum_channel *vellum_channel_new(int tcp, const struct vellum_channel_options *options,
                                          struct rdma_end *ours, char message[RDMA_MESSAGE_MAX])
{
    struct vellum_channel *channel = calloc(1, sizeof *channel);
    if (channel == NULL) {
        snprintf(message, RDMA_MESSAGE_MAX, "out of memory");
        return NULL;
    }
    channel->tcp = tcp;
    channel->wakes = -1;
    channel->spin_us = options->spin_us;
    channel->ours.mode = options->mode;
    if (!open_device(channel, options, message)) {
        free(channel);
        return NULL;
    }
    bool has_memory = make_memory(channel);
    if (!has_memory || !make_queues(channel)) {
        rdma_memory_problem(message, has_memory ? "queues cannot be had" : rdma_no_pin, errno);
        vellum_channel_free(channel);
        return NULL;
    }
    channel->link.post_receive = post_receive;
    channel->link.takes = RDMA_TAKES(RDMA_FRAME_DATA) | RDMA_TAKES(RDMA_FRAME_CREDIT) |
                          RDMA_TAKES(RDMA_FRAME_PLACED) | RDMA_TAKES(RDMA_FRAME_END) |
                          RDMA_TAKES(RDMA_FRAME_RELEASE);
    for (uint32_t i = 0; i < CREDITS; i++)
        post_receive(&channel->link, i);
    describe(channel, ours);
    return channel;
}

bool vellum_channel_open(struct vellum_channel *channel, const struct rdma_end *theirs,
                         char message[RDMA_MESSAGE_MAX])
{
    struct rdma_end peer = *theirs;
    peer.mode = channel->ours.mode; /* as requested */
    const char *missing = rdma_end_missing(&peer);
    if (missing != NULL) {
        snprintf(message, RDMA_MESSAGE_MAX, "the server's answer lacks %s", missing);
        return false;
    }
    int error =
        rdma_qp_connect(&channel->device, channel->qp, &channel->ours, &peer, RDMA_USUAL_RNR_TIMER);
    if (error != 0) {
        snprintf(message, RDMA_MESSAGE_MAX, "the server cannot be reached: %s", strerror(error));
        return false;
    }
    struct rdma_link *link = &channel->link;
    link->buffers = channel->memory;
    link->lkey = channel->mr->lkey;
    link->buffer_bytes = FRAME_BYTES;
    link->buffer_count = SEND_BUFFERS;
    link->ring = receive_memory(channel, 0);
    link->slot_bytes = FRAME_BYTES;
    rdma_link_begin(link, channel->qp, channel->max_inline, CREDITS, &peer);
    return true;
}

bool vellum_channel_is_stopped(const struct vellum_channel *channel)
{
    return channel->qp == NULL;
}

/* Windows are freed first: the queue pair and their regions cannot be freed before them. */
void vellum_channel_stop(struct vellum_channel *channel)
{
    channel->is_closed = channel->link.has_failed = true;
    vellum_windows_free(&channel->windows);
    if (channel->qp != NULL)
        ibv_destroy_qp(channel->qp);
    channel->qp = NULL;
}

void vellum_channel_free(struct vellum_channel *channel)
{
    if (channel == NULL)
        return;
    vellum_channel_stop(channel);
    if (channel->cq != NULL)
        ibv_destroy_cq(channel->cq);
    if (channel->wakes >= 0)
        close(channel->wakes);
    if (channel->events != NULL)
        ibv_destroy_comp_channel(channel->events);
    if (channel->ring != NULL)
        ibv_dereg_mr(channel->ring);
    if (channel->mr != NULL)
        ibv_dereg_mr(channel->mr);
    if (channel->memory != NULL)
        munmap(channel->memory, MEMORY_BYTES);
    rdma_device_close(&channel->device);
    free(channel);
}

/* ---- moving ---- */

static bool take_frame(struct vellum_channel *channel, const struct ibv_wc *completion)
{
    uint32_t buffer = (uint32_t)completion->wr_id;
    if (channel->ours.mode == RDMA_MODE_WRITE)
        return completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
               rdma_link_written(&channel->link, be32toh(completion->imm_data), buffer);
    return rdma_link_received(&channel->link, receive_memory(channel, buffer), completion->byte_len,
                              buffer);
}

/* Soft-RoCE reports by another bit that the server has invalidated a key; the key is the right
 * one. */
#define ENDS_KEY (IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK)

/* Handles what a frame reports about windows. False: it reports one that does not exist. */
static bool take_releases(struct vellum_channel *channel, const struct ibv_wc *completion)
{
    if (channel->ours.mode == RDMA_MODE_SEND && (completion->wc_flags & ENDS_KEY) != 0)
        vellum_windows_ended_by_server(&channel->windows, completion->invalidated_rkey);
    while (channel->link.released > 0) {
        channel->link.released--;
        if (!vellum_windows_release(&channel->windows))
            return false;
    }
    return true;
}

static void received(struct vellum_channel *channel, const struct ibv_wc *completion)
{
    if (!take_frame(channel, completion) || !take_releases(channel, completion) ||
        channel->link.has_ended)
        channel->is_closed = true;
}

static void completed(struct vellum_channel *channel, const struct ibv_wc *completion)
{
    if (completion->status != IBV_WC_SUCCESS)
        channel->is_closed = true;
    else if ((completion->wr_id & WR_RECEIVE) != 0)
        received(channel, completion);
    else if ((completion->wr_id & WR_END) != 0)
        vellum_windows_ended(&channel->windows, completion->wr_id);
    else
        rdma_link_sent(&channel->link, completion->wr_id);
}

/* Returns the number of completions. */
static int take_completions(struct vellum_channel *channel)
{
    struct ibv_wc completions[POLL_BATCH];
    int got = ibv_poll_cq(channel->cq, POLL_BATCH, completions);
    for (int i = 0; i < got; i++)
        completed(channel, &completions[i]);
    if (got < 0 || channel->link.has_failed)
        channel->is_closed = true;
    if (got > 0 && !channel->is_closed)
        rdma_link_tell(&channel->link);
    return got;
}

bool vellum_channel_poll(struct vellum_channel *channel)
{
    while (take_completions(channel) == POLL_BATCH) {
    }
    return !channel->is_closed;
}

/* Reports the end of a grant, before anything else is sent. */
static bool has_settled(struct vellum_channel *channel)
{
    if (channel->ends_grant && rdma_link_control(&channel->link, RDMA_FRAME_GRANT, NULL, 0))
        channel->ends_grant = false;
    return !channel->ends_grant;
}

ssize_t vellum_channel_write(struct vellum_channel *channel, const struct iovec *vectors, int count)
{
    if (!vellum_channel_writable(channel) && !vellum_channel_poll(channel))
        return CLIENT_CHANNEL_CLOSED;
    ssize_t sent =
        has_settled(channel) ? (ssize_t)rdma_link_send(&channel->link, vectors, count) : 0;
    return channel->link.has_failed ? CLIENT_CHANNEL_CLOSED : sent;
}

ssize_t vellum_channel_read(struct vellum_channel *channel, void *to, size_t size)
{
    if (!rdma_link_has_input(&channel->link))
        vellum_channel_poll(channel);
    size_t taken = rdma_link_read(&channel->link, to, size);
    channel->is_closed = channel->is_closed || channel->link.has_failed;
    if (channel->is_closed)
        return taken > 0 ? (ssize_t)taken : CLIENT_CHANNEL_CLOSED;
    if (taken > 0)
        rdma_link_tell(&channel->link);
    return (ssize_t)taken;
}

bool vellum_channel_readable(const struct vellum_channel *channel)
{
    return channel->is_closed || rdma_link_has_input(&channel->link);
}

bool vellum_channel_writable(const struct vellum_channel *channel)
{
    return channel->is_closed ||
           (rdma_link_has_room(&channel->link) && vellum_windows_can_pull(&channel->windows));
}

/* ---- memory that the server reads and writes ---- */

struct ibv_mr *vellum_channel_register(struct vellum_channel *channel, void *memory, size_t size)
{
    int access = channel->windows.are_offered ? IBV_ACCESS_MW_BIND
                                              : IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    return ibv_reg_mr(channel->device.pd, memory, size, IBV_ACCESS_LOCAL_WRITE | access);
}

bool vellum_channel_has_windows(const struct vellum_channel *channel)
{
    return channel->windows.are_offered;
}

static bool send_reference(struct vellum_channel *channel, enum rdma_frame_type type,
                           const struct rdma_reference *reference)
{
    char payload[RDMA_REFERENCE_BYTES];
    rdma_reference_write(payload, reference);
    return rdma_link_control(&channel->link, type, payload, sizeof payload);
}

bool vellum_channel_pull(struct vellum_channel *channel, const struct vellum_span *span)
{
    struct rdma_reference reference;
    if (!has_settled(channel) || !vellum_channel_writable(channel) || channel->is_closed)
        return false;
    if (vellum_windows_pull(&channel->windows, span, &reference) &&
        send_reference(channel, RDMA_FRAME_PULL, &reference))
        return true;
    channel->is_closed = true;
    return false;
}

/* That windows have ended might never be confirmed on a closed channel. */
bool vellum_channel_is_revoking(struct vellum_channel *channel)
{
    if (channel->windows.ending == 0 || channel->qp == NULL)
        return false;
    if (!channel->is_closed)
        return true;
    vellum_channel_poll(channel);
    vellum_channel_stop(channel);
    return false;
}

bool vellum_channel_grant(struct vellum_channel *channel, const struct vellum_span *memory)
{
    if (!rdma_link_has_room(&channel->link) || channel->is_closed)
        return false;
    channel->ends_grant = false;
    if (vellum_windows_grant(&channel->windows, memory, &channel->link.grant) &&
        send_reference(channel, RDMA_FRAME_GRANT, &channel->link.grant))
        return true;
    channel->is_closed = true;
    return false;
}

bool vellum_channel_placed(struct vellum_channel *channel, struct rdma_place *place)
{
    if (!rdma_link_take_placed(&channel->link, place)) {
        channel->is_closed = channel->is_closed || channel->link.has_failed;
        return false;
    }
    rdma_link_tell(&channel->link);
    return true;
}

void vellum_channel_end_grant(struct vellum_channel *channel, bool is_used)
{
    channel->link.grant.length = 0;
    channel->ends_grant = !is_used;
    channel->is_closed = !vellum_windows_end_grant(&channel->windows) || channel->is_closed;
    has_settled(channel);
}

/* ---- waiting ---- */

int vellum_channel_descriptor(const struct vellum_channel *channel)
{
    return channel->wakes;
}

static bool is_fatal(enum ibv_event_type type)
{
    return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
           type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_CQ_ERR ||
           type == IBV_EVENT_DEVICE_FATAL;
}

/* There was none to read: because none has come, or because the device has been removed. */
static void note_missing_event(struct vellum_channel *channel)
{
    if (errno != EAGAIN && errno != EINTR)
        channel->is_closed = true;
}

static void take_device_events(struct vellum_channel *channel)
{
    struct ibv_async_event event;
    while (ibv_get_async_event(channel->device.context, &event) == 0) {
        channel->is_closed = channel->is_closed || is_fatal(event.event_type);
        ibv_ack_async_event(&event);
    }
    note_missing_event(channel);
}

/* There is one event for each arming: asking at other times would waste a system call. If there is
 * none yet, something else may have woken us. */
static void take_event(struct vellum_channel *channel)
{
    struct ibv_cq *cq;
    void *context;
    if (!channel->is_armed)
        return;
    if (ibv_get_cq_event(channel->events, &cq, &context) != 0) {
        note_missing_event(channel);
        take_device_events(channel);
        return;
    }
    ibv_ack_cq_events(cq, 1);
    channel->is_armed = false;
}

bool vellum_channel_sleep(struct vellum_channel *channel)
{
    take_event(channel);
    if (!channel->is_armed && ibv_req_notify_cq(channel->cq, 0) == 0)
        channel->is_armed = true;
    if (!channel->is_armed)
        channel->is_closed = true; /* the descriptor would never be readable */
    return take_completions(channel) == 0 && !channel->is_closed;
}

/* The server sends nothing over TCP: if the socket is readable, the server has closed it. */
void vellum_channel_look(struct vellum_channel *channel)
{
    char byte;
    ssize_t got = recv(channel->tcp, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        channel->is_closed = true;
}

/* False: nothing has moved within spin_us. */
static bool spin(struct vellum_channel *channel)
{
    uint64_t now_us, spin_until = 0;
    do {
        for (int i = 0; i < POLLS_PER_LOOK; i++)
            if (channel->is_closed || take_completions(channel) > 0)
                return true;
        now_us = clock_us();
        if (spin_until == 0)
            spin_until = now_us + channel->spin_us;
    } while (now_us < spin_until);
    return false;
}

void vellum_channel_wait(struct vellum_channel *channel, int timeout_ms)
{
    if (spin(channel) || !vellum_channel_sleep(channel))
        return;
    struct pollfd ready[] = {{.fd = channel->wakes, .events = POLLIN},
                             {.fd = channel->tcp, .events = POLLIN}};
    poll(ready, 2, timeout_ms);
    if (ready[1].revents != 0)
        vellum_channel_look(channel);
    take_completions(channel);
}
