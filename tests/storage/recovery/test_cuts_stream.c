/* Commands on a stream and its groups, by a whole server on the engine, with the power cut at every
 * I/O of them: the medium is recorded before each I/O that changes it, and servers are started on
 * these moments afterwards, with what was unflushed kept, lost, torn and mixed. What such a server
 * tells of the stream is what the first one told of it after one of the commands, the last that it
 * had acknowledged or a later one. Work goes on, and the power goes once more.
 *
 * VELLUM_SCRIPT with VELLUM_SEED runs one script alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "storage/recovery/open.h"
#include "tests/storage/fault_disk.h"
#include "tests/unit/served.h"

#define LONGEST 8u
#define IMAGES (LONGEST + 2)
#define MOMENTS 4096u
#define STATES 60u /* of a script, unless VELLUM_SCRIPT asks for all */
#define ENTRIES 60u
#define MANY 1200u /* pending; XGROUP DESTROY leaves so many for later */
#define FIELD 300u /* bytes, so that entries fill several pages */
#define COMMAND_BYTES 2048u
#define FILLERS 70u /* to write them twice makes a checkpoint due */
#define FILLER_BYTES 3000u

/* a: XADD ... MAXLEN    n: XADD ... MINID    t: XTRIM    d: XDEL    r: XREADGROUP    k: XACK
 * c: XCLAIM    f: XCLAIM ... FORCE    u: XAUTOCLAIM    D: XGROUP DESTROY    G: XGROUP CREATE
 * C: XGROUP DELCONSUMER    i: XGROUP SETID    m: several in a transaction    p: a checkpoint */
static const char alphabet[] = "antdrkcfuDGCimp";
#define LETTERS (sizeof alphabet - 1)

struct life {
    struct rig rig; /* its options */
    struct store *store;
    struct served *served;
};

/* What the server tells of the stream after a commit. */
struct image {
    uint64_t commit;
    char *picture;
};

struct moment {
    struct medium *medium;
    uint64_t acknowledged;
};

struct script {
    char letters[LONGEST + 1];
    struct rng rng;
    struct life life;
    uint32_t next; /* ID of an entry */
    struct image images[IMAGES];
    uint32_t image_count;
    _Atomic uint64_t acknowledged;
    struct moment moments[MOMENTS];
    uint32_t moment_count;
};

/* ---- a server ---- */

static void start(struct life *life, struct medium *medium)
{
    struct rig *rig = &life->rig;
    rig_defaults(rig);
    rig->options.log_arg = rig;
    rig->options.partition_count = 2;
    rig->options.memory_bytes = 4 << 20;
    must(store_open_on(medium_disk(medium), &rig->options, &life->store, rig->message) == STORE_OK,
         "opening: %s", rig->message);
    life->served = served_start(life->store);
}

static void stop(struct life *life)
{
    must(served_stop(life->served) == STORE_OK, "closing: %s", life->rig.last_warning);
}

static char *ask(struct life *life, const char *commands)
{
    return served_ask(life->served, commands);
}

static void demand(struct life *life, const char *command, const char *begins)
{
    char *reply = ask(life, command);
    must(strncmp(reply, begins, strlen(begins)) == 0, "%.60s: %.200s", command, reply);
    free(reply);
}

static struct store_stats stats_of(const struct life *life)
{
    struct store_stats stats;
    store_stats(life->store, &stats);
    return stats;
}

/* Everything: entries, groups, consumers, what is pending, and all their times. */
static char *picture_of(struct life *life)
{
    return ask(life, "XINFO STREAM s FULL COUNT 0");
}

/* ---- commands ---- */

static uint32_t some_entry(struct script *script)
{
    uint32_t last = script->next - 1, back = rng_below(&script->rng, ENTRIES);
    return last > back ? last - back : 1;
}

static uint32_t consumer(struct script *script)
{
    return rng_below(&script->rng, 3);
}

