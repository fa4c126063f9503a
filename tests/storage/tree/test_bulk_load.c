/* Collections built in steps: larger than the cache, invisible until they are finished, and gone
 * without a trace if they are abandoned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/txn/engine.h"
#include "tests/storage/fault_disk.h"

#define NAME "collection"
#define LEAK "leak"
#define STEP_ENTRIES 40u
#define VALUE_BYTES 700u
#define LONG_BYTES 3000u /* beside the nodes, at times */

/* A request that makes one. */
struct build {
    struct store_request request;
    struct store_key keys[2];
    struct store_bulk_load *bulk_load;
    uint32_t entries, planted;
    uint32_t fails_at; /* then it ends with an error; 0: it does not */
    bool flushes;      /* instead of putting it in the end, it flushes all; no value is long */
    uint64_t steps;
    bool finished;
    enum store_result result;
};

static struct blob *value_of(uint32_t i)
{
    struct rng rng = {i};
    return blob_random(&rng, i % 50 == 7 ? LONG_BYTES : VALUE_BYTES);
}

static enum store_result plant(struct store_txn *txn, struct build *build)
{
    for (uint32_t i = build->planted; i < build->planted + STEP_ENTRIES; i++) {
        struct store_tree *tree;
        struct store_cursor cursor;
        char key[16];
        snprintf(key, sizeof key, "%08u", i);
        enum store_result result = store_bulk_load_tree(txn, build->bulk_load, i % 2, &tree);
        if (result == STORE_OK)
            result = store_tree_seek_rank(tree, store_tree_count(tree), &cursor);
        struct blob *value = value_of(build->flushes ? 0 : i);
        char *bytes = store_alloc(txn, value->len);
        must(bytes, "out of memory");
        uint64_t len = value->len;
        memcpy(bytes, value->bytes, len);
        blob_unref(value);
        if (result == STORE_OK)
            result = store_tree_insert(&cursor, key, 8, bytes, len);
        if (result != STORE_OK)
            return result;
    }
    return store_bulk_load_step(txn, build->bulk_load);
}

static enum store_result run(struct store_txn *txn, struct store_request *request)
{
    struct build *build = (struct build *)request;
    enum store_result result = STORE_OK;
    if (!build->bulk_load)
        result = store_bulk_load_begin(txn, &build->keys[0], 2, &build->bulk_load);
    if (result != STORE_OK)
        return result;
    if (store_bulk_load_steps(build->bulk_load) > build->steps) {
        build->planted += STEP_ENTRIES;
        build->steps++;
    }
    if (build->fails_at && build->planted >= build->fails_at)
        return STORE_INVALID;
    if (build->planted < build->entries) {
        result = store_put(txn, &build->keys[1], 0, "x", 1, STORE_NO_EXPIRY);
        return result == STORE_OK ? plant(txn, build) : result;
    }
    if (build->flushes) {
        store_flush_all(txn);
        return STORE_OK;
    }
    return store_put_bulk_load(txn, &build->keys[0], 5, build->bulk_load, STORE_NO_EXPIRY);
}

static void done(struct store_request *request, enum store_result result)
{
    struct build *build = (struct build *)request;
    build->result = result;
    build->finished = true;
}

static struct build *build_start(struct rig *rig, uint32_t entries, uint32_t fails_at, bool flushes)
{
    struct build *build = calloc(1, sizeof *build);
    must(build, "out of memory");
    build->entries = entries;
    build->fails_at = fails_at;
    build->flushes = flushes;
    store_key(rig->store, &build->keys[0], 0, NAME, strlen(NAME), STORE_EXCLUSIVE);
    store_key(rig->store, &build->keys[1], 0, LEAK, strlen(LEAK), STORE_EXCLUSIVE);
    build->request = (struct store_request){
        .run = run,
        .done = done,
        .keys = build->keys,
        .key_count = flushes ? 0 : 2,
        .scope = flushes ? STORE_SCOPE_ALL : STORE_SCOPE_KEYS,
    };
    enum store_result result = store_execute(rig->workers[0], &build->request);
    if (result != STORE_WAIT)
        done(&build->request, result);
    return build;
}

static enum store_result build_end(struct rig *rig, struct build *build)
{
    while (!build->finished)
        rig_round(rig);
    enum store_result result = build->result;
    if (result == STORE_OK)
        rig_sync(rig, build->request.shown);
    store_bulk_load_end(build->bulk_load);
    free(build);
    return result;
}

static enum store_result make(struct rig *rig, uint32_t entries)
{
    return build_end(rig, build_start(rig, entries, 0, false));
}

/* ---- what there is ---- */

struct look {
    struct store_request request;
    struct store_key key;
    uint32_t entries; /* in the collection; 0: it is not there */
    bool finished;
};

