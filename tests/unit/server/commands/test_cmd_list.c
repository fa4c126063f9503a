/*
 * The commands on lists: scripts of commands and replies, and large lists against a plain array.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/command_driver.h"

/* ---- scripts ---- */

#define ARRAY(n) "*" #n "\r\n"
#define NIL_ARRAY "*-1\r\n", "_\r\n"
#define A BULK(1, "a")
#define B BULK(1, "b")
#define C BULK(1, "c")
#define D BULK(1, "d")

static const struct step ends[] = {
    {"LPUSHX l a", INT(0), NULL},
    {"RPUSHX l a", INT(0), NULL},
    {"@keys", INT(0), NULL},
    {"RPUSH l b c", INT(2), NULL},
    {"LPUSH l a", INT(3), NULL},
    {"RPUSHX l d", INT(4), NULL},
    {"LRANGE l 0 -1", ARRAY(4) A B C D, NULL},
    {"LLEN l", INT(4), NULL},
    {"LPOP l", A, NULL},
    {"RPOP l", D, NULL},
    {"RPOP l 0", ARRAY(0), NULL},
    {"RPOP l 9", ARRAY(2) C B, NULL},
    {"@keys", INT(0), NULL},
    {"LPOP l", NIL, NULL},
    {"LPOP l 1", NIL_ARRAY},
    {"LPOP l -1", ERR("value is out of range, must be positive"), NULL},
    {"LPOP l 1 2", ERR("wrong number of arguments for 'lpop' command"), NULL},
    {"LLEN l", INT(0), NULL},
    {"SET s x", OK, NULL},
    {"LPUSH s a", WRONG, NULL},
    {"LLEN s", WRONG, NULL},
    {"LPOP s 1", WRONG, NULL},
    {NULL, NULL, NULL},
};

static const struct step places[] = {
    {"RPUSH l a b c d", INT(4), NULL},
    {"LINDEX l 0", A, NULL},
    {"LINDEX l -1", D, NULL},
    {"LINDEX l 4", NIL, NULL},
    {"LINDEX l -5", NIL, NULL},
    {"LINDEX l x", NOT_INT, NULL},
    {"LSET l 1 x", OK, NULL},
    {"LSET l -1 y", OK, NULL},
    {"LSET l 4 y", ERR("index out of range"), NULL},
    {"LSET none 0 y", ERR("no such key"), NULL},
    {"LRANGE l 1 2", ARRAY(2) BULK(1, "x") C, NULL},
    {"LRANGE l -100 0", ARRAY(1) A, NULL},
    {"LRANGE l 3 100", ARRAY(1) BULK(1, "y"), NULL},
    {"LRANGE l 0 -100", ARRAY(0), NULL},
    {"LRANGE l 2 1", ARRAY(0), NULL},
    {"LRANGE none 0 -1", ARRAY(0), NULL},
    {"LTRIM l 1 -2", OK, NULL},
    {"LRANGE l 0 -1", ARRAY(2) BULK(1, "x") C, NULL},
    {"LTRIM l 5 9", OK, NULL},
    {"@keys", INT(0), NULL},
    {"LTRIM none 0 0", OK, NULL},
    {NULL, NULL, NULL},
};

static const struct step values[] = {
    {"RPUSH l a b a c a", INT(5), NULL},
    {"LPOS l a", INT(0), NULL},
    {"LPOS l a RANK -1", INT(4), NULL},
    {"LPOS l a RANK 2 COUNT 0", ARRAY(2) INT(2) INT(4), NULL},
    {"LPOS l a COUNT 2 RANK -1", ARRAY(2) INT(4) INT(2), NULL},
    {"LPOS l a COUNT 0 MAXLEN 3", ARRAY(2) INT(0) INT(2), NULL},
    {"LPOS l x", NIL, NULL},
    {"LPOS l x COUNT 1", ARRAY(0), NULL},
    {"LPOS l a COUNT -1", ERR("COUNT can't be negative"), NULL},
    {"LPOS l a RANK", SYNTAX, NULL},
    {"LINSERT l BEFORE c x", INT(6), NULL},
    {"LINSERT l after c y", INT(7), NULL},
    {"LINSERT l AT c y", SYNTAX, NULL},
    {"LINSERT l AFTER z y", INT(-1), NULL},
    {"LINSERT none AFTER z y", INT(0), NULL},
    {"LREM l -1 a", INT(1), NULL},
    {"LRANGE l 0 -1", ARRAY(6) A B A BULK(1, "x") C BULK(1, "y"), NULL},
    {"LREM l 1 a", INT(1), NULL},
    {"LREM l 0 a", INT(1), NULL},
    {"LREM l 0 a", INT(0), NULL},
    {"LRANGE l 0 -1", ARRAY(4) B BULK(1, "x") C BULK(1, "y"), NULL},
    {NULL, NULL, NULL},
};

