/*
 * The configuration as it is read at the start: the command line, the file that it names, and the
 * warnings about both.
 */
#ifndef VELLUM_CONFIG_FILE_H
#define VELLUM_CONFIG_FILE_H

#include <stdio.h>

#include "server/config/config.h"

/* What main() does next. */
enum config_start {
    CONFIG_START,        /* continue and start */
    CONFIG_EXIT_SUCCESS, /* --help or --version was printed to `out` */
    CONFIG_EXIT_FAILURE, /* the error was printed to `err` */
};

/* Reads the command line and the configuration file that it names, in Redis's form: vellum-server
 * [/path/to/file.conf] [--directive value ...], and a dash for lines of the standard input.
 * Passwords in `argv` are overwritten. */
enum config_start config_read(struct config *config, int argc, char *const argv[], FILE *out,
                              FILE *err);

/* Makes `dir` the working directory, and creates it if it is missing: as in Redis, relative names
 * (logfile, pidfile, unixsocket) are relative to it. False: the error was printed to `err`. */
bool config_enter_dir(struct config *config, FILE *err);

/* Calls `line` for each warning about the configuration. Call it when the log is open. */
void config_each_note(const struct config *config, void (*line)(void *arg, const char *text),
                      void *arg);

/* The warning that a directive has no effect, which is kept for config_each_note(). Empty: it has
 * one, or that was said already; NULL: out of memory. */
const char *config_note_ignored(struct config *config, size_t row);
void config_notes_free(struct config *config);

#endif
