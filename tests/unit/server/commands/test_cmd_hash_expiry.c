/* The expiry of fields of hashes, on the model store: as Redis 8 answers, and against an oracle. */
#include "tests/unit/command_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/seed.h"

#define INTS1(a) "*1\r\n:" #a "\r\n"
#define INTS2(a, b) "*2\r\n:" #a "\r\n:" #b "\r\n"
#define INTS3(a, b, c) "*3\r\n:" #a "\r\n:" #b "\r\n:" #c "\r\n"
#define NO_FIELDS ERR("Mandatory argument FIELDS is missing or not at the right position")
#define MISMATCH ERR("The `numfields` parameter must match the number of arguments")
#define NOT_POSITIVE ERR("Number of fields must be a positive integer")
#define NOT_OVER_0 ERR("Parameter `numFields` should be greater than 0")

static const struct step expiries[] = {
    {"HSET h a 1 b 2 c 3", INT(3), NULL},
    {"HTTL h FIELDS 2 a x", INTS2(-1, -2), NULL},
    {"HTTL nosuch FIELDS 2 a x", INTS2(-2, -2), NULL},
    {"HEXPIRE nosuch 1 FIELDS 2 a x", INTS2(-2, -2), NULL},
    {"HPERSIST nosuch FIELDS 1 a", INTS1(-2), NULL},
    {"HEXPIRE h 10 FIELDS 2 a x", INTS2(1, -2), NULL},
    {"HTTL h FIELDS 3 a b x", INTS3(10, -1, -2), NULL},
    {"HPTTL h FIELDS 1 a", INTS1(10000), NULL},
    {"@form h", FORM("hash"), NULL},
    {"HPEXPIRE h 1500 FIELDS 1 b", INTS1(1), NULL},
    {"HTTL h FIELDS 1 b", INTS1(2), NULL},
    {"@pass 1000", OK, NULL},
    {"HTTL h FIELDS 2 a b", INTS2(9, 1), NULL},
    {"HPERSIST h FIELDS 3 a c x", INTS3(1, -1, -2), NULL},
    {"HTTL h FIELDS 1 a", INTS1(-1), NULL},
    {"@pass 500", OK, NULL},
    {"HGET h b", BULK(1, "2"), NULL}, /* its last millisecond */
    {"@pass 1", OK, NULL},
    {"HGET h b", NIL, NULL},
    {"HMGET h a b c", "*3\r\n$1\r\n1\r\n$-1\r\n$1\r\n3\r\n", NULL},
    {"HEXISTS h b", INT(0), NULL},
    {"HSTRLEN h b", INT(0), NULL},
    {"HLEN h", INT(2), NULL},
    {"HKEYS h", "*2\r\n$1\r\na\r\n$1\r\nc\r\n", NULL},
    {"HVALS h", "*2\r\n$1\r\n1\r\n$1\r\n3\r\n", NULL},
    {"HSCAN h 0", "*2\r\n$1\r\n0\r\n*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nc\r\n$1\r\n3\r\n", NULL},
    {"HRANDFIELD h 9", "*2\r\n$1\r\na\r\n$1\r\nc\r\n", NULL},
    {"HTTL h FIELDS 1 b", INTS1(-2), NULL},
    {"HPERSIST h FIELDS 1 b", INTS1(-2), NULL},
    {"HEXPIRE h 5 FIELDS 1 b", INTS1(-2), NULL},
    {"HDEL h b", INT(0), NULL},
    {"HINCRBY h b 5", INT(5), NULL},
    {"HTTL h FIELDS 1 b", INTS1(-1), NULL},
    {"HLEN h", INT(3), NULL},
    {NULL, NULL, NULL},
};

