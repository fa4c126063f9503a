/*
 * A channel as its connection's transport.
 *
 *     TCP, channel pending --first frame--> channel open --TCP ends, breach, error--> broken
 *              '--bytes over TCP--> TCP from then on
 *
 * When a connection closes an open channel, its last replies and END are sent before TCP is closed.
 * END waits for room and for a credit, but not without end; if TCP ends first, so does the channel.
 */
#include "rdma-ext/channel.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>

#include "rdma-ext/failure.h"
#include "rdma-ext/page_registration.h"
#include "rdma-ext/completion_loop.h"

#define PAGE_PIECES 64 /* store pages in one part of a value */

#define COUNT(channel, field, amount) rdma_count(&(channel)->worker->counters.field, amount)

static struct rdma_transport *self_of(struct transport *transport)
{
    return (struct rdma_transport *)transport;
}

/* Drops the channel; the connection continues over TCP. */
static void withdraw(struct rdma_transport *self)
{
    assert(self->channel != NULL && !self->is_open);
    rdma_end_channel(self->channel);
    self->channel = NULL;
}

static void open_channel(struct rdma_transport *self)
{
    assert(self->channel != NULL && !self->is_open);
    self->is_open = true;
    self->base.kind = "rdma";
    self->tcp->ops->want(self->tcp, TRANSPORT_READABLE);
}

void rdma_channel_break(struct rdma_channel *channel)
{
    if (channel->is_broken || channel->is_gone)
        return;
    channel->is_broken = true;
    if (channel->is_ending)
        rdma_end_channel(channel);
    else if (channel->transport != NULL && !channel->transport->is_open)
        withdraw(channel->transport);
    else
        rdma_note_ready(channel);
}

/* Closes the connection, whatever state the channel is in. */
static void breach(struct rdma_channel *channel)
{
    if (channel->is_broken)
        return;
    COUNT(channel, breaches, 1);
    if (channel->transport != NULL && !channel->transport->is_open)
        open_channel(channel->transport);
    rdma_channel_break(channel);
}

unsigned rdma_channel_readiness(const struct rdma_channel *channel)
{
    if (channel->is_broken)
        return TRANSPORT_READABLE | TRANSPORT_WRITABLE | TRANSPORT_ENDED;
    bool has_input = rdma_link_has_input(&channel->link) && !channel->awaits_stage;
    unsigned ready = has_input ? TRANSPORT_READABLE : 0;
    bool has_room = channel->placing == NULL && rdma_link_has_room(&channel->link);
    return ready | (has_room ? TRANSPORT_WRITABLE : 0);
}

/* ---- receiving ---- */

/* Whether the client has invalidated a key, which no correct client does. */
static bool ends_key(struct rdma_channel *channel, const struct ibv_wc *completion)
{
    if ((completion->wc_flags & channel->worker->service->device.ends_key) == 0)
        return false;
    rdma_key_ended(channel->worker, completion->invalidated_rkey);
    return true;
}

static bool take_frame(struct rdma_channel *channel, const struct ibv_wc *completion)
{
    uint32_t buffer = (uint32_t)completion->wr_id;
    if (channel->link.mode == RDMA_MODE_WRITE)
        return completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
               rdma_link_written(&channel->link, be32toh(completion->imm_data), buffer);
    return rdma_link_received(&channel->link, rdma_received_frame(channel->worker, buffer),
                              completion->byte_len, buffer);
}

/* The connection is closed: nothing is read any more, but END may wait for a credit. */
static void receive_at_end(struct rdma_channel *channel, const struct ibv_wc *completion,
                           bool is_breach)
{
    struct rdma_link *link = &channel->link;
    bool is_good = !channel->has_sent_end && !is_breach && take_frame(channel, completion);
    if (is_good)
        rdma_link_drop_input(link);
    else
        link->post_receive(link, (uint32_t)completion->wr_id);
    if (is_good)
        rdma_channel_finish(channel);
    else if (!channel->has_sent_end)
        breach(channel);
}

