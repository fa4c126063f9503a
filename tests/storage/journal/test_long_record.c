/* Commits that are longer than what the journal takes of one: whole or not there, wherever the
 * power goes, and for as long as redo may need them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/txn/engine.h"
#include "tests/storage/fault_disk.h"

#define RECORD_BYTES 4096u
#define KEYS 14u
#define VALUE_BYTES 3000u
#define GENERATIONS 4u
#define RUN_BYTES (128u << 10)

static void defaults(struct rig *rig)
{
    rig_defaults(rig);
    rig->options.partition_count = 2;
    rig->options.record_bytes = RECORD_BYTES;
}

static struct blob *value_of(uint32_t generation, uint32_t number)
{
    struct rng rng = {generation * 100ull + number};
    return blob_random(&rng, VALUE_BYTES);
}

static struct call *put_all(uint32_t generation)
{
    struct call *call = call_new();
    for (uint32_t i = 0; i < KEYS; i++) {
        char name[16];
        int len = snprintf(name, sizeof name, "key:%u", i);
        call_step(call, STEP_PUT, call_key(call, 0, i, name, (uint32_t)len))->blob =
            value_of(generation, i);
    }
    return call;
}

static enum store_result finish(struct rig *rig, struct call *call)
{
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    enum store_result result = call->result;
    if (result == STORE_OK)
        rig_sync(rig, call->request.shown);
    call_free(call);
    return result;
}

/* Which generation all keys are of; 0: none of them is there. */
static uint32_t generation_of(struct rig *rig)
{
    uint32_t found[KEYS] = {0};
    for (uint32_t i = 0; i < KEYS; i++) {
        char name[16];
        enum store_result result;
        snprintf(name, sizeof name, "key:%u", i);
        struct blob *blob = do_get(rig, name, &result);
        must(blob || result == STORE_ABSENT, "%s: %d", name, result);
        for (uint32_t g = 1; blob && g <= GENERATIONS; g++) {
            struct blob *value = value_of(g, i);
            if (blob->len == value->len && memcmp(blob->bytes, value->bytes, value->len) == 0)
                found[i] = g;
            blob_unref(value);
        }
        must(!blob || found[i], "%s has some other value", name);
        must(found[i] == found[0], "key:0 is of %u, %s of %u", found[0], name, found[i]);
        blob_unref(blob);
    }
    return found[0];
}

/* ---- the power goes at every point ---- */

#define MOMENTS 4000u

struct moments {
    struct medium *at[MOMENTS];
    uint32_t least[MOMENTS]; /* the generation that was acknowledged */
    uint32_t count;
    _Atomic uint32_t acknowledged;
};

static void record(void *arg, struct medium *state)
{
    struct moments *moments = arg;
    must(moments->count < MOMENTS, "the test's own limits");
    moments->at[moments->count] = state;
    moments->least[moments->count++] = moments->acknowledged;
}

/* Runs that are given up too early have another value's bytes in them. */
static void use_runs(struct rig *rig)
{
    struct rng rng = {7};
    for (uint32_t i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "large:%u", i % 2);
        must(do_put(rig, name, blob_random(&rng, RUN_BYTES)) == STORE_OK, "put");
    }
}

/* Pages are written back: a checkpoint comes. */
static void await_checkpoint(struct rig *rig)
{
    struct store_stats before, now;
    store_stats(rig->store, &before);
    do {
        for (uint32_t i = 0; i < 110; i++) {
            char name[16];
            struct rng rng = {i};
            snprintf(name, sizeof name, "page:%u", i);
            must(do_put(rig, name, blob_random(&rng, VALUE_BYTES)) == STORE_OK, "put");
        }
        rig_run(rig, 1);
        store_stats(rig->store, &now);
    } while (now.checkpoints == before.checkpoints);
}

static void try_moment(struct moments *moments, uint32_t i, enum fate fate)
{
    struct rig rig;
    struct medium *medium = medium_copy(moments->at[i]);
    medium_set_fate(medium, fate);
    defaults(&rig);
    rig_open_on(&rig, medium);
    uint32_t found = generation_of(&rig);
    must(found >= moments->least[i], "generation %u was acknowledged, %u is there",
         moments->least[i], found);
    must(finish(&rig, put_all(GENERATIONS)) == STORE_OK && generation_of(&rig) == GENERATIONS,
         "going on");
    rig_end(&rig, medium);
}

static void it_is_whole_or_not_there(void **state)
{
    (void)state;
    static struct moments moments;
    struct medium *medium = medium_new(3);
    struct rig rig;
    defaults(&rig);
    rig_open_on(&rig, medium);
    must(finish(&rig, put_all(1)) == STORE_OK, "put");
    moments.acknowledged = 1;
    medium_record(medium, record, &moments);
    for (uint32_t generation = 2; generation < GENERATIONS; generation++) {
        must(finish(&rig, put_all(generation)) == STORE_OK, "put");
        moments.acknowledged = generation;
    }
    use_runs(&rig);
    medium_record(medium, NULL, NULL);
    rig_close_well(&rig);
    for (uint32_t i = 0; i < moments.count; i++) {
        try_moment(&moments, i, i % FATES);
        try_moment(&moments, i, FATE_LOST);
        medium_free(moments.at[i]);
    }
    fprintf(stderr, "# %u moments\n", moments.count);
    medium_free(medium);
}

