/*
 * Lua's numbers as integers.
 */
#ifndef VELLUM_SCRIPT_VALUE_H
#define VELLUM_SCRIPT_VALUE_H

#include <math.h>
#include <stdint.h>

/* Without its fraction; what does not fit becomes the nearest that does, NaN the least. */
static inline int64_t script_to_int64(double number)
{
    if (number >= 9223372036854775808.0)
        return INT64_MAX;
    if (number >= -9223372036854775808.0)
        return (int64_t)number;
    return INT64_MIN;
}

#endif
