/* Directories with ordered keys: ranges against a sorted list, in trees of several levels that do
 * not fit into the cache; long transactions; space; a full disk; damage and failing reads; what a
 * directory remembers. Random work and power cuts: test_random.c, test_powercut.c, test_cuts.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/recovery/check.h"
#include "storage/tree/key_tree.h"
#include "storage/txn/engine.h"
#include "tests/storage/fault_disk.h"
#include "tests/storage/ordered_walk.h"

#define KEYS 6000u
#define BULK (SIZES_ARE_TINY ? 100u : 1500u) /* keys whose leaves fit into the cache */
#define NAME_MAX_BYTES 700u

static struct medium *begin(struct rig *rig)
{
    struct medium *medium = rig_begin(rig, 1);
    rig->options.ordered_keys = STORE_ORDERED_YES;
    return medium;
}

/* Names that share prefixes, have zeros and high bytes in them, and lengths around the longest that
 * is in order as a whole. */
static uint32_t random_name(struct rng *rng, char name[NAME_MAX_BYTES])
{
    static const char bytes[] = {0, 1, 'a', 'b', '\x7f', '\x80', '\xff'};
    uint32_t len = rng_below(rng, 24);
    if (rng_chance(rng, 10))
        len = FORMAT_NAME_WHOLE - 3 + rng_below(rng, 6);
    memset(name, 'p', len);
    for (uint32_t i = len > 24 ? len - 8 : 0; i < len; i++)
        name[i] = bytes[rng_below(rng, sizeof bytes)];
    return len;
}

static enum store_result put(struct rig *rig, const char *name, uint32_t len, const char *value)
{
    struct call *call = call_new();
    struct step *step =
        call_step(call, value ? STEP_PUT : STEP_DELETE, call_key(call, 0, 0, name, len));
    step->blob = value ? blob_text(value) : NULL;
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    enum store_result result = call->result;
    call_free(call);
    return result;
}

/* ---- ranges ---- */

static int by_bytes(const void *a, const void *b)
{
    const struct ordered_name *x = a, *y = b;
    return node_compare(x->bytes, x->len, y->bytes, y->len);
}

static bool is_cut(const struct ordered_name *name)
{
    return key_tree_is_cut(name->len);
}

static bool is_within(const struct store_range_options *range, const struct ordered_name *name)
{
    const struct store_range_bound *low = &range->low, *high = &range->high;
    int after_low = low->bytes ? node_compare(name->bytes, name->len, low->bytes, low->len) : 1;
    int after_high =
        high->bytes ? node_compare(name->bytes, name->len, high->bytes, high->len) : -1;
    return (after_low > 0 || (after_low == 0 && !low->is_excluded)) &&
           (after_high < 0 || (after_high == 0 && !high->is_excluded));
}

/* What a walk shows has to be this part of all names; cut ones may change places. */
static void compare_range(struct rig *rig, const struct ordered_names *all,
                          const struct store_range_options *range)
{
    struct ordered_names walked = {0};
    must(ordered_walk(rig, range, 1, &walked) == STORE_OK, "a walk fails");
    uint64_t at = 0, skipped = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        const struct ordered_name *name = &all->at[range->is_reverse ? all->count - 1 - i : i];
        if (!is_within(range, name) || skipped++ < range->skip)
            continue;
        must(at < walked.count, "a walk omits key %u", i);
        const struct ordered_name *shown = &walked.at[at++];
        must((is_cut(name) && is_cut(shown)) || by_bytes(name, shown) == 0,
             "a walk shows another key than number %u", i);
    }
    must(at == walked.count, "a walk shows %u keys, not %llu", walked.count,
         (unsigned long long)at);
    ordered_names_free(&walked);
}

