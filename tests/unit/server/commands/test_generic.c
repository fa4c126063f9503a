/* Commands on keys of any type, on expiry and on databases, calm and with a store that waits. */
#include "tests/unit/generic_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/commands/commands.h"

#define NOW INT64_C(1700000000000) /* the driver's clock at first */

#define ROW(title, function, flag_bits, first, last, step)                                         \
    {                                                                                              \
        .name = title, .run = function, .flags = flag_bits, .first_key = first, .last_key = last,  \
        .key_step = step, .key_flags = "RW"                                                        \
    }

static const struct command table[] = {
    {.name = "copy",
     .run = cmd_copy,
     .flags = CMD_WRITE | CMD_OTHER_DB,
     .key_flags = "RO;OW",
     .first_key = 1,
     .last_key = 2,
     .key_step = 1,
     .role = ROLE_COPY},
    ROW("dbsize", cmd_dbsize, CMD_READONLY | CMD_NO_KEYS, 0, 0, 0),
    ROW("del", cmd_del, CMD_WRITE, 1, -1, 1),
    ROW("exists", cmd_exists, CMD_READONLY, 1, -1, 1),
    ROW("expire", cmd_expire, CMD_WRITE, 1, 1, 1),
    ROW("expireat", cmd_expireat, CMD_WRITE, 1, 1, 1),
    ROW("expiretime", cmd_expiretime, CMD_READONLY, 1, 1, 1),
    ROW("flushall", cmd_flushall, CMD_WRITE | CMD_ALL_KEYS, 0, 0, 0),
    ROW("flushdb", cmd_flushdb, CMD_WRITE | CMD_ALL_KEYS, 0, 0, 0),
    ROW("keys", cmd_keys, CMD_READONLY | CMD_NO_KEYS, 0, 0, 0),
    ROW("move", cmd_move, CMD_WRITE | CMD_OTHER_DB, 1, 1, 1),
    ROW("object|encoding", cmd_object_encoding, CMD_READONLY, 2, 2, 1),
    ROW("object|freq", cmd_object_freq, CMD_READONLY, 2, 2, 1),
    ROW("object|help", cmd_object_help, CMD_LOCAL, 0, 0, 0),
    ROW("object|idletime", cmd_object_idletime, CMD_READONLY, 2, 2, 1),
    ROW("object|refcount", cmd_object_refcount, CMD_READONLY, 2, 2, 1),
    ROW("persist", cmd_persist, CMD_WRITE, 1, 1, 1),
    ROW("pexpire", cmd_pexpire, CMD_WRITE, 1, 1, 1),
    ROW("pexpireat", cmd_pexpireat, CMD_WRITE, 1, 1, 1),
    ROW("pexpiretime", cmd_pexpiretime, CMD_READONLY, 1, 1, 1),
    ROW("pttl", cmd_pttl, CMD_READONLY, 1, 1, 1),
    ROW("randomkey", cmd_randomkey, CMD_READONLY | CMD_NO_KEYS, 0, 0, 0),
    ROW("rename", cmd_rename, CMD_WRITE, 1, 2, 1),
    ROW("renamenx", cmd_renamenx, CMD_WRITE, 1, 2, 1),
    ROW("scan", cmd_scan, CMD_READONLY | CMD_NO_KEYS, 0, 0, 0),
    ROW("swapdb", cmd_swapdb, CMD_WRITE | CMD_ALL_KEYS, 0, 0, 0),
    ROW("touch", cmd_touch, CMD_READONLY, 1, -1, 1),
    ROW("ttl", cmd_ttl, CMD_READONLY, 1, 1, 1),
    ROW("type", cmd_type, CMD_READONLY, 1, 1, 1),
    ROW("unlink", cmd_unlink, CMD_WRITE, 1, -1, 1),
    ROW("vellum.range", cmd_vellum_range, CMD_READONLY | CMD_NO_KEYS, 0, 0, 0),
    {.name = NULL},
};

static void put(struct driver *d, const char *key, const char *value)
{
    driver_put(d, d->session.db, key, TYPE_STRING, value, strlen(value), STORE_NO_EXPIRY);
}

static void put_until(struct driver *d, const char *key, int64_t expire_ms)
{
    driver_put(d, d->session.db, key, TYPE_STRING, "v", 1, expire_ms);
}