static const struct step writes[] = {
    {"HSET h a 1 b 2", INT(2), NULL},
    {"HEXPIRE h 10 FIELDS 2 a b", INTS2(1, 1), NULL},
    {"HSET h a 3", INT(0), NULL}, /* removes the expiry */
    {"HINCRBY h b 1", INT(3), NULL},
    {"HTTL h FIELDS 2 a b", INTS2(-1, 10), NULL},
    {"HINCRBYFLOAT h b 1", BULK(1, "4"), NULL},
    {"HSETNX h b 1", INT(0), NULL},
    {"HTTL h FIELDS 2 a b", INTS2(-1, 10), NULL},
    {"@wake h", INT(0), NULL},
    {"@pass 10001", OK, NULL},
    {"HSETNX h b 1", INT(1), NULL},
    {"HEXPIRE h 0 FIELDS 2 b x", INTS2(2, -2), NULL}, /* the time has come */
    {"HLEN h", INT(1), NULL},
    {"HEXPIREAT h 1 FIELDS 1 a", INTS1(2), NULL},
    {"@keys", INT(0), NULL},
    {"HSET h a 1 b 2", INT(2), NULL},
    {"HPEXPIRE h 5 FIELDS 2 a b", INTS2(1, 1), NULL},
    {"@pass 6", OK, NULL},
    {"HLEN h", INT(0), NULL},
    {"HGETALL h", "*0\r\n", "%0\r\n"},
    {"HRANDFIELD h", NIL, NULL},
    {"HRANDFIELD h -2", "*0\r\n", NULL},
    {"@keys", INT(1), NULL},
    {"@wake h", INT(2), NULL},
    {"@keys", INT(0), NULL},
    {"HSET h a 1 b 2 c 3 d 4", INT(4), NULL},
    {"HPEXPIRE h 5 FIELDS 2 a c", INTS2(1, 1), NULL},
    {"HPEXPIRE h 7 FIELDS 1 b", INTS1(1), NULL},
    {"@pass 6", OK, NULL},
    {"@wake h", INT(2), NULL},
    {"HKEYS h", "*2\r\n$1\r\nb\r\n$1\r\nd\r\n", NULL},
    {"HPTTL h FIELDS 1 b", INTS1(1), NULL},
    {"@expire h 100", OK, NULL},
    {"HPTTL h FIELDS 1 b", INTS1(1), NULL},
    {"@pass 2", OK, NULL},
    {"HSET h b 5", INT(1), NULL},
    {"HTTL h FIELDS 1 b", INTS1(-1), NULL},
    {"@ttl h", INT(98), NULL},
    {NULL, NULL, NULL},
};

static const struct step conditions[] = {
    {"HSET h a 1 b 2", INT(2), NULL},
    {"HEXPIRE h 10 XX FIELDS 1 a", INTS1(0), NULL},
    {"HEXPIRE h 10 GT FIELDS 1 a", INTS1(0), NULL},
    {"HEXPIRE h 10 NX FIELDS 1 a", INTS1(1), NULL},
    {"HEXPIRE h 20 NX FIELDS 1 a", INTS1(0), NULL},
    {"HEXPIRE h 10 GT FIELDS 1 a", INTS1(0), NULL},
    {"HEXPIRE h 10 LT FIELDS 1 a", INTS1(0), NULL},
    {"HEXPIRE h 20 gt FIELDS 1 a", INTS1(1), NULL},
    {"HEXPIRE h 15 lt fields 2 a b", INTS2(1, 1), NULL},
    {"HEXPIRE h 30 xx FIELDS 2 a b", INTS2(1, 1), NULL},
    {"HTTL h FIELDS 2 a b", INTS2(30, 30), NULL},
    {"HEXPIRE h 0 GT FIELDS 1 a", INTS1(0), NULL},
    {"HEXPIRE h 0 LT FIELDS 1 a", INTS1(2), NULL},
    {"HEXPIRE h 5 FIELDS 3 b b x", INTS3(1, 1, -2), NULL},
    {NULL, NULL, NULL},
};

