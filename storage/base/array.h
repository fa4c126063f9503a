/*
 * Growing arrays. An array is a pointer from malloc, or NULL, and its capacity in elements. The
 * capacity is at least doubled each time, so that appending costs amortized constant time.
 */
#ifndef VELLUM_STORE_ARRAY_H
#define VELLUM_STORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_LEAST 8 /* elements */

static inline bool array_grow(void *array, size_t *capacity, size_t count, size_t size)
{
    size_t wanted, bytes;
    void *before, *grown;
    if (__builtin_mul_overflow(*capacity, 2, &wanted) || wanted < count)
        wanted = count;
    if (wanted < ARRAY_LEAST)
        wanted = ARRAY_LEAST;
    if (__builtin_mul_overflow(wanted, size, &bytes))
        return false;
    memcpy(&before, array, sizeof before);
    grown = realloc(before, bytes);
    if (grown == NULL)
        return false;
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}

/* `array` points to the pointer to the elements, each of `size` bytes. False: no memory for
 * `count` elements; the array is unchanged. */
static inline bool array_reserve(void *array, size_t *capacity, size_t count, size_t size)
{
    return count <= *capacity || array_grow(array, capacity, count, size);
}

#endif
