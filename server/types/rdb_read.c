#include "server/types/rdb_read.h"

#include <math.h>
#include <string.h>

#include "server/types/rdb_packed.h"
#include "server/types/rdb_reader.h"
#include "server/types/rdb_stream_read.h"
#include "server/types/rdb_write.h"

enum rdb_type {
    TYPE_LINKED_LIST = 1,
    TYPE_PLAIN_SET = 2,
    TYPE_ZSET_TEXT = 3,
    TYPE_PLAIN_HASH = 4,
    TYPE_ZSET_BINARY = 5,
    TYPE_HASH_ZIPMAP = 9,
    TYPE_LIST_ZIPLIST = 10,
    TYPE_SET_INTSET = 11,
    TYPE_ZSET_ZIPLIST = 12,
    TYPE_HASH_ZIPLIST = 13,
    TYPE_LIST_QUICKLIST = 14,
    TYPE_HASH_LISTPACK = 16,
    TYPE_ZSET_LISTPACK = 17,
    TYPE_LIST_QUICKLIST_2 = 18,
    TYPE_SET_LISTPACK = 20, /* streams: enum rdb_stream_type */
    TYPE_HASH_TIMED = 24,   /* these two begin with the earliest expiry */
    TYPE_HASH_TIMED_LISTPACK = 25,
};

static enum rdb_result read_element(struct rdb_reader *reader)
{
    struct resp_slice string;
    enum rdb_result result = rdb_read_string(reader, &string);
    return result == RDB_OK ? rdb_add(reader, string) : result;
}

typedef enum rdb_result packed_reader(struct rdb_reader *reader, struct resp_slice bytes);

static enum rdb_result read_packed(struct rdb_reader *reader, packed_reader *read)
{
    struct resp_slice bytes;
    enum rdb_result result = rdb_read_string(reader, &bytes);
    return result == RDB_OK ? read(reader, bytes) : result;
}

/* ---- the types ---- */

static bool read_text_score(struct rdb_reader *reader, double *score)
{
    const uint8_t *bytes;
    if (!rdb_take(reader, 1, &bytes))
        return false;
    uint8_t len = bytes[0];
    *score = len == 255 ? -INFINITY : INFINITY;
    return len >= 254 || (len < 253 && rdb_take(reader, len, &bytes) &&
                          resp_read_double((const char *)bytes, len, score));
}

static bool read_binary_score(struct rdb_reader *reader, double *score)
{
    const uint8_t *bytes;
    if (!rdb_take(reader, 8, &bytes))
        return false;
    uint64_t bits = rdb_number(bytes, 8);
    memcpy(score, &bits, sizeof bits);
    return !isnan(*score);
}

/* A sequence of strings; in sorted sets a score follows each. */
static enum rdb_result read_plain(struct rdb_reader *reader, uint8_t type)
{
    uint64_t count;
    if (!rdb_read_length(reader, &count) || count > (uint64_t)(reader->end - reader->at))
        return RDB_BAD; /* each takes at least one byte */
    if (type == TYPE_PLAIN_HASH)
        count *= 2;
    for (uint64_t i = 0; i < count; i++) {
        enum rdb_result result = read_element(reader);
        if (result != RDB_OK)
            return result;
        double *score = &reader->value->scores[reader->value->count - 1];
        if ((type == TYPE_ZSET_TEXT && !read_text_score(reader, score)) ||
            (type == TYPE_ZSET_BINARY && !read_binary_score(reader, score)))
            return RDB_BAD;
    }
    return RDB_OK;
}

/* ---- hashes of which fields expire ---- */

static bool read_earliest(struct rdb_reader *reader, int64_t *earliest_ms)
{
    const uint8_t *bytes;
    if (!rdb_take(reader, 8, &bytes))
        return false;
    *earliest_ms = rdb_signed(bytes, 8);
    return true;
}

static bool is_expiry(int64_t expire_ms)
{
    return expire_ms >= 0 && expire_ms <= RDB_EXPIRY_MAX;
}

