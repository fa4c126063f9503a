/*
 * What was measured, as text, CSV, JSON or a drawing.
 */
#ifndef VELLUM_BENCH_REPORT_H
#define VELLUM_BENCH_REPORT_H

#include "benchmarks/bench_options.h"
#include "benchmarks/bench_run.h"

/* One test with one size by one transport, all rounds. */
struct bench_row {
    const char *name, *test; /* for -t; the title */
    const char *transport;
    uint64_t size; /* 0: values do not matter */
    double rate;   /* operations per second: the median of the rounds' */
    double server_cpu_s, copied_bytes;
    bool has_copied;
    uint64_t calls; /* of its commands, as the server counts them */
    uint64_t records;
    struct bench_result result; /* of all rounds together */
};

void bench_report_begin(const struct bench_options *options);
/* The rows of one test: one for each transport. */
void bench_report_test(const struct bench_options *options, const struct bench_row *rows,
                       uint32_t count, bool is_first);
void bench_report_end(const struct bench_options *options);

/* Draws all rows into options->plot. Gives up if gnuplot cannot. */
void bench_plot(const struct bench_options *options, const struct bench_row *rows, uint32_t count);

#endif
