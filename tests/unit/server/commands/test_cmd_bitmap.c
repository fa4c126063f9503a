/*
 * The commands on bitmaps: scripts of commands and replies, and seeded random runs compared with
 * models that go bit by bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/unit/command_driver.h"

/* ---- scripts ---- */

static const struct step single_bits[] = {
    {"GETBIT k 0", INT(0), NULL},
    {"SETBIT k 7 1", INT(0), NULL},
    {"GET k", BULK(1, "\x01"), NULL},
    {"GETBIT k 7", INT(1), NULL},
    {"GETBIT k 6", INT(0), NULL},
    {"GETBIT k 100", INT(0), NULL},
    {"GETBIT k 4294967295", INT(0), NULL},
    {"SETBIT k 7 0", INT(1), NULL},
    {"SETBIT k 7 0", INT(0), NULL},
    {"GET k", "$1\r\n\\0\r\n", NULL},
    {"SETBIT k 23 0", INT(0), NULL},
    {"GET k", "$3\r\n\\0\\0\\0\r\n", NULL},
    {"SETBIT n 20 1", INT(0), NULL},
    {"GET n", "$3\r\n\\0\\0\x08\r\n", NULL},
    {"SETBIT z 9 0", INT(0), NULL},
    {"GET z", "$2\r\n\\0\\0\r\n", NULL},
    {"SET e 1 EX 5", OK, NULL},
    {"SETBIT e 6 1", INT(0), NULL},
    {"GET e", BULK(1, "3"), NULL},
    {"@ttl e", INT(5000), NULL},
    {"SETBIT k 4294967296 1", BAD_OFFSET, NULL},
    {"SETBIT k -1 1", BAD_OFFSET, NULL},
    {"SETBIT k x 1", BAD_OFFSET, NULL},
    {"SETBIT k #1 1", BAD_OFFSET, NULL},
    {"SETBIT k 9223372036854775807 1", BAD_OFFSET, NULL},
    {"SETBIT k x 2", BAD_OFFSET, NULL},
    {"SETBIT k 1 2", ERR("bit is not an integer or out of range"), NULL},
    {"SETBIT k 1 -1", ERR("bit is not an integer or out of range"), NULL},
    {"SETBIT k 1 x", ERR("bit is not an integer or out of range"), NULL},
    {"GETBIT k 4294967296", BAD_OFFSET, NULL},
    {"GETBIT k -1", BAD_OFFSET, NULL},
    {"GETBIT k ''", BAD_OFFSET, NULL},
    {"@list l", OK, NULL},
    {"SETBIT l 0 1", WRONG, NULL},
    {"GETBIT l 0", WRONG, NULL},
    {"GETBIT l x", BAD_OFFSET, NULL},
    {NULL, NULL, NULL},
};

static const struct step bit_count[] = {
    {"BITCOUNT k", INT(0), NULL},
    {"BITCOUNT k 0 -1", INT(0), NULL},
    {"SET k foobar", OK, NULL},
    {"BITCOUNT k", INT(26), NULL},
    {"BITCOUNT k 0 0", INT(4), NULL},
    {"BITCOUNT k 1 1", INT(6), NULL},
    {"BITCOUNT k 0 -1 BYTE", INT(26), NULL},
    {"BITCOUNT k 5 30 BIT", INT(17), NULL},
    {"BITCOUNT k 1 1 bit", INT(1), NULL},
    {"BITCOUNT k -8 -1 BIT", INT(4), NULL},
    {"BITCOUNT k -2 -5", INT(0), NULL},
    {"BITCOUNT k 4 2", INT(0), NULL},
    {"BITCOUNT k 6 10", INT(0), NULL},
    {"BITCOUNT k 48 100 BIT", INT(0), NULL},
    {"BITCOUNT k -9223372036854775808 9223372036854775807", INT(26), NULL},
    {"BITCOUNT k -9223372036854775808 9223372036854775807 BIT", INT(26), NULL},
    {"BITCOUNT k 0", SYNTAX, NULL},
    {"BITCOUNT k 0 1 what", SYNTAX, NULL},
    {"BITCOUNT k 0 1 BIT BIT", SYNTAX, NULL},
    {"BITCOUNT k x 1", NOT_INT, NULL},
    {"BITCOUNT k 0 x", NOT_INT, NULL},
    {"BITCOUNT k 0 x what", NOT_INT, NULL},
    {"SET e ''", OK, NULL},
    {"BITCOUNT e", INT(0), NULL},
    {"BITCOUNT e 0 0", INT(0), NULL},
    {"@fill big 100003 \"\\xff\"", OK, NULL},
    {"BITCOUNT big", INT(800024), NULL},
    {"BITCOUNT big 10 20", INT(88), NULL},
    {"BITCOUNT big 3 -4 BIT", INT(800018), NULL},
    {"BITCOUNT big 400001 400030 BIT", INT(30), NULL},
    {"SETBIT big 6 0", INT(1), NULL},
    {"BITCOUNT big 0 -1", INT(800023), NULL},
    {"BITCOUNT big 1 -1", INT(800016), NULL},
    {"BITCOUNT big 6 -1 BIT", INT(800017), NULL},
    {"BITCOUNT big 7 -1 BIT", INT(800017), NULL},
    {"@list l", OK, NULL},
    {"BITCOUNT l", WRONG, NULL},
    {"BITCOUNT l 0 1", WRONG, NULL},
    {NULL, NULL, NULL},
};