static int ids(struct script *script, char *to, size_t size, uint32_t count)
{
    int len = 0;
    for (uint32_t i = 0; i < count; i++)
        len += snprintf(to + len, size - (size_t)len, " %u-1", some_entry(script));
    return len;
}

static void add_entry(struct script *script, char *to, size_t size, const char *trimming)
{
    uint32_t number = script->next++;
    snprintf(to, size, "XADD s %s %u-1 f %0*u", trimming, number, (int)FIELD, number);
}

static void on_entries(struct script *script, char *to, size_t size, const char *words,
                       const char *options)
{
    int len = snprintf(to, size, "%s", words);
    len += ids(script, to + len, size - (size_t)len, 1 + rng_below(&script->rng, 8));
    snprintf(to + len, size - (size_t)len, "%s", options);
}

static void claim(struct script *script, char *to, size_t size, const char *option)
{
    char words[40], options[80];
    snprintf(words, sizeof words, "XCLAIM s g c%u 0", consumer(script));
    snprintf(options, sizeof options, " TIME %u RETRYCOUNT %u%s", 1000 + script->next,
             rng_below(&script->rng, 9), option);
    on_entries(script, to, size, words, options);
}

static void write_command(struct script *script, char letter, char *to, size_t size)
{
    char trimming[40];
    switch (letter) {
    case 'a':
        snprintf(trimming, sizeof trimming, "MAXLEN %u", 20 + rng_below(&script->rng, ENTRIES));
        add_entry(script, to, size, trimming);
        break;
    case 'n':
        snprintf(trimming, sizeof trimming, "MINID %u", some_entry(script));
        add_entry(script, to, size, trimming);
        break;
    case 't':
        snprintf(to, size, "XTRIM s MAXLEN %u", rng_below(&script->rng, ENTRIES));
        break;
    case 'd':
        on_entries(script, to, size, "XDEL s", "");
        break;
    case 'r':
        snprintf(to, size, "XREADGROUP GROUP g c%u COUNT %u STREAMS s >", consumer(script),
                 1 + rng_below(&script->rng, 30));
        break;
    case 'k':
        on_entries(script, to, size, "XACK s g", "");
        break;
    case 'c':
    case 'f':
        claim(script, to, size, letter == 'f' ? " FORCE" : "");
        break;
    case 'u':
        snprintf(to, size, "XAUTOCLAIM s g c%u 0 0 COUNT 20", consumer(script));
        break;
    case 'D':
        snprintf(to, size, "XGROUP DESTROY s g");
        break;
    case 'G':
        snprintf(to, size, "XGROUP CREATE s g %u", some_entry(script));
        break;
    case 'C':
        snprintf(to, size, "XGROUP DELCONSUMER s g c%u", consumer(script));
        break;
    default:
        snprintf(to, size, "XGROUP SETID s g %u", some_entry(script));
    }
}

static void write_transaction(struct script *script, char *to, size_t size)
{
    static const char parts[] = "adkcr";
    int len = snprintf(to, size, "MULTI\r\n");
    for (uint32_t i = 0; i < 3; i++) {
        char command[COMMAND_BYTES];
        write_command(script, parts[rng_below(&script->rng, sizeof parts - 1)], command,
                      sizeof command);
        len += snprintf(to + len, size - (size_t)len, "%s\r\n", command);
    }
    snprintf(to + len, size - (size_t)len, "EXEC");
}

/* ---- a script ---- */

/* What the stream is now. */
static void note_image(struct script *script)
{
    must(script->image_count < IMAGES, "the test's own limit");
    script->acknowledged = stats_of(&script->life).commits;
    script->images[script->image_count++] =
        (struct image){script->acknowledged, picture_of(&script->life)};
}

/* Other keys, until what was changed of the stream's pages is in the files. */
static void make_checkpoint(struct script *script)
{
    struct life *life = &script->life;
    uint64_t before = stats_of(life).checkpoints;
    for (uint32_t i = 0; stats_of(life).checkpoints == before; i++) {
        char command[FILLER_BYTES + 40];
        if (i < 2 * FILLERS) {
            snprintf(command, sizeof command, "SET filler:%u %0*u", i % FILLERS, (int)FILLER_BYTES,
                     i);
            demand(life, command, "+OK");
        }
        served_round(life->served);
    }
    note_image(script);
}

