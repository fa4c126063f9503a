/*
 * One end of an RDMA channel, as RDMA CONNECT tells the other of it: attributes by name, RDMA.md.
 */
#ifndef VELLUM_RDMA_END_H
#define VELLUM_RDMA_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How frames are transferred; named as in RDMA CONNECT. */
enum rdma_mode {
    RDMA_MODE_SEND,  /* as messages */
    RDMA_MODE_WRITE, /* written into the other end's ring */
    RDMA_MODE_COUNT,
};

const char *rdma_mode_name(enum rdma_mode mode);
bool rdma_mode_read(enum rdma_mode *mode, const char *name, size_t len);

struct rdma_end {
    enum rdma_mode mode; /* decides which attributes there are */
    uint8_t gid[16];
    uint32_t lid, qpn, psn;
    uint32_t mtu;         /* bytes: 256, 512 ... 4096 */
    uint32_t frame_bytes; /* of one receive, or slot of the ring */
    uint32_t credits;     /* receives posted for the other end */
    uint64_t ring;        /* address of this end's ring, and the key to it */
    uint32_t ring_key;
    uint32_t present; /* bit i: attribute i was given */
};

#define RDMA_END_ATTRIBUTES 9 /* at most */
#define RDMA_END_TEXT_MAX 40

/* How many attributes an end of its mode has: the first ones. */
uint32_t rdma_end_attributes(const struct rdma_end *end);

/* False: the value is invalid for this name. Unknown names are ignored: a later version may have
 * them. */
bool rdma_end_read(struct rdma_end *end, const char *name, size_t name_len, const char *value,
                   size_t value_len);

/* The name of the first missing attribute; NULL: none is missing. */
const char *rdma_end_missing(const struct rdma_end *end);

/* Attribute `index`: its name, and its value as text. */
const char *rdma_end_print(const struct rdma_end *end, uint32_t index,
                           char value[RDMA_END_TEXT_MAX]);

#endif
