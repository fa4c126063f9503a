/*
 * Runs command functions on the model store as the server's runner would, for tests: a script is a
 * list of commands with their replies as literals.
 *
 * Each script is run in fresh stores, for both RESP versions, with reads that never wait and with
 * reads that wait at random. A command is written as an inline command (quotes and \\xHH escapes).
 * Those that begin with '@' are the driver's own:
 *     @list KEY            KEY becomes a list, for commands that must refuse it
 *     @fill KEY LEN BYTE   KEY becomes LEN times BYTE
 *     @ttl KEY             milliseconds left, -1 without expiry, -2 if absent
 *     @form KEY            its type, the form in which Redis would keep it, "tree" if it is one
 *     @expire KEY MS       KEY expires after MS
 *     @wake KEY            removes fields of a hash that have expired; how many
 *     @pass MS             so much time passes
 *     @lookups             keyspace hits and misses of the command before
 *     @keys                keys that the store holds, expired ones included
 *     @limit BYTES         proto-max-bulk-len
 *     @config NAME NUMBER  any directive that is a number
 */
#ifndef VELLUM_COMMAND_DRIVER_H
#define VELLUM_COMMAND_DRIVER_H

#include "server/commands/commands.h"

/* In replies a zero byte is written as the two characters \\0. */
struct step {
    const char *command, *reply;
    const char *reply3; /* NULL: as `reply`, but with RESP3's null */
};

/* A script ends with a step of NULLs. */
void driver_run_script(const struct step *script);

struct driver;

#define DRIVER_NO_WAITS 0
struct driver *driver_open(uint8_t resp_version, uint64_t wait_seed);
void driver_close(struct driver *driver);

/* The reply is the driver's, until the next command. Fails the test if the command does not end
 * with STORE_OK. */
struct resp_slice driver_run(struct driver *driver, const struct resp_slice *argv, size_t argc);
struct resp_slice driver_run_line(struct driver *driver, const char *line);

/* The reply as a text that ends, to a command line with printf's placeholders; until the next one.
 */
const char *driver_text(struct driver *driver, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The integer, or the count of elements, that a reply begins with. */
int driver_number(const char *reply);

/* Runs a test in a store that never waits, and in some that do. */
void driver_in_stores(void (*test)(struct driver *driver));

#define FORM(text) "+" text "\r\n"
#define OK "+OK\r\n"
#define NIL "$-1\r\n"
#define INT(n) ":" #n "\r\n"
#define BULK(len, text) "$" #len "\r\n" text "\r\n"
#define ERR(text) "-ERR " text "\r\n"
#define EMPTY "$0\r\n\r\n"
#define SYNTAX ERR("syntax error")
#define NOT_INT ERR("value is not an integer or out of range")
#define WRONG "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
#define TOO_LONG ERR("string exceeds maximum allowed size (proto-max-bulk-len)")
#define BAD_OFFSET ERR("bit offset is not an integer or out of range")

#endif
