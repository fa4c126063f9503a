#include "protocol/rdma_frame.h"

#include <assert.h>
#include <endian.h>
#include <stdatomic.h>
#include <string.h>

/* ---- frames: all numbers are little-endian ---- */

struct header {
    uint8_t type, reserved;
    uint16_t credits;
    uint32_t length;
};
_Static_assert(sizeof(struct header) == RDMA_HEADER_BYTES, "the header as it travels");

struct reference {
    uint64_t address, length;
    uint32_t rkey, flags;
};
#define REFERENCE_WINDOW 1u
_Static_assert(sizeof(struct reference) == RDMA_REFERENCE_BYTES, "a reference as it travels");

struct place {
    uint64_t offset, length;
};
_Static_assert(sizeof(struct place) == RDMA_PLACE_BYTES, "a place as it travels");

void rdma_frame_write(char to[RDMA_HEADER_BYTES], const struct rdma_frame *frame)
{
    assert(frame->credits <= RDMA_CREDITS_MAX && frame->length <= RDMA_FRAME_BYTES_MAX);
    struct header header = {.type = (uint8_t)frame->type,
                            .credits = htole16((uint16_t)frame->credits),
                            .length = htole32(frame->length)};
    memcpy(to, &header, sizeof header);
}

static bool length_fits(uint8_t type, uint32_t length)
{
    switch (type) {
    case RDMA_FRAME_DATA:
        return length > 0;
    case RDMA_FRAME_CREDIT:
    case RDMA_FRAME_END:
    case RDMA_FRAME_RELEASE:
        return length == 0;
    case RDMA_FRAME_PULL:
        return length == RDMA_REFERENCE_BYTES;
    case RDMA_FRAME_GRANT:
        return length == RDMA_REFERENCE_BYTES || length == 0;
    case RDMA_FRAME_PLACED:
        return length == RDMA_PLACE_BYTES;
    default:
        return false;
    }
}

bool rdma_frame_read(struct rdma_frame *frame, const char *data, size_t len)
{
    struct header header;
    if (len < sizeof header)
        return false;
    memcpy(&header, data, sizeof header);
    uint32_t length = le32toh(header.length);
    if (header.reserved != 0 || length != len - sizeof header || !length_fits(header.type, length))
        return false;
    *frame = (struct rdma_frame){.type = (enum rdma_frame_type)header.type,
                                 .credits = le16toh(header.credits),
                                 .length = length};
    return true;
}

/* ---- words: 4 bits of type, 11 of credits, 17 of length ---- */

#define LENGTH_BITS 17
#define CREDIT_BITS 11
_Static_assert(RDMA_FRAME_BYTES_MAX < 1 << LENGTH_BITS && RDMA_CREDITS_MAX < 1 << CREDIT_BITS,
               "the word has room for all");

uint32_t rdma_word_write(const struct rdma_frame *frame)
{
    assert(frame->credits <= RDMA_CREDITS_MAX && frame->length <= RDMA_FRAME_BYTES_MAX);
    return (uint32_t)frame->type << (CREDIT_BITS + LENGTH_BITS) | frame->credits << LENGTH_BITS |
           frame->length;
}

bool rdma_word_read(struct rdma_frame *frame, uint32_t word)
{
    *frame =
        (struct rdma_frame){.type = (enum rdma_frame_type)(word >> (CREDIT_BITS + LENGTH_BITS)),
                            .credits = word >> LENGTH_BITS & ((1u << CREDIT_BITS) - 1),
                            .length = word & ((1u << LENGTH_BITS) - 1)};
    return length_fits((uint8_t)frame->type, frame->length);
}

/* ---- references ---- */

void rdma_reference_write(char to[RDMA_REFERENCE_BYTES], const struct rdma_reference *reference)
{
    struct reference packed = {.address = htole64(reference->address),
                               .length = htole64(reference->length),
                               .rkey = htole32(reference->rkey),
                               .flags = htole32(reference->is_window ? REFERENCE_WINDOW : 0)};
    memcpy(to, &packed, sizeof packed);
}

bool rdma_reference_read(struct rdma_reference *reference, const char from[RDMA_REFERENCE_BYTES])
{
    struct reference packed;
    memcpy(&packed, from, sizeof packed);
    atomic_signal_fence(memory_order_seq_cst); /* what is checked is the copy: rings change */
    *reference = (struct rdma_reference){.address = le64toh(packed.address),
                                         .length = le64toh(packed.length),
                                         .rkey = le32toh(packed.rkey),
                                         .is_window = packed.flags != 0};
    return (le32toh(packed.flags) & ~REFERENCE_WINDOW) == 0 && reference->length > 0 &&
           reference->length <= UINT64_MAX - reference->address;
}

void rdma_place_write(char to[RDMA_PLACE_BYTES], const struct rdma_place *place)
{
    struct place packed = {.offset = htole64(place->offset), .length = htole64(place->length)};
    memcpy(to, &packed, sizeof packed);
}

bool rdma_place_read(struct rdma_place *place, const char from[RDMA_PLACE_BYTES],
                     const struct rdma_reference *memory)
{
    struct place packed;
    memcpy(&packed, from, sizeof packed);
    atomic_signal_fence(memory_order_seq_cst);
    *place =
        (struct rdma_place){.offset = le64toh(packed.offset), .length = le64toh(packed.length)};
    return place->length > 0 && place->offset <= memory->length &&
           place->length <= memory->length - place->offset;
}

/* ---- credits ---- */

void rdma_flow_begin(struct rdma_flow *flow, uint32_t window, uint32_t peer_window)
{
    assert(window >= RDMA_CREDITS_MIN && window <= RDMA_CREDITS_MAX);
    *flow = (struct rdma_flow){
        .window = window, .expected = window, .peer_window = peer_window, .credits = peer_window};
}

bool rdma_flow_received(struct rdma_flow *flow, const struct rdma_frame *frame)
{
    if (flow->expected == 0 || frame->credits > flow->peer_window - flow->credits)
        return false;
    flow->expected--;
    flow->credits += frame->credits;
    return true;
}

void rdma_flow_reposted(struct rdma_flow *flow)
{
    flow->owed++;
    assert(flow->owed + flow->expected <= flow->window);
}

uint32_t rdma_flow_send(struct rdma_flow *flow)
{
    assert(flow->credits > 0);
    uint32_t told = flow->owed;
    flow->credits--;
    flow->expected += told;
    flow->owed = 0;
    return told;
}
