/*
 * The log: lines in the form "pid:M 21 Nov 2026 10:00:00.123 * text", to a file or to standard
 * output. Each line is one write to a file opened for that line alone, so that lines of different
 * threads never mix and the file may be moved away at any time.
 *
 * Threads: log_line from any thread. The fields are set before the workers start; the level is read
 * from the configuration, so that CONFIG SET loglevel takes effect at once.
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
bool log_file_usable(const struct log *log); /* false: it cannot be opened, errno says why */
void log_line(const struct log *log, enum config_loglevel level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
