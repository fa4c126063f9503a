/*
 * The commands on sorted sets: scripts of commands and replies, and random commands against a plain
 * sorted array.
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
#define NUMBER(len, text) BULK(len, text), "," text "\r\n"
#define A BULK(1, "a")
#define B BULK(1, "b")
#define C BULK(1, "c")
#define D BULK(1, "d")
#define NOT_FLOAT ERR("value is not a valid float")

static const struct step adding[] = {
    {"ZADD z 1 a 2 b 3 c", INT(3), NULL},
    {"ZADD z 1 a 4 b", INT(0), NULL},
    {"ZADD z CH 1 a 2 b 5 d", INT(2), NULL},
    {"ZADD z NX 9 a 0 e", INT(1), NULL},
    {"ZADD z XX CH 0.5 e 1 new", INT(1), NULL},
    {"ZADD z GT CH 0 a 3 b", INT(1), NULL},
    {"ZADD z LT CH 0 a 4 b", INT(1), NULL},
    {"ZSCORE z b", NUMBER(1, "3")},
    {"ZSCORE z e", NUMBER(3, "0.5")},
    {"ZSCORE z none", NIL, NULL},
    {"ZADD z INCR 1.5 e", NUMBER(1, "2")},
    {"ZADD z XX INCR 1 none", NIL, NULL},
    {"ZADD z NX INCR 1 a", NIL, NULL},
    {"ZADD z GT INCR -1 a", NIL, NULL},
    {"ZINCRBY z -inf a", NUMBER(4, "-inf")},
    {"ZINCRBY z +inf a", ERR("resulting score is not a number (NaN)"), NULL},
    {"ZADD z nan a", NOT_FLOAT, NULL},
    {"ZADD z 1 a x b", NOT_FLOAT, NULL},
    {"ZADD z 1 a 2", SYNTAX, NULL},
    {"ZADD z NX XX 1 a", ERR("XX and NX options at the same time are not compatible"), NULL},
    {"ZADD z GT LT 1 a", ERR("GT, LT, and/or NX options at the same time are not compatible"),
     NULL},
    {"ZADD z INCR 1 a 2 b", ERR("INCR option supports a single increment-element pair"), NULL},
    {"ZADD none XX 1 a", INT(0), NULL},
    {"@keys", INT(1), NULL},
    {"ZMSCORE z a none", ARRAY(2) BULK(4, "-inf") NIL, ARRAY(2) ",-inf\r\n_\r\n"},
    {"ZCARD z", INT(5), NULL},
    {"ZREM z a b none", INT(2), NULL},
    {"ZREM z a c d e", INT(3), NULL},
    {"@keys", INT(0), NULL},
    {"SET s x", OK, NULL},
    {"ZADD s 1 a", WRONG, NULL},
    {"ZSCORE s a", WRONG, NULL},
    {"ZRANGE s 0 1", WRONG, NULL},
    {NULL, NULL, NULL},
};

static const struct step ranks[] = {
    {"ZADD z 1 a 2 b 2 c 3 d", INT(4), NULL},
    {"ZRANK z a", INT(0), NULL},
    {"ZREVRANK z a", INT(3), NULL},
    {"ZRANK z c WITHSCORE", ARRAY(2) INT(2) BULK(1, "2"), ARRAY(2) INT(2) ",2\r\n"},
    {"ZRANK z none", NIL, NULL},
    {"ZRANK z none WITHSCORE", NIL_ARRAY},
    {"ZRANK z a WITHSCORES", SYNTAX, NULL},
    {"ZRANGE z 0 -1", ARRAY(4) A B C D, NULL},
    {"ZRANGE z 1 2 REV", ARRAY(2) C B, NULL},
    {"ZREVRANGE z 0 0 WITHSCORES", ARRAY(2) D BULK(1, "3"), ARRAY(1) ARRAY(2) D ",3\r\n"},
    {"ZRANGE z 0 -1 LIMIT 0 1",
     ERR("syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"),
     NULL},
    {"ZRANGE z a b", NOT_INT, NULL},
    {"ZREMRANGEBYRANK z 1 -2", INT(2), NULL},
    {"ZRANGE z 0 -1", ARRAY(2) A D, NULL},
    {"ZREMRANGEBYRANK z 0 -1", INT(2), NULL},
    {"@keys", INT(0), NULL},
    {NULL, NULL, NULL},
};

static const struct step scores[] = {
    {"ZADD z -inf a 1 b 2 c +inf d", INT(4), NULL},
    {"ZRANGEBYSCORE z -inf +inf", ARRAY(4) A B C D, NULL},
    {"ZRANGEBYSCORE z (-inf (+inf", ARRAY(2) B C, NULL},
    {"ZREVRANGEBYSCORE z 2 1", ARRAY(2) C B, NULL},
    {"ZREVRANGEBYSCORE z +inf -inf LIMIT 1 2", ARRAY(2) C B, NULL},
    {"ZRANGE z (1 5 BYSCORE WITHSCORES", ARRAY(2) C BULK(1, "2"), ARRAY(1) ARRAY(2) C ",2\r\n"},
    {"ZRANGE z 5 1 BYSCORE REV LIMIT 1 -1", ARRAY(1) B, NULL},
    {"ZRANGEBYSCORE z 0 5 LIMIT -1 5", ARRAY(0), NULL},
    {"ZRANGEBYSCORE z x 5", ERR("min or max is not a float"), NULL},
    {"ZCOUNT z 1 2", INT(2), NULL},
    {"ZCOUNT z 2 1", INT(0), NULL},
    {"ZCOUNT none 1 2", INT(0), NULL},
    {"ZRANGESTORE y z 1 2 BYSCORE", INT(2), NULL},
    {"ZRANGE y 0 -1", ARRAY(2) B C, NULL},
    {"ZRANGESTORE y z 5 4 BYSCORE", INT(0), NULL},
    {"@keys", INT(1), NULL},
    {"ZREMRANGEBYSCORE z -inf (2", INT(2), NULL},
    {"ZRANGE z 0 -1", ARRAY(2) C D, NULL},
    {"ZADD zero -0 a 0 b", INT(2), NULL},
    {"ZRANGE zero 0 -1 WITHSCORES", ARRAY(4) A BULK(1, "0") B BULK(1, "0"),
     ARRAY(2) ARRAY(2) A ",0\r\n" ARRAY(2) B ",0\r\n"},
    {NULL, NULL, NULL},
};

static const struct step members[] = {
    {"ZADD z 0 a 0 b 0 c 0 d", INT(4), NULL},
    {"ZRANGEBYLEX z - +", ARRAY(4) A B C D, NULL},
    {"ZRANGEBYLEX z (a [c", ARRAY(2) B C, NULL},
    {"ZREVRANGEBYLEX z (d [b", ARRAY(2) C B, NULL},
    {"ZRANGE z [bb + BYLEX LIMIT 1 1", ARRAY(1) D, NULL},
    {"ZRANGEBYLEX z + -", ARRAY(0), NULL},
    {"ZLEXCOUNT z [a (c", INT(2), NULL},
    {"ZLEXCOUNT z a c", ERR("min or max not valid string range item"), NULL},
    {"ZRANGE z - + BYLEX WITHSCORES",
     ERR("syntax error, WITHSCORES not supported in combination with BYLEX"), NULL},
    {"ZREMRANGEBYLEX z - [b", INT(2), NULL},
    {"ZRANGE z 0 -1", ARRAY(2) C D, NULL},
    {NULL, NULL, NULL},
};

static const struct step popping[] = {
    {"ZADD z 1 a 2 b 3 c 4 d", INT(4), NULL},
    {"ZPOPMIN z", ARRAY(2) A BULK(1, "1"), ARRAY(2) A ",1\r\n"},
    {"ZPOPMAX z 1", ARRAY(2) D BULK(1, "4"), ARRAY(1) ARRAY(2) D ",4\r\n"},
    {"ZPOPMAX z 0", ARRAY(0), NULL},
    {"ZPOPMAX none 2", ARRAY(0), NULL},
    {"ZPOPMAX z -1", ERR("value is out of range, must be positive"), NULL},
    {"ZMPOP 2 none z MAX COUNT 5",
     ARRAY(2) BULK(1, "z") ARRAY(2) ARRAY(2) C BULK(1, "3") ARRAY(2) B BULK(1, "2"),
     ARRAY(2) BULK(1, "z") ARRAY(2) ARRAY(2) C ",3\r\n" ARRAY(2) B ",2\r\n"},
    {"ZMPOP 1 z MIN", NIL_ARRAY},
    {"ZMPOP 1 z LEFT", SYNTAX, NULL},
    {"@keys", INT(0), NULL},
    {"ZADD z 1 a", INT(1), NULL},
    {"ZRANDMEMBER z", A, NULL},
    {"ZRANDMEMBER z 5 WITHSCORES", ARRAY(2) A BULK(1, "1"), ARRAY(1) ARRAY(2) A ",1\r\n"},
    {"ZRANDMEMBER z -3", ARRAY(3) A A A, NULL},
    {"ZRANDMEMBER none", NIL, NULL},
    {"ZRANDMEMBER none 2", ARRAY(0), NULL},
    {"ZSCAN z 0", ARRAY(2) BULK(1, "0") ARRAY(2) A BULK(1, "1"), NULL},
    {"ZSCAN z 0 MATCH b*", ARRAY(2) BULK(1, "0") ARRAY(0), NULL},
    {NULL, NULL, NULL},
};

static const struct step algebra[] = {
    {"ZADD x 1 a 2 b", INT(2), NULL},
    {"ZADD y 10 b 20 c", INT(2), NULL},
    {"SADD s b d", INT(2), NULL},
    {"ZUNION 2 x y", ARRAY(3) A B C, NULL},
    {"ZUNION 2 x y WITHSCORES", ARRAY(6) A BULK(1, "1") B BULK(2, "12") C BULK(2, "20"),
     ARRAY(3) ARRAY(2) A ",1\r\n" ARRAY(2) B ",12\r\n" ARRAY(2) C ",20\r\n"},
    {"ZINTER 2 x y WEIGHTS 2 3 WITHSCORES", ARRAY(2) B BULK(2, "34"),
     ARRAY(1) ARRAY(2) B ",34\r\n"},
    {"ZINTER 3 x y s AGGREGATE MIN WITHSCORES", ARRAY(2) B BULK(1, "1"),
     ARRAY(1) ARRAY(2) B ",1\r\n"},
    {"ZDIFF 2 x y WITHSCORES", ARRAY(2) A BULK(1, "1"), ARRAY(1) ARRAY(2) A ",1\r\n"},
    {"ZDIFF 2 x x", ARRAY(0), NULL},
    {"ZUNION 2 x x WITHSCORES", ARRAY(4) A BULK(1, "2") B BULK(1, "4"),
     ARRAY(2) ARRAY(2) A ",2\r\n" ARRAY(2) B ",4\r\n"},
    {"ZINTERCARD 2 x y", INT(1), NULL},
    {"ZINTERCARD 2 x x LIMIT 1", INT(1), NULL},
    {"ZUNIONSTORE x 2 x y AGGREGATE MAX", INT(3), NULL},
    {"ZSCORE x b", NUMBER(2, "10")},
    {"ZINTERSTORE x 2 x none", INT(0), NULL},
    {"ZCARD x", INT(0), NULL},
    {"ZDIFFSTORE t 2 y s", INT(1), NULL},
    {"ZRANGE t 0 -1", ARRAY(1) C, NULL},
    {"ZUNION 0 x", ERR("at least 1 input key is needed for 'zunion' command"), NULL},
    {"ZUNION 2 x", SYNTAX, NULL},
    {"ZUNION 1 y WEIGHTS x", ERR("weight value is not a float"), NULL},
    {"ZDIFF 1 y WEIGHTS 1", SYNTAX, NULL},
    {"ZREMRANGEBYRANK x 0 -1", INT(0), NULL},
    {"ZREMRANGEBYRANK y 0 -1", INT(2), NULL},
    {"ZADD x inf a", INT(1), NULL}, /* nothing of infinity is nan: in a sum it makes 0 */
    {"ZADD y inf a", INT(1), NULL},
    {"ZINTERSTORE i 2 x y WEIGHTS 14 0", INT(1), NULL},
    {"ZSCORE i a", NUMBER(1, "0")},
    {"ZINTERSTORE i 2 x y WEIGHTS 14 0 AGGREGATE MIN", INT(1), NULL},
    {"ZSCORE i a", NUMBER(3, "inf")},
    {"ZUNIONSTORE i 2 x y WEIGHTS 14 0", INT(1), NULL},
    {"ZSCORE i a", NUMBER(3, "inf")},
    {"ZUNIONSTORE i 2 x y WEIGHTS 14 0 AGGREGATE MIN", INT(1), NULL},
    {"ZSCORE i a", NUMBER(1, "0")},
    {"ZINTERSTORE i 2 x y WEIGHTS 1 -1", INT(1), NULL},
    {"ZSCORE i a", NUMBER(1, "0")},
    {"SET k v", OK, NULL},
    {"ZUNION 2 y k", WRONG, NULL},
    {NULL, NULL, NULL},
};

