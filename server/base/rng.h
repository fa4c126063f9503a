/*
 * Random choices that are the same in every rerun of a command: they are seeded with
 * call->random_seed.
 */
#ifndef VELLUM_RNG_H
#define VELLUM_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

struct rng rng_new(uint64_t seed);
uint64_t rng_roll(struct rng *rng);                  /* any 64 bits */
uint64_t rng_below(struct rng *rng, uint64_t bound); /* uniform in 0 .. bound - 1 */

/* Returns `count` (at most `bound`) distinct numbers below `bound`, in ascending order. The caller
 * frees them. NULL: out of memory. */
uint64_t *rng_choose(struct rng *rng, uint64_t bound, uint64_t count);

#endif
