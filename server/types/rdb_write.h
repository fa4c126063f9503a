/*
 * Encodes RDB values: a head, then the strings; in sorted sets a score follows each.
 */
#ifndef VELLUM_RDB_WRITE_H
#define VELLUM_RDB_WRITE_H

#include "server/types/rdb.h"

void rdb_put_head(struct resp_writer *out, enum rdb_kind kind, uint64_t count);
/* Of a hash of which fields expire, for RDB_VERSION_TIMED; before each field stands its expiry. */
void rdb_put_timed_head(struct resp_writer *out, int64_t earliest_ms, uint64_t count);
void rdb_put_expiry(struct resp_writer *out, int64_t earliest_ms, int64_t expire_ms);
void rdb_put_string(struct resp_writer *out, struct resp_slice string);
void rdb_put_score(struct resp_writer *out, double score);
/* A length: also the head of an uncompressed string, whose bytes follow. */
void rdb_put_length(struct resp_writer *out, uint64_t length);
/* The footer after bytes with this checksum. */
void rdb_footer(uint64_t sum, uint32_t version, char footer[RDB_FOOTER_BYTES]);

/* CRC-64 with the Jones polynomial; starts with 0. */
uint64_t rdb_checksum(uint64_t sum, struct resp_slice bytes);
/* Goes on with the bytes of `out` after `before`, which are final. */
void rdb_add_to_checksum(uint64_t *sum, const struct resp_writer *out, size_t before);

#endif