static const struct step moves[] = {
    {"RPUSH l a b c", INT(3), NULL},
    {"LMOVE l m LEFT RIGHT", A, NULL},
    {"RPOPLPUSH l m", C, NULL},
    {"LRANGE m 0 -1", ARRAY(2) C A, NULL},
    {"LMOVE m m LEFT RIGHT", C, NULL},
    {"LRANGE m 0 -1", ARRAY(2) A C, NULL},
    {"LMOVE l m LEFT LEFT", B, NULL},
    {"@keys", INT(1), NULL},
    {"LMOVE l m LEFT LEFT", NIL, NULL},
    {"LMOVE l m UP LEFT", SYNTAX, NULL},
    {"SET s x", OK, NULL},
    {"RPOPLPUSH m s", WRONG, NULL},
    {"RPOPLPUSH s m", WRONG, NULL},
    {"RPUSH n d", INT(1), NULL},
    {"RPOPLPUSH n n", D, NULL},
    {"LRANGE n 0 -1", ARRAY(1) D, NULL},
    {"LMPOP 2 none m RIGHT COUNT 2", ARRAY(2) BULK(1, "m") ARRAY(2) C A, NULL},
    {"LMPOP 2 none m LEFT", ARRAY(2) BULK(1, "m") ARRAY(1) B, NULL},
    {"LMPOP 1 m LEFT", NIL_ARRAY},
    {"LMPOP 0 m LEFT", ERR("numkeys should be greater than 0"), NULL},
    {"LMPOP 2 m LEFT", SYNTAX, NULL},
    {"LMPOP 1 m LEFT COUNT 0", ERR("count should be greater than 0"), NULL},
    {"LMPOP 1 s LEFT", WRONG, NULL},
    {NULL, NULL, NULL},
};

static const struct step forms[] = {
    {"@config list-max-listpack-size 4", OK, NULL},
    {"RPUSH l a b c d", INT(4), NULL},
    {"@form l", FORM("list"), NULL},
    {"RPUSH l e", INT(5), NULL},
    {"@form l", FORM("list big"), NULL},
    {"LPOP l 2", ARRAY(2) A B, NULL},
    {"@form l", FORM("list big"), NULL},
    {"LPOP l", C, NULL},
    {"@form l", FORM("list"), NULL},
    {NULL, NULL, NULL},
};

static void run_script(void **state)
{
    driver_run_script(*state);
}

/* ---- against an array ---- */

#define MODEL_MAX 4000
#define LINE_MAX_BYTES 1024

struct model {
    struct driver *driver;
    unsigned seed, count;
    char *elements[MODEL_MAX]; /* from malloc */
};

static unsigned roll(struct model *model, unsigned below)
{
    model->seed = model->seed * 1103515245 + 12345;
    return (model->seed >> 16) % below;
}

static char *fresh_element(struct model *model)
{
    char *element = calloc(1, 400);
    unsigned len = roll(model, 4) == 0 ? roll(model, 300) : 3;
    snprintf(element, 16, "e%u", roll(model, 30));
    for (size_t i = strlen(element); i < len; i++)
        element[i] = 'x';
    return element;
}

static void model_insert(struct model *model, unsigned at, char *element)
{
    memmove(model->elements + at + 1, model->elements + at, (model->count++ - at) * sizeof(char *));
    model->elements[at] = element;
}