/* Where 7.2 reads the arguments before it looks for the key, and earlier versions did not. */
static const struct step bit_arguments_first[] = {
    {"BITCOUNT none x y", NOT_INT, NULL},
    {"BITCOUNT none 0 1 what", SYNTAX, NULL},
    {"BITCOUNT none 0", SYNTAX, NULL},
    {"BITCOUNT none -1 -5", INT(0), NULL},
    {"BITCOUNT none 0 x what", NOT_INT, NULL},
    {"BITPOS none 0 1 x what", SYNTAX, NULL},
    {"BITPOS none 0 x", NOT_INT, NULL},
    {"BITPOS none 0 1 x", NOT_INT, NULL},
    {"BITPOS none 1 0 1 what", SYNTAX, NULL},
    {"BITPOS none 0 1 2 BIT 4", SYNTAX, NULL},
    {"@list l", OK, NULL},
    {"BITCOUNT l 0", SYNTAX, NULL},
    {"BITCOUNT l x 0", NOT_INT, NULL},
    {"BITPOS l 0 x", NOT_INT, NULL},
    {NULL, NULL, NULL},
};

static const struct step bit_position[] = {
    {"BITPOS k 0", INT(0), NULL},
    {"BITPOS k 1", INT(-1), NULL},
    {"BITPOS k 0 5", INT(0), NULL},
    {"BITPOS k 1 0 -1", INT(-1), NULL},
    {"SET k \"\\xff\\xf0\\x00\"", OK, NULL},
    {"BITPOS k 0", INT(12), NULL},
    {"BITPOS k 1", INT(0), NULL},
    {"BITPOS k 1 2", INT(-1), NULL},
    {"BITPOS k 0 2", INT(16), NULL},
    {"BITPOS k 1 1", INT(8), NULL},
    {"BITPOS k 0 0 0", INT(-1), NULL},
    {"BITPOS k 0 0 1", INT(12), NULL},
    {"BITPOS k 0 0 -1 BYTE", INT(12), NULL},
    {"BITPOS k 1 4 20 BIT", INT(4), NULL},
    {"BITPOS k 0 4 11 BIT", INT(-1), NULL},
    {"BITPOS k 0 4 12 BIT", INT(12), NULL},
    {"BITPOS k 1 12 -1 BIT", INT(-1), NULL},
    {"BITPOS k 1 11 -1 bit", INT(11), NULL},
    {"BITPOS k 0 -3 -1 BIT", INT(21), NULL},
    {"BITPOS k 1 -1 -3", INT(-1), NULL},
    {"BITPOS k 1 -5 -9", INT(0), NULL},
    {"BITCOUNT k -5 -9", INT(0), NULL},
    {"BITPOS k 0 3", INT(-1), NULL},
    {"BITPOS k 0 9223372036854775807", INT(-1), NULL},
    {"BITPOS k 0 -9223372036854775808 9223372036854775807 BIT", INT(12), NULL},
    {"SET k \"\\xff\\xff\\xff\"", OK, NULL},
    {"BITPOS k 0", INT(24), NULL},
    {"BITPOS k 0 1", INT(24), NULL},
    {"BITPOS k 0 0 -1", INT(-1), NULL},
    {"BITPOS k 0 0 -1 BIT", INT(-1), NULL},
    {"SET k \"\\x00\\x00\"", OK, NULL},
    {"BITPOS k 1", INT(-1), NULL},
    {"SET e ''", OK, NULL},
    {"BITPOS e 0", INT(-1), NULL},
    {"BITPOS e 1", INT(-1), NULL},
    {"BITPOS k 2", ERR("The bit argument must be 1 or 0."), NULL},
    {"BITPOS k -1", ERR("The bit argument must be 1 or 0."), NULL},
    {"BITPOS k x", NOT_INT, NULL},
    {"BITPOS k 0 x", NOT_INT, NULL},
    {"BITPOS k 0 0 x", NOT_INT, NULL},
    {"BITPOS k 0 0 x what", SYNTAX, NULL},
    {"BITPOS k 0 0 1 what", SYNTAX, NULL},
    {"BITPOS k 0 0 1 BIT 1", SYNTAX, NULL},
    {"@fill big 100003 \"\\xff\"", OK, NULL},
    {"BITPOS big 0", INT(800024), NULL},
    {"SETBIT big 700001 0", INT(1), NULL},
    {"BITPOS big 0", INT(700001), NULL},
    {"BITPOS big 0 700002 -1 BIT", INT(-1), NULL},
    {"BITPOS big 0 87500 87501", INT(700001), NULL},
    {"@list l", OK, NULL},
    {"BITPOS l 0", WRONG, NULL},
    {"BITPOS l 1 0 1", WRONG, NULL},
    {NULL, NULL, NULL},
};

