/* Commands on hashes, on the model store. */
#include "tests/unit/command_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NO_FLOAT ERR("value is not a valid float")

static const struct step single_fields[] = {
    {"HSET h a 1 b 2", INT(2), NULL},
    {"HSET h b 3 c 4", INT(1), NULL},
    {"HGET h b", BULK(1, "3"), NULL},
    {"HGET h nosuch", NIL, NULL},
    {"@lookups", "*2\r\n:1\r\n:0\r\n", NULL},
    {"HGET nosuch a", NIL, NULL},
    {"@lookups", "*2\r\n:0\r\n:1\r\n", NULL},
    {"HMGET h c x a a", "*4\r\n$1\r\n4\r\n$-1\r\n$1\r\n1\r\n$1\r\n1\r\n", NULL},
    {"HMGET nosuch a", "*1\r\n$-1\r\n", NULL},
    {"HLEN h", INT(3), NULL},
    {"HLEN nosuch", INT(0), NULL},
    {"HEXISTS h a", INT(1), NULL},
    {"HEXISTS h x", INT(0), NULL},
    {"HSTRLEN h a", INT(1), NULL},
    {"HSTRLEN h x", INT(0), NULL},
    {"HSETNX h a 9", INT(0), NULL},
    {"HSETNX h '' empty", INT(1), NULL},
    {"HGET h ''", BULK(5, "empty"), NULL},
    {"HSET h a ''", INT(0), NULL},
    {"HGET h a", EMPTY, NULL},
    {"HMSET h z 1", OK, NULL},
    {"HSET h a 1 b", ERR("wrong number of arguments for 'hset' command"), NULL},
    {"HMSET h a 1 b", ERR("wrong number of arguments for 'hmset' command"), NULL},
    {"HDEL h a b nosuch a", INT(2), NULL},
    {"HLEN h", INT(3), NULL},
    {"HDEL h c z '' x", INT(3), NULL},
    {"@keys", INT(0), NULL},
    {"HDEL h c", INT(0), NULL},
    {"HSET h \"\\x00\\xff\" \"\\x00\"", INT(1), NULL},
    {"HGET h \"\\x00\\xff\"", "$1\r\n\\0\r\n", NULL},
    {NULL, NULL, NULL},
};

static const struct step whole_hashes[] = {
    {"HGETALL h", "*0\r\n", "%0\r\n"},
    {"HKEYS h", "*0\r\n", NULL},
    {"HVALS h", "*0\r\n", NULL},
    {"HSET h b 1 a 2", INT(2), NULL},
    {"HSET h b 3", INT(0), NULL},
    {"HGETALL h", "*4\r\n$1\r\nb\r\n$1\r\n3\r\n$1\r\na\r\n$1\r\n2\r\n",
     "%2\r\n$1\r\nb\r\n$1\r\n3\r\n$1\r\na\r\n$1\r\n2\r\n"},
    {"HKEYS h", "*2\r\n$1\r\nb\r\n$1\r\na\r\n", NULL},
    {"HVALS h", "*2\r\n$1\r\n3\r\n$1\r\n2\r\n", NULL},
    {"HSCAN h 0", "*2\r\n$1\r\n0\r\n*4\r\n$1\r\nb\r\n$1\r\n3\r\n$1\r\na\r\n$1\r\n2\r\n", NULL},
    {"HSCAN h 7 MATCH a COUNT 1", "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\n2\r\n", NULL},
    {"HSCAN h x", ERR("invalid cursor"), NULL},
    {"HSCAN nosuch x", ERR("invalid cursor"), NULL},
    {"HSCAN h 0 COUNT 0", SYNTAX, NULL},
    {"HSCAN h 0 COUNT x", NOT_INT, NULL},
    {"HSCAN h 0 TYPE hash", SYNTAX, NULL},
    {"HSCAN h 0 MATCH", SYNTAX, NULL},
    {"HSCAN nosuch 0 COUNT 0", "*2\r\n$1\r\n0\r\n*0\r\n", NULL},
    {NULL, NULL, NULL},
};