static void model_remove(struct model *model, unsigned at)
{
    free(model->elements[at]);
    memmove(model->elements + at, model->elements + at + 1, (--model->count - at) * sizeof(char *));
}

static void expect_integer(struct model *model, const char *line, long long number)
{
    char expected[32];
    struct resp_slice reply = driver_run_line(model->driver, line);
    snprintf(expected, sizeof(expected), ":%lld\r\n", number);
    if (reply.len != strlen(expected) || memcmp(reply.data, expected, reply.len) != 0)
        fail_msg("%s: %.*s", line, (int)reply.len, reply.data);
}

static void expect_elements(struct model *model, const char *line, unsigned first, unsigned count)
{
    struct resp_writer expected;
    struct resp_slice reply = driver_run_line(model->driver, line);
    resp_writer_init(&expected, 2);
    resp_array(&expected, count);
    for (unsigned i = first; i < first + count; i++)
        resp_bulk_string(&expected, model->elements[i]);
    if (reply.len != expected.len || memcmp(reply.data, expected.data, reply.len) != 0)
        fail_msg("%s, of %u: %.*s", line, model->count, (int)reply.len, reply.data);
    resp_writer_free(&expected);
}

static unsigned model_find(const struct model *model, const char *element)
{
    unsigned at = 0;
    while (at < model->count && strcmp(model->elements[at], element) != 0)
        at++;
    return at;
}

static void change(struct model *model)
{
    char line[LINE_MAX_BYTES];
    char *element = fresh_element(model);
    unsigned way = roll(model, 6), at = model_find(model, element);
    if (way == 0 || model->count == 0) {
        snprintf(line, sizeof(line), "LPUSH l %s", element);
        model_insert(model, 0, element);
        expect_integer(model, line, model->count);
        return;
    }
    if (way == 1) {
        snprintf(line, sizeof(line), "RPUSH l %s", element);
        model_insert(model, model->count, element);
        expect_integer(model, line, model->count);
        return;
    }
    if (way == 2 && at < model->count) {
        snprintf(line, sizeof(line), "LINSERT l AFTER %s %s", element, element);
        model_insert(model, at + 1, element);
        expect_integer(model, line, model->count);
        return;
    }
    if (way == 3) {
        at = roll(model, model->count);
        snprintf(line, sizeof(line), "LSET l %u %s", at, element);
        free(model->elements[at]);
        model->elements[at] = element;
        driver_run_line(model->driver, line);
        return;
    }
    if (way == 4) {
        snprintf(line, sizeof(line), "LPOS l %s", element);
        if (at < model->count)
            expect_integer(model, line, at);
        snprintf(line, sizeof(line), "LREM l 1 %s", element);
        expect_integer(model, line, at < model->count);
        if (at < model->count)
            model_remove(model, at);
    }
    free(element);
}

static void look(struct model *model)
{
    char line[LINE_MAX_BYTES];
    unsigned first = model->count > 0 ? roll(model, model->count) : 0;
    unsigned count = model->count > 0 ? 1 + roll(model, model->count - first) : 0;
    expect_elements(model, "LRANGE l 0 -1", 0, model->count);
    if (count == 0)
        return;
    snprintf(line, sizeof(line), "LRANGE l %u %u", first, first + count - 1);
    expect_elements(model, line, first, count);
    if (roll(model, 12) == 0) {
        snprintf(line, sizeof(line), "LTRIM l %u %u", first, first + count - 1);
        driver_run_line(model->driver, line);
        while (model->count > first + count)
            model_remove(model, model->count - 1);
        for (; first > 0; first--)
            model_remove(model, 0);
    } else if (roll(model, 6) == 0) {
        count = 1 + roll(model, count);
        snprintf(line, sizeof(line), "LPOP l %u", count);
        expect_elements(model, line, 0, count);
        for (; count > 0; count--)
            model_remove(model, 0);
    }
}

