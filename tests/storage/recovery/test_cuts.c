/* Scripts of up to five operations on two keys, with the power cut at every point: the medium is
 * recorded before each I/O that changes it, and each of these moments is opened afterwards with its
 * unflushed writes kept, lost, torn and mixed. The store then holds what some prefix of the script
 * has made, with all that was acknowledged; work goes on, and the power goes again. Of some moments
 * the recovery is recorded and cut in the same way.
 *
 * VELLUM_SCRIPT with VELLUM_SEED runs one script alone; VELLUM_LETTERS all those of up to so many
 * letters, of VELLUM_ALPHABET if it is given, however long that takes: 16 times as long for each
 * letter more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <malloc.h>

#include "tests/storage/fault_disk.h"
#include "tests/storage/ordered_walk.h"
#include "tests/storage/sender.h"
#include "tests/storage/tree_model.h"

#define LONGEST 5u
#define KEYS 2u
#define DBS 2u
#define LONG_NAME 140000u /* of two extents */
#define FILLERS 70u       /* pages; to write them makes a checkpoint due */
#define FILLER_BYTES 3000u
#define FILLERS_AT_ONCE 14u
#define BLOBS 32u
#define BATCHES 4u /* of changes of collections, in one operation of a script */
#define FAR_MS 4000000000000ll

/* s: put, the same class each time    c: in some class       p: of pages    L: of megabytes
 * u: put while it arrives, after another was given up in the midst of it
 * o: write over part of it            d: delete              n: rename      m: put both keys
 * e: expire later                     x: expire at once      f: flush       w: swap databases
 * k: checkpoint                       r: restart                   t: change collections */
static const char alphabet[] = "scpodnmexfwkrtLu";
#define LETTERS (sizeof alphabet - 1)

/* What the store holds after a commit. */
struct image {
    uint64_t commit;
    struct {
        const struct blob *value; /* NULL: absent */
        int64_t expire_ms;
    } keys[DBS][KEYS];
    uint32_t fillers;         /* written in this generation; 0: none */
    struct tree_model *trees; /* of database 0 */
};

struct moment {
    struct medium *medium;
    uint64_t acknowledged;
};

struct script {
    char letters[LONGEST + 1];
    struct rng rng;
    struct rig rig;
    struct image images[6 * LONGEST + 2];
    uint32_t image_count;
    struct tree_model trees[DBS]; /* as they are now */
    struct blob *blobs[BLOBS];
    uint32_t blob_count;
    uint32_t name_lens[KEYS];
    _Atomic uint64_t acknowledged;
    struct moment *moments;
    uint32_t moment_count, moment_room;
    uint64_t *states; /* digests of those that were tried */
    uint32_t state_count, state_room;
};

/* ---- what should be there ---- */

static struct image *newest(struct script *script)
{
    return &script->images[script->image_count - 1];
}

static const struct blob *keep_blob(struct script *script, struct blob *blob)
{
    must(script->blob_count < BLOBS, "the test's own limits");
    return script->blobs[script->blob_count++] = blob;
}

static void note_image(struct script *script, struct image image, uint64_t commit)
{
    must(script->image_count < sizeof script->images / sizeof *script->images, "limits");
    must(commit > newest(script)->commit, "commit %llu follows %llu", (unsigned long long)commit,
         (unsigned long long)newest(script)->commit);
    image.commit = commit;
    image.trees = calloc(1, sizeof *image.trees);
    must(image.trees, "out of memory");
    tree_model_copy(image.trees, &script->trees[0]);
    script->images[script->image_count++] = image;
}

static const struct image *image_at(const struct script *script, uint64_t commit)
{
    uint32_t i = script->image_count - 1;
    while (script->images[i].commit > commit)
        i--;
    return &script->images[i];
}

static struct blob *filler(uint32_t generation, uint32_t number)
{
    struct rng rng = {generation * 1000ull + number};
    return blob_random(&rng, FILLER_BYTES);
}

/* ---- the operations ---- */

static uint32_t name_key(const struct script *script, struct call *call, uint32_t db, uint32_t id)
{
    static const char *names[KEYS] = {"{first}", "{the second key}"}; /* in both partitions */
    char name[LONG_NAME];
    memset(name, 'n', sizeof name);
    memcpy(name, names[id], strlen(names[id]));
    return call_key(call, db, id, name, script->name_lens[id]);
}

