/* README's table, policy and event, and what could fail for each cell:
 *
 * - always, power: here, what_was_durable_survives, so_does_the_order_of_keys; all of test_cuts.c,
 * test_cuts_space.c and test_cuts_stream.c.
 * - always, kill: tests/server/test_lifecycle.py, test_kill_9_loses_nothing_acknowledged,
 *   _tears_no_value and _brings_nothing_back.
 * - everysec, power: here, a_second_is_the_most_that_is_lost; test_clock.c,
 *   a_second_stays_a_second; test_stalls.c, writers_wait_for_an_overdue_flush.
 * - everysec, kill: test_lifecycle.py, test_kill_9_keeps_a_prefix.
 * - no, power: here, half_a_minute_is_the_most_that_is_lost.
 * - no, kill: test_lifecycle.py, test_kill_9_keeps_a_prefix.
 *
 * And of every policy, under load with transactions, tests/crash/kill (kill -9) and, but for `no`,
 * tests/crash/cut (the power of whole machines). What is not a commit number here, but what clients
 * see: test_random.c, what_is_seen_names_its_commit; tests/server/test_failing_disk.py.
 *
 * The power is cut at any I/O: in the midst of work, of recovery, of a checkpoint, of a clean
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

#include "storage/txn/engine.h"
#include "tests/storage/workload.h"

struct cutter {
    struct medium *medium;
    struct rig rig;
    struct workload load;
    uint64_t acknowledged; /* commits that must be there */
    uint64_t cuts;
};

static void begin(struct cutter *cutter, uint64_t seed, enum store_ordered ordered)
{
    cutter->medium = medium_new(seed ^ 0x5eed);
    rig_defaults(&cutter->rig);
    cutter->rig.options.ordered_keys = ordered;
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
    bool opened = rig_try_open(&cutter->rig, cutter->medium, cut_after);
    cutter->cuts += !opened;
    return opened;
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

/* Some operations take much longer than others: a group of the journal, pages of a checkpoint. */
static void stall_now_and_then(struct cutter *cutter)
{
    static const char *files[] = {"journal", "slabs", "superblock", "extents"};
    struct rng *rng = &cutter->load.rng;
    if (rng_chance(rng, 2))
        medium_hold(cutter->medium, (enum fault_kind)rng_below(rng, FAULT_EXTEND),
                    files[rng_below(rng, 4)], 1 + rng_below(rng, 25));
}

static void one_life(struct cutter *cutter)
{
    struct rng *rng = &cutter->load.rng;
    static const uint32_t ranges[] = {100, 1000, 10000};
    cutter->rig.options.worker_count = 1 + rng_below(rng, 3);
    cutter->rig.options.sync =
        rng_chance(rng, 60) ? STORE_SYNC_ALWAYS : (enum store_sync)rng_below(rng, 3);
    cutter->rig.options.record_bytes = rng_chance(rng, 40) ? 100 + rng_below(rng, 9000) : 0;
    while (!try_open(cutter, rng_chance(rng, 30) ? 1 + rng_below(rng, 150) : 0))
        ;
    compare(cutter);
    medium_cut_after(cutter->medium, 1 + rng_below(rng, ranges[rng_below(rng, 3)]));
    uint32_t calls = rng_below(rng, 20) ? rng_below(rng, 2500) : 0;
    for (uint32_t i = 0; i < calls && !medium_is_cut(cutter->medium); i++) {
        stall_now_and_then(cutter);
        workload_step(&cutter->load);
    }
    medium_release(cutter->medium);
    close_store(cutter);
}

static void many_lives(const char *name, enum store_ordered ordered)
{
    struct cutter cutter;
    begin(&cutter, rng_seed(name), ordered);
    time_t until = time(NULL) + limit_of("VELLUM_SECONDS", 10);
    while (time(NULL) < until)
        one_life(&cutter);
    fprintf(stderr, "# %llu cuts, %llu calls\n", (unsigned long long)cutter.cuts,
            (unsigned long long)cutter.load.calls);
    end(&cutter);
}

static void what_was_durable_survives(void **state)
{
    (void)state;
    many_lives("power cuts", STORE_ORDERED_NO);
}

/* Keys and their names in the trees, after each cut. */
static void so_does_the_order_of_keys(void **state)
{
    (void)state;
    many_lives("power cuts of ordered keys", STORE_ORDERED_YES);
}

/* ---- policies that wait ---- */

static int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

#define PAIRS 4000u
#define LOST_MS 1000
#define BUSY_MS                                                                                    \
    1000 /* of grace where the machine is: for the flush, for the maintenance thread to get its    \
            turn */

/* Both keys get the number; they are in different partitions. */
static void set_pair(struct rig *rig, uint32_t number)
{
    char text[32];
    snprintf(text, sizeof text, "number %u", number);
    struct call *call = call_new();
    call_step(call, STEP_PUT, call_key(call, 0, 0, "left", 4))->blob = blob_text(text);
    call_step(call, STEP_PUT, call_key(call, 0, 0, "right", 5))->blob = blob_text(text);
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "put: %d", call->result);
    call_free(call);
}

