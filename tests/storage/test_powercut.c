/* The power is cut at any I/O: in the midst of work, of recovery, of a checkpoint, of a clean
 * close, of making the directory. The store then holds exactly the commits up to one number, which
 * is not below what was durable; work goes on, and it is cut again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "workload.h"

#define SCRIPT_LENGTH 5u

struct cutter {
    struct medium *medium;
    struct rig rig;
    struct workload load;
    uint64_t acknowledged; /* commits that must be there */
    uint64_t cuts;
};

static void begin(struct cutter *cutter, uint64_t seed)
{
    cutter->medium = medium_new(seed ^ 0x5eed);
    rig_defaults(&cutter->rig);
    workload_init(&cutter->load, &cutter->rig, seed);
    cutter->load.medium = cutter->medium;
    cutter->acknowledged = cutter->cuts = 0;
}

static void end(struct cutter *cutter)
{
    workload_free(&cutter->load);
    medium_free(cutter->medium);
}

/* Once, with a cut after that many events (0: none). Whether it is open, with power. */
static bool try_open(struct cutter *cutter, uint64_t cut_after)
{
    struct disk *disk = medium_disk(cutter->medium);
    medium_cut_after(cutter->medium, cut_after);
    enum store_result result = rig_open(&cutter->rig, disk);
    medium_cut_after(cutter->medium, 0);
    bool cut = medium_is_cut(cutter->medium);
    must(result == STORE_OK || cut, "opening fails: %s", cutter->rig.message);
    if (result == STORE_OK && cut)
        must(rig_close(&cutter->rig) != STORE_LOCKED, "closing");
    cutter->cuts += cut;
    return result == STORE_OK && !cut;
}

static void compare(struct cutter *cutter)
{
    struct store_stats stats;
    store_stats(cutter->rig.store, &stats);
    must(stats.commits >= cutter->acknowledged, "commit %llu was durable, but only %llu are there",
         (unsigned long long)cutter->acknowledged, (unsigned long long)stats.commits);
    must(stats.damaged_items == 0, "damage: %s", cutter->rig.last_warning);
    workload_rewind(&cutter->load, stats.commits);
    cutter->load.last_commit = stats.commits;
    oracle_compare(cutter->load.now, &cutter->rig);
    store_stats(cutter->rig.store, &stats);
    must(stats.damaged_items == 0, "damage: %s", cutter->rig.last_warning);
}

static void close_store(struct cutter *cutter)
{
    workload_drain(&cutter->load);
    uint64_t durable = store_durable(cutter->rig.store);
    enum store_result result = rig_close(&cutter->rig);
    bool cut = medium_is_cut(cutter->medium);
    must(result == STORE_OK || cut, "closing fails: %s", cutter->rig.last_warning);
    cutter->acknowledged = result == STORE_OK ? cutter->load.last_commit : durable;
    medium_cut_now(cutter->medium);
    cutter->cuts++;
}

static uint32_t limit_of(const char *name, uint32_t otherwise)
{
    const char *given = getenv(name);
    return given ? (uint32_t)atoi(given) : otherwise;
}

/* ---- random work ---- */

static void one_life(struct cutter *cutter)
{
    struct rng *rng = &cutter->load.rng;
    static const uint32_t ranges[] = {100, 1000, 10000};
    cutter->rig.options.worker_count = 1 + rng_below(rng, 3);
    cutter->rig.options.sync =
        rng_chance(rng, 60) ? STORE_SYNC_ALWAYS : (enum store_sync)rng_below(rng, 3);
    while (!try_open(cutter, rng_chance(rng, 30) ? 1 + rng_below(rng, 150) : 0))
        ;
    compare(cutter);
    medium_cut_after(cutter->medium, 1 + rng_below(rng, ranges[rng_below(rng, 3)]));
    uint32_t calls = rng_below(rng, 20) ? rng_below(rng, 2500) : 0;
    for (uint32_t i = 0; i < calls && !medium_is_cut(cutter->medium); i++)
        workload_step(&cutter->load);
    close_store(cutter);
}