static uint32_t name_filler(struct call *call, uint32_t number)
{
    char name[32];
    int len = snprintf(name, sizeof name, "filler:%u", number);
    return call_key(call, 0, number, name, (uint32_t)len);
}

/* Waits for the call's end, and for its durability now and then. */
static void run(struct script *script, struct call *call, struct image after, bool changes)
{
    struct rig *rig = &script->rig;
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "%s: a call fails with %d; %s", script->letters, call->result,
         rig->last_warning);
    uint64_t commit = call->request.shown;
    if (changes)
        note_image(script, after, commit);
    if (rig->options.sync == STORE_SYNC_ALWAYS && rng_chance(&script->rng, 70))
        rig_sync(rig, commit);
    script->acknowledged = store_durable(rig->store);
    call_free(call);
}

static void put(struct script *script, struct call *call, struct image *after, uint32_t id,
                uint64_t len)
{
    struct blob *value = blob_random(&script->rng, len);
    call_step(call, STEP_PUT, name_key(script, call, 0, id))->blob = blob_ref(value);
    after->keys[0][id].value = keep_blob(script, value);
    after->keys[0][id].expire_ms = STORE_NO_EXPIRY;
}

static void patch(struct script *script, struct call *call, struct image *after, uint32_t id)
{
    const struct blob *old = after->keys[0][id].value;
    struct step *step = call_step(call, STEP_PATCH, name_key(script, call, 0, id));
    step->offset = rng_below(&script->rng, old ? (uint32_t)old->len + 100 : 100);
    step->blob = blob_random(&script->rng, 1 + rng_below(&script->rng, 6000));
    if (!old)
        return;
    uint64_t end = step->offset + step->blob->len;
    struct blob *patched = blob_new(end > old->len ? end : old->len);
    memcpy(patched->bytes, old->bytes, old->len);
    memcpy(patched->bytes + step->offset, step->blob->bytes, step->blob->len);
    after->keys[0][id].value = keep_blob(script, patched);
}

/* Pages fill up quickly, so that they are split and joined. */
static void empty_trees(struct tree_model *model, uint64_t seed)
{
    tree_model_free(model);
    tree_model_init(model, seed);
    model->target = 60;
    model->overflow_percent = 10;
    model->value_most = 1500;
}

static void change_databases(struct script *script, struct call *call, struct image *after,
                             char letter)
{
    call->exclusive = true;
    if (letter == 'w') {
        call_step(call, STEP_SWAP_DB, 0)->other = 1;
        struct image was = *after;
        memcpy(after->keys[0], was.keys[1], sizeof was.keys[0]);
        memcpy(after->keys[1], was.keys[0], sizeof was.keys[0]);
        after->fillers = 0; /* they are elsewhere now */
        struct tree_model trees = script->trees[0];
        script->trees[0] = script->trees[1];
        script->trees[1] = trees;
        return;
    }
    call_step(call, STEP_FLUSH_DB, 0);
    memset(after->keys[0], 0, sizeof after->keys[0]);
    after->fillers = 0;
    empty_trees(&script->trees[0], rng_next(&script->rng));
}

/* Fills the call, and `after` with what it makes. Returns whether it has a commit of its own. */
static bool build_call(struct script *script, char letter, struct call *call, struct image *after)
{
    struct rng *rng = &script->rng;
    uint32_t id = rng_below(rng, KEYS);
    bool there = after->keys[0][id].value;
    switch (letter) {
    case 's':
        put(script, call, after, id, 50);
        return true;
    case 'c':
        put(script, call, after, id, rng_below(rng, 4000));
        return true;
    case 'p':
        put(script, call, after, id, 9000 + rng_below(rng, 300000));
        return true;
    case 'L': /* more than the root can name itself */
        put(script, call, after, id, (8u << 20) + rng_below(rng, 1 << 20));
        return true;
    case 'm':
        put(script, call, after, 0, 10 + rng_below(rng, 300));
        put(script, call, after, 1, 10 + rng_below(rng, 300));
        return true;
    case 'o':
        patch(script, call, after, id);
        return there;
    case 'd':
    case 'x':
        call_step(call, letter == 'd' ? STEP_DELETE : STEP_EXPIRE, name_key(script, call, 0, id))
            ->expire_ms = 1;
        after->keys[0][id].value = NULL;
        return there;
    case 'e':
        call_step(call, STEP_EXPIRE, name_key(script, call, 0, id))->expire_ms = FAR_MS;
        after->keys[0][id].expire_ms = FAR_MS;
        return there;
    case 'n':
        call_step(call, STEP_RENAME, name_key(script, call, 0, id))->other =
            name_key(script, call, 0, 1 - id);
        if (there)
            after->keys[0][1 - id] = after->keys[0][id];
        after->keys[0][id].value = NULL;
        if (!there) /* nothing happened */
            after->keys[0][1 - id] = newest(script)->keys[0][1 - id];
        return there;
    default:
        change_databases(script, call, after, letter);
        return true;
    }
}

