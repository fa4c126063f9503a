/*
 * A link: a queue pair that carries the frames and credits of RDMA.md. Both ends of a channel
 * are links; the owner decides where receives are posted (a shared queue, or one of its own).
 *
 * Threads: a link belongs to one thread at a time.
 */
#ifndef VELLUM_RDMA_LINK_H
#define VELLUM_RDMA_LINK_H

#include <sys/types.h>
#include <sys/uio.h>

#include <infiniband/verbs.h>

#include "protocol/rdma_end.h"
#include "protocol/rdma_frame.h"

#define RDMA_LINK_SLOTS 32   /* sends in flight */
#define RDMA_LINK_INLINE 256 /* frames up to this are copied into the work request */
#define RDMA_LINK_PIECES 8   /* pieces of memory in one work request, if the device takes as many */
#define RDMA_LINK_WINDOW 16  /* the most receives posted for the peer */

/* Bits of wr_id above a send's number: the owner uses them to tell links and receives apart. */
#define RDMA_LINK_NUMBER_MASK 0xffffffffu

#define RDMA_TAKES(type) (1u << (type))

/* An unread frame: data, or a reference to data. */
struct rdma_received {
    enum rdma_frame_type type;
    const char *payload;
    uint32_t length;
    uint32_t buffer; /* the owner's number of it */
};

/* A value that is being READ from the peer's memory, part by part. */
struct rdma_pull {
    struct rdma_reference rest; /* length 0: there is none */
    char *memory;               /* the buffer for parts; NULL: not requested yet */
    uint32_t lkey, size;
    uint32_t number; /* of the last READ in flight */
    bool is_under_way;
    bool is_direct;       /* the part goes to the reader's own memory */
    uint32_t taken, here; /* bytes of the current part: consumed; arrived */
};

struct rdma_link {
    struct ibv_qp *qp;
    struct rdma_flow flow;
    uint32_t takes;        /* bit n: frames of type n are allowed */
    uint64_t wr_id;        /* the owner's bits; the lower 32 are 0 */
    uint32_t max_inline;   /* bytes */
    uint32_t header_bytes; /* before each payload: 0 where it travels in the immediate word */
    uint32_t payload_max;  /* the most that fits into the peer's receives and our buffers */

    /* buffers for frames that are not inline: a ring, taken and freed in order */
    char *buffers;
    uint32_t lkey, buffer_bytes, buffer_count;

    /* in mode write: the peer's ring, into which the payloads of our frames are written slot by
     * slot, and ours. Each frame with a payload takes the next slot; credits ensure that it is
     * free. */
    enum rdma_mode mode;
    uint64_t their_ring;
    uint32_t their_key, their_slots, their_slot_bytes, their_next;
    const char *ring; /* writable by the peer at any time */
    uint32_t slots, slot_bytes, next_slot;

    uint32_t posted, done;                 /* sends posted and completed, in total */
    uint32_t buffers_taken, buffers_freed; /* likewise */
    uint32_t taken_after[RDMA_LINK_SLOTS]; /* buffers_taken when that send was posted */
    uint32_t unsignaled;                   /* posted since the last signaled one */
    bool has_failed; /* nothing more can be sent, or the peer broke the protocol */
    int post_error;  /* the error of a refused work request; else 0 */
    bool has_ended;  /* the peer has ended the stream: nothing follows the inbox */

    struct rdma_received inbox[RDMA_LINK_WINDOW]; /* a ring */
    uint32_t inbox_head, inbox_tail;
    uint32_t inbox_offset; /* bytes of the first that have been read */
    void (*post_receive)(struct rdma_link *link, uint32_t buffer);

    struct rdma_pull pull;
    struct rdma_reference grant; /* the client's memory for the next value; length 0: none */
    uint32_t max_pieces;         /* pieces of memory in one request; 0: this end places nothing */
    uint32_t max_held;           /* bound on the memory that READs, or WRITEs, hold at a time */
    uint32_t place_number;       /* of the frame that announces the last WRITE */
    bool is_placing;             /* the source memory must not change yet */

