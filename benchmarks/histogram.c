#include "benchmarks/histogram.h"

#include <stdio.h>
#include <string.h>

/* Below 2^STEP_BITS each value has a step of its own; above, so many share a doubling. */
static uint32_t step_of(uint64_t ns)
{
    if (ns >> HISTOGRAM_MAX_BITS)
        ns = (1ull << HISTOGRAM_MAX_BITS) - 1;
    if (ns < 1u << HISTOGRAM_STEP_BITS)
        return (uint32_t)ns;
    uint32_t shift = 63 - (uint32_t)__builtin_clzll(ns) - HISTOGRAM_STEP_BITS;
    return ((shift + 1) << HISTOGRAM_STEP_BITS) +
           (uint32_t)((ns >> shift) - (1u << HISTOGRAM_STEP_BITS));
}

/* The highest value of the step. */
static uint64_t top_of(uint32_t step)
{
    if (step < 1u << HISTOGRAM_STEP_BITS)
        return step;
    uint32_t shift = (step >> HISTOGRAM_STEP_BITS) - 1;
    uint64_t place = step & ((1u << HISTOGRAM_STEP_BITS) - 1);
    return ((place + (1u << HISTOGRAM_STEP_BITS) + 1) << shift) - 1;
}

void histogram_clear(struct histogram *h)
{
    memset(h, 0, sizeof *h);
}

void histogram_add(struct histogram *h, uint64_t ns, uint64_t times)
{
    if (h->total == 0 || ns < h->min_ns)
        h->min_ns = ns;
    h->counts[step_of(ns)] += times;
    h->total += times;
    h->sum_ns += ns * times;
    if (ns > h->max_ns)
        h->max_ns = ns;
}

void histogram_merge(struct histogram *h, const struct histogram *more)
{
    if (more->total > 0 && (h->total == 0 || more->min_ns < h->min_ns))
        h->min_ns = more->min_ns;
    for (uint32_t i = 0; i < HISTOGRAM_SIZE; i++)
        h->counts[i] += more->counts[i];
    h->total += more->total;
    h->sum_ns += more->sum_ns;
    if (more->max_ns > h->max_ns)
        h->max_ns = more->max_ns;
}

uint64_t histogram_percentile(const struct histogram *h, double percent)
{
    double wanted = (double)h->total * percent / 100;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < HISTOGRAM_SIZE; i++) {
        seen += h->counts[i];
        if (seen > 0 && (double)seen >= wanted)
            return top_of(i) < h->max_ns ? top_of(i) : h->max_ns;
    }
    return h->max_ns;
}

void histogram_print(const struct histogram *h)
{
    printf("p50_us=%.1f p99_us=%.1f p999_us=%.1f max_us=%.1f",
           (double)histogram_percentile(h, 50) / 1e3, (double)histogram_percentile(h, 99) / 1e3,
           (double)histogram_percentile(h, 99.9) / 1e3, (double)h->max_ns / 1e3);
}
