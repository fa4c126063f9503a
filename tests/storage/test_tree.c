/* Large collections: random operations against a plain model, with the cache of 256 pages, closed
 * and opened again; the power cut in the middle of everything; how many pages an access costs; what
 * is given up comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* ---- one collection, by hand ---- */

struct job;
typedef enum store_result act_fn(struct store_txn *txn, struct job *job, struct store_tree *tree);

struct job {
    struct store_request request; /* first */
    struct store_key keys[2];
    uint32_t from, count; /* entries by number */
    uint32_t value_len;
    uint64_t found;
    act_fn *act;
    bool finished;
    enum store_result result;
};

static void job_done(struct store_request *request, enum store_result result)
{
    struct job *job = (struct job *)request;
    job->finished = true;
    job->result = result;
}

static enum store_result job_run(struct store_txn *txn, struct store_request *request)
{
    struct job *job = (struct job *)request;
    struct store_item item;
    struct store_tree *tree;
    enum store_result result = store_get(txn, &job->keys[0], &item);
    if (result == STORE_ABSENT) {
        result = store_tree_create(txn, &job->keys[0], 7, 1, STORE_NO_EXPIRY);
        if (result == STORE_OK)
            result = store_get(txn, &job->keys[0], &item);
    }
    if (result == STORE_OK && job->act)
        result = store_tree_open(txn, &job->keys[0], &item, 0, &tree);
    return result == STORE_OK && job->act ? job->act(txn, job, tree) : result;
}

static enum store_result do_job(struct rig *rig, const char *key, struct job *job)
{
    store_key(rig->store, &job->keys[0], 0, key, strlen(key), STORE_EXCLUSIVE);
    job->request.run = job->request.run ? job->request.run : job_run;
    job->request.done = job_done;
    job->request.keys = job->keys;
    job->request.key_count = job->request.key_count ? job->request.key_count : 1;
    job->request.now_ms = 1;
    job->finished = false;
    enum store_result result = store_execute(rig->workers[0], &job->request);
    if (result != STORE_WAIT)
        job_done(&job->request, result);
    while (!job->finished)
        rig_round(rig);
    return job->result;
}

static uint32_t name_entry(uint32_t number, char name[16])
{
    return (uint32_t)snprintf(name, 16, "%08x", number * 2654435761u);
}

static enum store_result insert_entries(struct store_txn *txn, struct job *job,
                                        struct store_tree *tree)
{
    char *value = store_alloc(txn, job->value_len + 1);
    if (!value)
        return STORE_NO_MEMORY;
    memset(value, 'v', job->value_len);
    enum store_result result = STORE_OK;
    for (uint32_t i = job->from; i < job->from + job->count && result == STORE_OK; i++) {
        char name[16];
        struct store_cursor cursor;
        uint32_t len = name_entry(i, name);
        result = store_tree_seek(tree, name, len, &cursor);
        if (result == STORE_OK)
            result = store_tree_insert(&cursor, name, len, value, job->value_len);
    }
    return result;
}

static void fill(struct rig *rig, const char *key, uint32_t count, uint32_t value_len)
{
    for (uint32_t i = 0; i < count; i += 10) {
        struct job job = {.act = insert_entries, .from = i, .count = 10, .value_len = value_len};
        must(do_job(rig, key, &job) == STORE_OK, "inserting: %d", (int)job.result);
    }
}

static enum store_result look_up(struct store_txn *txn, struct job *job, struct store_tree *tree)
{
    char name[16];
    struct store_cursor cursor;
    struct store_entry entry;
    uint32_t len = name_entry(job->from, name);
    (void)txn;
    enum store_result result = store_tree_seek(tree, name, len, &cursor);
    if (result == STORE_OK)
        result = store_tree_get(&cursor, &entry);
    if (result == STORE_OK)
        must(entry.key_len == len && memcmp(entry.key, name, len) == 0, "entry %u is not there",
             job->from);
    job->found = cursor.depth;
    return result;
}

