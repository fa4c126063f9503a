/* Choices by chance: even, different where they must be, the same for the same seed. */
#include "server/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void rolls_are_even(void **state)
{
    (void)state;
    static const uint64_t bounds[] = {1, 2, 7, 64, 100};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        struct rng rng = rng_new(i);
        uint32_t seen[100] = {0}, rolls = 2000 * (uint32_t)bounds[i];
        for (uint32_t j = 0; j < rolls; j++) {
            uint64_t roll = rng_below(&rng, bounds[i]);
            assert_true(roll < bounds[i]);
            seen[roll]++;
        }
        for (uint64_t j = 0; j < bounds[i]; j++)
            assert_in_range(seen[j], 1750, 2250); /* over five standard deviations */
    }
}

static void chosen_ones_differ_and_rise(void **state)
{
    (void)state;
    struct rng rng = rng_new(1);
    for (uint64_t bound = 1; bound <= 60; bound++)
        for (uint64_t count = 0; count <= bound; count++) {
            uint64_t *chosen = rng_choose(&rng, bound, count);
            assert_non_null(chosen);
            for (uint64_t i = 0; i < count; i++)
                assert_true(chosen[i] < bound && (i == 0 || chosen[i - 1] < chosen[i]));
            free(chosen);
        }
}

static void each_is_chosen_as_often(void **state)
{
    (void)state;
    struct rng rng = rng_new(2);
    for (uint64_t count = 1; count < 10; count++) {
        uint32_t seen[10] = {0};
        for (int round = 0; round < 10000; round++) {
            uint64_t *chosen = rng_choose(&rng, 10, count);
            for (uint64_t i = 0; i < count; i++)
                seen[chosen[i]]++;
            free(chosen);
        }
        for (int i = 0; i < 10; i++)
            assert_in_range(seen[i], count * 1000 - 250, count * 1000 + 250);
    }
}

static void one_seed_gives_one_choice(void **state)
{
    (void)state;
    struct rng a = rng_new(7), b = rng_new(7), c = rng_new(8);
    uint64_t roll = rng_roll(&a);
    assert_true(roll == rng_roll(&b) && roll != rng_roll(&c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rolls_are_even),
        cmocka_unit_test(chosen_ones_differ_and_rise),
        cmocka_unit_test(each_is_chosen_as_often),
        cmocka_unit_test(one_seed_gives_one_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