static void what_was_durable_survives(void **state)
{
    (void)state;
    struct cutter cutter;
    begin(&cutter, rng_seed("power cuts"));
    time_t until = time(NULL) + limit_of("VELLUM_SECONDS", 10);
    while (time(NULL) < until)
        one_life(&cutter);
    fprintf(stderr, "# %llu cuts, %llu calls\n", (unsigned long long)cutter.cuts,
            (unsigned long long)cutter.load.calls);
    end(&cutter);
}

/* ---- short scripts, cut at every point ---- */

static void put(struct call *call, uint32_t id, struct rng *rng, uint64_t len)
{
    struct step *step = call_step(call, STEP_PUT, oracle_key(call, 0, id));
    step->blob = blob_random(rng, len);
}

static struct call *script_call(struct rng *rng, char what)
{
    struct call *call = call_new();
    uint32_t id = rng_below(rng, 2);
    switch (what) {
    case 's': /* the same class each time */
        put(call, id, rng, 50);
        break;
    case 'c':
        put(call, id, rng, rng_below(rng, 4000));
        break;
    case 'd':
        call_step(call, STEP_DELETE, oracle_key(call, 0, id));
        break;
    case 'm':
        put(call, 0, rng, 10 + rng_below(rng, 300));
        put(call, 1, rng, 10 + rng_below(rng, 300));
        break;
    case 'n':
        call_step(call, STEP_RENAME, oracle_key(call, 0, id))->other = oracle_key(call, 0, 1 - id);
        break;
    case 'l':
        put(call, id, rng, 9000 + rng_below(rng, 300000));
        break;
    default:
        call->exclusive = true;
        call_step(call, rng_chance(rng, 50) ? STEP_FLUSH_ALL : STEP_FLUSH_DB, 0);
    }
    return call;
}

/* Runs until the power goes; the store is closed then or at the end. */
static void run_script(struct cutter *cutter, const char *script, struct rng rng)
{
    for (; *script && !medium_is_cut(cutter->medium); script++) {
        if (*script == 'r') {
            must(rig_close(&cutter->rig) == STORE_OK || medium_is_cut(cutter->medium), "closing");
            struct disk *disk = medium_is_cut(cutter->medium) ? NULL : medium_disk(cutter->medium);
            cutter->acknowledged = disk ? cutter->load.last_commit : cutter->acknowledged;
            if (!disk || rig_open(&cutter->rig, disk) != STORE_OK)
                return;
            continue;
        }
        workload_start(&cutter->load, script_call(&rng, *script));
        while (cutter->load.under_way)
            rig_round(&cutter->rig);
        if (rng_chance(&rng, 70))
            rig_sync(&cutter->rig, cutter->load.last_commit);
        cutter->acknowledged = store_durable(cutter->rig.store);
    }
    close_store(cutter);
}

static uint64_t run_and_cut(const char *script, uint64_t seed, uint64_t cut_after)
{
    struct cutter cutter;
    begin(&cutter, seed);
    cutter.rig.options.partition_count = 2;
    must(try_open(&cutter, 0), "opening");
    uint64_t first = medium_events(cutter.medium);
    medium_cut_after(cutter.medium, cut_after);
    run_script(&cutter, script, (struct rng){seed});
    uint64_t events = medium_events(cutter.medium) - first;
    must(try_open(&cutter, 0), "opening");
    compare(&cutter);
    close_store(&cutter);
    end(&cutter);
    return events;
}

static void every_point_of_short_scripts(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("scripts")};
    time_t until = time(NULL) + limit_of("VELLUM_SECONDS", 10);
    uint32_t scripts = 0, cuts = 0;
    while (time(NULL) < until) {
        char script[SCRIPT_LENGTH + 1] = {0};
        uint32_t length = 1 + rng_below(&rng, SCRIPT_LENGTH);
        for (uint32_t i = 0; i < length; i++)
            script[i] = "scdmnlfr"[rng_below(&rng, 8)];
        uint64_t seed = rng_next(&rng);
        uint64_t events = run_and_cut(script, seed, 0);
        for (uint64_t cut = 1; cut <= events && time(NULL) < until; cut++, cuts++)
            run_and_cut(script, seed, cut);
        scripts++;
    }
    fprintf(stderr, "# %u scripts, %u cuts\n", scripts, cuts);
}

