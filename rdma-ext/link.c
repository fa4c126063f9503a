/*
 * Sends, receives, READs and WRITEs of a link. Threads: see link.h.
 *
 * Invariants:
 * 1. posted - done <= RDMA_LINK_SLOTS. If slots or buffers have run out, the last of these sends is
 *    signaled, so that a full link always gets a completion when there is room again.
 * 2. Every send carries one frame and uses one credit.
 * 3. Mode write: data is read in order, and its credit is returned after that. So the frames that
 *    the peer has not read are the newest ones, and fewer than the slots: the next slot is free.
 */
#include "rdma-ext/link.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define SIGNAL_EVERY (RDMA_LINK_SLOTS / 4)
#define BATCH 8 /* frames posted with one doorbell */

struct ibv_qp_cap rdma_link_capacity(void)
{
    return (struct ibv_qp_cap){.max_send_wr = RDMA_LINK_SLOTS + 1,
                               .max_send_sge = 1,
                               .max_recv_sge = 1,
                               .max_inline_data = RDMA_LINK_INLINE};
}

void rdma_link_begin(struct rdma_link *link, struct ibv_qp *qp, uint32_t max_inline,
                     uint32_t window, const struct rdma_end *theirs)
{
    assert((link->wr_id & RDMA_LINK_NUMBER_MASK) == 0 && link->post_receive != NULL);
    assert(link->buffer_count > 0 && (link->buffer_count & (link->buffer_count - 1)) == 0);
    assert(window <= RDMA_LINK_WINDOW);
    link->qp = qp;
    link->max_inline = max_inline < RDMA_LINK_INLINE ? max_inline : RDMA_LINK_INLINE;
    link->mode = theirs->mode;
    link->header_bytes = link->mode == RDMA_MODE_WRITE ? 0 : RDMA_HEADER_BYTES;
    link->payload_max =
        (theirs->frame_bytes < link->buffer_bytes ? theirs->frame_bytes : link->buffer_bytes) -
        link->header_bytes;
    link->their_ring = theirs->ring;
    link->their_key = theirs->ring_key;
    link->their_slots = theirs->credits;
    link->their_slot_bytes = theirs->frame_bytes;
    link->slots = window;
    assert(link->mode != RDMA_MODE_WRITE || (link->ring != NULL && link->slot_bytes > 0));
    rdma_flow_begin(&link->flow, window, theirs->credits);
}

/* ---- sending ---- */

/* Frames to be posted together. */
struct batch {
    struct ibv_send_wr requests[BATCH];
    struct ibv_sge pieces[BATCH];
    char small[BATCH][RDMA_LINK_INLINE];
    int count;
};

static uint32_t free_slots(const struct rdma_link *link)
{
    return RDMA_LINK_SLOTS - (link->posted - link->done);
}

static bool has_slot(const struct rdma_link *link)
{
    return !link->has_failed && free_slots(link) > 0;
}

static bool has_buffer(const struct rdma_link *link)
{
    return link->buffers_taken - link->buffers_freed < link->buffer_count;
}

bool rdma_link_has_room(const struct rdma_link *link)
{
    return has_slot(link) && has_buffer(link) && rdma_flow_room(&link->flow) > 0;
}

static bool is_to_be_signaled(struct rdma_link *link)
{
    link->unsignaled++;
    if (link->unsignaled < SIGNAL_EVERY && has_slot(link) && has_buffer(link))
        return false;
    link->unsignaled = 0;
    return true;
}

/* The memory in which a frame of this size is assembled. */
static char *begin_frame(struct rdma_link *link, struct batch *batch, size_t size)
{
    if (size <= link->max_inline)
        return batch->small[batch->count];
    assert(has_buffer(link));
    return link->buffers + (size_t)(link->buffers_taken % link->buffer_count) * link->buffer_bytes;
}

/* Puts the header where the mode expects it. */
static void add_header(struct rdma_link *link, struct ibv_send_wr *request, char *frame,
                       const struct rdma_frame *header)
{
    if (link->mode == RDMA_MODE_SEND) {
        rdma_frame_write(frame, header);
        request->opcode = link->ends_key ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND;
        if (link->ends_key)
            request->invalidate_rkey = link->key;
        link->ends_key = false;
        return;
    }
    request->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request->imm_data = htobe32(rdma_word_write(header));
    request->wr.rdma.remote_addr =
        link->their_ring + (uint64_t)link->their_next * link->their_slot_bytes;
    request->wr.rdma.rkey = link->their_key;
    if (header->length > 0)
        link->their_next = (link->their_next + 1) % link->their_slots;
}

