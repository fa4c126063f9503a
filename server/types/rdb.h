/*
 * Values in the encoding of Redis's RDB files, as DUMP gives them and RESTORE takes them: a type
 * byte, then lengths and strings as the type has them.
 *
 * What is read may be anything: each function that reads checks all that it goes by. Nothing of the
 * store here; memory comes from the caller.
 */
#ifndef VELLUM_RDB_H
#define VELLUM_RDB_H

#include "protocol/resp.h"

#define RDB_VERSION_WRITTEN 10
#define RDB_VERSION_READ 11 /* and those before it */
#define RDB_FOOTER_BYTES 10 /* version and checksum behind a value, as DUMP has them */

enum rdb_kind { RDB_STRING, RDB_LIST, RDB_SET, RDB_ZSET, RDB_HASH };
enum rdb_result { RDB_OK, RDB_BAD, RDB_NO_MEMORY };

/* ---- reading ---- */

/* A value: one slice for a string, one for each element or member, two for each field of a hash.
 * Slices lie in the payload or in memory from `alloc`. */
struct rdb_value {
    enum rdb_kind kind;
    struct resp_slice *slices;
    double *scores; /* of sorted sets: one for each slice */
    size_t count;   /* of slices; at least one */
};

struct rdb_memory {
    void *(*alloc)(void *arg,
                   size_t size); /* NULL: there is none; freed by its owner, as a whole */
    void *arg;
};

#endif