/* Written once more all of them, so that their pages are dirty and the maintenance thread writes
 * them back. */
static void make_checkpoint(struct script *script)
{
    struct store_stats before, now;
    struct image after = *newest(script);
    uint32_t generation = ++after.fillers;
    store_stats(script->rig.store, &before);
    for (uint32_t i = 0; i < FILLERS; i += FILLERS_AT_ONCE) {
        struct call *call = call_new();
        for (uint32_t j = i; j < i + FILLERS_AT_ONCE; j++)
            call_step(call, STEP_PUT, name_filler(call, j))->blob = filler(generation, j);
        after.fillers = i + FILLERS_AT_ONCE < FILLERS ? 0 : generation;
        run(script, call, after, true);
    }
    do {
        rig_run(&script->rig, 1);
        store_stats(script->rig.store, &now);
    } while (now.checkpoints == before.checkpoints);
    script->acknowledged = store_durable(script->rig.store);
}

static void change_trees(struct script *script)
{
    struct rig *rig = &script->rig;
    for (uint32_t i = 0; i < BATCHES; i++) {
        struct tree_batch *batch = tree_batch_new(&script->trees[0]);
        tree_batch_start(rig->workers[0], batch);
        while (!tree_batch_finished(batch))
            rig_round(rig);
        must(tree_batch_result(batch) == STORE_OK, "%s: a batch ends with %d; %s", script->letters,
             tree_batch_result(batch), rig->last_warning);
        tree_batch_apply(&script->trees[0], batch);
        uint64_t commit = tree_batch_shown(batch);
        if (commit > newest(script)->commit)
            note_image(script, *newest(script), commit);
        tree_batch_free(batch);
        if (rig->options.sync == STORE_SYNC_ALWAYS && rng_chance(&script->rng, 70))
            rig_sync(rig, commit);
        script->acknowledged = store_durable(rig->store);
    }
}

static struct sender *send_to(struct script *script, uint32_t id, struct blob *value,
                              uint64_t until)
{
    struct call *call = call_new(); /* knows the name */
    const struct call_key *key = &call->keys[name_key(script, call, 0, id)];
    struct sender *sender = sender_new(&script->rig, key->name, key->len, blob_ref(value));
    call_free(call);
    must(sender_send_until(sender, &script->rng, until) == STORE_OK, "%s: sending; %s",
         script->letters, script->rig.last_warning);
    return sender;
}

static void put_upload(struct script *script)
{
    struct rig *rig = &script->rig;
    struct image after = *newest(script);
    uint32_t id = rng_below(&script->rng, KEYS);
    struct blob *value = blob_random(&script->rng, 70000 + rng_below(&script->rng, 400000));
    struct sender *given_up = send_to(script, 1 - id, value, value->len / 2);
    struct sender *sender = send_to(script, id, value, value->len);
    sender_free(given_up);
    must(sender_put(sender) == STORE_OK, "%s: putting; %s", script->letters, rig->last_warning);
    after.keys[0][id].value = keep_blob(script, value);
    after.keys[0][id].expire_ms = STORE_NO_EXPIRY;
    note_image(script, after, sender->request.shown);
    if (rig->options.sync == STORE_SYNC_ALWAYS)
        rig_sync(rig, sender->request.shown);
    script->acknowledged = store_durable(rig->store);
    sender_free(sender);
}