static void random_ranges(struct rig *rig, struct rng *rng, const struct ordered_names *all)
{
    for (uint32_t i = 0; i < 60; i++) {
        char low[NAME_MAX_BYTES], high[NAME_MAX_BYTES];
        struct store_range_options range = {.is_reverse = rng_chance(rng, 50),
                                            .most = rng_chance(rng, 50) ? 5 : UINT64_MAX};
        range.low.len = random_name(rng, low);
        range.high.len = random_name(rng, high);
        range.low.bytes = rng_chance(rng, 80) ? low : NULL;
        range.high.bytes = rng_chance(rng, 80) ? high : NULL;
        range.low.is_excluded = rng_chance(rng, 50);
        range.high.is_excluded = rng_chance(rng, 50);
        range.skip = rng_chance(rng, 30) ? rng_below(rng, 50) : 0;
        compare_range(rig, all, &range);
    }
}

/* All names once, in order. */
static void scan_names(struct rig *rig, struct ordered_names *all)
{
    struct store_range_options whole = {.most = UINT64_MAX};
    must(ordered_walk(rig, &whole, 1, all) == STORE_OK, "a walk fails");
    if (all->count)
        qsort(all->at, all->count, sizeof *all->at, by_bytes);
}

static void ranges_are_parts_of_a_sorted_list(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("ranges")};
    struct rig rig;
    struct medium *medium = begin(&rig);
    rig_open_on(&rig, medium);
    for (uint32_t i = 0; i < KEYS; i++) {
        char name[NAME_MAX_BYTES];
        uint32_t len = random_name(&rng, name);
        bool stays = rng_chance(&rng, 80);
        must(put(&rig, name, len, stays ? "value" : NULL) == STORE_OK, "put");
    }
    for (uint32_t pass = 0; pass < 3; pass++) { /* running; from the index; from the slabs */
        struct ordered_names all = {0};
        ordered_compare(&rig, 0);
        scan_names(&rig, &all);
        must(all.count > 100, "only %u keys", all.count);
        random_ranges(&rig, &rng, &all);
        ordered_names_free(&all);
        rig.options.scans = pass == 1;
        rig_reopen(&rig, medium);
        struct store_stats stats;
        store_stats(rig.store, &stats);
        must(stats.is_loaded == (pass != 1), "the index checkpoint");
    }
    rig_end(&rig, medium);
}

/* ---- roots are no keys ---- */

/* The root of partition 0 has in place of a key what is the name of a key in its slot, and so its
 * tag. */
static void no_key_is_a_root(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = begin(&rig);
    rig_open_on(&rig, medium);
    must(do_set(&rig, "other", "value") == STORE_OK, "set");
    for (uint32_t i = 0; i < 3; i++) {
        struct call *call = call_new();
        call_step(call, STEP_GET, call_key(call, 0, 0, "\0\0", 2));
        call_start(rig.workers[0], call);
        call_wait(&rig, call);
        must(call->result == STORE_OK && call->steps[0].found == (i == 1), "a key that is a root");
        call_free(call);
        must(put(&rig, "\0\0", 2, i ? NULL : "value") == STORE_OK, "put");
        ordered_compare(&rig, 0);
    }
    rig_end(&rig, medium);
}

static void snapshots_show_no_roots(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = begin(&rig);
    struct store_snapshot_options options = {.memory_bytes = 1 << 20, .now_ms = 1};
    struct store_snapshot *snapshot;
    const struct store_snapshot_item *item;
    enum store_result result;
    uint32_t count = 0;
    rig_open_on(&rig, medium);
    for (const char *key = "abcdefgh"; *key; key++)
        must(put(&rig, key, 1, "value") == STORE_OK, "put");
    must(store_snapshot_begin(rig.workers[0], &options, &snapshot) == STORE_OK, "begin");
    while ((result = store_snapshot_next(snapshot, &item)) != STORE_ABSENT) {
        must(result == STORE_OK || result == STORE_WAIT, "a snapshot fails with %d", result);
        if (result == STORE_WAIT)
            rig_round(&rig);
        count += result == STORE_OK;
        must(result == STORE_WAIT || (item->key_len == 1 && item->trees == 0), "a root");
    }
    must(count == 8, "a snapshot of 8 keys has %u", count);
    store_snapshot_end(snapshot);
    rig_end(&rig, medium);
}

/* ---- transactions ---- */

/* As many keys as the bulk of a long commit, put and deleted in one transaction. */
struct bulk {
    struct store_request request;
    struct store_key *keys;
    char (*names)[16];
    uint32_t count;
    bool deletes, finished;
    enum store_result result;
};