static const struct step numbers[] = {
    {"HINCRBY h n 5", INT(5), NULL},
    {"HINCRBY h n -7", INT(-2), NULL},
    {"HGET h n", BULK(2, "-2"), NULL},
    {"HINCRBY h n x", NOT_INT, NULL},
    {"HSET h s ' 1' big 9223372036854775807 f 10.50", INT(3), NULL},
    {"HINCRBY h s 1", ERR("hash value is not an integer"), NULL},
    {"HINCRBY h f 1", ERR("hash value is not an integer"), NULL},
    {"HINCRBY h big 1", ERR("increment or decrement would overflow"), NULL},
    {"HINCRBY h big -1", INT(9223372036854775806), NULL},
    {"HINCRBYFLOAT h f 0.1", BULK(4, "10.6"), NULL},
    {"HINCRBYFLOAT h new 3.0e3", BULK(4, "3000"), NULL},
    {"HINCRBYFLOAT h n x", NO_FLOAT, NULL},
    {"HINCRBYFLOAT h n inf", ERR("value is NaN or Infinity"), NULL},
    {"HINCRBYFLOAT h s 1", ERR("hash value is not a float"), NULL},
    {"HSET h inf inf", INT(1), NULL},
    {"HINCRBYFLOAT h inf 1", ERR("increment would produce NaN or Infinity"), NULL},
    {NULL, NULL, NULL},
};

static const struct step other_types[] = {
    {"@list l", OK, NULL},
    {"HSET l a 1", WRONG, NULL},
    {"HMSET l a 1", WRONG, NULL},
    {"HSETNX l a 1", WRONG, NULL},
    {"HGET l a", WRONG, NULL},
    {"HMGET l a b", WRONG, NULL},
    {"HDEL l a", WRONG, NULL},
    {"HLEN l", WRONG, NULL},
    {"HSTRLEN l a", WRONG, NULL},
    {"HEXISTS l a", WRONG, NULL},
    {"HKEYS l", WRONG, NULL},
    {"HVALS l", WRONG, NULL},
    {"HGETALL l", WRONG, NULL},
    {"HSCAN l 0", WRONG, NULL},
    {"HRANDFIELD l", WRONG, NULL},
    {"HRANDFIELD l 2 WITHVALUES", WRONG, NULL},
    {"HINCRBY l a 1", WRONG, NULL},
    {"HINCRBYFLOAT l a 1", WRONG, NULL},
    {"HSET h a 1", INT(1), NULL},
    {"GET h", WRONG, NULL},
    {"APPEND h x", WRONG, NULL},
    {"INCR h", WRONG, NULL},
    {"STRLEN h", WRONG, NULL},
    {"GETRANGE h 0 1", WRONG, NULL},
    {"SETRANGE h 0 x", WRONG, NULL},
    {"GETSET h x", WRONG, NULL},
    {"GETDEL h", WRONG, NULL},
    {"GETEX h", WRONG, NULL},
    {"SETBIT h 0 1", WRONG, NULL},
    {"BITCOUNT h", WRONG, NULL},
    {"BITPOS h 1", WRONG, NULL},
    {"BITFIELD h GET u8 0", WRONG, NULL},
    {"BITOP AND d h h", WRONG, NULL},
    {"LCS h h", ERR("The specified keys must contain string values"), NULL},
    {"MGET h", "*1\r\n$-1\r\n", NULL},
    {"SET h x GET", WRONG, NULL},
    {"SETNX h x", INT(0), NULL},
    {"SET h x", OK, NULL},
    {"GET h", BULK(1, "x"), NULL},
    {NULL, NULL, NULL},
};

static const struct step random_fields[] = {
    {"HRANDFIELD h", NIL, NULL},
    {"HRANDFIELD h 3", "*0\r\n", NULL},
    {"HRANDFIELD h -3 WITHVALUES", "*0\r\n", NULL},
    {"HSET h a 1", INT(1), NULL},
    {"HRANDFIELD h", BULK(1, "a"), NULL},
    {"HRANDFIELD h 0", "*0\r\n", NULL},
    {"HRANDFIELD h 5", "*1\r\n$1\r\na\r\n", NULL},
    {"HRANDFIELD h -2", "*2\r\n$1\r\na\r\n$1\r\na\r\n", NULL},
    {"HRANDFIELD h -2 withvalues", "*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\na\r\n$1\r\n1\r\n",
     "*2\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n"},
    {"HRANDFIELD h x", NOT_INT, NULL},
    {"HRANDFIELD h -9223372036854775808",
     ERR("value is out of range, value must between -9223372036854775807 and 9223372036854775807"),
     NULL},
    {"HRANDFIELD h 9223372036854775807", "*1\r\n$1\r\na\r\n", NULL},
    {"HRANDFIELD h 9223372036854775807 WITHVALUES", ERR("value is out of range"), NULL},
    {"HRANDFIELD h 1 NOVALUES", SYNTAX, NULL},
    {"HRANDFIELD h 1 WITHVALUES x", SYNTAX, NULL},
    {NULL, NULL, NULL},
};

