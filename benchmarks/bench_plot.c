#include "bench_report.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* Tests go along the axis, transports side by side: rows come test by test. */
static void write_data(FILE *to, const struct bench_options *options, const struct bench_row *rows,
                       uint32_t count)
{
    fprintf(to, "$data << END\n");
    for (uint32_t i = 0; i < count; i += options->transport_count) {
        fprintf(to, "\"%.24s", rows[i].name);
        if (rows[i].size > 0)
            fprintf(to, "\\n%llu B", (unsigned long long)rows[i].size);
        fprintf(to, "\"");
        for (uint32_t j = 0; j < options->transport_count; j++) {
            const struct bench_row *row = &rows[i + j];
            const struct histogram *h = &row->result.latencies;
            fprintf(to, " %f %f %f", row->rate, (double)histogram_percentile(h, 50) / 1e3,
                    (double)histogram_percentile(h, 99) / 1e3);
        }
        fprintf(to, "\n");
    }
    fprintf(to, "END\n");
}

/* Bars of one figure of the three that each transport has. */
static void write_panel(FILE *to, const struct bench_options *options, const char *title,
                        int figure)
{
    fprintf(to, "set title '%s'\nplot", title);
    for (uint32_t i = 0; i < options->transport_count; i++) {
        fprintf(to, "%s $data using %d", i > 0 ? "," : "", (int)i * 3 + 2 + figure);
        fprintf(to, "%s title '%s'", i == 0 ? ":xtic(1)" : "", options->transports[i]->name);
    }
    fprintf(to, "\n");
}

static void write_script(FILE *to, const struct bench_options *options,
                         const struct bench_row *rows, uint32_t count)
{
    uint32_t groups = count / options->transport_count;
    fprintf(to, "set terminal pngcairo noenhanced size %u,1200\nset output '%s'\n",
            480 + 120 * groups, options->plot);
    write_data(to, options, rows, count);
    fprintf(to,
            "set style data histogram\nset style histogram clustered gap 1\n"
            "set style fill solid 0.8\nset grid ytics\nset key outside right top\n"
            "set bmargin 3\n"
            "set multiplot layout 3,1 title '%u clients, pipeline %u, %s'\n",
            options->clients, options->pipeline, options->rate > 0 ? "open loop" : "closed loop");
    fprintf(to, "set yrange [0:*]\n");
    write_panel(to, options, "operations per second", 0);
    write_panel(to, options, "latency, median, microseconds", 1);
    write_panel(to, options, "latency, 99th percentile, microseconds", 2);
    fprintf(to, "unset multiplot\n");
}

void bench_plot(const struct bench_options *options, const struct bench_row *rows, uint32_t count)
{
    if (strchr(options->plot, '\'') != NULL)
        bench_give_up("the plot's name may hold no quote");
    FILE *gnuplot = popen("gnuplot", "w");
    if (gnuplot == NULL)
        bench_give_up("gnuplot cannot be started");
    write_script(gnuplot, options, rows, count);
    int status = pclose(gnuplot);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        bench_give_up("gnuplot has not drawn %s", options->plot);
}