static void random_commands(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 12; seed++) {
        struct model *model = calloc(1, sizeof(*model));
        model->seed = seed;
        model->driver = driver_open(2, seed % 2 == 0 ? DRIVER_NO_WAITS : seed);
        for (unsigned i = 0; i < 1200; i++) {
            change(model);
            if (i % 16 == 15)
                look(model);
        }
        while (model->count > 0)
            model_remove(model, 0);
        driver_close(model->driver);
        free(model);
    }
}

/* The names by size: 8 KB, and half of it on the way back; trees and what is packed alike. */
static void forms_go_by_size(void **state)
{
    (void)state;
    struct driver *driver = driver_open(2, DRIVER_NO_WAITS);
    unsigned grown = 0, shrunk = 0;
    for (unsigned i = 1; grown == 0; i++) { /* 102 bytes each, in Redis's listpack */
        driver_run_line(driver,
                        "RPUSH l xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        if (strncmp(driver_run_line(driver, "@form l").data, "+list big", 9) == 0)
            grown = i;
    }
    for (unsigned i = grown - 1; shrunk == 0; i--) {
        driver_run_line(driver, "LPOP l");
        if (strncmp(driver_run_line(driver, "@form l").data, "+list big", 9) != 0)
            shrunk = i;
    }
    assert_int_equal(grown, (8192 - 7) / 103 + 1);
    assert_int_equal(shrunk, (4096 - 7) / 103);
    driver_close(driver);
}

/* Longer than what is read out in one run, and with an element that is streamed. */
static void long_lists_are_read_in_steps(void **state)
{
    (void)state;
    struct driver *driver = driver_open(2, 7);
    char line[LINE_MAX_BYTES], text[600] = {0};
    memset(text, 'x', sizeof(text) - 1);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(line, sizeof(line), "RPUSH l %04u%s", i, text);
        driver_run_line(driver, line);
    }
    struct resp_slice large[] = {{"RPUSH", 5}, {"l", 1}, {NULL, 300000}};
    char *bytes = calloc(1, large[2].len);
    large[2].data = bytes;
    driver_run(driver, large, 3);
    struct resp_slice reply = driver_run_line(driver, "LRANGE l 0 -1");
    assert_int_equal(reply.len, strlen("*1001\r\n") + 1000 * (6 + 603 + 2) + 9 + 300000 + 2);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(line, sizeof(line), "%04u", i);
        assert_memory_equal(reply.data + 7 + i * 611 + 6, line, 4);
    }
    reply = driver_run_line(driver, "LINDEX l -1");
    assert_int_equal(reply.len, 9 + 300000 + 2);
    large[0] = (struct resp_slice){"LPOS", 4};
    reply = driver_run(driver, large, 3);
    assert_memory_equal(reply.data, ":1000\r\n", 7);
    reply = driver_run_line(driver, "LPOP l 2000");
    assert_int_equal(reply.len, strlen("*1001\r\n") + 1000 * (6 + 603 + 2) + 9 + 300000 + 2);
    reply = driver_run_line(driver, "@keys");
    assert_memory_equal(reply.data, ":0\r\n", 4);
    free(bytes);
    driver_close(driver);
}

static void expiry_is_kept(void **state)
{
    (void)state;
    static const struct step script[] = {
        {"RPUSH l a b", INT(2), NULL}, {"@expire l 5000", OK, NULL},
        {"RPUSH l c", INT(3), NULL},   {"LSET l 0 d", OK, NULL},
        {"LPOP l", D, NULL},           {"@ttl l", INT(5000), NULL},
        {"RPOPLPUSH l m", C, NULL},    {"@ttl l", INT(5000), NULL},
        {"@ttl m", INT(-1), NULL},     {NULL, NULL, NULL},
    };
    driver_run_script(script);
}

#define SCRIPT(name)                                                                               \
    {                                                                                              \
#name, run_script, NULL, NULL, (void *)(uintptr_t)name                                     \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT(ends),
        SCRIPT(places),
        SCRIPT(values),
        SCRIPT(moves),
        SCRIPT(forms),
        cmocka_unit_test(random_commands),
        cmocka_unit_test(long_lists_are_read_in_steps),
        cmocka_unit_test(forms_go_by_size),
        cmocka_unit_test(expiry_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
