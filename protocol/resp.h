/*
 * RESP, the Redis serialization protocol, versions 2 and 3: requests in, replies out. Bytes only:
 * no sockets, no storage. Specification: https://redis.io/docs/reference/protocol-spec/
 *
 * Threads: a parser or a writer belongs to one thread at a time; nothing is shared.
 */
#ifndef VELLUM_RESP_H
#define VELLUM_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A view of bytes; does not own them. */
struct resp_slice {
    const char *data;
    size_t len;
};

/* ---- requests ---- */

#define RESP_INLINE_MAX (64 * 1024) /* longest inline command, and longest count line */

enum resp_status {
    RESP_COMPLETE,   /* one command is in args; `consumed` bytes belong to it */
    RESP_INCOMPLETE, /* more bytes are needed: see `wanted` */
    RESP_INVALID,    /* protocol error: see `error`; nothing after it can be understood */
};

/* What a client may send before AUTH, whatever the other limits say. */
#define RESP_UNAUTHENTICATED_BULK_MAX 16384
#define RESP_UNAUTHENTICATED_COUNT_MAX 10

struct resp_limits {
    uint64_t bulk_max;    /* longest bulk string (proto-max-bulk-len) */
    uint64_t count_max;   /* most arguments; never more than INT32_MAX */
    bool unauthenticated; /* RESP_UNAUTHENTICATED_... apply as well, with their own error texts */
};

/*
 * An incremental parser over the caller's buffer. Call resp_parse with all unconsumed bytes from
 * the start of the command; on RESP_INCOMPLETE call it again with the same bytes and more behind
 * them (the buffer may have moved): it goes on where it stopped, so that a command in many pieces
 * costs linear time. After RESP_COMPLETE drop `consumed` bytes and call again for the next command.
 * An empty command (blank line, *0) is RESP_COMPLETE with count 0. After RESP_INVALID every further
 * call returns RESP_INVALID.
 *
 * The results hold until the next call of resp_parse; args hold only after RESP_COMPLETE. New
 * limits take effect with the next length that is read, also within a command.
 */
struct resp_parser {
    struct resp_slice *args; /* into the buffer of the last call, or into `inline_copy` */
    size_t count;
    size_t consumed;
    size_t wanted; /* RESP_INCOMPLETE: buffer bytes the command needs at least, from its start */
    const char *error; /* RESP_INVALID: text after "-ERR Protocol error: ", static or error_text */

    /* private: see resp_parse.c */
    struct resp_limits limits;
    size_t args_capacity;
    size_t position;
    size_t scanned;
    uint64_t remaining;
    uint64_t bulk_len;
    char *inline_copy;
    int state;
    char error_text[64];
};

/* A bulk of which not all has come. */
struct resp_bulk {
    uint64_t len;
    size_t begin;    /* of its bytes: where in the buffer */
    size_t argument; /* which it is */
    size_t argc;     /* of how many */
};

void resp_parser_init(struct resp_parser *parser, struct resp_limits limits);
void resp_parser_set_limits(struct resp_parser *parser, struct resp_limits limits);
void resp_parser_free(struct resp_parser *parser);
enum resp_status resp_parse(struct resp_parser *parser, const char *data, size_t len);

/* After RESP_INCOMPLETE: whether it is a bulk's bytes that are missing. */
bool resp_pending_bulk(const struct resp_parser *parser, struct resp_bulk *bulk);
/* An argument that has come before it; `data` as it was given. */
struct resp_slice resp_argument(const struct resp_parser *parser, size_t i, const char *data);
/* The pending bulk's bytes are the caller's: those that have come are taken out of the buffer, the
 * others do not get there. What follows them follows what was before them, and the argument will be
 * an empty slice. False, and nothing is changed: out of memory. */
bool resp_divert_bulk(struct resp_parser *parser);

/* ---- replies ---- */

/*
 * A growing buffer that replies are written into. `version` (2 or 3) chooses the form of nulls,
 * doubles, maps, sets, booleans, pushes, big numbers and verbatim strings. When memory runs out
 * `failed` is set and further writes do nothing: check it once, before sending.
 */
struct resp_writer {
    char *data;
    size_t len;
    size_t capacity;
    uint8_t version;
    bool failed;
};

void resp_writer_init(struct resp_writer *writer, uint8_t version);
void resp_writer_free(struct resp_writer *writer);
/* Appends what `from` has; where it is long the bytes stay where they are, and `from` is empty. */
void resp_move(struct resp_writer *to, struct resp_writer *from);
char *resp_reserve(struct resp_writer *writer, size_t size); /* room at data + len, or NULL */
void resp_truncate(struct resp_writer *writer, size_t len);  /* forget what was written after len */

void resp_raw(struct resp_writer *writer, const char *data, size_t len);
void resp_ok(struct resp_writer *writer);                       /* +OK */
void resp_status(struct resp_writer *writer, const char *text); /* +text */
void resp_error(struct resp_writer *writer, const char *text);  /* -text: code included */
void resp_errorf(struct resp_writer *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* line breaks become spaces, but fall off at the end */
void resp_integer(struct resp_writer *writer, int64_t value);
void resp_bulk(struct resp_writer *writer, const char *data, size_t len);
void resp_bulk_header(struct resp_writer *writer,
                      uint64_t len); /* $len; the bytes and CRLF follow */
void resp_bulk_string(struct resp_writer *writer, const char *text);
void resp_bulk_integer(struct resp_writer *writer, int64_t value);
void resp_null(struct resp_writer *writer);       /* $-1 or _ */
void resp_null_array(struct resp_writer *writer); /* *-1 or _ */
void resp_array(struct resp_writer *writer, uint64_t count);
void resp_map(struct resp_writer *writer, uint64_t pairs);  /* RESP2: array of 2 * pairs */
void resp_set(struct resp_writer *writer, uint64_t count);  /* RESP2: array */
void resp_push(struct resp_writer *writer, uint64_t count); /* RESP2: array */
void resp_boolean(struct resp_writer *writer, bool value);  /* RESP2: integer */
void resp_double(struct resp_writer *writer, double value); /* RESP2: bulk, shortest round trip */
/* `format` has three letters ("txt"). RESP2: bulk, without the format. */
void resp_verbatim(struct resp_writer *writer, const char *format, const char *data, size_t len);

/* ---- numbers, as Redis reads them in arguments ---- */

/* Exactly a decimal int64: no spaces, no leading zeros or plus sign. */
bool resp_read_int64(const char *data, size_t len, int64_t *value);
/* A double as Redis reads scores: also "inf", exponents and hexadecimal; neither NaN nor what
 * overflows or underflows to zero; at most RESP_NUMBER_MAX - 1 bytes. Locale "C" is assumed. */
bool resp_read_double(const char *data, size_t len, double *value);
/* As Redis's INCRBYFLOAT reads and prints: long double, 17 digits after the point, trimmed. */
bool resp_read_long_double(const char *data, size_t len, long double *value);

/* Each returns the length; a NUL stands behind it. */
#define RESP_NUMBER_MAX (5 * 1024) /* holds every long double */
size_t resp_print_long_double(char text[RESP_NUMBER_MAX], long double value);
size_t resp_print_int64(char text[24], int64_t value);
size_t resp_print_double(char text[40], double value); /* "inf", "-inf", "nan", shortest digits */

#endif
