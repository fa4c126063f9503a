/*
 * Random choices that come out the same in every rerun of a command: made from call->random_seed.
 */
#ifndef VELLUM_RNG_H
#define VELLUM_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

struct rng rng_new(uint64_t seed);
uint64_t rng_roll(struct rng *rng);                  /* any 64 bits */
uint64_t rng_below(struct rng *rng, uint64_t bound); /* 0 .. bound - 1, all alike */

/* `count` different numbers below `bound`, rising; count is at most bound. To be freed; NULL: no
 * memory. */
uint64_t *rng_choose(struct rng *rng, uint64_t bound, uint64_t count);

#endif
