/* RESP: replies in both versions. */
#include "protocol/resp.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What `write` leaves in a writer of each version. */
static void expect_reply(void (*write)(struct resp_writer *writer), const char *resp2,
                         const char *resp3)
{
    for (uint8_t version = 2; version <= 3; version++) {
        struct resp_writer writer;
        resp_writer_init(&writer, version);
        write(&writer);
        const char *expected = version == 2 ? resp2 : resp3;
        assert_false(writer.failed);
        assert_int_equal(writer.len, strlen(expected));
        assert_memory_equal(writer.data, expected, writer.len);
        resp_writer_free(&writer);
    }
}

static void a_long_reply_is_moved_where_it_lies(void **state)
{
    (void)state;
    const size_t lengths[] = {0, 10, 100000, 1 << 20, 3 << 20};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct resp_writer to, from;
        resp_writer_init(&to, 2);
        resp_writer_init(&from, 2);
        memset(resp_reserve(&from, lengths[i] + 100), 'x', lengths[i]);
        from.len = lengths[i];
        const char *before = from.data;
        resp_array(&to, 7);
        resp_move(&to, &from);
        assert_int_equal(to.len, 4 + lengths[i]);
        assert_memory_equal(to.data, "*7\r\n", 4);
        for (size_t at = 4; at < to.len; at++)
            assert_int_equal(to.data[at], 'x');
        if (lengths[i] >= 1 << 20)
            assert_ptr_equal(to.data, before);
        resp_writer_free(&to);
        resp_writer_free(&from);
    }
}

static void write_lines(struct resp_writer *writer)
{
    resp_ok(writer);
    resp_status(writer, "QUEUED");
    resp_error(writer, "WRONGTYPE wrong");
    resp_errorf(writer, "ERR unknown command '%s', %d", "a\r\nb\nc", 7);
    resp_errorf(writer, "ERR %s", "ends in line breaks\r\n\n");
    resp_raw(writer, "+raw\r\n", 6);
    resp_raw(writer, NULL, 0);
}

static void write_integers(struct resp_writer *writer)
{
    static const int64_t values[] = {0, 9, 10, 99, 100, -1, 1000, 1234, INT64_MAX, INT64_MIN, -10};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        resp_integer(writer, values[i]);
}

static void write_bulks(struct resp_writer *writer)
{
    resp_bulk(writer, "k", 1);
    resp_bulk(writer, "", 0);
    resp_bulk(writer, NULL, 0);
    resp_bulk(writer, "0123456789ab", 12);
    resp_bulk_string(writer, "text");
    resp_bulk_integer(writer, -42);
    resp_bulk_integer(writer, INT64_MIN);
    resp_bulk_header(writer, 512u << 20);
}

static void write_nulls(struct resp_writer *writer)
{
    resp_null(writer);
    resp_null_array(writer);
}

static void write_aggregates(struct resp_writer *writer)
{
    resp_array(writer, 0);
    resp_array(writer, 10);
    resp_array(writer, 123456);
    resp_map(writer, 0);
    resp_map(writer, 7);
    resp_set(writer, 3);
    resp_push(writer, 2);
}

static void write_scalars(struct resp_writer *writer)
{
    resp_boolean(writer, true);
    resp_boolean(writer, false);
    resp_double(writer, 3.1);
    resp_double(writer, 12);
    resp_double(writer, INFINITY);
    resp_double(writer, -INFINITY);
    resp_double(writer, NAN);
    resp_verbatim(writer, "txt", "Some string", 11);
}

static void replies(void **state)
{
    (void)state;
    const char *lines = "+OK\r\n+QUEUED\r\n-WRONGTYPE wrong\r\n-ERR unknown command 'a  b c', 7\r\n"
                        "-ERR ends in line breaks\r\n+raw\r\n";
    expect_reply(write_lines, lines, lines);
    const char *integers = ":0\r\n:9\r\n:10\r\n:99\r\n:100\r\n:-1\r\n:1000\r\n:1234\r\n"
                           ":9223372036854775807\r\n:-9223372036854775808\r\n:-10\r\n";
    expect_reply(write_integers, integers, integers);
    const char *bulks = "$1\r\nk\r\n$0\r\n\r\n$0\r\n\r\n$12\r\n0123456789ab\r\n$4\r\ntext\r\n"
                        "$3\r\n-42\r\n$20\r\n-9223372036854775808\r\n$536870912\r\n";
    expect_reply(write_bulks, bulks, bulks);
    expect_reply(write_nulls, "$-1\r\n*-1\r\n", "_\r\n_\r\n");
    expect_reply(write_aggregates, "*0\r\n*10\r\n*123456\r\n*0\r\n*14\r\n*3\r\n*2\r\n",
                 "*0\r\n*10\r\n*123456\r\n%0\r\n%7\r\n~3\r\n>2\r\n");
    expect_reply(write_scalars,
                 ":1\r\n:0\r\n$3\r\n3.1\r\n$2\r\n12\r\n$3\r\ninf\r\n$4\r\n-inf\r\n$3\r\nnan\r\n"
                 "$11\r\nSome string\r\n",
                 "#t\r\n#f\r\n,3.1\r\n,12\r\n,inf\r\n,-inf\r\n,nan\r\n=15\r\ntxt:Some string\r\n");
}

static void replies_grow_and_can_be_taken_back(void **state)
{
    (void)state;
    struct resp_writer writer;
    resp_writer_init(&writer, 2);
    for (int i = 0; i < 10000; i++)
        resp_bulk(&writer, "0123456789", 10);
    assert_int_equal(writer.len, 10000 * 17);
    assert_memory_equal(writer.data + 9999 * 17, "$10\r\n0123456789\r\n", 17);

    resp_truncate(&writer, 17);
    resp_ok(&writer);
    assert_int_equal(writer.len, 22);
    assert_memory_equal(writer.data, "$10\r\n0123456789\r\n+OK\r\n", 22);

    char *space = resp_reserve(&writer, 1 << 20);
    assert_ptr_equal(space, writer.data + 22);
    memset(space, 'x', 1 << 20);
    assert_int_equal(writer.len, 22);
    resp_writer_free(&writer);
    assert_null(writer.data);
}

static void nothing_is_written_after_a_failure(void **state)
{
    (void)state;
    struct resp_writer writer;
    resp_writer_init(&writer, 3);
    resp_ok(&writer);
    assert_null(resp_reserve(&writer, SIZE_MAX - 2));
    assert_true(writer.failed);
    assert_null(resp_reserve(&writer, 1));
    resp_ok(&writer);
    resp_bulk(&writer, "k", 1);
    resp_errorf(&writer, "ERR %d", 1);
    resp_double(&writer, 1.5);
    assert_int_equal(writer.len, 5);
    resp_writer_free(&writer);

    resp_writer_init(&writer, 3);
    resp_bulk(&writer, "k", SIZE_MAX);
    assert_true(writer.failed);
    assert_int_equal(writer.len, 0);
    resp_writer_free(&writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_reply_is_moved_where_it_lies),
        cmocka_unit_test(replies),
        cmocka_unit_test(replies_grow_and_can_be_taken_back),
        cmocka_unit_test(nothing_is_written_after_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
