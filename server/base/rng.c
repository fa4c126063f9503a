#include "server/base/rng.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

struct rng rng_new(uint64_t seed)
{
    return (struct rng){seed};
}

/* SplitMix64: any seed will do, including 0. */
uint64_t rng_roll(struct rng *rng)
{
    uint64_t x = rng->state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    assert(bound > 0);
    uint64_t uneven = -bound % bound; /* this many values at the low end would bias the result */
    uint64_t roll;
    do
        roll = rng_roll(rng);
    while (roll < uneven);
    return roll % bound;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* For at most half of the range, so that few rolls repeat an earlier one. */
static void choose_few(struct rng *rng, uint64_t bound, uint64_t count, uint64_t *chosen)
{
    uint64_t have = 0;
    while (have < count) {
        for (uint64_t i = have; i < count; i++)
            chosen[i] = rng_below(rng, bound);
        qsort(chosen, count, sizeof *chosen, compare);
        have = 0;
        for (uint64_t i = 0; i < count; i++)
            if (have == 0 || chosen[have - 1] != chosen[i])
                chosen[have++] = chosen[i];
    }
}

/* Does the same with one bit per number. Used where the bitmap is no larger than the result. */
static bool choose_by_bits(struct rng *rng, uint64_t bound, uint64_t count, uint64_t *chosen)
{
    uint64_t *bits = calloc(bound / 64 + 1, sizeof *bits);
    if (bits == NULL)
        return false;
    for (uint64_t have = 0; have < count;) {
        uint64_t number = rng_below(rng, bound), bit = 1ull << number % 64;
        have += (bits[number / 64] & bit) == 0;
        bits[number / 64] |= bit;
    }
    for (uint64_t word = 0; word <= bound / 64; word++)
        for (uint64_t left = bits[word]; left != 0; left &= left - 1)
            *chosen++ = 64 * word + (uint64_t)__builtin_ctzll(left);
    free(bits);
    return true;
}

/* All numbers below the bound except the given ones. */
static void complement(uint64_t bound, const uint64_t *few, uint64_t count, uint64_t *rest)
{
    for (uint64_t i = 0, next = 0; i < bound; i++) {
        if (next < count && few[next] == i)
            next++;
        else
            *rest++ = i;
    }
}

uint64_t *rng_choose(struct rng *rng, uint64_t bound, uint64_t count)
{
    assert(count <= bound);
    uint64_t few = count > bound / 2 ? bound - count : count;
    uint64_t *chosen = calloc(few + 1, sizeof *chosen);
    if (chosen == NULL)
        return NULL;
    if (bound / 64 > few || !choose_by_bits(rng, bound, few, chosen))
        choose_few(rng, bound, few, chosen);
    if (few == count)
        return chosen;
    uint64_t *rest = calloc(count, sizeof *rest);
    if (rest != NULL)
        complement(bound, chosen, few, rest);
    free(chosen);
    return rest;
}
