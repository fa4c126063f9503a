#include "server/types/rdb_stream_write.h"

#include <assert.h>
#include <string.h>

#include "server/types/rdb_write.h"

#define HEADER_BYTES 6 /* of a listpack */
#define HEAD_MAX 9     /* of an element */
#define COUNT_MOST 65535
#define SAME_FIELDS 2

_Static_assert(RDB_NODE_ENTRIES < 128, "the count of a node's entries has one byte");

/* ---- elements of listpacks ---- */

static size_t put_bytes(char *to, uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (char)(number >> (8 * i));
    return size;
}

static size_t number_head(char head[HEAD_MAX], int64_t number)
{
    static const struct {
        uint8_t code, size;
    } widths[] = {{0xf1, 2}, {0xf2, 3}, {0xf3, 4}, {0xf4, 8}};
    size_t i = 0;
    if (number >= 0 && number < 128) {
        head[0] = (char)number;
        return 1;
    }
    if (number >= -4096 && number < 4096) {
        head[0] = (char)(0xc0 | ((number >> 8) & 0x1f));
        head[1] = (char)number;
        return 2;
    }
    while (widths[i].size < 8 && (number < -(INT64_C(1) << (8 * widths[i].size - 1)) ||
                                  number >= INT64_C(1) << (8 * widths[i].size - 1)))
        i++;
    head[0] = (char)widths[i].code;
    return 1 + put_bytes(head + 1, (uint64_t)number, widths[i].size);
}

static size_t string_head(char head[HEAD_MAX], size_t len)
{
    if (len < 64) {
        head[0] = (char)(0x80 | len);
        return 1;
    }
    if (len < 4096) {
        head[0] = (char)(0xe0 | len >> 8);
        head[1] = (char)len;
        return 2;
    }
    head[0] = (char)0xf0;
    return 1 + put_bytes(head + 1, len, 4);
}

/* The size of an element, most significant bits first; all bytes but the first one are marked. */
static void put_size_behind(struct resp_writer *out, size_t size)
{
    char bytes[5];
    size_t width = size <= 127        ? 1
                   : size < 16383     ? 2
                   : size < 2097151   ? 3
                   : size < 268435455 ? 4
                                      : 5;
    for (size_t i = 0; i < width; i++)
        bytes[i] = (char)((size >> (7 * (width - 1 - i)) & 127) | (i > 0 ? 128 : 0));
    resp_raw(out, bytes, width);
}

static void put_number(struct rdb_node *node, int64_t number)
{
    char head[HEAD_MAX];
    size_t size = number_head(head, number);
    resp_raw(node->out, head, size);
    put_size_behind(node->out, size);
    node->elements++;
}

/* What is a number as text is an element that is a number. */
static void put_string(struct rdb_node *node, struct resp_slice string)
{
    char head[HEAD_MAX];
    int64_t number;
    if (string.len <= 20 && resp_read_int64(string.data, string.len, &number)) {
        put_number(node, number);
        return;
    }
    size_t size = string_head(head, string.len);
    resp_raw(node->out, head, size);
    resp_raw(node->out, string.data, string.len);
    put_size_behind(node->out, size + string.len);
    node->elements++;
}

/* ---- nodes ---- */

bool rdb_node_takes(struct rdb_node_size *size, uint64_t bytes)
{
    bool is_full = size->entries == RDB_NODE_ENTRIES ||
                   (size->entries > 0 && size->bytes + bytes > RDB_NODE_BYTES);
    if (is_full)
        return false;
    size->entries++;
    size->bytes += bytes;
    return true;
}

static void put_names(struct rdb_node *node, const struct resp_slice *fields, size_t count)
{
    for (size_t i = 0; i < count; i += 2)
        put_string(node, fields[i]);
}

void rdb_node_begin(struct rdb_node *node, struct resp_writer *out, struct stream_id id,
                    const struct resp_slice *fields, size_t count)
{
    static const char header[HEADER_BYTES]; /* filled in at the end */
    assert(out->len == 0);
    *node = (struct rdb_node){.out = out, .master = id};
    resp_raw(out, header, sizeof header);
    put_number(node, 0); /* of its entries: likewise */
    put_number(node, 0); /* of its deleted ones */
    put_number(node, (int64_t)(count / 2));
    node->names_begin = out->len;
    put_names(node, fields, count);
    node->names_end = out->len;
    put_number(node, 0);
}

