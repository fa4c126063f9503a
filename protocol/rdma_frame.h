/*
 * The frames of an RDMA channel, and the credits that both ends keep count of: RDMA.md. Bytes and
 * numbers only, no verbs.
 *
 * Threads: nothing is shared.
 */
#ifndef VELLUM_RDMA_FRAME_H
#define VELLUM_RDMA_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RDMA_VERSION 1
#define RDMA_HEADER_BYTES 8

/* Bounds of what an end may announce for its receives. */
#define RDMA_FRAME_BYTES_MIN 256
#define RDMA_FRAME_BYTES_MAX (64 * 1024)
#define RDMA_CREDITS_MIN 4
#define RDMA_CREDITS_MAX 1024

enum rdma_frame_type {
    RDMA_FRAME_DATA = 1,   /* bytes of the stream of commands or replies */
    RDMA_FRAME_CREDIT = 2, /* nothing but the header */
    RDMA_FRAME_PULL = 3,   /* client: the next bytes of the stream are to be READ from its memory */
    RDMA_FRAME_GRANT = 4,  /* client: a value may be written into its memory; or that right ends */
    RDMA_FRAME_PLACED = 5, /* server: the next bytes of the stream were written there */
    RDMA_FRAME_END = 6,    /* server: the last frame */
    RDMA_FRAME_RELEASE = 7, /* server: the oldest PULL by a window has been READ */
};

struct rdma_frame {
    enum rdma_frame_type type;
    uint32_t credits; /* receives reposted since the last frame */
    uint32_t length;  /* of the payload */
};

/* A frame's header as the immediate word of a write: type, credits and length from the top. Its
 * bytes cannot be changed by the peer when they are looked at. */
uint32_t rdma_word_write(const struct rdma_frame *frame);
bool rdma_word_read(struct rdma_frame *frame, uint32_t word);

/* Memory of the peer: the payload of PULL and GRANT. */
#define RDMA_REFERENCE_BYTES 24
struct rdma_reference {
    uint64_t address, length;
    uint32_t rkey;
    bool is_window; /* the key is for one use: its end is reported, or caused by invalidation */
};

/* A part of granted memory: the payload of PLACED. */
#define RDMA_PLACE_BYTES 16
struct rdma_place {
    uint64_t offset, length;
};

void rdma_frame_write(char to[RDMA_HEADER_BYTES], const struct rdma_frame *frame);

/* `data` must not change meanwhile. False: this is no frame. */
bool rdma_frame_read(struct rdma_frame *frame, const char *data, size_t len);

void rdma_reference_write(char to[RDMA_REFERENCE_BYTES], const struct rdma_reference *reference);
/* False: it is empty or exceeds the address space. */
bool rdma_reference_read(struct rdma_reference *reference, const char from[RDMA_REFERENCE_BYTES]);

void rdma_place_write(char to[RDMA_PLACE_BYTES], const struct rdma_place *place);
/* False: it is empty or outside the memory. */
bool rdma_place_read(struct rdma_place *place, const char from[RDMA_PLACE_BYTES],
                     const struct rdma_reference *memory);

/*
 * One end's account of credits. Each end has posted `window` receives for the other. The last
 * credit is reserved for frames that return credits, so that the two ends cannot deadlock, each
 * out of credits and waiting for the other's.
 */
struct rdma_flow {
    uint32_t window;      /* receives that this end keeps posted */
    uint32_t expected;    /* frames that the peer may still send */
    uint32_t owed;        /* reposted receives not yet reported to the peer */
    uint32_t peer_window; /* receives that the peer keeps posted */
    uint32_t credits;     /* frames that this end may still send */
};

void rdma_flow_begin(struct rdma_flow *flow, uint32_t window, uint32_t peer_window);

/* A frame has arrived. False: the peer had no credit for it, or returns more credits than were
 * used. */
bool rdma_flow_received(struct rdma_flow *flow, const struct rdma_frame *frame);

/* The receive of a frame has been reposted. */
void rdma_flow_reposted(struct rdma_flow *flow);

/* How many frames that carry something may be sent now. */
static inline uint32_t rdma_flow_room(const struct rdma_flow *flow)
{
    return flow->credits > 1 ? flow->credits - 1 : 0;
}

/* Whether so many credits are owed that a frame must be sent for them alone, and may be. */
static inline bool rdma_flow_must_tell(const struct rdma_flow *flow)
{
    return flow->owed >= flow->window / 2 && flow->credits > 0;
}

/* A frame is sent: uses a credit and returns the credits that the frame reports. */
uint32_t rdma_flow_send(struct rdma_flow *flow);

#endif