static const struct step forms[] = {
    {"@config hash-max-listpack-entries 3", OK, NULL},
    {"HSET h a 1 b 2 c 3", INT(3), NULL},
    {"@form h", FORM("hash"), NULL},
    {"HSET h c 4", INT(0), NULL},
    {"@form h", FORM("hash"), NULL},
    {"HSET h d 4", INT(1), NULL},
    {"@form h", FORM("hash big"), NULL},
    {"HDEL h b c d", INT(3), NULL},
    {"@form h", FORM("hash big"), NULL},
    {"HSET i a 1 a 2 a 3 a 4", INT(1), NULL}, /* Redis counts arguments, not fields */
    {"@form i", FORM("hash big"), NULL},
    {"@config hash-max-listpack-value 4", OK, NULL},
    {"HSET j a 1234", INT(1), NULL},
    {"@form j", FORM("hash"), NULL},
    {"HINCRBY j n 99999", INT(99999), NULL},
    {"@form j", FORM("hash big"), NULL},
    {"HSETNX k abcde 1", INT(1), NULL},
    {"@form k", FORM("hash big"), NULL},
    {NULL, NULL, NULL},
};

#define SCRIPT(name)                                                                               \
    static void name##_as_redis(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        driver_run_script(name);                                                                   \
    }
SCRIPT(single_fields)
SCRIPT(whole_hashes)
SCRIPT(numbers)
SCRIPT(other_types)
SCRIPT(random_fields)
SCRIPT(forms)

/* ---- large ones ---- */

#define FIELDS 700

static void fill(struct driver *driver)
{
    for (int i = 0; i < FIELDS; i++)
        assert_int_equal(driver_number(driver_text(driver, "HSET h field:%d value:%d", i, i)), 1);
}

static void a_hash_outgrows_its_item_and_holds_on(struct driver *driver)
{
    char expected[64];
    fill(driver);
    assert_string_equal(driver_text(driver, "@form h"), "+hash big tree\r\n");
    assert_int_equal(driver_number(driver_text(driver, "HLEN h")), FIELDS);
    for (int i = 0; i < FIELDS; i++) {
        snprintf(expected, sizeof expected, "value:%d\r\n", i);
        assert_string_equal(strchr(driver_text(driver, "HGET h field:%d", i), '\n') + 1, expected);
    }
    assert_string_equal(driver_text(driver, "HGET h field:%d", FIELDS), "$-1\r\n");
    for (int i = 0; i < FIELDS; i += 2)
        assert_int_equal(driver_number(driver_text(driver, "HSET h field:%d other", i)), 0);
    for (int i = 1; i < FIELDS; i += 2)
        assert_int_equal(driver_number(driver_text(driver, "HDEL h field:%d x", i)), 1);
    assert_int_equal(driver_number(driver_text(driver, "HGETALL h")), FIELDS);
    assert_int_equal(driver_number(driver_text(driver, "HKEYS h")), FIELDS / 2);
    assert_int_equal(driver_number(driver_text(driver, "HVALS h")), FIELDS / 2);
    assert_string_equal(driver_text(driver, "HGET h field:2"), "$5\r\nother\r\n");
    assert_int_equal(driver_number(driver_text(driver, "HINCRBY h field:1 3")), 3);
    assert_string_equal(driver_text(driver, "HSTRLEN h field:2"), ":5\r\n");
    for (int i = 0; i < FIELDS; i += 2)
        driver_text(driver, "HDEL h field:%d", i);
    assert_string_equal(driver_text(driver, "@form h"), "+hash big tree\r\n");
    assert_int_equal(driver_number(driver_text(driver, "HDEL h field:1")), 1);
    assert_string_equal(driver_text(driver, "@keys"), ":0\r\n");
}

/* Marks each "field:N" of a reply. */
static void mark(const char *reply, uint32_t seen[FIELDS])
{
    for (const char *at = strstr(reply, "field:"); at != NULL; at = strstr(at + 1, "field:"))
        seen[atoi(at + 6)]++;
}

/* A whole scan in parts of `count`, while other fields come and go; returns its calls. */
static int scan_all(struct driver *driver, int count)
{
    uint32_t seen[FIELDS] = {0};
    char cursor[32] = "0";
    int calls = 0;
    do {
        const char *reply = driver_text(driver, "HSCAN h %s COUNT %d", cursor, count);
        sscanf(reply, "*2\r\n$%*d\r\n%31s", cursor);
        assert_true(strlen(cursor) <= 16); /* a double holds it */
        mark(reply, seen);
        driver_text(driver, "HSET h more:%d x", calls);
        driver_text(driver, "HDEL h more:%d", calls - 1);
        calls++;
    } while (strcmp(cursor, "0") != 0);
    for (int i = 0; i < FIELDS; i++)
        assert_int_equal(seen[i], 1);
    driver_text(driver, "HDEL h more:%d", calls - 1);
    return calls;
}