static const struct step bit_op[] = {
    {"MSET a abcdefghijk b ABC", OK, NULL},
    {"BITOP AND d a b", INT(11), NULL},
    {"GET d", "$11\r\nABC\\0\\0\\0\\0\\0\\0\\0\\0\r\n", NULL},
    {"BITOP or d a b", INT(11), NULL},
    {"GET d", BULK(11, "abcdefghijk"), NULL},
    {"BITOP XOR d b a", INT(11), NULL},
    {"GET d", BULK(11, "   defghijk"), NULL},
    {"BITOP XOR d a a", INT(11), NULL},
    {"GET d", "$11\r\n\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\r\n", NULL},
    {"BITOP NOT d b", INT(3), NULL},
    {"GET d", BULK(3, "\xbe\xbd\xbc"), NULL},
    {"BITOP NOT d a", INT(11), NULL},
    {"BITCOUNT d", INT(46), NULL},
    {"BITOP AND d a none", INT(11), NULL},
    {"GET d", "$11\r\n\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\r\n", NULL},
    {"BITOP OR d none a", INT(11), NULL},
    {"GET d", BULK(11, "abcdefghijk"), NULL},
    {"BITOP XOR d a b a", INT(11), NULL},
    {"GET d", "$11\r\nABC\\0\\0\\0\\0\\0\\0\\0\\0\r\n", NULL},
    {"BITOP AND d b a b", INT(11), NULL},
    {"GET d", "$11\r\nABC\\0\\0\\0\\0\\0\\0\\0\\0\r\n", NULL},
    {"BITOP AND d b", INT(3), NULL},
    {"GET d", BULK(3, "ABC"), NULL},
    {"BITOP NOT b b", INT(3), NULL},
    {"GET b", BULK(3, "\xbe\xbd\xbc"), NULL},
    {"SET t x EX 100", OK, NULL},
    {"BITOP OR t a", INT(11), NULL},
    {"@ttl t", INT(-1), NULL},
    {"BITOP OR t none none", INT(0), NULL},
    {"GET t", NIL, NULL},
    {"BITOP NOT t none", INT(0), NULL},
    {"@list l", OK, NULL},
    {"BITOP AND d a l", WRONG, NULL},
    {"BITOP NOT d l", WRONG, NULL},
    {"GET d", BULK(3, "ABC"), NULL},
    {"BITOP AND l a", INT(11), NULL},
    {"GET l", BULK(11, "abcdefghijk"), NULL},
    {"BITOP NOT d a b", ERR("BITOP NOT must be called with a single source key."), NULL},
    {"BITOP NAND d a b", SYNTAX, NULL},
    {"@fill big 70001 \"\\x0f\"", OK, NULL},
    {"@fill other 50000 \"\\xff\"", OK, NULL},
    {"BITOP XOR d big other", INT(70001), NULL},
    {"BITCOUNT d 0 49999", INT(200000), NULL},
    {"GETRANGE d 49998 50001", BULK(4, "\xf0\xf0\x0f\x0f"), NULL},
    {"BITOP AND d big other", INT(70001), NULL},
    {"GETRANGE d 49998 50001", "$4\r\n\x0f\x0f\\0\\0\r\n", NULL},
    {NULL, NULL, NULL},
};

