/*
 * The reply writer.
 *
 * Invariants (resp_writer_check):
 * 1. len <= capacity; data is NULL only while capacity is 0.
 * 2. A reply is written whole or, when memory runs out, not at all; after that `failed` holds and
 *    nothing changes any more but by resp_truncate.
 */
#include "protocol/resp.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN 1024
#define HEADER_MAX 32         /* prefix, number and CRLF */
#define LONG_BYTES (1u << 20) /* a longer one is moved by the system, and grows by less */
#define LONG_SHARE 8

static void resp_writer_check(const struct resp_writer *writer)
{
    assert(writer->len <= writer->capacity);
    assert(writer->data != NULL || writer->capacity == 0);
    assert(writer->version == 2 || writer->version == 3);
}

void resp_writer_init(struct resp_writer *writer, uint8_t version)
{
    *writer = (struct resp_writer){.version = version};
    resp_writer_check(writer);
}

void resp_writer_free(struct resp_writer *writer)
{
    free(writer->data);
    *writer = (struct resp_writer){.version = writer->version};
}

/* ---- space ---- */

static bool grow(struct resp_writer *writer, size_t size)
{
    resp_writer_check(writer);
    if (writer->failed || size > SIZE_MAX / 4 || writer->len > SIZE_MAX / 4) {
        writer->failed = true;
        return false;
    }
    size_t more = writer->capacity < LONG_BYTES ? writer->capacity : writer->capacity / LONG_SHARE;
    size_t capacity = writer->capacity + more;
    if (capacity < CAPACITY_MIN)
        capacity = CAPACITY_MIN;
    if (capacity < writer->len + size)
        capacity = writer->len + size;
    char *data = realloc(writer->data, capacity);
    if (data == NULL) {
        writer->failed = true;
        return false;
    }
    writer->data = data;
    writer->capacity = capacity;
    return true;
}

static inline char *room(struct resp_writer *writer, size_t size)
{
    bool fits = writer->capacity - writer->len >= size && writer->data != NULL && !writer->failed;
    if (!fits && !grow(writer, size))
        return NULL;
    return writer->data + writer->len;
}

char *resp_reserve(struct resp_writer *writer, size_t size)
{
    return room(writer, size);
}

void resp_move(struct resp_writer *to, struct resp_writer *from)
{
    size_t before = to->len;
    if (from->len < LONG_BYTES || before > from->len / LONG_SHARE || to->failed ||
        resp_reserve(from, before) == NULL) {
        resp_raw(to, from->data, from->len);
        return;
    }
    memmove(from->data + before, from->data, from->len);
    if (before > 0)
        memcpy(from->data, to->data, before);
    free(to->data);
    to->data = from->data;
    to->len = before + from->len;
    to->capacity = from->capacity;
    resp_writer_init(from, from->version);
}

void resp_truncate(struct resp_writer *writer, size_t len)
{
    assert(len <= writer->len);
    writer->len = len;
}

static inline void finish(struct resp_writer *writer, const char *end)
{
    writer->len = (size_t)(end - writer->data);
    assert(writer->len <= writer->capacity);
}

/* ---- pieces: each writes at `to`, where there must be room, and returns its end ---- */

static inline char *put_crlf(char *to)
{
    to[0] = '\r';
    to[1] = '\n';
    return to + 2;
}

static inline char *put_bytes(char *to, const char *data, size_t len)
{
    if (len > 0) /* data may be NULL if len is 0 */
        memcpy(to, data, len);
    return to + len;
}

/* "$7\r\n" and the like; nearly all are of one digit or two. */
static inline char *put_header(char *to, char prefix, uint64_t number)
{
    *to++ = prefix;
    if (number < 10) {
        *to++ = (char)('0' + number);
    } else if (number < 100) {
        *to++ = (char)('0' + number / 10);
        *to++ = (char)('0' + number % 10);
    } else {
        assert(number <= INT64_MAX);
        to += resp_print_int64(to, (int64_t)number);
    }
    return put_crlf(to);
}

static inline void header(struct resp_writer *writer, char prefix, uint64_t number)
{
    char *to = room(writer, HEADER_MAX);
    if (to != NULL)
        finish(writer, put_header(to, prefix, number));
}

static void line(struct resp_writer *writer, char prefix, const char *text, size_t len)
{
    if (len > SIZE_MAX / 4) {
        writer->failed = true;
        return;
    }
    char *to = room(writer, len + 3);
    if (to == NULL)
        return;
    *to++ = prefix;
    finish(writer, put_crlf(put_bytes(to, text, len)));
}

