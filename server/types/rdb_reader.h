/*
 * State of decoding a value: its bytes, and the elements found so far.
 */
#ifndef VELLUM_RDB_READER_H
#define VELLUM_RDB_READER_H

#include "server/types/rdb.h"

struct rdb_reader {
    const uint8_t *at, *end;
    struct rdb_caller caller;
    struct rdb_value *value;
    size_t capacity;
};

/* A little-endian number of up to 8 bytes. */
uint64_t rdb_number(const uint8_t *from, size_t size);
int64_t rdb_signed(const uint8_t *from, size_t size);

/* The next `size` bytes; a length; a string, whose bytes are in the payload or in memory of the
 * caller. False: they are not there, or malformed. */
bool rdb_take(struct rdb_reader *reader, uint64_t size, const uint8_t **bytes);
bool rdb_read_length(struct rdb_reader *reader, uint64_t *length);
enum rdb_result rdb_read_string(struct rdb_reader *reader, struct resp_slice *string);

/* Adds an element: bytes that remain valid, or a number as text. */
enum rdb_result rdb_add(struct rdb_reader *reader, struct resp_slice slice);
enum rdb_result rdb_add_number(struct rdb_reader *reader, int64_t number);
/* The number as text, in memory of the value. */
enum rdb_result rdb_number_text(struct rdb_reader *reader, int64_t number, struct resp_slice *text);

#endif