#define BAD_TYPE                                                                                   \
    ERR("Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but "    \
        "i64 is.")

static const struct step bit_field[] = {
    {"BITFIELD k", "*0\r\n", NULL},
    {"BITFIELD k GET u8 0", "*1\r\n" INT(0), NULL},
    {"GET k", NIL, NULL},
    {"BITFIELD k SET u8 0 255 GET u8 0 GET i8 0 GET u4 2", "*4\r\n" INT(0) INT(255) INT(-1) INT(15),
     NULL},
    {"GET k", BULK(1, "\xff"), NULL},
    {"BITFIELD k INCRBY u8 0 1 INCRBY i8 0 -1", "*2\r\n" INT(0) INT(-1), NULL},
    {"BITFIELD k SET i5 3 -7 GET i5 3 GET u5 3", "*3\r\n" INT(-1) INT(-7) INT(25), NULL},
    {"BITFIELD k set u16 #1 4660 get u8 #2 GET u8 #3", "*3\r\n" INT(0) INT(18) INT(52), NULL},
    {"STRLEN k", INT(4), NULL},
    {"BITFIELD n SET i64 3 -2 GET i64 3 GET u63 4",
     "*3\r\n" INT(0) INT(-2) INT(9223372036854775806), NULL},
    {"STRLEN n", INT(9), NULL},
    {"BITFIELD m SET i64 0 -9223372036854775808 INCRBY i64 0 -1",
     "*2\r\n" INT(0) INT(9223372036854775807), NULL},
    {"BITFIELD m OVERFLOW SAT INCRBY i64 0 1 OVERFLOW FAIL INCRBY i64 0 1 OVERFLOW WRAP INCRBY "
     "i64 0 1",
     "*3\r\n" INT(9223372036854775807) NIL INT(-9223372036854775808), NULL},
    {"BITFIELD m OVERFLOW sat INCRBY i64 0 -9223372036854775808 GET i64 0",
     "*2\r\n" INT(-9223372036854775808) INT(-9223372036854775808), NULL},
    {"BITFIELD s OVERFLOW SAT SET i8 0 200 GET i8 0 SET i8 0 -200 GET i8 0",
     "*4\r\n" INT(0) INT(127) INT(127) INT(-128), NULL},
    {"BITFIELD s OVERFLOW FAIL SET i8 0 200 GET i8 0 SET i8 0 -129 SET i8 0 5 SET i8 0 1",
     "*5\r\n" NIL INT(-128) NIL INT(-128) INT(5), NULL},
    {"BITFIELD s SET i8 0 200 GET i8 0 SET i8 0 -129 GET i8 0",
     "*4\r\n" INT(1) INT(-56) INT(-56) INT(127), NULL},
    {"BITFIELD u OVERFLOW SAT SET u8 0 256 GET u8 0 INCRBY u8 0 10 INCRBY u8 0 -300",
     "*4\r\n" INT(0) INT(255) INT(255) INT(0), NULL},
    {"BITFIELD u OVERFLOW SAT SET u8 0 -1 GET u8 0", "*2\r\n" INT(0) INT(255), NULL},
    {"BITFIELD u OVERFLOW SAT SET u8 0 -9223372036854775808 GET u8 0", "*2\r\n" INT(255) INT(255),
     NULL},
    /* The nearest number is the least one. (Redis gives 127: its bound wraps around so far out.) */
    {"BITFIELD u OVERFLOW SAT SET i8 8 -9223372036854775808 GET i8 8", "*2\r\n" INT(0) INT(-128),
     NULL},
    {"BITFIELD u OVERFLOW FAIL SET u8 0 -1 INCRBY u8 0 1 INCRBY u8 0 -256", "*3\r\n" NIL NIL NIL,
     NULL},
    {"BITFIELD u SET u8 0 -2 GET u8 0 INCRBY u8 0 3 INCRBY u8 0 -2",
     "*4\r\n" INT(255) INT(254) INT(1) INT(255), NULL},
    {"BITFIELD u INCRBY u8 0 9223372036854775807 INCRBY u8 0 -9223372036854775808",
     "*2\r\n" INT(254) INT(254), NULL},
    {"BITFIELD v INCRBY u63 1 9223372036854775807 INCRBY u63 1 1",
     "*2\r\n" INT(9223372036854775807) INT(0), NULL},
    {"BITFIELD v OVERFLOW SAT INCRBY u63 1 9223372036854775807 INCRBY u63 1 5",
     "*2\r\n" INT(9223372036854775807) INT(9223372036854775807), NULL},
    {"BITFIELD w OVERFLOW SAT SET i1 0 1 GET i1 0 SET i1 0 -5 GET i1 0 GET u1 0",
     "*5\r\n" INT(0) INT(0) INT(0) INT(-1) INT(1), NULL},
    {"BITFIELD o OVERFLOW FAIL INCRBY u2 70 5", "*1\r\n" NIL, NULL},
    {"GET o", "$9\r\n\\0\\0\\0\\0\\0\\0\\0\\0\\0\r\n", NULL},
    {"SET t a PX 7000", OK, NULL},
    {"BITFIELD t SET u8 8 98", "*1\r\n" INT(0), NULL},
    {"GET t", BULK(2, "ab"), NULL},
    {"@ttl t", INT(7000), NULL},
    {"BITFIELD_RO t GET u8 0 GET u8 #1 GET u8 100", "*3\r\n" INT(97) INT(98) INT(0), NULL},
    {"BITFIELD_RO none GET i64 0", "*1\r\n" INT(0), NULL},
    {"BITFIELD_RO t", "*0\r\n", NULL},
    {"BITFIELD_RO t OVERFLOW SAT GET u8 0", "*1\r\n" INT(97), NULL},
    {"BITFIELD_RO t GET u8 0 SET u8 0 1", ERR("BITFIELD_RO only supports the GET subcommand"),
     NULL},
    {"BITFIELD_RO t INCRBY u8 0 1", ERR("BITFIELD_RO only supports the GET subcommand"), NULL},
    {"BITFIELD_RO t INCRBY u8 0", SYNTAX, NULL},
    {NULL, NULL, NULL},
};

