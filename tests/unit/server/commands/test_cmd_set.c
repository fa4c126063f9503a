/* Commands on sets, on the model store. */
#include "tests/unit/command_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define POSITIVE ERR("value is out of range, must be positive")
#define SET2(a, b) "*2\r\n$1\r\n" a "\r\n$1\r\n" b "\r\n", "~2\r\n$1\r\n" a "\r\n$1\r\n" b "\r\n"
#define SET1(a) "*1\r\n$1\r\n" a "\r\n", "~1\r\n$1\r\n" a "\r\n"
#define SET0 "*0\r\n", "~0\r\n"

static const struct step members[] = {
    {"SADD s b a b c", INT(3), NULL},
    {"SADD s c d", INT(1), NULL},
    {"SCARD s", INT(4), NULL},
    {"SCARD nosuch", INT(0), NULL},
    {"SISMEMBER s a", INT(1), NULL},
    {"SISMEMBER s x", INT(0), NULL},
    {"SMISMEMBER s a x d", "*3\r\n:1\r\n:0\r\n:1\r\n", NULL},
    {"SMISMEMBER nosuch a", "*1\r\n:0\r\n", NULL},
    {"SREM s a d x", INT(2), NULL},
    {"SMEMBERS s", SET2("b", "c")},
    {"SMEMBERS nosuch", SET0},
    {"SSCAN s 0", "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nb\r\n$1\r\nc\r\n", NULL},
    {"SSCAN s 0 MATCH c*", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nc\r\n", NULL},
    {"SSCAN s 0 NOVALUES", SYNTAX, NULL},
    {"SSCAN nosuch 5 x", "*2\r\n$1\r\n0\r\n*0\r\n", NULL},
    {"SREM s b c b", INT(2), NULL},
    {"@keys", INT(0), NULL},
    {"SREM s b", INT(0), NULL},
    {"SADD s ''", INT(1), NULL},
    {"SISMEMBER s ''", INT(1), NULL},
    {NULL, NULL, NULL},
};

static const struct step integers[] = {
    {"SADD i 5 -3 10", INT(3), NULL},
    {"@form i", FORM("set integers"), NULL},
    {"SADD i 7 5 -9", INT(2), NULL},
    {"SMEMBERS i", "*5\r\n$2\r\n-9\r\n$2\r\n-3\r\n$1\r\n5\r\n$1\r\n7\r\n$2\r\n10\r\n",
     "~5\r\n$2\r\n-9\r\n$2\r\n-3\r\n$1\r\n5\r\n$1\r\n7\r\n$2\r\n10\r\n"},
    {"SISMEMBER i 07", INT(0), NULL},
    {"SREM i -9 -3 10", INT(3), NULL},
    {"SADD i 06", INT(1), NULL},
    {"@form i", FORM("set"), NULL},
    {"SADD i 6", INT(1), NULL},
    {"SREM i 06 5", INT(2), NULL},
    {"SMEMBERS i", SET2("7", "6")},
    {"@form i", FORM("set"), NULL},
    {"SADD s a", INT(1), NULL},
    {"@form s", FORM("set"), NULL},
    {"@config set-max-intset-entries 3", OK, NULL},
    {"SADD j 1 2 3", INT(3), NULL},
    {"@form j", FORM("set integers"), NULL},
    {"SADD j 3", INT(0), NULL},
    {"@form j", FORM("set integers"), NULL},
    {"SADD j 4", INT(1), NULL},
    {"@form j", FORM("set big"), NULL},
    {"SADD k 1 2 3 4", INT(4), NULL}, /* too many for one of integers from the start */
    {"@form k", FORM("set"), NULL},
    {"@config set-max-listpack-entries 3", OK, NULL},
    {"SADD l a b c", INT(3), NULL},
    {"@form l", FORM("set"), NULL},
    {"SADD l a b c a", INT(0), NULL}, /* Redis counts arguments */
    {"@form l", FORM("set big"), NULL},
    {"@config set-max-listpack-value 4", OK, NULL},
    {"SADD m abcd", INT(1), NULL},
    {"@form m", FORM("set"), NULL},
    {"SADD m abcde", INT(1), NULL},
    {"@form m", FORM("set big"), NULL},
    {"SADD n 1 2 a", INT(3), NULL},
    {"@form n", FORM("set"), NULL},
    {"SADD o 10000 1", INT(2), NULL},
    {"SADD o a", INT(1), NULL}, /* for a listpack, the number is too long */
    {"@form o", FORM("set big"), NULL},
    {NULL, NULL, NULL},
};

static const struct step moves[] = {
    {"SADD a 1 x", INT(2), NULL},
    {"SMOVE a b x", INT(1), NULL},
    {"SMEMBERS a", SET1("1")},
    {"SMEMBERS b", SET1("x")},
    {"SMOVE a b nosuch", INT(0), NULL},
    {"SMOVE nosuch b x", INT(0), NULL},
    {"SMOVE b b x", INT(1), NULL},
    {"SMOVE b b y", INT(0), NULL},
    {"SADD a x", INT(1), NULL},
    {"SMOVE a b x", INT(1), NULL},
    {"SMOVE a b 1", INT(1), NULL},
    {"@keys", INT(1), NULL},
    {"@list l", OK, NULL},
    {"SMOVE b l x", WRONG, NULL},
    {"SMOVE l b x", WRONG, NULL},
    {"SMOVE nosuch l x", INT(0), NULL},
    {"SCARD b", INT(2), NULL},
    {NULL, NULL, NULL},
};

static const struct step by_chance[] = {
    {"SPOP s", NIL, NULL},
    {"SPOP s 3", SET0},
    {"SRANDMEMBER s", NIL, NULL},
    {"SRANDMEMBER s 3", "*0\r\n", NULL},
    {"SADD s a", INT(1), NULL},
    {"SRANDMEMBER s", BULK(1, "a"), NULL},
    {"SRANDMEMBER s 7", "*1\r\n$1\r\na\r\n", NULL},
    {"SRANDMEMBER s -2", "*2\r\n$1\r\na\r\n$1\r\na\r\n", NULL},
    {"SRANDMEMBER s 0", "*0\r\n", NULL},
    {"SRANDMEMBER s x", NOT_INT, NULL},
    {"SRANDMEMBER s 1 2", SYNTAX, NULL},
    {"SPOP s 0", SET0},
    {"SPOP s -1", POSITIVE, NULL},
    {"SPOP s x", POSITIVE, NULL},
    {"SPOP s 1 2", SYNTAX, NULL},
    {"SPOP s", BULK(1, "a"), NULL},
    {"@keys", INT(0), NULL},
    {"SADD s a", INT(1), NULL},
    {"SPOP s 5", SET1("a")},
    {"@keys", INT(0), NULL},
    {"@list l", OK, NULL},
    {"SPOP l", WRONG, NULL},
    {"SPOP l 0", WRONG, NULL},
    {"SRANDMEMBER l", WRONG, NULL},
    {"SRANDMEMBER l 2", WRONG, NULL},
    {NULL, NULL, NULL},
};

static const struct step algebra[] = {
    {"SADD a 1 2 3 4", INT(4), NULL},
    {"SADD b 3 4 x", INT(3), NULL},
    {"SADD c 4 3 5", INT(3), NULL},
    {"SINTER a b c", SET2("3", "4")},
    {"SINTER a", "*4\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n",
     "~4\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n"},
    {"SINTER a nosuch", SET0},
    {"SDIFF a b c", SET2("1", "2")},
    {"SDIFF a a", SET0},
    {"SDIFF nosuch a", SET0},
    {"SDIFF b a nosuch", SET1("x")},
    {"SUNION nosuch", SET0},
    {"SUNION b nosuch b c", "*4\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\nx\r\n$1\r\n5\r\n",
     "~4\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\nx\r\n$1\r\n5\r\n"},
    {"SINTERCARD 2 a b", INT(2), NULL},
    {"SINTERCARD 2 a b LIMIT 1", INT(1), NULL},
    {"SINTERCARD 2 a b LIMIT 0", INT(2), NULL},
    {"SINTERCARD 2 a nosuch", INT(0), NULL},
    {"SINTERCARD 2 a b LIMIT -1", ERR("LIMIT can't be negative"), NULL},
    {"SINTERCARD 2 a b LIMIT x", ERR("LIMIT can't be negative"), NULL},
    {"SINTERCARD 0 a", ERR("numkeys should be greater than 0"), NULL},
    {"SINTERCARD x a", ERR("numkeys should be greater than 0"), NULL},
    {"SINTERCARD 3 a b", ERR("Number of keys can't be greater than number of args"), NULL},
    {"SINTERCARD 1 a b", SYNTAX, NULL},
    {"SINTERCARD 1 a LIMIT", SYNTAX, NULL},
    {"SINTERSTORE d a c", INT(2), NULL},
    {"@form d", FORM("set integers"), NULL},
    {"SUNIONSTORE d d b", INT(3), NULL},
    {"@form d", FORM("set"), NULL},
    {"SDIFFSTORE d a a", INT(0), NULL},
    {"@form d", FORM("none"), NULL},
    {"SDIFFSTORE d a b", INT(2), NULL},
    {"SMEMBERS d", SET2("1", "2")},
    {"SINTERSTORE d nosuch a", INT(0), NULL},
    {"@keys", INT(3), NULL},
    {"SUNIONSTORE a a", INT(4), NULL},
    {"@list l", OK, NULL},
    {"SINTER nosuch l", WRONG, NULL},
    {"SUNION a l", WRONG, NULL},
    {"SDIFF a nosuch l", WRONG, NULL},
    {"SINTERCARD 2 nosuch l", WRONG, NULL},
    {"SINTERSTORE a nosuch l", WRONG, NULL},
    {"SCARD a", INT(4), NULL},
    {"SUNIONSTORE l a b", INT(5), NULL},
    {"@form l", FORM("set"), NULL},
    {"SET s x EX 10", OK, NULL},
    {"SINTERSTORE s a a", INT(4), NULL},
    {"@ttl s", INT(-1), NULL},
    {NULL, NULL, NULL},
};

static const struct step other_types[] = {
    {"@list l", OK, NULL},          {"SADD l a", WRONG, NULL},
    {"SREM l a", WRONG, NULL},      {"SCARD l", WRONG, NULL},
    {"SISMEMBER l a", WRONG, NULL}, {"SMISMEMBER l a", WRONG, NULL},
    {"SMEMBERS l", WRONG, NULL},    {"SSCAN l 0", WRONG, NULL},
    {"SADD s a", INT(1), NULL},     {"HGET s a", WRONG, NULL},
    {"GET s", WRONG, NULL},         {"HSET h a 1", INT(1), NULL},
    {"SADD h a", WRONG, NULL},      {NULL, NULL, NULL},
};

#define SCRIPT(name)                                                                               \
    static void name##_as_redis(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        driver_run_script(name);                                                                   \
    }
