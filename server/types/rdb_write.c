#include "server/types/rdb_write.h"

#include <assert.h>
#include <liblzf/lzf.h>
#include <stdlib.h>
#include <string.h>

#define COMPRESS_MIN 21 /* bytes; shorter strings are not compressed */

/* ---- checksum ---- */

/* Table by nibble: the remainder for each. */
static const uint64_t remainders[16] = {
    0x0000000000000000, 0x7d08ff3b88be6f81, 0xfa11fe77117cdf02, 0x8719014c99c2b083,
    0xdf7adabd7a6e2d6f, 0xa2722586f2d042ee, 0x256b24ca6b12f26d, 0x5863dbf1e3ac9dec,
    0x95ac9329ac4bc9b5, 0xe8a46c1224f5a634, 0x6fbd6d5ebd3716b7, 0x12b5926535897936,
    0x4ad64994d625e4da, 0x37deb6af5e9b8b5b, 0xb0c7b7e3c7593bd8, 0xcdcf48d84fe75459};

uint64_t rdb_checksum(uint64_t sum, struct resp_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t byte = (uint8_t)bytes.data[i];
        sum = sum >> 4 ^ remainders[(sum ^ byte) & 15];
        sum = sum >> 4 ^ remainders[(sum ^ byte >> 4) & 15];
    }
    return sum;
}

void rdb_add_to_checksum(uint64_t *sum, const struct resp_writer *out, size_t before)
{
    if (!out->failed)
        *sum = rdb_checksum(*sum, (struct resp_slice){out->data + before, out->len - before});
}

static void put_number(char *to, uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (char)(number >> (8 * i));
}

void rdb_footer(uint64_t sum, uint32_t version, char footer[RDB_FOOTER_BYTES])
{
    put_number(footer, version, 2);
    put_number(footer + 2, rdb_checksum(sum, (struct resp_slice){footer, 2}), 8);
}

/* ---- values ---- */

void rdb_put_length(struct resp_writer *out, uint64_t length)
{
    uint8_t head[9];
    size_t size = 0;
    if (length < 1 << 6) {
        head[size++] = (uint8_t)length;
    } else if (length < 1 << 14) {
        head[size++] = (uint8_t)(0x40 | length >> 8);
        head[size++] = (uint8_t)length;
    } else {
        int bytes = length <= UINT32_MAX ? 4 : 8;
        head[size++] = bytes == 4 ? 0x80 : 0x81;
        while (bytes-- > 0)
            head[size++] = (uint8_t)(length >> (8 * bytes));
    }
    resp_raw(out, (const char *)head, size);
}

void rdb_put_head(struct resp_writer *out, enum rdb_kind kind, uint64_t count)
{
    /* Encodings that all versions since 8 read: one string per part; scores in binary. */
    static const char types[] = {
        [RDB_STRING] = 0, [RDB_LIST] = 1, [RDB_SET] = 2, [RDB_ZSET] = 5, [RDB_HASH] = 4};
    assert(kind != RDB_STREAM); /* rdb_stream_write.h */
    resp_raw(out, &types[kind], 1);
    if (kind != RDB_STRING)
        rdb_put_length(out, count);
}

void rdb_put_timed_head(struct resp_writer *out, int64_t earliest_ms, uint64_t count)
{
    char head[9] = {24};
    put_number(head + 1, (uint64_t)earliest_ms, 8);
    resp_raw(out, head, sizeof head);
    rdb_put_length(out, count);
}

void rdb_put_expiry(struct resp_writer *out, int64_t earliest_ms, int64_t expire_ms)
{
    assert(expire_ms == RDB_NO_EXPIRY || expire_ms >= earliest_ms);
    rdb_put_length(out, expire_ms == RDB_NO_EXPIRY ? 0 : (uint64_t)(expire_ms - earliest_ms) + 1);
}

static bool put_integer(struct resp_writer *out, struct resp_slice string)
{
    int64_t number;
    char bytes[5];
    if (string.len > 11 || !resp_read_int64(string.data, string.len, &number) ||
        number < INT32_MIN || number > INT32_MAX)
        return false;
    int log = number >= INT8_MIN && number <= INT8_MAX     ? 0
              : number >= INT16_MIN && number <= INT16_MAX ? 1
                                                           : 2;
    bytes[0] = (char)(0xc0 | log);
    put_number(bytes + 1, (uint64_t)number, (size_t)1 << log);
    resp_raw(out, bytes, 1 + ((size_t)1 << log));
    return true;
}

static bool put_compressed(struct resp_writer *out, struct resp_slice string)
{
    if (string.len < COMPRESS_MIN || string.len > INT32_MAX)
        return false;
    size_t most = string.len - 4;
    char *packed = malloc(most);
    unsigned size = packed == NULL
                        ? 0
                        : lzf_compress(string.data, (unsigned)string.len, packed, (unsigned)most);
    if (size > 0) {
        resp_raw(out, "\xc3", 1);
        rdb_put_length(out, size);
        rdb_put_length(out, string.len);
        resp_raw(out, packed, size);
    }
    free(packed);
    return size > 0;
}

void rdb_put_string(struct resp_writer *out, struct resp_slice string)
{
    if (put_integer(out, string) || put_compressed(out, string))
        return;
    rdb_put_length(out, string.len);
    resp_raw(out, string.data, string.len);
}

void rdb_put_score(struct resp_writer *out, double score)
{
    uint64_t bits;
    char bytes[8];
    memcpy(&bits, &score, sizeof bits);
    put_number(bytes, bits, sizeof bytes);
    resp_raw(out, bytes, sizeof bytes);
}
