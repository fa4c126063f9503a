/*
 * INFO's text, by section.
 */
#ifndef VELLUM_INFO_H
#define VELLUM_INFO_H

#include <stdbool.h>
#include <stdio.h>

#include "storage/store.h"

struct server;

struct info_section {
    const char *name; /* lower case, as in INFO's argument */
    void (*write)(FILE *to, struct server *server);
    bool usual; /* shown by INFO without arguments */
    /* The same within a transaction, including its changes. NULL: there is no difference. */
    enum store_result (*write_inside)(FILE *to, struct store_txn *txn);
};

/* CONFIG RESETSTAT: resets the workers' run time. */
void info_forget_loop_time(struct server *server);

/* The rates that INFO shows are those between the last two samples, about a second apart: for the
 * timers of workers, which tick while there are connections. Any thread. */
void info_sample_rates(struct server *server);

extern const struct info_section info_sections[];
extern const size_t info_section_count;

#endif
