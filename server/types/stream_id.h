/*
 * IDs of stream entries: a time in milliseconds and a sequence number, 64 bits each, written as
 * `ms-seq`. As the key of a tree's entry an ID is both numbers, big-endian, so that bytes order as
 * IDs do. Command reference: https://redis.io/docs/data-types/streams/
 */
#ifndef VELLUM_STREAM_ID_H
#define VELLUM_STREAM_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/resp.h"
#include "server/types/big_endian.h"

struct stream_id {
    uint64_t ms, seq;
};

#define STREAM_ID_MIN ((struct stream_id){0, 0})
#define STREAM_ID_MAX ((struct stream_id){UINT64_MAX, UINT64_MAX})
#define STREAM_ID_BYTES 16 /* as a key */
#define STREAM_ID_TEXT 44  /* room for the text, with its NUL */

static inline int stream_id_compare(struct stream_id a, struct stream_id b)
{
    if (a.ms != b.ms)
        return a.ms < b.ms ? -1 : 1;
    return a.seq == b.seq ? 0 : a.seq < b.seq ? -1 : 1;
}

static inline bool stream_id_is_zero(struct stream_id id)
{
    return id.ms == 0 && id.seq == 0;
}

/* The next or the previous ID; false: there is none, and *id is unchanged. */
bool stream_id_increment(struct stream_id *id);
bool stream_id_decrement(struct stream_id *id);

static inline void stream_id_write(char bytes[STREAM_ID_BYTES], struct stream_id id)
{
    big_endian_write(bytes, id.ms);
    big_endian_write(bytes + 8, id.seq);
}

static inline struct stream_id stream_id_read(const char bytes[STREAM_ID_BYTES])
{
    return (struct stream_id){big_endian_read(bytes), big_endian_read(bytes + 8)};
}

/* Returns the length. */
size_t stream_id_print(char text[STREAM_ID_TEXT], struct stream_id id);
void stream_id_reply(struct resp_writer *reply, struct stream_id id); /* as a bulk string */

/* How an ID was written. */
enum stream_id_form {
    STREAM_ID_INVALID,
    STREAM_ID_WHOLE,
    STREAM_ID_AUTO_SEQ, /* `ms-*`: the sequence number is still to be chosen */
};

/* `ms-seq`, `ms-*` or `ms`, whose sequence number is `missing_seq`. */
enum stream_id_form stream_id_parse(struct resp_slice text, uint64_t missing_seq,
                                    struct stream_id *id);

#endif