static void run_letter(struct script *script, char letter)
{
    char command[4 * COMMAND_BYTES];
    if (letter == 'm')
        write_transaction(script, command, sizeof command);
    else
        write_command(script, letter, command, sizeof command);
    free(ask(&script->life, command));
    uint64_t commits = stats_of(&script->life).commits - script->acknowledged;
    must(commits <= 1, "%s: one command makes %llu commits", script->letters,
         (unsigned long long)commits);
    note_image(script);
}

static void record(void *arg, struct medium *state)
{
    struct script *script = arg;
    must(script->moment_count < MOMENTS, "the test's own limit");
    script->moments[script->moment_count++] = (struct moment){state, script->acknowledged};
}

static void fill(struct script *script, uint32_t entries)
{
    char command[COMMAND_BYTES];
    struct life *life = &script->life;
    demand(life, "XGROUP CREATE s g $ MKSTREAM", "+OK");
    for (uint32_t i = 0; i < entries; i++) {
        if (entries < MANY)
            add_entry(script, command, sizeof command, "");
        else
            snprintf(command, sizeof command, "XADD s %u-1 f v", script->next++);
        demand(life, command, "$");
    }
    snprintf(command, sizeof command, "XREADGROUP GROUP g c0 COUNT %u STREAMS s >", entries / 3);
    demand(life, command, "*1");
    snprintf(command, sizeof command, "XREADGROUP GROUP g c1 COUNT %u STREAMS s >",
             entries < MANY ? entries / 3 : entries);
    demand(life, command, "*1");
    demand(life, "XGROUP CREATE s other 0", "+OK");
    demand(life, "XREADGROUP GROUP other c0 COUNT 5 STREAMS s >", "*1");
}

static void run_letters(struct script *script, struct medium *medium)
{
    medium_record(medium, record, script);
    for (const char *letter = script->letters; *letter; letter++) {
        if (*letter != 'p') {
            run_letter(script, *letter);
            continue;
        }
        medium_record(medium, NULL, NULL); /* what is there in its midst is test_cuts.c's */
        make_checkpoint(script);
        medium_record(medium, record, script);
    }
    stop(&script->life);
    medium_record(medium, NULL, NULL);
}

/* ---- after a cut ---- */

static const struct image *image_at(const struct script *script, uint64_t commit)
{
    uint32_t i = script->image_count - 1;
    while (i > 0 && script->images[i].commit > commit)
        i--;
    return &script->images[i];
}

static void compare(const struct script *script, struct life *life, uint64_t acknowledged)
{
    uint64_t commits = stats_of(life).commits;
    must(commits >= acknowledged, "%s: commit %llu was acknowledged, but only %llu are there",
         script->letters, (unsigned long long)acknowledged, (unsigned long long)commits);
    char *picture = picture_of(life);
    const struct image *image = image_at(script, commits);
    must(strcmp(picture, image->picture) == 0, "%s, commit %llu: the stream is another:\n%s\n%s",
         script->letters, (unsigned long long)commits, picture, image->picture);
    must(stats_of(life).damaged_items == 0, "%s: damage: %s", script->letters,
         life->rig.last_warning);
    free(picture);
}

/* New groups have nothing of those that there are or were. */
static void go_on(const struct script *script, struct life *life, struct medium *medium)
{
    demand(life, "XGROUP CREATE s new $", "+OK");
    demand(life, "XADD s * f v", "$");
    demand(life, "XREADGROUP GROUP new c0 STREAMS s >", "*1");
    demand(life, "XPENDING s new", "*4\r\n:1\r\n");
    demand(life, "XPENDING s new - + 9 c0", "*1\r\n");
    char *before = picture_of(life);
    medium_cut_now(medium);
    must(served_stop(life->served) != STORE_OK, "closing without power");
    start(life, medium);
    char *after = picture_of(life);
    must(strcmp(before, after) == 0, "%s: what came after the cut is gone:\n%s\n%s",
         script->letters, before, after);
    free(before);
    free(after);
}

