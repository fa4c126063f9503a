/* RESP: requests in any pieces, replies in both versions, numbers at their edges. */
#include "../../protocol/resp.h"

#include <float.h>
#include <math.h>
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

/* ---- replies ---- */

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

/* ---- numbers ---- */

static void expect_int64(const char *text, int64_t expected)
{
    int64_t value = 0;
    char printed[24];
    assert_true(resp_read_int64(text, strlen(text), &value));
    assert_true(value == expected);
    assert_int_equal(resp_print_int64(printed, expected), strlen(text));
    assert_string_equal(printed, text);
}

static void int64_values(void **state)
{
    (void)state;
    expect_int64("0", 0);
    expect_int64("1", 1);
    expect_int64("-1", -1);
    expect_int64("10", 10);
    expect_int64("99", 99);
    expect_int64("100", 100);
    expect_int64("-100", -100);
    expect_int64("2147483648", 2147483648);
    expect_int64("999999999999999999", 999999999999999999);
    expect_int64("1000000000000000000", 1000000000000000000);
    expect_int64("9223372036854775806", INT64_MAX - 1);
    expect_int64("9223372036854775807", INT64_MAX);
    expect_int64("-9223372036854775807", INT64_MIN + 1);
    expect_int64("-9223372036854775808", INT64_MIN);
    int64_t value;
    assert_true(resp_read_int64("123", 2, &value)); /* the length counts, not a NUL */
    assert_true(value == 12);
    for (int64_t i = 1; i > 0 && i < INT64_MAX / 10; i *= 10) {
        char text[24];
        sprintf(text, "%lld", (long long)i - 1);
        expect_int64(text, i - 1);
        sprintf(text, "%lld", -(long long)i);
        expect_int64(text, -i);
    }
}

static void int64_refusals(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "",
        "-",
        "+",
        "+1",
        " 1",
        "1 ",
        "01",
        "-01",
        "00",
        "-0",
        "--1",
        "1-",
        "1.0",
        "1.",
        "1e3",
        "0x10",
        "inf",
        "nan",
        "a",
        "\t1",
        "1\n",
        "/",
        ":",
        "-/",
        "9223372036854775808",
        "-9223372036854775809",
        "9999999999999999999",
        "18446744073709551616",
        "18446744073709551617",
        "10000000000000000000",
        "92233720368547758070",
        "00000000000000000000000001",
        "100000000000000000000000000000",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        int64_t value = 77;
        if (resp_read_int64(refused[i], strlen(refused[i]), &value))
            fail_msg("accepted '%s'", refused[i]);
        assert_true(value == 77);
    }
    int64_t value;
    assert_false(resp_read_int64("1\0", 2, &value));
}

static void expect_double(const char *text, double expected)
{
    double value = 77;
    if (!resp_read_double(text, strlen(text), &value))
        fail_msg("refused '%s'", text);
    if (memcmp(&value, &expected, sizeof value) != 0)
        fail_msg("'%s' read as %a, not as %a", text, value, expected);
}

static void double_values(void **state)
{
    (void)state;
    expect_double("0", 0.0);
    expect_double("-0", -0.0);
    expect_double("1", 1);
    expect_double("+1", 1);
    expect_double("-1.5", -1.5);
    expect_double("0.1", 0.1);
    expect_double("007.250", 7.25);
    expect_double(".5", 0.5);
    expect_double("5.", 5);
    expect_double("1e3", 1000);
    expect_double("3.14159265358979", 3.14159265358979);
    expect_double("999999999999999", 999999999999999.0);
    expect_double("9999999999999999", 9999999999999999.0);
    expect_double("0.1234567890123456", 0.1234567890123456);
    expect_double("9007199254740993", 9007199254740992.0);
    expect_double("0x10", 16);
    expect_double("0x1.8p1", 3);
    expect_double("1e308", 1e308);
    expect_double("1.7976931348623157e308", DBL_MAX);
    expect_double("5e-324", 5e-324);
    expect_double("1e-310", 1e-310);
    expect_double("inf", INFINITY);
    expect_double("+inf", INFINITY);
    expect_double("-inf", -INFINITY);
    expect_double("Infinity", INFINITY);
    expect_double("-INF", -INFINITY);
}

static void double_refusals(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "",      "-",    "+",      ".",      "-.",      "e5",      " 1",     "1 ",  "\t1", "\n1",
        "1.2.3", "1e",   "1e+",    "nan",    "-nan",    "NaN",     "nan(1)", "1,5", "--1", "1-",
        "1e400", "inf ", "-1e400", "1e-400", "-1e-400", "infinit", "abc",    "1a",  "\v1",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        double value = 77;
        long double long_value = 77;
        if (resp_read_double(refused[i], strlen(refused[i]), &value))
            fail_msg("accepted '%s'", refused[i]);
        bool in_long_range = strstr(refused[i], "e400") || strstr(refused[i], "e-400");
        if (resp_read_long_double(refused[i], strlen(refused[i]), &long_value) != in_long_range)
            fail_msg("long double '%s'", refused[i]);
    }
    double value;
    long double long_value;
    assert_false(resp_read_double("1\0", 2, &value));
    assert_false(resp_read_double("1.5e1\0", 6, &value));
    assert_false(resp_read_long_double("1\0", 2, &long_value));
    assert_false(resp_read_long_double("1e5000", 6, &long_value));
    assert_false(resp_read_long_double("1e-5000", 7, &long_value));

    char digits[RESP_NUMBER_MAX];
    memset(digits, '0', sizeof digits);
    assert_true(resp_read_double(digits, sizeof digits - 1, &value));
    assert_false(resp_read_double(digits, sizeof digits, &value));
    assert_false(resp_read_long_double(digits, sizeof digits, &long_value));
}