/* ---- its runs ---- */

static uint32_t runs_in_use(struct rig *rig)
{
    pthread_mutex_lock(&rig->store->extents.lock);
    uint32_t used = page_file_used_runs(&rig->store->extents, NULL);
    pthread_mutex_unlock(&rig->store->extents.lock);
    return used;
}

static void open_after_a_cut(struct rig *rig, struct medium *medium)
{
    medium_cut_now(medium);
    must(rig_close(rig) != STORE_OK, "closing without power");
    rig_open_on(rig, medium);
}

static void its_runs_come_back_with_a_checkpoint(void **state)
{
    (void)state;
    struct medium *medium = medium_new(4);
    struct rig rig;
    defaults(&rig);
    rig_open_on(&rig, medium);
    must(finish(&rig, put_all(1)) == STORE_OK && finish(&rig, put_all(2)) == STORE_OK, "put");
    must(runs_in_use(&rig) == 2, "%u runs are in use", runs_in_use(&rig));
    await_checkpoint(&rig);
    must(runs_in_use(&rig) == 0, "%u runs are in use", runs_in_use(&rig));
    must(finish(&rig, put_all(3)) == STORE_OK, "put");
    open_after_a_cut(&rig, medium);
    must(runs_in_use(&rig) == 0 && generation_of(&rig) == 3, "after recovery");
    rig_reopen(&rig, medium);
    must(runs_in_use(&rig) == 0 && generation_of(&rig) == 3, "after a stop in order");
    rig_end(&rig, medium);
}

/* However little of the ring they use, and however few pages they change: a start would read all
 * of them into memory. */
static void they_are_bounded(void **state)
{
    (void)state;
    struct medium *medium = medium_new(10);
    struct rig rig;
    struct store_stats stats;
    uint32_t most = 0;
    defaults(&rig);
    rig.options.memory_bytes = 16u << 20;
    rig_open_on(&rig, medium);
    for (uint32_t i = 0; i < 200; i++) {
        must(finish(&rig, put_all(1 + i % GENERATIONS)) == STORE_OK, "put");
        uint32_t used = runs_in_use(&rig);
        most = used > most ? used : most;
    }
    store_stats(rig.store, &stats);
    must(most * RUN_BYTES <= (4u << 20) + RUN_BYTES, "%u runs are in use", most);
    must(stats.checkpoints > 0, "no checkpoint");
    open_after_a_cut(&rig, medium);
    must(generation_of(&rig) == GENERATIONS, "after recovery");
    rig_end(&rig, medium);
}

/* Nor do they go on while a long checkpoint lasts, one for each of its batches. */
static void they_wait_for_a_long_checkpoint(void **state)
{
    (void)state;
    const uint32_t pages = 6000, memory = 64u << 20;
    struct medium *medium = medium_new(12);
    struct rig rig;
    uint32_t most = 0;
    defaults(&rig);
    rig.options.memory_bytes = memory;
    rig_open_on(&rig, medium);
    for (uint32_t step = 1; step <= 2; step++) {
        for (uint32_t i = 0; i < pages; i += step) { /* at last every second page is dirty */
            char name[16];
            struct rng rng = {i};
            snprintf(name, sizeof name, "page:%u", i);
            must(do_put(&rig, name, blob_random(&rng, VALUE_BYTES)) == STORE_OK, "put");
        }
        if (step == 1)
            rig_reopen(&rig, medium);
    }
    for (uint32_t i = 0; i < 300; i++) {
        must(finish(&rig, put_all(1 + i % GENERATIONS)) == STORE_OK, "put");
        uint32_t used = runs_in_use(&rig);
        most = used > most ? used : most;
    }
    must(most * RUN_BYTES > memory / 8, "too few for this test");
    must(most * RUN_BYTES <= memory / 4 + RUN_BYTES, "%u runs are in use", most);
    rig_end(&rig, medium);
}

/* Where the disk is full, their runs are room, for which no key has to go. */
static void a_full_disk_takes_their_room(void **state)
{
    (void)state;
    struct medium *medium = medium_new(11);
    struct rig rig;
    struct store_stats stats;
    defaults(&rig);
    rig.options.memory_bytes = 64u << 20;
    rig_open_on(&rig, medium);
    for (uint32_t i = 0; i < 20; i++)
        must(finish(&rig, put_all(1 + i % GENERATIONS)) == STORE_OK, "put");
    use_runs(&rig);                    /* a key with runs */
    store_set_max_store(rig.store, 1); /* the files grow no more */
    store_set_policy(rig.store, &(struct store_policy){.evicts = STORE_EVICT_RANDOM, .samples = 5});
    for (uint32_t i = 0; i < 400; i++)
        must(finish(&rig, put_all(1 + i % GENERATIONS)) == STORE_OK, "put %u", i);
    store_stats(rig.store, &stats);
    must(stats.evicted_keys == 0, "%llu keys were evicted", (unsigned long long)stats.evicted_keys);
    rig_end(&rig, medium);
}

