/*
 * In the place of storage/base/keyed_hash.c: 400 different values, the lowest and the highest among
 * them.
 */
#ifndef VELLUM_WEAK_HASH_H
#define VELLUM_WEAK_HASH_H

#include "storage/base/keyed_hash.h"

#define WEAK_VALUES 400

uint64_t store_keyed_hash(const uint64_t key[2], const char *data, size_t len)
{
    uint64_t hash = key[0];
    for (size_t i = 0; i < len; i++)
        hash = hash * 31 + (uint8_t)data[i];
    return hash % WEAK_VALUES * (UINT64_MAX / (WEAK_VALUES - 1));
}

#endif