static void restart(struct script *script, struct medium *medium)
{
    must(rig_close(&script->rig) == STORE_OK, "%s: closing", script->letters);
    script->acknowledged = newest(script)->commit;
    must(rig_open(&script->rig, medium_disk(medium)) == STORE_OK, "%s: opening: %s",
         script->letters, script->rig.message);
}

static void run_letter(struct script *script, struct medium *medium, char letter)
{
    if (letter == 'k') {
        make_checkpoint(script);
    } else if (letter == 'r') {
        restart(script, medium);
    } else if (letter == 't') {
        change_trees(script);
    } else if (letter == 'u') {
        put_upload(script);
    } else {
        struct call *call = call_new();
        struct image after = *newest(script);
        bool changes = build_call(script, letter, call, &after);
        run(script, call, after, changes);
    }
}

/* ---- moments ---- */

static void record(void *arg, struct medium *state)
{
    struct script *script = arg;
    if (script->moment_count == script->moment_room) {
        script->moment_room = 2 * script->moment_room + 64;
        script->moments = realloc(script->moments, script->moment_room * sizeof *script->moments);
        must(script->moments, "out of memory");
    }
    script->moments[script->moment_count++] = (struct moment){state, script->acknowledged};
}

static void drop_moments(struct script *script)
{
    for (uint32_t i = 0; i < script->moment_count; i++)
        medium_free(script->moments[i].medium);
    script->moment_count = 0;
}

/* ---- comparing ---- */

static void compare_step(const struct script *script, const struct step *step,
                         const struct blob *value, int64_t expire_ms, uint64_t commit)
{
    must(step->found == (value != NULL), "%s, commit %llu: a key is %s", script->letters,
         (unsigned long long)commit, step->found ? "there" : "missing");
    must(!value || (step->value->len == value->len &&
                    memcmp(step->value->bytes, value->bytes, value->len) == 0),
         "%s, commit %llu: a value is another", script->letters, (unsigned long long)commit);
    must(!value || step->item.expire_ms == expire_ms, "%s, commit %llu: an expiry is another",
         script->letters, (unsigned long long)commit);
}

static void finish_reading(struct script *script, struct rig *rig, struct call *call)
{
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "%s: reading ends with %d; %s", script->letters, call->result,
         rig->last_warning);
}

static void compare_keys(struct script *script, struct rig *rig, const struct image *image)
{
    struct call *call = call_new();
    for (uint32_t db = 0; db < DBS; db++)
        for (uint32_t id = 0; id < KEYS; id++)
            call_step(call, STEP_GET, name_key(script, call, db, id));
    finish_reading(script, rig, call);
    for (uint32_t i = 0; i < DBS * KEYS; i++)
        compare_step(script, &call->steps[i], image->keys[i / KEYS][i % KEYS].value,
                     image->keys[i / KEYS][i % KEYS].expire_ms, image->commit);
    call_free(call);
}

/* In the midst of their being written nothing is known about them. */
static void compare_fillers(struct script *script, struct rig *rig, const struct image *image)
{
    for (uint32_t i = 0; image->fillers && i < FILLERS; i += FILLERS_AT_ONCE) {
        struct call *call = call_new();
        for (uint32_t j = i; j < i + FILLERS_AT_ONCE; j++)
            call_step(call, STEP_GET, name_filler(call, j));
        finish_reading(script, rig, call);
        for (uint32_t j = 0; j < FILLERS_AT_ONCE; j++) {
            struct blob *value = filler(image->fillers, i + j);
            compare_step(script, &call->steps[j], value, STORE_NO_EXPIRY, image->commit);
            blob_unref(value);
        }
        call_free(call);
    }
}

static void compare(struct script *script, struct rig *rig, uint64_t least)
{
    struct store_stats stats;
    store_stats(rig->store, &stats);
    must(stats.commits >= least, "%s: commit %llu was acknowledged, but only %llu are there",
         script->letters, (unsigned long long)least, (unsigned long long)stats.commits);
    const struct image *image = image_at(script, stats.commits);
    compare_keys(script, rig, image);
    compare_fillers(script, rig, image);
    tree_model_compare(image->trees, rig);
    for (uint32_t db = 0; db < DBS && store_is_ordered(rig->store); db++)
        ordered_compare(rig, db);
    store_stats(rig->store, &stats);
    must(stats.damaged_items == 0, "%s: damage: %s", script->letters, rig->last_warning);
}