static void end_frame(struct rdma_link *link, struct batch *batch, char *frame,
                      enum rdma_frame_type type, size_t payload)
{
    struct rdma_frame header = {
        .type = type, .credits = rdma_flow_send(&link->flow), .length = (uint32_t)payload};
    size_t size = link->header_bytes + payload;
    int i = batch->count++;
    bool is_inline = size <= link->max_inline;
    if (!is_inline)
        link->buffers_taken++;
    link->taken_after[link->posted % RDMA_LINK_SLOTS] = link->buffers_taken;
    batch->pieces[i] = (struct ibv_sge){
        .addr = (uintptr_t)frame, .length = (uint32_t)size, .lkey = is_inline ? 0 : link->lkey};
    batch->requests[i] = (struct ibv_send_wr){
        .wr_id = link->wr_id | link->posted, .sg_list = &batch->pieces[i], .num_sge = size > 0};
    add_header(link, &batch->requests[i], frame, &header);
    link->posted++;
    if (is_inline && size > 0)
        batch->requests[i].send_flags |= IBV_SEND_INLINE;
    if (is_to_be_signaled(link) || type == RDMA_FRAME_END || type == RDMA_FRAME_PLACED)
        batch->requests[i].send_flags |= IBV_SEND_SIGNALED;
    if (i > 0)
        batch->requests[i - 1].next = &batch->requests[i];
    link->frames_out++;
    link->bytes_out += payload;
}

static void note_post(struct rdma_link *link, int error)
{
    if (error == 0)
        return;
    link->has_failed = true;
    link->post_error = error;
}

static void post(struct rdma_link *link, struct batch *batch)
{
    struct ibv_send_wr *bad;
    if (batch->count > 0)
        note_post(link, ibv_post_send(link->qp, batch->requests, &bad));
    batch->count = 0;
}

static void send_one(struct rdma_link *link, enum rdma_frame_type type, const char *payload,
                     size_t len)
{
    struct batch batch;
    batch.count = 0;
    char *frame = begin_frame(link, &batch, link->header_bytes + len);
    if (len > 0)
        memcpy(frame + link->header_bytes, payload, len);
    end_frame(link, &batch, frame, type, len);
    post(link, &batch);
}

/* ---- keys to be invalidated ---- */

/* In mode send the next frame invalidates it; otherwise the peer does, when it is notified. */
static void end_key(struct rdma_link *link, uint32_t key)
{
    link->ends_key = link->mode == RDMA_MODE_SEND;
    link->key = key;
}

/* Reports finished pulls, before a message that may be the reply. False: some are left. */
static bool has_released(struct rdma_link *link)
{
    while (link->release_head != link->release_tail && rdma_link_has_room(link)) {
        end_key(link, link->releases[link->release_head++ % RDMA_LINK_WINDOW]);
        send_one(link, RDMA_FRAME_RELEASE, NULL, 0);
    }
    return link->release_head == link->release_tail;
}

/* ---- the stream ---- */

/* The rest of the vectors to be sent. */
struct source {
    const struct iovec *vectors;
    int count;
    size_t skip;
};

static void copy_out(struct source *source, char *to, size_t len)
{
    while (len > 0) {
        size_t part = source->vectors->iov_len - source->skip;
        if (part > len)
            part = len;
        memcpy(to, (const char *)source->vectors->iov_base + source->skip, part);
        source->skip += part;
        to += part;
        len -= part;
        if (source->skip == source->vectors->iov_len) {
            source->vectors++;
            source->count--;
            source->skip = 0;
        }
    }
}

size_t rdma_link_send(struct rdma_link *link, const struct iovec *vectors, int count)
{
    struct source source = {.vectors = vectors, .count = count};
    struct batch batch;
    size_t total = 0, sent = 0;
    for (int i = 0; i < count; i++)
        total += vectors[i].iov_len;
    batch.count = 0;
    if (!has_released(link))
        return 0;
    while (sent < total && rdma_link_has_room(link)) {
        size_t payload = total - sent;
        if (payload > link->payload_max)
            payload = link->payload_max;
        char *frame = begin_frame(link, &batch, link->header_bytes + payload);
        copy_out(&source, frame + link->header_bytes, payload);
        end_frame(link, &batch, frame, RDMA_FRAME_DATA, payload);
        sent += payload;
        if (batch.count == BATCH)
            post(link, &batch);
    }
    post(link, &batch);
    link->copied_bytes += sent;
    return sent;
}

