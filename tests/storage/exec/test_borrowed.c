/* What a run has read from pages and gives to the store again: the pages may be gone when the
 * commit comes, or even before, and something else may stand in their frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/txn/engine.h"
#include "tests/storage/fault_disk.h"

#define SOURCE "source"
#define SOURCE_BYTES 1000u
#define LONG_BYTES 900000u /* written a part at a time, so that the commit waits */
#define TRIES 6u /* the test build pins a page now and then, and one that is pinned cannot go */

/* ---- pages that go ---- */

/* Free frames are written over; what went last is used again last. */
static void spoil(struct arena *arena)
{
    uint32_t taken[512], count = 0, more = 16;
    while (count < 512 && (arena->free_list || more-- > 0))
        taken[count++] = arena_take(arena, ARENA_INSTEAD);
    for (uint32_t i = 0; i < count; i++) {
        memset(arena_memory(arena, taken[i]), 0xdb, PAGE_SIZE);
        arena_give(arena, taken[i]);
    }
}

/* All that can go, goes, and what was in it is written over. */
static void take_pages(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->store->partition_count; i++) {
        struct page_file *file = &rig->store->partitions[i].file;
        pthread_mutex_lock(&file->lock);
        while (page_file_evict(file)) {
        }
        pthread_mutex_unlock(&file->lock);
    }
    spoil(&rig->store->cache.arena);
}

/* Nodes of trees alone. */
static void take_nodes(struct rig *rig)
{
    struct page_file *file = &rig->store->partitions[0].file;
    pthread_mutex_lock(&file->lock);
    for (uint32_t page = 0; page < file->segment_count * SEGMENT_PAGES; page++) {
        uint32_t number = file->table[page];
        if (number && page_file_class_of(file, page) == FORMAT_SLAB_CLASSES &&
            arena_frame(file->arena, number)->refs == 0)
            page_file_drop(file, page);
    }
    pthread_mutex_unlock(&file->lock);
    spoil(&rig->store->cache.arena);
}

/* ---- a request that does something with what is at SOURCE ---- */

struct job {
    struct store_request request;
    struct store_key keys[4]; /* SOURCE, "long", and two more */
    enum store_result (*use)(struct job *job, struct store_txn *txn, struct store_item *source);
    struct rig *rig;
    uint32_t runs;
    bool keeps_pages; /* otherwise they go whenever it waits */
    bool finished;
    enum store_result result;
};

static enum store_result run(struct store_txn *txn, struct store_request *request)
{
    struct job *job = (struct job *)request;
    struct store_item source;
    job->runs++;
    enum store_result result = store_get(txn, &job->keys[0], &source);
    return result == STORE_OK ? job->use(job, txn, &source) : result;
}

static void done(struct store_request *request, enum store_result result)
{
    struct job *job = (struct job *)request;
    job->result = result;
    job->finished = true;
}

static void run_job(struct job *job)
{
    job->finished = false;
    enum store_result result = store_execute(job->rig->workers[0], &job->request);
    if (result != STORE_WAIT)
        done(&job->request, result);
    while (!job->finished) {
        if (!job->keeps_pages)
            take_pages(job->rig);
        rig_round(job->rig);
    }
    must(job->result == STORE_OK, "it ends with %d: %s", job->result, job->rig->last_warning);
}

static void declare(struct job *job, const char *third, const char *fourth, uint32_t fourth_len)
{
    struct store *store = job->rig->store;
    store_key(store, &job->keys[0], 0, SOURCE, strlen(SOURCE), STORE_EXCLUSIVE);
    store_key(store, &job->keys[1], 0, "long", 4, STORE_EXCLUSIVE);
    store_key(store, &job->keys[2], 0, third, strlen(third), STORE_EXCLUSIVE);
    store_key(store, &job->keys[3], 0, fourth, fourth_len, STORE_EXCLUSIVE);
    job->request = (struct store_request){.run = run, .done = done, .keys = job->keys};
    job->request.key_count = 4;
}

static struct blob *source_bytes(void)
{
    struct rng rng = {7};
    return blob_random(&rng, SOURCE_BYTES);
}

static enum store_result put_long(struct store_txn *txn, const struct job *job)
{
    char *bytes = store_alloc(txn, LONG_BYTES);
    must(bytes, "out of memory");
    memset(bytes, 'l', LONG_BYTES);
    return store_put(txn, &job->keys[1], 0, bytes, LONG_BYTES, STORE_NO_EXPIRY);
}

/* ---- what can be done with bytes ---- */