    /* at the server: keys of finished pulls, to be reported in this order, a ring; at the
     * client: the number reported to it */
    uint32_t releases[RDMA_LINK_WINDOW];
    uint32_t release_head, release_tail;
    uint32_t released;
    bool ends_key; /* the next frame invalidates this key, if it is a message */
    uint32_t key;

    bool (*borrow)(struct rdma_link *link); /* fills in pull.memory; false: no buffer is free */
    void (*give_back)(struct rdma_link *link);

    uint64_t frames_in, frames_out, bytes_in, bytes_out, copied_bytes;
};

/* Capacities of the queue pair: one more send than the slots, for the owner's last request. */
struct ibv_qp_cap rdma_link_capacity(void);

/* Called when the queue pair is connected and the peer's attributes are known. In mode write
 * `ring` and `slot_bytes` are set before. */
void rdma_link_begin(struct rdma_link *link, struct ibv_qp *qp, uint32_t max_inline,
                     uint32_t window, const struct rdma_end *theirs);

/* Sends as many bytes as credits, slots and buffers allow. Returns their number. */
size_t rdma_link_send(struct rdma_link *link, const struct iovec *vectors, int count);

/* Writes the pieces, which are our registered memory, into the granted memory at `offset`, as
 * far as there is room; in the stream they come at this point. Returns the number of bytes. If
 * it is not 0, nothing more may be placed and the pieces must not change until is_placing is
 * false. The grant ends with the last of `total` bytes. */
size_t rdma_link_place(struct rdma_link *link, struct ibv_sge *pieces, int count, uint64_t offset,
                       uint64_t total);

/* At the other end: the next bytes of the stream are in the granted memory. */
bool rdma_link_take_placed(struct rdma_link *link, struct rdma_place *place);

/* Whether rdma_link_send would send anything. */
bool rdma_link_has_room(const struct rdma_link *link);

/* Sends a frame with this payload, at most RDMA_REFERENCE_BYTES. False: there is no room now. */
bool rdma_link_control(struct rdma_link *link, enum rdma_frame_type type, const char *payload,
                       size_t len);

/* Sends END, the last frame. False: there is no room for it now. */
bool rdma_link_end(struct rdma_link *link);

/* Whether the peer has received everything posted. */
static inline bool rdma_link_is_flushed(const struct rdma_link *link)
{
    return link->posted == link->done;
}

/* Reports finished pulls to the peer, and reposted receives when enough are owed. */
void rdma_link_tell(struct rdma_link *link);

/* The send with this wr_id has completed, and so have all before it. */
void rdma_link_sent(struct rdma_link *link, uint64_t wr_id);

/* A message has arrived in a buffer. False: a breach of the protocol; the owner keeps the
 * buffer. */
bool rdma_link_received(struct rdma_link *link, const char *message, size_t len, uint32_t buffer);

/* The same in mode write: the immediate word has arrived, its payload is in the ring. */
bool rdma_link_written(struct rdma_link *link, uint32_t word, uint32_t buffer);

/* Copies received bytes out and reposts receives. Returns the number of bytes. */
size_t rdma_link_read(struct rdma_link *link, char *to, size_t size);

static inline bool rdma_link_has_input(const struct rdma_link *link)
{
    return link->inbox_head != link->inbox_tail && !link->pull.is_under_way &&
           link->release_tail - link->release_head < RDMA_LINK_WINDOW;
}

/* Whether the next input is a reference of which no part is in the link's own memory. */
bool rdma_link_can_pull(struct rdma_link *link);

/* READs the next bytes of the reference into the pieces, registered memory of ours, with as many
 * READs as fit at once. The pieces must not change while is_under_way; rdma_link_pulled then
 * returns how many bytes arrived, at most `size` at a time. */
void rdma_link_pull(struct rdma_link *link, struct ibv_sge *pieces, int count);
size_t rdma_link_pulled(struct rdma_link *link, size_t size);

/* Releases the memory of a buffered part, which is READ again when needed. False: it is being
 * filled. */
bool rdma_link_unfetch(struct rdma_link *link);

/* Reposts the receives of frames that will never be read. */
void rdma_link_drop_input(struct rdma_link *link);

#endif