static enum store_result count_entries(struct store_txn *txn, struct look *look,
                                       const struct store_item *item)
{
    for (uint32_t which = 0; which < 2; which++) {
        struct store_tree *tree;
        struct store_cursor cursor;
        enum store_result result = store_tree_open(txn, &look->key, item, which, &tree);
        if (result == STORE_OK)
            result = store_tree_seek_rank(tree, 0, &cursor);
        for (uint32_t i = which; result == STORE_OK; i += 2) {
            struct store_entry entry;
            const char *bytes;
            result = store_tree_get(&cursor, &entry);
            if (result == STORE_OK)
                result = store_load(txn, &entry.value, &bytes);
            if (result != STORE_OK)
                break;
            struct blob *value = value_of(i);
            must(entry.value.length == value->len && memcmp(bytes, value->bytes, value->len) == 0,
                 "entry %u is another", i);
            blob_unref(value);
            look->entries++;
            result = store_tree_next(&cursor);
        }
        if (result != STORE_ABSENT)
            return result;
    }
    return STORE_OK;
}

static enum store_result look_at(struct store_txn *txn, struct store_request *request)
{
    struct look *look = (struct look *)request;
    struct store_item item;
    look->entries = 0;
    enum store_result result = store_get(txn, &look->key, &item);
    if (result != STORE_OK)
        return result == STORE_ABSENT ? STORE_OK : result;
    if (item.trees == 0)
        return STORE_OK;
    must(item.trees == 2 && item.type == 5, "it is another collection");
    return count_entries(txn, look, &item);
}

static void looked(struct store_request *request, enum store_result result)
{
    must(result == STORE_OK, "looking ends with %d", result);
    ((struct look *)request)->finished = true;
}

static void look_start(struct rig *rig, struct look *look)
{
    *look = (struct look){.request = {.run = look_at, .done = looked, .key_count = 1}};
    look->request.keys = &look->key;
    store_key(rig->store, &look->key, 0, NAME, strlen(NAME), STORE_SHARED);
    enum store_result result = store_execute(rig->workers[0], &look->request);
    if (result != STORE_WAIT)
        looked(&look->request, result);
}

static uint32_t entries_there(struct rig *rig)
{
    struct look look;
    look_start(rig, &look);
    while (!look.finished)
        rig_round(rig);
    return look.entries;
}

/* Until what was given up is taken apart. */
static void await_purges(struct rig *rig)
{
    while (atomic_load(&rig->store->dropped_tree_count) > 0)
        rig_round(rig);
}

static uint32_t nodes_in_use(struct rig *rig)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < rig->store->partition_count; i++) {
        struct page_file *file = &rig->store->partitions[i].file;
        pthread_mutex_lock(&file->lock);
        for (uint32_t segment = 0; segment < file->segment_count; segment++)
            if (file->segment_class[segment] == FORMAT_SLAB_CLASSES)
                used += SEGMENT_PAGES - 1 - file->segment_free[segment];
        pthread_mutex_unlock(&file->lock);
    }
    return used;
}

static struct medium *new_store(struct rig *rig, uint64_t seed)
{
    struct medium *medium = medium_new(seed);
    rig_defaults(rig);
    rig->options.partition_count = 2;
    rig_open_on(rig, medium);
    return medium;
}

/* ---- the tests ---- */

#define MANY 4000u /* three times the cache */

static void it_may_be_larger_than_the_cache(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = new_store(&rig, 1);
    must(do_set(&rig, NAME, "a string") == STORE_OK, "set");
    must(make(&rig, MANY) == STORE_OK, "making it: %s", rig.last_warning);
    must(entries_there(&rig) == MANY, "%u entries are there", entries_there(&rig));
    must(has_value(&rig, LEAK, NULL), "a step has left something else behind");
    medium_cut_now(medium);
    must(rig_close(&rig) != STORE_OK, "closing without power");
    rig_open_on(&rig, medium);
    must(entries_there(&rig) == MANY, "%u entries are there", entries_there(&rig));
    must(make(&rig, 200) == STORE_OK && entries_there(&rig) == 200, "another in its place");
    await_purges(&rig);
    rig_reopen(&rig, medium);
    must(entries_there(&rig) == 200 && nodes_in_use(&rig) < 100, "after a stop in order");
    rig_end(&rig, medium);
}

static void one_given_up_leaves_nothing(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = new_store(&rig, 2);
    must(make(&rig, 200) == STORE_OK, "making it");
    uint32_t before = nodes_in_use(&rig);
    for (uint32_t i = 0; i < 5; i++) {
        must(build_end(&rig, build_start(&rig, MANY, 400, false)) == STORE_INVALID, "an error");
        await_purges(&rig);
    }
    must(nodes_in_use(&rig) == before, "%u nodes, before it were %u", nodes_in_use(&rig), before);
    must(entries_there(&rig) == 200 && has_value(&rig, LEAK, NULL), "what was there is not");
    rig_end(&rig, medium);
}