static enum store_result run_bulk(struct store_txn *txn, struct store_request *request)
{
    struct bulk *bulk = (struct bulk *)request;
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < bulk->count && result == STORE_OK; i++)
        result = bulk->deletes ? store_delete(txn, &bulk->keys[i])
                               : store_put(txn, &bulk->keys[i], 0, "bulk", 4, STORE_NO_EXPIRY);
    return result;
}

static void bulk_done(struct store_request *request, enum store_result result)
{
    struct bulk *bulk = (struct bulk *)request;
    bulk->result = result;
    bulk->finished = true;
}

static enum store_result do_bulk(struct rig *rig, uint32_t count, bool deletes)
{
    struct bulk bulk = {.count = count, .deletes = deletes};
    bulk.keys = calloc(count, sizeof *bulk.keys);
    bulk.names = calloc(count, sizeof *bulk.names);
    must(bulk.keys && bulk.names, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        int len = snprintf(bulk.names[i], sizeof bulk.names[i], "bulk:%u", i * 7919u % 100003u);
        store_key(rig->store, &bulk.keys[i], 0, bulk.names[i], (size_t)len, STORE_EXCLUSIVE);
    }
    bulk.request = (struct store_request){
        .run = run_bulk, .done = bulk_done, .keys = bulk.keys, .key_count = count, .now_ms = 1};
    enum store_result result = store_execute(rig->workers[0], &bulk.request);
    if (result != STORE_WAIT)
        bulk_done(&bulk.request, result);
    while (!bulk.finished)
        rig_round(rig);
    free(bulk.keys);
    free(bulk.names);
    return bulk.result;
}

static void long_transactions_keep_it(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = begin(&rig);
    rig.options.record_bytes = 20000;
    rig_open_on(&rig, medium);
    for (uint32_t i = 0; i < 5; i++) {
        must(do_bulk(&rig, BULK, false) == STORE_OK, "many keys in one commit");
        ordered_compare(&rig, 0);
        must(do_bulk(&rig, BULK / 2 + i, true) == STORE_OK, "many deletions in one commit");
        ordered_compare(&rig, 0);
    }
    rig_crash(&rig, medium);
    rig_open_on(&rig, medium);
    ordered_compare(&rig, 0);
    rig_end(&rig, medium);
}

/* ---- space ---- */

static uint64_t used_slots(struct rig *rig)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < rig->store->partition_count; i++) {
        struct page_file *file = &rig->store->partitions[i].file;
        pthread_mutex_lock(&file->lock);
        for (uint32_t segment = 0; segment < file->segment_assigned; segment++)
            if (file->segment_class[segment])
                sum += (SEGMENT_PAGES - 1) * format_class_slots(file->segment_class[segment]) -
                       file->segment_free[segment];
        pthread_mutex_unlock(&file->lock);
    }
    return sum;
}

static void wait_until_empty(struct rig *rig)
{
    for (uint32_t i = 0; i < 5000 && used_slots(rig) > 0; i++)
        rig_run(rig, 2);
    must(used_slots(rig) == 0, "%llu slots are in use", (unsigned long long)used_slots(rig));
}

static void set_in(struct rig *rig, uint32_t db, const char *key)
{
    struct call *call = call_new();
    call_step(call, STEP_PUT, call_key(call, db, 0, key, (uint32_t)strlen(key)))->blob =
        blob_text("value");
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "set: %d", call->result);
    call_free(call);
}