void rdma_channel_received(struct rdma_channel *channel, const struct ibv_wc *completion)
{
    struct rdma_transport *transport = channel->transport;
    struct rdma_link *link = &channel->link;
    uint64_t bytes = link->bytes_in;
    bool is_breach = ends_key(channel, completion);
    if (channel->is_ending) {
        receive_at_end(channel, completion, is_breach);
        return;
    }
    if (is_breach || transport == NULL || channel->is_broken || !take_frame(channel, completion)) {
        link->post_receive(link, (uint32_t)completion->wr_id);
        breach(channel);
        return;
    }
    COUNT(channel, frames_in, 1);
    COUNT(channel, bytes_in, link->bytes_in - bytes);
    if (!transport->is_open)
        open_channel(transport);
    rdma_note_touched(channel);
    rdma_note_ready(channel);
}

static ssize_t read_channel(struct rdma_channel *channel, char *to, size_t size)
{
    if (channel->is_broken)
        return TRANSPORT_CLOSED;
    size_t taken = rdma_link_read(&channel->link, to, size);
    rdma_note_touched(channel); /* a refused work request has ended the link inside */
    if (channel->link.has_failed && channel->link.post_error == 0) { /* an invalid reference */
        breach(channel);
        return TRANSPORT_CLOSED;
    }
    COUNT(channel, copied_bytes, taken);
    return taken > 0 ? (ssize_t)taken : TRANSPORT_AGAIN;
}

static ssize_t transport_read(struct transport *transport, void *to, size_t size)
{
    struct rdma_transport *self = self_of(transport);
    if (self->is_open)
        return read_channel(self->channel, to, size);
    ssize_t count = self->tcp->ops->read(self->tcp, to, size);
    if (count > 0 && self->channel != NULL) /* the client uses TCP instead */
        withdraw(self);
    return count;
}

/* Splits the vectors into pieces of registered memory, up to the first one that is not
 * registered. */
static int find_pieces(struct rdma_channel *channel, const struct iovec *vectors, int count,
                       struct ibv_sge pieces[PAGE_PIECES])
{
    int found = 0;
    for (; found < count && found < PAGE_PIECES; found++) {
        const struct iovec *vector = &vectors[found];
        struct ibv_sge *piece = &pieces[found];
        if (!rdma_pages_key(channel->worker, vector->iov_base, vector->iov_len, &piece->lkey))
            break;
        piece->addr = (uintptr_t)vector->iov_base;
        piece->length = (uint32_t)vector->iov_len;
    }
    return found;
}

static size_t length_of(const struct iovec *vectors, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += vectors[i].iov_len;
    return total;
}

/* If the next input is a reference, READs it directly into the store's pages. */
static ssize_t transport_read_vectors(struct transport *transport, const struct iovec *vectors,
                                      int count)
{
    struct rdma_transport *self = self_of(transport);
    struct rdma_channel *channel = self->channel;
    struct ibv_sge pieces[PAGE_PIECES];
    int found = 0;
    if (!self->is_open || channel->is_broken)
        return transport_read(transport, vectors[0].iov_base, vectors[0].iov_len);
    size_t pulled = rdma_link_pulled(&channel->link, length_of(vectors, count));
    COUNT(channel, pulled_bytes, pulled);
    rdma_note_touched(channel);
    if (pulled > 0)
        return (ssize_t)pulled;
    if (rdma_link_can_pull(&channel->link))
        found = find_pieces(channel, vectors, count, pieces);
    if (found == 0)
        return read_channel(channel, vectors[0].iov_base, vectors[0].iov_len);
    rdma_link_pull(&channel->link, pieces, found);
    rdma_count_held(channel);
    rdma_note_touched(channel);
    return TRANSPORT_AGAIN;
}

static bool transport_refers(struct transport *transport)
{
    struct rdma_transport *self = self_of(transport);
    struct rdma_channel *channel = self->channel;
    return self->is_open && !channel->is_broken && rdma_link_can_pull(&channel->link);
}

static bool transport_fills(struct transport *transport)
{
    struct rdma_channel *channel = self_of(transport)->channel;
    return channel != NULL && channel->link.pull.is_direct;
}

static bool transport_let_go(struct transport *transport, void (*done)(void *arg), void *arg)
{
    struct rdma_channel *channel = self_of(transport)->channel;
    if (channel == NULL || !channel->link.pull.is_direct || !channel->link.pull.is_under_way)
        return true;
    channel->let_go = done;
    channel->let_go_arg = arg;
    return false;
}

/* ---- sending ---- */

/* A refused work request has no completion that could end the channel: the next poll ends it. */
static void note_refusal(struct rdma_channel *channel)
{
    if (channel->link.post_error != 0)
        rdma_note_touched(channel);
}

