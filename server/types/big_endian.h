/*
 * Numbers as they stand in the keys of trees: big-endian, so that bytes order as numbers do.
 */
#ifndef VELLUM_BIG_ENDIAN_H
#define VELLUM_BIG_ENDIAN_H

#include <stdint.h>
#include <string.h>

#define BIG_ENDIAN_BYTES 8

static inline void big_endian_write(char bytes[BIG_ENDIAN_BYTES], uint64_t number)
{
    number = __builtin_bswap64(number);
    memcpy(bytes, &number, sizeof number);
}

static inline uint64_t big_endian_read(const char bytes[BIG_ENDIAN_BYTES])
{
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    return __builtin_bswap64(number);
}

#endif