static void empty_databases_take_no_space(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = begin(&rig);
    rig_open_on(&rig, medium);
    must(do_bulk(&rig, BULK, false) == STORE_OK && do_bulk(&rig, BULK, true) == STORE_OK, "bulk");
    wait_until_empty(&rig); /* one by one */
    must(do_bulk(&rig, BULK, false) == STORE_OK, "bulk");
    flush_db(&rig, 0);
    wait_until_empty(&rig); /* at once: nothing is left */
    must(do_bulk(&rig, BULK, false) == STORE_OK, "bulk");
    set_in(&rig, 1, "beside");
    uint64_t before = used_slots(&rig);
    flush_db(&rig, 0);
    for (uint32_t i = 0; i < 5000 && used_slots(&rig) != 3; i++) /* swept, and the trees purged */
        rig_run(&rig, 2);
    must(before > BULK && used_slots(&rig) == 3, "%llu slots: an item, a root and a node remain",
         (unsigned long long)used_slots(&rig));
    rig_reopen(&rig, medium);
    must(used_slots(&rig) == 3, "after a start: %llu slots", (unsigned long long)used_slots(&rig));
    ordered_compare(&rig, 0);
    ordered_compare(&rig, 1);
    rig_end(&rig, medium);
}

/* The page of a new root's slot is not in memory: the commit has to wait after it has taken the
 * slot, and again, and takes one in the end. */
static void slots_that_waited_come_back(void **state)
{
    (void)state;
    struct rig rig;
    char name[32];
    struct medium *medium = begin(&rig);
    rig_open_on(&rig, medium);
    for (uint32_t i = 0; i < 100; i++) { /* items as long as a root */
        snprintf(name, sizeof name, "an item as long as a root%05u", i);
        set_in(&rig, 1, name);
    }
    for (uint32_t pass = 0; pass < 5; pass++) {
        rig_reopen(&rig, medium);
        uint64_t used = used_slots(&rig);
        for (uint32_t i = 0; i < 16; i++) {
            snprintf(name, sizeof name, "pass %u, key %u", pass, i);
            must(do_put(&rig, name, blob_new(200)) == STORE_OK, "put"); /* in another page */
        }
        for (uint32_t i = 0; i < 16; i++) {
            snprintf(name, sizeof name, "pass %u, key %u", pass, i);
            must(do_delete(&rig, name) == STORE_OK, "delete");
        }
        must(used_slots(&rig) == used, "%llu slots are in use, not %llu",
             (unsigned long long)used_slots(&rig), (unsigned long long)used);
    }
    rig_end(&rig, medium);
}

static void a_full_disk_keeps_it(void **state)
{
    (void)state;
    struct rig rig;
    char name[32];
    struct medium *medium = begin(&rig);
    rig.options.max_store_bytes = 24u << 20;
    rig_open_on(&rig, medium);
    uint32_t count = 0;
    enum store_result result = STORE_OK;
    struct rng rng = {1};
    while (result == STORE_OK && count < 20000) {
        snprintf(name, sizeof name, "key:%u", count++);
        result = do_put(&rig, name, blob_random(&rng, 3000));
    }
    must(result == STORE_FULL, "the disk is full, but the result is %d", result);
    ordered_compare(&rig, 0);
    for (uint32_t i = 0; i < count; i += 2) {
        snprintf(name, sizeof name, "key:%u", i);
        must(do_delete(&rig, name) == STORE_OK, "a deletion needs no room");
    }
    ordered_compare(&rig, 0);
    must(do_set(&rig, "once more", "there is room") == STORE_OK, "set");
    ordered_compare(&rig, 0);
    rig_end(&rig, medium);
}

/* ---- flushes and swaps in the midst of a walk ---- */

struct slow_walk {
    struct store_request request;
    struct store_range *range;
    char key[32]; /* the one shown last */
    bool finished;
    enum store_result result;
};

static enum store_result run_slowly(struct store_txn *txn, struct store_request *request)
{
    struct slow_walk *walk = (struct slow_walk *)request;
    struct store_range_entry entry;
    enum store_result result = store_range_next(txn, walk->range, &entry);
    if (result == STORE_OK)
        snprintf(walk->key, sizeof walk->key, "%.*s", (int)entry.key_len, entry.key);
    return result;
}

static void slow_done(struct store_request *request, enum store_result result)
{
    struct slow_walk *walk = (struct slow_walk *)request;
    walk->result = result;
    walk->finished = true;
}

