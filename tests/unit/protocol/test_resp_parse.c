/* RESP: requests in any pieces, and what is refused. */
#include "protocol/resp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct resp_limits usual = {.bulk_max = 512u << 20, .count_max = INT32_MAX};
static const struct resp_limits before_auth = {
    .bulk_max = 512u << 20, .count_max = INT32_MAX, .unauthenticated = true};

/* ---- a parse, told as text ---- */

/* Commands as (3:GET 1:k), bytes that do not print as \xHH; a protocol error as !text; what is not
 * complete as ... */
struct story {
    char text[8192];
    size_t len;
};

static void tell(struct story *story, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(story->text + story->len, sizeof story->text - story->len, format, args);
    va_end(args);
    assert_true(len >= 0 && story->len + (size_t)len < sizeof story->text);
    story->len += (size_t)len;
}

static void tell_command(struct story *story, const struct resp_parser *parser)
{
    tell(story, "(");
    for (size_t i = 0; i < parser->count; i++) {
        struct resp_slice arg = parser->args[i];
        tell(story, "%s%zu:", i == 0 ? "" : " ", arg.len);
        for (size_t j = 0; j < arg.len; j++) {
            unsigned char c = (unsigned char)arg.data[j];
            tell(story, c > ' ' && c < 0x7f && c != '\\' ? "%c" : "\\x%02x", c);
        }
    }
    tell(story, ")");
}

/* A parser and the bytes it has been given so far, kept in a block of exactly their size that is a
 * new one for each call: reading outside it or in an earlier one is caught by the sanitizer. */
struct feed {
    struct resp_parser parser;
    struct story story;
    const char *input;
    size_t begun; /* where the command being read begins */
    bool over;
    size_t wanted;
};

static void feed_init(struct feed *feed, struct resp_limits limits, const char *input)
{
    memset(feed, 0, sizeof *feed);
    resp_parser_init(&feed->parser, limits);
    feed->input = input;
}

/* Parses what stands in input[begun, arrived). */
static void feed_parse(struct feed *feed, size_t arrived)
{
    while (!feed->over) {
        size_t len = arrived - feed->begun;
        char *buffer = malloc(len);
        assert_non_null(buffer);
        memcpy(buffer, feed->input + feed->begun, len);
        enum resp_status status = resp_parse(&feed->parser, buffer, len);
        if (status == RESP_COMPLETE) {
            assert_true(feed->parser.consumed > 0 && feed->parser.consumed <= len);
            assert_true(feed->parser.consumed >= feed->wanted);
            tell_command(&feed->story, &feed->parser);
            feed->begun += feed->parser.consumed;
            feed->wanted = 0;
        } else if (status == RESP_INVALID) {
            tell(&feed->story, "!%s", feed->parser.error);
            assert_int_equal(resp_parse(&feed->parser, buffer, len), RESP_INVALID);
            feed->over = true;
        } else {
            assert_true(feed->parser.wanted > len);
            assert_true(feed->parser.wanted >= feed->wanted);
            feed->wanted = feed->parser.wanted;
        }
        free(buffer);
        if (status == RESP_INCOMPLETE)
            return;
    }
}

static void feed_end(struct feed *feed, size_t len, const char *story)
{
    if (!feed->over && feed->begun < len)
        tell(&feed->story, "...");
    assert_string_equal(feed->story.text, story);
    resp_parser_free(&feed->parser);
}

static void expect_with(struct resp_limits limits, const char *input, size_t len, const char *story)
{
    struct feed feed;
    for (size_t split = 0; split <= len; split++) {
        feed_init(&feed, limits, input);
        feed_parse(&feed, split);
        feed_parse(&feed, len);
        feed_end(&feed, len, story);
    }
    for (size_t step = 1; step <= 3; step++) {
        feed_init(&feed, limits, input);
        for (size_t arrived = 0; arrived < len; arrived += step)
            feed_parse(&feed, arrived);
        feed_parse(&feed, len);
        feed_end(&feed, len, story);
    }
}

/* Literals, so that bytes after a NUL count as well. */
#define expect(input, story) expect_with(usual, input, sizeof(input) - 1, story)
#define expect_before_auth(input, story) expect_with(before_auth, input, sizeof(input) - 1, story)

/* ---- multibulk requests ---- */