static enum store_result look_up_rank(struct store_txn *txn, struct job *job,
                                      struct store_tree *tree)
{
    struct store_cursor cursor;
    struct store_entry entry;
    (void)txn;
    enum store_result result = store_tree_seek_rank(tree, job->from, &cursor);
    if (result == STORE_OK)
        result = store_tree_get(&cursor, &entry);
    job->found = cursor.depth;
    return result;
}

static void an_access_costs_the_height_and_one_more(void **state)
{
    (void)state;
    struct medium *medium = medium_new(1);
    struct rig rig;
    rig_defaults(&rig);
    rig_open_on(&rig, medium);
    fill(&rig, "big", 30000, 40);
    rig_close_well(&rig);
    for (uint32_t i = 0; i < 20; i++) {
        struct store_stats before, after;
        rig_open_on(&rig, medium);
        store_stats(rig.store, &before);
        struct job job = {.act = i % 2 ? look_up : look_up_rank, .from = i * 1499};
        must(do_job(&rig, "big", &job) == STORE_OK, "looking up: %d", (int)job.result);
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
#define QUEUES 6u /* what a scout saves depends on how fast its reads are: many of them say it */

static enum store_result replace_entry(struct store_txn *txn, struct job *job,
                                       struct store_tree *tree)
{
    char name[16];
    struct store_cursor cursor;
    (void)txn;
    enum store_result result = store_tree_find(tree, name, name_entry(job->from, name), &cursor);
    return result == STORE_OK ? store_tree_replace(&cursor, "fresh", 5) : result;
}

static void start_writer(struct rig *rig, struct job *job, act_fn *act, uint32_t entry,
                         bool may_scout)
{
    *job = (struct job){.act = act, .from = entry};
    job->request = (struct store_request){.run = job_run,
                                          .done = job_done,
                                          .keys = job->keys,
                                          .key_count = 1,
                                          .now_ms = 1,
                                          .may_scout = may_scout};
    store_key(rig->store, &job->keys[0], 0, "big", 3, STORE_EXCLUSIVE);
    enum store_result result = store_execute(rig->workers[0], &job->request);
    if (result != STORE_WAIT)
        job_done(&job->request, result);
}

/* And one far from it: which page that needs shows when the first is there. */
static enum store_result replace_two(struct store_txn *txn, struct job *job,
                                     struct store_tree *tree)
{
    struct job other = {.from = job->from + 5 * AHEAD_WRITERS};
    enum store_result result = replace_entry(txn, job, tree);
    return result == STORE_OK ? replace_entry(txn, &other, tree) : result;
}

/* Writers of one collection, each of other leaves, `depth` at a time: how often a run had to be
 * thrown away. */
static uint64_t queue_writers(struct rig *rig, act_fn *act, uint32_t from, uint32_t count,
                              uint32_t depth, bool may_scout)
{
    struct store_stats before, after;
    struct job jobs[QUEUED_MOST] = {0};
    store_stats(rig->store, &before);
    for (uint32_t i = 0; i < depth; i++)
        start_writer(rig, &jobs[i], act, from + i, may_scout);
    for (uint32_t started = depth, finished = 0; finished < count;) {
        struct job *job = &jobs[finished % depth];
        if (!job->finished) {
            rig_round(rig);
            continue;
        }
        must(job->result == STORE_OK, "replacing: %d", (int)job->result);
        finished++;
        if (started < count)
            start_writer(rig, job, act, from + started++, may_scout);
    }
    store_stats(rig->store, &after);
    return after.reruns - before.reruns;
}

static void who_waits_has_its_pages_read(void **state)
{
    (void)state;
    struct medium *medium = medium_new(1);
    struct rig rig;
    rig_defaults(&rig);
    rig_open_on(&rig, medium);
    fill(&rig, "big", 30000, 40);
    rig_close_well(&rig);
    rig_open_on(&rig, medium);
    for (uint32_t i = 0; i < 16; i++) { /* the inner nodes are there then */
        struct job job = {.act = look_up, .from = i};
        must(do_job(&rig, "big", &job) == STORE_OK, "looking up: %d", (int)job.result);
    }
    uint64_t alone = 0, together = 0;
    for (uint32_t i = 0; i < QUEUES; i++) {
        alone += queue_writers(&rig, replace_entry, 1000 + 1000 * i, QUEUED, QUEUED, false);
        together += queue_writers(&rig, replace_entry, 10000 + 1000 * i, QUEUED, QUEUED, true);
    }
    fprintf(stderr, "# %llu runs again, with scouts %llu\n", (unsigned long long)alone,
            (unsigned long long)together);
#ifndef VELLUM_WAIT
    must(alone > QUEUES * QUEUED / 2, "most leaves were there before");
    must(together <= alone / 3 * 2, "the scouts were of no use");
#endif
    rig_close_well(&rig);
    medium_free(medium);
}

/* `pages`: that each of them needs. In a cache whose pages are all in use the hand of the eviction
 * comes to the newest at last. */
static void read_ahead_for(struct rig *rig, act_fn *act, uint32_t pages)
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
    struct medium *medium = medium_new(1);
    struct rig rig;
    rig_defaults(&rig);
    rig_open_on(&rig, medium);
    fill(&rig, "big", 60000, 40);
    read_ahead_for(&rig, replace_entry, 1);
    read_ahead_for(&rig, replace_two, 2);
    rig_close_well(&rig);
    medium_free(medium);
}

static uint32_t count_readable(struct rig *rig, const char *key, uint32_t count)
{
    uint32_t readable = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct job job = {.act = look_up, .from = i};
        enum store_result result = do_job(rig, key, &job);
        must(result == STORE_OK || result == STORE_DAMAGED, "looking up: %d", (int)result);
        readable += result == STORE_OK;
    }
    return readable;
}

