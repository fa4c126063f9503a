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

/* What an end may announce for what it receives. */
#define RDMA_FRAME_BYTES_MIN 256
#define RDMA_FRAME_BYTES_MAX (64 * 1024)
#define RDMA_CREDITS_MIN 4
#define RDMA_CREDITS_MAX 1024

enum rdma_frame_type {
    RDMA_FRAME_DATA = 1,   /* bytes of the stream of commands or replies */
    RDMA_FRAME_CREDIT = 2, /* nothing but the header */
    RDMA_FRAME_PULL = 3,   /* client: the next bytes of the stream are to be READ from its memory */
    RDMA_FRAME_GRANT = 4,  /* client: a value may be written into its memory; or no longer */
    RDMA_FRAME_PLACED = 5, /* server: the next bytes of the stream were written there */
    RDMA_FRAME_END = 6,    /* server: nothing will follow */
    RDMA_FRAME_RELEASE = 7, /* server: the oldest PULL by a window has been READ */
};

struct rdma_frame {
    enum rdma_frame_type type;
    uint32_t credits; /* receives posted again since the last frame */
    uint32_t length;  /* of what follows the header */
};

/* A frame's header as the immediate word of a write: type, credits and length from the top. Its
 * bytes cannot be changed by the peer when they are looked at. */
uint32_t rdma_word_write(const struct rdma_frame *frame);
bool rdma_word_read(struct rdma_frame *frame, uint32_t word);

/* Memory of the peer's: the payload of PULL and GRANT. */
#define RDMA_REFERENCE_BYTES 24
struct rdma_reference {
    uint64_t address, length;
    uint32_t rkey;
    bool is_window; /* the key is for this once: its end is told, or brought about */
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
/* False: it goes beyond the end of the address space, or is empty. */
bool rdma_reference_read(struct rdma_reference *reference, const char from[RDMA_REFERENCE_BYTES]);

void rdma_place_write(char to[RDMA_PLACE_BYTES], const struct rdma_place *place);
/* False: it lies outside of the memory, or is empty. */
bool rdma_place_read(struct rdma_place *place, const char from[RDMA_PLACE_BYTES],
                     const struct rdma_reference *memory);

/*
 * One end's count of credits. Each end has posted `window` receives for the other. The last credit
 * is for telling of receives posted again, nothing else: so neither end can be out of credits while
 * the other waits to hear of some.
 */
struct rdma_flow {
    uint32_t window;      /* receives that we keep posted */
    uint32_t expected;    /* frames that the peer may still send */
    uint32_t owed;        /* receives posted again that the peer does not know of */
    uint32_t peer_window; /* receives that the peer keeps posted */
    uint32_t credits;     /* frames that we may still send */
};

void rdma_flow_begin(struct rdma_flow *flow, uint32_t window, uint32_t peer_window);

/* A frame has come. False: the peer had no credit for it, or gives more than we have used. */
bool rdma_flow_received(struct rdma_flow *flow, const struct rdma_frame *frame);

/* The receive that a frame came in is posted again. */
void rdma_flow_reposted(struct rdma_flow *flow);

/* How many frames that carry something may be sent now. */
static inline uint32_t rdma_flow_room(const struct rdma_flow *flow)
{
    return flow->credits > 1 ? flow->credits - 1 : 0;
}

/* So much is owed that a frame must go out for it alone; and it may. */
static inline bool rdma_flow_must_tell(const struct rdma_flow *flow)
{
    return flow->owed >= flow->window / 2 && flow->credits > 0;
}

/* A frame goes out: uses a credit, returns what the frame tells. */
uint32_t rdma_flow_send(struct rdma_flow *flow);

#endif
