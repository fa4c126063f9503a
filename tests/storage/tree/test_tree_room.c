/* The pages of large collections: what is given up comes back, whatever is in between, and nothing
 * else does; damaged ones; a full disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "storage/txn/engine.h"
#include "tests/storage/fault_disk.h"
#include "tests/storage/tree_job.h"

/* ---- space ---- */

static uint64_t slots_in_use(struct store *store)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < store->partition_count; i++) {
        struct page_file *file = &store->partitions[i].file;
        pthread_mutex_lock(&file->lock);
        for (uint32_t segment = 0; segment < file->segment_assigned; segment++) {
            uint32_t size_class = file->segment_class[segment];
            if (size_class)
                used += (SEGMENT_PAGES - 1) * format_class_slots(size_class) -
                        file->segment_free[segment];
        }
        pthread_mutex_unlock(&file->lock);
    }
    return used;
}

static uint64_t runs_in_use(struct store *store)
{
    pthread_mutex_lock(&store->extents.lock);
    uint64_t used = page_file_used_runs(&store->extents, NULL);
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
    struct tree_job job = {.request = {.run = flush_run, .scope = STORE_SCOPE_ALL}};
    must(tree_job_do(rig, "", &job) == STORE_OK, "flushing: %d", (int)job.result);
}

static enum store_result rename_run(struct store_txn *txn, struct store_request *request)
{
    struct tree_job *job = (struct tree_job *)request;
    struct store_item item;
    enum store_result result = store_get(txn, &job->keys[0], &item);
    return result == STORE_OK ? store_rename(txn, &job->keys[0], &item, &job->keys[1]) : result;
}

static void rename_key(struct rig *rig, const char *from, const char *to)
{
    struct tree_job job = {.request = {.run = rename_run, .key_count = 2}};
    store_key(rig->store, &job.keys[1], 0, to, strlen(to), STORE_EXCLUSIVE);
    must(tree_job_do(rig, from, &job) == STORE_OK, "renaming: %d", (int)job.result);
}

/* Values in nodes, values outside, values in extents; under a name in another partition. */
static void fill_all(struct rig *rig)
{
    tree_job_fill(rig, "small", 3000, 30);
    tree_job_fill(rig, "middle", 300, 1500);
    tree_job_fill(rig, "large", 50, 10000);
    rename_key(rig, "middle", "mittel");
}

static void what_is_given_up_comes_back(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig_open_on(&rig, medium);
    fill_all(&rig);
    must(do_delete(&rig, "small") == STORE_OK && do_delete(&rig, "mittel") == STORE_OK &&
             do_delete(&rig, "large") == STORE_OK,
         "deleting");
    wait_for_space(&rig, 0);
    fill_all(&rig);
    flush(&rig);
    wait_for_space(&rig, 0);
    rig_reopen(&rig, medium);
    wait_for_space(&rig, 0);
    rig_end(&rig, medium);
}

static void what_others_hold_survives_a_flush_beside_it(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
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
    rig_end(&rig, medium);
}

/* The store stops before anything was taken apart: the next one finds what is of no use. */
static void a_stop_in_between_loses_no_space(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig_open_on(&rig, medium);
    fill_all(&rig);
    must(do_delete(&rig, "small") == STORE_OK && do_delete(&rig, "mittel") == STORE_OK &&
             do_delete(&rig, "large") == STORE_OK,
         "deleting");
    medium_cut_now(medium);
    must(rig_close(&rig) != STORE_OK, "closing without power");
    rig_open_on(&rig, medium);
    wait_for_space(&rig, 0);
    rig_end(&rig, medium);
}

/* The page of a deleted item becomes a node, whose collection is given up before the page was ever
 * written: it must not be left as it was. */
static void a_given_up_node_brings_nothing_back(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig.options.partition_count = 1;
    rig_open_on(&rig, medium);
    must(do_put(&rig, "old", blob_new(3000)) == STORE_OK, "setting");
    rig_reopen(&rig, medium);
    must(do_delete(&rig, "old") == STORE_OK, "deleting");
    tree_job_fill(&rig, "tree", 100, 30);
    must(do_delete(&rig, "tree") == STORE_OK, "deleting");
    wait_for_space(&rig, 0);
    rig_reopen(&rig, medium);
    must(has_value(&rig, "old", NULL), "a deleted key is back");
    rig_end(&rig, medium);
}