/* Each test runs twice: calm, and with waits at nearly every touch. */
static int setup_calm(void **state)
{
    struct driver *d = malloc(sizeof(*d));
    driver_open(d, table, 0);
    *state = d;
    return 0;
}

static int setup_waiting(void **state)
{
    struct driver *d = malloc(sizeof(*d));
    driver_open(d, table, 700);
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    driver_close(*state);
    free(*state);
    return 0;
}

/* ---- one key after the other ---- */

static void deleting_counts_what_was_there(void **state)
{
    struct driver *d = *state;
    put(d, "a", "1");
    put(d, "b", "2");
    put(d, "c", "3");
    expect(d, "DEL a missing b a", ":2\r\n");
    expect(d, "EXISTS a b c", ":1\r\n");
    expect(d, "UNLINK c", ":1\r\n");
    expect(d, "DEL c", ":0\r\n");
    expect(d, "DBSIZE", ":0\r\n");
}

static void exists_counts_a_key_as_often_as_named(void **state)
{
    struct driver *d = *state;
    put(d, "a", "1");
    expect(d, "EXISTS a a missing a", ":3\r\n");
    expect(d, "TOUCH a missing", ":1\r\n");
    assert_int_equal(d->hits, 4);
    assert_int_equal(d->misses, 2);
    put_until(d, "old", NOW - 1);
    expect(d, "EXISTS old", ":0\r\n");
}

static void type_names_what_is_there(void **state)
{
    struct driver *d = *state;
    put(d, "s", "1");
    driver_put(d, 0, "l", TYPE_LIST, "x", 1, STORE_NO_EXPIRY);
    driver_put(d, 0, "z", TYPE_ZSET, "x", 1, STORE_NO_EXPIRY);
    driver_put(d, 0, "h", TYPE_HASH, "x", 1, STORE_NO_EXPIRY);
    driver_put(d, 0, "e", TYPE_SET, "x", 1, STORE_NO_EXPIRY);
    expect(d, "TYPE s", "+string\r\n");
    expect(d, "TYPE l", "+list\r\n");
    expect(d, "TYPE z", "+zset\r\n");
    expect(d, "TYPE h", "+hash\r\n");
    expect(d, "TYPE e", "+set\r\n");
    expect(d, "TYPE missing", "+none\r\n");
}

/* ---- from one key to another ---- */

static void rename_takes_value_type_and_expiry_along(void **state)
{
    struct driver *d = *state;
    driver_put(d, 0, "a", TYPE_LIST, "x", 1, NOW + 5000);
    put(d, "b", "old");
    expect(d, "RENAME a b", "+OK\r\n");
    expect(d, "EXISTS a", ":0\r\n");
    expect(d, "TYPE b", "+list\r\n");
    expect(d, "PTTL b", ":5000\r\n");
    expect(d, "RENAME a b", "-ERR no such key\r\n");
    expect(d, "RENAME a a", "-ERR no such key\r\n");
    expect(d, "RENAME b b", "+OK\r\n");
    expect(d, "EXISTS b", ":1\r\n");
}

static void renamenx_spares_what_is_there(void **state)
{
    struct driver *d = *state;
    put(d, "a", "1");
    put(d, "b", "22");
    expect(d, "RENAMENX a b", ":0\r\n");
    expect(d, "RENAMENX a a", ":0\r\n");
    expect(d, "EXISTS a b", ":2\r\n");
    expect(d, "RENAMENX a c", ":1\r\n");
    expect(d, "EXISTS a", ":0\r\n");
    expect(d, "RENAMENX a c", "-ERR no such key\r\n");
    put_until(d, "old", NOW - 1);
    expect(d, "RENAMENX c old", ":1\r\n");
    expect(d, "TTL old", ":-1\r\n");
}

static void copy_keeps_the_source(void **state)
{
    struct driver *d = *state;
    char *large = malloc(100000);
    memset(large, 'x', 100000);
    driver_put(d, 0, "a", TYPE_STRING, large, 100000, NOW + 5000);
    free(large);
    expect(d, "COPY a b", ":1\r\n");
    expect(d, "EXISTS a b", ":2\r\n");
    expect(d, "PTTL b", ":5000\r\n");
    expect(d, "OBJECT ENCODING b", "$3\r\nraw\r\n");
    put(d, "c", "1");
    expect(d, "COPY c b", ":0\r\n");
    expect(d, "OBJECT ENCODING b", "$3\r\nraw\r\n");
    expect(d, "COPY c b REPLACE", ":1\r\n");
    expect(d, "OBJECT ENCODING b", "$3\r\nint\r\n");
    expect(d, "TTL b", ":-1\r\n");
    expect(d, "COPY missing b REPLACE", ":0\r\n");
    assert_int_equal(d->hits, 10); /* three of them COPY's */
    assert_int_equal(d->misses, 1);
    expect(d, "EXISTS b", ":1\r\n");
}

