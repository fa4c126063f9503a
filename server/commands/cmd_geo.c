/*
 * Geo: sorted sets whose scores are positions (types/geo.h). Adding and reading members; searches
 * are in cmd_geo_search.c. Any sorted set will do: every score is a position.
 */
#include "server/commands/cmd_geo.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "server/commands/cmd_zset.h"
#include "server/commands/commands.h"
#include "server/core/call.h"
#include "server/exec/long_run.h"

#define DISTANCE_SCALE 10000

/* ---- shared by the geo commands ---- */

bool geo_read_point(struct call *call, const struct resp_slice argv[2], struct geo_point *point)
{
    if (!call_double(call, argv[0], NULL, &point->longitude) ||
        !call_double(call, argv[1], NULL, &point->latitude))
        return false;
    if (geo_point_is_valid(*point))
        return true;
    resp_errorf(call->reply, "ERR invalid longitude,latitude pair %f,%f", point->longitude,
                point->latitude);
    return false;
}

bool geo_read_unit(struct call *call, struct resp_slice arg, double *metres)
{
    static const struct {
        const char *name;
        double metres;
    } units[] = {{"m", 1}, {"km", 1000}, {"ft", 0.3048}, {"mi", 1609.34}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (slice_is(arg, units[i].name)) {
            *metres = units[i].metres;
            return true;
        }
    resp_error(call->reply, "ERR unsupported unit provided. please use M, KM, FT, MI");
    return false;
}

void geo_put_distance(struct resp_writer *out, double distance)
{
    char text[40];
    int64_t scaled = llrint(distance * DISTANCE_SCALE);
    uint64_t size = scaled < 0 ? -(uint64_t)scaled : (uint64_t)scaled;
    int len = snprintf(text, sizeof text, "%s%" PRIu64 ".%04" PRIu64, scaled < 0 ? "-" : "",
                       size / DISTANCE_SCALE, size % DISTANCE_SCALE);
    resp_bulk(out, text, (size_t)len);
}

static void put_degrees(struct resp_writer *out, double degrees)
{
    char text[RESP_NUMBER_MAX];
    size_t len = resp_print_long_double(text, degrees);
    if (out->version == 2) {
        resp_bulk(out, text, len);
        return;
    }
    resp_raw(out, ",", 1);
    resp_raw(out, text, len);
    resp_raw(out, "\r\n", 2);
}

void geo_put_point(struct resp_writer *out, struct geo_point point)
{
    resp_array(out, 2);
    put_degrees(out, point.longitude);
    put_degrees(out, point.latitude);
}

/* ---- GEOADD ---- */

/* Parses the options; *at is the position of the first longitude. */
static bool read_options(struct call *call, unsigned *options, size_t *at)
{
    const unsigned both = ZSET_ADD_NX | ZSET_ADD_XX, known = both | ZSET_ADD_CH;
    unsigned option;
    for (*at = 2; *at < call->argc && (option = zset_add_option(call->argv[*at]) & known) != 0;
         ++*at)
        *options |= option;
    size_t left = call->argc - *at;
    if (left == 0 || left % 3 != 0 || (*options & both) == both)
        return call_syntax_error(call);
    return true;
}

/* STORE_ANSWERED: one of the pairs from argument `at` on is no position. */
static enum store_result check_points(struct call *call, size_t at)
{
    enum store_result result = STORE_OK;
    struct geo_point point;
    for (size_t i = at; i < call->argc && result == STORE_OK; i += 3) {
        if (!geo_read_point(call, &call->argv[i], &point))
            return STORE_ANSWERED;
        result = call_yield_at(call, i / 3);
    }
    return result;
}

enum store_result cmd_geoadd(struct call *call)
{
    struct zset_adding adding = {.options = 0};
    struct geo_point point;
    size_t at;
    if (!read_options(call, &adding.options, &at))
        return STORE_OK;
    enum store_result result = check_points(call, at);
    if (result == STORE_OK)
        result = zset_find(call, call->keys, &adding.zset);
    if (result != STORE_OK)
        return result;
    zset_expect(&adding.zset, (call->argc - at) / 3, call->argv[at + 2].len);
    for (size_t i = at; i < call->argc && result == STORE_OK; i += 3) {
        (void)geo_read_point(call, &call->argv[i], &point); /* has been checked */
        result = zset_add_one(&adding, call->argv[i + 2], geo_score(point));
        if (result == STORE_OK)
            result = zset_yield(&adding.zset, i / 3);
    }
    return result == STORE_OK ? zset_reply_added(call, &adding) : result;
}

/* ---- GEOPOS, GEOHASH ---- */

static void put_text(struct resp_writer *out, struct geo_point point)
{
    char text[GEO_TEXT_LEN];
    geo_text(point, text);
    resp_bulk(out, text, sizeof text);
}

/* Replies with an element for each member that is named. */
static enum store_result reply_members(struct call *call,
                                       void (*put)(struct resp_writer *, struct geo_point),
                                       void (*put_none)(struct resp_writer *))
{
    struct zset zset;
    enum store_result result = zset_find(call, call->keys, &zset);
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc && result == STORE_OK; i++) {
        double score;
        bool found;
        result = zset_score(&zset, call->argv[i], &score, &found);
        if (result != STORE_OK)
            return result;
        if (found)
            put(call->reply, geo_point_of(score));
        else
            put_none(call->reply);
        result = zset_yield(&zset, i);
    }
    return result;
}

enum store_result cmd_geopos(struct call *call)
{
    return reply_members(call, geo_put_point, resp_null_array);
}

enum store_result cmd_geohash(struct call *call)
{
    return reply_members(call, put_text, resp_null);
}

/* ---- GEODIST ---- */

enum store_result cmd_geodist(struct call *call)
{
    struct zset zset;
    double unit = 1, scores[2] = {0};
    bool found = true;
    if (call->argc > 5) {
        call_syntax_error(call);
        return STORE_OK;
    }
    if (call->argc == 5 && !geo_read_unit(call, call->argv[4], &unit))
        return STORE_OK;
    enum store_result result = zset_find(call, call->keys, &zset);
    for (size_t i = 0; i < 2 && result == STORE_OK && found; i++)
        result = zset_score(&zset, call->argv[2 + i], &scores[i], &found);
    if (result != STORE_OK)
        return result;
    if (found)
        geo_put_distance(call->reply,
                         geo_distance(geo_point_of(scores[0]), geo_point_of(scores[1])) / unit);
    else
        resp_null(call->reply);
    return STORE_OK;
}