static enum store_result put(struct job *job, struct store_txn *txn, struct store_item *source)
{
    enum store_result result =
        store_put(txn, &job->keys[2], 0, source->bytes, source->length, STORE_NO_EXPIRY);
    return result == STORE_OK ? put_long(txn, job) : result;
}

static enum store_result patch(struct job *job, struct store_txn *txn, struct store_item *source)
{
    struct store_item item;
    enum store_result result = put_long(txn, job);
    if (result == STORE_OK)
        result = store_get(txn, &job->keys[1], &item);
    return result == STORE_OK ? store_patch(txn, &job->keys[1], &item, LONG_BYTES - 5000,
                                            source->bytes, source->length)
                              : result;
}

static enum store_result name(struct job *job, struct store_txn *txn, struct store_item *source)
{
    struct store_key key;
    store_key(job->rig->store, &key, 0, source->bytes, source->length, STORE_EXCLUSIVE);
    enum store_result result = store_put(txn, &key, 0, "named", 5, STORE_NO_EXPIRY);
    return result == STORE_OK ? put_long(txn, job) : result;
}

/* As entries of a tree, once in a node and once, since they are too long, beside it. */
static enum store_result plant(struct job *job, struct store_txn *txn, struct store_item *source)
{
    struct store_item item;
    struct store_tree *tree;
    struct store_cursor cursor;
    enum store_result result = store_tree_create(txn, &job->keys[2], 3, 1, STORE_NO_EXPIRY);
    if (result == STORE_OK)
        result = store_get(txn, &job->keys[2], &item);
    if (result == STORE_OK)
        result = store_tree_open(txn, &job->keys[2], &item, 0, &tree);
    if (result == STORE_OK)
        result = store_tree_seek_rank(tree, 0, &cursor);
    if (result == STORE_OK)
        result = store_tree_insert(&cursor, "b", 1, source->bytes, source->length);
    if (result == STORE_OK)
        result = store_tree_seek_rank(tree, 0, &cursor);
    if (result == STORE_OK)
        result = store_tree_insert(&cursor, "a", 1, source->bytes, 100);
    return result == STORE_OK ? put_long(txn, job) : result;
}

/* What is in the tree, compared with `source`. */
static enum store_result check_tree(struct job *job, struct store_txn *txn,
                                    struct store_item *source)
{
    struct store_item item;
    struct store_tree *tree;
    struct store_cursor cursor;
    enum store_result result = store_get(txn, &job->keys[2], &item);
    if (result == STORE_OK)
        result = store_tree_open(txn, &job->keys[2], &item, 0, &tree);
    if (result == STORE_OK)
        result = store_tree_seek_rank(tree, 0, &cursor);
    for (uint32_t i = 0; result == STORE_OK && i < 2; i++) {
        struct store_entry entry;
        result = store_tree_get(&cursor, &entry);
        uint64_t len = i == 0 ? 100 : source->length;
        if (result == STORE_OK)
            must(entry.value.length == len && memcmp(entry.value.bytes, source->bytes, len) == 0,
                 "entry %u is another", i);
        if (result == STORE_OK)
            result = store_tree_next(&cursor);
    }
    return result;
}

/* ---- the tests ---- */

static struct medium *new_store(struct rig *rig, uint64_t seed)
{
    struct medium *medium = medium_new(seed);
    rig_defaults(rig);
    rig->options.partition_count = 1;
    rig_open_on(rig, medium);
    must(do_put(rig, SOURCE, source_bytes()) == STORE_OK, "put");
    return medium;
}

/* So that no page is dirty; and the source's is in memory. */
static void start_again(struct rig *rig, struct medium *medium)
{
    enum store_result result;
    rig_reopen(rig, medium);
    blob_unref(do_get(rig, SOURCE, &result));
    must(result == STORE_OK, "get: %d", result);
}

static void must_be(struct rig *rig, const char *key, uint64_t offset, const struct blob *expected)
{
    enum store_result result;
    struct blob *found = do_get(rig, key, &result);
    must(found && found->len >= offset + expected->len &&
             memcmp(found->bytes + offset, expected->bytes, expected->len) == 0,
         "%s has other bytes", key);
    blob_unref(found);
}

static void what_is_written_is_what_was_read(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = new_store(&rig, 1);
    struct blob *source = source_bytes();
    struct job job = {.rig = &rig};
    for (uint32_t i = 0; i < TRIES; i++) {
        start_again(&rig, medium);
        declare(&job, "copy", "none", 4);
        job.use = put;
        run_job(&job);
        must_be(&rig, "copy", 0, source);
        start_again(&rig, medium);
        declare(&job, "copy", "none", 4);
        job.use = patch;
        run_job(&job);
        must_be(&rig, "long", LONG_BYTES - 5000, source);
    }
    blob_unref(source);
    rig_end(&rig, medium);
}

