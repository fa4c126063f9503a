/* Commands on a stream and its groups with power cuts, see served_cuts.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "tests/storage/recovery/served_cuts.h"

#define ENTRIES 60u
#define MANY 1200u /* pending; XGROUP DESTROY leaves so many for later */
#define FIELD 300u /* bytes, so that entries fill several pages */
#define COMMAND_BYTES 2048u

static uint32_t some_entry(struct cuts *cuts)
{
    uint32_t last = cuts->next - 1, back = rng_below(&cuts->rng, ENTRIES);
    return last > back ? last - back : 1;
}

static uint32_t consumer(struct cuts *cuts)
{
    return rng_below(&cuts->rng, 3);
}

static int ids(struct cuts *cuts, char *to, size_t size, uint32_t count)
{
    int len = 0;
    for (uint32_t i = 0; i < count; i++)
        len += snprintf(to + len, size - (size_t)len, " %u-1", some_entry(cuts));
    return len;
}

static void add_entry(struct cuts *cuts, char *to, size_t size, const char *trimming)
{
    uint32_t number = cuts->next++;
    snprintf(to, size, "XADD s %s %u-1 f %0*u", trimming, number, (int)FIELD, number);
}

static void on_entries(struct cuts *cuts, char *to, size_t size, const char *words,
                       const char *options)
{
    int len = snprintf(to, size, "%s", words);
    len += ids(cuts, to + len, size - (size_t)len, 1 + rng_below(&cuts->rng, 8));
    snprintf(to + len, size - (size_t)len, "%s", options);
}

static void claim(struct cuts *cuts, char *to, size_t size, const char *option)
{
    char words[40], options[80];
    snprintf(words, sizeof words, "XCLAIM s g c%u 0", consumer(cuts));
    snprintf(options, sizeof options, " TIME %u RETRYCOUNT %u%s", 1000 + cuts->next,
             rng_below(&cuts->rng, 9), option);
    on_entries(cuts, to, size, words, options);
}

static void write_single(struct cuts *cuts, char letter, char *to, size_t size)
{
    char trimming[40];
    switch (letter) {
    case 'a':
        snprintf(trimming, sizeof trimming, "MAXLEN %u", 20 + rng_below(&cuts->rng, ENTRIES));
        add_entry(cuts, to, size, trimming);
        break;
    case 'n':
        snprintf(trimming, sizeof trimming, "MINID %u", some_entry(cuts));
        add_entry(cuts, to, size, trimming);
        break;
    case 't':
        snprintf(to, size, "XTRIM s MAXLEN %u", rng_below(&cuts->rng, ENTRIES));
        break;
    case 'd':
        on_entries(cuts, to, size, "XDEL s", "");
        break;
    case 'r':
        snprintf(to, size, "XREADGROUP GROUP g c%u COUNT %u STREAMS s >", consumer(cuts),
                 1 + rng_below(&cuts->rng, 30));
        break;
    case 'k':
        on_entries(cuts, to, size, "XACK s g", "");
        break;
    case 'c':
    case 'f':
        claim(cuts, to, size, letter == 'f' ? " FORCE" : "");
        break;
    case 'u':
        snprintf(to, size, "XAUTOCLAIM s g c%u 0 0 COUNT 20", consumer(cuts));
        break;
    case 'D':
        snprintf(to, size, "XGROUP DESTROY s g");
        break;
    case 'G':
        snprintf(to, size, "XGROUP CREATE s g %u", some_entry(cuts));
        break;
    case 'C':
        snprintf(to, size, "XGROUP DELCONSUMER s g c%u", consumer(cuts));
        break;
    default:
        snprintf(to, size, "XGROUP SETID s g %u", some_entry(cuts));
    }
}