/* ---- a new directory ---- */

static void a_directory_may_be_cut_while_it_is_made(void **state)
{
    (void)state;
    struct cutter cutter;
    bool whole = false;
    uint64_t seed = rng_seed("new directories");
    for (uint32_t cut = 1; !whole; cut++)
        for (uint32_t again = 0; again < 5; again++) {
            begin(&cutter, seed + again);
            whole = try_open(&cutter, cut);
            must(whole || try_open(&cutter, 0), "opening");
            must(do_set(&cutter.rig, "key", "value") == STORE_OK, "set");
            must(rig_close(&cutter.rig) == STORE_OK, "close");
            must(try_open(&cutter, 0) && has_value(&cutter.rig, "key", "value"), "the key");
            must(rig_close(&cutter.rig) == STORE_OK, "close");
            end(&cutter);
        }
}

/* ---- the ring's end ---- */

/* Every set is a group of one page: around so many the ring of 2048 ends, in one case exactly. */
static void a_journal_may_end_where_the_ring_does(void **state)
{
    (void)state;
    for (uint32_t sets = 2040; sets <= 2050; sets++) {
        struct medium *medium = medium_new(sets);
        struct rig rig;
        rig_defaults(&rig);
        must(rig_open(&rig, medium_disk(medium)) == STORE_OK, "open: %s", rig.message);
        for (uint32_t i = 0; i < sets; i++)
            must(do_set(&rig, "key", i % 2 ? "odd" : "even") == STORE_OK, "set");
        must(rig_close(&rig) == STORE_OK, "close");
        medium_cut_now(medium);
        must(rig_open(&rig, medium_disk(medium)) == STORE_OK, "after %u sets: %s", sets,
             rig.message);
        must(has_value(&rig, "key", sets % 2 ? "even" : "odd"), "after %u sets", sets);
        must(rig_close(&rig) == STORE_OK, "close");
        medium_free(medium);
    }
}

/* The same, with the power gone before a checkpoint: redo has to go around. The last sets take two
 * pages each, so that one of them may find but one left. */
static void redo_goes_around_the_ring(void **state)
{
    (void)state;
    for (uint32_t sets = 2044; sets <= 2048; sets++) {
        struct medium *medium = medium_new(sets);
        struct rig rig;
        struct rng rng = {sets};
        rig_defaults(&rig);
        must(rig_open(&rig, medium_disk(medium)) == STORE_OK, "open: %s", rig.message);
        for (uint32_t i = 0; i < sets; i++)
            must(do_set(&rig, "key", i % 2 ? "odd" : "even") == STORE_OK, "set");
        struct blob *last = blob_random(&rng, 4000);
        for (uint32_t i = 0; i < 5; i++)
            must(do_put(&rig, "wide", blob_ref(last)) == STORE_OK, "put");
        must(do_set(&rig, "key", "last") == STORE_OK, "set");
        medium_cut_now(medium);
        must(rig_close(&rig) != STORE_OK, "closing without power");
        must(rig_open(&rig, medium_disk(medium)) == STORE_OK, "after %u sets: %s", sets,
             rig.message);
        must(has_value(&rig, "key", "last"), "after %u sets", sets);
        enum store_result result;
        struct blob *found = do_get(&rig, "wide", &result);
        must(found && found->len == last->len && memcmp(found->bytes, last->bytes, last->len) == 0,
             "after %u sets: %d", sets, result);
        blob_unref(found);
        blob_unref(last);
        must(rig_close(&rig) == STORE_OK, "close");
        medium_free(medium);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_durable_survives),
        cmocka_unit_test(every_point_of_short_scripts),
        cmocka_unit_test(a_directory_may_be_cut_while_it_is_made),
        cmocka_unit_test(a_journal_may_end_where_the_ring_does),
        cmocka_unit_test(redo_goes_around_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
