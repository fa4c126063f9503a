/*
 * One end of an RDMA channel, as RDMA CONNECT tells the other of it: attributes by name, RDMA.md.
 */
#ifndef VELLUM_RDMA_END_H
#define VELLUM_RDMA_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rdma_end {
    uint8_t gid[16];
    uint32_t lid, qpn, psn;
    uint32_t mtu;         /* bytes: 256, 512 ... 4096 */
    uint32_t frame_bytes; /* of one receive, the header included */
    uint32_t credits;     /* receives posted for the other end */
    uint32_t present;     /* bit i: attribute i was given */
};

#define RDMA_END_ATTRIBUTES 7
#define RDMA_END_TEXT_MAX 40

/* False: the value is none for this name. Unknown names are passed over: a later version's. */
bool rdma_end_read(struct rdma_end *end, const char *name, size_t name_len, const char *value,
                   size_t value_len);

/* The first attribute that is missing, by name; NULL: none is. */
const char *rdma_end_missing(const struct rdma_end *end);

/* Attribute `index`: its name, and its value as text. */
const char *rdma_end_print(const struct rdma_end *end, uint32_t index,
                           char value[RDMA_END_TEXT_MAX]);

#endif