static const struct step forms[] = {
    {"@config zset-max-listpack-entries 3", OK, NULL},
    {"ZADD z 1 a 1 b 1 c", INT(3), NULL},
    {"@form z", FORM("zset"), NULL},
    {"ZADD z 1 d", INT(1), NULL},
    {"@form z", FORM("zset big"), NULL},
    {"ZREM z a b c", INT(3), NULL},
    {"@form z", FORM("zset big"), NULL},
    {"ZUNIONSTORE y 1 z", INT(1), NULL},
    {"@form y", FORM("zset"), NULL},
    {"@config zset-max-listpack-value 2", OK, NULL},
    {"ZADD y 1 abc", INT(1), NULL},
    {"@form y", FORM("zset big"), NULL},
    {"@expire y 5000", OK, NULL},
    {"ZINCRBY y 1 abc", NUMBER(1, "2")},
    {"ZREM y d", INT(1), NULL},
    {"@ttl y", INT(5000), NULL},
    {NULL, NULL, NULL},
};

static void run_script(void **state)
{
    driver_run_script(*state);
}

/* ---- against a sorted array ---- */

#define MODEL_MAX 600
#define NAMES 500
#define NAME_MAX_BYTES 640

struct pair {
    int score;
    char name[NAME_MAX_BYTES];
};