static const struct step errors[] = {
    {"@list l", OK, NULL},
    {"HEXPIRE l x FIELDS 1 a", WRONG, NULL},
    {"HTTL l FIELDS 1 a", WRONG, NULL},
    {"HPERSIST l FIELDS 1 a", WRONG, NULL},
    {"HGETDEL l FIELDS 1 a", WRONG, NULL},
    {"HGETEX l FIELDS 1 a", WRONG, NULL},
    {"HSETEX l FIELDS 1 a b", WRONG, NULL},
    {"HSET h a 1", INT(1), NULL},
    {"HEXPIRE h x FIELDS 1 a", NOT_INT, NULL},
    {"HEXPIRE h -1 FIELDS 1 a", ERR("invalid expire time, must be >= 0"), NULL},
    {"HEXPIRE h 70368744178 FIELDS 1 a", ERR("invalid expire time in 'hexpire' command"), NULL},
    {"HPEXPIREAT h 70368744177664 FIELDS 1 a", ERR("invalid expire time in 'hpexpireat' command"),
     NULL},
    {"HPEXPIREAT h 70368744177663 FIELDS 1 a", INTS1(1), NULL},
    {"HPEXPIRETIME h FIELDS 1 a", INTS1(70368744177663), NULL},
    {"HEXPIRETIME h FIELDS 1 a", INTS1(70368744178), NULL},
    {"HEXPIRE h 1 FIELD 1 a", NO_FIELDS, NULL},
    {"HEXPIRE h 1 NX XX FIELDS 1 a", NO_FIELDS, NULL},
    {"HEXPIRE h 1 FIELDS x a", NOT_OVER_0, NULL},
    {"HEXPIRE h 1 FIELDS 0 a", NOT_OVER_0, NULL},
    {"HEXPIRE h 1 FIELDS 2 a", MISMATCH, NULL},
    {"HEXPIRE h 1 FIELDS 1 a b", MISMATCH, NULL},
    {"HTTL h FIELD 1 a", NO_FIELDS, NULL},
    {"HTTL h FIELDS 0 a", NOT_POSITIVE, NULL},
    {"HTTL h FIELDS 3 a", MISMATCH, NULL},
    {"HPERSIST h FIELDS -1 a", NOT_POSITIVE, NULL},
    {"HGETDEL h FIELDX 1 a", NO_FIELDS, NULL},
    {"HGETDEL h FIELDS 2 a", MISMATCH, NULL},
    {"HGETEX h EX x FIELDS 1 a", NOT_INT, NULL},
    {"HGETEX h EX -1 FIELDS 1 a", ERR("invalid expire time, must be >= 0"), NULL},
    {"HGETEX h KEEPTTL FIELDS 1 a", NO_FIELDS, NULL},
    {"HGETEX h EX 10 FIELDS", ERR("wrong number of arguments for 'hgetex' command"), NULL},
    {"HSETEX h EX 1 PX 1 FIELDS 1 a b",
     ERR("Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"), NULL},
    {"HSETEX h FXX FNX FIELDS 1 a b", ERR("Only one of FXX or FNX arguments can be specified"),
     NULL},
    {"HSETEX h XX FIELDS 1 a b", ERR("unknown argument: XX"), NULL},
    {"HSETEX h FIELDS x a b", ERR("invalid number of fields"), NULL},
    {"HSETEX h FIELDS 2 a b", ERR("wrong number of arguments for 'hsetex' command"), NULL},
    {"HSETEX h FIELDS 1 a b c", ERR("wrong number of arguments for 'hsetex' command"), NULL},
    {"HSETEX h KEEPTTL FNX a b", ERR("unknown argument: a"), NULL},
    {"HSETEX h FNX KEEPTTL EX",
     ERR("Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be "
         "specified"),
     NULL},
    {"HSETEX h FNX EX", ERR("missing expire time"), NULL},
    {"HGET h a", BULK(1, "1"), NULL},
    {NULL, NULL, NULL},
};

static const struct step getting[] = {
    {"HGETDEL nosuch FIELDS 2 a b", "*2\r\n$-1\r\n$-1\r\n", "*2\r\n_\r\n_\r\n"},
    {"HSET h a 1 b 2 c 3", INT(3), NULL},
    {"HEXPIRE h 10 FIELDS 2 a b", INTS2(1, 1), NULL},
    {"HGETDEL h FIELDS 3 a x a", "*3\r\n$1\r\n1\r\n$-1\r\n$-1\r\n", "*3\r\n$1\r\n1\r\n_\r\n_\r\n"},
    {"HKEYS h", "*2\r\n$1\r\nb\r\n$1\r\nc\r\n", NULL},
    {"HGETEX h FIELDS 2 b c", "*2\r\n$1\r\n2\r\n$1\r\n3\r\n", NULL},
    {"HTTL h FIELDS 2 b c", INTS2(10, -1), NULL},
    {"HGETEX h PERSIST FIELDS 2 b c", "*2\r\n$1\r\n2\r\n$1\r\n3\r\n", NULL},
    {"HTTL h FIELDS 2 b c", INTS2(-1, -1), NULL},
    {"HGETEX h PX 100 FIELDS 2 b x", "*2\r\n$1\r\n2\r\n$-1\r\n", "*2\r\n$1\r\n2\r\n_\r\n"},
    {"HPTTL h FIELDS 1 b", INTS1(100), NULL},
    {"HGETEX h EXAT 1 FIELDS 1 c", "*1\r\n$1\r\n3\r\n", NULL},
    {"HKEYS h", "*1\r\n$1\r\nb\r\n", NULL},
    {"HGETEX h PXAT 5 FIELDS 1 b", "*1\r\n$1\r\n2\r\n", NULL},
    {"@keys", INT(0), NULL},
    {"HGETEX h EX 5 FIELDS 1 b", "*1\r\n$-1\r\n", "*1\r\n_\r\n"},
    {"HSET h a 1", INT(1), NULL},
    {"HGETDEL h FIELDS 1 a", "*1\r\n$1\r\n1\r\n", NULL},
    {"@keys", INT(0), NULL},
    {NULL, NULL, NULL},
};

