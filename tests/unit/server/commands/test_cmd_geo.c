/*
 * The geo commands: scripts of commands and replies, as stock Redis gives them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/unit/command_driver.h"

#define ARRAY(n) "*" #n "\r\n"
#define NIL_ARRAY "*-1\r\n"
#define DOUBLE(text) "," text "\r\n"
#define NOT_FLOAT ERR("value is not a valid float")
#define NOT_UNIT ERR("unsupported unit provided. please use M, KM, FT, MI")
#define SICILY "GEOADD g 13.361389 38.115556 P 15.087269 37.502669 C"

static const struct step adding[] = {
    {SICILY, INT(2), NULL},
    {"ZRANGE g 0 -1 WITHSCORES",
     ARRAY(4) BULK(1, "P") BULK(16, "3479099956230698") BULK(1, "C") BULK(16, "3479447370796909"),
     ARRAY(2) ARRAY(2) BULK(1, "P") DOUBLE("3479099956230698") ARRAY(2) BULK(1, "C")
         DOUBLE("3479447370796909")},
    {"GEOADD g 13.361389 38.115556 P", INT(0), NULL},
    {"GEOADD g CH 13 38 P 15 37 E", INT(2), NULL},
    {"GEOADD g nx CH 1 1 P 2 2 new", INT(1), NULL},
    {"GEOADD g XX ch 1 1 P 2 2 newer", INT(1), NULL},
    {"ZCARD g", INT(4), NULL},
    {"GEOADD none XX 1 1 P", INT(0), NULL},
    {"@keys", INT(1), NULL},
    {"GEOADD g NX XX 1 1 P", SYNTAX, NULL},
    {"GEOADD g CH CH CH", SYNTAX, NULL},
    {"GEOADD g GT 1 1 P", SYNTAX, NULL},
    {"GEOADD g 1 1 P 2 2", SYNTAX, NULL},
    {"GEOADD g 1 1 new x 1 P", NOT_FLOAT, NULL},
    {"GEOADD g 1 nan P", NOT_FLOAT, NULL},
    {"GEOADD g 1 1 new 180.1 0 P", ERR("invalid longitude,latitude pair 180.100000,0.000000"),
     NULL},
    {"GEOADD g -inf 85.1 P", ERR("invalid longitude,latitude pair -inf,85.100000"), NULL},
    {"ZCARD g", INT(4), NULL},
    {"SET s x", OK, NULL},
    {"GEOADD s 1 1 P", WRONG, NULL},
    {"GEOADD s 181 1 P", ERR("invalid longitude,latitude pair 181.000000,1.000000"), NULL},
    {NULL, NULL, NULL},
};

#define POINT(a, x, b, y) ARRAY(2) BULK(a, x) BULK(b, y)
#define POINT3(x, y) ARRAY(2) DOUBLE(x) DOUBLE(y)

static const struct step reading[] = {
    {SICILY, INT(2), NULL},
    {"GEOPOS g P none",
     ARRAY(2) POINT(20, "13.36138933897018433", 20, "38.11555639549629859") NIL_ARRAY,
     ARRAY(2) POINT3("13.36138933897018433", "38.11555639549629859") "_\r\n"},
    {"GEOPOS g", ARRAY(0), NULL},
    {"GEOPOS none P", ARRAY(1) NIL_ARRAY, ARRAY(1) "_\r\n"},
    {"GEOHASH g P C none", ARRAY(3) BULK(11, "sqc8b49rny0") BULK(11, "sqdtr74hyu0") NIL, NULL},
    {"GEOHASH none P", ARRAY(1) NIL, NULL},
    {"GEODIST g P C", BULK(11, "166274.1516"), NULL},
    {"GEODIST g C P KM", BULK(8, "166.2742"), NULL},
    {"GEODIST g P C mi", BULK(8, "103.3182"), NULL},
    {"GEODIST g P C ft", BULK(11, "545518.8700"), NULL},
    {"GEODIST g P P", BULK(6, "0.0000"), NULL},
    {"GEODIST g P none", NIL, NULL},
    {"GEODIST none P C", NIL, NULL},
    {"GEODIST none P C miles", NOT_UNIT, NULL},
    {"GEODIST g P C m m", SYNTAX, NULL},
    {"SET s x", OK, NULL},
    {"GEOPOS s P", WRONG, NULL},
    {"GEOHASH s P", WRONG, NULL},
    {"GEODIST s P C", WRONG, NULL},
    {NULL, NULL, NULL},
};

/* The corners of the map, and scores that are no geohashes. */
static const struct step edges[] = {
    {"GEOADD e 180 85.05112878 ne -180 -85.05112878 sw 0 0 o", INT(3), NULL},
    {"ZSCORE e ne", BULK(17, "13510798882111488"), DOUBLE("13510798882111488")},
    {"ZSCORE e sw", BULK(1, "0"), DOUBLE("0")},
    {"GEOPOS e ne", ARRAY(1) POINT(3, "180", 19, "85.0511287799999991"),
     ARRAY(1) POINT3("180", "85.0511287799999991")},
    {"GEOPOS e sw", ARRAY(1) POINT(22, "-179.99999731779098511", 21, "-85.05112751263942528"),
     ARRAY(1) POINT3("-179.99999731779098511", "-85.05112751263942528")},
    {"GEOPOS e o", ARRAY(1) POINT(19, "0.00000268220901489", 19, "0.00000126736058093"),
     ARRAY(1) POINT3("0.00000268220901489", "0.00000126736058093")},
    {"GEOHASH e ne sw o",
     ARRAY(3) BULK(11, "bp05b5048p0") BULK(11, "00bh0hbj200") BULK(11, "s0000000000"), NULL},
    {"GEODIST e ne sw", BULK(13, "18919844.5891"), NULL},
    {"ZADD odd -1 a 1.5 b 1e300 c -inf d 9223372036854775808 e", INT(5), NULL},
    {"GEOHASH odd a b c d e",
     ARRAY(5) BULK(11, "bp05b5048p0") BULK(11, "00bh0hbj210") BULK(11, "00bh0hbj200")
         BULK(11, "00bh0hbj200") BULK(11, "00bh0hbj200"),
     NULL},
    {"GEOPOS odd d", ARRAY(1) POINT(3, "180", 21, "-85.05112751263942528"),
     ARRAY(1) POINT3("180", "-85.05112751263942528")},
    {NULL, NULL, NULL},
};

static void run_script(void **state)
{
    driver_run_script(*state);
}

/* In a tree. */
static void positions_of_many(void **state)
{
    (void)state;
    struct driver *driver = driver_open(2, 3);
    for (int i = 0; i < 400; i++)
        driver_text(driver, "GEOADD g %d %d member:%d", i % 360 - 180, i % 170 - 85, i);
    assert_string_equal(driver_text(driver, "@form g"), FORM("zset big tree"));
    assert_string_equal(driver_text(driver, "GEOADD g CH 10.5 20.5 member:7"), INT(1));
    assert_string_equal(driver_text(driver, "GEODIST g member:7 member:8 km"),
                        "$10\r\n13734.9156\r\n");
    assert_string_equal(driver_text(driver, "GEOHASH g member:7"), "*1\r\n$11\r\ns5xkwgvv5s0\r\n");
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
        SCRIPT(reading),
        SCRIPT(edges),
        cmocka_unit_test(positions_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