struct model {
    struct driver *driver;
    unsigned seed, count;
    struct pair pairs[MODEL_MAX];
};

static unsigned roll(struct model *model, unsigned below)
{
    model->seed = model->seed * 1103515245 + 12345;
    return (model->seed >> 16) % below;
}

/* Some so long, and so alike, that the keys of a tree do not tell them apart. */
static void roll_name(struct model *model, char name[NAME_MAX_BYTES])
{
    unsigned number = roll(model, NAMES);
    unsigned prefix = number % 7 == 0 ? 503 + number % 4 : 0;
    memset(name, 'p', prefix);
    snprintf(name + prefix, NAME_MAX_BYTES - prefix, "%u", number);
}

static int compare(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    return x->score != y->score ? x->score - y->score : strcmp(x->name, y->name);
}

static struct pair *model_find(struct model *model, const char *name)
{
    for (unsigned i = 0; i < model->count; i++)
        if (strcmp(model->pairs[i].name, name) == 0)
            return &model->pairs[i];
    return NULL;
}

static void model_remove(struct model *model, unsigned first, unsigned count)
{
    memmove(model->pairs + first, model->pairs + first + count,
            (model->count - first - count) * sizeof(struct pair));
    model->count -= count;
}

static void expect_integer(struct model *model, const char *line, long long number)
{
    char expected[32];
    struct resp_slice reply = driver_run_line(model->driver, line);
    snprintf(expected, sizeof(expected), ":%lld\r\n", number);
    if (reply.len != strlen(expected) || memcmp(reply.data, expected, reply.len) != 0)
        fail_msg("%s: %.*s instead of %s", line, (int)reply.len, reply.data, expected);
}