SCRIPT(members)
SCRIPT(integers)
SCRIPT(moves)
SCRIPT(by_chance)
SCRIPT(algebra)
SCRIPT(other_types)

/* ---- large ones: members "N:" from 0 on, so that they can be found in replies ---- */

#define MEMBERS 900

static void fill(struct driver *driver, const char *key, int first, int step)
{
    for (int i = first; i < MEMBERS; i += step)
        assert_int_equal(driver_number(driver_text(driver, "SADD %s m%d:", key, i)), 1);
}

/* How often each member stands in a reply; returns how many do. */
static int mark(const char *reply, uint32_t seen[MEMBERS])
{
    int count = 0;
    memset(seen, 0, MEMBERS * sizeof seen[0]);
    for (const char *at = strstr(reply, "\nm"); at != NULL; at = strstr(at + 1, "\nm"), count++)
        seen[atoi(at + 2)]++;
    return count;
}

static void a_set_outgrows_its_item(struct driver *driver)
{
    uint32_t seen[MEMBERS];
    fill(driver, "s", 0, 1);
    assert_string_equal(driver_text(driver, "@form s"), "+set big tree\r\n");
    assert_int_equal(driver_number(driver_text(driver, "SADD s m1: m2:")), 0);
    assert_int_equal(mark(driver_text(driver, "SMEMBERS s"), seen), MEMBERS);
    for (int i = 0; i < MEMBERS; i++) {
        assert_int_equal(seen[i], 1);
        assert_int_equal(driver_number(driver_text(driver, "SISMEMBER s m%d:", i)), 1);
    }
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(driver_number(driver_text(driver, "SREM s m%d:", i)), 1);
    assert_string_equal(driver_text(driver, "@keys"), ":0\r\n");
}

