#include "benchmarks/keys.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define THETA 0.99

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* Inversion of the zipfian distribution after Gray et al., "Quickly generating billion-record
 * synthetic databases" (SIGMOD '94): the two most popular ranks exactly, the others by a curve. */
void keys_init(struct keys *keys, uint64_t count, bool zipfian, uint64_t seed)
{
    *keys = (struct keys){.count = count, .zipfian = zipfian};
    keys_seed(keys, seed);
    if (!zipfian)
        return;
    for (uint64_t i = 1; i <= count; i++)
        keys->zeta += 1 / pow((double)i, THETA);
    double zeta_of_two = 1 + pow(0.5, THETA);
    keys->alpha = 1 / (1 - THETA);
    keys->eta = (1 - pow(2.0 / (double)count, 1 - THETA)) / (1 - zeta_of_two / keys->zeta);
}

void keys_seed(struct keys *keys, uint64_t seed)
{
    keys->state = mix(seed + 1);
}

uint64_t keys_random(struct keys *keys)
{
    keys->state += 0x9e3779b97f4a7c15ull;
    return mix(keys->state);
}

static uint64_t zipfian_rank(struct keys *keys)
{
    double u = (double)(keys_random(keys) >> 11) / (double)(1ull << 53);
    double place = u * keys->zeta;
    if (place < 1)
        return 0;
    if (place < 1 + pow(0.5, THETA))
        return 1;
    return (uint64_t)((double)keys->count * pow(keys->eta * u - keys->eta + 1, keys->alpha));
}

uint64_t keys_next(struct keys *keys)
{
    uint64_t spread = keys->zipfian ? mix(zipfian_rank(keys) + 1) : keys_random(keys);
    return (uint64_t)((unsigned __int128)spread * keys->count >> 64);
}

uint64_t keys_latest(struct keys *keys, uint64_t newest)
{
    uint64_t age = zipfian_rank(keys);
    return age <= newest ? newest - age : newest;
}

void keys_digits(char digits[KEY_DIGITS], uint64_t number)
{
    for (int i = KEY_DIGITS - 1; i >= 0; i--) {
        digits[i] = (char)('0' + number % 10);
        number /= 10;
    }
}

void keys_format(char key[KEY_LEN], uint64_t number)
{
    memcpy(key, "key:", 4);
    keys_digits(key + 4, number);
}

int64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

double bench_cpu_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}