/* `count` pairs from `first` on, or backwards. */
static void expect_pairs(struct model *model, const char *line, unsigned first, unsigned count,
                         bool backwards)
{
    struct resp_writer expected;
    struct resp_slice reply = driver_run_line(model->driver, line);
    resp_writer_init(&expected, 2);
    resp_array(&expected, 2 * count);
    for (unsigned i = 0; i < count; i++) {
        const struct pair *pair = &model->pairs[backwards ? first + count - 1 - i : first + i];
        resp_bulk_string(&expected, pair->name);
        resp_bulk_integer(&expected, pair->score);
    }
    if (reply.len != expected.len || memcmp(reply.data, expected.data, reply.len) != 0)
        fail_msg("%s, of %u: %.*s", line, model->count, (int)reply.len, reply.data);
    resp_writer_free(&expected);
}

static void add_or_remove(struct model *model)
{
    char name[NAME_MAX_BYTES], line[NAME_MAX_BYTES + 64];
    roll_name(model, name);
    struct pair *pair = model_find(model, name);
    if (roll(model, 5) == 0) {
        snprintf(line, sizeof(line), "ZREM z %s", name);
        expect_integer(model, line, pair != NULL);
        if (pair != NULL)
            model_remove(model, (unsigned)(pair - model->pairs), 1);
        return;
    }
    int score = (int)roll(model, 9) - 4;
    snprintf(line, sizeof(line), "ZADD z %d %s", score, name);
    expect_integer(model, line, pair == NULL);
    if (pair == NULL)
        pair = &model->pairs[model->count++];
    pair->score = score;
    strcpy(pair->name, name);
    qsort(model->pairs, model->count, sizeof(*pair), compare);
}

