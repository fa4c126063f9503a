/*
 * Decodes RDB values.
 */
#ifndef VELLUM_RDB_READ_H
#define VELLUM_RDB_READ_H

#include "server/types/rdb.h"

/* Whether the footer's version can be read, and its checksum is `sum`, that of all but the last 8
 * bytes. */
bool rdb_version_is_good(struct resp_slice payload);
bool rdb_checksum_is_good(struct resp_slice payload, uint64_t sum);
bool rdb_is_stream(struct resp_slice bytes); /* by its type */
/* `bytes` excludes the footer. Members may occur twice; the caller must check that. */
enum rdb_result rdb_read_value(struct resp_slice bytes, struct rdb_caller caller,
                               struct rdb_value *value);

#endif
