/*
 * Random choices that come out the same in every rerun of a command: made from call->random_seed.
 */
#ifndef VELLUM_RNG_H
#define VELLUM_RNG_H

#include <stdint.h>

struct dice {
    uint64_t state;
};

struct dice dice_new(uint64_t seed);
uint64_t dice_roll(struct dice *dice);                  /* any 64 bits */
uint64_t dice_below(struct dice *dice, uint64_t bound); /* 0 .. bound - 1, all alike */

/* `count` different numbers below `bound`, rising; count is at most bound. To be freed; NULL: no
 * memory. */
uint64_t *dice_choose(struct dice *dice, uint64_t bound, uint64_t count);

#endif
