/* RDB values of streams: what is written is read again, nodes and groups alike, and nothing that is
 * cut off or claims too much. Each allocation is of just its size, so that the address sanitizer
 * sees what is read beyond one. */
#include "server/types/rdb_read.h"
#include "server/types/rdb_stream_write.h"
#include "server/types/rdb_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BLOCKS_MAX 4096
#define ENTRIES 250

/* ---- memory, and who reads ---- */

struct reader {
    void *blocks[BLOCKS_MAX];
    size_t count, bytes;
    size_t pauses, stop_at; /* 0: never */
};

static void *alloc(void *arg, size_t size)
{
    struct reader *reader = arg;
    assert_true(reader->count < BLOCKS_MAX);
    reader->bytes += size;
    return reader->blocks[reader->count++] = malloc(size);
}

static bool go_on(void *arg, size_t count)
{
    struct reader *reader = arg;
    assert_int_equal(count, reader->pauses + 1);
    return ++reader->pauses != reader->stop_at;
}

static enum rdb_result read_value(struct reader *reader, struct resp_slice bytes,
                                  struct rdb_value *value)
{
    struct rdb_caller caller = {alloc, go_on, reader};
    return rdb_read_value(bytes, caller, value);
}

static void free_all(struct reader *reader)
{
    while (reader->count > 0)
        free(reader->blocks[--reader->count]);
}

/* ---- a stream with all there is ---- */

static struct resp_slice text(const char *string)
{
    return (struct resp_slice){string, strlen(string)};
}

static void write_nodes(struct resp_writer *out)
{
    struct resp_writer listpack;
    struct rdb_node node;
    char number[24];
    resp_writer_init(&listpack, 2);
    for (int i = 0; i < ENTRIES; i++) {
        struct stream_id id = {1 + (uint64_t)i / 7, (uint64_t)i % 7};
        struct resp_slice fields[] = {
            text("a"), {number, 0}, text(i % 10 == 9 ? "c" : "b"), text("text")};
        fields[1].len = resp_print_int64(number, (int64_t)(UINT64_C(1) << i % 64));
        if (i % RDB_NODE_ENTRIES == 0)
            rdb_node_begin(&node, &listpack, id, fields, 4);
        rdb_node_add(&node, id, fields, 4);
        if ((i + 1) % RDB_NODE_ENTRIES == 0 || i + 1 == ENTRIES) {
            rdb_node_put(&node, out);
            resp_truncate(&listpack, 0);
        }
    }
    resp_writer_free(&listpack);
}

static void write_groups(struct resp_writer *out)
{
    struct rdb_stream_group group = {
        .name = text("group"), .last = {9, 9}, .read = 77, .pending_count = 2};
    struct rdb_stream_group bare = {.name = text("grouped"), .read = RDB_STREAM_UNKNOWN};
    struct rdb_stream_consumer consumer = {.name = text("c"), .seen_ms = 1000, .id_count = 2};
    rdb_put_group(out, &group);
    for (uint64_t i = 1; i <= 2; i++)
        rdb_put_pending(out, &(struct rdb_stream_pending){{i, 5}, 1000 * (int64_t)i, i, 0});
    rdb_put_length(out, 1);
    rdb_put_consumer(out, &consumer);
    for (uint64_t i = 1; i <= 2; i++)
        rdb_put_raw_id(out, (struct stream_id){i, 5});
    rdb_put_group(out, &bare);
    rdb_put_length(out, 0);
}

static void write_all(struct resp_writer *out)
{
    struct rdb_stream head = {.length = ENTRIES,
                              .added = 1000,
                              .first = {1, 0},
                              .last = {99, UINT64_MAX},
                              .max_deleted = {98, 1},
                              .group_count = 2};
    resp_writer_init(out, 2);
    rdb_put_stream(out, (ENTRIES + RDB_NODE_ENTRIES - 1) / RDB_NODE_ENTRIES);
    write_nodes(out);
    rdb_put_stream_head(out, &head);
    write_groups(out);
    assert_false(out->failed);
}

static void check_entry(struct rdb_stream_entry *entry, int i)
{
    struct rdb_element field, value;
    assert_int_equal(entry->id.ms, 1 + i / 7);
    assert_int_equal(entry->id.seq, i % 7);
    assert_int_equal(entry->count, 2);
    assert_int_equal(entry->has_same_fields, i % RDB_NODE_ENTRIES == 0 || i % 10 != 9);
    rdb_stream_next_field(entry, &field, &value);
    assert_memory_equal(field.bytes, "a", 1);
    assert_true(value.is_number);
    assert_true(value.number == (int64_t)(UINT64_C(1) << i % 64));
    rdb_stream_next_field(entry, &field, &value);
    assert_memory_equal(field.bytes, i % 10 == 9 ? "c" : "b", 1);
    assert_memory_equal(value.bytes, "text", 4);
}

static void check_entries(const struct rdb_stream *stream)
{
    struct rdb_stream_walk walk = rdb_stream_begin(stream), copy = walk;
    struct rdb_caller caller = {.go_on = NULL};
    struct rdb_stream_entry entry;
    size_t elements = 0;
    bool found;
    for (int i = 0; i < ENTRIES; i++) {
        walk = copy; /* as a run that begins again does */
        assert_int_equal(rdb_stream_next(&walk, &caller, &elements, &entry, &found), RDB_OK);
        assert_true(found);
        check_entry(&entry, i);
        if (i % 3 == 0)
            assert_int_equal(rdb_stream_next(&copy, &caller, &elements, &entry, &found), RDB_OK);
        else
            copy = walk;
    }
    assert_int_equal(rdb_stream_next(&copy, &caller, &elements, &entry, &found), RDB_OK);
    assert_false(found);
}