/* ---- replies that are the same in both versions ---- */

void resp_raw(struct resp_writer *writer, const char *data, size_t len)
{
    char *to = room(writer, len);
    if (to != NULL)
        finish(writer, put_bytes(to, data, len));
}

void resp_ok(struct resp_writer *writer)
{
    resp_raw(writer, "+OK\r\n", 5);
}

void resp_status(struct resp_writer *writer, const char *text)
{
    line(writer, '+', text, strlen(text));
}

void resp_error(struct resp_writer *writer, const char *text)
{
    line(writer, '-', text, strlen(text));
}

/* Makes one line of [text, text + len). */
static size_t to_one_line(char *text, size_t len)
{
    while (len > 0 && (text[len - 1] == '\r' || text[len - 1] == '\n'))
        len--;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\r' || text[i] == '\n')
            text[i] = ' ';
    }
    return len;
}

void resp_errorf(struct resp_writer *writer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0) {
        writer->failed = true;
        return;
    }
    char *to = room(writer, (size_t)len + 4);
    if (to == NULL)
        return;
    *to++ = '-';
    va_start(args, format);
    vsnprintf(to, (size_t)len + 1, format, args);
    va_end(args);
    finish(writer, put_crlf(to + to_one_line(to, (size_t)len)));
}

void resp_integer(struct resp_writer *writer, int64_t value)
{
    if (value >= 0) {
        header(writer, ':', (uint64_t)value);
        return;
    }
    char *to = room(writer, HEADER_MAX);
    if (to == NULL)
        return;
    *to++ = ':';
    to += resp_print_int64(to, value);
    finish(writer, put_crlf(to));
}

void resp_bulk(struct resp_writer *writer, const char *data, size_t len)
{
    if (len > SIZE_MAX / 4) {
        writer->failed = true;
        return;
    }
    char *to = room(writer, len + HEADER_MAX);
    if (to == NULL)
        return;
    to = put_header(to, '$', len);
    finish(writer, put_crlf(put_bytes(to, data, len)));
}

void resp_bulk_header(struct resp_writer *writer, uint64_t len)
{
    header(writer, '$', len);
}

void resp_bulk_string(struct resp_writer *writer, const char *text)
{
    resp_bulk(writer, text, strlen(text));
}

void resp_bulk_integer(struct resp_writer *writer, int64_t value)
{
    char text[24];
    resp_bulk(writer, text, resp_print_int64(text, value));
}

void resp_array(struct resp_writer *writer, uint64_t count)
{
    header(writer, '*', count);
}

/* ---- replies whose form depends on the version ---- */

void resp_null(struct resp_writer *writer)
{
    if (writer->version == 2)
        resp_raw(writer, "$-1\r\n", 5);
    else
        resp_raw(writer, "_\r\n", 3);
}

void resp_null_array(struct resp_writer *writer)
{
    if (writer->version == 2)
        resp_raw(writer, "*-1\r\n", 5);
    else
        resp_raw(writer, "_\r\n", 3);
}

void resp_map(struct resp_writer *writer, uint64_t pairs)
{
    if (writer->version == 2)
        header(writer, '*', pairs * 2);
    else
        header(writer, '%', pairs);
}

void resp_set(struct resp_writer *writer, uint64_t count)
{
    header(writer, writer->version == 2 ? '*' : '~', count);
}

void resp_push(struct resp_writer *writer, uint64_t count)
{
    header(writer, writer->version == 2 ? '*' : '>', count);
}

void resp_boolean(struct resp_writer *writer, bool value)
{
    if (writer->version == 2)
        resp_raw(writer, value ? ":1\r\n" : ":0\r\n", 4);
    else
        resp_raw(writer, value ? "#t\r\n" : "#f\r\n", 4);
}

void resp_double(struct resp_writer *writer, double value)
{
    char text[40];
    size_t len = resp_print_double(text, value);
    if (writer->version == 2)
        resp_bulk(writer, text, len);
    else
        line(writer, ',', text, len);
}

void resp_verbatim(struct resp_writer *writer, const char *format, const char *data, size_t len)
{
    assert(strlen(format) == 3);
    if (writer->version == 2 || len > SIZE_MAX / 4) {
        resp_bulk(writer, data, len);
        return;
    }
    char *to = room(writer, len + 4 + HEADER_MAX);
    if (to == NULL)
        return;
    to = put_header(to, '=', len + 4);
    to = put_bytes(to, format, 3);
    *to++ = ':';
    finish(writer, put_crlf(put_bytes(to, data, len)));
}