static void look(struct model *model)
{
    char line[NAME_MAX_BYTES + 64];
    unsigned first = roll(model, model->count), count = 1 + roll(model, model->count - first);
    snprintf(line, sizeof(line), "ZRANK z %s", model->pairs[first].name);
    expect_integer(model, line, first);
    expect_pairs(model, "ZRANGE z 0 -1 WITHSCORES", 0, model->count, false);
    snprintf(line, sizeof(line), "ZREVRANGE z %u %u WITHSCORES", model->count - first - count,
             model->count - first - 1);
    expect_pairs(model, line, first, count, true);
    int min = (int)roll(model, 9) - 4, max = min + (int)roll(model, 4);
    unsigned begin = 0, end = 0;
    for (unsigned i = 0; i < model->count; i++) {
        begin += model->pairs[i].score < min;
        end += model->pairs[i].score <= max;
    }
    snprintf(line, sizeof(line), "ZRANGEBYSCORE z %d %d WITHSCORES", min, max);
    expect_pairs(model, line, begin, end - begin, false);
    snprintf(line, sizeof(line), "ZCOUNT z (%d %d", min - 1, max);
    expect_integer(model, line, end - begin);
    if (roll(model, 5) == 0) {
        snprintf(line, sizeof(line), "ZREMRANGEBYRANK z %u %u", first, first + count - 1);
        expect_integer(model, line, count);
        model_remove(model, first, count);
    } else if (roll(model, 3) == 0) {
        snprintf(line, sizeof(line), "ZPOPMIN z %u", count);
        expect_pairs(model, line, 0, count, false);
        model_remove(model, 0, count);
    }
}

