/*
 * The geo commands: scripts of commands and replies, as stock Redis gives them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/types/geo.h"
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
    {"GEOADD far -90 66 a", INT(1), NULL},
    {"GEOSEARCH far FROMLONLAT -115 70 BYRADIUS 2332 km WITHDIST",
     ARRAY(1) ARRAY(2) BULK(1, "a") BULK(9, "1122.3987"), NULL},
    {"GEOADD line 179.9 10 east -179.9 10 west 0 85 pole", INT(3), NULL},
    {"GEOSEARCH line FROMLONLAT 179.95 10 BYRADIUS 100 km",
     ARRAY(2) BULK(4, "east") BULK(4, "west"), NULL},
    {"GEOSEARCH line FROMMEMBER west BYBOX 100 10 km DESC",
     ARRAY(2) BULK(4, "east") BULK(4, "west"), NULL},
    {"GEOSEARCH line FROMLONLAT 180 -85.05112878 BYRADIUS 0 m", ARRAY(0), NULL},
    {"GEOSEARCH line FROMLONLAT 180 85.05112878 BYRADIUS 2000 km", ARRAY(1) BULK(4, "pole"), NULL},
    {"GEOSEARCH line FROMLONLAT 0 85.05 BYBOX 1000 1000 km", ARRAY(1) BULK(4, "pole"), NULL},
    {NULL, NULL, NULL},
};

static const struct step searching[] = {
    {SICILY, INT(2), NULL},
    {"GEOADD g 12.758489 38.788135 edge1 17.241510 38.788135 edge2", INT(2), NULL},
    {"GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC", ARRAY(2) BULK(1, "C") BULK(1, "P"), NULL},
    {"GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km DESC WITHDIST",
     ARRAY(2) ARRAY(2) BULK(1, "P") BULK(8, "190.4424") ARRAY(2) BULK(1, "C") BULK(7, "56.4413"),
     NULL},
    {"GEOSEARCH g FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHCOORD WITHDIST WITHHASH",
     ARRAY(4) ARRAY(4) BULK(1, "C") BULK(7, "56.4413") INT(3479447370796909) ARRAY(2)
         BULK(20, "15.08726745843887329") BULK(20, "37.50266842333162032") ARRAY(4) BULK(1, "P")
             BULK(8, "190.4424") INT(3479099956230698) ARRAY(2) BULK(20, "13.36138933897018433")
                 BULK(20, "38.11555639549629859") ARRAY(4) BULK(5, "edge2") BULK(8, "279.7403")
                     INT(3481342659049484) ARRAY(2) BULK(20, "17.24151045083999634")
                         BULK(20, "38.78813451624225195") ARRAY(4) BULK(5, "edge1")
                             BULK(8, "279.7405") INT(3479273021651468) ARRAY(2)
                                 BULK(19, "12.7584877610206604") BULK(20, "38.78813451624225195"),
     ARRAY(4) ARRAY(4) BULK(1, "C") BULK(7, "56.4413") INT(3479447370796909) ARRAY(2)
         DOUBLE("15.08726745843887329") DOUBLE("37.50266842333162032") ARRAY(4) BULK(1, "P")
             BULK(8, "190.4424") INT(3479099956230698) ARRAY(2) DOUBLE("13.36138933897018433")
                 DOUBLE("38.11555639549629859") ARRAY(4) BULK(5, "edge2") BULK(8, "279.7403")
                     INT(3481342659049484) ARRAY(2) DOUBLE("17.24151045083999634")
                         DOUBLE("38.78813451624225195") ARRAY(4) BULK(5, "edge1")
                             BULK(8, "279.7405") INT(3479273021651468) ARRAY(2)
                                 DOUBLE("12.7584877610206604") DOUBLE("38.78813451624225195")},
    {"GEOSEARCH g FROMMEMBER C BYRADIUS 300 km",
     ARRAY(4) BULK(1, "P") BULK(5, "edge1") BULK(1, "C") BULK(5, "edge2"), NULL},
    {"GEOSEARCH g FROMMEMBER C BYRADIUS 300 km COUNT 2 WITHDIST",
     ARRAY(2) ARRAY(2) BULK(1, "C") BULK(6, "0.0000") ARRAY(2) BULK(1, "P") BULK(8, "166.2742"),
     NULL},
    {"GEOSEARCH g FROMMEMBER C BYRADIUS 300 km COUNT 1 DESC", ARRAY(1) BULK(5, "edge1"), NULL},
    {"GEOSEARCH g FROMMEMBER C BYRADIUS 300 km COUNT 2 ANY", ARRAY(2) BULK(1, "P") BULK(5, "edge1"),
     NULL},
    {"GEOSEARCH g FROMMEMBER C BYRADIUS 300 km COUNT 2 ANY DESC",
     ARRAY(2) BULK(5, "edge1") BULK(1, "P"), NULL},
    {"GEOSEARCH g FROMMEMBER C BYRADIUS 0 m", ARRAY(1) BULK(1, "C"), NULL},
    {"GEOSEARCH g FROMLONLAT 0 0 BYRADIUS 0 m", ARRAY(0), NULL},
    {"GEOSEARCH g FROMLONLAT 0 0 BYRADIUS 1000000 mi",
     ARRAY(4) BULK(1, "P") BULK(5, "edge1") BULK(1, "C") BULK(5, "edge2"), NULL},
    {"GEOSEARCH none FROMMEMBER C BYRADIUS 1 km", ARRAY(0), NULL},
    {"GEORADIUS g 15 37 200 km WITHDIST",
     ARRAY(2) ARRAY(2) BULK(1, "P") BULK(8, "190.4424") ARRAY(2) BULK(1, "C") BULK(7, "56.4413"),
     NULL},
    {"GEORADIUS_RO g 15 37 200 km WITHHASH COUNT 1",
     ARRAY(1) ARRAY(2) BULK(1, "C") INT(3479447370796909), NULL},
    {"GEORADIUSBYMEMBER g P 200 km", ARRAY(3) BULK(1, "P") BULK(5, "edge1") BULK(1, "C"), NULL},
    {"GEORADIUSBYMEMBER_RO g P 200 km WITHDIST DESC",
     ARRAY(3) ARRAY(2) BULK(1, "C") BULK(8, "166.2742") ARRAY(2) BULK(5, "edge1") BULK(7, "91.4007")
         ARRAY(2) BULK(1, "P") BULK(6, "0.0000"),
     NULL},
    {"GEORADIUSBYMEMBER none P x y", ARRAY(0), NULL},
    {"GEORADIUS none 15 37 200 km", ARRAY(0), NULL},
    {NULL, NULL, NULL},
};

static const struct step errors[] = {
    {"GEOADD g 1 1 a", INT(1), NULL},
    {"SET s x", OK, NULL},
    {"GEOSEARCH s foo foo foo foo foo", WRONG, NULL},
    {"GEOSEARCHSTORE d s foo foo foo foo foo", WRONG, NULL},
    {"GEORADIUS s 200 200 x y", WRONG, NULL},
    {"GEORADIUSBYMEMBER s a x y", WRONG, NULL},
    {"GEOSEARCH g FROMMEMBER none BYRADIUS 1 km", ERR("could not decode requested zset member"),
     NULL},
    {"GEORADIUSBYMEMBER g none x y", ERR("could not decode requested zset member"), NULL},
    {"GEOSEARCH g FROMMEMBER a FROMLONLAT 1 1 BYRADIUS 1 km", SYNTAX, NULL},
    {"GEOSEARCH g FROMLONLAT 1 1 FROMMEMBER a BYRADIUS 1 km", SYNTAX, NULL},
    {"GEOSEARCH g FROMMEMBER a BYRADIUS 1 km BYBOX 1 1 km", SYNTAX, NULL},
    {"GEOSEARCH g FROMMEMBER a BYBOX 1 1 km BYRADIUS 1 km", SYNTAX, NULL},
    {"GEOSEARCH g FROMMEMBER none FROMMEMBER a BYRADIUS 1 km",
     ERR("could not decode requested zset member"), NULL},
    {"GEOSEARCH g BYRADIUS 1 km ASC DESC WITHDIST",
     ERR("exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCH"), NULL},
    {"geosearch g FROMMEMBER a ASC DESC WITHDIST",
     ERR("exactly one of BYRADIUS and BYBOX can be specified for geosearch"), NULL},
    {"GEOSEARCH g FROMMEMBER a BYRADIUS x km", ERR("need numeric radius"), NULL},
    {"GEOSEARCH g FROMMEMBER a BYRADIUS -1 km", ERR("radius cannot be negative"), NULL},
    {"GEOSEARCH g FROMMEMBER a BYRADIUS -1 foo", ERR("radius cannot be negative"), NULL},
    {"GEOSEARCH g FROMMEMBER a BYRADIUS 1 foo", NOT_UNIT, NULL},
    {"GEOSEARCH g FROMMEMBER a BYBOX x y m", ERR("need numeric width"), NULL},
    {"GEOSEARCH g FROMMEMBER a BYBOX 1 y m", ERR("need numeric height"), NULL},
    {"GEOSEARCH g FROMMEMBER a BYBOX 1 -1 m", ERR("height or width cannot be negative"), NULL},
    {"GEOSEARCH g FROMMEMBER a BYBOX 1 1 foo", NOT_UNIT, NULL},
    {"GEOSEARCH g FROMLONLAT 1 86 BYBOX 1 1 m",
     ERR("invalid longitude,latitude pair 1.000000,86.000000"), NULL},
    {"GEOSEARCH g FROMLONLAT 1 x BYBOX 1 1 m", NOT_FLOAT, NULL},
    {"GEOSEARCH g FROMMEMBER a BYRADIUS 1 km COUNT 0", ERR("COUNT must be > 0"), NULL},
    {"GEOSEARCH g FROMMEMBER a BYRADIUS 1 km COUNT x", NOT_INT, NULL},
    {"GEOSEARCH g FROMMEMBER a BYRADIUS 1 km COUNT", SYNTAX, NULL},
    {"GEOSEARCH g FROMMEMBER a BYRADIUS 1 km ANY", ERR("the ANY argument requires COUNT argument"),
     NULL},
    {"GEOSEARCH none FROMMEMBER a BYRADIUS 1 km ANY",
     ERR("the ANY argument requires COUNT argument"), NULL},
    {"GEOSEARCH g FROMMEMBER a BYRADIUS 1 km STOREDIST", SYNTAX, NULL},
    {"GEOSEARCHSTORE d g FROMMEMBER a BYRADIUS 1 km WITHDIST",
     ERR("GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options"), NULL},
    {"GEORADIUS g 1 1 1 km STORE d WITHCOORD",
     ERR("STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD "
         "options"),
     NULL},
    {"GEORADIUS g 1 1 1 km STORE", SYNTAX, NULL},
    {"GEORADIUS_RO g 1 1 1 km STORE d", SYNTAX, NULL},
    {"GEORADIUS g 1 1 1 km FROMMEMBER a", SYNTAX, NULL},
    {"GEORADIUS g 1 91 1 km", ERR("invalid longitude,latitude pair 1.000000,91.000000"), NULL},
    {"GEORADIUS g 1 1 -1 km", ERR("radius cannot be negative"), NULL},
    {"GEORADIUS g 1 1 1 parsecs", NOT_UNIT, NULL},
    {NULL, NULL, NULL},
};

static const struct step storing[] = {
    {"GEOADD g 13.361389 38.115556 P 15.087269 37.502669 C 12.758489 38.788135 E", INT(3), NULL},
    {"GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km", INT(2), NULL},
    {"ZRANGE d 0 -1 WITHSCORES",
     ARRAY(4) BULK(1, "P") BULK(16, "3479099956230698") BULK(1, "C") BULK(16, "3479447370796909"),
     ARRAY(2) ARRAY(2) BULK(1, "P") DOUBLE("3479099956230698") ARRAY(2) BULK(1, "C")
         DOUBLE("3479447370796909")},
    {"GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 300 km STOREDIST", INT(3), NULL},
    {"ZRANGE d 0 -1", ARRAY(3) BULK(1, "C") BULK(1, "P") BULK(1, "E"), NULL},
    {"GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 300 km COUNT 2", INT(2), NULL},
    {"ZRANGE d 0 -1", ARRAY(2) BULK(1, "P") BULK(1, "C"), NULL},
    {"GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 300 km COUNT 1 DESC", INT(1), NULL},
    {"ZRANGE d 0 -1", ARRAY(1) BULK(1, "E"), NULL},
    {"GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 300 km COUNT 2 ANY ASC", INT(2), NULL},
    {"ZCARD d", INT(2), NULL},
    {"GEOSEARCHSTORE d g FROMLONLAT 0 0 BYRADIUS 1 m", INT(0), NULL},
    {"ZCARD d", INT(0), NULL},
    {"GEORADIUS g 15 37 200 km STORE d", INT(2), NULL},
    {"ZRANGE d 0 -1 WITHSCORES",
     ARRAY(4) BULK(1, "P") BULK(16, "3479099956230698") BULK(1, "C") BULK(16, "3479447370796909"),
     ARRAY(2) ARRAY(2) BULK(1, "P") DOUBLE("3479099956230698") ARRAY(2) BULK(1, "C")
         DOUBLE("3479447370796909")},
    {"GEORADIUS g 15 37 200 km STORE other STOREDIST d", INT(2), NULL},
    {"ZRANGE d 0 -1 WITHSCORES",
     ARRAY(4) BULK(1, "C") BULK(16, "56.4412578701582") BULK(1, "P") BULK(18, "190.44242984775784"),
     ARRAY(2) ARRAY(2) BULK(1, "C") DOUBLE("56.4412578701582") ARRAY(2) BULK(1, "P")
         DOUBLE("190.44242984775784")},
    {"ZCARD other", INT(0), NULL},
    {"GEORADIUSBYMEMBER g C 100 m STOREDIST d", INT(1), NULL},
    {"ZRANGE d 0 -1 WITHSCORES", ARRAY(2) BULK(1, "C") BULK(1, "0"),
     ARRAY(1) ARRAY(2) BULK(1, "C") DOUBLE("0")},
    {"GEORADIUSBYMEMBER none C 100 m STORE d", INT(0), NULL},
    {"ZCARD d", INT(0), NULL},
    {"GEORADIUS g 15 37 100 km STORE g", INT(1), NULL},
    {"ZRANGE g 0 -1", ARRAY(1) BULK(1, "C"), NULL},
    {"GEOSEARCHSTORE g none FROMMEMBER x BYBOX 1 1 m", INT(0), NULL},
    {"ZCARD g", INT(0), NULL},
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

/* ---- searches of a tree, in many steps ---- */

