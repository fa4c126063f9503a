#include "benchmarks/bench_report.h"

#include <stdio.h>
#include <string.h>

#define U(value) ((unsigned long long)(value))

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static double percentile_ms(const struct bench_row *row, double percent)
{
    return ms(histogram_percentile(&row->result.latencies, percent));
}

static double average_ms(const struct bench_row *row)
{
    const struct histogram *h = &row->result.latencies;
    return h->total > 0 ? ms(h->sum_ns) / (double)h->total : 0;
}

static double least_ms(const struct bench_row *row)
{
    return row->result.latencies.total > 0 ? ms(row->result.latencies.min_ns) : 0;
}

static double per_operation(const struct bench_row *row, double value)
{
    return row->result.operations > 0 ? value / (double)row->result.operations : 0;
}

static double server_us(const struct bench_row *row)
{
    return per_operation(row, row->server_cpu_s * 1e6);
}

static double client_us(const struct bench_row *row)
{
    return per_operation(row, row->result.client_cpu_s * 1e6);
}

/* "-" if the server does not report it. */
static void print_copied(char text[32], const struct bench_row *row, const char *unknown)
{
    if (row->has_copied)
        snprintf(text, 32, "%.1f", per_operation(row, row->copied_bytes));
    else
        snprintf(text, 32, "%s", unknown);
}

/* ---- text ---- */

static void print_head(const struct bench_options *options, const struct bench_row *row)
{
    printf("====== %s ======\n", row->test);
    printf("  %llu requests completed in %.2f seconds\n", U(row->result.operations),
           row->result.seconds);
    printf("  %u parallel clients\n", options->clients);
    if (row->size > 0)
        printf("  %llu bytes payload\n", U(row->size));
    if (row->records > 0)
        printf("  %llu records\n", U(row->records));
    printf("  pipeline: %u\n  threads: %u\n", options->pipeline, options->threads);
    if (options->rate > 0)
        printf("  open loop: %.10g requests per second due; latency from when each was due\n",
               options->rate);
    if (options->rounds > 1)
        printf("  %u rounds%s; throughput is their median\n", options->rounds,
               options->transport_count > 1 ? ", transports in turn" : "");
    printf("\n");
}

static void print_summary(const struct bench_row *row)
{
    char copied[32];
    print_copied(copied, row, "-");
    printf("Summary:\n  throughput summary: %.2f requests per second\n", row->rate);
    printf("  latency summary (msec):\n  %11s %9s %9s %9s %9s %9s %9s\n", "avg", "min", "p50",
           "p95", "p99", "p99.9", "max");
    printf("  %11.3f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", average_ms(row), least_ms(row),
           percentile_ms(row, 50), percentile_ms(row, 95), percentile_ms(row, 99),
           percentile_ms(row, 99.9), ms(row->result.latencies.max_ns));
    printf("  per request: client CPU %.2f us, server CPU %.2f us, bytes copied by channels %s\n\n",
           client_us(row), server_us(row), copied);
}

static void print_table(const struct bench_row *rows, uint32_t count)
{
    printf("%-14s %11s %9s %9s %9s %9s %9s %9s %9s\n", "transport", "ops/s", "p50 ms", "p99 ms",
           "p99.9 ms", "max ms", "client us", "server us", "copied B");
    for (uint32_t i = 0; i < count; i++) {
        const struct bench_row *row = &rows[i];
        char copied[32];
        print_copied(copied, row, "-");
        printf("%-14s %11.1f %9.3f %9.3f %9.3f %9.3f %9.2f %9.2f %9s\n", row->transport, row->rate,
               percentile_ms(row, 50), percentile_ms(row, 99), percentile_ms(row, 99.9),
               ms(row->result.latencies.max_ns), client_us(row), server_us(row), copied);
    }
    printf("CPU and copied bytes are per operation; copied: by the server's channels.\n\n");
}

static void print_quiet(const struct bench_options *options, const struct bench_row *row)
{
    printf("%s", row->test);
    if (row->size > 0 && options->size_count > 1)
        printf(" %llu bytes", U(row->size));
    if (options->transport_count > 1)
        printf(" by %s", row->transport);
    printf(": %.2f requests per second, p50=%.3f msec\n", row->rate, percentile_ms(row, 50));
}