static const struct step bit_field_errors[] = {
    {"SET k a", OK, NULL},
    {"BITFIELD k GET u64 0", BAD_TYPE, NULL},
    {"BITFIELD k GET i65 0", BAD_TYPE, NULL},
    {"BITFIELD k GET i0 0", BAD_TYPE, NULL},
    {"BITFIELD k GET u0 0", BAD_TYPE, NULL},
    {"BITFIELD k GET u 0", BAD_TYPE, NULL},
    {"BITFIELD k GET '' 0", BAD_TYPE, NULL},
    {"BITFIELD k GET U8 0", BAD_TYPE, NULL},
    {"BITFIELD k GET 8 0", BAD_TYPE, NULL},
    {"BITFIELD k GET u-8 0", BAD_TYPE, NULL},
    {"BITFIELD k GET u8 -1", BAD_OFFSET, NULL},
    {"BITFIELD k GET u8 x", BAD_OFFSET, NULL},
    {"BITFIELD k GET u8 #", BAD_OFFSET, NULL},
    {"BITFIELD k GET u8 #-1", BAD_OFFSET, NULL},
    {"BITFIELD k GET u8 4294967296", BAD_OFFSET, NULL},
    {"BITFIELD k SET u8 4294967296 1", BAD_OFFSET, NULL},
    {"BITFIELD k SET u8 #536870912 1", BAD_OFFSET, NULL},
    {"BITFIELD k GET u8 #9223372036854775807", BAD_OFFSET, NULL},
    {"BITFIELD k GET u3 #6148914691236517206", BAD_OFFSET, NULL}, /* times 3 is 2^64 + 2 */
    {"BITFIELD k GET u8 4294967295", "*1\r\n" INT(0), NULL},
    {"BITFIELD k GET u8", SYNTAX, NULL},
    {"BITFIELD k SET u8 0", SYNTAX, NULL},
    {"BITFIELD k INCRBY u8 0", SYNTAX, NULL},
    {"BITFIELD k SET u8 0 x", NOT_INT, NULL},
    {"BITFIELD k INCRBY u8 0 9223372036854775808", NOT_INT, NULL},
    {"BITFIELD k OVERFLOW", SYNTAX, NULL},
    {"BITFIELD k OVERFLOW what", ERR("Invalid OVERFLOW type specified"), NULL},
    {"BITFIELD k what u8 0", SYNTAX, NULL},
    {"BITFIELD k SET u8 0 1 what", SYNTAX, NULL},
    {"GET k", BULK(1, "a"), NULL},
    {"@list l", OK, NULL},
    {"BITFIELD l GET u8 0", WRONG, NULL},
    {"BITFIELD l SET u8 0 1", WRONG, NULL},
    {"BITFIELD l", WRONG, NULL},
    {"BITFIELD_RO l GET u8 0", WRONG, NULL},
    {"BITFIELD_RO l SET u8 0 1", ERR("BITFIELD_RO only supports the GET subcommand"), NULL},
    {"BITFIELD l GET u64 0", BAD_TYPE, NULL},
    {NULL, NULL, NULL},
};