static const struct step setting[] = {
    {"HSETEX h FXX FIELDS 1 a 1", INT(0), NULL},
    {"@keys", INT(0), NULL},
    {"HSETEX h EX 10 FIELDS 2 a 1 b 2", INT(1), NULL},
    {"HTTL h FIELDS 2 a b", INTS2(10, 10), NULL},
    {"HSETEX h FNX FIELDS 2 c 1 a 2", INT(0), NULL},
    {"HSETEX h FXX PX 5000 FIELDS 2 a 3 c 3", INT(0), NULL},
    {"HSETEX h FXX PX 5000 FIELDS 1 a 3", INT(1), NULL},
    {"HSETEX h KEEPTTL FIELDS 2 b 4 c 4", INT(1), NULL},
    {"HMGET h a b c", "*3\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n4\r\n", NULL},
    {"HTTL h FIELDS 3 a b c", INTS3(5, 10, -1), NULL},
    {"HSETEX h FIELDS 1 b 5", INT(1), NULL},
    {"HTTL h FIELDS 1 b", INTS1(-1), NULL},
    {"HSETEX h PXAT 1 FIELDS 2 b 6 d 6", INT(1), NULL},
    {"HKEYS h", "*2\r\n$1\r\na\r\n$1\r\nc\r\n", NULL},
    {"HSETEX new EXAT 0 FIELDS 1 a 1", INT(1), NULL},
    {"@keys", INT(1), NULL},
    {"@pass 5001", OK, NULL},
    {"HSETEX h FNX KEEPTTL FIELDS 1 a 7", INT(1), NULL},
    {"HTTL h FIELDS 1 a", INTS1(-1), NULL},
    {NULL, NULL, NULL},
};

#define SCRIPT(name)                                                                               \
    static void name##_as_redis(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        driver_run_script(name);                                                                   \
    }
SCRIPT(expiries)
SCRIPT(writes)
SCRIPT(conditions)
SCRIPT(errors)
SCRIPT(getting)
SCRIPT(setting)

/* ---- against an oracle ---- */

#define FIELDS_MOST 64
#define NAME(i) (i), (i)*7919 /* of a field; some of them share a weak hash */
#define PAD_MOST 5000

static char padding[PAD_MOST + 1];

struct oracle {
    struct driver *driver;
    uint64_t random;
    uint32_t fields, pad; /* pad: bytes of a value, so that the hash takes one form or the other */
    int64_t now_ms;
    struct {
        bool exists;
        int value;
        int64_t expire_ms; /* -1: none */
    } at[FIELDS_MOST];
};

static uint32_t draw(struct oracle *oracle, uint32_t below)
{
    oracle->random = oracle->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(oracle->random >> 33) % below;
}

static bool shows(const struct oracle *oracle, uint32_t i)
{
    return oracle->at[i].exists &&
           (oracle->at[i].expire_ms < 0 || oracle->at[i].expire_ms >= oracle->now_ms);
}

static uint32_t count_shown(const struct oracle *oracle)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < oracle->fields; i++)
        count += shows(oracle, i);
    return count;
}

static int text_number(struct driver *driver, const char *command, uint32_t i)
{
    const char *reply = driver_text(driver, "%s h FIELDS 1 f%u:%u", command, NAME(i));
    assert_memory_equal(reply, "*1\r\n:", 5);
    return atoi(reply + 5);
}