/* Warns of whatever makes the figures misleading. */
static void warn(const struct bench_row *row)
{
    const struct bench_result *result = &row->result;
    if (row->calls != result->commands)
        fprintf(stderr, "%s by %s: %llu commands were sent, the server has counted %llu\n",
                row->test, row->transport, U(result->commands), U(row->calls));
    if (result->absent > 0)
        fprintf(stderr, "%s by %s: %llu replies said that nothing was there\n", row->test,
                row->transport, U(result->absent));
    if (result->odd > 0)
        fprintf(stderr, "%s by %s: %llu replies were of another length\n", row->test,
                row->transport, U(result->odd));
}

/* ---- for programs ---- */

static void print_csv(const struct bench_options *options, const struct bench_row *row)
{
    char copied[32];
    print_copied(copied, row, "");
    printf("\"%s\",\"%.2f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\",", row->test,
           row->rate, average_ms(row), least_ms(row), percentile_ms(row, 50),
           percentile_ms(row, 95), percentile_ms(row, 99), ms(row->result.latencies.max_ns));
    printf("\"%s\",\"%llu\",\"%u\",\"%u\",\"%.10g\",\"%.3f\",\"%.3f\",\"%.3f\",\"%s\",\"%llu\","
           "\"%llu\",\"%llu\",\"%llu\",\"%llu\"\n",
           row->transport, U(row->size), options->clients, options->pipeline, options->rate,
           percentile_ms(row, 99.9), client_us(row), server_us(row), copied,
           U(row->result.operations), U(row->result.commands), U(row->calls), U(row->result.absent),
           U(row->result.odd));
}

static void print_json(const struct bench_options *options, const struct bench_row *row)
{
    char copied[32];
    print_copied(copied, row, "null");
    printf("{\"name\": \"%s\", \"test\": \"%s\", \"transport\": \"%s\", \"value_bytes\": %llu, "
           "\"clients\": %u, "
           "\"pipeline\": %u, \"threads\": %u, \"rounds\": %u, \"rate\": %.10g, ",
           row->name, row->test, row->transport, U(row->size), options->clients, options->pipeline,
           options->threads, options->rounds, options->rate);
    printf("\"operations\": %llu, \"seconds\": %.6f, \"ops_per_second\": %.2f, \"avg_ms\": %.4f, "
           "\"min_ms\": %.4f, \"p50_ms\": %.4f, \"p95_ms\": %.4f, \"p99_ms\": %.4f, "
           "\"p99.9_ms\": %.4f, \"max_ms\": %.4f, ",
           U(row->result.operations), row->result.seconds, row->rate, average_ms(row),
           least_ms(row), percentile_ms(row, 50), percentile_ms(row, 95), percentile_ms(row, 99),
           percentile_ms(row, 99.9), ms(row->result.latencies.max_ns));
    printf("\"client_cpu_us\": %.3f, \"server_cpu_us\": %.3f, \"copied_bytes\": %s, "
           "\"commands\": %llu, \"server_calls\": %llu, \"absent\": %llu, \"odd\": %llu}",
           client_us(row), server_us(row), copied, U(row->result.commands), U(row->calls),
           U(row->result.absent), U(row->result.odd));
}

/* ---- all ---- */

void bench_report_begin(const struct bench_options *options)
{
    if (options->format == BENCH_CSV)
        printf("\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\","
               "\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\",\"transport\","
               "\"value_bytes\",\"clients\",\"pipeline\",\"rate\",\"p99.9_latency_ms\","
               "\"client_cpu_us\",\"server_cpu_us\",\"copied_bytes\",\"operations\",\"commands\","
               "\"server_calls\",\"absent\",\"odd\"\n");
    else if (options->format == BENCH_JSON)
        printf("[");
}

static void report_row(const struct bench_options *options, const struct bench_row *row,
                       bool is_first)
{
    if (options->format == BENCH_CSV)
        print_csv(options, row);
    else if (options->format == BENCH_QUIET)
        print_quiet(options, row);
    else if (options->format == BENCH_JSON) {
        printf("%s\n", is_first ? "" : ",");
        print_json(options, row);
    }
}

void bench_report_test(const struct bench_options *options, const struct bench_row *rows,
                       uint32_t count, bool is_first)
{
    if (options->format == BENCH_TEXT) {
        print_head(options, rows);
        if (count == 1)
            print_summary(rows);
        else
            print_table(rows, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        report_row(options, &rows[i], is_first && i == 0);
        warn(&rows[i]);
    }
    fflush(stdout);
}

void bench_report_end(const struct bench_options *options)
{
    if (options->format == BENCH_JSON)
        printf("\n]\n");
}
