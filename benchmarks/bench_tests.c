#include "benchmarks/bench_tests.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "benchmarks/bench_options.h"
#include "benchmarks/keys.h"

#define NUMBER "__rand_int__"
#define DATA "__data__"
#define WORDS_MAX 128
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define PAIR " key:" NUMBER " " DATA

static const char FILL_KEYS[] = BENCH_UPDATE;
static const char FILL_HEAD[] = "LPUSH mylist " DATA;
static const char FILL_TAIL[] = "RPUSH mylist " DATA;

static const struct bench_test TESTS[] = {
    {"ping_inline", "PING_INLINE", "PING", NULL, BENCH_NOTHING, true, {0}},
    {"ping_mbulk", "PING_MBULK", "PING", NULL, BENCH_NOTHING, true, {0}},
    {"set", "SET", BENCH_UPDATE, NULL, BENCH_NOTHING, true, {0}},
    {"get", "GET", BENCH_READ, FILL_KEYS, BENCH_EVERY_KEY, true, {0}},
    {"incr", "INCR", "INCR counter:" NUMBER, NULL, BENCH_NOTHING, true, {0}},
    {"lpush", "LPUSH", "LPUSH mylist " DATA, NULL, BENCH_NOTHING, true, {0}},
    {"rpush", "RPUSH", "RPUSH mylist " DATA, NULL, BENCH_NOTHING, true, {0}},
    {"lpop", "LPOP", "LPOP mylist", FILL_HEAD, BENCH_EVERY_REQUEST, true, {0}},
    {"rpop", "RPOP", "RPOP mylist", FILL_TAIL, BENCH_EVERY_REQUEST, true, {0}},
    {"sadd", "SADD", "SADD myset element:" NUMBER, NULL, BENCH_NOTHING, true, {0}},
    {"hset", "HSET", "HSET myhash element:" NUMBER " " DATA, NULL, BENCH_NOTHING, true, {0}},
    {"spop", "SPOP", "SPOP myset", "SADD myset element:" NUMBER, BENCH_EVERY_REQUEST, true, {0}},
    {"zadd", "ZADD", "ZADD myzset " NUMBER " element:" NUMBER, NULL, BENCH_NOTHING, true, {0}},
    {"zpopmin",
     "ZPOPMIN",
     "ZPOPMIN myzset",
     "ZADD myzset 0 element:" NUMBER,
     BENCH_EVERY_REQUEST,
     true,
     {0}},
    {"lrange_100",
     "LRANGE_100 (first 100 elements)",
     "LRANGE mylist 0 99",
     FILL_HEAD,
     BENCH_LONG_LIST,
     true,
     {0}},
    {"lrange_300",
     "LRANGE_300 (first 300 elements)",
     "LRANGE mylist 0 299",
     FILL_HEAD,
     BENCH_LONG_LIST,
     true,
     {0}},
    {"lrange_500",
     "LRANGE_500 (first 500 elements)",
     "LRANGE mylist 0 499",
     FILL_HEAD,
     BENCH_LONG_LIST,
     true,
     {0}},
    {"lrange_600",
     "LRANGE_600 (first 600 elements)",
     "LRANGE mylist 0 599",
     FILL_HEAD,
     BENCH_LONG_LIST,
     true,
     {0}},
    {"mset",
     "MSET (10 keys)",
     "MSET" PAIR PAIR PAIR PAIR PAIR PAIR PAIR PAIR PAIR PAIR,
     NULL,
     BENCH_NOTHING,
     true,
     {0}},
    {"ycsb-a",
     "YCSB A (50% reads, 50% updates)",
     NULL,
     FILL_KEYS,
     BENCH_EVERY_KEY,
     false,
     {.updates = 50}},
    {"ycsb-b",
     "YCSB B (95% reads, 5% updates)",
     NULL,
     FILL_KEYS,
     BENCH_EVERY_KEY,
     false,
     {.updates = 5}},
    {"ycsb-c", "YCSB C (reads)", NULL, FILL_KEYS, BENCH_EVERY_KEY, false, {0}},
    {"ycsb-d",
     "YCSB D (95% reads of the latest, 5% inserts)",
     NULL,
     FILL_KEYS,
     BENCH_EVERY_KEY,
     false,
     {.inserts = 5, .reads_latest = true}},
    {"ycsb-e",
     "YCSB E (95% scans of 1 to 100 keys, 5% inserts)",
     NULL,
     FILL_KEYS,
     BENCH_EVERY_KEY,
     false,
     {.inserts = 5, .scans = true}},
    {"ycsb-f",
     "YCSB F (50% reads, 50% reads and updates)",
     NULL,
     FILL_KEYS,
     BENCH_EVERY_KEY,
     false,
     {.changes = 50}},
};

#define TEST_COUNT (sizeof TESTS / sizeof *TESTS)

const struct bench_test *bench_test_at(size_t index)
{
    return index < TEST_COUNT ? &TESTS[index] : NULL;
}

bool bench_test_is_called(const struct bench_test *test, const char *name, size_t length)
{
    static const char *const groups[] = {"ping", "lrange"};
    if (strlen(test->name) == length && strncasecmp(test->name, name, length) == 0)
        return true;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (strlen(groups[i]) == length && strncasecmp(groups[i], name, length) == 0)
            return strncmp(test->name, groups[i], length) == 0;
    return false;
}