/* A request for each key. False: the walk is over. */
static bool walk_slowly(struct rig *rig, struct slow_walk *walk)
{
    walk->request = (struct store_request){
        .run = run_slowly, .done = slow_done, .scope = STORE_SCOPE_NONE, .now_ms = 1};
    walk->finished = false;
    enum store_result result = store_execute(rig->workers[0], &walk->request);
    if (result != STORE_WAIT)
        slow_done(&walk->request, result);
    while (!walk->finished)
        rig_round(rig);
    must(walk->result == STORE_OK || walk->result == STORE_ABSENT, "result %d", walk->result);
    return walk->result == STORE_OK;
}

static void swap_dbs(struct rig *rig)
{
    struct call *call = call_new();
    call->exclusive = true;
    call_step(call, STEP_SWAP_DB, 0)->other = 1;
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "swap: %d", call->result);
    call_free(call);
}

static uint32_t walk_with(bool flushes)
{
    struct rig rig;
    struct slow_walk walk = {.finished = true};
    struct store_range_options options = {.most = 4};
    struct medium *medium = begin(&rig);
    uint32_t count = 0;
    rig_open_on(&rig, medium);
    must(do_bulk(&rig, BULK, false) == STORE_OK, "bulk");
    set_in(&rig, 1, "beside");
    must(walk.range = store_range_new(rig.store, &options), "out of memory");
    for (; walk_slowly(&rig, &walk); count++) {
        must(strncmp(walk.key, "bulk:", 5) == 0, "%s", walk.key);
        if (count == 20 && flushes)
            flush_db(&rig, 0);
        else if (count == 20)
            swap_dbs(&rig);
    }
    store_range_free(walk.range);
    rig_end(&rig, medium);
    return count;
}

static void a_walk_stays_in_its_database(void **state)
{
    (void)state;
    uint32_t count = walk_with(false);
    must(count == BULK, "after a swap a walk shows %u keys", count);
    count = walk_with(true); /* at most what it has read before */
    must(count >= 21 && count < 100, "after a flush a walk shows %u keys", count);
}

/* ---- vellum-check ---- */

static void listen(void *arg, enum store_log_level level, const char *line)
{
    char *said = arg;
    bool is_first = said[0] == 0 || strncmp(line, "The tree of keys", 16) == 0;
    if (level == STORE_LOG_WARNING && is_first)
        snprintf(said, STORE_MESSAGE_MAX, "%s", line);
}

static uint64_t check(struct medium *medium, char said[STORE_MESSAGE_MAX])
{
    struct store_check found;
    char message[STORE_MESSAGE_MAX];
    said[0] = 0;
    struct medium *copy = medium_copy(medium);
    must(check_disk(medium_disk(copy), listen, said, &found, message) == STORE_OK, "%s", message);
    medium_free(copy);
    return found.faults;
}

/* ---- damage ---- */

/* The first page of the file that is a node, and of level `level`. */
static uint64_t find_node(struct medium *medium, const char *file, uint32_t level)
{
    struct format_node node;
    for (uint64_t at = 0; at < medium_size(medium, file); at += PAGE_SIZE) {
        medium_peek(medium, file, at, &node, sizeof node);
        if (node.item.database == FORMAT_HIDDEN && node.item.flags & FORMAT_NODE &&
            node.level == level)
            return at;
    }
    must(false, "there is no node");
    return 0;
}

static void damage_to_a_tree_is_noticed(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = begin(&rig);
    struct ordered_names names = {0};
    struct store_range_options whole = {.most = UINT64_MAX};
    rig.options.partition_count = 1;
    rig_open_on(&rig, medium);
    must(do_set(&rig, "a", "value") == STORE_OK && do_set(&rig, "b", "value") == STORE_OK, "set");
    rig_close_well(&rig);
    medium_flip(medium, "slabs-00", find_node(medium, "slabs-00", 0) + 200, 1);
    rig_open_on(&rig, medium); /* from the index: nothing is read */
    must(ordered_walk(&rig, &whole, 1, &names) == STORE_DAMAGED && names.count == 0, "a walk");
    must(do_set(&rig, "a", "other") == STORE_OK && has_value(&rig, "a", "other"), "an overwrite");
    must(do_set(&rig, "c", "value") == STORE_DAMAGED && has_value(&rig, "c", NULL), "a new key");
    must(do_delete(&rig, "b") == STORE_DAMAGED && has_value(&rig, "b", "value"), "a deletion");
    flush_db(&rig, 0);
    must(do_set(&rig, "c", "value") == STORE_OK, "after a flush");
    ordered_compare(&rig, 0);
    rig_reopen(&rig, medium);
    ordered_compare(&rig, 0);
    rig_close_well(&rig);
    medium_free(medium);
}