/* ---- walks ---- */

#define WALK_STEP 40u

static enum store_result walk_on(struct store_txn *txn, struct job *job, struct store_tree *tree)
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
    struct medium *medium = medium_new(1);
    struct rig rig;
    rig_defaults(&rig);
    rig_open_on(&rig, medium);
    fill(&rig, "big", 30000, 40);
    rig_close_well(&rig);
    rig_open_on(&rig, medium);
    struct job job = {.act = walk_on};
    must(do_job(&rig, "big", &job) == STORE_OK, "walking: %d", (int)job.result);
    must(job.found == 30000 / WALK_STEP * WALK_STEP, "%llu entries", (unsigned long long)job.found);
    struct store_stats stats;
    store_stats(rig.store, &stats);
#ifndef VELLUM_WAIT
    must(stats.exclusive_runs == 0, "%llu runs in place", (unsigned long long)stats.exclusive_runs);
#endif
    rig_close_well(&rig);
    medium_free(medium);
}

/* ---- space ---- */

static uint64_t slots_in_use(struct store *store)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < store->partition_count; i++) {
        struct space *space = &store->partitions[i].space;
        pthread_mutex_lock(&space->lock);
        for (uint32_t segment = 0; segment < space->segment_assigned; segment++) {
            uint32_t class = space->segment_class[segment];
            if (class)
                used +=
                    (SEGMENT_PAGES - 1) * format_class_slots(class) - space->segment_free[segment];
        }
        pthread_mutex_unlock(&space->lock);
    }
    return used;
}

static uint64_t runs_in_use(struct store *store)
{
    pthread_mutex_lock(&store->extents.lock);
    uint64_t used = space_used_runs(&store->extents, NULL);
    pthread_mutex_unlock(&store->extents.lock);
    return used;
}

/* Until only so many slots are in use, and no extents. */
static void wait_for_space(struct rig *rig, uint64_t slots)
{
    for (uint32_t i = 0; i < 5000; i++) {
        if (slots_in_use(rig->store) == slots && runs_in_use(rig->store) == 0)
            return;
        rig_run(rig, 2);
    }
    must(false, "%llu slots and %llu runs are still in use",
         (unsigned long long)slots_in_use(rig->store), (unsigned long long)runs_in_use(rig->store));
}