/* Whether the names are those of the master entry: if they are encoded alike. */
static bool has_same_names(const struct rdb_node *node, const struct resp_slice *fields,
                           size_t count)
{
    struct rdb_node trial = *node;
    struct resp_writer *out = node->out;
    size_t before = out->len, len = node->names_end - node->names_begin;
    put_names(&trial, fields, count);
    bool is_same = !out->failed && out->len - before == len &&
                   memcmp(out->data + before, out->data + node->names_begin, len) == 0;
    if (!out->failed)
        resp_truncate(out, before);
    return is_same;
}

void rdb_node_add(struct rdb_node *node, struct stream_id id, const struct resp_slice *fields,
                  size_t count)
{
    bool is_same = has_same_names(node, fields, count);
    uint64_t before = node->elements;
    put_number(node, is_same ? SAME_FIELDS : 0);
    put_number(node, (int64_t)(id.ms - node->master.ms));
    put_number(node, (int64_t)(id.seq - node->master.seq));
    if (!is_same)
        put_number(node, (int64_t)(count / 2));
    for (size_t i = is_same; i < count; i += 1 + is_same)
        put_string(node, fields[i]);
    put_number(node, (int64_t)(node->elements - before));
    node->entries++;
}

void rdb_node_put(struct rdb_node *node, struct resp_writer *out)
{
    struct resp_writer *from = node->out;
    resp_raw(from, "\xff", 1);
    if (from->failed) {
        out->failed = true;
        return;
    }
    assert(node->entries <= RDB_NODE_ENTRIES);
    put_bytes(from->data, from->len, 4);
    put_bytes(from->data + 4, node->elements < COUNT_MOST ? node->elements : COUNT_MOST, 2);
    from->data[HEADER_BYTES] = (char)node->entries;
    char master[STREAM_ID_BYTES];
    stream_id_write(master, node->master);
    rdb_put_string(out, (struct resp_slice){master, sizeof master});
    rdb_put_string(out, (struct resp_slice){from->data, from->len});
}

/* ---- the rest ---- */

static void put_id(struct resp_writer *out, struct stream_id id)
{
    rdb_put_length(out, id.ms);
    rdb_put_length(out, id.seq);
}

static void put_time(struct resp_writer *out, int64_t ms)
{
    char bytes[8];
    put_bytes(bytes, (uint64_t)ms, sizeof bytes);
    resp_raw(out, bytes, sizeof bytes);
}

void rdb_put_stream(struct resp_writer *out, uint64_t nodes)
{
    resp_raw(out, &(char){RDB_STREAM_7_0}, 1);
    rdb_put_length(out, nodes);
}

void rdb_put_stream_head(struct resp_writer *out, const struct rdb_stream *stream)
{
    rdb_put_length(out, stream->length);
    put_id(out, stream->last);
    put_id(out, stream->first);
    put_id(out, stream->max_deleted);
    rdb_put_length(out, stream->added);
    rdb_put_length(out, stream->group_count);
}

void rdb_put_group(struct resp_writer *out, const struct rdb_stream_group *group)
{
    rdb_put_string(out, group->name);
    put_id(out, group->last);
    rdb_put_length(out, group->read);
    rdb_put_length(out, group->pending_count);
}

void rdb_put_pending(struct resp_writer *out, const struct rdb_stream_pending *pending)
{
    rdb_put_raw_id(out, pending->id);
    put_time(out, pending->delivered_ms);
    rdb_put_length(out, pending->count);
}

void rdb_put_consumer(struct resp_writer *out, const struct rdb_stream_consumer *consumer)
{
    rdb_put_string(out, consumer->name);
    put_time(out, consumer->seen_ms);
    rdb_put_length(out, consumer->id_count);
}

void rdb_put_raw_id(struct resp_writer *out, struct stream_id id)
{
    char bytes[STREAM_ID_BYTES];
    stream_id_write(bytes, id);
    resp_raw(out, bytes, sizeof bytes);
}