static void integers_in_a_tree_are_an_intset_still(struct driver *driver)
{
    driver_text(driver, "SADD i 1");
    for (int i = 2; i <= 512; i++)
        assert_int_equal(driver_number(driver_text(driver, "SADD i %d", i)), 1);
    assert_string_equal(driver_text(driver, "@form i"), "+set integers tree\r\n");
    assert_int_equal(driver_number(driver_text(driver, "SADD i 513")), 1);
    assert_string_equal(driver_text(driver, "@form i"), "+set big tree\r\n");
    assert_int_equal(driver_number(driver_text(driver, "SMEMBERS i")), 513);
}

static void combining_large_sets(struct driver *driver)
{
    uint32_t seen[MEMBERS];
    fill(driver, "two", 0, 2);
    fill(driver, "three", 0, 3);
    driver_text(driver, "SADD few m6: m7: m12: x");
    assert_int_equal(mark(driver_text(driver, "SINTER two three"), seen), MEMBERS / 6);
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(seen[i], i % 6 == 0);
    assert_int_equal(mark(driver_text(driver, "SUNION two three two few"), seen),
                     MEMBERS / 2 + MEMBERS / 3 - MEMBERS / 6 + 1);
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(seen[i], i % 2 == 0 || i % 3 == 0 || i == 7);
    assert_int_equal(mark(driver_text(driver, "SDIFF two three few"), seen), MEMBERS / 3);
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(seen[i], i % 2 == 0 && i % 3 != 0);
    assert_int_equal(mark(driver_text(driver, "SDIFF few two"), seen), 1);
    assert_int_equal(mark(driver_text(driver, "SINTER three few two"), seen), 2);
    assert_int_equal(driver_number(driver_text(driver, "SINTERCARD 2 two two")), MEMBERS / 2);
    assert_int_equal(driver_number(driver_text(driver, "SINTERCARD 2 two three LIMIT 77")), 77);
    assert_int_equal(driver_number(driver_text(driver, "SUNIONSTORE two three two few")),
                     MEMBERS * 2 / 3 + 2);
    assert_int_equal(driver_number(driver_text(driver, "SCARD two")), MEMBERS * 2 / 3 + 2);
    assert_int_equal(driver_number(driver_text(driver, "SDIFFSTORE few two three")),
                     MEMBERS / 3 + 2);
    assert_int_equal(driver_number(driver_text(driver, "SINTERSTORE two two nosuch")), 0);
    assert_string_equal(driver_text(driver, "@keys"), ":2\r\n");
}

