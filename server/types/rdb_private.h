/*
 * What the files that read RDB share.
 */
#ifndef VELLUM_RDB_PRIVATE_H
#define VELLUM_RDB_PRIVATE_H

#include "server/types/rdb.h"

struct rdb_reader {
    const uint8_t *at, *end;
    struct rdb_memory memory;
    struct rdb_value *value;
    size_t capacity;
};

/* A little-endian number of up to 8 bytes. */
uint64_t rdb_number(const uint8_t *from, size_t size);
int64_t rdb_signed(const uint8_t *from, size_t size);

/* An element more, from bytes that stay, or a number as text. */
enum rdb_result rdb_add(struct rdb_reader *reader, struct resp_slice slice);
enum rdb_result rdb_add_number(struct rdb_reader *reader, int64_t number);

/* The elements of Redis's compact forms, each of which is a string of its own. */
enum rdb_result rdb_read_listpack(struct rdb_reader *reader, struct resp_slice bytes);
enum rdb_result rdb_read_ziplist(struct rdb_reader *reader, struct resp_slice bytes);
enum rdb_result rdb_read_zipmap(struct rdb_reader *reader, struct resp_slice bytes);
enum rdb_result rdb_read_intset(struct rdb_reader *reader, struct resp_slice bytes);

#endif