/* ---- what follows a cut ---- */

static void open_again(struct script *script, struct rig *rig, struct medium *medium)
{
    must(rig_open(rig, medium_disk(medium)) == STORE_OK, "%s: opening: %s", script->letters,
         rig->message);
}

/* Slots are taken, given back and taken again; then the power goes for good. */
static void go_on(struct script *script, struct rig *rig, struct medium *medium)
{
    must(do_set(rig, "first", "after the cut") == STORE_OK, "set");
    must(do_set(rig, "third", "new") == STORE_OK && do_delete(rig, "third") == STORE_OK, "third");
    must(do_set(rig, "fourth", "new") == STORE_OK, "set");
    medium_cut_now(medium);
    must(rig_close(rig) != STORE_OK, "closing without power");
    open_again(script, rig, medium);
    must(has_value(rig, "first", "after the cut") && has_value(rig, "third", NULL) &&
             has_value(rig, "fourth", "new"),
         "%s: what came after the cut is gone", script->letters);
}

/* Whether it is another than all before: later moments find much as the ones before them left it.
 */
static bool is_new_state(struct script *script, uint64_t digest)
{
    for (uint32_t i = 0; i < script->state_count; i++)
        if (script->states[i] == digest)
            return false;
    if (script->state_count == script->state_room) {
        script->state_room = 2 * script->state_room + 64;
        script->states = realloc(script->states, script->state_room * sizeof *script->states);
        must(script->states, "out of memory");
    }
    script->states[script->state_count++] = digest;
    return true;
}

/* Opens a copy of the moment; `inner` gets the moments of its recovery, if it is not NULL. */
static void try_state(struct script *script, const struct moment *moment, enum fate fate,
                      struct script *inner)
{
    struct medium *medium = medium_copy(moment->medium);
    medium_set_fate(medium, fate);
    if (!is_new_state(script, medium_digest(medium) + moment->acknowledged)) {
        medium_free(medium);
        return;
    }
    struct rig rig;
    rig_defaults(&rig);
    rig.options.worker_count = 1 + rng_below(&script->rng, 2);
    rig.options.sync = STORE_SYNC_ALWAYS;
    rig.options.ordered_keys = script->rig.options.ordered_keys;
    if (inner)
        medium_record(medium, record, inner);
    open_again(script, &rig, medium);
    medium_record(medium, NULL, NULL);
    compare(script, &rig, moment->acknowledged);
    if (rng_chance(&script->rng, 30))
        go_on(script, &rig, medium);
    must(rig_close(&rig) == STORE_OK, "%s: closing: %s", script->letters, rig.last_warning);
    medium_free(medium);
}

/* The same for the moments of a recovery. */
static void try_recovery(struct script *script, const struct moment *moment, enum fate fate)
{
    struct script inner = {.acknowledged = moment->acknowledged};
    inner.rig.options.ordered_keys = script->rig.options.ordered_keys;
    try_state(script, moment, fate, &inner);
    for (uint32_t i = 0; i < inner.moment_count; i++)
        try_state(script, &inner.moments[i], (enum fate)rng_below(&script->rng, FATES), NULL);
    drop_moments(&inner);
    free(inner.moments);
}

static void try_moments(struct script *script, time_t until)
{
    for (uint32_t i = 0; i < script->moment_count && time(NULL) < until; i++)
        for (enum fate fate = 0; fate < FATES; fate++)
            if (rng_chance(&script->rng, 3))
                try_recovery(script, &script->moments[i], fate);
            else
                try_state(script, &script->moments[i], fate, NULL);
}

/* ---- scripts ---- */

static uint32_t choose_name(struct rng *rng)
{
    uint32_t kind = rng_below(rng, 8);
    return kind == 0 ? LONG_NAME : kind < 3 ? 2049 + rng_below(rng, 3000) : 20;
}

