/*
 * Any bytes as a value of RDB: what is read must lie in memory, and written and read again be the
 * same.
 */
#include "server/types/rdb.h"
#include "server/types/rdb_read.h"
#include "server/types/rdb_stream_write.h"
#include "server/types/rdb_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPANDED_MOST (1 << 20) /* bytes of a stream's fields, whose names entries share */

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

/* ---- memory in blocks of just their size, freed together ---- */

struct block {
    struct block *next;
};

static void *alloc(void *arg, size_t size)
{
    struct block **blocks = arg;
    struct block *block = malloc(sizeof *block + size);
    require(block != NULL, "memory for the fuzzer itself");
    block->next = *blocks;
    *blocks = block;
    return block + 1;
}

static void free_blocks(struct block *blocks)
{
    while (blocks != NULL) {
        struct block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
}

/* ---- streams ---- */

/* An entry that is not deleted; its slices are in blocks. */
struct stream_entry {
    struct stream_id id;
    struct resp_slice *slices;
    uint64_t count, bytes;
};

static struct resp_slice text_of(struct block **blocks, const struct rdb_element *element)
{
    if (!element->is_number)
        return (struct resp_slice){element->bytes, element->len};
    char *text = alloc(blocks, 24);
    return (struct resp_slice){text, resp_print_int64(text, element->number)};
}

static bool next_entry(struct block **blocks, struct rdb_stream_walk *walk,
                       struct stream_entry *entry)
{
    struct rdb_caller caller = {.go_on = NULL};
    struct rdb_stream_entry found;
    size_t elements = 0;
    bool is_found;
    do {
        require(rdb_stream_next(walk, &caller, &elements, &found, &is_found) == RDB_OK, "a walk");
        if (!is_found)
            return false;
    } while (found.is_deleted);
    *entry = (struct stream_entry){found.id, NULL, 2 * found.count, found.bytes};
    entry->slices = alloc(blocks, entry->count * sizeof *entry->slices);
    for (uint64_t i = 0; i < entry->count; i += 2) {
        struct rdb_element field, value;
        rdb_stream_next_field(&found, &field, &value);
        entry->slices[i] = text_of(blocks, &field);
        entry->slices[i + 1] = text_of(blocks, &value);
    }
    return true;
}

static uint64_t write_nodes(struct block **blocks, struct resp_writer *out,
                            const struct rdb_stream *stream)
{
    struct rdb_stream_walk walk = rdb_stream_begin(stream);
    struct rdb_node node;
    struct rdb_node_size size = {.entries = 0};
    struct stream_entry entry;
    struct resp_writer listpack;
    uint64_t nodes = 0;
    resp_writer_init(&listpack, 2);
    while (next_entry(blocks, &walk, &entry)) {
        if (nodes > 0 && !rdb_node_takes(&size, entry.bytes)) {
            rdb_node_put(&node, out);
            resp_truncate(&listpack, 0);
            size = (struct rdb_node_size){.entries = 0};
        }
        if (listpack.len == 0) {
            nodes++;
            rdb_node_begin(&node, &listpack, entry.id, entry.slices, entry.count);
        }
        rdb_node_add(&node, entry.id, entry.slices, entry.count);
    }
    if (nodes > 0)
        rdb_node_put(&node, out);
    resp_writer_free(&listpack);
    return nodes;
}

static void write_group(struct resp_writer *out, const struct rdb_stream_group *group)
{
    rdb_put_group(out, group);
    for (uint64_t i = 0; i < group->pending_count; i++)
        rdb_put_pending(out, &group->pending[i]);
    rdb_put_length(out, group->consumer_count);
    for (uint64_t i = 0; i < group->consumer_count; i++) {
        const struct rdb_stream_consumer *consumer = &group->consumers[i];
        rdb_put_consumer(out, consumer);
        for (uint64_t j = 0; j < consumer->id_count; j++)
            rdb_put_raw_id(out, stream_id_read(consumer->ids + j * STREAM_ID_BYTES));
    }
}

static void write_stream(struct block **blocks, struct resp_writer *out,
                         const struct rdb_stream *stream)
{
    struct resp_writer nodes;
    resp_writer_init(&nodes, 2);
    rdb_put_stream(out, write_nodes(blocks, &nodes, stream));
    resp_raw(out, nodes.data, nodes.len);
    resp_writer_free(&nodes);
    rdb_put_stream_head(out, stream);
    for (uint64_t i = 0; i < stream->group_count; i++)
        write_group(out, &stream->groups[i]);
}

static bool slices_match(struct resp_slice x, struct resp_slice y)
{
    return x.len == y.len && (x.len == 0 || memcmp(x.data, y.data, x.len) == 0);
}

static bool ids_match(struct stream_id x, struct stream_id y)
{
    return stream_id_compare(x, y) == 0;
}

static void compare_groups(const struct rdb_stream_group *a, const struct rdb_stream_group *b)
{
    require(slices_match(a->name, b->name) && ids_match(a->last, b->last) && a->read == b->read &&
                a->pending_count == b->pending_count && a->consumer_count == b->consumer_count,
            "groups");
    for (uint64_t i = 0; i < a->pending_count; i++)
        require(ids_match(a->pending[i].id, b->pending[i].id) &&
                    a->pending[i].delivered_ms == b->pending[i].delivered_ms &&
                    a->pending[i].count == b->pending[i].count &&
                    a->pending[i].consumer == b->pending[i].consumer,
                "pending entries");
    for (uint64_t i = 0; i < a->consumer_count; i++)
        require(slices_match(a->consumers[i].name, b->consumers[i].name) &&
                    a->consumers[i].seen_ms == b->consumers[i].seen_ms &&
                    a->consumers[i].id_count == b->consumers[i].id_count,
                "consumers");
}

static void compare_streams(struct block **blocks, const struct rdb_stream *a,
                            const struct rdb_stream *b)
{
    struct rdb_stream_walk in_a = rdb_stream_begin(a), in_b = rdb_stream_begin(b);
    struct stream_entry x, y;
    require(a->length == b->length && a->added == b->added && ids_match(a->first, b->first) &&
                ids_match(a->last, b->last) && ids_match(a->max_deleted, b->max_deleted) &&
                a->group_count == b->group_count,
            "heads");
    for (uint64_t i = 0; i < a->length; i++) {
        require(next_entry(blocks, &in_a, &x) && next_entry(blocks, &in_b, &y), "entries");
        require(ids_match(x.id, y.id) && x.count == y.count, "entries");
        for (uint64_t j = 0; j < x.count; j++)
            require(slices_match(x.slices[j], y.slices[j]), "fields");
    }
    require(!next_entry(blocks, &in_a, &x) && !next_entry(blocks, &in_b, &y), "as many entries");
    for (uint64_t i = 0; i < a->group_count; i++)
        compare_groups(&a->groups[i], &b->groups[i]);
}

/* ---- the property ---- */

static void write_timed(struct resp_writer *out, const struct rdb_value *value)
{
    int64_t earliest_ms = RDB_EXPIRY_MAX;
    for (size_t i = 0; i < value->count / 2; i++)
        if (value->expiries[i] != RDB_NO_EXPIRY && value->expiries[i] < earliest_ms)
            earliest_ms = value->expiries[i];
    rdb_put_timed_head(out, earliest_ms, value->count / 2);
    for (size_t i = 0; i < value->count; i++) {
        if (i % 2 == 0)
            rdb_put_expiry(out, earliest_ms, value->expiries[i / 2]);
        rdb_put_string(out, value->slices[i]);
    }
}

static void write_value(struct block **blocks, struct resp_writer *out,
                        const struct rdb_value *value)
{
    if (value->kind == RDB_STREAM) {
        write_stream(blocks, out, value->stream);
        return;
    }
    if (value->expiries != NULL) {
        write_timed(out, value);
        return;
    }
    rdb_put_head(out, value->kind, value->kind == RDB_HASH ? value->count / 2 : value->count);
    for (size_t i = 0; i < value->count; i++) {
        rdb_put_string(out, value->slices[i]);
        if (value->kind == RDB_ZSET)
            rdb_put_score(out, value->scores[i]);
    }
}

static void compare(struct block **blocks, const struct rdb_value *a, const struct rdb_value *b)
{
    require(a->kind == b->kind && a->count == b->count, "as many elements");
    if (a->kind == RDB_STREAM)
        compare_streams(blocks, a->stream, b->stream);
    for (size_t i = 0; i < a->count; i++) {
        require(slices_match(a->slices[i], b->slices[i]), "elements");
        require(a->kind != RDB_ZSET || a->scores[i] == b->scores[i], "scores");
        require(a->expiries == NULL || a->expiries[i / 2] == b->expiries[i / 2], "expiries");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct block *blocks = NULL;
    struct rdb_caller caller = {.alloc = alloc, .arg = &blocks};
    struct rdb_value value, again;
    if (rdb_read_value((struct resp_slice){(const char *)data, size}, caller, &value) == RDB_OK &&
        (value.kind != RDB_STREAM || value.stream->bytes < EXPANDED_MOST)) {
        struct resp_writer out;
        resp_writer_init(&out, 2);
        write_value(&blocks, &out, &value);
        struct resp_slice bytes = {out.data, out.len};
        require(rdb_read_value(bytes, caller, &again) == RDB_OK, "what is written is good");
        compare(&blocks, &value, &again);
        resp_writer_free(&out);
    }
    free_blocks(blocks);
    return 0;
}
