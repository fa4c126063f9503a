/*
 * Values in the encoding of Redis's RDB files, as DUMP writes and RESTORE reads them: a type byte,
 * then lengths and strings as the type defines them.
 *
 * The input is untrusted: each function that reads validates all that it depends on. Nothing here
 * depends on the store; decoded values lie in memory that the caller provides.
 */
#ifndef VELLUM_RDB_H
#define VELLUM_RDB_H

#include "protocol/resp.h"

#define RDB_VERSION_WRITTEN 10
#define RDB_VERSION_TIMED 12 /* hashes of which fields expire: Redis 7.4 */
#define RDB_VERSION_READ 12  /* and all earlier versions */
#define RDB_FOOTER_BYTES 10  /* version and checksum at the end of a DUMP payload */

#define RDB_NO_EXPIRY (-1)
#define RDB_EXPIRY_MAX ((INT64_C(1) << 48) - 1)

enum rdb_kind { RDB_STRING, RDB_LIST, RDB_SET, RDB_ZSET, RDB_HASH, RDB_STREAM };
enum rdb_result { RDB_OK, RDB_BAD, RDB_NO_MEMORY, RDB_STOPPED };

/* ---- reading ---- */

struct rdb_stream;

/* A value: one slice for a string, one for each element or member, two for each field of a hash.
 * Slices point into the payload or into memory from `alloc`. */
struct rdb_value {
    enum rdb_kind kind;
    struct resp_slice *slices;
    double *scores;    /* of sorted sets: one for each slice */
    int64_t *expiries; /* of hashes: one for each field, RDB_NO_EXPIRY or Unix ms; or NULL */
    size_t count;      /* of slices; at least one */
    struct rdb_stream *stream; /* a stream has this instead (rdb_stream_read.h) */
};

/* Who reads: provides memory, and may stop it. */
struct rdb_caller {
    void *(*alloc)(void *arg,
                   size_t size); /* may return NULL; its owner frees all memory at once */
    /* NULL, or called between two elements, of which `count` were read: false ends the reading with
     * RDB_STOPPED. */
    bool (*go_on)(void *arg, size_t count);
    void *arg;
};

#endif