bool rdma_link_control(struct rdma_link *link, enum rdma_frame_type type, const char *payload,
                       size_t len)
{
    if (!rdma_link_has_room(link))
        return false;
    send_one(link, type, payload, len);
    return true;
}

/* For a frame without payload, which may use the last credit. Only a device that takes nothing
 * inline needs a buffer for it. */
static bool has_last_room(const struct rdma_link *link)
{
    bool is_inline = link->header_bytes <= link->max_inline;
    return has_slot(link) && (is_inline || has_buffer(link)) && link->flow.credits > 0;
}

bool rdma_link_end(struct rdma_link *link)
{
    if (!has_last_room(link))
        return false;
    send_one(link, RDMA_FRAME_END, NULL, 0);
    return !link->has_failed;
}

void rdma_link_tell(struct rdma_link *link)
{
    has_released(link);
    if (rdma_flow_must_tell(&link->flow) && has_last_room(link))
        send_one(link, RDMA_FRAME_CREDIT, NULL, 0);
}

void rdma_link_sent(struct rdma_link *link, uint64_t wr_id)
{
    uint32_t number = (uint32_t)(wr_id & RDMA_LINK_NUMBER_MASK);
    assert(link->posted - number - 1 < RDMA_LINK_SLOTS);
    link->done = number + 1;
    if (link->pull.is_under_way && link->pull.number == number)
        link->pull.is_under_way = false;
    if (link->is_placing && link->place_number == number)
        link->is_placing = false;
    link->buffers_freed = link->taken_after[number % RDMA_LINK_SLOTS];
}

/* ---- placing ---- */

/* Cuts the pieces to what fits into that many requests, the bound on held memory and `most`
 * bytes. Returns the number of bytes. */
static size_t cut_pieces(const struct rdma_link *link, struct ibv_sge *pieces, int *count,
                         uint32_t requests, uint64_t most)
{
    uint64_t left = most < link->max_held ? most : link->max_held;
    size_t total = 0;
    int used = 0;
    while (used < *count && used < (int)(requests * link->max_pieces) && left > 0) {
        if (pieces[used].length > left)
            pieces[used].length = (uint32_t)left;
        left -= pieces[used].length;
        total += pieces[used++].length;
    }
    *count = used;
    return total;
}

/* Posts a chain of READs or WRITEs between the pieces and the memory at the remote address. */
static void post_pieces(struct rdma_link *link, struct ibv_sge *pieces, int count,
                        enum ibv_wr_opcode opcode, uint64_t address, uint32_t rkey)
{
    struct ibv_send_wr requests[RDMA_LINK_SLOTS], *bad;
    int posted = 0;
    for (int at = 0; at < count; posted++) {
        int here = count - at < (int)link->max_pieces ? count - at : (int)link->max_pieces;
        requests[posted] = (struct ibv_send_wr){.wr_id = link->wr_id | link->posted,
                                                .sg_list = &pieces[at],
                                                .num_sge = here,
                                                .opcode = opcode};
        requests[posted].wr.rdma.remote_addr = address;
        requests[posted].wr.rdma.rkey = rkey;
        if (posted > 0)
            requests[posted - 1].next = &requests[posted];
        link->taken_after[link->posted++ % RDMA_LINK_SLOTS] = link->buffers_taken;
        for (int i = 0; i < here; i++)
            address += pieces[at + i].length;
        at += here;
    }
    if (opcode == IBV_WR_RDMA_READ) { /* its completion is signaled */
        requests[posted - 1].send_flags = IBV_SEND_SIGNALED;
        link->unsignaled = 0;
    }
    note_post(link, ibv_post_send(link->qp, requests, &bad));
}

size_t rdma_link_place(struct rdma_link *link, struct ibv_sge *pieces, int count, uint64_t offset,
                       uint64_t total)
{
    char payload[RDMA_PLACE_BYTES];
    struct rdma_place place = {.offset = offset};
    if (link->is_placing || !has_released(link) || !rdma_link_has_room(link) ||
        free_slots(link) < 2)
        return 0;
    place.length = cut_pieces(link, pieces, &count, free_slots(link) - 1, total - offset);
    post_pieces(link, pieces, count, IBV_WR_RDMA_WRITE, link->grant.address + offset,
                link->grant.rkey);
    if (offset + place.length == total) { /* a grant is for one value */
        link->grant.length = 0;
        if (link->grant.is_window)
            end_key(link, link->grant.rkey);
    }
    rdma_place_write(payload, &place);
    link->place_number = link->posted;
    link->is_placing = true;
    if (!link->has_failed) /* otherwise the client would read stale bytes as the value */
        send_one(link, RDMA_FRAME_PLACED, payload, sizeof payload);
    return place.length;
}