static enum store_result flush_run(struct store_txn *txn, struct store_request *request)
{
    (void)request;
    store_flush_db(txn, 0);
    return STORE_OK;
}

static void flush(struct rig *rig)
{
    struct job job = {.request = {.run = flush_run, .scope = STORE_SCOPE_ALL}};
    must(do_job(rig, "", &job) == STORE_OK, "flushing: %d", (int)job.result);
}

static enum store_result rename_run(struct store_txn *txn, struct store_request *request)
{
    struct job *job = (struct job *)request;
    struct store_item item;
    enum store_result result = store_get(txn, &job->keys[0], &item);
    return result == STORE_OK ? store_rename(txn, &job->keys[0], &item, &job->keys[1]) : result;
}

static void rename_key(struct rig *rig, const char *from, const char *to)
{
    struct job job = {.request = {.run = rename_run, .key_count = 2}};
    store_key(rig->store, &job.keys[1], 0, to, strlen(to), STORE_EXCLUSIVE);
    must(do_job(rig, from, &job) == STORE_OK, "renaming: %d", (int)job.result);
}

/* Values in nodes, values outside, values in extents; under a name in another partition. */
static void fill_all(struct rig *rig)
{
    fill(rig, "small", 3000, 30);
    fill(rig, "middle", 300, 1500);
    fill(rig, "large", 50, 10000);
    rename_key(rig, "middle", "mittel");
}

static void what_is_given_up_comes_back(void **state)
{
    (void)state;
    struct medium *medium = medium_new(1);
    struct rig rig;
    rig_defaults(&rig);
    rig_open_on(&rig, medium);
    fill_all(&rig);
    must(do_delete(&rig, "small") == STORE_OK && do_delete(&rig, "mittel") == STORE_OK &&
             do_delete(&rig, "large") == STORE_OK,
         "deleting");
    wait_for_space(&rig, 0);
    fill_all(&rig);
    flush(&rig);
    wait_for_space(&rig, 0);
    rig_close_well(&rig);
    rig_open_on(&rig, medium);
    wait_for_space(&rig, 0);
    rig_close_well(&rig);
    medium_free(medium);
}

static void what_others_hold_survives_a_flush_beside_it(void **state)
{
    (void)state;
    struct medium *medium = medium_new(1);
    struct rig rig;
    rig_defaults(&rig);
    rig_open_on(&rig, medium);
    struct call *call = call_new();
    struct step *step = call_step(call, STEP_PUT, call_key(call, 1, 0, "other", 5));
    step->blob = blob_text("stays");
    call_start(rig.workers[0], call);
    call_wait(&rig, call);
    call_free(call);
    fill_all(&rig);
    flush(&rig);
    wait_for_space(&rig, 1);
    rig_close_well(&rig);
    medium_free(medium);
}

/* The store stops before anything was taken apart: the next one finds what is of no use. */
static void a_stop_in_between_loses_no_space(void **state)
{
    (void)state;
    struct medium *medium = medium_new(1);
    struct rig rig;
    rig_defaults(&rig);
    rig_open_on(&rig, medium);
    fill_all(&rig);
    must(do_delete(&rig, "small") == STORE_OK && do_delete(&rig, "mittel") == STORE_OK &&
             do_delete(&rig, "large") == STORE_OK,
         "deleting");
    medium_cut_now(medium);
    must(rig_close(&rig) != STORE_OK, "closing without power");
    rig_open_on(&rig, medium);
    wait_for_space(&rig, 0);
    rig_close_well(&rig);
    medium_free(medium);
}

/* The page of a deleted item becomes a node, whose collection is given up before the page was ever
 * written: it must not be left as it was. */
