/* Large collections: random operations against a plain model, with the cache of 256 pages, closed
 * and opened again; the power cut in the middle of everything; how many pages an access costs; what
 * is given up comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../storage/engine.h"
#include "fault_disk.h"
#include "tree_model.h"

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
        must(rig_open(&rig, medium_disk(medium)) == STORE_OK, "open: %s", rig.message);
        tree_model_compare(&model, &rig);
        for (uint32_t i = 0; i < limit_of("VELLUM_CALLS", 3000); i++)
            one_batch(&model, &rig);
        tree_model_compare(&model, &rig);
        must(rig_close(&rig) == STORE_OK, "close: %s", rig.last_warning);
        must(rig.warnings == 0, "the store warns: %s", rig.last_warning);
    }
    tree_model_free(&model);
    medium_free(medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collections_hold_what_was_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
