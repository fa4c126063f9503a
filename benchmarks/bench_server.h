/*
 * What the server under test reports about itself: its INFO, before and after a run.
 */
#ifndef VELLUM_BENCH_SERVER_H
#define VELLUM_BENCH_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "clients/vellum.h"

#define BENCH_NAMES_MAX 2

struct bench_figures {
    double cpu_s;        /* of the whole process */
    double copied_bytes; /* by channels */
    bool has_copied;     /* it reports this */
    uint64_t calls;      /* of the requested commands */
};

/* `names`: of commands, as INFO commandstats has them. Gives up if it cannot. */
void bench_figures_take(struct bench_figures *figures, struct vellum *control, int count,
                        const char *const *names);

#endif
