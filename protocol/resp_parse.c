/*
 * The request parser.
 *
 *              '*'                 count > 0           header            bytes and CRLF
 *   START -----------> COUNT -----------------> HEADER -------> BODY ------------------+
 *     |                  | count <= 0              ^              | resp_divert_bulk   |
 *     |                  |                         |              +-------> TAIL ------+
 *     | other            v                         +----------- more arguments --------+
 *     +-----> INLINE --> COMPLETE (START again) <-------------- the last one ----------+
 *
 * Any state leads to INVALID, which is final.
 *
 * Invariants:
 * 1. `position` is the offset of the element being read (a line, or a bulk's bytes); all before it
 *    is never looked at again until the command is complete. Of the element itself `scanned` bytes
 *    are known to hold no line end. A bulk's bytes are never looked at.
 * 2. Between calls `args` hold offsets in place of pointers, as the buffer may move; each argument
 *    is turned into an offset at most once and back at most once. A command that arrives whole is
 *    not touched by this.
 * 3. Memory follows the arguments that arrived, never an announced count or length.
 * 4. Whatever the pieces in which bytes arrive, results and errors are the same.
 */
#include "protocol/resp.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum parser_state {
    STATE_START,
    STATE_INLINE,
    STATE_COUNT,
    STATE_HEADER,
    STATE_BODY,
    STATE_TAIL, /* the line end of a bulk whose bytes went elsewhere */
    STATE_INVALID,
};

#define ARGS_MIN 16
#define ARGS_KEPT 1024 /* a larger array is freed before the next command */
#define PLAIN_DIGITS_MAX 9

static const char out_of_memory[] = "out of memory";

void resp_parser_init(struct resp_parser *parser, struct resp_limits limits)
{
    memset(parser, 0, sizeof *parser);
    resp_parser_set_limits(parser, limits);
}

void resp_parser_set_limits(struct resp_parser *parser, struct resp_limits limits)
{
    if (limits.count_max > INT32_MAX)
        limits.count_max = INT32_MAX;
    if (limits.bulk_max > INT64_MAX)
        limits.bulk_max = INT64_MAX;
    parser->limits = limits;
}

static void release_args(struct resp_parser *parser)
{
    free(parser->args);
    parser->args = NULL;
    parser->args_capacity = 0;
}

static void release_inline_copy(struct resp_parser *parser)
{
    free(parser->inline_copy);
    parser->inline_copy = NULL;
}

void resp_parser_free(struct resp_parser *parser)
{
    release_args(parser);
    release_inline_copy(parser);
    memset(parser, 0, sizeof *parser);
}

/* ---- results ---- */

static enum resp_status complete(struct resp_parser *parser, size_t consumed)
{
    parser->consumed = consumed;
    parser->state = STATE_START;
    return RESP_COMPLETE;
}

static enum resp_status incomplete(struct resp_parser *parser, size_t wanted)
{
    parser->wanted = wanted;
    return RESP_INCOMPLETE;
}

static enum resp_status invalid(struct resp_parser *parser, const char *error)
{
    parser->error = error;
    parser->count = 0;
    parser->state = STATE_INVALID;
    return RESP_INVALID;
}

static enum resp_status expected_dollar(struct resp_parser *parser, char got)
{
    if (got == '\r' || got == '\n') /* the error must stay one line */
        got = ' ';
    snprintf(parser->error_text, sizeof parser->error_text, "expected '$', got '%c'", got);
    return invalid(parser, parser->error_text);
}

/* ---- arguments ---- */

static bool grow_args(struct resp_parser *parser)
{
    size_t capacity = parser->args_capacity == 0 ? ARGS_MIN : parser->args_capacity * 2;
    struct resp_slice *args = realloc(parser->args, capacity * sizeof *args);
    if (args == NULL)
        return false;
    parser->args = args;
    parser->args_capacity = capacity;
    return true;
}

static bool add_arg(struct resp_parser *parser, const char *data, size_t len)
{
    if (parser->count == parser->args_capacity && !grow_args(parser))
        return false;
    parser->args[parser->count++] = (struct resp_slice){data, len};
    return true;
}

static void args_to_offsets(struct resp_parser *parser, size_t first, const char *data)
{
    for (size_t i = first; i < parser->count; i++) {
        uintptr_t offset = (uintptr_t)(parser->args[i].data - data);
        parser->args[i].data = (const char *)offset;
    }
}