/* ---- receiving ---- */

static bool accept_frame(struct rdma_link *link, const struct rdma_frame *frame,
                         const char *payload, uint32_t buffer)
{
    if ((link->takes & RDMA_TAKES(frame->type)) == 0 || !rdma_flow_received(&link->flow, frame))
        return false;
    link->frames_in++;
    link->bytes_in += frame->length;
    if (frame->type != RDMA_FRAME_CREDIT && frame->type != RDMA_FRAME_END &&
        frame->type != RDMA_FRAME_RELEASE) {
        assert(link->inbox_tail - link->inbox_head < RDMA_LINK_WINDOW); /* ensured by the credits */
        link->inbox[link->inbox_tail++ % RDMA_LINK_WINDOW] = (struct rdma_received){
            .type = frame->type, .payload = payload, .length = frame->length, .buffer = buffer};
        return true;
    }
    if (frame->type == RDMA_FRAME_END)
        link->has_ended = true;
    link->released += frame->type == RDMA_FRAME_RELEASE;
    link->post_receive(link, buffer);
    rdma_flow_reposted(&link->flow);
    return true;
}

bool rdma_link_received(struct rdma_link *link, const char *message, size_t len, uint32_t buffer)
{
    struct rdma_frame frame;
    return rdma_frame_read(&frame, message, len) &&
           accept_frame(link, &frame, message + RDMA_HEADER_BYTES, buffer);
}

bool rdma_link_written(struct rdma_link *link, uint32_t word, uint32_t buffer)
{
    struct rdma_frame frame;
    const char *payload = link->ring + (size_t)link->next_slot * link->slot_bytes;
    if (!rdma_word_read(&frame, word) || frame.length > link->slot_bytes ||
        !accept_frame(link, &frame, payload, buffer))
        return false;
    if (frame.length > 0)
        link->next_slot = (link->next_slot + 1) % link->slots;
    return true;
}

static void drop_first(struct rdma_link *link)
{
    uint32_t buffer = link->inbox[link->inbox_head++ % RDMA_LINK_WINDOW].buffer;
    link->inbox_offset = 0;
    link->post_receive(link, buffer);
    rdma_flow_reposted(&link->flow);
}

static void post_reads(struct rdma_link *link, struct ibv_sge *pieces, int count, uint32_t len)
{
    struct rdma_pull *pull = &link->pull;
    post_pieces(link, pieces, count, IBV_WR_RDMA_READ, pull->rest.address, pull->rest.rkey);
    pull->number = link->posted - 1;
    pull->is_under_way = true;
    pull->taken = 0;
    pull->here = len;
    pull->rest.address += len;
    pull->rest.length -= len;
}

/* READs the next part of a pull into the link's own memory. */
static void fetch(struct rdma_link *link)
{
    struct rdma_pull *pull = &link->pull;
    if (!has_slot(link) || (pull->memory == NULL && !link->borrow(link)))
        return;
    uint32_t len = pull->rest.length < pull->size ? (uint32_t)pull->rest.length : pull->size;
    struct ibv_sge piece = {.addr = (uintptr_t)pull->memory, .length = len, .lkey = pull->lkey};
    post_reads(link, &piece, 1, len);
}

bool rdma_link_unfetch(struct rdma_link *link)
{
    struct rdma_pull *pull = &link->pull;
    uint32_t left = pull->here - pull->taken;
    if (pull->is_under_way)
        return false;
    pull->rest.address -= left;
    pull->rest.length += left;
    pull->here = pull->taken = 0;
    pull->memory = NULL;
    link->give_back(link);
    return true;
}

static void end_pull(struct rdma_link *link)
{
    if (link->pull.memory != NULL)
        link->give_back(link);
    if (link->pull.rest.is_window)
        link->releases[link->release_tail++ % RDMA_LINK_WINDOW] = link->pull.rest.rkey;
    link->pull = (struct rdma_pull){.here = 0};
    drop_first(link);
}

/* Returns 0 if the next part has not arrived yet. */
static size_t take_pulled(struct rdma_link *link, char *to, size_t size)
{
    struct rdma_pull *pull = &link->pull;
    size_t part = pull->here - pull->taken;
    if (part == 0) {
        fetch(link);
        return 0;
    }
    if (part > size)
        part = size;
    assert(!pull->is_direct); /* the caller that owns the pages continues the READ */
    memcpy(to, pull->memory + pull->taken, part);
    pull->taken += (uint32_t)part;
    if (pull->taken == pull->here && pull->rest.length == 0)
        end_pull(link);
    return part;
}

