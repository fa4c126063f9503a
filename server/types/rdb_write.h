/*
 * Writing RDB values: each a head, then its strings; of sorted sets each with its score.
 */
#ifndef VELLUM_RDB_WRITE_H
#define VELLUM_RDB_WRITE_H

#include "server/types/rdb.h"

void rdb_put_head(struct resp_writer *out, enum rdb_kind kind, uint64_t count);
void rdb_put_string(struct resp_writer *out, struct resp_slice string);
void rdb_put_score(struct resp_writer *out, double score);
/* A string as it is, `len` bytes, which are to follow. */
void rdb_put_plain_head(struct resp_writer *out, uint64_t len);
/* What is to stand behind bytes with this checksum. */
void rdb_footer(uint64_t sum, char footer[RDB_FOOTER_BYTES]);

/* CRC-64 with Jones's polynomial; 0 to begin with. */
uint64_t rdb_checksum(uint64_t sum, struct resp_slice bytes);

#endif