/* ---- random bits ---- */

#define BYTES_MAX 6000 /* some values are small to the store, some large */
#define KEY_COUNT 3

struct model {
    struct driver *driver;
    uint64_t random;
    uint8_t bytes[KEY_COUNT][BYTES_MAX];
    size_t len[KEY_COUNT]; /* 0: the key is absent */
};

static uint32_t next_random(struct model *model, uint32_t below)
{
    model->random = model->random * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(model->random >> 33) % below;
}

static bool get_bit(const struct model *model, int key, int64_t at)
{
    return at < (int64_t)model->len[key] * 8 && (model->bytes[key][at / 8] >> (7 - at % 8) & 1);
}

static void put_bit(struct model *model, int key, int64_t at, bool bit)
{
    uint8_t mask = (uint8_t)(1 << (7 - at % 8));
    if ((size_t)(at / 8) >= model->len[key])
        model->len[key] = (size_t)(at / 8) + 1;
    if (bit)
        model->bytes[key][at / 8] |= mask;
    else
        model->bytes[key][at / 8] &= (uint8_t)~mask;
}

static void assert_reply(struct model *model, const char *line, int64_t value)
{
    char expected[32];
    struct resp_slice reply = driver_run_line(model->driver, line);
    int len = snprintf(expected, sizeof(expected), ":%lld\r\n", (long long)value);
    if (reply.len != (size_t)len || memcmp(reply.data, expected, reply.len) != 0)
        fail_msg("%s: expected %s replied %.*s", line, expected, (int)reply.len, reply.data);
}

static void assert_same(struct model *model, int key)
{
    char line[32], header[24];
    snprintf(line, sizeof(line), "GET k%d", key);
    struct resp_slice reply = driver_run_line(model->driver, line);
    if (model->len[key] == 0) {
        assert_int_equal(reply.len, 5);
        assert_memory_equal(reply.data, NIL, 5);
        return;
    }
    size_t header_len = (size_t)snprintf(header, sizeof(header), "$%zu\r\n", model->len[key]);
    assert_int_equal(reply.len, header_len + model->len[key] + 2);
    assert_memory_equal(reply.data + header_len, model->bytes[key], model->len[key]);
}

