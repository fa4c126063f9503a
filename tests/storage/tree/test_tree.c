/* Large collections: random operations against a plain model, with the cache of 256 pages, closed
 * and opened again; the power cut in the middle of everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/storage/fault_disk.h"
#include "tests/storage/tree_model.h"

static uint32_t limit_of(const char *name, uint32_t otherwise)
{
    const char *given = getenv(name);
    return given ? (uint32_t)atoi(given) : otherwise;
}

static void one_batch(struct tree_model *model, struct rig *rig)
{
    struct tree_batch *batch = tree_batch_new(model);
    tree_batch_start(rig->workers[0], batch);
    while (!tree_batch_finished(batch))
        rig_round(rig);
    must(tree_batch_result(batch) == STORE_OK, "a batch ends with %d: %s",
         (int)tree_batch_result(batch), rig->last_warning);
    tree_batch_apply(model, batch);
    tree_batch_free(batch);
}

static void collections_hold_what_was_put(void **state)
{
    (void)state;
    struct rig rig;
    struct tree_model model;
    struct medium *medium = medium_new(1);
    tree_model_init(&model, rng_seed("trees"));
    rig_defaults(&rig);
    for (uint32_t session = 0; session < limit_of("VELLUM_SESSIONS", 4); session++) {
        static const uint32_t targets[] = {20, 300, 2000, 100};
        model.target = targets[session % 4];
        rig.options.worker_count = 1 + session % 2;
        rig_open_on(&rig, medium);
        tree_model_compare(&model, &rig);
        for (uint32_t i = 0; i < limit_of("VELLUM_CALLS", 3000); i++)
            one_batch(&model, &rig);
        tree_model_compare(&model, &rig);
        rig_close_well(&rig);
        must(rig.warnings == 0, "the store warns: %s", rig.last_warning);
    }
    tree_model_free(&model);
    medium_free(medium);
}

/* ---- power cuts ---- */

#define HISTORY_MOST 4000u

struct cutter {
    struct medium *medium;
    struct rig rig;
    struct tree_model base, model; /* as of the last start, and now */
    struct tree_batch *history[HISTORY_MOST];
    uint32_t count;
    uint64_t durable, cuts;
};

/* The model as it was after the commits up to this one. */
static void rewind_to(struct cutter *cutter, uint64_t commit)
{
    for (uint32_t i = 0; i < cutter->count; i++) {
        if (tree_batch_shown(cutter->history[i]) <= commit)
            tree_batch_apply(&cutter->base, cutter->history[i]);
        tree_batch_free(cutter->history[i]);
    }
    cutter->count = 0;
    tree_model_copy(&cutter->model, &cutter->base);
}

static bool open_after_cut(struct cutter *cutter)
{
    struct rng *rng = &cutter->model.rng;
    bool opened = rig_try_open(&cutter->rig, cutter->medium,
                               rng_chance(rng, 30) ? 1 + rng_below(rng, 150) : 0);
    cutter->cuts += !opened;
    return opened;
}

static void check_after_cut(struct cutter *cutter)
{
    struct store_stats stats;
    store_stats(cutter->rig.store, &stats);
    must(stats.commits >= cutter->durable, "commit %llu was durable, %llu are there",
         (unsigned long long)cutter->durable, (unsigned long long)stats.commits);
    rewind_to(cutter, stats.commits);
    tree_model_compare(&cutter->model, &cutter->rig);
    store_stats(cutter->rig.store, &stats);
    must(stats.damaged_items == 0, "damage: %s", cutter->rig.last_warning);
}

static void work_until_cut(struct cutter *cutter, uint32_t batches)
{
    for (uint32_t i = 0; i < batches && !medium_is_cut(cutter->medium); i++) {
        struct tree_batch *batch = tree_batch_new(&cutter->model);
        tree_batch_start(cutter->rig.workers[0], batch);
        while (!tree_batch_finished(batch))
            rig_round(&cutter->rig);
        if (tree_batch_result(batch) != STORE_OK) {
            must(medium_is_cut(cutter->medium), "a batch ends with %d",
                 (int)tree_batch_result(batch));
            tree_batch_free(batch);
            break;
        }
        tree_batch_apply(&cutter->model, batch);
        cutter->history[cutter->count++] = batch;
    }
}

static void one_life(struct cutter *cutter)
{
    struct rng *rng = &cutter->model.rng;
    static const uint32_t ranges[] = {100, 1000, 10000}, targets[] = {10, 100, 1000};
    cutter->rig.options.worker_count = 1 + rng_below(rng, 2);
    cutter->rig.options.sync =
        rng_chance(rng, 60) ? STORE_SYNC_ALWAYS : (enum store_sync)rng_below(rng, 3);
    cutter->model.target = targets[rng_below(rng, 3)];
    while (!open_after_cut(cutter))
        ;
    check_after_cut(cutter);
    medium_cut_after(cutter->medium, 1 + rng_below(rng, ranges[rng_below(rng, 3)]));
    work_until_cut(cutter, rng_below(rng, 20) ? rng_below(rng, HISTORY_MOST) : 0);
    cutter->durable = store_durable(cutter->rig.store);
    enum store_result result = rig_close(&cutter->rig);
    must(result == STORE_OK || medium_is_cut(cutter->medium), "closing: %s",
         cutter->rig.last_warning);
    medium_cut_now(cutter->medium);
    cutter->cuts++;
}

static void the_power_may_go_at_any_moment(void **state)
{
    (void)state;
    struct cutter *cutter = calloc(1, sizeof *cutter);
    must(cutter, "out of memory");
    uint64_t seed = rng_seed("tree cuts");
    cutter->medium = medium_new(seed ^ 0x5eed);
    tree_model_init(&cutter->base, 0);
    tree_model_init(&cutter->model, seed);
    rig_defaults(&cutter->rig);
    time_t until = time(NULL) + limit_of("VELLUM_SECONDS", 10);
    while (time(NULL) < until)
        one_life(cutter);
    fprintf(stderr, "# %llu cuts\n", (unsigned long long)cutter->cuts);
    rewind_to(cutter, 0);
    tree_model_free(&cutter->base);
    tree_model_free(&cutter->model);
    medium_free(cutter->medium);
    free(cutter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collections_hold_what_was_put),
        cmocka_unit_test(the_power_may_go_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