/* So much that it is not written at once. */
static void long_results(struct driver *driver)
{
    for (int i = 0; i < 700; i += 2)
        driver_text(driver, "SADD long %0400d %0400d", i, i + 1);
    assert_int_equal(driver_number(driver_text(driver, "SADD few a b %0400d", 5)), 3);
    assert_int_equal(driver_number(driver_text(driver, "SUNIONSTORE few few long")), 702);
    assert_int_equal(driver_number(driver_text(driver, "SINTERCARD 2 few long")), 700);
    assert_int_equal(driver_number(driver_text(driver, "SISMEMBER few a")), 1);
    assert_int_equal(driver_number(driver_text(driver, "SREM few %0400d b", 699)), 2);
    assert_int_equal(driver_number(driver_text(driver, "SDIFFSTORE long few nosuch")), 700);
    assert_int_equal(driver_number(driver_text(driver, "SCARD long")), 700);
    assert_string_equal(driver_text(driver, "@form long"), FORM("set big tree"));
}

static void popping_takes_each_once(struct driver *driver)
{
    uint32_t seen[MEMBERS], ever[MEMBERS] = {0};
    static const int counts[] = {1, 300, 2, 500};
    int left = MEMBERS;
    fill(driver, "s", 0, 1);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        assert_int_equal(mark(driver_text(driver, "SPOP s %d", counts[i]), seen), counts[i]);
        for (int j = 0; j < MEMBERS; j++)
            ever[j] += seen[j];
        left -= counts[i];
        assert_int_equal(driver_number(driver_text(driver, "SCARD s")), left);
    }
    for (; left > 5; left--)
        assert_int_equal(driver_text(driver, "SPOP s")[0], '$');
    for (int j = 0; j < MEMBERS; j++) {
        assert_true(ever[j] <= 1);
        if (ever[j] == 1)
            assert_int_equal(driver_number(driver_text(driver, "SISMEMBER s m%d:", j)), 0);
    }
    assert_int_equal(driver_number(driver_text(driver, "SPOP s 100")), 5);
    assert_string_equal(driver_text(driver, "@keys"), ":0\r\n");
}

