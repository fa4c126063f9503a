/*
 * The seed of a test's random choices, for tests without the storage harness: of VELLUM_SEED, or a
 * new one; printed, so that a failure can be repeated. Include cmocka.h before this.
 */
#ifndef VELLUM_SEED_H
#define VELLUM_SEED_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t seed_for(const char *test)
{
    const char *given = getenv("VELLUM_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("%s: VELLUM_SEED=%llu\n", test, (unsigned long long)seed);
    return seed;
}

#endif
