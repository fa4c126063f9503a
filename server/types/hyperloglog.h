/*
 * HyperLogLog: an estimate of how many different elements were seen, in strings that are byte for
 * byte those of Redis.
 *
 *     OFFSET  SIZE    DESCRIPTION
 *     0       4       "HYLL"
 *     4       1       encoding: 0 dense, 1 sparse
 *     5       3       unused
 *     8       8       the estimate as last computed, the lowest byte first; its highest bit is set
 *                     when registers have changed since
 *     16      .       dense: 16384 registers of 6 bits, the lowest bits first
 *                     sparse: runs of equal registers, see hyperloglog.c
 *
 * Bytes in, bytes out: nothing of the store here.
 */
#ifndef VELLUM_HYPERLOGLOG_H
#define VELLUM_HYPERLOGLOG_H

#include "protocol/resp.h"

#define HLL_REGISTERS 16384
#define HLL_HEADER_BYTES 16
#define HLL_DENSE_BYTES (HLL_HEADER_BYTES + HLL_REGISTERS * 6 / 8)
#define HLL_BYTES_MAX (HLL_HEADER_BYTES + HLL_REGISTERS * 2) /* one run of two bytes for each */

/* One that may be changed: always whole, as hll_open has found it. */
struct hll {
    size_t len;
    uint8_t bytes[HLL_BYTES_MAX];
};

enum hll_state { HLL_GOOD, HLL_FOREIGN, HLL_CORRUPT };

/* Whether a string begins as one; the runs of a sparse one are looked at by hll_open and
 * hll_collect. */
bool hll_is_one(struct resp_slice string);

void hll_make(struct hll *hll); /* empty, sparse */
enum hll_state hll_open(struct hll *hll, struct resp_slice string);

static inline struct resp_slice hll_slice(const struct hll *hll)
{
    return (struct resp_slice){(const char *)hll->bytes, hll->len};
}
bool hll_is_sparse(struct resp_slice string); /* of one that hll_is_one */

/* True: a register has changed. A sparse one that would be longer than sparse_max becomes dense. */
bool hll_add(struct hll *hll, struct resp_slice element, uint64_t sparse_max);
bool hll_raise(struct hll *hll, uint32_t index, uint8_t value, uint64_t sparse_max);
void hll_make_dense(struct hll *hll);

/* Raises each register to what the string has there. */
enum hll_state hll_collect(uint8_t registers[HLL_REGISTERS], struct resp_slice string);
uint64_t hll_estimate(const uint8_t registers[HLL_REGISTERS]);

/* The estimate kept in the header; false: out of date. */
bool hll_kept(struct resp_slice string, uint64_t *estimate);
void hll_keep(char bytes[8], uint64_t estimate); /* as it stands at offset 8 */
#define HLL_KEPT_AT 8
void hll_forget(struct hll *hll);

/* The runs of a sparse one, as PFDEBUG DECODE shows them. */
void hll_describe(struct resp_writer *text, struct resp_slice string);

#endif
