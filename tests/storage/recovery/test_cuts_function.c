/* Changes of the libraries of functions, by a whole server on the engine, with the power cut at
 * every I/O of them (as in test_cuts_stream.c). What a server tells of libraries and keys that was
 * started on such a moment is what the first one told of them after one of the commands, the last
 * that it had acknowledged or a later one; its functions can be called, and its work goes on.
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
#define MOMENTS 2048u
#define STATES 60u /* of a script, unless VELLUM_SCRIPT asks for all */
#define CODE_MOST 50000u
#define COMMAND_BYTES (CODE_MOST + 1024)
#define FILLERS 70u /* to write them twice makes a checkpoint due */
#define FILLER_BYTES 3000u

/* l: a short library    L: a long one    d: one is deleted    x: all are    s: SET    F: FLUSHALL
 * w: SWAPDB    m: a library, a call of it and a SET in a transaction    p: a checkpoint */
static const char alphabet[] = "lLdxsFwmp";
#define LETTERS (sizeof alphabet - 1)

struct life {
    struct rig rig; /* its options */
    struct store *store;
    struct served *served;
};

/* What the server tells after a commit. */
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
    uint32_t next; /* version of a library */
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

static void demand(struct life *life, const char *command, const char *begins)
{
    char *reply = served_ask(life->served, command);
    must(strncmp(reply, begins, strlen(begins)) == 0, "%.60s: %.200s", command, reply);
    free(reply);
}

static struct store_stats stats_of(const struct life *life)
{
    struct store_stats stats;
    store_stats(life->store, &stats);
    return stats;
}

/* The libraries, what their functions return, and the keys. */
static char *picture_of(struct life *life)
{
    return served_ask(
        life->served,
        "FUNCTION LIST WITHCODE\r\nFCALL f0 0\r\nFCALL f1 0\r\nFCALL f2 0\r\nGET k\r\n"
        "EXISTS functions\r\nSELECT 1\r\nGET k\r\nSELECT 0");
}

/* ---- commands ---- */

static int write_load(struct script *script, char *to, size_t size, uint32_t most)
{
    uint32_t name = rng_below(&script->rng, 3), version = script->next++;
    return snprintf(to, size,
                    "FUNCTION LOAD REPLACE \"#!lua name=l%u\\nredis.register_function('f%u',"
                    "function() return %u end)--%0*u\"",
                    name, name, version, (int)rng_below(&script->rng, most), version);
}

static void write_transaction(struct script *script, char *to, size_t size)
{
    int len = snprintf(to, size, "MULTI\r\n");
    len += write_load(script, to + len, size - (size_t)len, CODE_MOST);
    snprintf(to + len, size - (size_t)len, "\r\nFCALL f1 0\r\nSET k %u\r\nEXEC", script->next++);
}

static void write_command(struct script *script, char letter, char *to, size_t size)
{
    switch (letter) {
    case 'l':
        write_load(script, to, size, 500);
        break;
    case 'L':
        write_load(script, to, size, CODE_MOST);
        break;
    case 'd':
        snprintf(to, size, "FUNCTION DELETE l%u", rng_below(&script->rng, 3));
        break;
    case 'x':
        snprintf(to, size, "FUNCTION FLUSH");
        break;
    case 's':
        snprintf(to, size, "SET k %u", script->next++);
        break;
    case 'F':
        snprintf(to, size, "FLUSHALL");
        break;
    case 'w':
        snprintf(to, size, "SWAPDB 0 1");
        break;
    default:
        write_transaction(script, to, size);
    }
}

/* ---- a script ---- */

static void note_image(struct script *script)
{
    must(script->image_count < IMAGES, "the test's own limit");
    script->acknowledged = stats_of(&script->life).commits;
    script->images[script->image_count++] =
        (struct image){script->acknowledged, picture_of(&script->life)};
}

/* Other keys, until what was changed is in the files. */
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
    char command[COMMAND_BYTES];
    write_command(script, letter, command, sizeof command);
    free(served_ask(script->life.served, command));
    note_image(script);
}

static void record(void *arg, struct medium *state)
{
    struct script *script = arg;
    must(script->moment_count < MOMENTS, "the test's own limit");
    script->moments[script->moment_count++] = (struct moment){state, script->acknowledged};
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
    must(served_stop(script->life.served) == STORE_OK, "closing");
    medium_record(medium, NULL, NULL);
}

/* ---- after a cut ---- */

/* Whether this is what there was after the commit. A long value's extents may have commit numbers
 * of their own, before the one that names them. */
static bool is_true(const struct script *script, uint64_t commit, const char *picture)
{
    uint32_t i = script->image_count - 1;
    while (i > 0 && script->images[i].commit > commit)
        i--;
    bool is_between = script->images[i].commit < commit && i + 1 < script->image_count;
    return strcmp(picture, script->images[i].picture) == 0 ||
           (is_between && strcmp(picture, script->images[i + 1].picture) == 0);
}

static void compare(const struct script *script, struct life *life, uint64_t acknowledged)
{
    uint64_t commits = stats_of(life).commits;
    must(commits >= acknowledged, "%s: commit %llu was acknowledged, but only %llu are there",
         script->letters, (unsigned long long)acknowledged, (unsigned long long)commits);
    char *picture = picture_of(life);
    must(is_true(script, commits, picture), "%s, commit %llu: others:\n%.3000s", script->letters,
         (unsigned long long)commits, picture);
    must(stats_of(life).damaged_items == 0, "%s: damage: %s", script->letters,
         life->rig.last_warning);
    free(picture);
}

static void go_on(struct script *script, struct life *life, struct medium *medium)
{
    char command[COMMAND_BYTES];
    write_load(script, command, sizeof command, CODE_MOST);
    demand(life, command, "$2");
    char *before = picture_of(life);
    medium_cut_now(medium);
    must(served_stop(life->served) != STORE_OK, "closing without power");
    start(life, medium);
    char *after = picture_of(life);
    must(strcmp(before, after) == 0, "%s: what came after the cut is gone:\n%.3000s\n%.3000s",
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
    must(served_stop(life.served) == STORE_OK, "closing: %s", life.rig.last_warning);
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

static uint32_t run_script(const char *letters, uint64_t seed)
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
    demand(&script->life, "SET k 0", "+OK");
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

/* Each letter in its turn, behind random ones. */
static void choose_script(struct rng *rng, uint32_t turn, char letters[LONGEST + 1])
{
    uint32_t length = 2 + rng_below(rng, LONGEST - 1);
    for (uint32_t i = 0; i < length; i++)
        letters[i] = alphabet[rng_below(rng, LETTERS)];
    letters[length - 1] = alphabet[turn % LETTERS];
    letters[length] = 0;
}

static void every_point_of_changes_of_libraries(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("functions")};
    const char *alone = getenv("VELLUM_SCRIPT"), *seconds = getenv("VELLUM_SECONDS");
    time_t until = time(NULL) + 1 + (seconds ? atoi(seconds) : 10);
    uint32_t scripts = 0, tried = 0, first = rng_below(&rng, LETTERS);
    if (alone) {
        run_script(alone, rng.state);
        return;
    }
    for (; time(NULL) < until; scripts++) {
        char letters[LONGEST + 1];
        choose_script(&rng, first + scripts, letters);
        tried += run_script(letters, rng_next(&rng));
    }
    fprintf(stderr, "# %u scripts, %u states\n", scripts, tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_point_of_changes_of_libraries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