static void write_transaction(struct cuts *cuts, char *to, size_t size)
{
    static const char parts[] = "adkcr";
    int len = snprintf(to, size, "MULTI\r\n");
    for (uint32_t i = 0; i < 3; i++) {
        char command[COMMAND_BYTES];
        write_single(cuts, parts[rng_below(&cuts->rng, sizeof parts - 1)], command, sizeof command);
        len += snprintf(to + len, size - (size_t)len, "%s\r\n", command);
    }
    snprintf(to + len, size - (size_t)len, "EXEC");
}

static void write_command(struct cuts *cuts, char letter, char *to, size_t size)
{
    if (letter == 'm')
        write_transaction(cuts, to, size);
    else
        write_single(cuts, letter, to, size);
}

static void fill(struct cuts *cuts)
{
    char command[COMMAND_BYTES];
    struct served *served = cuts->served;
    uint32_t entries = cuts->size;
    cuts_demand(served, "XGROUP CREATE s g $ MKSTREAM", "+OK");
    for (uint32_t i = 0; i < entries; i++) {
        if (entries < MANY)
            add_entry(cuts, command, sizeof command, "");
        else
            snprintf(command, sizeof command, "XADD s %u-1 f v", cuts->next++);
        cuts_demand(served, command, "$");
    }
    snprintf(command, sizeof command, "XREADGROUP GROUP g c0 COUNT %u STREAMS s >", entries / 3);
    cuts_demand(served, command, "*1");
    snprintf(command, sizeof command, "XREADGROUP GROUP g c1 COUNT %u STREAMS s >",
             entries < MANY ? entries / 3 : entries);
    cuts_demand(served, command, "*1");
    cuts_demand(served, "XGROUP CREATE s other 0", "+OK");
    cuts_demand(served, "XREADGROUP GROUP other c0 COUNT 5 STREAMS s >", "*1");
}

/* New groups have nothing of those that there are or were. */
static void go_on(struct cuts *cuts, struct served *served)
{
    (void)cuts;
    cuts_demand(served, "XGROUP CREATE s new $", "+OK");
    cuts_demand(served, "XADD s * f v", "$");
    cuts_demand(served, "XREADGROUP GROUP new c0 STREAMS s >", "*1");
    cuts_demand(served, "XPENDING s new", "*4\r\n:1\r\n");
    cuts_demand(served, "XPENDING s new - + 9 c0", "*1\r\n");
}

/* a: XADD ... MAXLEN    n: XADD ... MINID    t: XTRIM    d: XDEL    r: XREADGROUP    k: XACK
 * c: XCLAIM    f: XCLAIM ... FORCE    u: XAUTOCLAIM    D: XGROUP DESTROY    G: XGROUP CREATE
 * C: XGROUP DELCONSUMER    i: XGROUP SETID    m: several in a transaction
 * The picture: entries, groups, consumers, what is pending, and all their times. */
static const struct cuts_subject streams = {
    .alphabet = "antdrkcfuDGCimp",
    .picture = "XINFO STREAM s FULL COUNT 0",
    .command_most = 4 * COMMAND_BYTES,
    .one_commit = true,
    .fill = fill,
    .write = write_command,
    .go_on = go_on,
};

static void every_point_of_commands_on_streams(void **state)
{
    (void)state;
    cuts_run_random(&streams, "streams", ENTRIES, 15);
}

/* What is left of the group goes with the commands that follow, of whichever server. */
static void every_point_of_a_large_group_that_goes(void **state)
{
    (void)state;
    static const char *scripts[] = {"D", "DGrk", "pDGc", "DpGrr"};
    struct rng rng = {rng_seed("a large group")};
    time_t until = time(NULL) + 1 + cuts_seconds(15) / 3;
    uint32_t tried = 0, i = rng_below(&rng, 4);
    if (getenv("VELLUM_SCRIPT"))
        return;
    do
        tried += cuts_run(&streams, scripts[i++ % 4], MANY, rng_next(&rng));
    while (time(NULL) < until);
    fprintf(stderr, "# %u states\n", tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_point_of_commands_on_streams),
        cmocka_unit_test(every_point_of_a_large_group_that_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
