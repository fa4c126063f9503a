/*
 * HyperLogLog: estimates the number of distinct elements. The strings are byte for byte those of
 * Redis.
 *
 *     OFFSET  SIZE    DESCRIPTION
 *     0       4       "HYLL"
 *     4       1       encoding: 0 dense, 1 sparse
 *     5       3       unused
 *     8       8       the last computed estimate, little-endian; its highest bit is set when
 *                     registers have changed since
 *     16      .       dense: 16384 registers of 6 bits, the lowest bits first
 *                     sparse: runs of equal registers, see hyperloglog.c
 *
 * Works on bytes only and does not depend on the store.
 */
#ifndef VELLUM_HYPERLOGLOG_H
#define VELLUM_HYPERLOGLOG_H

#include "protocol/resp.h"

#define HLL_REGISTERS 16384
#define HLL_HEADER_BYTES 16
#define HLL_DENSE_BYTES (HLL_HEADER_BYTES + HLL_REGISTERS * 6 / 8)
#define HLL_BYTES_MAX (HLL_HEADER_BYTES + HLL_REGISTERS * 2) /* one run of two bytes for each */

/* A HyperLogLog that can be changed. It is always well-formed: hll_open() has checked it. */
struct hll {
    size_t len;
    uint8_t bytes[HLL_BYTES_MAX];
};

enum hll_state { HLL_GOOD, HLL_FOREIGN, HLL_CORRUPT };

/* Whether a string has a valid header. The runs of a sparse one are checked by hll_open() and
 * hll_collect(). */
bool hll_is_one(struct resp_slice string);

void hll_make(struct hll *hll); /* a new one: empty, sparse */
enum hll_state hll_open(struct hll *hll, struct resp_slice string);

static inline struct resp_slice hll_slice(const struct hll *hll)
{
    return (struct resp_slice){(const char *)hll->bytes, hll->len};
}
bool hll_is_sparse(struct resp_slice string); /* only if hll_is_one() */

/* True: a register has changed. A sparse HyperLogLog that would exceed sparse_max becomes dense. */
bool hll_add(struct hll *hll, struct resp_slice element, uint64_t sparse_max);
bool hll_raise(struct hll *hll, uint32_t index, uint8_t value, uint64_t sparse_max);
void hll_make_dense(struct hll *hll);

/* Raises each register to its value in the string. */
enum hll_state hll_collect(uint8_t registers[HLL_REGISTERS], struct resp_slice string);
uint64_t hll_estimate(const uint8_t registers[HLL_REGISTERS]);

/* The estimate cached in the header. False: it is out of date. */
bool hll_kept(struct resp_slice string, uint64_t *estimate);
void hll_keep(char bytes[8], uint64_t estimate); /* in the form stored at offset 8 */
#define HLL_KEPT_AT 8
void hll_forget(struct hll *hll);

/* The runs of a sparse one, in the form of PFDEBUG DECODE. */
void hll_describe(struct resp_writer *text, struct resp_slice string);

#endif
