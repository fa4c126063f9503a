/*
 * The log: lines of the form "pid:M 21 Nov 2026 10:00:00.123 * text", written to a file or to
 * standard output. Each line is a single write to a file that is opened only for that line. So
 * lines of different threads never interleave, and the file may be renamed at any time.
 *
 * Threads: log_line() may be called from any thread. The fields are set before the workers start.
 * The level is read from the configuration, so that CONFIG SET loglevel takes effect at once.
 */
#ifndef VELLUM_LOG_H
#define VELLUM_LOG_H

#include <stdbool.h>

#include "server/config/config.h"

#define LOG_LINE_MAX 1024

struct log {
    const struct config *config;
    char file[4096]; /* empty: standard output */
};

void log_init(struct log *log, struct config *config);
bool log_file_usable(const struct log *log); /* false: the file cannot be opened, see errno */
void log_line(const struct log *log, enum config_loglevel level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
