/* Random operations on a real directory against the oracle: with a cache of 256 pages and the
 * smallest journal, so that pages are evicted, checkpoints made and the journal wraps; closed and
 * opened again in between, with another number of workers each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/txn/engine.h"
#include "tests/storage/workload.h"

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
        rig->options.record_bytes = rng_chance(&load->rng, 40) ? 2000 : 0;
        must(rig_open(rig, NULL) == STORE_OK, "open: %s", rig->message);
        oracle_compare(load->now, rig);
        for (uint32_t i = 0; i < calls; i++)
            workload_step(load);
        workload_drain(load);
        oracle_compare(load->now, rig);
        struct store_stats stats;
        store_stats(rig->store, &stats);
        must(stats.damaged_items == 0 && stats.read_errors == 0, "damage: %s", rig->last_warning);
        rig_close_well(rig);
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
    load.large_max = WORKLOAD_LARGEST;
    random_load(&rig, &load, limit_of("VELLUM_SESSIONS", 2), limit_of("VELLUM_CALLS", 1500) / 10);
    workload_free(&load);
    scratch_remove(directory);
}

/* Transactions over whole databases, their steps in any order. */
static void flushes_and_swaps_take_their_turn(void **state)
{
    (void)state;
    struct rig rig;
    struct workload load;
    char directory[256];
    uint64_t seed = rng_seed("databases");
    scratch_make(directory);
    rig_defaults(&rig);
    rig.options.directory = directory;
    workload_init(&load, &rig, seed);
    load.alone_permille = 150;
    random_load(&rig, &load, limit_of("VELLUM_SESSIONS", 4), limit_of("VELLUM_CALLS", 1500));
    workload_free(&load);
    scratch_remove(directory);
}

/* Both again, in a directory that keeps the order of its keys. */
static void the_order_of_keys_is_kept(void **state)
{
    (void)state;
    struct rig rig;
    struct workload load;
    char directory[256];
    uint64_t seed = rng_seed("ordered keys");
    for (uint32_t pass = 0; pass < 2; pass++) {
        scratch_make(directory);
        rig_defaults(&rig);
        rig.options.directory = directory;
        rig.options.ordered_keys = STORE_ORDERED_YES;
        workload_init(&load, &rig, seed + pass);
        load.alone_permille = pass ? 150 : 0;
        random_load(&rig, &load, limit_of("VELLUM_SESSIONS", 4), limit_of("VELLUM_CALLS", 1500));
        workload_free(&load);
        scratch_remove(directory);
    }
}

/* ---- what random keys seldom meet ---- */

#define CROWD 100000u

struct tagged {
    uint32_t tag, number;
};

static int by_tag(const void *a, const void *b)
{
    const struct tagged *x = a, *y = b;
    return x->tag < y->tag ? -1 : x->tag > y->tag;
}

static void crowd_name(uint32_t number, char name[32])
{
    snprintf(name, 32, "{crowd}:%06u", number);
}

static uint32_t tag_of(const struct store *store, const char *name)
{
    return engine_tag(format_hash(&store->superblock.secret, name, strlen(name)), 1);
}

/* Two names that the store's index cannot tell apart, in a database whose id is 1. */
static void find_twins(const struct store *store, char first[32], char second[32])
{
    struct tagged *crowd = calloc(CROWD, sizeof *crowd);
    must(crowd, "out of memory");
    for (uint32_t i = 0; i < CROWD; i++) {
        crowd_name(i, first);
        crowd[i] = (struct tagged){tag_of(store, first), i};
    }
    qsort(crowd, CROWD, sizeof *crowd, by_tag);
    uint32_t at = 1;
    while (at < CROWD && crowd[at].tag != crowd[at - 1].tag)
        at++;
    must(at < CROWD, "no two keys have the same tag");
    crowd_name(crowd[at - 1].number, first);
    crowd_name(crowd[at].number, second);
    free(crowd);
}

static void keys_of_one_tag_are_told_apart(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    char first[32], second[32];
    rig_open_on(&rig, medium);
    find_twins(rig.store, first, second);
    must(do_set(&rig, first, "first") == STORE_OK, "set");
    must(has_value(&rig, second, NULL), "a key is taken for another");
    must(do_set(&rig, second, "second") == STORE_OK, "set");
    must(has_value(&rig, first, "first"), "a key has overwritten another");
    must(do_delete(&rig, first) == STORE_OK && has_value(&rig, second, "second"), "delete");
    rig_end(&rig, medium);
}

/* Keys chosen to collide in one store do not collide in another; in this one they still do after a
 * restart. */