#define MANY 1200
#define NAME_LEN 400 /* so long that results beyond COUNT are dropped on the way */

struct world {
    struct driver *driver;
    unsigned seed;
    struct geo_point points[MANY]; /* as they are kept */
    struct geo_point center;
};

struct found {
    int count, names[MANY];
};

static double roll(struct world *world, double from, double to)
{
    world->seed = world->seed * 1103515245 + 12345;
    return from + (to - from) * (world->seed >> 8) / (1 << 24);
}

/* The names in a reply, in their order. */
static struct found find(struct world *world, int radius, const char *options)
{
    static struct found found;
    char head[16];
    const char *at =
        driver_text(world->driver, "GEOSEARCH g FROMLONLAT %.17g %.17g BYRADIUS %d km %s",
                    world->center.longitude, world->center.latitude, radius, options);
    found.count = driver_number(at);
    int head_len = snprintf(head, sizeof head, "$%d\r\n", NAME_LEN);
    at = strchr(at, '\n') + 1;
    for (int i = 0; i < found.count; i++) {
        assert_memory_equal(at, head, (size_t)head_len);
        found.names[i] = atoi(at + head_len + NAME_LEN - 5);
        at += head_len + NAME_LEN + 2;
    }
    return found;
}

static double distance_to(const struct world *world, int name)
{
    return geo_distance(world->center, world->points[name]);
}