/* The names of lost keys remain in the tree: they are not shown, and set again they are there once.
 */
static void a_lost_key_may_come_again(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin_scanned(&rig);
    rig_close_well(&rig);
    medium_free(medium);
    medium = begin(&rig);
    rig.options.partition_count = 1;
    rig.options.scans = true;
    rig_open_on(&rig, medium);
    must(do_set(&rig, "first", "some value") == STORE_OK, "set");
    must(do_set(&rig, "second", "to be lost") == STORE_OK, "set");
    rig_close_well(&rig);
    uint64_t at = medium_find(medium, "slabs-00", "to be lost", 10);
    must(at != UINT64_MAX, "the value is not on disk");
    medium_flip(medium, "slabs-00", at, 1);
    for (uint32_t pass = 0; pass < 2; pass++) {
        rig_open_on(&rig, medium);
        ordered_compare(&rig, 0);
        if (pass == 0)
            must(do_set(&rig, "second", "is here again") == STORE_OK, "set");
        ordered_compare(&rig, 0);
        must(has_value(&rig, "second", "is here again"), "the second one");
        rig_close_well(&rig);
    }
    rig_open_on(&rig, medium);
    must(do_delete(&rig, "second") == STORE_OK && do_delete(&rig, "first") == STORE_OK, "delete");
    ordered_compare(&rig, 0);
    must(do_set(&rig, "first", "x") == STORE_OK && do_set(&rig, "second", "y") == STORE_OK, "set");
    ordered_compare(&rig, 0);
    flush_db(&rig, 0);
    ordered_compare(&rig, 0);
    rig_close_well(&rig);
    medium_free(medium);
}

/* A database whose only key is lost counts no keys, but has a root: a flush of the others must not
 * take its slot. */
static void a_lost_key_leaves_its_database_a_root(void **state)
{
    (void)state;
    struct rig rig;
    char said[STORE_MESSAGE_MAX];
    struct medium *medium = begin(&rig);
    rig.options.partition_count = 1;
    rig.options.scans = true;
    rig_open_on(&rig, medium);
    set_in(&rig, 1, "to be lost");
    must(do_set(&rig, "key", "value") == STORE_OK, "set");
    rig_close_well(&rig);
    medium_flip(medium, "slabs-00", medium_find(medium, "slabs-00", "to be lost", 10), 1);
    rig_open_on(&rig, medium);
    must(rig_damaged(&rig) == 1, "the key");
    flush_db(&rig, 0);
    for (uint32_t i = 0; i < 300; i++)
        set_in(&rig, 1, "again");
    must(do_bulk(&rig, BULK, false) == STORE_OK, "bulk");
    rig_reopen(&rig, medium);
    ordered_compare(&rig, 0);
    ordered_compare(&rig, 1);
    rig_close_well(&rig);
    must(check(medium, said) == 2, "the key, and its name: %s", said);
    medium_free(medium);
}

/* Each read of a walk, and of a commit in a tree that is not in memory, fails in turn. */
static void failing_reads_change_nothing(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = begin(&rig);
    struct store_range_options whole = {.most = UINT64_MAX};
    rig_open_on(&rig, medium);
    must(do_bulk(&rig, BULK, false) == STORE_OK, "bulk");
    uint32_t failed = 0;
    for (uint32_t n = 1; n <= 12; n++) {
        char name[16];
        struct ordered_names names = {0};
        snprintf(name, sizeof name, "new:%u", n);
        rig_reopen(&rig, medium);
        medium_fail(medium, FAULT_READ, "slabs", n, EIO, false);
        enum store_result result =
            n % 2 ? do_set(&rig, name, "value") : ordered_walk(&rig, &whole, 1, &names);
        must(result == STORE_OK || result == STORE_IO, "result %d", result);
        failed += result == STORE_IO;
        medium_fail(medium, FAULT_READ, NULL, 0, 0, false);
        must(n % 2 == 0 || has_value(&rig, name, result == STORE_OK ? "value" : NULL), "half");
        ordered_names_free(&names);
        ordered_compare(&rig, 0);
    }
    must(failed > 3, "only %u reads failed", failed);
    rig_end(&rig, medium);
}