static void copy_goes_to_other_databases(void **state)
{
    struct driver *d = *state;
    put(d, "a", "1");
    expect(d, "COPY a a DB 3", ":1\r\n");
    expect(d, "COPY a b db 3 replace", ":1\r\n");
    expect(d, "COPY a a DB 3", ":0\r\n");
    expect(d, "DBSIZE", ":1\r\n");
    d->session.db = 3;
    expect(d, "EXISTS a b", ":2\r\n");
    expect(d, "COPY a c DB 0 DB 3", ":1\r\n");
    expect(d, "EXISTS c", ":1\r\n");
}

static void copy_refuses_nonsense(void **state)
{
    struct driver *d = *state;
    put(d, "a", "1");
    expect(d, "COPY a a", "-ERR source and destination objects are the same\r\n");
    expect(d, "COPY a a DB 0", "-ERR source and destination objects are the same\r\n");
    expect(d, "COPY a b DB", "-ERR syntax error\r\n");
    expect(d, "COPY a b NX", "-ERR syntax error\r\n");
    expect(d, "COPY a b DB 16", "-ERR DB index is out of range\r\n");
    expect(d, "COPY a b DB -1", "-ERR DB index is out of range\r\n");
    expect(d, "COPY a b DB x", "-ERR value is not an integer or out of range\r\n");
    expect(d, "EXISTS b", ":0\r\n");
}

static void move_changes_the_database(void **state)
{
    struct driver *d = *state;
    put_until(d, "a", NOW + 5000);
    expect(d, "MOVE a 9", ":1\r\n");
    expect(d, "MOVE a 9", ":0\r\n");
    put(d, "a", "again");
    expect(d, "MOVE a 9", ":0\r\n");
    expect(d, "MOVE a 0", "-ERR source and destination objects are the same\r\n");
    expect(d, "MOVE a 16", "-ERR DB index is out of range\r\n");
    expect(d, "MOVE a nine", "-ERR value is not an integer or out of range\r\n");
    expect(d, "EXISTS a", ":1\r\n");
    d->session.db = 9;
    expect(d, "PTTL a", ":5000\r\n");
}

/* ---- expiry ---- */

static void expire_and_ttl(void **state)
{
    struct driver *d = *state;
    put(d, "a", "1");
    expect(d, "TTL a", ":-1\r\n");
    expect(d, "PEXPIRETIME a", ":-1\r\n");
    expect(d, "EXPIRE a 10", ":1\r\n");
    expect(d, "TTL a", ":10\r\n");
    expect(d, "PEXPIRETIME a", ":1700000010000\r\n");
    d->now_ms += 9400;
    expect(d, "TTL a", ":1\r\n");
    expect(d, "PTTL a", ":600\r\n");
    d->now_ms += 200;
    expect(d, "TTL a", ":0\r\n");
    d->now_ms += 401;
    expect(d, "TTL a", ":-2\r\n");
    expect(d, "EXPIRETIME a", ":-2\r\n");
    expect(d, "EXPIRE a 10", ":0\r\n");
}

static void units_and_bases(void **state)
{
    struct driver *d = *state;
    put(d, "a", "1");
    expect(d, "PEXPIRE a 1500", ":1\r\n");
    expect(d, "PEXPIRETIME a", ":1700000001500\r\n");
    expect(d, "EXPIRETIME a", ":1700000002\r\n");
    expect(d, "EXPIREAT a 1700000100", ":1\r\n");
    expect(d, "PTTL a", ":100000\r\n");
    expect(d, "PEXPIREAT a 1700000100001", ":1\r\n");
    expect(d, "PTTL a", ":100001\r\n");
    expect(d, "PERSIST a", ":1\r\n");
    expect(d, "PERSIST a", ":0\r\n");
    expect(d, "PERSIST missing", ":0\r\n");
    expect(d, "TTL a", ":-1\r\n");
    expect(d, "PEXPIREAT a 9223372036854775807", ":1\r\n");
    expect(d, "PEXPIRETIME a", ":9223372036854775807\r\n");
    expect(d, "EXPIRETIME a", ":9223372036854776\r\n");
}

