/*
 * Runs command functions on the model store without a server: a command line in, the reply's bytes
 * out. What it does between the two is what the server's runner does. The test names the commands.
 */
#ifndef VELLUM_GENERIC_DRIVER_H
#define VELLUM_GENERIC_DRIVER_H

#include "server/core/command.h"
#include "server/core/server.h"
#include "server/core/session.h"

struct driver {
    struct server server;
    struct session session;
    struct store_worker *worker;
    const struct command *table; /* ends with a row without a name */
    struct resp_parser parser;
    struct resp_writer reply;
    int64_t now_ms;       /* what commands see */
    uint64_t random_seed; /* likewise; changes with each command */
    uint64_t hits, misses;
    uint32_t reruns; /* of all commands so far */
};

/* wait_per_mille: see model_store_set_waits. */
void driver_open(struct driver *driver, const struct command *table, uint32_t wait_per_mille);
void driver_close(struct driver *driver);

/* The reply to a line of words, quoted as in inline commands; zero-terminated, until the next run.
 */
const char *driver_run(struct driver *driver, const char *line);

/* Fails the test if the reply is not exactly this one. */
#define expect(driver, line, wanted) assert_string_equal(driver_run(driver, line), wanted)

/* Puts an item there without any command. */
void driver_put(struct driver *driver, uint32_t db, const char *key, enum item_type type,
                const char *value, size_t len, int64_t expire_ms);

#endif