static void args_to_pointers(struct resp_parser *parser, size_t end, const char *data)
{
    for (size_t i = 0; i < end; i++)
        parser->args[i].data = data + (uintptr_t)parser->args[i].data;
}

/* ---- lines ---- */

/* Finds the end of the line at `position`. A line of more than RESP_INLINE_MAX bytes is refused
 * with `too_big`. */
static enum resp_status find_line_end(struct resp_parser *parser, const char *data, size_t len,
                                      char end, const char *too_big, size_t *line_len)
{
    const char *line = data + parser->position;
    size_t available = len - parser->position;
    if (available > RESP_INLINE_MAX + 1)
        available = RESP_INLINE_MAX + 1;
    const char *found = memchr(line + parser->scanned, end, available - parser->scanned);
    if (found != NULL) {
        *line_len = (size_t)(found - line);
        return RESP_COMPLETE;
    }
    parser->scanned = available;
    if (available > RESP_INLINE_MAX)
        return invalid(parser, too_big);
    return incomplete(parser, len + 1);
}

/* A count or length line: ends with CR and any one byte, as Redis has it. */
static enum resp_status find_number_line(struct resp_parser *parser, const char *data, size_t len,
                                         const char *too_big, size_t *line_len)
{
    enum resp_status status = find_line_end(parser, data, len, '\r', too_big, line_len);
    if (status != RESP_COMPLETE)
        return status;
    if (len - parser->position < *line_len + 2)
        return incomplete(parser, parser->position + *line_len + 2);
    parser->scanned = 0;
    return RESP_COMPLETE;
}

/* ---- multibulk ---- */

static enum resp_status read_count(struct resp_parser *parser, const char *data, size_t len)
{
    const struct resp_limits *limits = &parser->limits;
    size_t line_len;
    enum resp_status status =
        find_number_line(parser, data, len, "too big mbulk count string", &line_len);
    if (status != RESP_COMPLETE)
        return status;

    int64_t count;
    if (!resp_read_int64(data + 1, line_len - 1, &count) || count > (int64_t)limits->count_max)
        return invalid(parser, "invalid multibulk length");
    if (limits->unauthenticated && count > RESP_UNAUTHENTICATED_COUNT_MAX)
        return invalid(parser, "unauthenticated multibulk length");
    parser->remaining = count > 0 ? (uint64_t)count : 0;
    parser->position = line_len + 2;
    parser->state = STATE_HEADER;
    return RESP_COMPLETE;
}

static enum resp_status read_header(struct resp_parser *parser, const char *data, size_t len)
{
    const struct resp_limits *limits = &parser->limits;
    const char *line = data + parser->position;
    size_t line_len;
    enum resp_status status =
        find_number_line(parser, data, len, "too big bulk count string", &line_len);
    if (status != RESP_COMPLETE)
        return status;
    if (line[0] != '$')
        return expected_dollar(parser, line[0]);

    int64_t bulk_len;
    if (!resp_read_int64(line + 1, line_len - 1, &bulk_len) || bulk_len < 0 ||
        bulk_len > (int64_t)limits->bulk_max)
        return invalid(parser, "invalid bulk length");
    if (limits->unauthenticated && bulk_len > RESP_UNAUTHENTICATED_BULK_MAX)
        return invalid(parser, "unauthenticated bulk length");
    parser->bulk_len = (uint64_t)bulk_len;
    parser->position += line_len + 2;
    parser->state = STATE_BODY;
    return RESP_COMPLETE;
}

static enum resp_status read_body(struct resp_parser *parser, const char *data, size_t len)
{
    if (len - parser->position < parser->bulk_len + 2)
        return incomplete(parser, parser->position + parser->bulk_len + 2);
    if (!add_arg(parser, data + parser->position, parser->bulk_len))
        return invalid(parser, out_of_memory);
    parser->position += parser->bulk_len + 2;
    parser->remaining--;
    parser->state = STATE_HEADER;
    return RESP_COMPLETE;
}

static enum resp_status read_tail(struct resp_parser *parser, size_t len)
{
    if (len - parser->position < 2)
        return incomplete(parser, parser->position + 2);
    parser->position += 2;
    parser->remaining--;
    parser->state = STATE_HEADER;
    return RESP_COMPLETE;
}