static void names_are_what_was_read(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = new_store(&rig, 2);
    struct blob *source = source_bytes();
    struct job job = {.rig = &rig};
    char text[SOURCE_BYTES + 1] = {0};
    memcpy(text, source->bytes, SOURCE_BYTES);
    for (uint32_t i = 0; i < SOURCE_BYTES; i++)
        if (!text[i])
            text[i] = 'x';
    must(do_set(&rig, SOURCE, text) == STORE_OK, "set");
    for (uint32_t i = 0; i < TRIES; i++) {
        start_again(&rig, medium);
        declare(&job, "none", text, SOURCE_BYTES);
        job.use = name;
        run_job(&job);
        must(has_value(&rig, text, "named"), "it has another name");
        must(do_delete(&rig, text) == STORE_OK, "delete");
    }
    blob_unref(source);
    rig_end(&rig, medium);
}

static void entries_are_what_was_read(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = new_store(&rig, 3);
    struct job job = {.rig = &rig};
    for (uint32_t i = 0; i < TRIES; i++) {
        start_again(&rig, medium);
        declare(&job, "tree", "none", 4);
        job.use = plant;
        run_job(&job);
        job.use = check_tree;
        run_job(&job);
    }
    rig_end(&rig, medium);
}

/* ---- within a run ---- */

static enum store_result look_twice(struct job *job, struct store_txn *txn,
                                    struct store_item *source)
{
    uint64_t length = source->length;
    char *before = store_alloc(txn, length);
    must(before, "out of memory");
    memcpy(before, source->bytes, length);
    source->bytes = before;
    enum store_result result = check_tree(job, txn, source);
    if (result != STORE_OK || job->runs > 2 * TRIES)
        return result;
    must(store_pause(txn, false), "out of memory");
    take_nodes(job->rig);
    store_go_on(txn);
    return check_tree(job, txn, source);
}

static void nodes_are_looked_up_again_after_a_pause(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = new_store(&rig, 4);
    struct job job = {.rig = &rig};
    declare(&job, "tree", "none", 4);
    job.use = plant;
    run_job(&job);
    for (uint32_t i = 0; i < TRIES; i++) {
        start_again(&rig, medium);
        declare(&job, "tree", "none", 4);
        job.use = check_tree;
        run_job(&job);
        job.use = look_twice;
        job.runs = 0;
        run_job(&job);
    }
    rig_end(&rig, medium);
}

#define KEYS 1200u

static uint32_t resident(const struct page_file *file, const uint32_t *before)
{
    uint32_t count = 0;
    for (uint32_t page = 0; page < file->segment_count * SEGMENT_PAGES; page++)
        count += file->table[page] && (!before || before[page] == file->table[page]);
    return count;
}

/* A fresh node needs a fresh segment, and that a frame. */
static enum store_result plant_apart(struct job *job, struct store_txn *txn,
                                     struct store_item *source)
{
    struct page_file *file = &job->rig->store->partitions[0].file;
    uint32_t before = resident(file, NULL);
    uint32_t *table = malloc(file->segment_count * SEGMENT_PAGES * sizeof *table);
    must(table, "out of memory");
    memcpy(table, file->table, file->segment_count * SEGMENT_PAGES * sizeof *table);
    enum store_result result = plant(job, txn, source);
    if (result == STORE_OK)
        must(resident(file, table) == before, "%u pages have gone", before - resident(file, table));
    free(table);
    return result;
}

static void pages_stay_while_a_run_adds_others(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = new_store(&rig, 5);
    struct job job = {.rig = &rig, .keeps_pages = true};
    char key[16];
    for (uint32_t i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "key-%u", i);
        must(do_put(&rig, key, source_bytes()) == STORE_OK, "put");
    }
    start_again(&rig, medium);
    for (uint32_t i = 0; i < KEYS; i++) {
        enum store_result result;
        snprintf(key, sizeof key, "key-%u", i);
        blob_unref(do_get(&rig, key, &result));
    }
    must(atomic_load(&rig.store->cache.arena.used) >= atomic_load(&rig.store->cache.arena.limit),
         "the cache is not full");
    declare(&job, "tree", "none", 4);
    job.use = plant_apart;
    run_job(&job);
    job.use = check_tree;
    run_job(&job);
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_what_was_read),
        cmocka_unit_test(names_are_what_was_read),
        cmocka_unit_test(entries_are_what_was_read),
        cmocka_unit_test(nodes_are_looked_up_again_after_a_pause),
        cmocka_unit_test(pages_stay_while_a_run_adds_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