static void random_commands(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 12; seed++) {
        struct model *model = calloc(1, sizeof(*model));
        model->seed = seed;
        model->driver = driver_open(2, seed % 2 == 0 ? DRIVER_NO_WAITS : seed);
        for (unsigned i = 0; i < 1500; i++) {
            add_or_remove(model);
            if (i % 40 == 39 && model->count > 0)
                look(model);
        }
        driver_close(model->driver);
        free(model);
    }
}

/* The lexicographic bounds of a tree, at members that fill their keys. */
static void long_members_have_an_order(void **state)
{
    (void)state;
    struct driver *driver = driver_open(2, 3);
    char line[1024], long_name[600];
    memset(long_name, 'p', sizeof(long_name));
    for (unsigned i = 500; i < 510; i++) {
        snprintf(line, sizeof(line), "ZADD z 0 %.*s", (int)i, long_name);
        driver_run_line(driver, line);
    }
    assert_memory_equal(driver_run_line(driver, "@form z").data, "+zset big tree\r\n", 16);
    for (unsigned i = 500; i < 510; i++) {
        char expected[16];
        snprintf(line, sizeof(line), "ZLEXCOUNT z - (%.*s", (int)i, long_name);
        snprintf(expected, sizeof(expected), ":%u\r\n", i - 500);
        assert_memory_equal(driver_run_line(driver, line).data, expected, 4);
        snprintf(line, sizeof(line), "ZLEXCOUNT z (%.*s +", (int)i, long_name);
        snprintf(expected, sizeof(expected), ":%u\r\n", 509 - i);
        assert_memory_equal(driver_run_line(driver, line).data, expected, 4);
    }
    driver_close(driver);
}

/* Sources that are trees, sets among them, in many steps. */
static void algebra_of_large_ones(void **state)
{
    (void)state;
    struct driver *driver = driver_open(2, 5);
    char line[256];
    for (unsigned i = 0; i < 900; i++) {
        snprintf(line, sizeof(line), "ZADD x %u m%u", i, i);
        driver_run_line(driver, line);
        snprintf(line, sizeof(line), "ZADD y %u m%u", i, 3 * i);
        driver_run_line(driver, line);
        snprintf(line, sizeof(line), "SADD s m%u", 2 * i);
        driver_run_line(driver, line);
    }
    static const struct {
        const char *line, *reply;
    } steps[] = {
        {"ZINTERCARD 2 x y", ":300\r\n"},        {"ZINTERCARD 3 x y s", ":150\r\n"},
        {"ZINTERCARD 2 x y LIMIT 7", ":7\r\n"},  {"ZUNIONSTORE u 2 x y", ":1500\r\n"},
        {"ZDIFFSTORE d 2 x y", ":600\r\n"},      {"ZINTERSTORE i 3 x y s", ":150\r\n"},
        {"ZSCORE i m6", "$1\r\n9\r\n"},          {"ZSCORE u m3", "$1\r\n4\r\n"},
        {"ZRANGESTORE r u 100 899", ":800\r\n"}, {"ZCARD r", ":800\r\n"},
        {"ZREMRANGEBYRANK r 1 -1", ":799\r\n"},  {"@form r", "+zset big\r\n"},
        {"ZINTERSTORE x 2 x none", ":0\r\n"},    {"@keys", ":6\r\n"},
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct resp_slice reply = driver_run_line(driver, steps[i].line);
        if (reply.len != strlen(steps[i].reply) ||
            memcmp(reply.data, steps[i].reply, reply.len) != 0)
            fail_msg("%s: %.*s", steps[i].line, (int)reply.len, reply.data);
    }
    driver_close(driver);
}

#define SCRIPT(name)                                                                               \
    {                                                                                              \
#name, run_script, NULL, NULL, (void *)(uintptr_t)name                                     \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT(adding),
        SCRIPT(ranks),
        SCRIPT(scores),
        SCRIPT(members),
        SCRIPT(popping),
        SCRIPT(algebra),
        SCRIPT(forms),
        cmocka_unit_test(random_commands),
        cmocka_unit_test(long_members_have_an_order),
        cmocka_unit_test(algebra_of_large_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
