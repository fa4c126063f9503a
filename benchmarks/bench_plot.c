#include "benchmarks/bench_report.h"

#include <stdio.h>
#include <sys/wait.h>

#define FIGURES 3
/* Ratio of the highest to the lowest bar above which the axis is logarithmic. */
#define LINEAR_MAX 50

static const char *const TITLES[FIGURES] = {"operations per second",
                                            "latency, median, microseconds",
                                            "latency, 99th percentile, microseconds"};

static double figure_of(const struct bench_row *row, int figure)
{
    return figure == 0
               ? row->rate
               : (double)histogram_percentile(&row->result.latencies, figure == 1 ? 50 : 99) / 1e3;
}

static void write_size(FILE *to, uint64_t size)
{
    static const char *const units[] = {"B", "KB", "MB"};
    int unit = 0;
    for (; size % 1024 == 0 && unit < 2; unit++)
        size /= 1024;
    fprintf(to, "\\n%llu %s", (unsigned long long)size, units[unit]);
}

/* Tests along the axis, transports side by side; rows arrive test by test. */
static void write_data(FILE *to, const struct bench_options *options, const struct bench_row *rows,
                       uint32_t count)
{
    fprintf(to, "$data << END\n");
    for (uint32_t i = 0; i < count; i += options->transport_count) {
        fprintf(to, "\"%.24s", rows[i].name);
        if (rows[i].size > 0)
            write_size(to, rows[i].size);
        fprintf(to, "\"");
        for (uint32_t j = 0; j < options->transport_count; j++)
            for (int figure = 0; figure < FIGURES; figure++)
                fprintf(to, " %f", figure_of(&rows[i + j], figure));
        fprintf(to, "\n");
    }
    fprintf(to, "END\n");
}

static void write_axis(FILE *to, const struct bench_row *rows, uint32_t count, int figure)
{
    double least = figure_of(&rows[0], figure), most = least;
    for (uint32_t i = 1; i < count; i++) {
        double value = figure_of(&rows[i], figure);
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    if (least > 0 && most > LINEAR_MAX * least)
        fprintf(to, "set logscale y\nset yrange [%f:*]\n", least / 2);
    else
        fprintf(to, "unset logscale y\nset yrange [0:*]\n");
}

/* Draws the bars of one figure, per transport. */
static void write_panel(FILE *to, const struct bench_options *options, const struct bench_row *rows,
                        uint32_t count, int figure)
{
    write_axis(to, rows, count, figure);
    fprintf(to, "set title '%s'\nplot", TITLES[figure]);
    for (uint32_t i = 0; i < options->transport_count; i++) {
        fprintf(to, "%s $data using %d", i > 0 ? "," : "", (int)i * FIGURES + 2 + figure);
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
    for (int figure = 0; figure < FIGURES; figure++)
        write_panel(to, options, rows, count, figure);
    fprintf(to, "unset multiplot\n");
}

void bench_plot(const struct bench_options *options, const struct bench_row *rows, uint32_t count)
{
    FILE *gnuplot = popen("gnuplot", "w");
    if (gnuplot == NULL)
        bench_give_up("gnuplot cannot be started");
    write_script(gnuplot, options, rows, count);
    int status = pclose(gnuplot);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        bench_give_up("gnuplot has not drawn %s", options->plot);
}