/* Between its steps others have their turn, but not on its keys. */
static void nobody_sees_it_grow(void **state)
{
    (void)state;
    struct rig rig;
    struct look look;
    struct medium *medium = new_store(&rig, 3);
    must(make(&rig, 200) == STORE_OK, "making it");
    struct build *build = build_start(&rig, 2000, 0, false);
    look_start(&rig, &look);
    uint32_t others = 0;
    while (!build->finished) {
        must(!look.finished, "it is seen before it is finished");
        must(do_set(&rig, "other", "value") == STORE_OK, "set");
        others += !build->finished;
    }
    must(others > 1, "others had %u turns", others);
    must(build_end(&rig, build) == STORE_OK, "making it");
    while (!look.finished)
        rig_round(&rig);
    must(look.entries == 2000, "who waited for it sees %u entries", look.entries);
    rig_end(&rig, medium);
}

/* All slots are free then, also those of its nodes; they are not to be given back once more. */
static void a_flush_takes_it_along(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = new_store(&rig, 4);
    must(do_set(&rig, "other", "value") == STORE_OK, "set");
    struct build *flushed = build_start(&rig, 400, 0, true);
    while (!flushed->finished)
        rig_round(&rig);
    must(flushed->result == STORE_OK && entries_there(&rig) == 0, "flushed");
    must(make(&rig, 400) == STORE_OK, "making another");
    uint32_t nodes = nodes_in_use(&rig);
    must(build_end(&rig, flushed) == STORE_OK, "the end of the first");
    await_purges(&rig);
    must(nodes_in_use(&rig) == nodes, "%u nodes were %u", nodes_in_use(&rig), nodes);
    must(make(&rig, 200) == STORE_OK && entries_there(&rig) == 200, "a third");
    await_purges(&rig);
    must(rig.warnings == 0, "taken for damage: %s", rig.last_warning);
    rig_reopen(&rig, medium);
    must(entries_there(&rig) == 200, "after a start");
    rig_end(&rig, medium);
}

/* ---- the power goes at every point ---- */

#define MOMENTS 4000u

struct moments {
    struct medium *at[MOMENTS];
    uint32_t count;
    _Atomic bool is_acknowledged;
    bool acknowledged[MOMENTS];
};

static void record(void *arg, struct medium *state)
{
    struct moments *moments = arg;
    must(moments->count < MOMENTS, "the test's own limits");
    moments->acknowledged[moments->count] = moments->is_acknowledged;
    moments->at[moments->count++] = state;
}

static void try_moment(struct moments *moments, uint32_t i, uint32_t few, uint32_t many)
{
    struct rig rig;
    struct medium *medium = medium_copy(moments->at[i]);
    struct store_stats stats;
    medium_set_fate(medium, i % FATES);
    rig_defaults(&rig);
    rig_open_on(&rig, medium);
    uint32_t entries = entries_there(&rig);
    await_purges(&rig); /* what the cut has left of the building goes in steps */
    uint32_t nodes = nodes_in_use(&rig);
    must(entries == many || (entries == few && !moments->acknowledged[i]),
         "%u entries are there at moment %u", entries, i);
    must(nodes < 8 + entries / 3, "%u nodes for %u entries", nodes, entries);
    must(has_value(&rig, LEAK, NULL), "a step has left something else behind");
    must(make(&rig, few) == STORE_OK && entries_there(&rig) == few, "going on");
    store_stats(rig.store, &stats);
    must(stats.damaged_items == 0, "damage: %s", rig.last_warning);
    rig_end(&rig, medium);
}

static void a_cut_leaves_all_or_nothing(void **state)
{
    (void)state;
    static struct moments moments;
    struct rig rig;
    struct medium *medium = new_store(&rig, 5);
    must(make(&rig, 80) == STORE_OK, "making it");
    medium_record(medium, record, &moments);
    must(make(&rig, 1200) == STORE_OK, "making it");
    moments.is_acknowledged = true;
    must(do_set(&rig, "other", "value") == STORE_OK, "set");
    rig_run(&rig, 20);
    medium_record(medium, NULL, NULL);
    rig_close_well(&rig);
    for (uint32_t i = 0; i < moments.count; i++) {
        try_moment(&moments, i, 80, 1200);
        medium_free(moments.at[i]);
    }
    fprintf(stderr, "# %u moments\n", moments.count);
    medium_free(medium);
}

/* One step is not committed; the transaction is used again. */
static void a_full_disk_ends_it(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = medium_new(1);
    rig_defaults(&rig);
    rig.options.max_store_bytes = 24 << 20;
    rig_open_on(&rig, medium);
    enum store_result result = make(&rig, 1000 * 1000);
    must(result == STORE_FULL, "a full disk gives %d", result);
    rig_run(&rig, 300);
    must(make(&rig, 10 * STEP_ENTRIES) == STORE_OK, "the space does not come back");
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_may_be_larger_than_the_cache),
        cmocka_unit_test(one_given_up_leaves_nothing),
        cmocka_unit_test(nobody_sees_it_grow),
        cmocka_unit_test(a_flush_takes_it_along),
        cmocka_unit_test(a_full_disk_ends_it),
        cmocka_unit_test(a_cut_leaves_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
