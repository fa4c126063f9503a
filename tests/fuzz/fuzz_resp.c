/*
 * Any bytes as requests: parsed whole and in random pieces, in blocks of exactly their size that
 * move between calls, they must give the same commands and the same error. The numbers among the
 * arguments must survive printing and reading.
 *
 * Input: one byte of limits, one that seeds the pieces, then the request bytes.
 */
#include "protocol/resp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

/* ---- what a parse gave ---- */

struct outcome {
    char *bytes; /* each command: count, then each argument's length and bytes */
    size_t len, capacity;
    size_t commands;
    size_t end; /* bytes consumed by whole commands */
    char error[64];
};

static void record(struct outcome *outcome, const void *data, size_t len)
{
    if (outcome->capacity - outcome->len < len) {
        outcome->capacity = (outcome->capacity + len) * 2;
        outcome->bytes = realloc(outcome->bytes, outcome->capacity);
        require(outcome->bytes != NULL, "memory for the fuzzer itself");
    }
    if (len > 0)
        memcpy(outcome->bytes + outcome->len, data, len);
    outcome->len += len;
}

static void check_numbers(struct resp_slice arg)
{
    int64_t integer, integer_again;
    char text[40], long_text[RESP_NUMBER_MAX];
    if (resp_read_int64(arg.data, arg.len, &integer)) {
        size_t len = resp_print_int64(text, integer);
        require(len == arg.len && memcmp(text, arg.data, len) == 0, "an integer has one form");
        require(resp_read_int64(text, len, &integer_again) && integer == integer_again, "int64");
    }
    double value, again;
    if (resp_read_double(arg.data, arg.len, &value)) {
        require(!isnan(value), "no NaN is read");
        size_t len = resp_print_double(text, value);
        require(len < sizeof text && resp_read_double(text, len, &again), "a printed double reads");
        require(memcmp(&value, &again, sizeof value) == 0, "a double survives printing");
    }
    long double long_value;
    if (resp_read_long_double(arg.data, arg.len, &long_value)) {
        size_t len = resp_print_long_double(long_text, long_value);
        require(resp_read_long_double(long_text, len, &long_value), "a printed long double reads");
    }
}

static void record_command(struct outcome *outcome, const struct resp_parser *parser)
{
    outcome->commands++;
    outcome->end += parser->consumed;
    record(outcome, &parser->count, sizeof parser->count);
    for (size_t i = 0; i < parser->count; i++) {
        struct resp_slice arg = parser->args[i];
        record(outcome, &arg.len, sizeof arg.len);
        record(outcome, arg.data, arg.len);
        check_numbers(arg);
    }
}

/* ---- two ways to parse ---- */

/* Parses `len` bytes in a block of their own. */
static enum resp_status parse_copy(struct resp_parser *parser, const uint8_t *data, size_t len,
                                   struct outcome *outcome)
{
    char *copy = malloc(len);
    require(copy != NULL, "memory for the fuzzer itself");
    memcpy(copy, data, len);
    enum resp_status status = resp_parse(parser, copy, len);
    if (status == RESP_COMPLETE) {
        require(parser->consumed > 0 && parser->consumed <= len, "consumed lies in the buffer");
        record_command(outcome, parser);
    } else if (status == RESP_INVALID) {
        require(strlen(parser->error) < sizeof outcome->error, "an error text is short");
        strcpy(outcome->error, parser->error);
    } else {
        require(parser->wanted > len, "more is wanted than is there");
    }
    free(copy);
    return status;
}

static void parse_whole(struct resp_parser *parser, const uint8_t *data, size_t len,
                        struct outcome *outcome)
{
    while (parse_copy(parser, data + outcome->end, len - outcome->end, outcome) == RESP_COMPLETE)
        continue;
}

static size_t next_piece(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    uint32_t random = *seed >> 16;
    return random % 8 == 0 ? random % 200 : random % 5;
}

static void parse_in_pieces(struct resp_parser *parser, const uint8_t *data, size_t len,
                            uint32_t seed, struct outcome *outcome)
{
    size_t arrived = 0, wanted = 0;
    for (;;) {
        size_t begun = outcome->end;
        enum resp_status status = parse_copy(parser, data + begun, arrived - begun, outcome);
        if (status == RESP_INVALID)
            return;
        if (status == RESP_COMPLETE) {
            require(parser->consumed >= wanted, "no more was wanted than the command took");
            wanted = 0;
            continue;
        }
        require(parser->wanted >= wanted, "what is wanted does not shrink");
        wanted = parser->wanted;
        if (arrived == len)
            return;
        size_t piece = next_piece(&seed);
        arrived = piece < len - arrived ? arrived + piece : len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 2)
        return 0;
    struct resp_limits limits = {.bulk_max = data[0] & 1 ? 100 : 512u << 20,
                                 .count_max = data[0] & 2 ? 20 : INT32_MAX,
                                 .unauthenticated = data[0] & 4};
    struct resp_parser parser;
    struct outcome whole = {0}, pieces = {0};

    resp_parser_init(&parser, limits);
    parse_whole(&parser, data + 2, len - 2, &whole);
    require(parser.args_capacity <= 16 + 2 * len, "memory follows what arrived");
    resp_parser_free(&parser);

    resp_parser_init(&parser, limits);
    parse_in_pieces(&parser, data + 2, len - 2, data[1], &pieces);
    resp_parser_free(&parser);

    require(whole.commands == pieces.commands, "as many commands in pieces");
    require(whole.end == pieces.end, "as many bytes consumed in pieces");
    require(strcmp(whole.error, pieces.error) == 0, "the same error in pieces");
    require(whole.len == pieces.len, "the same arguments in pieces");
    require(whole.len == 0 || memcmp(whole.bytes, pieces.bytes, whole.len) == 0,
            "the same arguments in pieces");
    free(whole.bytes);
    free(pieces.bytes);
    return 0;
}