static enum store_result delete_run(struct store_txn *txn, struct store_request *request)
{
    return store_delete(txn, &((struct tree_job *)request)->keys[0]);
}

/* A flush of everything frees all pages at once; a purge that was about to free some must not free
 * them again. */
static void a_flush_overtakes_a_deletion(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    struct store_stats stats;
    rig.options.partition_count = 1;
    rig.options.memory_bytes = 64 << 20;
    rig_open_on(&rig, medium);
    tree_job_fill(&rig, "first", 3000, 30);
    must(do_set(&rig, "key", "value") == STORE_OK, "setting");
    struct tree_job job = {.request = {.run = delete_run}}; /* without a round, unlike do_delete */
    must(tree_job_do(&rig, "first", &job) == STORE_OK, "deleting");
    flush(&rig);
    tree_job_fill(&rig, "second", 3000, 30);
    rig_run(&rig, 20);
    tree_job_fill(&rig, "third", 20000,
                  30); /* all that is left of the segment, and what looks free */
    must(tree_job_count_readable(&rig, "second", 3000) == 3000, "entries are lost");
    must(tree_job_count_readable(&rig, "third", 20000) == 20000, "entries are lost");
    uint64_t used = slots_in_use(rig.store);
    rig_reopen(&rig, medium);
    must(tree_job_count_readable(&rig, "second", 3000) == 3000, "entries are lost");
    must(slots_in_use(rig.store) == used, "%llu slots were in use, now %llu are",
         (unsigned long long)used, (unsigned long long)slots_in_use(rig.store));
    store_stats(rig.store, &stats);
    must(stats.damaged_items == 0, "damage: %s", rig.last_warning);
    rig_end(&rig, medium);
}

static enum store_result remove_some(struct store_txn *txn, struct tree_job *job,
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
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig_open_on(&rig, medium);
    for (uint32_t from_front = 0; from_front < 2; from_front++) {
        tree_job_fill(&rig, "tree", 20000, 30);
        uint64_t full = slots_in_use(rig.store);
        for (uint64_t left = 20000; left > 0;) {
            struct tree_job job = {
                .act = remove_some, .from = (uint32_t)left, .count = 10, .value_len = from_front};
            must(tree_job_do(&rig, "tree", &job) == STORE_OK, "removing: %d", (int)job.result);
            left = job.found;
            if (left == 2000)
                must(slots_in_use(rig.store) < full / 3, "a tenth of the entries keep %llu of %llu",
                     (unsigned long long)slots_in_use(rig.store), (unsigned long long)full);
        }
        must(slots_in_use(rig.store) == 1, "an empty tree has %llu nodes",
             (unsigned long long)slots_in_use(rig.store) - 1);
    }
    rig_end(&rig, medium);
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
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig.options.partition_count = 1;
    rig_open_on(&rig, medium);
    tree_job_fill(&rig, "hurt", 2000, 30);
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
    uint32_t readable = tree_job_count_readable(&rig, "hurt", 2000);
    must(readable < 2000 && readable > 1800, "%u of 2000 can be read", readable);
    must(has_value(&rig, "whole", "value"), "another key is touched");
    must(do_delete(&rig, "hurt") == STORE_OK, "deleting");
    wait_for_space(&rig, 1);
    rig_end(&rig, medium);
}

/* ---- a full disk ---- */

static void a_full_disk_takes_removals(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    rig.options.max_store_bytes = 30u << 20;
    rig_open_on(&rig, medium);
    uint32_t i = 0;
    struct tree_job job;
    do {
        job = (struct tree_job){.act = tree_job_insert, .from = i, .count = 10, .value_len = 500};
        i += 10;
    } while (tree_job_do(&rig, "tree", &job) == STORE_OK && i < 200000);
    must(job.result == STORE_FULL, "inserting ends with %d", (int)job.result);
    for (uint64_t left = i; left > 100;) {
        job = (struct tree_job){.act = remove_some, .from = 1, .count = 10};
        must(tree_job_do(&rig, "tree", &job) == STORE_OK, "removing: %d", (int)job.result);
        left = job.found;
    }
    tree_job_fill(&rig, "next", 5000, 500);
    must(do_delete(&rig, "tree") == STORE_OK && do_delete(&rig, "next") == STORE_OK, "deleting");
    wait_for_space(&rig, 0);
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
