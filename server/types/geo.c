#include "server/types/geo.h"

#include <assert.h>
#include <math.h>

#define RADIAN (M_PI / 180.0) /* one degree */
#define EARTH_RADIUS 6372797.560856
#define PROJECTED_RADIUS 20037726.37 /* half of the square map's side, in metres */
#define TEXT_LATITUDE_MAX 90.0
#define TEXT_BITS 5 /* per letter */

/* ---- cells ---- */

/* The world is divided into 1 << steps columns, from the west, and as many rows, from the south.
 * A point on the eastern or northern edge is in a column or row beyond them. */
struct cell {
    uint32_t column, row;
    unsigned steps;
};

struct side {
    double min, max;
};

static uint32_t slice_at(double degrees, double most, unsigned steps)
{
    double share = (degrees - -most) / (most - -most);
    return (uint32_t)(share * (double)(UINT64_C(1) << steps));
}

static struct cell cell_at(struct geo_point point, double latitude_max, unsigned steps)
{
    return (struct cell){slice_at(point.longitude, GEO_LONGITUDE_MAX, steps),
                         slice_at(point.latitude, latitude_max, steps), steps};
}

/* The degrees of a column or row. Beyond 32 bits the numbers begin anew, as in Redis. */
static struct side side_of(uint32_t number, double most, unsigned steps)
{
    double scale = most - -most, slices = (double)(UINT64_C(1) << steps);
    uint32_t next = number + 1;
    return (struct side){-most + number / slices * scale, -most + next / slices * scale};
}

static struct side longitudes_of(const struct cell *cell)
{
    return side_of(cell->column, GEO_LONGITUDE_MAX, cell->steps);
}

static struct side latitudes_of(const struct cell *cell)
{
    return side_of(cell->row, GEO_LATITUDE_MAX, cell->steps);
}

/* At an edge of the world the other edge follows. */
static uint32_t beside(uint32_t number, int by, unsigned steps)
{
    uint32_t all = (UINT32_C(1) << steps) - 1;
    return by == 0 ? number : (number + (uint32_t)by) & all;
}

static struct cell cell_beside(const struct cell *cell, int east, int north)
{
    return (struct cell){beside(cell->column, east, cell->steps),
                         beside(cell->row, north, cell->steps), cell->steps};
}

/* ---- interleaved bits ---- */

/* Bit i becomes bit 2i: the upper half of a word is moved away from the lower one, then likewise in
 * each half (H. S. Warren, Hacker's Delight, 7-2). */
