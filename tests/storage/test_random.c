/* Random operations on a real directory against the oracle: with a cache of 256 pages and the
 * smallest journal, so that pages are evicted, checkpoints made and the journal wraps; closed and
 * opened again in between, with another number of workers each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "workload.h"

static uint32_t limit_of(const char *name, uint32_t otherwise)
{
    const char *given = getenv(name);
    return given ? (uint32_t)atoi(given) : otherwise;
}

static void random_load(struct rig *rig, struct workload *load, uint32_t sessions, uint32_t calls)
{
    for (uint32_t session = 0; session < sessions; session++) {
        rig->options.worker_count = 1 + rng_below(&load->rng, RIG_WORKERS);
        rig->options.sync = (enum store_sync)rng_below(&load->rng, 3);
        must(rig_open(rig, NULL) == STORE_OK, "open: %s", rig->message);
        oracle_compare(load->now, rig);
        for (uint32_t i = 0; i < calls; i++)
            workload_step(load);
        workload_drain(load);
        oracle_compare(load->now, rig);
        struct store_stats stats;
        store_stats(rig->store, &stats);
        must(stats.damaged_items == 0 && stats.read_errors == 0, "damage: %s", rig->last_warning);
        must(rig_close(rig) == STORE_OK, "close: %s", rig->last_warning);
        workload_settle(load);
    }
}

static void a_store_holds_what_was_written(void **state)
{
    (void)state;
    struct rig rig;
    struct workload load;
    char directory[256];
    uint64_t seed = rng_seed("random");
    scratch_make(directory);
    rig_defaults(&rig);
    rig.options.directory = directory;
    workload_init(&load, &rig, seed);
    random_load(&rig, &load, limit_of("VELLUM_SESSIONS", 4), limit_of("VELLUM_CALLS", 1500));
    workload_free(&load);
    scratch_remove(directory);
}

static void values_of_megabytes_too(void **state)
{
    (void)state;
    struct rig rig;
    struct workload load;
    char directory[256];
    uint64_t seed = rng_seed("large");
    scratch_make(directory);
    rig_defaults(&rig);
    rig.options.directory = directory;
    rig.options.partition_count = 1;
    workload_init(&load, &rig, seed);
    load.large_percent = 40;
    load.large_max = 12 << 20;
    random_load(&rig, &load, limit_of("VELLUM_SESSIONS", 2), limit_of("VELLUM_CALLS", 1500) / 10);
    workload_free(&load);
    scratch_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_holds_what_was_written),
        cmocka_unit_test(values_of_megabytes_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