static void expect_printed(double value, const char *expected)
{
    char text[40];
    size_t len = resp_print_double(text, value);
    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
}

static void doubles_printed(void **state)
{
    (void)state;
    expect_printed(0.0, "0");
    expect_printed(-0.0, "-0");
    expect_printed(1, "1");
    expect_printed(-17, "-17");
    expect_printed(0.1, "0.1");
    expect_printed(3.1, "3.1");
    expect_printed(-2.5, "-2.5");
    expect_printed(0.1 + 0.2, "0.30000000000000004");
    expect_printed(1.0 / 3, "0.3333333333333333");
    expect_printed(100.25, "100.25");
    expect_printed(1234567.891, "1234567.891");
    expect_printed(0.000001, "0.000001");
    expect_printed(0.0000001, "1e-7");
    expect_printed(0.000015, "0.000015");
    expect_printed(0.00012345678, "1.2345678e-4");
    expect_printed(0.0012345678, "0.0012345678");
    expect_printed(4503599627370495.0, "4503599627370495");
    expect_printed(4503599627370496.0, "4503599627370496");
    expect_printed(-4503599627370497.0, "-4503599627370497");
    expect_printed(9007199254740992.0, "9007199254740992");
    expect_printed(123456789012345680.0, "123456789012345680");
    expect_printed(12345678910000000.0, "12345678910000000");
    expect_printed(12345678900000000.0, "1.23456789e+16");
    expect_printed(1e17, "1e+17");
    expect_printed(1.5e17, "1.5e+17");
    expect_printed(1e21, "1e+21");
    expect_printed(-1.5e100, "-1.5e+100");
    expect_printed(1e-100, "1e-100");
    expect_printed(DBL_MAX, "1.7976931348623157e+308");
    expect_printed(-DBL_MIN, "-2.2250738585072014e-308");
    expect_printed(5e-324, "5e-324");
    expect_printed(0x1p-44, "5.684341886080802e-14"); /* not the nearest 16 digits */
    expect_printed(-0x1p-44, "-5.684341886080802e-14");
    expect_printed(1e-310, "1e-310");
    expect_printed(INFINITY, "inf");
    expect_printed(-INFINITY, "-inf");
    expect_printed(NAN, "nan");
    expect_printed(-NAN, "nan");
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void expect_round_trip(double value)
{
    char text[40], shorter[40];
    double again;
    size_t len = resp_print_double(text, value);
    assert_true(len < sizeof text);
    if (!resp_read_double(text, len, &again) || memcmp(&again, &value, sizeof value) != 0)
        fail_msg("%a printed as %s", value, text);
    int digits = 0;
    for (const char *at = text; *at != '\0' && *at != 'e'; at++)
        digits += *at >= '0' && *at <= '9' && (digits > 0 || *at != '0');
    if (digits > 17 || digits < 2 || strpbrk(text, ".e") == NULL)
        return; /* zeros filled in */
    snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
    if (strtod(shorter, NULL) == value)
        fail_msg("%s would do instead of %s", shorter, text);
}

static void doubles_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next_random(&seed);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            expect_round_trip(value);
        expect_round_trip((double)(bits % 100000000) / 1000);
        expect_round_trip((double)(int64_t)bits / 1048576);
    }
}

/* INCRBYFLOAT's way from text to text. */
static void expect_long_double(const char *text, const char *expected)
{
    long double value;
    static char printed[RESP_NUMBER_MAX];
    if (!resp_read_long_double(text, strlen(text), &value))
        fail_msg("refused '%s'", text);
    size_t len = resp_print_long_double(printed, value);
    assert_string_equal(printed, expected);
    assert_int_equal(len, strlen(expected));
}

static void long_doubles(void **state)
{
    (void)state;
    expect_long_double("0", "0");
    expect_long_double("-0", "0");
    expect_long_double("10.50", "10.5");
    expect_long_double("3.0", "3");
    expect_long_double("-100", "-100");
    expect_long_double("0.1", "0.1");
    expect_long_double("1e-17", "0.00000000000000001");
    expect_long_double("-1e-18", "0");
    expect_long_double("5.0e3", "5000");
    expect_long_double("17179869184.17179869184", "17179869184.17179869115352631");
    expect_long_double("1.23456789012345678", "1.23456789012345678");
    expect_long_double("0x10", "16");
    expect_long_double("inf", "inf");
    expect_long_double("-inf", "-inf");
    char largest[RESP_NUMBER_MAX];
    assert_int_equal(resp_print_long_double(largest, -LDBL_MAX), 1 + LDBL_MAX_10_EXP + 1);
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
        cmocka_unit_test(replies),
        cmocka_unit_test(replies_grow_and_can_be_taken_back),
        cmocka_unit_test(nothing_is_written_after_a_failure),
        cmocka_unit_test(int64_values),
        cmocka_unit_test(int64_refusals),
        cmocka_unit_test(double_values),
        cmocka_unit_test(double_refusals),
        cmocka_unit_test(doubles_printed),
        cmocka_unit_test(doubles_round_trip),
        cmocka_unit_test(long_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