static void multibulk(void **state)
{
    (void)state;
    expect("*1\r\n$4\r\nPING\r\n", "(4:PING)");
    expect("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "(3:GET 1:k)");
    expect("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$0\r\n\r\n", "(3:SET 0: 0:)");
    expect("*2\r\n$4\r\nECHO\r\n$6\r\na\0\r\n$*\r\n", "(4:ECHO 6:a\\x00\\x0d\\x0a$*)");
    expect("*11\r\n$1\r\n0\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n$1\r\n6\r\n"
           "$1\r\n7\r\n$1\r\n8\r\n$1\r\n9\r\n$12\r\nabcdefghijkl\r\n",
           "(1:0 1:1 1:2 1:3 1:4 1:5 1:6 1:7 1:8 1:9 12:abcdefghijkl)");
}

static void more_arguments_than_fit_at_first(void **state)
{
    (void)state;
    char input[1024] = "*40\r\n", story[1024] = "(";
    for (int i = 0; i < 40; i++) {
        sprintf(input + strlen(input), "$2\r\n%d\r\n", 10 + i);
        sprintf(story + strlen(story), "%s2:%d", i == 0 ? "" : " ", 10 + i);
    }
    strcat(story, ")");
    expect_with(usual, input, strlen(input), story);
}

static void pipelines(void **state)
{
    (void)state;
    expect("*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n",
           "(4:PING)(3:GET 1:k)(4:PING)");
    expect("PING\r\n*1\r\n$4\r\nPING\r\nGET \"k\"\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
           "(4:PING)(4:PING)(3:GET 1:k)(3:GET 1:k)");
    expect("*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1", "(4:PING)...");
}

static void empty_commands(void **state)
{
    (void)state;
    expect("\r\n", "()");
    expect("\n", "()");
    expect("  \t \r\n", "()");
    expect("*0\r\n", "()");
    expect("*-1\r\n", "()");
    expect("*-9223372036854775808\r\n", "()");
    expect("*0\r\n\r\n*0\r\n*1\r\n$4\r\nPING\r\n\nPING\r\n", "()()()(4:PING)()(4:PING)");
    expect("*-10\r\n*1\r\n$4\r\nPING\r\n", "()(4:PING)");
}

/* Redis looks neither at the byte behind a count's CR nor at the two behind a bulk. */
static void line_ends_are_not_checked(void **state)
{
    (void)state;
    expect("*1\rx$4\r\nPINGxy*1\r\n$4\rxPING\r\n", "(4:PING)(4:PING)");
}

static void wanted_tells_the_exact_size_of_a_bulk(void **state)
{
    (void)state;
    struct resp_parser parser;
    resp_parser_init(&parser, usual);
    const char *input = "*2\r\n$3\r\nGET\r\n$100000\r\nabc";
    assert_int_equal(resp_parse(&parser, "", 0), RESP_INCOMPLETE);
    assert_int_equal(parser.wanted, 1);
    assert_int_equal(resp_parse(&parser, input, 4), RESP_INCOMPLETE);
    assert_int_equal(parser.wanted, 5);
    assert_int_equal(resp_parse(&parser, input, 8), RESP_INCOMPLETE);
    assert_int_equal(parser.wanted, 4 + 4 + 5);
    assert_int_equal(resp_parse(&parser, input, 20), RESP_INCOMPLETE);
    assert_int_equal(parser.wanted, 21);
    assert_int_equal(resp_parse(&parser, input, strlen(input)), RESP_INCOMPLETE);
    assert_int_equal(parser.wanted, 13 + 9 + 100000 + 2);
    resp_parser_free(&parser);
}

/* ---- protocol errors ---- */

static void bad_counts(void **state)
{
    (void)state;
    const char *error = "!invalid multibulk length";
    expect("*\r\n", error);
    expect("*x\r\n", error);
    expect("*1x\r\n", error);
    expect("* 1\r\n", error);
    expect("*+1\r\n", error);
    expect("*01\r\n", error);
    expect("*-0\r\n", error);
    expect("*3000000000\r\n", error);
    expect("*2147483648\r\n", error);
    expect("*9223372036854775808\r\n", error);
    expect("*18446744073709551617\r\n", error);
    expect("*1\0\r\n", error);
    expect("PING\r\n*1\r\n$4\r\nPING\r\n*x\r\nPING\r\n",
           "(4:PING)(4:PING)!invalid multibulk length");
    expect("*2147483647\r\n", "...");
}

static void bad_bulk_lengths(void **state)
{
    (void)state;
    const char *error = "!invalid bulk length";
    expect("*1\r\n$\r\n", error);
    expect("*1\r\n$x\r\n", error);
    expect("*1\r\n$-1\r\n", error);
    expect("*1\r\n$01\r\nx\r\n", error);
    expect("*1\r\n$00\r\n\r\n", error);
    expect("*1\r\n$ 1\r\nx\r\n", error);
    expect("*1\r\n$+1\r\nx\r\n", error);
    expect("*1\r\n$-0\r\n\r\n", error);
    expect("*1\r\n$1x\r\n", error);
    expect("*1\r\n$2000000000\r\n", error);
    expect("*1\r\n$536870913\r\n", error);
    expect("*1\r\n$9223372036854775807\r\n", error);
    expect("*1\r\n$18446744073709551615\r\n", error);
    expect("*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n", error);
    expect("*2\r\n$4\r\nECHO\r\n$01\r\nx\r\n", error);
    expect("*2\r\n$4\r\nECHO\r\n$-1\r\n\r\n", error);
    expect("*1\r\n$536870912\r\nx", "...");
}

static void bad_bulk_prefixes(void **state)
{
    (void)state;
    expect("*1\r\nfoo\r\n", "!expected '$', got 'f'");
    expect("*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", "!expected '$', got 'f'");
    expect("*2\r\n$4\r\nECHO\r\n:1\r\n", "!expected '$', got ':'");
    expect("*1\r\n\r\n", "!expected '$', got ' '");
    expect("*1\r\n\n\r\n", "!expected '$', got ' '");
    expect("*1\r\nfoo", "..."); /* judged when the line is there */
}

static void limits_before_auth(void **state)
{
    (void)state;
    expect_before_auth("*11\r\n", "!unauthenticated multibulk length");
    expect_before_auth("*2147483647\r\n", "!unauthenticated multibulk length");
    expect_before_auth("*2147483648\r\n", "!invalid multibulk length");
    expect_before_auth("*10\r\n", "...");
    expect_before_auth("*1\r\n$16385\r\n", "!unauthenticated bulk length");
    expect_before_auth("*1\r\n$536870912\r\n", "!unauthenticated bulk length");
    expect_before_auth("*1\r\n$536870913\r\n", "!invalid bulk length");
    expect_before_auth("*1\r\n$16384\r\n", "...");
    expect_before_auth("*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n", "(4:AUTH 2:pw)");
}

static void limits_that_are_set(void **state)
{
    (void)state;
    struct resp_limits small = {.bulk_max = 3, .count_max = 2};
    expect_with(small, "*2\r\n$3\r\nGET\r\n$4\r\n", 17, "!invalid bulk length");
    expect_with(small, "*2\r\n$3\r\nGET\r\n$4\r\nabcd\r\n", 23, "!invalid bulk length");
    expect_with(small, "*3\r\n", 4, "!invalid multibulk length");
    expect_with(small, "*12\r\n", 5, "!invalid multibulk length");
    expect_with(small, "*2\r\n$3\r\nGET\r\n$3\r\nabc\r\n", 22, "(3:GET 3:abc)");
    struct resp_limits huge = {.bulk_max = UINT64_MAX, .count_max = UINT64_MAX};
    expect_with(huge, "*1\r\n$9223372036854775807\r\nx", 27, "...");
    expect_with(huge, "*2147483648\r\n", 13, "!invalid multibulk length");
}

static void new_limits_hold_from_the_next_length_on(void **state)
{
    (void)state;
    struct resp_parser parser;
    resp_parser_init(&parser, before_auth);
    const char *input = "*2\r\n$4\r\nECHO\r\n$16385\r\n";
    assert_int_equal(resp_parse(&parser, input, 14), RESP_INCOMPLETE);
    resp_parser_set_limits(&parser, usual);
    assert_int_equal(resp_parse(&parser, input, strlen(input)), RESP_INCOMPLETE);
    resp_parser_free(&parser);
}

/* A line of the first byte and then 'x's, `len` of them in all and then `end`; in one piece and
 * byte by byte. */
static void expect_long_line(const char *before, char first, size_t len, const char *end,
                             const char *story)
{
    size_t total = strlen(before) + len + strlen(end);
    char *input = malloc(total + 1);
    strcpy(input, before);
    memset(input + strlen(before), 'x', len);
    input[strlen(before)] = first;
    strcpy(input + strlen(before) + len, end);

    enum resp_status status = RESP_INCOMPLETE;
    for (int bytewise = 0; bytewise < 2; bytewise++) {
        struct resp_parser parser;
        resp_parser_init(&parser, usual);
        for (size_t arrived = bytewise ? 1 : total; arrived <= total; arrived++) {
            status = resp_parse(&parser, input, arrived);
            if (status != RESP_INCOMPLETE)
                break;
        }
        if (status == RESP_INVALID)
            assert_string_equal(parser.error, story);
        else
            assert_string_equal(status == RESP_COMPLETE ? "complete" : "incomplete", story);
        resp_parser_free(&parser);
    }
    free(input);
}

static void lines_too_long(void **state)
{
    (void)state;
    expect_long_line("", 'x', RESP_INLINE_MAX, "\n", "complete");
    expect_long_line("", 'x', RESP_INLINE_MAX, "", "incomplete");
    expect_long_line("", 'x', RESP_INLINE_MAX + 1, "", "too big inline request");
    expect_long_line("", 'x', RESP_INLINE_MAX + 1, "\n", "too big inline request");
    expect_long_line("", '*', RESP_INLINE_MAX, "", "incomplete");
    expect_long_line("", '*', RESP_INLINE_MAX + 1, "", "too big mbulk count string");
    expect_long_line("", '*', RESP_INLINE_MAX + 1, "\r\n", "too big mbulk count string");
    expect_long_line("", '*', RESP_INLINE_MAX, "\r\n", "invalid multibulk length");
    expect_long_line("*1\r\n", '$', RESP_INLINE_MAX, "", "incomplete");
    expect_long_line("*1\r\n", '$', RESP_INLINE_MAX + 1, "", "too big bulk count string");
    expect_long_line("*1\r\n", 'f', RESP_INLINE_MAX + 1, "", "too big bulk count string");
}

/* ---- inline requests ---- */

static void inline_words(void **state)
{
    (void)state;
    expect("PING\r\n", "(4:PING)");
    expect("PING\n", "(4:PING)");
    expect("  SET\tkey   value  \r\n", "(3:SET 3:key 5:value)");
    expect("a\rb\r\r\n", "(1:a 1:b)");
    expect("a\vb \v\fc\n", "(3:a\\x0bb 1:c)");
    expect("a\0b \xff\n", "(3:a\\x00b 1:\\xff)");
    expect("SET key\\n $5\n", "(3:SET 5:key\\x5cn 2:$5)");
    expect("$3\r\nGET *\r\n", "(2:$3)(3:GET 1:*)");
}

static void inline_quotes(void **state)
{
    (void)state;
    expect("SET \"a b\" 'c d'\r\n", "(3:SET 3:a\\x20b 3:c\\x20d)");
    expect("ECHO \"\\x41\\xff\\x00\\n\\r\\t\\b\\a\\\\\\\"\\q\\x4g\"\n",
           "(4:ECHO 14:A\\xff\\x00\\x0a\\x0d\\x09\\x08\\x07\\x5c\"qx4g)");
    expect("ECHO \"\\xAb\\XAB\"\n", "(4:ECHO 4:\\xabXAB)");
    expect("ECHO '\\'\\n\\x41\"'\n", "(4:ECHO 8:'\\x5cn\\x5cx41\")");
    expect("ECHO \"'\" ''  \"\"\n", "(4:ECHO 1:' 0: 0:)");
    expect("ECHO pre\"a b\" pre'c'\n", "(4:ECHO 6:prea\\x20b 4:prec)");
    expect("'a' \"b\" c 'd'\n", "(1:a 1:b 1:c 1:d)");
    expect("'a'\vb\n", "(1:a 1:b)");
}

static void inline_quotes_that_do_not_match(void **state)
{
    (void)state;
    const char *error = "!unbalanced quotes in request";
    expect("set \"\"\"test-key\"\"\" test-value\r\n", error);
    expect("ECHO \"a\r\n", error);
    expect("ECHO 'a\r\n", error);
    expect("ECHO \"a\\\"\r\n", error);
    expect("ECHO 'a\\'\r\n", error);
    expect("ECHO \"a\\\n", error);
    expect("ECHO \"a\"b\r\n", error);
    expect("ECHO 'a'b\r\n", error);
    expect("ECHO a'\r\n", error);
    expect("PING\r\n\"\r\nPING\r\n", "(4:PING)!unbalanced quotes in request");
}

/* ---- cost ---- */

/* Work is counted so: bytes that must not be read again are overwritten with what would change the
 * result if they were. */
static void a_long_line_is_read_once(void **state)
{
    (void)state;
    struct resp_parser parser;
    resp_parser_init(&parser, usual);
    static char line[RESP_INLINE_MAX + 1];
    for (size_t len = 1; len <= RESP_INLINE_MAX; len++) {
        line[len - 1] = 'x';
        assert_int_equal(resp_parse(&parser, line, len), RESP_INCOMPLETE);
        line[len - 1] = '\n';
    }
    memset(line, 'x', RESP_INLINE_MAX);
    line[RESP_INLINE_MAX] = '\n';
    assert_int_equal(resp_parse(&parser, line, sizeof line), RESP_COMPLETE);
    assert_int_equal(parser.args[0].len, RESP_INLINE_MAX);
    resp_parser_free(&parser);
}

static void a_bulk_in_single_bytes_is_never_read(void **state)
{
    (void)state;
    const size_t bulk_len = 1 << 20;
    char header[64];
    size_t begin = (size_t)sprintf(header, "*2\r\n$4\r\nECHO\r\n$%zu\r\n", bulk_len);
    char *input = malloc(begin + bulk_len + 2);
    struct resp_parser parser;
    resp_parser_init(&parser, usual);
    memcpy(input, header, begin);
    for (size_t len = 0; len < begin + bulk_len + 2; len++) {
        assert_int_equal(resp_parse(&parser, input, len), RESP_INCOMPLETE);
        if (len == begin)
            memset(input, '\r', begin);
        if (len >= begin) {
            assert_int_equal(parser.wanted, begin + bulk_len + 2);
            input[len] = "\r\n*$"[len % 4];
        }
    }
    assert_int_equal(resp_parse(&parser, input, begin + bulk_len + 2), RESP_COMPLETE);
    assert_int_equal(parser.count, 2);
    assert_ptr_equal(parser.args[1].data, input + begin);
    assert_int_equal(parser.args[1].len, bulk_len);
    resp_parser_free(&parser);
    free(input);
}

static void arguments_in_single_bytes_are_read_once(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static char input[16 + COUNT * 8], seen[sizeof input];
    size_t total = (size_t)sprintf(input, "*%d\r\n", COUNT);
    for (int i = 0; i < COUNT; i++)
        total += (size_t)sprintf(input + total, "$2\r\n%02d\r\n", i % 100);
    struct resp_parser parser;
    resp_parser_init(&parser, usual);
    for (size_t len = 1; len < total; len++) {
        seen[len - 1] = input[len - 1];
        assert_int_equal(resp_parse(&parser, seen, len), RESP_INCOMPLETE);
        if (len > 7 && (total - len) % 4 == 0) /* behind a header or a bulk, of four bytes */
            memset(seen + len - 4, '\r', 4);
    }
    assert_int_equal(resp_parse(&parser, input, total), RESP_COMPLETE);
    assert_int_equal(parser.count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(parser.args[i].len, 2);
        assert_int_equal(atoi((char[]){parser.args[i].data[0], parser.args[i].data[1], 0}),
                         i % 100);
    }
    resp_parser_free(&parser);
}

static void announced_counts_cost_no_memory(void **state)
{
    (void)state;
    struct resp_parser parser;
    resp_parser_init(&parser, usual);
    const char *input = "*2147483647\r\n$1\r\na\r\n$536870912\r\n";
    assert_int_equal(resp_parse(&parser, input, strlen(input)), RESP_INCOMPLETE);
    assert_true(parser.args_capacity <= 64);
    resp_parser_free(&parser);
}

/* One command of many arguments must not hold its memory for the connection's life. */
/* Wherever the pieces end, and whatever of the bulk had come when it was diverted. */
static void diverted_bulks(void **state)
{
    (void)state;
    static const char input[] = "*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\nvalue!\r\n$2\r\nEX\r\n$2\r\n"
                                "10\r\n*1\r\n$4\r\nPING\r\n";
    const size_t begin = strstr(input, "value!") - input, len = sizeof input - 1;
    for (size_t first = begin; first < begin + 6; first++) {
        for (size_t rest = begin + 6; rest <= len; rest++) {
            struct resp_parser parser;
            struct resp_bulk bulk;
            struct story story = {0};
            resp_parser_init(&parser, usual);
            assert_int_equal(resp_parse(&parser, input, first), RESP_INCOMPLETE);
            assert_true(resp_pending_bulk(&parser, &bulk));
            assert_true(bulk.len == 6 && bulk.begin == begin && bulk.argument == 2 &&
                        bulk.argc == 5);
            assert_memory_equal(resp_argument(&parser, 1, input).data, "k", 1);
            assert_true(resp_divert_bulk(&parser));
            assert_false(resp_pending_bulk(&parser, &bulk));
            assert_int_equal(parser.wanted, begin + 2);
            char buffer[sizeof input];
            memcpy(buffer, input, begin);
            memcpy(buffer + begin, input + begin + 6, rest - begin - 6);
            enum resp_status status = resp_parse(&parser, buffer, rest - 6);
            memcpy(buffer + begin, input + begin + 6, len - begin - 6);
            if (status == RESP_INCOMPLETE)
                status = resp_parse(&parser, buffer, len - 6);
            assert_int_equal(status, RESP_COMPLETE);
            tell_command(&story, &parser);
            size_t consumed = parser.consumed;
            assert_int_equal(resp_parse(&parser, buffer + consumed, len - 6 - consumed),
                             RESP_COMPLETE);
            tell_command(&story, &parser);
            assert_string_equal(story.text, "(3:SET 1:k 0: 2:EX 2:10)(4:PING)");
            resp_parser_free(&parser);
        }
    }
}

static void memory_of_large_commands_is_given_back(void **state)
{
    (void)state;
    static char input[16 + 6 * 10000];
    size_t total = (size_t)sprintf(input, "*10000\r\n");
    for (int i = 0; i < 10000; i++)
        total += (size_t)sprintf(input + total, "$0\r\n\r\n");
    struct resp_parser parser;
    resp_parser_init(&parser, usual);
    assert_int_equal(resp_parse(&parser, input, total), RESP_COMPLETE);
    assert_int_equal(parser.count, 10000);
    assert_int_equal(resp_parse(&parser, "GET 'k'\n", 8), RESP_COMPLETE);
    assert_true(parser.args_capacity <= 1024);
    assert_non_null(parser.inline_copy);
    assert_int_equal(resp_parse(&parser, "*1\r\n$4\r\nPING\r\n", 14), RESP_COMPLETE);
    assert_null(parser.inline_copy);
    resp_parser_free(&parser);
}

static void arguments_are_slices_of_the_buffer(void **state)
{
    (void)state;
    struct resp_parser parser;
    resp_parser_init(&parser, usual);
    const char *input = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    assert_int_equal(resp_parse(&parser, input, strlen(input)), RESP_COMPLETE);
    assert_ptr_equal(parser.args[0].data, input + 8);
    assert_ptr_equal(parser.args[1].data, input + 17);
    const struct resp_slice *args = parser.args;
    assert_int_equal(resp_parse(&parser, input, strlen(input)), RESP_COMPLETE);
    assert_ptr_equal(parser.args, args); /* the array is reused */
    resp_parser_free(&parser);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multibulk),
        cmocka_unit_test(more_arguments_than_fit_at_first),
        cmocka_unit_test(pipelines),
        cmocka_unit_test(empty_commands),
        cmocka_unit_test(line_ends_are_not_checked),
        cmocka_unit_test(wanted_tells_the_exact_size_of_a_bulk),
        cmocka_unit_test(bad_counts),
        cmocka_unit_test(bad_bulk_lengths),
        cmocka_unit_test(bad_bulk_prefixes),
        cmocka_unit_test(limits_before_auth),
        cmocka_unit_test(limits_that_are_set),
        cmocka_unit_test(new_limits_hold_from_the_next_length_on),
        cmocka_unit_test(lines_too_long),
        cmocka_unit_test(inline_words),
        cmocka_unit_test(inline_quotes),
        cmocka_unit_test(inline_quotes_that_do_not_match),
        cmocka_unit_test(a_long_line_is_read_once),
        cmocka_unit_test(a_bulk_in_single_bytes_is_never_read),
        cmocka_unit_test(arguments_in_single_bytes_are_read_once),
        cmocka_unit_test(announced_counts_cost_no_memory),
        cmocka_unit_test(diverted_bulks),
        cmocka_unit_test(memory_of_large_commands_is_given_back),
        cmocka_unit_test(arguments_are_slices_of_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