static void a_given_up_node_brings_nothing_back(void **state)
{
    (void)state;
    struct medium *medium = medium_new(1);
    struct rig rig;
    rig_defaults(&rig);
    rig.options.partition_count = 1;
    rig_open_on(&rig, medium);
    must(do_put(&rig, "old", blob_new(3000)) == STORE_OK, "setting");
    rig_close_well(&rig);
    rig_open_on(&rig, medium);
    must(do_delete(&rig, "old") == STORE_OK, "deleting");
    fill(&rig, "tree", 100, 30);
    must(do_delete(&rig, "tree") == STORE_OK, "deleting");
    wait_for_space(&rig, 0);
    rig_close_well(&rig);
    rig_open_on(&rig, medium);
    must(has_value(&rig, "old", NULL), "a deleted key is back");
    rig_close_well(&rig);
    medium_free(medium);
}

static enum store_result delete_run(struct store_txn *txn, struct store_request *request)
{
    return store_delete(txn, &((struct job *)request)->keys[0]);
}

/* A flush of everything frees all pages at once; who was about to free some must not. */
static void a_flush_overtakes_a_deletion(void **state)
{
    (void)state;
    struct medium *medium = medium_new(1);
    struct rig rig;
    struct store_stats stats;
    rig_defaults(&rig);
    rig.options.partition_count = 1;
    rig.options.memory_bytes = 64 << 20;
    rig_open_on(&rig, medium);
    fill(&rig, "first", 3000, 30);
    must(do_set(&rig, "key", "value") == STORE_OK, "setting");
    struct job job = {.request = {.run = delete_run}}; /* without a round, unlike do_delete */
    must(do_job(&rig, "first", &job) == STORE_OK, "deleting");
    flush(&rig);
    fill(&rig, "second", 3000, 30);
    rig_run(&rig, 20);
    fill(&rig, "third", 20000, 30); /* all that is left of the segment, and what looks free */
    must(count_readable(&rig, "second", 3000) == 3000, "entries are lost");
    must(count_readable(&rig, "third", 20000) == 20000, "entries are lost");
    uint64_t used = slots_in_use(rig.store);
    rig_close_well(&rig);
    rig_open_on(&rig, medium);
    must(count_readable(&rig, "second", 3000) == 3000, "entries are lost");
    must(slots_in_use(rig.store) == used, "%llu slots were in use, now %llu are",
         (unsigned long long)used, (unsigned long long)slots_in_use(rig.store));
    store_stats(rig.store, &stats);
    must(stats.damaged_items == 0, "damage: %s", rig.last_warning);
    rig_close_well(&rig);
    medium_free(medium);
}

static enum store_result remove_some(struct store_txn *txn, struct job *job,
                                     struct store_tree *tree)
{
    enum store_result result = STORE_OK;
    struct rng rng = {job->from};
    (void)txn;
    for (uint32_t i = 0; i < job->count && store_tree_count(tree) && result == STORE_OK; i++) {
        struct store_cursor cursor;
        uint64_t rank = rng_below(&rng, (uint32_t)store_tree_count(tree));
        result = store_tree_seek_rank(tree, job->value_len ? 0 : rank, &cursor);
        if (result == STORE_OK)
            result = store_tree_remove(&cursor);
    }
    job->found = store_tree_count(tree);
    return result;
}

static void removing_gives_nodes_back(void **state)
{
    (void)state;
    struct medium *medium = medium_new(1);
    struct rig rig;
    rig_defaults(&rig);
    rig_open_on(&rig, medium);
    for (uint32_t from_front = 0; from_front < 2; from_front++) {
        fill(&rig, "tree", 20000, 30);
        uint64_t full = slots_in_use(rig.store);
        for (uint64_t left = 20000; left > 0;) {
            struct job job = {
                .act = remove_some, .from = (uint32_t)left, .count = 10, .value_len = from_front};
            must(do_job(&rig, "tree", &job) == STORE_OK, "removing: %d", (int)job.result);
            left = job.found;
            if (left == 2000)
                must(slots_in_use(rig.store) < full / 3, "a tenth of the entries keep %llu of %llu",
                     (unsigned long long)slots_in_use(rig.store), (unsigned long long)full);
        }
        must(slots_in_use(rig.store) == 1, "an empty tree has %llu nodes",
             (unsigned long long)slots_in_use(rig.store) - 1);
    }
    rig_close_well(&rig);
    medium_free(medium);
}