/* ---- the directory ---- */

/* Here a key is another than its name. */
static void the_check_compares_names_and_keys(void **state)
{
    (void)state;
    struct rig rig;
    char said[STORE_MESSAGE_MAX], bytes[PAGE_SIZE];
    struct medium *medium = begin(&rig);
    rig.options.partition_count = 1;
    rig_open_on(&rig, medium);
    must(do_set(&rig, "key:a", "value") == STORE_OK, "set");
    struct store_key key;
    store_key(rig.store, &key, 0, "key:a", 5, STORE_SHARED);
    const struct index *index = &rig.store->partitions[0].index;
    uint32_t tag = engine_tag(key.hash, rig.store->databases.ids[0]);
    uint64_t entry = index_get(index, key.slot, index_find(index, key.slot, tag));
    uint32_t page = index_page(entry), slot = index_item_slot(entry);
    uint32_t size = format_class_size(page_file_class_of(&rig.store->partitions[0].file, page));
    uint32_t mix = format_place_mix(rig.store->superblock.latest.seed, 0, page, slot);
    uint64_t at = (uint64_t)page * PAGE_SIZE + (uint64_t)slot * size;
    rig_close_well(&rig);
    must(check(medium, said) == 0, "nothing is wrong, but: %s", said);
    medium_peek(medium, "slabs-00", at, bytes, size);
    struct format_item *item = (struct format_item *)bytes;
    ((char *)format_key(item))[4] = 'b';
    item->checksum = format_item_checksum(item, format_item_length(item, size), mix);
    medium_poke(medium, "slabs-00", at, bytes, size);
    must(check(medium, said) > 0 && strncmp(said, "The tree of keys", 16) == 0, "%s", said);
    medium_free(medium);
}

static void the_directory_remembers(void **state)
{
    (void)state;
    struct rig rig;
    for (uint32_t ordered = 0; ordered < 2; ordered++) {
        struct medium *medium = begin(&rig);
        rig.options.ordered_keys = ordered;
        rig_open_on(&rig, medium);
        must(store_is_ordered(rig.store) == ordered, "the setting");
        rig_close_well(&rig);
        rig.options.ordered_keys = !ordered;
        must(rig_open(&rig, medium_disk(medium)) == STORE_INVALID, "another setting");
        must(strstr(rig.message, ordered ? "`ordered-keys yes`" : "`ordered-keys no`"), "%s",
             rig.message);
        rig.options.ordered_keys = STORE_ORDERED_AS_FOUND;
        rig_open_on(&rig, medium);
        must(store_is_ordered(rig.store) == ordered, "as found");
        struct format_superblock copy;
        rig_close_well(&rig);
        medium_peek(medium, "superblock", 0, &copy, sizeof copy);
        must(copy.version == (FORMAT_STAMP | (ordered ? FORMAT_ORDERED : 0)), "version %x",
             copy.version);
        medium_free(medium);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_parts_of_a_sorted_list),
        cmocka_unit_test(no_key_is_a_root),
        cmocka_unit_test(snapshots_show_no_roots),
        cmocka_unit_test(long_transactions_keep_it),
        cmocka_unit_test(empty_databases_take_no_space),
        cmocka_unit_test(slots_that_waited_come_back),
        cmocka_unit_test(a_full_disk_keeps_it),
        cmocka_unit_test(a_walk_stays_in_its_database),
        cmocka_unit_test(damage_to_a_tree_is_noticed),
        cmocka_unit_test(a_lost_key_may_come_again),
        cmocka_unit_test(a_lost_key_leaves_its_database_a_root),
        cmocka_unit_test(failing_reads_change_nothing),
        cmocka_unit_test(the_check_compares_names_and_keys),
        cmocka_unit_test(the_directory_remembers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