static void begin_script(struct script *script, const char *letters, uint64_t seed,
                         enum store_ordered ordered)
{
    *script = (struct script){.rng = {seed}, .image_count = 1};
    for (uint32_t id = 0; id < KEYS; id++)
        script->name_lens[id] = choose_name(&script->rng);
    for (uint32_t db = 0; db < DBS; db++)
        empty_trees(&script->trees[db], rng_next(&script->rng));
    script->images[0].trees = calloc(1, sizeof(struct tree_model));
    must(script->images[0].trees, "out of memory");
    snprintf(script->letters, sizeof script->letters, "%s", letters);
    rig_defaults(&script->rig);
    script->rig.options.partition_count = 2;
    script->rig.options.ordered_keys = ordered;
    script->rig.options.sync = rng_chance(&script->rng, 70)
                                   ? STORE_SYNC_ALWAYS
                                   : (enum store_sync)rng_below(&script->rng, 3);
    if (rng_chance(&script->rng, 40)) /* some commits are beside the journal */
        script->rig.options.record_bytes = 100 + rng_below(&script->rng, 2000);
}

static void end_script(struct script *script)
{
    drop_moments(script);
    free(script->moments);
    free(script->states);
    for (uint32_t i = 0; i < script->blob_count; i++)
        blob_unref(script->blobs[i]);
    for (uint32_t i = 0; i < script->image_count; i++) {
        tree_model_free(script->images[i].trees);
        free(script->images[i].trees);
    }
    for (uint32_t db = 0; db < DBS; db++)
        tree_model_free(&script->trees[db]);
}

/* What the last operation has left to be written. */
static void finish_last(struct script *script, struct medium *medium)
{
    if (script->rig.options.sync != STORE_SYNC_ALWAYS)
        return; /* the end of the script has it written */
    rig_sync(&script->rig, newest(script)->commit);
    medium_record(medium, NULL, NULL);
}

/* The power goes in any of its operations and in the orderly end, or in the last operation alone:
 * in those before it goes in the shorter scripts, and the end is that of a restart. */
static uint32_t run_script(const char *letters, bool last_alone, uint64_t seed, time_t until,
                           enum store_ordered ordered)
{
    struct script script;
    struct medium *medium = medium_new(seed);
    begin_script(&script, letters, seed, ordered);
    open_again(&script, &script.rig, medium);
    for (const char *letter = letters; *letter; letter++) {
        if (!last_alone || !letter[1])
            medium_record(medium, record, &script);
        run_letter(&script, medium, *letter);
    }
    if (last_alone)
        finish_last(&script, medium);
    must(rig_close(&script.rig) == STORE_OK, "%s: closing", letters);
    medium_record(medium, NULL, NULL);
    try_moments(&script, until);
    uint32_t states = script.state_count;
    end_script(&script);
    medium_free(medium);
    return states;
}

/* All scripts of one and two letters come in turn, from a random one on; in between random longer
 * ones. */
static void choose_script(struct rng *rng, uint32_t number, uint32_t first,
                          char letters[LONGEST + 1])
{
    uint32_t turn = (first + number / 2) % (LETTERS + LETTERS * LETTERS), length = 2;
    if (number % 2)
        length = 3 + rng_below(rng, LONGEST - 2);
    else if (turn < LETTERS)
        length = 1;
    for (uint32_t i = 0; i < length; i++) {
        uint32_t choice = rng_below(rng, LETTERS);
        if (length == 1)
            choice = turn;
        else if (length == 2)
            choice = i ? turn % LETTERS : turn / LETTERS - 1;
        letters[i] = alphabet[choice];
    }
    letters[length] = 0;
}

/* The script of that number, of all that have so many of these letters; false: there are no more.
 */
static bool script_in_turn(const char *of, uint32_t number, uint32_t length,
                           char letters[LONGEST + 1])
{
    uint32_t count = (uint32_t)strlen(of);
    for (uint32_t i = length; i-- > 0; number /= count)
        letters[i] = of[number % count];
    letters[length] = 0;
    return number == 0;
}

static time_t end_of(uint32_t otherwise, uint32_t share)
{
    const char *seconds = getenv("VELLUM_SECONDS");
    uint32_t given = seconds ? (uint32_t)atoi(seconds) : otherwise;
    return time(NULL) + 1 + given / share;
}

