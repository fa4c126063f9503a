/*
 * Redis's compact encodings of small collections. Every length is checked against the bytes
 * present. Multi-byte numbers are little-endian unless stated otherwise.
 *
 *     listpack   bytes 4, count 2 (65535: unknown), entries, 0xff
 *                entry: head with integer or length, string, the size of both mirrored
 *     ziplist    bytes 4, offset of the last entry 4, count 2 (65535: unknown), entries, 0xff
 *                entry: size of the previous one (1, or 0xfe and 4), head, integer or string
 *     zipmap     count 1, then fields and values in turn, 0xff
 *                field: length (1, or 0xfe and 4), string; value: the same, where a byte after
 *                the length gives the number of unused bytes at the end
 *     intset     size of an integer 4, count 4, integers in ascending order
 */
#include "server/types/rdb_packed.h"

#include <string.h>

#define END 0xff
#define COUNT_UNKNOWN 65535

static struct resp_slice slice_of(const uint8_t *at, size_t len)
{
    return (struct resp_slice){(const char *)at, len};
}

static enum rdb_result add_element(struct rdb_reader *reader, const struct rdb_element *element)
{
    if (element->is_number)
        return rdb_add_number(reader, element->number);
    return rdb_add(reader, (struct resp_slice){element->bytes, element->len});
}

static struct rdb_element string_entry(size_t head, size_t len)
{
    return (struct rdb_element){.head = head, .len = len};
}

static struct rdb_element number_entry(size_t head, int64_t number, size_t len)
{
    return (struct rdb_element){.is_number = true, .number = number, .head = head, .len = len};
}

static int64_t sign_of_13_bits(unsigned bits)
{
    return bits < 1 << 12 ? (int64_t)bits : (int64_t)bits - (1 << 13);
}

/* ---- listpack ---- */

/* `left` is the number of bytes present, without the end marker. */
static bool listpack_entry(const uint8_t *at, size_t left, struct rdb_element *entry)
{
    static const uint8_t sizes[] = {2, 3, 4, 8}; /* of 0xf1 to 0xf4 */
    uint8_t head = at[0];
    if (head < 0x80)
        *entry = number_entry(1, head, 0);
    else if (head < 0xc0)
        *entry = string_entry(1, head & 0x3f);
    else if (head < 0xf0 && left < 2)
        return false;
    else if (head < 0xe0)
        *entry = number_entry(2, sign_of_13_bits((head & 0x1fu) << 8 | at[1]), 0);
    else if (head < 0xf0)
        *entry = string_entry(2, (head & 0x0fu) << 8 | at[1]);
    else if (head == 0xf0 && left >= 5)
        *entry = string_entry(5, rdb_number(at + 1, 4));
    else if (head >= 0xf1 && head <= 0xf4 && left > sizes[head - 0xf1])
        *entry = number_entry(1, rdb_signed(at + 1, sizes[head - 0xf1]), sizes[head - 0xf1]);
    else
        return false;
    return entry->len <= left - entry->head;
}

/* The number of bytes of the trailing entry size. 0: it is truncated or does not match. */
static size_t mirrored_size(const uint8_t *at, size_t left, size_t size)
{
    size_t width = size <= 127        ? 1
                   : size < 16383     ? 2
                   : size < 2097151   ? 3
                   : size < 268435455 ? 4
                                      : 5;
    if (left < width)
        return 0;
    for (size_t i = 0; i < width; i++) {
        unsigned bits = (unsigned)(size >> (7 * (width - 1 - i))) & 127;
        if (at[i] != (bits | (i > 0 ? 128u : 0u)))
            return 0;
    }
    return width;
}

static bool count_is(uint64_t stated, uint64_t found)
{
    return stated == COUNT_UNKNOWN || stated == found;
}

bool rdb_listpack_open(struct resp_slice bytes, struct rdb_listpack *listpack)
{
    const uint8_t *at = (const uint8_t *)bytes.data;
    if (bytes.len < 7 || rdb_number(at, 4) != bytes.len || at[bytes.len - 1] != END)
        return false;
    *listpack = (struct rdb_listpack){
        .at = at + 6, .end = at + bytes.len - 1, .stated = rdb_number(at + 4, 2)};
    return true;
}

bool rdb_listpack_next(struct rdb_listpack *listpack, struct rdb_element *element)
{
    const uint8_t *at = listpack->at;
    size_t left = (size_t)(listpack->end - at);
    if (left == 0 || !listpack_entry(at, left, element))
        return false;
    size_t size = element->head + element->len;
    size_t behind = mirrored_size(at + size, left - size, size);
    listpack->at += size + behind;
    listpack->found++;
    element->bytes = (const char *)at + element->head;
    return behind > 0;
}

bool rdb_listpack_ends(const struct rdb_listpack *listpack)
{
    return listpack->at == listpack->end && count_is(listpack->stated, listpack->found);
}

enum rdb_result rdb_read_listpack(struct rdb_reader *reader, struct resp_slice bytes)
{
    struct rdb_listpack listpack;
    struct rdb_element element;
    if (!rdb_listpack_open(bytes, &listpack))
        return RDB_BAD;
    while (listpack.at < listpack.end) {
        if (!rdb_listpack_next(&listpack, &element))
            return RDB_BAD;
        enum rdb_result result = add_element(reader, &element);
        if (result != RDB_OK)
            return result;
    }
    return rdb_listpack_ends(&listpack) ? RDB_OK : RDB_BAD;
}

