/*
 * Conversion of Lua's numbers to integers.
 */
#ifndef VELLUM_SCRIPT_VALUE_H
#define VELLUM_SCRIPT_VALUE_H

#include <math.h>
#include <stdint.h>

/* Truncates. A number out of range becomes the nearest integer, NaN the smallest. */
static inline int64_t script_to_int64(double number)
{
    if (number >= 9223372036854775808.0)
        return INT64_MAX;
    if (number >= -9223372036854775808.0)
        return (int64_t)number;
    return INT64_MIN;
}

#endif