/* Chi-squared over a tree and over a packed set: each member as likely as any other. */
static void choice_is_even(struct driver *driver)
{
    static const int sizes[] = {9, MEMBERS};
    for (int i = 0; i < 2; i++) {
        uint32_t seen[MEMBERS];
        double expected = 18000.0 / sizes[i], chi = 0;
        driver_text(driver, "SPOP s 100000");
        for (int j = 0; j < sizes[i]; j++)
            driver_text(driver, "SADD s m%d:", j);
        mark(driver_text(driver, "SRANDMEMBER s -18000"), seen);
        for (int j = 0; j < sizes[i]; j++)
            chi += (seen[j] - expected) * (seen[j] - expected) / expected;
        assert_true(chi < sizes[i] * 1.3 + 20); /* beyond five standard deviations */
    }
}

#define LARGE(test)                                                                                \
    static void large_##test(void **state)                                                         \
    {                                                                                              \
        (void)state;                                                                               \
        driver_in_stores(test);                                                                    \
    }
LARGE(a_set_outgrows_its_item)
LARGE(integers_in_a_tree_are_an_intset_still)
LARGE(combining_large_sets)
LARGE(long_results)
LARGE(popping_takes_each_once)
LARGE(choice_is_even)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_as_redis),
        cmocka_unit_test(integers_as_redis),
        cmocka_unit_test(moves_as_redis),
        cmocka_unit_test(by_chance_as_redis),
        cmocka_unit_test(algebra_as_redis),
        cmocka_unit_test(other_types_as_redis),
        cmocka_unit_test(large_a_set_outgrows_its_item),
        cmocka_unit_test(large_integers_in_a_tree_are_an_intset_still),
        cmocka_unit_test(large_combining_large_sets),
        cmocka_unit_test(large_long_results),
        cmocka_unit_test(large_popping_takes_each_once),
        cmocka_unit_test(large_choice_is_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
