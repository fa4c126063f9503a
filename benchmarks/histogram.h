/*
 * Counts of latencies, and percentiles from them: 128 steps to each doubling, so that a figure is
 * right to under 1 %, from a nanosecond to 18 minutes.
 */
#ifndef VELLUM_BENCH_HISTOGRAM_H
#define VELLUM_BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEP_BITS 7
#define HISTOGRAM_MAX_BITS 40
#define HISTOGRAM_SIZE ((HISTOGRAM_MAX_BITS - HISTOGRAM_STEP_BITS + 1) << HISTOGRAM_STEP_BITS)

struct histogram {
    uint64_t counts[HISTOGRAM_SIZE];
    uint64_t total;
    uint64_t sum_ns, min_ns, max_ns; /* min_ns: of no use while total is 0 */
};

void histogram_clear(struct histogram *h);
void histogram_add(struct histogram *h, uint64_t ns, uint64_t times);

/* Adds the counts of `more` to `h`. */
void histogram_merge(struct histogram *h, const struct histogram *more);

/* The smallest latency that `percent` of all did not exceed; 0 if nothing was counted. */
uint64_t histogram_percentile(const struct histogram *h, double percent);

/* "p50_us=... p99_us=... p999_us=... max_us=..." without an end of line. */
void histogram_print(const struct histogram *h);

#endif