static enum rdb_result alloc_expiries(struct rdb_reader *reader, uint64_t count)
{
    size_t size = (size_t)count * sizeof *reader->value->expiries;
    reader->value->expiries = reader->caller.alloc(reader->caller.arg, size);
    return reader->value->expiries == NULL ? RDB_NO_MEMORY : RDB_OK;
}

/* Before each field stands its expiry less the earliest, plus 1; or 0. */
static enum rdb_result read_timed(struct rdb_reader *reader)
{
    uint64_t count, after;
    int64_t earliest_ms;
    if (!read_earliest(reader, &earliest_ms) || !rdb_read_length(reader, &count) || count == 0 ||
        count > (uint64_t)(reader->end - reader->at) / 3) /* each takes at least three bytes */
        return RDB_BAD;
    enum rdb_result result = alloc_expiries(reader, count);
    for (uint64_t i = 0; i < count && result == RDB_OK; i++) {
        if (!rdb_read_length(reader, &after))
            return RDB_BAD;
        int64_t *expire_ms = &reader->value->expiries[i];
        *expire_ms = RDB_NO_EXPIRY;
        if (after > 0 && (!is_expiry(earliest_ms) || after - 1 > RDB_EXPIRY_MAX ||
                          !is_expiry(*expire_ms = earliest_ms + (int64_t)(after - 1))))
            return RDB_BAD;
        result = read_element(reader);
        if (result == RDB_OK)
            result = read_element(reader);
    }
    return result;
}

/* A listpack of fields, values and expiries in turn, of which 0 is none. */
static enum rdb_result read_timed_listpack(struct rdb_reader *reader)
{
    struct rdb_value *value = reader->value;
    int64_t earliest_ms;
    if (!read_earliest(reader, &earliest_ms))
        return RDB_BAD;
    enum rdb_result result = read_packed(reader, rdb_read_listpack);
    if (result == RDB_OK && (value->count == 0 || value->count % 3 != 0))
        return RDB_BAD;
    if (result == RDB_OK)
        result = alloc_expiries(reader, value->count / 3);
    for (size_t i = 0; result == RDB_OK && i < value->count / 3; i++) {
        const struct resp_slice *from = &value->slices[3 * i];
        if (!resp_read_int64(from[2].data, from[2].len, &value->expiries[i]) ||
            !is_expiry(value->expiries[i]))
            return RDB_BAD;
        if (value->expiries[i] == 0)
            value->expiries[i] = RDB_NO_EXPIRY;
        value->slices[2 * i] = from[0];
        value->slices[2 * i + 1] = from[1];
        if (reader->caller.go_on != NULL && !reader->caller.go_on(reader->caller.arg, i + 1))
            result = RDB_STOPPED;
    }
    value->count = value->count / 3 * 2;
    return result;
}

/* ---- lists ---- */

/* A list of ziplists, or of listpacks and single elements. */
static enum rdb_result read_quicklist(struct rdb_reader *reader, bool is_second)
{
    enum { NODE_PLAIN = 1, NODE_PACKED = 2 };
    uint64_t nodes, container = NODE_PACKED;
    struct resp_slice node;
    if (!rdb_read_length(reader, &nodes))
        return RDB_BAD;
    for (; nodes > 0; nodes--) {
        if (is_second && (!rdb_read_length(reader, &container) ||
                          (container != NODE_PLAIN && container != NODE_PACKED)))
            return RDB_BAD;
        enum rdb_result result = rdb_read_string(reader, &node);
        if (result == RDB_OK && node.len == 0)
            return RDB_BAD; /* Redis refuses it, even as a plain node */
        if (result == RDB_OK && !is_second)
            result = rdb_read_ziplist(reader, node);
        else if (result == RDB_OK && container == NODE_PACKED)
            result = rdb_read_listpack(reader, node);
        else if (result == RDB_OK)
            result = rdb_add(reader, node);
        if (result != RDB_OK)
            return result;
    }
    return RDB_OK;
}

/* Converts members and scores in turn to members with scores. */
static enum rdb_result pair_scores(const struct rdb_caller *caller, struct rdb_value *value)
{
    if (value->count % 2 != 0)
        return RDB_BAD;
    for (size_t i = 0; i < value->count / 2; i++) {
        struct resp_slice score = value->slices[2 * i + 1];
        value->slices[i] = value->slices[2 * i];
        if (!resp_read_double(score.data, score.len, &value->scores[i]))
            return RDB_BAD;
        if (caller->go_on != NULL && !caller->go_on(caller->arg, i + 1))
            return RDB_STOPPED;
    }
    value->count /= 2;
    return RDB_OK;
}