/* By insertion: equal distances keep their order. */
static struct found sorted(const struct world *world, const struct found *found, int sign)
{
    static struct found result;
    result = *found;
    for (int i = 1; i < found->count; i++)
        for (int j = i; j > 0 && sign * distance_to(world, result.names[j]) <
                                     sign * distance_to(world, result.names[j - 1]);
             j--) {
            int name = result.names[j];
            result.names[j] = result.names[j - 1];
            result.names[j - 1] = name;
        }
    return result;
}

static void expect_first(const struct found *found, const struct found *all, int count)
{
    assert_int_equal(found->count, all->count < count ? all->count : count);
    assert_memory_equal(found->names, all->names, (size_t)found->count * sizeof found->names[0]);
}

static void search_once(struct world *world)
{
    char options[64];
    world->center = (struct geo_point){roll(world, -10, 10), roll(world, -10, 10)};
    int radius = (int)roll(world, 1, 1500), count = 1 + (int)roll(world, 0, 60), inside = 0;
    for (int i = 0; i < MANY; i++)
        inside += distance_to(world, i) <= radius * 1000;
    struct found all = find(world, radius, "");
    assert_int_equal(all.count, inside);
    struct found nearest = sorted(world, &all, 1), farthest = sorted(world, &all, -1);
    struct found found = find(world, radius, "ASC");
    expect_first(&found, &nearest, MANY);
    snprintf(options, sizeof options, "COUNT %d", count);
    found = find(world, radius, options);
    expect_first(&found, &nearest, count);
    snprintf(options, sizeof options, "DESC COUNT %d", count);
    found = find(world, radius, options);
    expect_first(&found, &farthest, count);
    snprintf(options, sizeof options, "COUNT %d ANY", count);
    found = find(world, radius, options);
    expect_first(&found, &all, count);
    struct {
        const char *options;
        int count;
    } stored[] = {{"", inside}, {"COUNT 700", inside < 700 ? inside : 700}};
    for (int i = 0; i < 2; i++) {
        int number = driver_number(driver_text(
            world->driver, "GEOSEARCHSTORE d g FROMLONLAT %.17g %.17g BYRADIUS %d km STOREDIST %s",
            world->center.longitude, world->center.latitude, radius, stored[i].options));
        assert_int_equal(number, stored[i].count);
        assert_int_equal(driver_number(driver_text(world->driver, "ZCARD d")), number);
    }
}

static void search_in(struct driver *driver)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->driver = driver;
    for (int i = 0; i < MANY; i++) {
        /* Some are at the same place. */
        struct geo_point point = {roll(world, -20, 20), roll(world, -20, 20)};
        if (i % 10 == 9)
            point = world->points[i - 1];
        world->points[i] = geo_point_of(geo_score(point));
        driver_text(driver, "GEOADD g %.17g %.17g %0*d", point.longitude, point.latitude, NAME_LEN,
                    i);
    }
    for (int i = 0; i < 12; i++)
        search_once(world);
    free(world);
}

static void searches_among_many(void **state)
{
    (void)state;
    driver_in_stores(search_in);
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
        SCRIPT(searching),
        SCRIPT(errors),
        SCRIPT(storing),
        cmocka_unit_test(positions_of_many),
        cmocka_unit_test(searches_among_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
