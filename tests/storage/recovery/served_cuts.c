#include "tests/storage/recovery/served_cuts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "storage/recovery/open.h"
#include "tests/storage/fault_disk.h"

#define LONGEST 8u
#define IMAGES (LONGEST + 2)
#define MOMENTS 4096u
#define STATES 60u  /* of a script, unless VELLUM_SCRIPT asks for all */
#define FILLERS 70u /* to write them twice makes a checkpoint due */
#define FILLER_BYTES 3000u

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
    struct cuts cuts;
    char letters[LONGEST + 1];
    struct life life;
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

void cuts_demand(struct served *served, const char *command, const char *begins)
{
    char *reply = served_ask(served, command);
    must(strncmp(reply, begins, strlen(begins)) == 0, "%.60s: %.200s", command, reply);
    free(reply);
}

static struct store_stats stats_of(const struct life *life)
{
    struct store_stats stats;
    store_stats(life->store, &stats);
    return stats;
}

static char *picture_of(const struct script *script, struct life *life)
{
    return served_ask(life->served, script->cuts.subject->picture);
}

/* ---- a script ---- */

static void note_image(struct script *script)
{
    must(script->image_count < IMAGES, "the test's own limit");
    script->acknowledged = stats_of(&script->life).commits;
    script->images[script->image_count++] =
        (struct image){script->acknowledged, picture_of(script, &script->life)};
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
            cuts_demand(life->served, command, "+OK");
        }
        served_round(life->served);
    }
    note_image(script);
}

static void run_letter(struct script *script, char letter)
{
    const struct cuts_subject *subject = script->cuts.subject;
    char *command = malloc(subject->command_most);
    must(command, "out of memory");
    subject->write(&script->cuts, letter, command, subject->command_most);
    free(served_ask(script->life.served, command));
    free(command);
    uint64_t commits = stats_of(&script->life).commits - script->acknowledged;
    must(commits <= 1 || !subject->one_commit, "%s: one command makes %llu commits",
         script->letters, (unsigned long long)commits);
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
    stop(&script->life);
    medium_record(medium, NULL, NULL);
}

/* ---- after a cut ---- */

/* Whether this is what there was after the commit. A command of several commits shows its effect
 * after one of them. */
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
    char *picture = picture_of(script, life);
    must(is_true(script, commits, picture), "%s, commit %llu: there is something else:\n%.3000s",
         script->letters, (unsigned long long)commits, picture);
    must(stats_of(life).damaged_items == 0, "%s: damage: %s", script->letters,
         life->rig.last_warning);
    free(picture);
}

static void go_on(struct script *script, struct life *life, struct medium *medium)
{
    script->cuts.subject->go_on(&script->cuts, life->served);
    char *before = picture_of(script, life);
    medium_cut_now(medium);
    must(served_stop(life->served) != STORE_OK, "closing without power");
    start(life, medium);
    char *after = picture_of(script, life);
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
    if (rng_chance(&script->cuts.rng, 50))
        go_on(script, &life, medium);
    stop(&life);
    medium_free(medium);
}

/* From a random moment on, each fate in its turn. */
static uint32_t try_moments(struct script *script)
{
    uint32_t step = getenv("VELLUM_SCRIPT") ? 1 : 1 + script->moment_count / STATES, tried = 0;
    for (uint32_t i = rng_below(&script->cuts.rng, step); i < script->moment_count; i += step)
        for (enum fate fate = 0; fate < FATES; fate++, tried++)
            try_moment(script, &script->moments[i], fate);
    return tried;
}

uint32_t cuts_run(const struct cuts_subject *subject, const char *letters, uint32_t size,
                  uint64_t seed)
{
    if (getenv("VELLUM_TEST_LOG"))
        fprintf(stderr, "# %s, VELLUM_SEED=%llu\n", letters, (unsigned long long)seed);
    struct script *script = calloc(1, sizeof *script);
    must(script, "out of memory");
    struct medium *medium = medium_new(seed);
    snprintf(script->letters, sizeof script->letters, "%s", letters);
    start(&script->life, medium);
    script->cuts = (struct cuts){
        .subject = subject, .served = script->life.served, .rng = {seed}, .next = 1, .size = size};
    subject->fill(&script->cuts);
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

/* ---- random scripts ---- */

uint32_t cuts_seconds(uint32_t otherwise)
{
    const char *seconds = getenv("VELLUM_SECONDS");
    return seconds ? (uint32_t)atoi(seconds) : otherwise;
}

/* Each letter in its turn, behind random ones. */
static void choose_script(const char *alphabet, struct rng *rng, uint32_t turn,
                          char letters[LONGEST + 1])
{
    uint32_t count = (uint32_t)strlen(alphabet), length = 2 + rng_below(rng, LONGEST - 1);
    for (uint32_t i = 0; i < length; i++)
        letters[i] = alphabet[rng_below(rng, count)];
    letters[length - 1] = alphabet[turn % count];
    letters[length] = 0;
}

void cuts_run_random(const struct cuts_subject *subject, const char *name, uint32_t size,
                     uint32_t seconds)
{
    struct rng rng = {rng_seed(name)};
    const char *alone = getenv("VELLUM_SCRIPT");
    time_t until = time(NULL) + 1 + cuts_seconds(seconds);
    uint32_t scripts = 0, tried = 0, first = rng_below(&rng, (uint32_t)strlen(subject->alphabet));
    if (alone) {
        cuts_run(subject, alone, size, rng.state);
        return;
    }
    for (; time(NULL) < until; scripts++) {
        char letters[LONGEST + 1];
        choose_script(subject->alphabet, &rng, first + scripts, letters);
        tried += cuts_run(subject, letters, size, rng_next(&rng));
    }
    fprintf(stderr, "# %u scripts, %u states\n", scripts, tried);
}
