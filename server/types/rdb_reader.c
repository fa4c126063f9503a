#include "server/types/rdb_reader.h"

#include <liblzf/lzf.h>
#include <string.h>

#define STRING_MAX (512u * 1024 * 1024)
#define LZF_RATIO_MAX 264 /* three compressed bytes expand to at most this: a loose bound */

uint64_t rdb_number(const uint8_t *from, size_t size)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++)
        number |= (uint64_t)from[i] << (8 * i);
    return number;
}

int64_t rdb_signed(const uint8_t *from, size_t size)
{
    unsigned unused = 64 - 8 * (unsigned)size;
    return (int64_t)(rdb_number(from, size) << unused) >> unused;
}

static enum rdb_result grow(struct rdb_reader *reader)
{
    struct rdb_value *value = reader->value;
    size_t capacity = reader->capacity == 0 ? 16 : reader->capacity * 2;
    struct rdb_caller caller = reader->caller;
    struct resp_slice *slices = caller.alloc(caller.arg, capacity * sizeof *slices);
    double *scores = caller.alloc(caller.arg, capacity * sizeof *scores);
    if (slices == NULL || scores == NULL)
        return RDB_NO_MEMORY;
    if (value->count > 0) {
        memcpy(slices, value->slices, value->count * sizeof *slices);
        memcpy(scores, value->scores, value->count * sizeof *scores);
    }
    value->slices = slices;
    value->scores = scores;
    reader->capacity = capacity;
    return RDB_OK;
}

enum rdb_result rdb_add(struct rdb_reader *reader, struct resp_slice slice)
{
    enum rdb_result result = reader->value->count == reader->capacity ? grow(reader) : RDB_OK;
    if (result != RDB_OK)
        return result;
    size_t count = ++reader->value->count;
    reader->value->slices[count - 1] = slice;
    bool goes_on = reader->caller.go_on == NULL || reader->caller.go_on(reader->caller.arg, count);
    return goes_on ? RDB_OK : RDB_STOPPED;
}

enum rdb_result rdb_number_text(struct rdb_reader *reader, int64_t number, struct resp_slice *text)
{
    char *copy = reader->caller.alloc(reader->caller.arg, 24);
    if (copy == NULL)
        return RDB_NO_MEMORY;
    *text = (struct resp_slice){copy, resp_print_int64(copy, number)};
    return RDB_OK;
}

enum rdb_result rdb_add_number(struct rdb_reader *reader, int64_t number)
{
    struct resp_slice text;
    enum rdb_result result = rdb_number_text(reader, number, &text);
    return result == RDB_OK ? rdb_add(reader, text) : result;
}

/* ---- lengths and strings ---- */

bool rdb_take(struct rdb_reader *reader, uint64_t size, const uint8_t **bytes)
{
    if (size > (uint64_t)(reader->end - reader->at))
        return false;
    *bytes = reader->at;
    reader->at += size;
    return true;
}

static uint64_t big_endian(const uint8_t *from, size_t size)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | from[i];
    return number;
}

/* *is_encoded: instead of a length, a string in the encoding numbered *length follows. */
static bool read_head(struct rdb_reader *reader, uint64_t *length, bool *is_encoded)
{
    const uint8_t *head, *more;
    *is_encoded = false;
    if (!rdb_take(reader, 1, &head))
        return false;
    *length = head[0] & 0x3f;
    switch (head[0] >> 6) {
    case 0:
        return true;
    case 1:
        if (!rdb_take(reader, 1, &more))
            return false;
        *length = *length << 8 | more[0];
        return true;
    case 3:
        *is_encoded = true;
        return true;
    default:
        break;
    }
    size_t size = head[0] == 0x80 ? 4 : 8;
    if ((head[0] != 0x80 && head[0] != 0x81) || !rdb_take(reader, size, &more))
        return false;
    *length = big_endian(more, size);
    return true;
}

bool rdb_read_length(struct rdb_reader *reader, uint64_t *length)
{
    bool is_encoded;
    return read_head(reader, length, &is_encoded) && !is_encoded;
}

static enum rdb_result read_compressed(struct rdb_reader *reader, struct resp_slice *string)
{
    uint64_t packed_len, len;
    const uint8_t *packed;
    if (!rdb_read_length(reader, &packed_len) || !rdb_read_length(reader, &len) || len == 0 ||
        len > STRING_MAX || !rdb_take(reader, packed_len, &packed) ||
        len > packed_len * LZF_RATIO_MAX)
        return RDB_BAD;
    char *bytes = reader->caller.alloc(reader->caller.arg, len);
    if (bytes == NULL)
        return RDB_NO_MEMORY;
    *string = (struct resp_slice){bytes, len};
    return lzf_decompress(packed, (unsigned)packed_len, bytes, (unsigned)len) == len ? RDB_OK
                                                                                     : RDB_BAD;
}

enum rdb_result rdb_read_string(struct rdb_reader *reader, struct resp_slice *string)
{
    uint64_t length;
    bool is_encoded;
    const uint8_t *bytes;
    if (!read_head(reader, &length, &is_encoded))
        return RDB_BAD;
    if (is_encoded && length == 3)
        return read_compressed(reader, string);
    if (is_encoded) {
        size_t size = (size_t)1 << length;
        if (length > 2 || !rdb_take(reader, size, &bytes))
            return RDB_BAD;
        return rdb_number_text(reader, rdb_signed(bytes, size), string);
    }
    if (length > STRING_MAX || !rdb_take(reader, length, &bytes))
        return RDB_BAD;
    *string = (struct resp_slice){(const char *)bytes, length};
    return RDB_OK;
}
