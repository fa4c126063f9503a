/*
 * Positions on the earth: as scores of a sorted set, as text, within a search. Numbers only, no
 * store.
 *
 * A score is a geohash (G. Niemeyer, geohash.org, 2008) of 52 bits: longitude and latitude are each
 * halved GEO_STEPS times, and the bits that tell which half are interleaved, as in G. M. Morton's
 * order (1966), a longitude's bit above the latitude's. So a cell of the world after fewer steps is
 * one range of scores. Latitudes end where the map of the web's Mercator projection (EPSG:3857) is
 * a square. Distances are those on a sphere, by the haversine formula (R. W. Sinnott, "Virtues of
 * the Haversine", Sky and Telescope 68, 1984).
 *
 * Invariant: every number is computed by the operations that Redis uses, in their order, so that
 * scores, and the members that a search finds, are the same to the last bit.
 */
#ifndef VELLUM_GEO_H
#define VELLUM_GEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GEO_STEPS 26
#define GEO_LONGITUDE_MAX 180.0
#define GEO_LATITUDE_MAX 85.05112878

/* In degrees. */
struct geo_point {
    double longitude, latitude;
};

/* Within the limits above. */
bool geo_point_is_valid(struct geo_point point);

double geo_score(struct geo_point point); /* which must be valid */
/* Any score has a valid point, also one that is no geohash. */
struct geo_point geo_point_of(double score);

/* The geohash as its inventor writes it: in base 32, with latitudes up to 90. The last letter is
 * always 0, since 52 bits do not reach that far. */
#define GEO_TEXT_LEN 11
void geo_text(struct geo_point point, char text[GEO_TEXT_LEN]);

double geo_distance(struct geo_point a, struct geo_point b); /* in metres */

/* ---- searching ---- */

struct geo_shape {
    struct geo_point center;
    double unit;          /* of the lengths below, in metres */
    bool is_box;          /* or a circle */
    double radius;        /* of a circle */
    double width, height; /* of a box */
};

/* Sets *distance, in metres from the center, if the point is inside. */
bool geo_is_inside(const struct geo_shape *shape, struct geo_point point, double *distance);

/* The scores from `min` on and below `max`. */
struct geo_range {
    double min, max;
};
#define GEO_RANGES_MAX 9
/* The ranges of scores that may be inside, in the order in which Redis visits them, and their
 * number. No score is in two of them. As in Redis they may miss some points of shapes that reach a
 * pole or the date line. */
size_t geo_ranges(const struct geo_shape *shape, struct geo_range ranges[GEO_RANGES_MAX]);

#endif