static packed_reader *reader_of(uint8_t type)
{
    switch (type) {
    case TYPE_HASH_ZIPMAP:
        return rdb_read_zipmap;
    case TYPE_LIST_ZIPLIST:
    case TYPE_ZSET_ZIPLIST:
    case TYPE_HASH_ZIPLIST:
        return rdb_read_ziplist;
    case TYPE_SET_INTSET:
        return rdb_read_intset;
    case TYPE_HASH_LISTPACK:
    case TYPE_ZSET_LISTPACK:
    case TYPE_SET_LISTPACK:
        return rdb_read_listpack;
    default:
        return NULL;
    }
}

static bool kind_of(uint8_t type, enum rdb_kind *kind)
{
    static const signed char kinds[] = {
        RDB_STRING, RDB_LIST,   RDB_SET,  RDB_ZSET, RDB_HASH, RDB_ZSET,   -1,
        -1,         -1,         RDB_HASH, RDB_LIST, RDB_SET,  RDB_ZSET,   RDB_HASH,
        RDB_LIST,   RDB_STREAM, RDB_HASH, RDB_ZSET, RDB_LIST, RDB_STREAM, RDB_SET,
        RDB_STREAM, -1,         -1,       RDB_HASH, RDB_HASH};
    if (type >= sizeof kinds || kinds[type] < 0)
        return false;
    *kind = (enum rdb_kind)kinds[type];
    return true;
}

bool rdb_is_stream(struct resp_slice bytes)
{
    enum rdb_kind kind;
    return bytes.len > 0 && kind_of((uint8_t)bytes.data[0], &kind) && kind == RDB_STREAM;
}

enum rdb_result rdb_read_value(struct resp_slice bytes, struct rdb_caller caller,
                               struct rdb_value *value)
{
    const uint8_t *at = (const uint8_t *)bytes.data, *type;
    struct rdb_reader reader = {at, at + bytes.len, caller, value, 0};
    *value = (struct rdb_value){0};
    if (!rdb_take(&reader, 1, &type) || !kind_of(*type, &value->kind))
        return RDB_BAD;
    enum rdb_result result;
    packed_reader *read = reader_of(*type);
    if (value->kind == RDB_STRING)
        result = read_element(&reader);
    else if (value->kind == RDB_STREAM)
        return rdb_read_stream(&reader, (enum rdb_stream_type) * type);
    else if (*type == TYPE_HASH_TIMED)
        result = read_timed(&reader);
    else if (*type == TYPE_HASH_TIMED_LISTPACK)
        result = read_timed_listpack(&reader);
    else if (read != NULL)
        result = read_packed(&reader, read);
    else if (*type == TYPE_LIST_QUICKLIST || *type == TYPE_LIST_QUICKLIST_2)
        result = read_quicklist(&reader, *type == TYPE_LIST_QUICKLIST_2);
    else
        result = read_plain(&reader, *type);
    if (result == RDB_OK && value->kind == RDB_ZSET && read != NULL)
        result = pair_scores(&caller, value);
    /* What follows the value is not looked at, as in Redis. */
    bool is_whole = value->count > 0 && (value->kind != RDB_HASH || value->count % 2 == 0);
    return result == RDB_OK && !is_whole ? RDB_BAD : result;
}

bool rdb_version_is_good(struct resp_slice payload)
{
    if (payload.len < RDB_FOOTER_BYTES)
        return false;
    const uint8_t *footer = (const uint8_t *)payload.data + payload.len - RDB_FOOTER_BYTES;
    return rdb_number(footer, 2) <= RDB_VERSION_READ;
}

bool rdb_checksum_is_good(struct resp_slice payload, uint64_t sum)
{
    return payload.len >= RDB_FOOTER_BYTES &&
           rdb_number((const uint8_t *)payload.data + payload.len - 8, 8) == sum;
}
