/*
 * One end of a channel, of bare verbs and RESP: it keeps to protocol/RDMA.md as far as a test
 * wants.
 */
#ifndef VELLUM_TEST_RDMA_RAW_H
#define VELLUM_TEST_RDMA_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clients/vellum.h"
#include "protocol/rdma_frame.h"
#include "rdma-ext/verbs.h"

#define MEMORY (256 * 1024) /* the second half: receives, or the ring */
#define RECEIVES 32
#define FRAME 4096

/* A bare queue pair, and the TCP connection of a client. */
struct raw {
    redisContext *tcp; /* NULL: the other end's */
    struct rdma_device device;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *memory;
    struct rdma_end ours, theirs;
    unsigned posted;
};

#define WORD(type, credits, length) ((uint32_t)(type) << 28 | (credits) << 17 | (length))

void pause_ms(long ms);

redisContext *dial(void);
/* A figure of INFO. */
long long figure(redisContext *tcp, const char *name);
void await_figure(redisContext *tcp, const char *name, long long wanted);

/* A client that keeps to the rules, by a channel. */
struct vellum *connect_neighbour(enum rdma_mode mode);
/* One client sets a long value, the other one gets it. */
void exchange(struct vellum *from, struct vellum *to);

void raw_gid_of(const char *ip, uint8_t gid[16]);

/* A queue pair at this address, of either end, and not connected. */
void raw_open_end(struct raw *raw, enum rdma_mode mode, const char *ip);
char *raw_received(const struct raw *raw, uint64_t number);

/* A TCP connection beside a queue pair that is not connected; the server is asked for a channel
 * with its attributes, of which one has another value; answered; and so on, or all of it. The
 * caller frees replies. */
void raw_open_device(struct raw *raw, enum rdma_mode mode);
void raw_post_receives(struct raw *raw, int count);
void raw_send_question(struct raw *raw, const char *name, const char *value);
redisReply *raw_ask(struct raw *raw, const char *name, const char *value);
void raw_take_answer(struct raw *raw, const redisReply *answer);
void raw_begin(struct raw *raw);
void raw_connect_by(struct raw *raw, enum rdma_mode mode, int receives);
void raw_connect(struct raw *raw, int receives);
void raw_free(struct raw *raw);

void raw_post_word(struct raw *raw, const void *message, size_t len, enum ibv_wr_opcode opcode,
                   uint64_t remote, uint32_t rkey, uint32_t word);
void raw_post(struct raw *raw, const void *message, size_t len, enum ibv_wr_opcode opcode,
              uint64_t remote, uint32_t rkey);
/* A frame of mode write: its bytes to a slot of the server's ring, its header as the word. */
void raw_write_frame(struct raw *raw, uint32_t slot, uint32_t word, const void *bytes, size_t len);
/* One of mode send, with a payload of line ends. */
void raw_send_frame(struct raw *raw, int type, int reserved, uint32_t credits, uint32_t length,
                    size_t payload);

/* The server ends TCP, which is how a client learns of it. */
void raw_assert_closed(struct raw *raw);

#endif