/* A flush of everything gives all runs back, but not those that redo still reads. */
static void a_flush_leaves_it_alone(void **state)
{
    (void)state;
    struct medium *medium = medium_new(5);
    struct rig rig;
    defaults(&rig);
    rig_open_on(&rig, medium);
    must(finish(&rig, put_all(1)) == STORE_OK, "put");
    struct call *call = call_new();
    call->exclusive = true;
    call_step(call, STEP_FLUSH_ALL, 0);
    must(finish(&rig, call) == STORE_OK, "flush");
    rig_run(&rig, 250); /* the maintenance thread frees them */
    use_runs(&rig);
    open_after_a_cut(&rig, medium);
    must(generation_of(&rig) == 0, "what was flushed is there again");
    rig_end(&rig, medium);
}

/* ---- what fails ---- */

static void a_write_that_fails_is_not_acknowledged(void **state)
{
    (void)state;
    struct medium *medium = medium_new(6);
    struct rig rig;
    defaults(&rig);
    rig_open_on(&rig, medium);
    must(finish(&rig, put_all(1)) == STORE_OK, "put");
    medium_fail(medium, FAULT_WRITE, "extents", 1, EIO, false);
    struct call *call = put_all(2);
    call_start(rig.workers[0], call);
    call_wait(&rig, call);
    uint64_t commit = call->request.shown;
    rig_sync(&rig, commit);
    must(store_has_failed(rig.store) && store_durable(rig.store) < commit,
         "what could not be written is durable");
    call_free(call);
    must(rig_close(&rig) == STORE_REFUSED, "closing");
    rig_open_on(&rig, medium);
    must(generation_of(&rig) == 1, "after a failed write");
    rig_end(&rig, medium);
}

/* Other bytes where redo reads it: the store is not opened rather than wrong. */
static void damage_is_noticed(void **state)
{
    (void)state;
    struct medium *medium = medium_new(8);
    struct rig rig;
    defaults(&rig);
    rig_open_on(&rig, medium);
    must(finish(&rig, put_all(1)) == STORE_OK, "put");
    medium_cut_now(medium);
    must(rig_close(&rig) != STORE_OK, "closing without power");
    struct blob *value = value_of(1, 5);
    uint64_t at = medium_find(medium, "extents", value->bytes, value->len);
    must(at != UINT64_MAX, "it is not there");
    medium_flip(medium, "extents", at + 100, 0x10);
    must(rig_open(&rig, medium_disk(medium)) == STORE_CORRUPT, "a damaged store is opened");
    medium_flip(medium, "extents", at + 100, 0x10);
    rig_open_on(&rig, medium);
    must(generation_of(&rig) == 1, "it is another");
    rig_close_well(&rig);
    blob_unref(value);
    medium_free(medium);
}

/* No disk for it: refused, and nothing of it stays. */
static void a_full_disk_refuses_it(void **state)
{
    (void)state;
    struct medium *medium = medium_new(9);
    struct rig rig;
    defaults(&rig);
    rig_open_on(&rig, medium);
    must(do_set(&rig, "a", "b") == STORE_OK, "set");
    medium_set_room(medium, medium_bytes(medium));
    enum store_result result = finish(&rig, put_all(1));
    must(result == STORE_FULL || result == STORE_OK, "a full disk says %d", result);
    struct blob *value = blob_new(20u << 20);
    must(do_put(&rig, "large", value) == STORE_FULL, "a full disk takes 20 MB");
    result = finish(&rig, put_all(2));
    must(result == STORE_FULL || result == STORE_OK, "a full disk says %d", result);
    medium_set_room(medium, UINT64_MAX);
    rig_run(&rig, 1100); /* it is asked again each second */
    must(finish(&rig, put_all(3)) == STORE_OK && generation_of(&rig) == 3, "there is room again");
    await_checkpoint(&rig);
    must(runs_in_use(&rig) == 0, "%u runs are in use", runs_in_use(&rig));
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_whole_or_not_there),
        cmocka_unit_test(its_runs_come_back_with_a_checkpoint),
        cmocka_unit_test(they_are_bounded),
        cmocka_unit_test(they_wait_for_a_long_checkpoint),
        cmocka_unit_test(a_full_disk_takes_their_room),
        cmocka_unit_test(a_flush_leaves_it_alone),
        cmocka_unit_test(a_write_that_fails_is_not_acknowledged),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(a_full_disk_refuses_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