static void check_field(struct oracle *oracle, uint32_t i)
{
    bool shown = shows(oracle, i);
    int64_t expire_ms = oracle->at[i].expire_ms;
    int left = !shown ? -2 : expire_ms < 0 ? -1 : (int)(expire_ms - oracle->now_ms);
    assert_int_equal(driver_number(driver_text(oracle->driver, "HEXISTS h f%u:%u", NAME(i))),
                     shown);
    assert_int_equal(text_number(oracle->driver, "HPTTL", i), left);
    const char *value = driver_text(oracle->driver, "HGET h f%u:%u", NAME(i));
    if (!shown) {
        assert_string_equal(value, "$-1\r\n");
        return;
    }
    assert_int_equal(atoi(strchr(value, '\n') + 1), oracle->at[i].value);
}

static void check_all(struct oracle *oracle)
{
    uint32_t count = count_shown(oracle), half = (count + 1) / 2;
    struct driver *driver = oracle->driver;
    assert_int_equal(driver_number(driver_text(driver, "HLEN h")), count);
    assert_int_equal(driver_number(driver_text(driver, "HKEYS h")), count);
    assert_int_equal(driver_number(driver_text(driver, "HRANDFIELD h %u", half)), half);
    assert_int_equal(driver_number(driver_text(driver, "HRANDFIELD h -3")), count == 0 ? 0 : 3);
    const char *one = driver_text(driver, "HRANDFIELD h");
    if (count > 0)
        assert_true(shows(oracle, (uint32_t)atoi(strchr(one, 'f') + 1)));
    else
        assert_string_equal(one, "$-1\r\n");
    check_field(oracle, draw(oracle, oracle->fields));
}

/* Every random field of a reply must be shown, and no two the same. */
static void check_sample(struct oracle *oracle)
{
    bool met[FIELDS_MOST] = {false};
    const char *at = driver_text(oracle->driver, "HRANDFIELD h %u", 1 + count_shown(oracle) / 2);
    while ((at = strchr(at, 'f')) != NULL) {
        uint32_t i = (uint32_t)atoi(++at);
        assert_true(shows(oracle, i) && !met[i]);
        met[i] = true;
    }
}

static void set(struct oracle *oracle, uint32_t i)
{
    int value = (int)draw(oracle, 1000);
    const char *reply = driver_text(oracle->driver, "HSET h f%u:%u %d%.*s", NAME(i), value,
                                    (int)oracle->pad, padding);
    assert_int_equal(driver_number(reply), !shows(oracle, i));
    oracle->at[i].exists = true;
    oracle->at[i].value = value;
    oracle->at[i].expire_ms = -1;
}

static void expire(struct oracle *oracle, uint32_t i)
{
    uint32_t after = draw(oracle, 40);
    const char *reply =
        driver_text(oracle->driver, "HPEXPIRE h %u FIELDS 1 f%u:%u", after, NAME(i));
    assert_int_equal(atoi(reply + 5), !shows(oracle, i) ? -2 : after == 0 ? 2 : 1);
    if (!shows(oracle, i))
        return;
    oracle->at[i].exists = after > 0;
    oracle->at[i].expire_ms = oracle->now_ms + after;
}

static void persist(struct oracle *oracle, uint32_t i)
{
    bool expires = oracle->at[i].expire_ms >= 0;
    const char *reply = driver_text(oracle->driver, "HPERSIST h FIELDS 1 f%u:%u", NAME(i));
    assert_int_equal(atoi(reply + 5), !shows(oracle, i) ? -2 : expires ? 1 : -1);
    if (shows(oracle, i))
        oracle->at[i].expire_ms = -1;
}

static void remove_field(struct oracle *oracle, uint32_t i)
{
    assert_int_equal(driver_number(driver_text(oracle->driver, "HDEL h f%u:%u", NAME(i))),
                     shows(oracle, i));
    if (shows(oracle, i))
        oracle->at[i].exists = false;
}

/* With its expiry kept. */
static void overwrite(struct oracle *oracle, uint32_t i)
{
    int value = (int)draw(oracle, 1000);
    const char *reply = driver_text(oracle->driver, "HSETEX h KEEPTTL FIELDS 1 f%u:%u %d%.*s",
                                    NAME(i), value, (int)oracle->pad, padding);
    assert_int_equal(driver_number(reply), 1);
    if (!shows(oracle, i))
        oracle->at[i].expire_ms = -1;
    oracle->at[i].exists = true;
    oracle->at[i].value = value;
}

