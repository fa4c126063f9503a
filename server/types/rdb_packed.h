/*
 * The elements of Redis's compact encodings, each of which is stored in a string of its own.
 */
#ifndef VELLUM_RDB_PACKED_H
#define VELLUM_RDB_PACKED_H

#include "server/types/rdb_reader.h"

/* An element of a listpack or ziplist: a number, or a string. */
struct rdb_element {
    bool is_number;
    int64_t number;
    const char *bytes;
    size_t head, len; /* sizes: of what is before the bytes, and of them, or of the number */
};

/* Walks the elements of a listpack. */
struct rdb_listpack {
    const uint8_t *at, *end;
    uint64_t stated, found;
};

/* False: it is malformed. Only the elements met so far are known to be sound. */
bool rdb_listpack_open(struct resp_slice bytes, struct rdb_listpack *listpack);
bool rdb_listpack_next(struct rdb_listpack *listpack, struct rdb_element *element);
/* Whether there are no more, and as many as stated. */
bool rdb_listpack_ends(const struct rdb_listpack *listpack);

enum rdb_result rdb_read_listpack(struct rdb_reader *reader, struct resp_slice bytes);
enum rdb_result rdb_read_ziplist(struct rdb_reader *reader, struct resp_slice bytes);
enum rdb_result rdb_read_zipmap(struct rdb_reader *reader, struct resp_slice bytes);
enum rdb_result rdb_read_intset(struct rdb_reader *reader, struct resp_slice bytes);

#endif