static void set_random_value(struct model *model, int key)
{
    static const uint8_t fills[] = {0, 0xff};
    size_t len = 1 + next_random(model, next_random(model, 2) ? 40 : BYTES_MAX - 200);
    memset(model->bytes[key], 0, BYTES_MAX);
    memset(model->bytes[key], fills[next_random(model, 2)], len);
    for (uint32_t n = next_random(model, 60); n > 0; n--)
        model->bytes[key][next_random(model, (uint32_t)len)] = (uint8_t)next_random(model, 256);
    model->len[key] = len;
    char name[] = {'k', (char)('0' + key)};
    struct resp_slice set[] = {{"SET", 3}, {name, sizeof(name)}, {(char *)model->bytes[key], len}};
    driver_run(model->driver, set, 3);
}

static void check_setbit(struct model *model, int key)
{
    char line[64];
    int64_t at = next_random(model, (BYTES_MAX - 100) * 8);
    bool bit = next_random(model, 2);
    snprintf(line, sizeof(line), "SETBIT k%d %lld %d", key, (long long)at, bit);
    assert_reply(model, line, get_bit(model, key, at));
    put_bit(model, key, at, bit);
    snprintf(line, sizeof(line), "GETBIT k%d %lld", key, (long long)at);
    assert_reply(model, line, bit);
}

/* The first and last bit that a range means; false if nothing is left of it. */
static bool bits_of_range(int64_t first, int64_t last, int64_t total, int unit, int64_t *from,
                          int64_t *to)
{
    first = first < 0 ? first + total : first;
    last = last < 0 ? last + total : last;
    first = first < 0 ? 0 : first;
    last = last < 0 ? 0 : last;
    last = last >= total ? total - 1 : last;
    *from = first * unit;
    *to = last * unit + unit - 1;
    return first <= last;
}

static void check_ranges(struct model *model, int key)
{
    char line[128];
    int unit = next_random(model, 2) ? 8 : 1;
    int64_t total = (int64_t)model->len[key] * 8 / unit;
    int64_t reach = total + 20, from, to, count = 0, position[2] = {-1, -1};
    int64_t first = (int64_t)next_random(model, (uint32_t)reach * 2) - reach;
    int64_t last = (int64_t)next_random(model, (uint32_t)reach * 2) - reach;
    if (bits_of_range(first, last, total, unit, &from, &to)) {
        for (int64_t at = to; at >= from; at--) {
            count += get_bit(model, key, at);
            position[get_bit(model, key, at)] = at;
        }
    }
    const char *word = unit == 1 ? "BIT" : "BYTE";
    bool backwards = first < 0 && last < 0 && first > last; /* means nothing to BITCOUNT alone */
    snprintf(line, sizeof(line), "BITCOUNT k%d %lld %lld %s", key, (long long)first,
             (long long)last, word);
    assert_reply(model, line, backwards ? 0 : count);
    for (int bit = 0; bit < 2 && model->len[key] > 0; bit++) {
        snprintf(line, sizeof(line), "BITPOS k%d %d %lld %lld %s", key, bit, (long long)first,
                 (long long)last, word);
        assert_reply(model, line, position[bit]);
    }
}

static void check_bitop(struct model *model)
{
    static const char *const names[] = {"AND", "OR", "XOR"};
    uint8_t result[BYTES_MAX] = {0};
    char line[64];
    uint32_t operation = next_random(model, 3);
    int a = (int)next_random(model, KEY_COUNT), b = (int)next_random(model, KEY_COUNT);
    int to = (int)next_random(model, KEY_COUNT);
    size_t len = model->len[a] > model->len[b] ? model->len[a] : model->len[b];
    for (size_t i = 0; i < len; i++) {
        uint8_t x = i < model->len[a] ? model->bytes[a][i] : 0;
        uint8_t y = i < model->len[b] ? model->bytes[b][i] : 0;
        result[i] = (uint8_t)(operation == 0 ? x & y : operation == 1 ? x | y : x ^ y);
    }
    snprintf(line, sizeof(line), "BITOP %s k%d k%d k%d", names[operation], to, a, b);
    assert_reply(model, line, (int64_t)len);
    memcpy(model->bytes[to], result, BYTES_MAX);
    model->len[to] = len;
    assert_same(model, to);
}