static uint32_t run_one(const char *letters, bool last_alone, uint64_t seed, time_t until,
                        enum store_ordered ordered)
{
    if (getenv("VELLUM_TEST_LOG"))
        fprintf(stderr, "# %s, VELLUM_SEED=%llu\n", letters, (unsigned long long)seed);
    return run_script(letters, last_alone, seed, until, ordered);
}

/* Each script of so many of these letters. */
static uint64_t run_all(const char *of, uint32_t length, struct rng *rng)
{
    char letters[LONGEST + 1];
    uint64_t states = 0;
    uint32_t scripts = 0;
    for (; script_in_turn(of, scripts, length, letters); scripts++) {
        states += run_one(letters, true, rng_next(rng), INT64_MAX, STORE_ORDERED_NO);
        if (scripts % 1000 == 999)
            fprintf(stderr, "# up to %s: %llu states\n", letters, (unsigned long long)states);
    }
    fprintf(stderr, "# all %u scripts of %u of %s: %llu states\n", scripts, length, of,
            (unsigned long long)states);
    return states;
}

static void run_up_to(uint32_t longest, struct rng *rng)
{
    const char *of = getenv("VELLUM_ALPHABET");
    uint64_t states = 0;
    must(longest >= 1 && longest <= LONGEST, "VELLUM_LETTERS is 1 to %u", LONGEST);
    for (uint32_t length = 1; length <= longest; length++)
        states += run_all(of ? of : alphabet, length, rng);
    fprintf(stderr, "# %llu states\n", (unsigned long long)states);
}

static void run_some(struct rng *rng, time_t until)
{
    uint64_t states = 0;
    uint32_t first = rng_below(rng, 1000), scripts = 0;
    for (; time(NULL) < until; scripts++) {
        char letters[LONGEST + 1];
        choose_script(rng, scripts, first, letters);
        states += run_one(letters, false, rng_next(rng), until, STORE_ORDERED_NO);
    }
    fprintf(stderr, "# %u scripts, %llu states\n", scripts, (unsigned long long)states);
}

static void every_point_of_short_scripts(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("scripts");
    const char *alone = getenv("VELLUM_SCRIPT"), *length = getenv("VELLUM_LETTERS");
    struct rng rng = {seed};
    if (alone)
        run_one(alone, false, seed, INT64_MAX, STORE_ORDERED_NO);
    else if (length)
        run_up_to((uint32_t)atoi(length), &rng);
    else
        run_some(&rng, end_of(15, 1));
}

/* What is changed of a page on disk is in the journal alone until the next checkpoint. */
static void every_point_of_changed_collections(void **state)
{
    (void)state;
    static const char *scripts[] = {"t", "tkt", "tt", "ktkt", "trt", "tft", "ttk", "trkt"};
    struct rng rng = {rng_seed("collections")};
    time_t until = end_of(15, 3);
    uint64_t states = 0;
    for (uint32_t i = 0; time(NULL) < until; i++)
        states += run_one(scripts[i % 8], false, rng_next(&rng), until, STORE_ORDERED_NO);
    fprintf(stderr, "# %llu states\n", (unsigned long long)states);
}

/* Where keys come and go, or their databases. */
static void every_point_of_ordered_keys(void **state)
{
    (void)state;
    static const char *scripts[] = {"sd",  "mfs", "sks", "mwf", "sn",  "xs",  "mkd", "srd",
                                    "sfk", "mkf", "nkn", "wsf", "tfs", "dmd", "frs", "mxk"};
    const char *alone = getenv("VELLUM_SCRIPT");
    uint64_t seed = rng_seed("ordered keys"), states = 0;
    struct rng rng = {seed};
    time_t until = end_of(15, 3);
    if (alone)
        run_one(alone, false, seed, INT64_MAX, STORE_ORDERED_YES);
    for (uint32_t i = rng_below(&rng, 16); time(NULL) < until && !alone; i++)
        states += run_one(scripts[i % 16], false, rng_next(&rng), until, STORE_ORDERED_YES);
    fprintf(stderr, "# %llu states\n", (unsigned long long)states);
}

int main(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 30); /* a store is opened every millisecond: its memory stays */
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_point_of_short_scripts),
        cmocka_unit_test(every_point_of_changed_collections),
        cmocka_unit_test(every_point_of_ordered_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