static bool cannot_send(const struct rdma_channel *channel)
{
    return channel->is_broken || channel->link.has_failed;
}

static ssize_t refuse_to_send(struct rdma_channel *channel)
{
    note_refusal(channel);
    return channel->link.post_error != 0 && !channel->is_broken ? TRANSPORT_AGAIN
                                                                : TRANSPORT_CLOSED;
}

static ssize_t transport_write(struct transport *transport, const struct iovec *vectors, int count)
{
    struct rdma_transport *self = self_of(transport);
    struct rdma_channel *channel = self->channel;
    if (!self->is_open)
        return self->tcp->ops->write(self->tcp, vectors, count);
    if (cannot_send(channel))
        return refuse_to_send(channel);
    uint64_t frames = channel->link.frames_out;
    size_t sent = rdma_link_send(&channel->link, vectors, count);
    COUNT(channel, frames_out, channel->link.frames_out - frames);
    COUNT(channel, bytes_out, sent);
    COUNT(channel, copied_bytes, sent);
    note_refusal(channel);
    return sent > 0 ? (ssize_t)sent : TRANSPORT_AGAIN;
}

/* Updates the count of bytes in pages that READs and WRITEs in flight refer to. */
void rdma_count_held(struct rdma_channel *channel)
{
    const struct rdma_pull *pull = &channel->link.pull;
    uint64_t held = pull->is_direct && pull->is_under_way ? pull->here : 0;
    if (channel->placing != NULL)
        held += channel->placed;
    COUNT(channel, held_bytes, held - channel->held);
    channel->held = held;
}

void rdma_channel_pulled(struct rdma_channel *channel)
{
    void (*let_go)(void *arg) = channel->let_go;
    channel->let_go = NULL;
    rdma_count_held(channel);
    if (let_go != NULL)
        let_go(channel->let_go_arg);
}

void rdma_channel_placed(struct rdma_channel *channel)
{
    struct transport_place *place = channel->placing;
    channel->placing = NULL;
    rdma_count_held(channel);
    if (place != NULL)
        place->done(place);
}

static ssize_t transport_place(struct transport *transport, const struct iovec *vectors, int count,
                               struct transport_place *place)
{
    struct rdma_transport *self = self_of(transport);
    struct rdma_channel *channel = self->channel;
    struct ibv_sge pieces[PAGE_PIECES];
    if (!self->is_open)
        return 0;
    if (cannot_send(channel))
        return refuse_to_send(channel);
    if (channel->placing != NULL)
        return TRANSPORT_AGAIN;
    if (channel->link.max_pieces == 0 || channel->link.grant.length < place->total)
        return 0;
    int found = find_pieces(channel, vectors, count, pieces);
    if (found == 0)
        return 0;
    uint64_t frames = channel->link.frames_out;
    size_t placed = rdma_link_place(&channel->link, pieces, found, place->offset, place->total);
    COUNT(channel, frames_out, channel->link.frames_out - frames);
    COUNT(channel, placed_bytes, placed);
    note_refusal(channel);
    if (placed == 0)
        return TRANSPORT_AGAIN;
    channel->placing = place;
    channel->placed = placed;
    rdma_count_held(channel);
    return (ssize_t)placed;
}

static void transport_want(struct transport *transport, unsigned ready)
{
    struct rdma_transport *self = self_of(transport);
    self->wanted = ready;
    if (!self->is_open)
        self->tcp->ops->want(self->tcp, ready);
    else if ((rdma_channel_readiness(self->channel) & ready) != 0)
        rdma_note_ready(self->channel);
}

static bool transport_has_ended(struct transport *transport)
{
    struct rdma_transport *self = self_of(transport);
    if (self->is_open)
        return self->channel->is_broken;
    return self->tcp->ops->has_ended != NULL && self->tcp->ops->has_ended(self->tcp);
}

/* While the channel is open, its TCP connection only shows that the client is alive: bytes on it
 * are a breach. */
static void on_tcp_ready(void *arg, unsigned ready)
{
    struct rdma_transport *self = arg;
    char byte;
    if (!self->is_open) {
        self->base.ready(self->base.arg, ready);
        return;
    }
    ssize_t count = self->tcp->ops->read(self->tcp, &byte, 1);
    if (count == TRANSPORT_AGAIN)
        return;
    self->tcp->ops->want(self->tcp, 0);
    if (count > 0)
        breach(self->channel);
    else
        rdma_channel_break(self->channel);
}