static void check_groups(const struct rdb_stream *stream)
{
    const struct rdb_stream_group *group = stream->groups;
    assert_int_equal(stream->group_count, 2);
    assert_int_equal(group->read, 77);
    assert_int_equal(group->pending_count, 2);
    assert_int_equal(group->pending[1].delivered_ms, 2000);
    assert_int_equal(group->pending[1].count, 2);
    assert_int_equal(group->pending[1].consumer, 0);
    assert_int_equal(group->consumers[0].seen_ms, 1000);
    assert_int_equal(group->consumers[0].active_ms, 1000); /* not known: when it was seen */
    assert_ptr_equal(rdb_stream_find_pending(group, (struct stream_id){2, 5}), &group->pending[1]);
    assert_null(rdb_stream_find_pending(group, (struct stream_id){2, 4}));
    assert_true(group[1].read == RDB_STREAM_UNKNOWN);
}

static void what_is_written_is_read(void **state)
{
    struct reader reader = {.count = 0};
    struct resp_writer out;
    struct rdb_value value;
    (void)state;
    write_all(&out);
    assert_int_equal(read_value(&reader, (struct resp_slice){out.data, out.len}, &value), RDB_OK);
    assert_int_equal(value.kind, RDB_STREAM);
    assert_int_equal(value.stream->length, ENTRIES);
    assert_int_equal(value.stream->added, 1000);
    assert_int_equal(value.stream->first.ms, 1);
    assert_true(value.stream->last.seq == UINT64_MAX);
    assert_int_equal(value.stream->max_deleted.ms, 98);
    check_entries(value.stream);
    check_groups(value.stream);
    free_all(&reader);
    resp_writer_free(&out);
}

/* ---- refused ---- */

static void whatever_is_cut_off_is_refused(void **state)
{
    struct resp_writer out;
    struct rdb_value value;
    (void)state;
    write_all(&out);
    for (size_t len = 0; len < out.len; len++) {
        struct reader reader = {.count = 0};
        char *copy = malloc(len + (len == 0));
        memcpy(copy, out.data, len);
        assert_int_equal(read_value(&reader, (struct resp_slice){copy, len}, &value), RDB_BAD);
        free_all(&reader);
        free(copy);
    }
    resp_writer_free(&out);
}

/* Every byte to some other values: no crash, and no more memory than the payload warrants. */
static void damage_is_survived(void **state)
{
    struct resp_writer out;
    (void)state;
    write_all(&out);
    for (size_t at = 0; at < out.len; at++)
        for (unsigned change = 1; change < 256; change = change * 2 + (change & 1)) {
            struct reader reader = {.count = 0};
            struct rdb_value value;
            out.data[at] = (char)(out.data[at] ^ (char)change);
            (void)read_value(&reader, (struct resp_slice){out.data, out.len}, &value);
            assert_in_range(reader.bytes, 0, 64 * out.len + 64 * 1024);
            out.data[at] = (char)(out.data[at] ^ (char)change);
            free_all(&reader);
        }
    resp_writer_free(&out);
}

static void reading_stops_when_told(void **state)
{
    struct reader whole = {.count = 0};
    struct resp_writer out;
    struct rdb_value value;
    (void)state;
    write_all(&out);
    struct resp_slice bytes = {out.data, out.len};
    assert_int_equal(read_value(&whole, bytes, &value), RDB_OK);
    assert_in_range(whole.pauses, ENTRIES, 10 * ENTRIES);
    for (size_t at = 1; at <= whole.pauses; at++) {
        struct reader reader = {.stop_at = at};
        assert_int_equal(read_value(&reader, bytes, &value), RDB_STOPPED);
        assert_int_equal(reader.pauses, at);
        free_all(&reader);
    }
    free_all(&whole);
    resp_writer_free(&out);
}

/* ---- numbers in nodes ---- */

static void numbers_keep_their_widths(void **state)
{
    static const int64_t numbers[] = {0,         127,       128,       4095,      4096,
                                      -1,        -4096,     -4097,     INT16_MAX, INT16_MIN,
                                      1 << 15,   8388607,   8388608,   -8388608,  -8388609,
                                      INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char number[24];
        struct resp_writer out;
        struct rdb_node node;
        struct rdb_listpack listpack;
        struct rdb_element element;
        struct resp_slice fields[] = {{number, resp_print_int64(number, numbers[i])}, text("")};
        resp_writer_init(&out, 2);
        rdb_node_begin(&node, &out, STREAM_ID_MAX, fields, 2);
        resp_raw(&out, "\xff", 1);
        memcpy(out.data, &(uint32_t){(uint32_t)out.len}, 4);
        assert_true(rdb_listpack_open((struct resp_slice){out.data, out.len}, &listpack));
        for (int skipped = 0; skipped < 4; skipped++)
            assert_true(rdb_listpack_next(&listpack, &element));
        assert_true(element.is_number);
        assert_true(element.number == numbers[i]);
        resp_writer_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(whatever_is_cut_off_is_refused),
        cmocka_unit_test(damage_is_survived),
        cmocka_unit_test(reading_stops_when_told),
        cmocka_unit_test(numbers_keep_their_widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