static void try_moment(struct script *script, const struct moment *moment, enum fate fate)
{
    struct life life;
    struct medium *medium = medium_copy(moment->medium);
    medium_set_fate(medium, fate);
    start(&life, medium);
    compare(script, &life, moment->acknowledged);
    if (rng_chance(&script->rng, 50))
        go_on(script, &life, medium);
    stop(&life);
    medium_free(medium);
}

/* From a random moment on, each fate in its turn. */
static uint32_t try_moments(struct script *script)
{
    uint32_t step = getenv("VELLUM_SCRIPT") ? 1 : 1 + script->moment_count / STATES, tried = 0;
    for (uint32_t i = rng_below(&script->rng, step); i < script->moment_count; i += step)
        for (enum fate fate = 0; fate < FATES; fate++, tried++)
            try_moment(script, &script->moments[i], fate);
    return tried;
}

static uint32_t run_script(const char *letters, uint32_t entries, uint64_t seed)
{
    if (getenv("VELLUM_TEST_LOG"))
        fprintf(stderr, "# %s, VELLUM_SEED=%llu\n", letters, (unsigned long long)seed);
    struct script *script = calloc(1, sizeof *script);
    must(script, "out of memory");
    struct medium *medium = medium_new(seed);
    script->rng.state = seed;
    script->next = 1;
    snprintf(script->letters, sizeof script->letters, "%s", letters);
    start(&script->life, medium);
    fill(script, entries);
    note_image(script);
    run_letters(script, medium);
    uint32_t tried = try_moments(script);
    for (uint32_t i = 0; i < script->moment_count; i++)
        medium_free(script->moments[i].medium);
    for (uint32_t i = 0; i < script->image_count; i++)
        free(script->images[i].picture);
    free(script);
    medium_free(medium);
    return tried;
}

/* ---- tests ---- */

static time_t end_of(uint32_t share)
{
    const char *seconds = getenv("VELLUM_SECONDS");
    return time(NULL) + 1 + (seconds ? (uint32_t)atoi(seconds) : 15) / share;
}

/* Each letter in its turn, behind random ones. */
static void choose_script(struct rng *rng, uint32_t turn, char letters[LONGEST + 1])
{
    uint32_t length = 2 + rng_below(rng, LONGEST - 1);
    for (uint32_t i = 0; i < length; i++)
        letters[i] = alphabet[rng_below(rng, LETTERS)];
    letters[length - 1] = alphabet[turn % LETTERS];
    letters[length] = 0;
}

static void every_point_of_commands_on_streams(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("streams")};
    const char *alone = getenv("VELLUM_SCRIPT");
    time_t until = end_of(1);
    uint32_t scripts = 0, tried = 0, first = rng_below(&rng, LETTERS);
    if (alone) {
        run_script(alone, ENTRIES, rng.state);
        return;
    }
    for (; time(NULL) < until; scripts++) {
        char letters[LONGEST + 1];
        choose_script(&rng, first + scripts, letters);
        tried += run_script(letters, ENTRIES, rng_next(&rng));
    }
    fprintf(stderr, "# %u scripts, %u states\n", scripts, tried);
}

/* What is left of the group goes with the commands that follow, of whichever server. */
static void every_point_of_a_large_group_that_goes(void **state)
{
    (void)state;
    static const char *scripts[] = {"D", "DGrk", "pDGc", "DpGrr"};
    struct rng rng = {rng_seed("a large group")};
    time_t until = end_of(3);
    uint32_t tried = 0, i = rng_below(&rng, 4);
    if (getenv("VELLUM_SCRIPT"))
        return;
    do
        tried += run_script(scripts[i++ % 4], MANY, rng_next(&rng));
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