static uint32_t pair_of(struct rig *rig)
{
    enum store_result result;
    uint32_t left = 0, right = 0;
    struct blob *blobs[] = {do_get(rig, "left", &result), do_get(rig, "right", &result)};
    must(!blobs[0] == !blobs[1], "half of a transaction is there");
    if (blobs[0])
        must(sscanf(blobs[0]->bytes, "number %u", &left) == 1 &&
                 sscanf(blobs[1]->bytes, "number %u", &right) == 1,
             "a value is another");
    must(left == right, "of one transaction there is %u, of another %u", left, right);
    blob_unref(blobs[0]);
    blob_unref(blobs[1]);
    return left;
}

/* `everysec`: what is older than a second is there, a prefix of whole transactions. */
static void a_second_is_the_most_that_is_lost(void **state)
{
    (void)state;
    int64_t done_ms[PAIRS];
    struct rng rng = {rng_seed("everysec")};
    struct rig rig;
    struct medium *medium = rig_begin(&rig, rng_next(&rng));
    rig.options.sync = STORE_SYNC_EVERYSEC;
    rig_open_on(&rig, medium);
    int64_t end = monotonic_ms() + 2500 + rng_below(&rng, 1000);
    uint32_t count = 0;
    while (count + 1 < PAIRS && monotonic_ms() < end) {
        set_pair(&rig, ++count);
        done_ms[count] = monotonic_ms();
        rig_run(&rig, 1);
    }
    rig_run(&rig, (uint32_t)(end > monotonic_ms() ? end - monotonic_ms() : 0));
    medium_cut_now(medium);
    int64_t cut_ms = monotonic_ms();
    must(rig_close(&rig) != STORE_OK, "closing without power");
    rig_open_on(&rig, medium);
    uint32_t kept = pair_of(&rig);
    int64_t lost = kept < count ? cut_ms - done_ms[kept + 1] : 0;
    fprintf(stderr, "# %u of %u are kept: %lld ms are lost\n", kept, count, (long long)lost);
    must(lost <= LOST_MS + BUSY_MS, "what was done %lld ms before is lost", (long long)lost);
    rig_end(&rig, medium);
}

#define PATIENCE_MS 30000 /* of `no` */

/* `no`: nothing is hurried, but what has waited for half a minute is written. The store's clock is
 * not waited for: what has come is made to be older. */
static void half_a_minute_is_the_most_that_is_lost(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig.options.sync = STORE_SYNC_NO;
    rig_open_on(&rig, medium);
    struct journal *journal = &rig.store->journal;
    set_pair(&rig, 1);
    uint64_t commit = atomic_load(&journal->appended);
    rig_run(&rig, 1200);
    must(store_durable(rig.store) < commit, "`no` writes as often as `everysec`");
    pthread_mutex_lock(&journal->lock);
    journal->oldest_ms -= PATIENCE_MS;
    pthread_mutex_unlock(&journal->lock);
    for (uint32_t i = 0; i < 200 && store_durable(rig.store) < commit; i++)
        rig_run(&rig, 10);
    must(store_durable(rig.store) >= commit, "it waits for more than half a minute");
    set_pair(&rig, 2);
    medium_cut_now(medium);
    must(rig_close(&rig) != STORE_OK, "closing without power");
    rig_open_on(&rig, medium);
    must(pair_of(&rig) >= 1, "what was written is gone");
    rig_end(&rig, medium);
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
            begin(&cutter, seed + again, again & 1);
            whole = try_open(&cutter, cut);
            must(whole || try_open(&cutter, 0), "opening");
            must(do_set(&cutter.rig, "key", "value") == STORE_OK, "set");
            if (again % 2)
                medium_cut_now(cutter.medium);
            must(rig_close(&cutter.rig) == STORE_OK || again % 2, "close");
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
        struct rig rig;
        struct medium *medium = rig_begin(&rig, sets);
        rig_open_on(&rig, medium);
        for (uint32_t i = 0; i < sets; i++)
            must(do_set(&rig, "key", i % 2 ? "odd" : "even") == STORE_OK, "set");
        rig_close_well(&rig);
        medium_cut_now(medium);
        must(rig_open(&rig, medium_disk(medium)) == STORE_OK, "after %u sets: %s", sets,
             rig.message);
        must(has_value(&rig, "key", sets % 2 ? "even" : "odd"), "after %u sets", sets);
        rig_end(&rig, medium);
    }
}

/* The same, with the power gone before a checkpoint: redo has to go around. The last sets take two
 * pages each, so that one of them may find but one left. */
static void redo_goes_around_the_ring(void **state)
{
    (void)state;
    for (uint32_t sets = 2044; sets <= 2048; sets++) {
        struct rig rig;
        struct medium *medium = rig_begin(&rig, sets);
        struct rng rng = {sets};
        rig_open_on(&rig, medium);
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
        rig_end(&rig, medium);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_durable_survives),
        cmocka_unit_test(so_does_the_order_of_keys),
        cmocka_unit_test(a_second_is_the_most_that_is_lost),
        cmocka_unit_test(half_a_minute_is_the_most_that_is_lost),
        cmocka_unit_test(a_directory_may_be_cut_while_it_is_made),
        cmocka_unit_test(a_journal_may_end_where_the_ring_does),
        cmocka_unit_test(redo_goes_around_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