static size_t take_first(struct rdma_link *link, char *to, size_t size)
{
    const struct rdma_received *first = &link->inbox[link->inbox_head % RDMA_LINK_WINDOW];
    if (first->type == RDMA_FRAME_PULL)
        return take_pulled(link, to, size);
    size_t part = first->length - link->inbox_offset;
    if (part > size)
        part = size;
    memcpy(to, first->payload + link->inbox_offset, part);
    link->inbox_offset += (uint32_t)part;
    if (link->inbox_offset == first->length)
        drop_first(link);
    return part;
}

static struct rdma_received *first_of(struct rdma_link *link)
{
    return &link->inbox[link->inbox_head % RDMA_LINK_WINDOW];
}

/* A grant replaces the previous one, or ends it. */
static bool take_grant(struct rdma_link *link)
{
    const struct rdma_received *first = first_of(link);
    struct rdma_reference grant = {.length = 0};
    if (first->length > 0 && !rdma_reference_read(&grant, first->payload))
        return false;
    link->grant = grant;
    drop_first(link);
    return true;
}

/* Called when a frame becomes the first of the inbox; it is copied once and then checked. False:
 * it has nothing to be read, or is invalid; a reference that was refused is not kept. */
static bool begin_first(struct rdma_link *link)
{
    bool is_good = true;
    while (is_good && rdma_link_has_input(link) && first_of(link)->type == RDMA_FRAME_GRANT)
        is_good = take_grant(link);
    if (is_good && rdma_link_has_input(link)) {
        if (first_of(link)->type == RDMA_FRAME_PLACED && link->grant.length > 0)
            return false;
        is_good = first_of(link)->type != RDMA_FRAME_PLACED;
        if (first_of(link)->type == RDMA_FRAME_PULL && link->pull.here == 0 &&
            link->pull.rest.length == 0)
            is_good = rdma_reference_read(&link->pull.rest, first_of(link)->payload);
    }
    if (!is_good)
        link->pull.rest.length = 0;
    link->has_failed = link->has_failed || !is_good;
    return is_good && rdma_link_has_input(link);
}

size_t rdma_link_read(struct rdma_link *link, char *to, size_t size)
{
    size_t taken = 0, part = 1;
    while (taken < size && part > 0 && rdma_link_has_input(link) && begin_first(link)) {
        if (taken > 0 && rdma_link_can_pull(link))
            break; /* the reader may provide memory for it once it has seen this */
        part = take_first(link, to + taken, size - taken);
        taken += part;
    }
    link->copied_bytes += taken;
    return taken;
}

bool rdma_link_can_pull(struct rdma_link *link)
{
    const struct rdma_pull *pull = &link->pull;
    return rdma_link_has_input(link) && begin_first(link) &&
           first_of(link)->type == RDMA_FRAME_PULL && pull->here == pull->taken;
}

void rdma_link_pull(struct rdma_link *link, struct ibv_sge *pieces, int count)
{
    assert(link->pull.here == link->pull.taken && !link->pull.is_under_way);
    if (!has_slot(link))
        return;
    size_t total = cut_pieces(link, pieces, &count, free_slots(link), link->pull.rest.length);
    post_reads(link, pieces, count, (uint32_t)total);
    link->pull.is_direct = true;
}

size_t rdma_link_pulled(struct rdma_link *link, size_t size)
{
    struct rdma_pull *pull = &link->pull;
    if (!pull->is_direct || pull->is_under_way)
        return 0;
    size_t part = pull->here - pull->taken;
    if (part > size)
        part = size;
    pull->taken += (uint32_t)part;
    pull->is_direct = pull->taken < pull->here;
    if (!pull->is_direct && pull->rest.length == 0)
        end_pull(link);
    return part;
}

bool rdma_link_take_placed(struct rdma_link *link, struct rdma_place *place)
{
    if (!rdma_link_has_input(link) || first_of(link)->type != RDMA_FRAME_PLACED)
        return false;
    bool is_good = rdma_place_read(place, first_of(link)->payload, &link->grant);
    link->has_failed = link->has_failed || !is_good;
    drop_first(link);
    return is_good;
}

void rdma_link_drop_input(struct rdma_link *link)
{
    while (link->inbox_head != link->inbox_tail)
        drop_first(link);
}