bool resp_pending_bulk(const struct resp_parser *parser, struct resp_bulk *bulk)
{
    if (parser->state != STATE_BODY)
        return false;
    *bulk = (struct resp_bulk){.len = parser->bulk_len,
                               .begin = parser->position,
                               .argument = parser->count,
                               .argc = parser->count + parser->remaining};
    return true;
}

struct resp_slice resp_argument(const struct resp_parser *parser, size_t i, const char *data)
{
    assert(i < parser->count && parser->state != STATE_START);
    struct resp_slice arg = parser->args[i];
    return (struct resp_slice){data + (uintptr_t)arg.data, arg.len};
}

bool resp_divert_bulk(struct resp_parser *parser)
{
    assert(parser->state == STATE_BODY);
    uintptr_t offset = parser->position;
    if (!add_arg(parser, (const char *)offset, 0))
        return false;
    parser->state = STATE_TAIL;
    parser->wanted = parser->position + 2;
    return true;
}

/* Reads a header of the plain form ("$", one to nine digits, CR and one more byte) if it lies whole
 * before `end`; *body is where its bulk begins. False: read_header has to judge. */
static inline bool read_plain_header(const char *at, const char *end, uint64_t *bulk_len,
                                     const char **body)
{
    if (end - at < 4 || *at != '$')
        return false;
    const char *digits = at + 1;
    const char *stop = end - digits - 2 > PLAIN_DIGITS_MAX ? digits + PLAIN_DIGITS_MAX : end - 2;
    uint64_t value = 0;
    for (at = digits; at < stop && *at >= '0' && *at <= '9'; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    if (*at != '\r' || at == digits || (*digits == '0' && at > digits + 1))
        return false;
    *bulk_len = value;
    *body = at + 2;
    return true;
}

/* The hot path: takes arguments while they are plain and whole, and leaves the rest to the others.
 */
static void take_plain_args(struct resp_parser *parser, const char *data, size_t len)
{
    const char *at = data + parser->position;
    const char *end = data + len;
    uint64_t bulk_max = parser->limits.bulk_max;
    if (parser->limits.unauthenticated && bulk_max > RESP_UNAUTHENTICATED_BULK_MAX)
        bulk_max = RESP_UNAUTHENTICATED_BULK_MAX;

    size_t room = parser->args_capacity - parser->count;
    if (room > parser->remaining)
        room = parser->remaining;
    if (room == 0)
        return;
    struct resp_slice *arg = parser->args + parser->count;
    struct resp_slice *stop = arg + room;
    for (; arg < stop; arg++) {
        uint64_t bulk_len;
        const char *body;
        if (!read_plain_header(at, end, &bulk_len, &body) || bulk_len > bulk_max ||
            (uint64_t)(end - body) < bulk_len + 2)
            break;
        arg->data = body;
        arg->len = bulk_len;
        at = body + bulk_len + 2;
    }
    size_t taken = (size_t)(arg - parser->args) - parser->count;
    parser->count += taken;
    parser->remaining -= taken;
    parser->position = (size_t)(at - data);
}

static enum resp_status parse_args(struct resp_parser *parser, const char *data, size_t len)
{
    size_t resumed = parser->count;
    for (;;) {
        if (parser->state == STATE_HEADER && parser->scanned == 0)
            take_plain_args(parser, data, len);
        if (parser->remaining == 0)
            break;
        enum resp_status status = RESP_COMPLETE;
        if (parser->state == STATE_HEADER)
            status = read_header(parser, data, len);
        if (parser->state == STATE_TAIL)
            status = read_tail(parser, len);
        else if (status == RESP_COMPLETE)
            status = read_body(parser, data, len);
        if (status != RESP_COMPLETE) {
            args_to_offsets(parser, resumed, data);
            return status;
        }
    }
    args_to_pointers(parser, resumed, data);
    return complete(parser, parser->position);
}

/* ---- inline ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Ends a word outside quotes. Vertical tab and form feed do not, though they may stand before one:
 * Redis's rule. */
static bool ends_word(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static char unescape(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    default:
        return c;
    }
}

/* Decodes what a backslash at `at` begins; returns where to go on. Between single quotes only \' is
 * an escape. */
static const char *read_escape(const char *at, const char *end, char quote, char *byte)
{
    *byte = '\\';
    if (end - at < 2 || (quote == '\'' && at[1] != '\''))
        return at + 1;
    if (quote == '"' && end - at >= 4 && at[1] == 'x') {
        int high = hex_digit(at[2]), low = hex_digit(at[3]);
        if (high >= 0 && low >= 0) {
            *byte = (char)(high * 16 + low);
            return at + 4;
        }
    }
    *byte = quote == '"' ? unescape(at[1]) : at[1];
    return at + 2;
}

/* Decodes the quoted part that begins at `at` (its quote) to *to and advances that. Returns what
 * follows the closing quote, or NULL if there is none, or no blank behind it. */
static const char *read_quoted(const char *at, const char *end, char **to)
{
    char quote = *at++;
    while (at < end && *at != quote) {
        char byte = *at;
        at = byte == '\\' ? read_escape(at, end, quote, &byte) : at + 1;
        *(*to)++ = byte;
    }
    if (at == end)
        return NULL;
    at++;
    return at == end || is_blank(*at) ? at : NULL;
}

static enum resp_status split_line(struct resp_parser *parser, const char *at, const char *end)
{
    size_t line_len = (size_t)(end - at);
    char *to = NULL;
    for (;;) {
        while (at < end && is_blank(*at))
            at++;
        if (at == end)
            return RESP_COMPLETE;
        const char *word = at;
        while (at < end && !ends_word(*at) && *at != '"' && *at != '\'')
            at++;
        size_t plain_len = (size_t)(at - word);
        size_t word_len = plain_len;
        if (at < end && !ends_word(*at)) {
            /* Decoding never lengthens, so that one copy as long as the line holds all words. */
            if (to == NULL)
                to = parser->inline_copy = malloc(line_len);
            if (to == NULL)
                return invalid(parser, out_of_memory);
            memcpy(to, word, plain_len);
            word = to;
            to += plain_len;
            at = read_quoted(at, end, &to);
            if (at == NULL)
                return invalid(parser, "unbalanced quotes in request");
            word_len = (size_t)(to - word);
        }
        if (!add_arg(parser, word, word_len))
            return invalid(parser, out_of_memory);
    }
}

static enum resp_status parse_inline(struct resp_parser *parser, const char *data, size_t len)
{
    size_t line_len;
    enum resp_status status =
        find_line_end(parser, data, len, '\n', "too big inline request", &line_len);
    if (status != RESP_COMPLETE)
        return status;
    status = split_line(parser, data, data + line_len); /* a CR at its end is a blank */
    return status == RESP_COMPLETE ? complete(parser, line_len + 1) : status;
}

/* ---- one command ---- */

static void begin(struct resp_parser *parser)
{
    parser->count = 0;
    parser->position = 0;
    parser->scanned = 0;
    if (parser->args_capacity > ARGS_KEPT)
        release_args(parser);
    if (parser->inline_copy != NULL)
        release_inline_copy(parser);
}

/* The usual first line, "*" and one digit, without the detour. */
static bool take_plain_count(struct resp_parser *parser, const char *data, size_t len)
{
    if (len < 4 || data[2] != '\r')
        return false;
    unsigned digit = (unsigned char)data[1] - (unsigned)'0';
    if (digit == 0 || digit > 9 || digit > parser->limits.count_max)
        return false;
    parser->remaining = digit;
    parser->position = 4;
    parser->scanned = 0;
    parser->state = STATE_HEADER;
    return true;
}

enum resp_status resp_parse(struct resp_parser *parser, const char *data, size_t len)
{
    if (parser->state == STATE_START) {
        begin(parser);
        if (len == 0)
            return incomplete(parser, 1);
        parser->state = data[0] == '*' ? STATE_COUNT : STATE_INLINE;
    }
    if (parser->state == STATE_INVALID)
        return RESP_INVALID;
    assert(len >= parser->position + parser->scanned);

    if (parser->state == STATE_INLINE)
        return parse_inline(parser, data, len);
    if (parser->state == STATE_COUNT && !take_plain_count(parser, data, len)) {
        enum resp_status status = read_count(parser, data, len);
        if (status != RESP_COMPLETE)
            return status;
    }
    return parse_args(parser, data, len);
}