static void times_past_delete(void **state)
{
    struct driver *d = *state;
    const char *lines[] = {"EXPIRE a 0", "EXPIRE a -1", "PEXPIREAT a 1700000000000", "EXPIREAT a 1",
                           "PEXPIRE a -9223372036854775808"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        put(d, "a", "1");
        expect(d, lines[i], ":1\r\n");
        expect(d, "EXISTS a", ":0\r\n");
        expect(d, "DBSIZE", ":0\r\n");
    }
}

static void conditions_of_expire(void **state)
{
    struct driver *d = *state;
    put(d, "a", "1");
    expect(d, "EXPIRE a 10 XX", ":0\r\n");
    expect(d, "EXPIRE a 10 GT", ":0\r\n");
    expect(d, "EXPIRE a 20 LT", ":1\r\n");
    expect(d, "EXPIRE a 10 NX", ":0\r\n");
    expect(d, "EXPIRE a 20 gt", ":0\r\n");
    expect(d, "EXPIRE a 21 GT", ":1\r\n");
    expect(d, "EXPIRE a 21 LT", ":0\r\n");
    expect(d, "EXPIRE a 5 XX LT", ":1\r\n");
    expect(d, "TTL a", ":5\r\n");
    expect(d, "EXPIRE a -1 GT", ":0\r\n");
    expect(d, "PERSIST a", ":1\r\n");
    expect(d, "EXPIRE a 5 XX LT", ":0\r\n");
    expect(d, "EXPIRE a 7 NX", ":1\r\n");
    expect(d, "TTL a", ":7\r\n");
    expect(d, "EXPIRE a -1 LT", ":1\r\n");
    expect(d, "EXISTS a", ":0\r\n");
}

static void expire_refuses_nonsense(void **state)
{
    struct driver *d = *state;
    put(d, "a", "1");
    const char *nx = "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n";
    expect(d, "EXPIRE a 10 NX XX", nx);
    expect(d, "EXPIRE a 10 GT NX", nx);
    expect(d, "EXPIRE a 10 LT GT",
           "-ERR GT and LT options at the same time are not compatible\r\n");
    expect(d, "EXPIRE a 10 SOON", "-ERR Unsupported option SOON\r\n");
    expect(d, "EXPIRE a ten", "-ERR value is not an integer or out of range\r\n");
    expect(d, "EXPIRE a 9223372036854775", "-ERR invalid expire time in 'expire' command\r\n");
    expect(d, "EXPIRE a -9223372036854776", "-ERR invalid expire time in 'expire' command\r\n");
    expect(d, "PEXPIRE a 9223372036854775807", "-ERR invalid expire time in 'pexpire' command\r\n");
    expect(d, "EXPIREAT a 9223372036854776", "-ERR invalid expire time in 'expireat' command\r\n");
    expect(d, "EXPIRE missing 9223372036854776",
           "-ERR invalid expire time in 'expire' command\r\n");
    expect(d, "TTL a", ":-1\r\n");
}

/* ---- walks ---- */

enum { MANY = 1000 };

static void put_many(struct driver *d)
{
    for (int i = 0; i < MANY; i++) {
        char key[32];
        snprintf(key, sizeof(key), "key:%d", i);
        put(d, key, "v");
    }
}

/* Marks the keys "key:N" of an array reply whose elements begin at `text`; returns their number. */
static int mark_keys(const char *text, uint8_t seen[MANY])
{
    int count = 0;
    for (; (text = strstr(text, "key:")) != NULL; text++, count++) {
        int i = atoi(text + strlen("key:"));
        assert_in_range(i, 0, MANY - 1);
        seen[i]++;
    }
    return count;
}