/* ---- damage ---- */

static bool is_leaf(const struct format_node *node)
{
    return node->item.database == FORMAT_HIDDEN && node->item.flags & FORMAT_NODE &&
           node->level == 0;
}

static void a_damaged_node_is_noticed(void **state)
{
    (void)state;
    struct medium *medium = medium_new(1);
    struct rig rig;
    rig_defaults(&rig);
    rig.options.partition_count = 1;
    rig_open_on(&rig, medium);
    fill(&rig, "hurt", 2000, 30);
    must(do_set(&rig, "whole", "value") == STORE_OK, "setting");
    rig_close_well(&rig);
    uint64_t at = 0, size = medium_size(medium, "slabs-00");
    char page[PAGE_SIZE] __attribute__((aligned(8)));
    do {
        must(at < size, "no leaf is found");
        medium_peek(medium, "slabs-00", at, page, PAGE_SIZE);
        at += PAGE_SIZE;
    } while (!is_leaf((const struct format_node *)page));
    page[PAGE_SIZE - 3] ^= 1;
    medium_poke(medium, "slabs-00", at - PAGE_SIZE, page, PAGE_SIZE);
    rig.options.scans = true;
    rig_open_on(&rig, medium);
    struct store_stats stats;
    store_stats(rig.store, &stats);
    must(stats.damaged_items == 1, "%llu items are damaged",
         (unsigned long long)stats.damaged_items);
    uint32_t readable = count_readable(&rig, "hurt", 2000);
    must(readable < 2000 && readable > 1800, "%u of 2000 can be read", readable);
    must(has_value(&rig, "whole", "value"), "another key is touched");
    must(do_delete(&rig, "hurt") == STORE_OK, "deleting");
    wait_for_space(&rig, 1);
    rig_close_well(&rig);
    medium_free(medium);
}

/* ---- a full disk ---- */

static void a_full_disk_takes_removals(void **state)
{
    (void)state;
    struct medium *medium = medium_new(1);
    struct rig rig;
    rig_defaults(&rig);
    rig.options.max_store_bytes = 30u << 20;
    rig_open_on(&rig, medium);
    uint32_t i = 0;
    struct job job;
    do {
        job = (struct job){.act = insert_entries, .from = i, .count = 10, .value_len = 500};
        i += 10;
    } while (do_job(&rig, "tree", &job) == STORE_OK && i < 200000);
    must(job.result == STORE_FULL, "inserting ends with %d", (int)job.result);
    for (uint64_t left = i; left > 100;) {
        job = (struct job){.act = remove_some, .from = 1, .count = 10};
        must(do_job(&rig, "tree", &job) == STORE_OK, "removing: %d", (int)job.result);
        left = job.found;
    }
    fill(&rig, "next", 5000, 500);
    must(do_delete(&rig, "tree") == STORE_OK && do_delete(&rig, "next") == STORE_OK, "deleting");
    wait_for_space(&rig, 0);
    rig_close_well(&rig);
    medium_free(medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collections_hold_what_was_put),
        cmocka_unit_test(the_power_may_go_at_any_moment),
        cmocka_unit_test(an_access_costs_the_height_and_one_more),
        cmocka_unit_test(who_waits_has_its_pages_read),
        cmocka_unit_test(what_is_read_ahead_stays_until_its_turn),
        cmocka_unit_test(a_walk_in_steps_holds_up_nobody),
        cmocka_unit_test(what_is_given_up_comes_back),
        cmocka_unit_test(what_others_hold_survives_a_flush_beside_it),
        cmocka_unit_test(a_stop_in_between_loses_no_space),
        cmocka_unit_test(a_given_up_node_brings_nothing_back),
        cmocka_unit_test(a_flush_overtakes_a_deletion),
        cmocka_unit_test(removing_gives_nodes_back),
        cmocka_unit_test(a_damaged_node_is_noticed),
        cmocka_unit_test(a_full_disk_takes_removals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
