/*
 * What vellum-benchmark measures: redis-benchmark's commands, YCSB's mixes, a command of the user's
 * own; and commands ready to be sent, with places for numbers in them.
 */
#ifndef VELLUM_BENCH_TESTS_H
#define VELLUM_BENCH_TESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Composition of a mix, in percent; the rest are reads. */
struct bench_mix {
    uint32_t updates, inserts, changes; /* a read-modify-write: reads, then updates */
    bool reads_latest;
    bool scans; /* instead of reads: from a key on, BENCH_SCAN_MOST keys at most, with their values
                 */
};

/* Data that must exist before a test can measure what it claims. */
enum bench_need {
    BENCH_NOTHING,
    BENCH_EVERY_KEY,     /* `fill` for each key of the key space */
    BENCH_EVERY_REQUEST, /* `fill` for as many as will be made */
    BENCH_LONG_LIST,     /* `fill` as often as the longest LRANGE reads: of this size */
};

struct bench_test {
    const char *name;    /* for -t */
    const char *title;   /* redis-benchmark's */
    const char *command; /* words; NULL: a mix */
    const char *fill;
    enum bench_need need;
    bool is_usual;        /* without -t */
    struct bench_mix mix; /* of GET, SET and VELLUM.RANGE */
};

#define BENCH_LONG_LIST_LENGTH 600
#define BENCH_READ "GET key:__rand_int__"
#define BENCH_SCAN "VELLUM.RANGE [key:__rand_int__ + LIMIT 0 %u WITHVALUES"
#define BENCH_SCAN_MOST 100u
#define BENCH_UPDATE "SET key:__rand_int__ __data__"

const struct bench_test *bench_test_at(size_t index); /* NULL: after the last */

/* "ping" calls both, "lrange" all four. */
bool bench_test_is_called(const struct bench_test *test, const char *name, size_t length);

bool bench_test_is_mix(const struct bench_test *test);
bool bench_test_is_inline(const struct bench_test *test);
bool bench_test_has_data(const struct bench_test *test); /* the size of values matters */
bool bench_words_have_data(int count, const char *const *words);

#define BENCH_PLACES_MAX 64

struct bench_command {
    char *bytes;
    size_t length;
    char name[32];               /* as INFO commandstats names it, to the | of subcommands */
    size_t at[BENCH_PLACES_MAX]; /* where numbers go */
    uint32_t places;
    /* Of GET, and SET of a key and a value, nothing else: where key and value are. Otherwise 0. */
    size_t key_at, key_length, value_at, value_length;
};

/* Words with spaces between; values of that size; numbers have places only where that is asked for.
 * Gives up if it cannot. */
void bench_command_make(struct bench_command *command, const char *text, uint64_t size,
                        bool has_numbers);
void bench_command_make_argv(struct bench_command *command, int count, const char *const *words,
                             uint64_t size, bool has_numbers);
void bench_command_make_inline(struct bench_command *command, const char *line);
void bench_command_copy(struct bench_command *copy, const struct bench_command *command);
void bench_command_free(struct bench_command *command);

#endif
