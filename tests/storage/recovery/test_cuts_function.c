/* Changes of the libraries of functions with power cuts, see served_cuts.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/storage/recovery/served_cuts.h"

#define CODE_MOST 50000u
#define COMMAND_BYTES (CODE_MOST + 1024)

static int write_load(struct cuts *cuts, char *to, size_t size, uint32_t most)
{
    uint32_t name = rng_below(&cuts->rng, 3), version = cuts->next++;
    return snprintf(to, size,
                    "FUNCTION LOAD REPLACE \"#!lua name=l%u\\nredis.register_function('f%u',"
                    "function() return %u end)--%0*u\"",
                    name, name, version, (int)rng_below(&cuts->rng, most), version);
}

static void write_transaction(struct cuts *cuts, char *to, size_t size)
{
    int len = snprintf(to, size, "MULTI\r\n");
    len += write_load(cuts, to + len, size - (size_t)len, CODE_MOST);
    snprintf(to + len, size - (size_t)len, "\r\nFCALL f1 0\r\nSET k %u\r\nEXEC", cuts->next++);
}

static void write_command(struct cuts *cuts, char letter, char *to, size_t size)
{
    switch (letter) {
    case 'l':
        write_load(cuts, to, size, 500);
        break;
    case 'L':
        write_load(cuts, to, size, CODE_MOST);
        break;
    case 'd':
        snprintf(to, size, "FUNCTION DELETE l%u", rng_below(&cuts->rng, 3));
        break;
    case 'x':
        snprintf(to, size, "FUNCTION FLUSH");
        break;
    case 's':
        snprintf(to, size, "SET k %u", cuts->next++);
        break;
    case 'F':
        snprintf(to, size, "FLUSHALL");
        break;
    case 'w':
        snprintf(to, size, "SWAPDB 0 1");
        break;
    default:
        write_transaction(cuts, to, size);
    }
}

static void fill(struct cuts *cuts)
{
    cuts_demand(cuts->served, "SET k 0", "+OK");
}

static void go_on(struct cuts *cuts, struct served *served)
{
    char command[COMMAND_BYTES];
    write_load(cuts, command, sizeof command, CODE_MOST);
    cuts_demand(served, command, "$2");
}

/* l: a short library    L: a long one    d: one is deleted    x: all are    s: SET    F: FLUSHALL
 * w: SWAPDB    m: a library, a call of it and a SET in a transaction
 * The picture: the libraries, what their functions return, and the keys. */
static const struct cuts_subject libraries = {
    .alphabet = "lLdxsFwmp",
    .picture = "FUNCTION LIST WITHCODE\r\nFCALL f0 0\r\nFCALL f1 0\r\nFCALL f2 0\r\nGET k\r\n"
               "EXISTS functions\r\nSELECT 1\r\nGET k\r\nSELECT 0",
    .command_most = COMMAND_BYTES,
    .fill = fill,
    .write = write_command,
    .go_on = go_on,
};

static void every_point_of_changes_of_libraries(void **state)
{
    (void)state;
    cuts_run_random(&libraries, "functions", 0, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_point_of_changes_of_libraries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