/* Time passes; at times, what has expired is removed. */
static void pass(struct oracle *oracle)
{
    uint32_t ms = draw(oracle, 15), due = 0;
    driver_text(oracle->driver, "@pass %u", ms);
    oracle->now_ms += ms;
    if (draw(oracle, 2) == 0)
        return;
    for (uint32_t i = 0; i < oracle->fields; i++) {
        due += oracle->at[i].exists && !shows(oracle, i);
        oracle->at[i].exists = shows(oracle, i);
    }
    assert_int_equal(driver_number(driver_text(oracle->driver, "@wake h")), due);
}

static void step(struct oracle *oracle)
{
    uint32_t i = draw(oracle, oracle->fields), choice = draw(oracle, 12);
    if (choice < 3)
        set(oracle, i);
    else if (choice < 6)
        expire(oracle, i);
    else if (choice == 6)
        persist(oracle, i);
    else if (choice == 7)
        remove_field(oracle, i);
    else if (choice == 8)
        overwrite(oracle, i);
    else
        pass(oracle);
}

static void run_oracle(struct driver *driver, uint64_t seed, uint32_t fields, uint32_t pad)
{
    struct oracle oracle = {.driver = driver, .random = seed, .fields = fields, .pad = pad};
    memset(padding, 'x', PAD_MOST);
    for (uint32_t i = 0; i < 400; i++) {
        step(&oracle);
        check_all(&oracle);
        if (i % 16 == 0)
            check_sample(&oracle);
    }
}

static void a_packed_hash_is_as_its_oracle(struct driver *driver)
{
    run_oracle(driver, seed_for("packed"), 10, 5);
}

/* It begins packed, and becomes a tree. */
static void a_large_hash_is_as_its_oracle(struct driver *driver)
{
    run_oracle(driver, seed_for("large"), FIELDS_MOST, 80);
}

static void a_big_hash_is_as_its_oracle(struct driver *driver)
{
    driver_text(driver, "@config hash-max-listpack-entries 2");
    run_oracle(driver, seed_for("big"), FIELDS_MOST, 100);
}

/* Values that do not fit into a node change their fields' keys without being moved. */
static void long_values_stay_where_they_are(struct driver *driver)
{
    run_oracle(driver, seed_for("long values"), 8, 5000);
}

static void as_many_as_are_due_go_at_a_time(struct driver *driver)
{
    for (int i = 0; i < 300; i++)
        driver_text(driver, "HSETEX h PX %d FIELDS 1 field:%d value", 10 + i % 2, i);
    driver_text(driver, "HSET h stays 1");
    driver_text(driver, "@pass 11");
    assert_int_equal(driver_number(driver_text(driver, "HLEN h")), 151);
    int removed = 0, wakes = 0;
    for (int n; (n = driver_number(driver_text(driver, "@wake h"))) > 0; wakes++)
        removed += n;
    assert_int_equal(removed, 150);
    assert_int_equal(wakes, 3);
    assert_int_equal(driver_number(driver_text(driver, "HLEN h")), 151);
}

#define LARGE(test)                                                                                \
    static void large_##test(void **state)                                                         \
    {                                                                                              \
        (void)state;                                                                               \
        driver_in_stores(test);                                                                    \
    }
LARGE(a_packed_hash_is_as_its_oracle)
LARGE(a_large_hash_is_as_its_oracle)
LARGE(a_big_hash_is_as_its_oracle)
LARGE(long_values_stay_where_they_are)
LARGE(as_many_as_are_due_go_at_a_time)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expiries_as_redis),
        cmocka_unit_test(writes_as_redis),
        cmocka_unit_test(conditions_as_redis),
        cmocka_unit_test(errors_as_redis),
        cmocka_unit_test(getting_as_redis),
        cmocka_unit_test(setting_as_redis),
        cmocka_unit_test(large_a_packed_hash_is_as_its_oracle),
        cmocka_unit_test(large_a_large_hash_is_as_its_oracle),
        cmocka_unit_test(large_a_big_hash_is_as_its_oracle),
        cmocka_unit_test(large_long_values_stay_where_they_are),
        cmocka_unit_test(large_as_many_as_are_due_go_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