static uint64_t spread(uint32_t bits)
{
    uint64_t word = bits;
    word = (word | word << 16) & UINT64_C(0x0000ffff0000ffff);
    word = (word | word << 8) & UINT64_C(0x00ff00ff00ff00ff);
    word = (word | word << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    word = (word | word << 2) & UINT64_C(0x3333333333333333);
    return (word | word << 1) & UINT64_C(0x5555555555555555);
}

/* And back; the bits between them are ignored. */
static uint32_t gather(uint64_t word)
{
    word &= UINT64_C(0x5555555555555555);
    word = (word | word >> 1) & UINT64_C(0x3333333333333333);
    word = (word | word >> 2) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    word = (word | word >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    word = (word | word >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (uint32_t)(word | word >> 16);
}

static uint64_t bits_of(const struct cell *cell)
{
    return spread(cell->column) << 1 | spread(cell->row);
}

/* ---- points and scores ---- */

bool geo_point_is_valid(struct geo_point point)
{
    return point.longitude >= -GEO_LONGITUDE_MAX && point.longitude <= GEO_LONGITUDE_MAX &&
           point.latitude >= -GEO_LATITUDE_MAX && point.latitude <= GEO_LATITUDE_MAX;
}

double geo_score(struct geo_point point)
{
    assert(geo_point_is_valid(point));
    struct cell cell = cell_at(point, GEO_LATITUDE_MAX, GEO_STEPS);
    return (double)bits_of(&cell);
}

/* As x86 converts it, where C does not say. */
static uint64_t whole_bits(double score)
{
    if (score >= 0x1p64)
        return 0;
    if (score >= 0)
        return (uint64_t)score;
    return score >= -0x1p63 ? (uint64_t)(int64_t)score : UINT64_C(1) << 63;
}

static double middle_within(struct side side, double most)
{
    double middle = (side.min + side.max) / 2;
    if (middle > most)
        return most;
    return middle < -most ? -most : middle;
}

struct geo_point geo_point_of(double score)
{
    uint64_t bits = whole_bits(score);
    struct cell cell = {gather(bits >> 1), gather(bits), GEO_STEPS};
    return (struct geo_point){middle_within(longitudes_of(&cell), GEO_LONGITUDE_MAX),
                              middle_within(latitudes_of(&cell), GEO_LATITUDE_MAX)};
}

void geo_text(struct geo_point point, char text[GEO_TEXT_LEN])
{
    static const char letters[] = "0123456789bcdefghjkmnpqrstuvwxyz";
    struct cell cell = cell_at(point, TEXT_LATITUDE_MAX, GEO_STEPS);
    uint64_t bits = bits_of(&cell);
    int left = 2 * GEO_STEPS;
    for (int i = 0; i < GEO_TEXT_LEN; i++) {
        left -= TEXT_BITS;
        text[i] = left >= 0 ? letters[bits >> left & 0x1f] : letters[0];
    }
}

/* ---- distances ---- */

static double meridian_distance(double latitude, double other)
{
    return EARTH_RADIUS * fabs(other * RADIAN - latitude * RADIAN);
}

double geo_distance(struct geo_point a, struct geo_point b)
{
    double across = sin((b.longitude * RADIAN - a.longitude * RADIAN) / 2);
    if (across == 0)
        return meridian_distance(a.latitude, b.latitude);
    double from = a.latitude * RADIAN, to = b.latitude * RADIAN;
    double along = sin((to - from) / 2);
    double haversine = along * along + cos(from) * cos(to) * across * across;
    return 2 * EARTH_RADIUS * asin(sqrt(haversine));
}

/* Of a box the sides are straight in the sense that a point's distances from the center, along its
 * meridian and along its parallel, are compared one by one. */
static bool is_inside_box(const struct geo_shape *shape, struct geo_point point)
{
    struct geo_point below = {shape->center.longitude, point.latitude};
    double height = shape->height * shape->unit, width = shape->width * shape->unit;
    return !(meridian_distance(shape->center.latitude, point.latitude) > height / 2) &&
           !(geo_distance(point, below) > width / 2);
}

/* Comparisons are such that a distance that is not a number is inside: the rounding of antipodes
 * may give one. */
bool geo_is_inside(const struct geo_shape *shape, struct geo_point point, double *distance)
{
    if (shape->is_box && !is_inside_box(shape, point))
        return false;
    *distance = geo_distance(shape->center, point);
    return shape->is_box || !(*distance > shape->radius * shape->unit);
}

/* ---- the ranges of a search ---- */

struct frame {
    struct side longitudes, latitudes;
};

/* What the shape reaches, roughly: its width is measured at the parallel nearer to the pole. */
static struct frame frame_of(const struct geo_shape *shape)
{
    struct geo_point center = shape->center;
    double height = shape->unit * (shape->is_box ? shape->height / 2 : shape->radius);
    double width = shape->unit * (shape->is_box ? shape->width / 2 : shape->radius);
    double north = height / EARTH_RADIUS / RADIAN;
    double parallel = center.latitude < 0 ? center.latitude - north : center.latitude + north;
    double east = width / EARTH_RADIUS / cos(parallel * RADIAN) / RADIAN;
    return (struct frame){{center.longitude - east, center.longitude + east},
                          {center.latitude - north, center.latitude + north}};
}

/* From the center to the farthest point. */
static double reach_of(const struct geo_shape *shape)
{
    double width = shape->width / 2, height = shape->height / 2;
    double reach = shape->is_box ? sqrt(width * width + height * height) : shape->radius;
    return reach * shape->unit;
}

/* After so many steps a cell is about as large as the reach, larger near the poles, where degrees
 * of longitude are short. */
static unsigned steps_for(double reach, double latitude)
{
    int steps = -1;
    if (reach == 0)
        return GEO_STEPS;
    for (; reach < PROJECTED_RADIUS; reach *= 2)
        steps++;
    steps -= (fabs(latitude) > 66) + (fabs(latitude) > 80);
    if (steps < 1)
        return 1;
    return steps < GEO_STEPS ? (unsigned)steps : GEO_STEPS;
}

/* Whether a cell and its neighbours contain the frame. */
static bool is_enough(const struct cell *cell, const struct frame *frame)
{
    struct cell north = cell_beside(cell, 0, 1), south = cell_beside(cell, 0, -1);
    struct cell east = cell_beside(cell, 1, 0), west = cell_beside(cell, -1, 0);
    return !(latitudes_of(&north).max < frame->latitudes.max ||
             latitudes_of(&south).min > frame->latitudes.min ||
             longitudes_of(&east).max < frame->longitudes.max ||
             longitudes_of(&west).min > frame->longitudes.min);
}

/* Whether the frame ends before the neighbours in this direction begin. */
static bool is_beyond(const struct cell *cell, const struct frame *frame, int east, int north)
{
    struct side longitudes = longitudes_of(cell), latitudes = latitudes_of(cell);
    return (north < 0 && latitudes.min < frame->latitudes.min) ||
           (north > 0 && latitudes.max > frame->latitudes.max) ||
           (east < 0 && longitudes.min < frame->longitudes.min) ||
           (east > 0 && longitudes.max > frame->longitudes.max);
}

static struct geo_range range_of(const struct cell *cell)
{
    unsigned shift = 2 * (GEO_STEPS - cell->steps);
    uint64_t bits = bits_of(cell);
    return (struct geo_range){(double)(bits << shift), (double)((bits + 1) << shift)};
}

static bool is_same(const struct geo_range *a, const struct geo_range *b)
{
    return a->min == b->min && a->max == b->max;
}

size_t geo_ranges(const struct geo_shape *shape, struct geo_range ranges[GEO_RANGES_MAX])
{
    static const struct {
        int east, north;
    } neighbours[] = {{0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}};
    struct frame frame = frame_of(shape);
    unsigned steps = steps_for(reach_of(shape), shape->center.latitude);
    struct cell cell = cell_at(shape->center, GEO_LATITUDE_MAX, steps);
    if (steps > 1 && !is_enough(&cell, &frame))
        cell = cell_at(shape->center, GEO_LATITUDE_MAX, --steps);
    size_t count = 1;
    ranges[0] = range_of(&cell);
    for (size_t i = 0; i < sizeof neighbours / sizeof neighbours[0]; i++) {
        int east = neighbours[i].east, north = neighbours[i].north;
        struct cell next = cell_beside(&cell, east, north);
        /* The world of one step has four cells: some directions lead to the same one. */
        if (steps > 1 && is_beyond(&cell, &frame, east, north))
            continue;
        ranges[count] = range_of(&next);
        if (count == 1 || !is_same(&ranges[count], &ranges[count - 1]))
            count++;
    }
    return count;
}