static void keys_finds_each_key_once(void **state)
{
    struct driver *d = *state;
    uint8_t seen[MANY] = {0};
    put_many(d);
    put_until(d, "key:old", NOW - 1);
    const char *reply = driver_run(d, "KEYS *");
    assert_int_equal(strncmp(reply, "*1000\r\n", 7), 0);
    assert_int_equal(mark_keys(reply, seen), MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(seen[i], 1);
    expect(d, "KEYS key:99[89]x", "*0\r\n");
    expect(d, "KEYS *:998", "*1\r\n$7\r\nkey:998\r\n");
    d->session.db = 1;
    expect(d, "KEYS *", "*0\r\n");
}

/* Walks to the end with SCAN's options; returns the number of calls. */
static int scan_all(struct driver *d, const char *options, uint8_t seen[MANY], bool change)
{
    char line[128], cursor[32] = "0";
    int calls = 0;
    do {
        snprintf(line, sizeof(line), "SCAN %s %s", cursor, options);
        const char *reply = driver_run(d, line);
        const char *text = strstr(reply + 4, "\r\n"); /* behind "*2\r\n" and the cursor's $length */
        assert_int_equal(sscanf(text, "%31[0-9]", cursor), 0);
        assert_int_equal(sscanf(text + 2, "%31[0-9]", cursor), 1);
        mark_keys(text, seen);
        calls++;
        for (int i = 0; change && i < 50; i++) { /* others come and go meanwhile */
            snprintf(line, sizeof(line), "new:%d", calls * 50 + i);
            put(d, line, "v");
            snprintf(line, sizeof(line), "DEL new:%d", calls * 50 + i - 70);
            driver_run(d, line);
        }
        assert_true(calls < 10 * MANY);
    } while (strcmp(cursor, "0") != 0);
    return calls;
}

/* ---- VELLUM.RANGE ---- */

static void a_range_of_keys(void **state)
{
    struct driver *d = *state;
    put(d, "b", "2");
    put(d, "a", "1");
    put(d, "c", "3");
    put(d, "bb", "4");
    put_until(d, "ba", NOW - 1);
    expect(d, "VELLUM.RANGE - +", "*4\r\n$1\r\na\r\n$1\r\nb\r\n$2\r\nbb\r\n$1\r\nc\r\n");
    expect(d, "VELLUM.RANGE [b (c", "*2\r\n$1\r\nb\r\n$2\r\nbb\r\n");
    expect(d, "VELLUM.RANGE (b [c", "*2\r\n$2\r\nbb\r\n$1\r\nc\r\n");
    expect(d, "VELLUM.RANGE [bb [bb", "*1\r\n$2\r\nbb\r\n");
    expect(d, "VELLUM.RANGE (bb [bb", "*0\r\n");
    expect(d, "VELLUM.RANGE [c [a", "*0\r\n");
    expect(d, "VELLUM.RANGE + -", "*0\r\n");
    expect(d, "VELLUM.RANGE + - REV LIMIT 1 2", "*2\r\n$2\r\nbb\r\n$1\r\nb\r\n");
    expect(d, "VELLUM.RANGE (bb [a REV", "*2\r\n$1\r\nb\r\n$1\r\na\r\n");
    expect(d, "VELLUM.RANGE - + REV", "*0\r\n");
    expect(d, "VELLUM.RANGE - + LIMIT 3 -1", "*1\r\n$1\r\nc\r\n");
    expect(d, "VELLUM.RANGE - + LIMIT 4 1", "*0\r\n");
    expect(d, "VELLUM.RANGE - + LIMIT -1 1", "*0\r\n");
    expect(d, "VELLUM.RANGE - + LIMIT 0 0", "*0\r\n");
}

static void a_range_of_keys_and_values(void **state)
{
    struct driver *d = *state;
    put(d, "a", "1");
    driver_put(d, 0, "b", TYPE_LIST, "x", 1, STORE_NO_EXPIRY);
    put(d, "c", "");
    expect(d, "VELLUM.RANGE - + WITHVALUES",
           "*6\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$-1\r\n$1\r\nc\r\n$0\r\n\r\n");
    expect(d, "VELLUM.RANGE - [a limit 0 5 withvalues", "*2\r\n$1\r\na\r\n$1\r\n1\r\n");
}

static void a_range_has_its_syntax(void **state)
{
    struct driver *d = *state;
    const char *syntax = "-ERR syntax error\r\n";
    const char *range = "-ERR min or max not valid string range item\r\n";
    expect(d, "VELLUM.RANGE a +", range);
    expect(d, "VELLUM.RANGE - b", range);
    expect(d, "VELLUM.RANGE -a +", range);
    expect(d, "VELLUM.RANGE - + LIMIT 1", syntax);
    expect(d, "VELLUM.RANGE - + BYLEX", syntax);
    expect(d, "VELLUM.RANGE - + LIMIT a 1", "-ERR value is not an integer or out of range\r\n");
}

static void a_long_range_takes_steps(void **state)
{
    struct driver *d = *state;
    char key[16];
    for (int i = 0; i < 1500; i++) {
        snprintf(key, sizeof key, "k%04d", 1499 - i);
        put(d, key, "v");
    }
    const char *reply = driver_run(d, "VELLUM.RANGE - +");
    char expected[32];
    assert_int_equal(strncmp(reply, "*1500\r\n", 7), 0);
    reply += 7;
    for (int i = 0; i < 1500; i++) {
        int len = snprintf(expected, sizeof expected, "$5\r\nk%04d\r\n", i);
        assert_int_equal(strncmp(reply, expected, (size_t)len), 0);
        reply += len;
    }
}

static void scan_visits_what_stays(void **state)
{
    struct driver *d = *state;
    uint8_t seen[MANY] = {0};
    put_many(d);
    int calls = scan_all(d, "COUNT 100", seen, true);
    assert_true(calls >= 10);
    for (int i = 0; i < MANY; i++)
        assert_true(seen[i] >= 1);
}

static void scan_with_options(void **state)
{
    struct driver *d = *state;
    uint8_t seen[MANY] = {0};
    put_many(d);
    driver_put(d, 0, "key:7", TYPE_LIST, "x", 1, STORE_NO_EXPIRY);
    driver_put(d, 0, "key:8", TYPE_LIST, "x", 1, STORE_NO_EXPIRY);
    assert_int_equal(scan_all(d, "TYPE LIST COUNT 9223372036854775807", seen, false), 1);
    scan_all(d, "MATCH key:1? TYPE string", seen, false);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(seen[i], i == 7 || i == 8 || (i >= 10 && i <= 19));
    expect(d, "SCAN 0 TYPE stream COUNT 100000", "*2\r\n$1\r\n0\r\n*0\r\n");
    expect(d, "SCAN x", "-ERR invalid cursor\r\n");
    expect(d, "SCAN 18446744073709551616", "-ERR invalid cursor\r\n");
    expect(d, "SCAN -", "-ERR invalid cursor\r\n");
    expect(d, "SCAN 1-", "-ERR invalid cursor\r\n");
    expect(d, "SCAN -1", "*2\r\n$1\r\n0\r\n*0\r\n");
    expect(d, "SCAN 0 COUNT 0", "-ERR syntax error\r\n");
    expect(d, "SCAN 0 COUNT x", "-ERR value is not an integer or out of range\r\n");
    expect(d, "SCAN 0 MATCH", "-ERR syntax error\r\n");
    expect(d, "SCAN 0 LIMIT 1", "-ERR syntax error\r\n");
}

static void randomkey_reaches_every_key(void **state)
{
    struct driver *d = *state;
    expect(d, "RANDOMKEY", "$-1\r\n");
    d->session.resp_version = 3;
    expect(d, "RANDOMKEY", "_\r\n");
    put_until(d, "old", NOW - 1);
    expect(d, "RANDOMKEY", "_\r\n");
    put(d, "only", "1");
    expect(d, "RANDOMKEY", "$4\r\nonly\r\n");
    uint8_t seen[MANY] = {0};
    for (int i = 0; i < 100; i++) {
        char key[32];
        snprintf(key, sizeof(key), "key:%d", i);
        put(d, key, "v");
    }
    for (int i = 0; i < 3000; i++)
        assert_int_equal(mark_keys(driver_run(d, "RANDOMKEY"), seen) +
                             (strstr(d->reply.data, "only") != NULL),
                         1);
    for (int i = 0; i < 100; i++)
        assert_in_range(seen[i], 1, 150); /* 30 expected */
}

/* ---- OBJECT, databases ---- */

static void encodings_of_strings(void **state)
{
    struct driver *d = *state;
    put(d, "int", "-9223372036854775808");
    put(d, "big", "9223372036854775808");
    put(d, "zero", "007");
    put(d, "e44", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    put(d, "e45", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    expect(d, "OBJECT ENCODING int", "$3\r\nint\r\n");
    expect(d, "OBJECT ENCODING big", "$6\r\nembstr\r\n");
    expect(d, "OBJECT ENCODING zero", "$6\r\nembstr\r\n");
    expect(d, "object encoding e44", "$6\r\nembstr\r\n");
    expect(d, "OBJECT ENCODING e45", "$3\r\nraw\r\n");
    expect(d, "OBJECT ENCODING missing", "$-1\r\n");
    d->session.resp_version = 3;
    expect(d, "OBJECT REFCOUNT missing", "_\r\n");
}

static void object_answers_by_policy(void **state)
{
    struct driver *d = *state;
    put(d, "a", "1");
    d->server.config.numbers[CONFIG_MAXMEMORY_POLICY] = CONFIG_POLICY_NOEVICTION;
    expect(d, "OBJECT REFCOUNT a", ":2147483647\r\n");
    expect(d, "OBJECT IDLETIME a", ":0\r\n");
    assert_non_null(strstr(driver_run(d, "OBJECT FREQ a"), "-ERR An LFU maxmemory policy is not"));
    d->server.config.numbers[CONFIG_MAXMEMORY_POLICY] = CONFIG_POLICY_ALLKEYS_LFU;
    expect(d, "OBJECT FREQ a", ":5\r\n");
    assert_non_null(strstr(driver_run(d, "OBJECT IDLETIME a"), "-ERR An LFU maxmemory policy is"));
    assert_non_null(strstr(driver_run(d, "OBJECT HELP"), "+ENCODING <key>\r\n"));
}

static void flushes_and_swaps(void **state)
{
    struct driver *d = *state;
    put(d, "zero", "1");
    d->session.db = 1;
    put(d, "one", "1");
    put(d, "uno", "1");
    expect(d, "SWAPDB 0 1", "+OK\r\n");
    expect(d, "KEYS *", "*1\r\n$4\r\nzero\r\n");
    expect(d, "SWAPDB 1 1", "+OK\r\n");
    expect(d, "FLUSHDB NOW", "-ERR syntax error\r\n");
    expect(d, "FLUSHDB ASYNC SYNC", "-ERR syntax error\r\n");
    expect(d, "FLUSHDB ASYNC", "+OK\r\n");
    expect(d, "DBSIZE", ":0\r\n");
    d->session.db = 0;
    expect(d, "DBSIZE", ":2\r\n");
    expect(d, "EXISTS one uno", ":2\r\n");
    d->session.db = 5;
    put(d, "five", "1");
    expect(d, "flushall sync", "+OK\r\n");
    expect(d, "DBSIZE", ":0\r\n");
    d->session.db = 0;
    expect(d, "EXISTS one uno", ":0\r\n");
    expect(d, "SWAPDB x 99", "-ERR invalid first DB index\r\n");
    expect(d, "SWAPDB 99 x", "-ERR invalid second DB index\r\n");
    expect(d, "SWAPDB 0 16", "-ERR DB index is out of range\r\n");
}

/* Lest the waiting half of these tests tests nothing. */
static void the_store_really_waits(void **state)
{
    struct driver *d = *state;
    put_many(d);
    d->reruns = 0;
    assert_int_equal(strncmp(driver_run(d, "KEYS *"), "*1000\r\n", 7), 0);
    assert_in_range(d->reruns, 2, 8); /* of 8 steps each waits once at most */
}

#define BOTH(test)                                                                                 \
    {#test " (calm)", test, setup_calm, teardown, NULL},                                           \
    {                                                                                              \
#test " (waiting)", test, setup_waiting, teardown, NULL                                    \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(deleting_counts_what_was_there),
        BOTH(exists_counts_a_key_as_often_as_named),
        BOTH(type_names_what_is_there),
        BOTH(rename_takes_value_type_and_expiry_along),
        BOTH(renamenx_spares_what_is_there),
        BOTH(copy_keeps_the_source),
        BOTH(copy_goes_to_other_databases),
        BOTH(copy_refuses_nonsense),
        BOTH(move_changes_the_database),
        BOTH(expire_and_ttl),
        BOTH(units_and_bases),
        BOTH(times_past_delete),
        BOTH(conditions_of_expire),
        BOTH(expire_refuses_nonsense),
        BOTH(keys_finds_each_key_once),
        BOTH(a_range_of_keys),
        BOTH(a_range_of_keys_and_values),
        BOTH(a_range_has_its_syntax),
        BOTH(a_long_range_takes_steps),
        BOTH(scan_visits_what_stays),
        BOTH(scan_with_options),
        BOTH(randomkey_reaches_every_key),
        BOTH(encodings_of_strings),
        BOTH(object_answers_by_policy),
        BOTH(flushes_and_swaps),
        cmocka_unit_test_setup_teardown(the_store_really_waits, setup_waiting, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
