/* The cost of look-ups in large collections: which pages are read, when and by which request, and
 * that no other request is held up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "storage/txn/engine.h"
#include "tests/storage/fault_disk.h"
#include "tests/storage/tree_job.h"

static void an_access_costs_the_height_and_one_more(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig_open_on(&rig, medium);
    tree_job_fill(&rig, "big", 30000, 40);
    rig_close_well(&rig);
    for (uint32_t i = 0; i < 20; i++) {
        struct store_stats before, after;
        rig_open_on(&rig, medium);
        store_stats(rig.store, &before);
        struct tree_job job = {.act = i % 2 ? tree_job_look_up : tree_job_look_up_rank,
                               .from = i * 1499};
        must(tree_job_do(&rig, "big", &job) == STORE_OK, "looking up: %d", (int)job.result);
        store_stats(rig.store, &after);
        must(job.found == 3, "the tree is %u high", (unsigned)job.found);
        must(after.pages_read - before.pages_read <= job.found + 1, "%llu pages were read",
             (unsigned long long)(after.pages_read - before.pages_read));
        rig_close_well(&rig);
    }
    medium_free(medium);
}

#define QUEUED 8u
#define QUEUED_MOST 64u
#define AHEAD_WRITERS 4000u
#define QUEUES                                                                                     \
    6u /* what a prefetch run saves depends on how fast its reads are: many of them say it */

static enum store_result replace_entry(struct store_txn *txn, struct tree_job *job,
                                       struct store_tree *tree)
{
    char name[16];
    struct store_cursor cursor;
    (void)txn;
    enum store_result result = store_tree_find(tree, name, tree_job_name(job->from, name), &cursor);
    return result == STORE_OK ? store_tree_replace(&cursor, "fresh", 5) : result;
}

static void start_writer(struct rig *rig, struct tree_job *job, tree_act *act, uint32_t entry,
                         bool may_prefetch)
{
    *job = (struct tree_job){.act = act, .from = entry, .request.may_prefetch = may_prefetch};
    tree_job_start(rig, "big", job);
}

/* And one far from it: which page that needs shows when the first is there. */
static enum store_result replace_two(struct store_txn *txn, struct tree_job *job,
                                     struct store_tree *tree)
{
    struct tree_job other = {.from = job->from + 5 * AHEAD_WRITERS};
    enum store_result result = replace_entry(txn, job, tree);
    return result == STORE_OK ? replace_entry(txn, &other, tree) : result;
}

/* Writers of one collection, each of other leaves, `depth` at a time: how often a run had to be
 * thrown away. */
static uint64_t queue_writers(struct rig *rig, tree_act *act, uint32_t from, uint32_t count,
                              uint32_t depth, bool may_prefetch)
{
    struct store_stats before, after;
    struct tree_job jobs[QUEUED_MOST] = {0};
    store_stats(rig->store, &before);
    for (uint32_t i = 0; i < depth; i++)
        start_writer(rig, &jobs[i], act, from + i, may_prefetch);
    for (uint32_t started = depth, finished = 0; finished < count;) {
        struct tree_job *job = &jobs[finished % depth];
        if (!job->finished) {
            rig_round(rig);
            continue;
        }
        must(job->result == STORE_OK, "replacing: %d", (int)job->result);
        finished++;
        if (started < count)
            start_writer(rig, job, act, from + started++, may_prefetch);
    }
    store_stats(rig->store, &after);
    return after.reruns - before.reruns;
}

static void who_waits_has_its_pages_read(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig_open_on(&rig, medium);
    tree_job_fill(&rig, "big", 30000, 40);
    rig_reopen(&rig, medium);
    for (uint32_t i = 0; i < 16; i++) { /* the inner nodes are there then */
        struct tree_job job = {.act = tree_job_look_up, .from = i};
        must(tree_job_do(&rig, "big", &job) == STORE_OK, "looking up: %d", (int)job.result);
    }
    uint64_t alone = 0, together = 0;
    for (uint32_t i = 0; i < QUEUES; i++) {
        alone += queue_writers(&rig, replace_entry, 1000 + 1000 * i, QUEUED, QUEUED, false);
        together += queue_writers(&rig, replace_entry, 10000 + 1000 * i, QUEUED, QUEUED, true);
    }
    fprintf(stderr, "# %llu runs again, with prefetch runs %llu\n", (unsigned long long)alone,
            (unsigned long long)together);
#ifndef VELLUM_WAIT
    must(alone > QUEUES * QUEUED / 2, "most leaves were there before");
    must(together <= alone / 3 * 2, "the prefetch runs were of no use");
#endif
    rig_end(&rig, medium);
}

/* `pages`: that each of them needs. In a cache whose pages are all in use the hand of the eviction
 * comes to the newest at last. */
static void read_ahead_for(struct rig *rig, tree_act *act, uint32_t pages)
{
    struct store_stats before, after;
    store_stats(rig->store, &before);
    uint64_t again = queue_writers(rig, act, 1000, AHEAD_WRITERS, QUEUED_MOST, true);
    store_stats(rig->store, &after);
    uint64_t reads = after.pages_read - before.pages_read;
    fprintf(stderr, "# %u writers of %u pages read %llu, ran again %llu times\n", AHEAD_WRITERS,
            pages, (unsigned long long)reads, (unsigned long long)again);
#ifndef VELLUM_WAIT
    must(reads <= AHEAD_WRITERS * pages / 50 * 51, "pages were read twice");
    must(again <= AHEAD_WRITERS / 2, "pages were not there when they were needed");
#endif
}

static void what_is_read_ahead_stays_until_its_turn(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig_open_on(&rig, medium);
    tree_job_fill(&rig, "big", 60000, 40);
    read_ahead_for(&rig, replace_entry, 1);
    read_ahead_for(&rig, replace_two, 2);
    rig_end(&rig, medium);
}

/* ---- walks ---- */

#define WALK_STEP 40u

static enum store_result walk_on(struct store_txn *txn, struct tree_job *job,
                                 struct store_tree *tree)
{
    struct store_cursor cursor;
    struct store_entry entry;
    enum store_result result = store_tree_seek_rank(tree, job->found, &cursor);
    for (uint32_t i = 0; result == STORE_OK && i < WALK_STEP; i++) {
        result = store_tree_get(&cursor, &entry);
        if (result == STORE_OK)
            result = store_tree_next(&cursor);
    }
    if (result == STORE_OK) {
        job->found += WALK_STEP;
        return store_step(txn);
    }
    return result == STORE_ABSENT ? STORE_OK : result;
}

/* With a cache of half the tree's size, no step may hold more than its own pages, or it would have
 * to go on in place. */
static void a_walk_in_steps_holds_up_nobody(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig_open_on(&rig, medium);
    tree_job_fill(&rig, "big", 30000, 40);
    rig_reopen(&rig, medium);
    struct tree_job job = {.act = walk_on};
    must(tree_job_do(&rig, "big", &job) == STORE_OK, "walking: %d", (int)job.result);
    must(job.found == 30000 / WALK_STEP * WALK_STEP, "%llu entries", (unsigned long long)job.found);
    struct store_stats stats;
    store_stats(rig.store, &stats);
#ifndef VELLUM_WAIT
    must(stats.exclusive_runs == 0, "%llu runs in place", (unsigned long long)stats.exclusive_runs);
#endif
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_access_costs_the_height_and_one_more),
        cmocka_unit_test(who_waits_has_its_pages_read),
        cmocka_unit_test(what_is_read_ahead_stays_until_its_turn),
        cmocka_unit_test(a_walk_in_steps_holds_up_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