/* ---- ziplist ---- */

static bool ziplist_number(const uint8_t *at, size_t left, struct rdb_element *entry)
{
    size_t size;
    switch (at[0]) {
    case 0xc0:
        size = 2;
        break;
    case 0xd0:
        size = 4;
        break;
    case 0xe0:
        size = 8;
        break;
    case 0xf0:
        size = 3;
        break;
    case 0xfe:
        size = 1;
        break;
    default:
        *entry = number_entry(1, (at[0] & 0x0f) - 1, 0);
        return at[0] >= 0xf1 && at[0] <= 0xfd;
    }
    if (left <= size)
        return false;
    *entry = number_entry(1, rdb_signed(at + 1, size), size);
    return true;
}

static bool ziplist_entry(const uint8_t *at, size_t left, struct rdb_element *entry)
{
    if (left == 0)
        return false;
    if (at[0] >= 0xc0)
        return ziplist_number(at, left, entry);
    if (at[0] < 0x40)
        *entry = string_entry(1, at[0]);
    else if (at[0] < 0x80 && left >= 2)
        *entry = string_entry(2, (at[0] & 0x3fu) << 8 | at[1]);
    else if (at[0] >= 0x80 && left >= 5)
        *entry = string_entry(5, __builtin_bswap32((uint32_t)rdb_number(at + 1, 4)));
    else
        return false;
    return entry->len <= left - entry->head;
}

/* A length of 1 byte, or of 0xfe and 4 bytes. Returns its size in bytes, 0 if it is malformed. */
static size_t short_length(const uint8_t *at, size_t left, uint64_t *length)
{
    if (left == 0 || at[0] == END || (at[0] == 0xfe && left < 5))
        return 0;
    *length = at[0] == 0xfe ? rdb_number(at + 1, 4) : at[0];
    return at[0] == 0xfe ? 5 : 1;
}

enum rdb_result rdb_read_ziplist(struct rdb_reader *reader, struct resp_slice bytes)
{
    const uint8_t *begin = (const uint8_t *)bytes.data, *end = begin + bytes.len;
    uint64_t found = 0, last = 10, before = 0;
    if (bytes.len < 11 || rdb_number(begin, 4) != bytes.len || *--end != END)
        return RDB_BAD;
    for (const uint8_t *at = begin + 10; at < end; found++) {
        struct rdb_element entry;
        uint64_t stated;
        size_t width = short_length(at, (size_t)(end - at), &stated);
        last = (uint64_t)(at - begin);
        if (width == 0 || stated != before ||
            !ziplist_entry(at + width, (size_t)(end - at) - width, &entry))
            return RDB_BAD;
        entry.bytes = (const char *)at + width + entry.head;
        enum rdb_result result = add_element(reader, &entry);
        if (result != RDB_OK)
            return result;
        before = width + entry.head + entry.len;
        at += before;
    }
    return rdb_number(begin + 4, 4) == last && count_is(rdb_number(begin + 8, 2), found) ? RDB_OK
                                                                                         : RDB_BAD;
}

/* ---- zipmap ---- */

enum rdb_result rdb_read_zipmap(struct rdb_reader *reader, struct resp_slice bytes)
{
    const uint8_t *at = (const uint8_t *)bytes.data, *end = at + bytes.len;
    uint64_t found = 0, length;
    if (bytes.len < 2 || *--end != END)
        return RDB_BAD;
    uint8_t stated = *at++;
    for (; at < end; found++) {
        bool is_value = found % 2 == 1;
        size_t width = short_length(at, (size_t)(end - at), &length);
        uint64_t left = (uint64_t)(end - at) - width;
        if (width == 0 || left < is_value || length > left - is_value)
            return RDB_BAD;
        at += width;
        uint64_t unused = is_value ? *at++ : 0;
        if (unused > left - is_value - length)
            return RDB_BAD;
        enum rdb_result result = rdb_add(reader, slice_of(at, length));
        if (result != RDB_OK)
            return result;
        at += length + unused;
    }
    return found % 2 == 0 && (stated >= 0xfe || stated == found / 2) ? RDB_OK : RDB_BAD;
}

/* ---- intset ---- */

enum rdb_result rdb_read_intset(struct rdb_reader *reader, struct resp_slice bytes)
{
    const uint8_t *at = (const uint8_t *)bytes.data;
    if (bytes.len < 8)
        return RDB_BAD;
    uint64_t size = rdb_number(at, 4), count = rdb_number(at + 4, 4);
    int64_t before = 0;
    if ((size != 2 && size != 4 && size != 8) || bytes.len - 8 != size * count)
        return RDB_BAD;
    at += 8;
    for (uint64_t i = 0; i < count; i++, at += size) {
        int64_t number = rdb_signed(at, size);
        if (i > 0 && number <= before)
            return RDB_BAD;
        before = number;
        enum rdb_result result = rdb_add_number(reader, number);
        if (result != RDB_OK)
            return result;
    }
    return RDB_OK;
}