/* One BITFIELD of several writes and reads, anywhere in the value: the window has to move. */
static void check_bitfield(struct model *model, int key)
{
    char line[800], expected[400];
    size_t line_len = (size_t)snprintf(line, sizeof(line), "BITFIELD k%d", key);
    int fields = 1 + (int)next_random(model, 6);
    size_t expected_len = (size_t)snprintf(expected, sizeof(expected), "*%d\r\n", fields);
    for (int n = 0; n < fields; n++) {
        int bits = 1 + (int)next_random(model, 63);
        int64_t at = next_random(model, (BYTES_MAX - 10) * 8);
        uint64_t old = 0, value = (uint64_t)next_random(model, 1u << 31) << 31 |
                                  next_random(model, 1u << 31);
        for (int i = 0; i < bits; i++)
            old = old << 1 | get_bit(model, key, at + i);
        if (next_random(model, 3) == 0) {
            line_len += (size_t)snprintf(line + line_len, sizeof(line) - line_len, " GET u%d %lld",
                                         bits, (long long)at);
        } else {
            line_len +=
                (size_t)snprintf(line + line_len, sizeof(line) - line_len, " SET u%d %lld %llu",
                                 bits, (long long)at, (unsigned long long)value);
            for (int i = 0; i < bits; i++)
                put_bit(model, key, at + i, value >> (bits - 1 - i) & 1);
        }
        expected_len += (size_t)snprintf(expected + expected_len, sizeof(expected) - expected_len,
                                         ":%llu\r\n", (unsigned long long)old);
    }
    struct resp_slice reply = driver_run_line(model->driver, line);
    assert_int_equal(reply.len, expected_len);
    assert_memory_equal(reply.data, expected, expected_len);
    assert_same(model, key);
}

static void random_bits(uint64_t seed, uint64_t wait_seed, int rounds)
{
    struct model model = {.driver = driver_open(2, wait_seed), .random = seed};
    for (int round = 0; round < rounds; round++) {
        int key = (int)next_random(&model, KEY_COUNT);
        switch (next_random(&model, 8)) {
        case 0:
            set_random_value(&model, key);
            break;
        case 1:
            check_bitop(&model);
            break;
        case 2:
            check_setbit(&model, key);
            break;
        case 3:
            check_bitfield(&model, key);
            break;
        default:
            check_ranges(&model, key);
        }
    }
    for (int key = 0; key < KEY_COUNT; key++)
        assert_same(&model, key);
    driver_close(model.driver);
}

static void test_random_bits(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        random_bits(seed, DRIVER_NO_WAITS, 3000);
        random_bits(seed, seed, 500);
    }
}

/* ---- tests ---- */

static void test_single_bits(void **state)
{
    (void)state;
    driver_run_script(single_bits);
}

static void test_bit_count(void **state)
{
    (void)state;
    driver_run_script(bit_count);
}

static void test_bit_arguments_first(void **state)
{
    (void)state;
    driver_run_script(bit_arguments_first);
}

static void test_bit_position(void **state)
{
    (void)state;
    driver_run_script(bit_position);
}

static void test_bit_op(void **state)
{
    (void)state;
    driver_run_script(bit_op);
}

static void test_bit_field(void **state)
{
    (void)state;
    driver_run_script(bit_field);
}

static void test_bit_field_errors(void **state)
{
    (void)state;
    driver_run_script(bit_field_errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_bits),
        cmocka_unit_test(test_bit_count),
        cmocka_unit_test(test_bit_arguments_first),
        cmocka_unit_test(test_bit_position),
        cmocka_unit_test(test_bit_op),
        cmocka_unit_test(test_bit_field),
        cmocka_unit_test(test_bit_field_errors),
        cmocka_unit_test(test_random_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