bool bench_test_is_inline(const struct bench_test *test)
{
    return strcmp(test->name, "ping_inline") == 0;
}

bool bench_test_is_mix(const struct bench_test *test)
{
    return test->command == NULL;
}

bool bench_test_has_data(const struct bench_test *test)
{
    return bench_test_is_mix(test) || strstr(test->command, DATA) != NULL ||
           (test->fill != NULL && strstr(test->fill, DATA) != NULL);
}

bool bench_words_have_data(int count, const char *const *words)
{
    for (int i = 1; i < count; i++)
        if (strcmp(words[i], DATA) == 0)
            return true;
    return false;
}

/* ---- commands ---- */

static char *add(char *to, const char *bytes, size_t length)
{
    memcpy(to, bytes, length);
    return to + length;
}

static char *add_value(char *to, uint64_t size)
{
    to += sprintf(to, "$%llu\r\n", (unsigned long long)size);
    for (uint64_t i = 0; i < size; i++)
        *to++ = (char)('a' + i * 7 % 26);
    return add(to, "\r\n", 2);
}

static char *add_word(struct bench_command *command, char *to, const char *word, bool has_numbers)
{
    size_t length = strlen(word);
    to += sprintf(to, "$%zu\r\n", length);
    for (const char *at = word; has_numbers && (at = strstr(at, NUMBER)) != NULL; at++) {
        if (command->places == BENCH_PLACES_MAX)
            bench_give_up("more than %d random numbers in a command", BENCH_PLACES_MAX);
        command->at[command->places++] = (size_t)(to - command->bytes) + (size_t)(at - word);
    }
    return add(add(to, word, length), "\r\n", 2);
}

/* From the end: the value and its end of line, the line of its length, the key. */
static void find_value(struct bench_command *command, size_t key_length, uint64_t size)
{
    char line[32];
    int line_length = snprintf(line, sizeof line, "\r\n$%llu\r\n", (unsigned long long)size);
    command->value_length = size;
    command->value_at = command->length - 2 - size;
    command->key_length = key_length;
    command->key_at = command->value_at - (size_t)line_length - key_length;
}

void bench_command_make_argv(struct bench_command *command, int count, const char *const *words,
                             uint64_t size, bool has_numbers)
{
    _Static_assert(sizeof NUMBER - 1 == KEY_DIGITS, "a number takes its name's place");
    size_t room = 32;
    if (words[0][strspn(words[0], NAME_LETTERS)] != '\0')
        bench_give_up("'%s' is no command's name", words[0]);
    for (int i = 0; i < count; i++)
        room += 32 + (strcmp(words[i], DATA) == 0 ? size : strlen(words[i]));
    *command = (struct bench_command){.bytes = malloc(room)};
    if (command->bytes == NULL)
        bench_give_up("out of memory");
    char *to = command->bytes + sprintf(command->bytes, "*%d\r\n", count);
    for (int i = 0; i < count; i++)
        to = i > 0 && strcmp(words[i], DATA) == 0 ? add_value(to, size)
                                                  : add_word(command, to, words[i], has_numbers);
    command->length = (size_t)(to - command->bytes);
    if (count == 3 && strcasecmp(words[0], "SET") == 0 && strcmp(words[2], DATA) == 0)
        find_value(command, strlen(words[1]), size);
    if (count == 2 && strcasecmp(words[0], "GET") == 0) {
        command->key_length = strlen(words[1]);
        command->key_at = command->length - 2 - command->key_length;
    }
    for (size_t i = 0; words[0][i] != '\0' && i < sizeof command->name - 1; i++)
        command->name[i] = (char)tolower((unsigned char)words[0][i]);
}

void bench_command_make(struct bench_command *command, const char *text, uint64_t size,
                        bool has_numbers)
{
    const char *words[WORDS_MAX];
    int count = 0;
    char *copy = strdup(text), *rest;
    if (copy == NULL)
        bench_give_up("out of memory");
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        /* A score: without random numbers, 0. */
        words[count++] = !has_numbers && strcmp(word, NUMBER) == 0 ? "0" : word;
    bench_command_make_argv(command, count, words, size, has_numbers);
    free(copy);
}

void bench_command_make_inline(struct bench_command *command, const char *line)
{
    *command = (struct bench_command){.bytes = malloc(strlen(line) + 3)};
    if (command->bytes == NULL)
        bench_give_up("out of memory");
    command->length = (size_t)sprintf(command->bytes, "%s\r\n", line);
    for (size_t i = 0; isalpha((unsigned char)line[i]) && i < sizeof command->name - 1; i++)
        command->name[i] = (char)tolower((unsigned char)line[i]);
}

void bench_command_copy(struct bench_command *copy, const struct bench_command *command)
{
    *copy = *command;
    copy->bytes = malloc(command->length);
    if (copy->bytes == NULL)
        bench_give_up("out of memory");
    memcpy(copy->bytes, command->bytes, command->length);
}

void bench_command_free(struct bench_command *command)
{
    free(command->bytes);
    command->bytes = NULL;
}
