/*
 * The benchmarks' histogram: percentiles against those of the sorted values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "benchmarks/histogram.h"

#define COUNT 20000

static uint64_t state_of_dice = 7;

/* Of every magnitude alike. */
static uint64_t latency(void)
{
    state_of_dice = state_of_dice * 6364136223846793005ull + 1442695040888963407ull;
    return (state_of_dice >> 20) >> (state_of_dice >> 59);
}

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static void is_near(uint64_t is, uint64_t exact)
{
    if (is < exact || (double)is > (double)exact * 1.01 + 1)
        fail_msg("%llu instead of %llu", (unsigned long long)is, (unsigned long long)exact);
}

static void percentiles_are_right_to_a_hundredth(void **state)
{
    (void)state;
    static struct histogram h, parts[3];
    static uint64_t values[COUNT];
    uint64_t sum = 0;
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = latency() % (1ull << HISTOGRAM_MAX_BITS);
        sum += values[i];
        histogram_add(&parts[i % 2], values[i], 1);
    }
    for (int i = 0; i < 3; i++) /* the third is empty */
        histogram_merge(&h, &parts[i]);
    qsort(values, COUNT, sizeof *values, compare);
    assert_int_equal(h.total, COUNT);
    assert_int_equal(h.sum_ns, sum);
    assert_int_equal(h.min_ns, values[0]);
    assert_int_equal(h.max_ns, values[COUNT - 1]);
    assert_int_equal(histogram_percentile(&h, 100), values[COUNT - 1]);
    static const double percents[] = {0.1, 1, 10, 50, 90, 99, 99.9};
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        size_t place = (size_t)(percents[i] / 100 * COUNT + 0.5);
        is_near(histogram_percentile(&h, percents[i]), values[place - 1]);
    }
}

static void what_is_too_long_is_not_lost(void **state)
{
    (void)state;
    static struct histogram h;
    assert_int_equal(histogram_percentile(&h, 50), 0);
    histogram_add(&h, UINT64_MAX / 2, 3);
    histogram_add(&h, 5, 1);
    assert_int_equal(h.total, 4);
    assert_int_equal(histogram_percentile(&h, 25), 5);
    assert_int_equal(histogram_percentile(&h, 99), (1ull << HISTOGRAM_MAX_BITS) - 1);
    assert_int_equal(h.max_ns, UINT64_MAX / 2);
    histogram_clear(&h);
    assert_int_equal(h.total, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_right_to_a_hundredth),
        cmocka_unit_test(what_is_too_long_is_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