/* The same while END waits. */
static void on_tcp_ready_at_end(void *arg, unsigned ready)
{
    (void)ready;
    struct rdma_channel *channel = arg;
    char byte;
    ssize_t count = channel->tcp->ops->read(channel->tcp, &byte, 1);
    if (count > 0)
        breach(channel);
    else if (count != TRANSPORT_AGAIN)
        rdma_channel_break(channel);
}

void rdma_channel_finish(struct rdma_channel *channel)
{
    struct rdma_link *link = &channel->link;
    assert(channel->is_ending && !channel->is_gone);
    if (!channel->has_sent_end)
        channel->has_sent_end = rdma_link_end(link);
    if (link->has_failed || (channel->has_sent_end && rdma_link_is_flushed(link)))
        rdma_end_channel(channel);
}

void rdma_on_overdue(struct worker *owner, struct worker_message *message)
{
    (void)owner;
    struct rdma_channel *channel =
        (struct rdma_channel *)((char *)message - offsetof(struct rdma_channel, overdue));
    if (!channel->is_gone && !channel->has_sent_end)
        rdma_break_off(channel);
}

/* The peer, and what is in flight to it, may take any time to make room for END. */
static void begin_to_end(struct rdma_channel *channel, struct transport *tcp)
{
    channel->tcp = tcp;
    channel->is_ending = true;
    channel->transport = NULL;
    rdma_link_drop_input(&channel->link);
    rdma_channel_finish(channel);
    if (channel->is_gone)
        return;
    tcp->ready = on_tcp_ready_at_end;
    tcp->arg = channel;
    tcp->ops->want(tcp, channel->has_sent_end ? 0 : TRANSPORT_READABLE);
    if (channel->has_sent_end)
        return;
    channel->deadline.run = rdma_job_await_end;
    rdma_submit(channel->worker->service, &channel->deadline);
}

static void transport_close(struct transport *transport)
{
    struct rdma_transport *self = self_of(transport);
    struct rdma_channel *channel = self->channel;
    assert(channel != NULL || !self->is_open);
    if (self->is_open && !cannot_send(channel)) {
        begin_to_end(channel, self->tcp);
    } else {
        self->tcp->ops->close(self->tcp);
        if (channel != NULL)
            rdma_end_channel(channel);
    }
    free(self);
}

static const struct transport_ops channel_transport_ops = {.read = transport_read,
                                                           .read_vectors = transport_read_vectors,
                                                           .refers = transport_refers,
                                                           .fills = transport_fills,
                                                           .let_go = transport_let_go,
                                                           .write = transport_write,
                                                           .place = transport_place,
                                                           .has_ended = transport_has_ended,
                                                           .want = transport_want,
                                                           .close = transport_close};

/* The wrapper of an earlier channel, which was dropped, takes the next one: otherwise each CONNECT
 * would add another. */
static struct transport *wrap_again(struct rdma_channel *channel, struct rdma_transport *self)
{
    assert(self->channel == NULL && !self->is_open);
    self->channel = channel;
    channel->transport = self;
    return &self->base;
}

struct transport *rdma_channel_wrap(struct rdma_channel *channel, struct transport *tcp)
{
    assert(channel->transport == NULL && !channel->is_gone && !channel->is_ending);
    if (tcp->ops == &channel_transport_ops)
        return wrap_again(channel, self_of(tcp));
    struct rdma_transport *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->base = *tcp;
    self->base.ops = &channel_transport_ops;
    self->tcp = tcp;
    self->channel = channel;
    channel->transport = self;
    tcp->ready = on_tcp_ready;
    tcp->arg = self;
    return &self->base;
}

bool rdma_channel_stats(const struct transport *transport, struct rdma_stats *stats)
{
    const struct rdma_transport *self = (const struct rdma_transport *)transport;
    if (transport->ops != &channel_transport_ops || self->channel == NULL)
        return false;
    const struct rdma_channel *channel = self->channel;
    const struct rdma_link *link = &channel->link;
    *stats = (struct rdma_stats){.mode = link->mode,
                                 .state = self->is_open ? "open" : "pending",
                                 .qpn = channel->qp->qp_num,
                                 .credits = link->flow.credits,
                                 .frames_in = link->frames_in,
                                 .frames_out = link->frames_out,
                                 .bytes_in = link->bytes_in,
                                 .bytes_out = link->bytes_out};
    return true;
}