static void twins_are_of_one_store_alone(void **state)
{
    (void)state;
    struct medium *media[] = {medium_new(1), medium_new(2)};
    struct rig rig;
    char first[32], second[32];
    rig_defaults(&rig);
    for (int i = 0; i < 3; i++) {
        must(rig_open(&rig, medium_disk(media[i % 2])) == STORE_OK, "open: %s", rig.message);
        if (i == 0)
            find_twins(rig.store, first, second);
        bool collide = tag_of(rig.store, first) == tag_of(rig.store, second);
        must(collide == (i != 1), "%s and %s, open number %d", first, second, i);
        rig_close_well(&rig);
    }
    medium_free(media[0]);
    medium_free(media[1]);
}

/* A report that a key is there, or gone, must name the commit that has to be durable for it. */
static void expect_named(struct rig *rig, const char *what, struct call *change, uint32_t db,
                         const char *key, bool found)
{
    struct call *look = call_new();
    call_step(look, STEP_GET, call_key(look, db, 0, key, (uint32_t)strlen(key)));
    call_start(rig->workers[0], change);
    call_wait(rig, change);
    call_start(rig->workers[0], look);
    call_wait(rig, look);
    must(look->steps[0].found == found && look->request.shown >= change->request.shown,
         "%s: commit %llu, and commit %llu is named by who sees it", what,
         (unsigned long long)change->request.shown, (unsigned long long)look->request.shown);
    call_free(change);
    call_free(look);
}

static void what_is_seen_names_its_commit(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig_open_on(&rig, medium);
    must(do_set(&rig, "key", "value") == STORE_OK, "set");
    struct call *call = call_new();
    call_step(call, STEP_PUT, call_key(call, 0, 0, "key", 3))->blob = blob_text("newer");
    expect_named(&rig, "a new value", call, 0, "key", true);
    call = call_new();
    call_step(call, STEP_EXPIRE, call_key(call, 0, 0, "key", 3))->expire_ms = 4000000000000ll;
    expect_named(&rig, "an expiry", call, 0, "key", true);
    call = call_new();
    struct step *rename = call_step(call, STEP_RENAME, call_key(call, 0, 0, "key", 3));
    rename->other = call_key(call, 0, 1, "other", 5);
    expect_named(&rig, "a new name", call, 0, "other", true);
    call = call_new();
    call->exclusive = true;
    call_step(call, STEP_SWAP_DB, 0)->other = 1;
    expect_named(&rig, "a swap", call, 1, "other", true);
    call = call_new();
    call_step(call, STEP_DELETE, call_key(call, 1, 0, "other", 5));
    expect_named(&rig, "a delete", call, 1, "other", false);
    call = call_new();
    call->exclusive = true;
    call_step(call, STEP_FLUSH_DB, 0);
    expect_named(&rig, "a flush", call, 0, "key", false);
    rig_end(&rig, medium);
}

static void what_was_deleted_makes_room(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    struct rng rng = {1};
    struct store_stats before, after;
    rig_open_on(&rig, medium);
    for (uint32_t i = 0; i < 6000; i++) {
        must(do_put(&rig, "key", blob_random(&rng, 3000)) == STORE_OK, "put");
        must(do_delete(&rig, "key") == STORE_OK, "delete");
        if (i == 0)
            store_stats(rig.store, &before);
    }
    store_stats(rig.store, &after);
    must(after.store_bytes < before.store_bytes + (8 << 20), "%llu bytes hold nothing",
         (unsigned long long)after.store_bytes);
    rig_end(&rig, medium);
}

static uint64_t noted_expiries(struct rig *rig)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < rig->store->partition_count; i++)
        count += ttl_count(&rig->store->partitions[i].ttl);
    return count;
}

/* Otherwise each would be looked for ten times a second for ever, and its memory be lost. */
static void an_expiry_taken_back_is_not_noted_any_more(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig_open_on(&rig, medium);
    int64_t later = store_clock_ms(rig.store) + 3600000;
    put_until(&rig, "moved", "value", later);
    put_until(&rig, "kept", "value", later);
    put_until(&rig, "deleted", "value", later);
    put_until(&rig, "moved", "value", later + 5000);
    put_until(&rig, "kept", "value", STORE_NO_EXPIRY);
    must(noted_expiries(&rig) == 2, "%llu expiries are noted, of 2 keys",
         (unsigned long long)noted_expiries(&rig));
    must(do_delete(&rig, "deleted") == STORE_OK && noted_expiries(&rig) == 1, "delete");
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_holds_what_was_written),
        cmocka_unit_test(values_of_megabytes_too),
        cmocka_unit_test(flushes_and_swaps_take_their_turn),
        cmocka_unit_test(the_order_of_keys_is_kept),
        cmocka_unit_test(keys_of_one_tag_are_told_apart),
        cmocka_unit_test(twins_are_of_one_store_alone),
        cmocka_unit_test(what_is_seen_names_its_commit),
        cmocka_unit_test(what_was_deleted_makes_room),
        cmocka_unit_test(an_expiry_taken_back_is_not_noted_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