static void a_scan_meets_each_field_once_while_others_come(struct driver *driver)
{
    fill(driver);
    assert_in_range(scan_all(driver, 20), FIELDS / 20, FIELDS / 20 + 5);
    assert_in_range(scan_all(driver, 1), FIELDS / 3, FIELDS + 5);
    const char *all = driver_text(driver, "HSCAN h 0 COUNT 100000");
    assert_int_equal(driver_number(strstr(all, "\r\n*") + 2), FIELDS * 2);
    assert_string_equal(driver_text(driver, "HSCAN h 18446744073709551615"),
                        "*2\r\n$1\r\n0\r\n*0\r\n");
}

static void random_fields_are_different_ones(struct driver *driver)
{
    static const int counts[] = {1, 10, FIELDS / 2, FIELDS - 3, FIELDS, FIELDS + 5};
    fill(driver);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint32_t seen[FIELDS] = {0};
        int met = 0, expected = counts[i] < FIELDS ? counts[i] : FIELDS;
        const char *reply = driver_text(driver, "HRANDFIELD h %d", counts[i]);
        assert_int_equal(driver_number(reply), expected);
        mark(reply, seen);
        for (int j = 0; j < FIELDS; j++) {
            assert_true(seen[j] <= 1);
            met += (int)seen[j];
        }
        assert_int_equal(met, expected);
    }
    uint32_t seen[FIELDS] = {0}, met = 0;
    mark(driver_text(driver, "HRANDFIELD h -3000"), seen);
    for (int j = 0; j < FIELDS; j++)
        met += seen[j];
    assert_int_equal(met, 3000);
}

static void the_expiry_stays_until_the_key_goes(struct driver *driver)
{
    driver_text(driver, "HSET h a 1");
    driver_text(driver, "@expire h 5000");
    driver_text(driver, "HSET h a 2 b 1");
    driver_text(driver, "HDEL h b");
    assert_string_equal(driver_text(driver, "@ttl h"), ":5000\r\n");
    fill(driver);
    assert_string_equal(driver_text(driver, "@ttl h"), ":5000\r\n");
    driver_text(driver, "@pass 5001");
    assert_string_equal(driver_text(driver, "HGETALL h"), "*0\r\n");
    driver_text(driver, "HSET h a 1");
    assert_string_equal(driver_text(driver, "@ttl h"), ":-1\r\n");
    assert_int_equal(driver_number(driver_text(driver, "HLEN h")), 1);
}

static void long_names_and_values_come_back(struct driver *driver)
{
    static char name[20000], value[100000];
    memset(name, 'n', sizeof name);
    memset(value, 'v', sizeof value);
    struct resp_slice set[] = {{"HSET", 4},           {"h", 1},     {name, sizeof name},
                               {value, sizeof value}, {"small", 5}, {"x", 1}};
    struct resp_slice get[] = {{"HGET", 4}, {"h", 1}, {name, sizeof name}};
    assert_memory_equal(driver_run(driver, set, 6).data, ":2\r\n", 4);
    struct resp_slice reply = driver_run(driver, get, 3);
    assert_int_equal(reply.len, sizeof value + strlen("$100000\r\n\r\n"));
    assert_memory_equal(reply.data + strlen("$100000\r\n"), value, sizeof value);
    name[19999] = 'x';
    assert_memory_equal(driver_run(driver, get, 3).data, NIL, 5);
    assert_int_equal(driver_number(driver_text(driver, "HLEN h")), 2);
    name[19999] = 'n';
    struct resp_slice reply_all =
        driver_run(driver, (struct resp_slice[]){{"HKEYS", 5}, {"h", 1}}, 2);
    assert_true(reply_all.len > sizeof name && reply_all.len < sizeof name + 100);
}

#define LARGE(test)                                                                                \
    static void large_##test(void **state)                                                         \
    {                                                                                              \
        (void)state;                                                                               \
        driver_in_stores(test);                                                                    \
    }
LARGE(a_hash_outgrows_its_item_and_holds_on)
LARGE(a_scan_meets_each_field_once_while_others_come)
LARGE(random_fields_are_different_ones)
LARGE(the_expiry_stays_until_the_key_goes)
LARGE(long_names_and_values_come_back)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_fields_as_redis),
        cmocka_unit_test(whole_hashes_as_redis),
        cmocka_unit_test(numbers_as_redis),
        cmocka_unit_test(other_types_as_redis),
        cmocka_unit_test(random_fields_as_redis),
        cmocka_unit_test(forms_as_redis),
        cmocka_unit_test(large_a_hash_outgrows_its_item_and_holds_on),
        cmocka_unit_test(large_a_scan_meets_each_field_once_while_others_come),
        cmocka_unit_test(large_random_fields_are_different_ones),
        cmocka_unit_test(large_the_expiry_stays_until_the_key_goes),
        cmocka_unit_test(large_long_names_and_values_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
