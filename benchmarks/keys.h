/*
 * Which key comes next: uniform, or YCSB's scrambled zipfian (theta 0.99), whose popular keys are
 * spread over the whole range. And how a key is written: "key:" and twelve digits.
 */
#ifndef VELLUM_BENCH_KEYS_H
#define VELLUM_BENCH_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#define KEY_LEN 16

struct keys {
    uint64_t state; /* of the random numbers */
    uint64_t count;
    bool zipfian;
    double zeta, alpha, eta; /* of the zipfian distribution over `count` keys */
};

/* Takes time in proportion to `count` where zipfian; to seed again, or a copy, takes none. */
void keys_init(struct keys *keys, uint64_t count, bool zipfian, uint64_t seed);
void keys_seed(struct keys *keys, uint64_t seed);
uint64_t keys_random(struct keys *keys); /* any 64 bits */
uint64_t keys_next(struct keys *keys);   /* 0 .. count - 1 */

/* Of keys 0 .. newest, newer ones more often: zipfian by age. */
uint64_t keys_latest(struct keys *keys, uint64_t newest);

/* The twelve digits of a key. */
#define KEY_DIGITS 12
void keys_digits(char digits[KEY_DIGITS], uint64_t number);
void keys_format(char key[KEY_LEN], uint64_t number);

int64_t bench_now_ns(void);     /* monotonic */
double bench_cpu_seconds(void); /* of this process */

#endif
