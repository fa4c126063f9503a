/* What is brought nearer before it is used: the ways down trees lead where look-ups lead, read
 * nothing, and tell of nothing that is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/storage/fault_disk.h"
#include "tests/storage/harness.h"
#include "storage/collections.h"

#define ENTRIES 3000u
#define BYTES STORE_HINT_BYTES

/* What the probes of a key have met. The key is first: all that a probe knows. */
struct met {
    struct store_key key;
    uint32_t count;
    char bytes[BYTES]; /* of the last entry's key */
};

struct job {
    struct store_request request; /* first */
    struct store_key key;
    uint32_t from, count;
    bool packed, finished;
};

/* In the order of their numbers, and in another order. */
static void name_in_order(uint32_t number, char name[BYTES + 1])
{
    snprintf(name, BYTES + 1, "%08x", number * 16);
}

static void name_by_hash(uint32_t number, char name[BYTES + 1])
{
    snprintf(name, BYTES + 1, "%08x", number * 2654435761u);
}

static enum store_result insert(struct store_tree *tree, const char *name, const char *value)
{
    struct store_cursor cursor;
    enum store_result result = store_tree_seek(tree, name, BYTES, &cursor);
    return result == STORE_OK ? store_tree_insert(&cursor, name, BYTES, value, strlen(value))
                              : result;
}

/* One entry in each of two trees; what the second one's has ends with the first one's name. */
static enum store_result insert_pair(struct store_txn *txn, struct store_tree *trees[2],
                                     uint32_t number)
{
    char order[BYTES + 1], hash[BYTES + 1];
    char *value = store_alloc(txn, 64);
    if (!value)
        return STORE_NO_MEMORY;
    name_in_order(number, order);
    name_by_hash(number, hash);
    snprintf(value, 64, "member %u: %s", number, order);
    enum store_result result = insert(trees[0], order, "");
    return result == STORE_OK ? insert(trees[1], hash, value) : result;
}

static enum store_result add_pairs(struct store_txn *txn, struct job *job)
{
    struct store_item item;
    struct store_tree *trees[2];
    enum store_result result = store_get(txn, &job->key, &item);
    if (result == STORE_ABSENT) {
        result = store_tree_create(txn, &job->key, 7, 2, STORE_NO_EXPIRY);
        if (result == STORE_OK)
            result = store_get(txn, &job->key, &item);
    }
    for (uint32_t i = 0; i < 2 && result == STORE_OK; i++)
        result = store_tree_open(txn, &job->key, &item, i, &trees[i]);
    for (uint32_t i = 0; i < job->count && result == STORE_OK; i++)
        result = insert_pair(txn, trees, job->from + i);
    return result;
}

static enum store_result run(struct store_txn *txn, struct store_request *request)
{
    struct job *job = (struct job *)request;
    return job->packed ? store_put(txn, &job->key, 7, "packed", 6, STORE_NO_EXPIRY)
                       : add_pairs(txn, job);
}

static void done(struct store_request *request, enum store_result result)
{
    must(result == STORE_OK, "a job ended with %d", (int)result);
    ((struct job *)request)->finished = true;
}

static void make_key(const struct rig *rig, struct store_key *key, const char *name)
{
    store_key(rig->store, key, 0, name, strlen(name), STORE_EXCLUSIVE);
}

static void do_job(struct rig *rig, const char *name, struct job *job)
{
    make_key(rig, &job->key, name);
    job->request = (struct store_request){
        .run = run, .done = done, .keys = &job->key, .key_count = 1, .now_ms = 1};
    enum store_result result = store_execute(rig->workers[0], &job->request);
    if (result != STORE_WAIT)
        done(&job->request, result);
    while (!job->finished)
        rig_round(rig);
}

static void fill(struct rig *rig)
{
    for (uint32_t i = 0; i < ENTRIES; i += 20)
        do_job(rig, "trees", &(struct job){.from = i, .count = 20});
    do_job(rig, "packed", &(struct job){.packed = true});
}

/* ---- probing ---- */

static bool meet(const struct store *store, const struct store_entry *entry,
                 struct store_prefetch_hint *hint)
{
    (void)store;
    struct met *met = (struct met *)(uintptr_t)hint->key;
    met->count++;
    must(entry->key_len == BYTES, "a key of %u bytes", entry->key_len);
    memcpy(met->bytes, entry->key, BYTES);
    if (entry->value.length == 0)
        return false;
    hint->tree = 0;
    memcpy(hint->bytes, entry->value.bytes + entry->value.length - BYTES, BYTES);
    hint->follow = NULL;
    return true;
}

/* What a probe meets, alone or with others of its batch; NULL: nothing. */
static const char *met_by(struct rig *rig, struct met *met, struct store_prefetch_hint hint)
{
    struct store_prefetch_hint prefetch_hints[40];
    char name[BYTES + 1];
    met->count = 0;
    hint.key = &met->key;
    hint.follow = NULL;
    for (uint32_t i = 0; i < 40; i++) {
        prefetch_hints[i] = hint;
        name_by_hash(i * 31, name);
        memcpy(prefetch_hints[i].bytes, name, BYTES);
    }
    memcpy(prefetch_hints[35].bytes, hint.bytes, BYTES);
    prefetch_hints[35].follow = meet;
    store_prefetch_trees(rig->workers[0], prefetch_hints, 40);
    must(met->count <= 1, "told of %u entries", met->count);
    return met->count ? met->bytes : NULL;
}

static void must_lead_to_rank(struct rig *rig, struct met *met, uint32_t rank, bool from_end)
{
    char name[BYTES + 1];
    name_in_order(from_end ? ENTRIES - 1 - rank : rank, name);
    const char *found =
        met_by(rig, met,
               (struct store_prefetch_hint){.by_rank = true, .from_end = from_end, .rank = rank});
    must(found && memcmp(found, name, BYTES) == 0, "rank %u is %.8s, not %s", rank,
         found ? found : "nowhere", name);
}

static void ways_lead_where_look_ups_do(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    struct met met, packed;
    char name[BYTES + 1];
    rig_open_on(&rig, medium);
    fill(&rig);
    make_key(&rig, &met.key, "trees");
    make_key(&rig, &packed.key, "packed");
    for (uint32_t i = 0; i < ENTRIES; i += 97) {
        struct store_prefetch_hint hint = {.tree = STORE_HINT_LAST};
        name_by_hash(i, name);
        memcpy(hint.bytes, name, BYTES);
        const char *found = met_by(&rig, &met, hint);
        must(found && memcmp(found, name, BYTES) == 0, "%s is %.8s", name, found ? found : "gone");
        must(!met_by(&rig, &packed, hint), "an item without trees has something");
        must_lead_to_rank(&rig, &met, i, false);
        must_lead_to_rank(&rig, &met, i, true);
    }
    must(!met_by(&rig, &met, (struct store_prefetch_hint){.by_rank = true, .rank = ENTRIES}),
         "too far");
    must(!met_by(&rig, &met, (struct store_prefetch_hint){.tree = 1, .bytes = "~~~~~~~"}),
         "behind all");
    rig_end(&rig, medium);
}

static void keys_with_trees_are_told(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    struct store_key keys[70];
    rig_open_on(&rig, medium);
    fill(&rig);
    for (uint32_t i = 0; i < 70; i++)
        make_key(&rig, &keys[i], i % 7 == 3 ? "trees" : i % 7 == 5 ? "packed" : "absent");
    uint64_t found = store_prefetch(rig.workers[0], keys, 70);
    for (uint32_t i = 0; i < 64; i++)
        must((found >> i & 1) == (i % 7 == 3), "key %u: %u", i, (unsigned)(found >> i & 1));
    rig_end(&rig, medium);
}

static void what_is_not_in_memory_stays_there(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 1);
    struct met met;
    struct store_stats before, after;
    rig_open_on(&rig, medium);
    fill(&rig);
    rig_reopen(&rig, medium);
    make_key(&rig, &met.key, "trees");
    store_stats(rig.store, &before);
    must(!met_by(&rig, &met, (struct store_prefetch_hint){.by_rank = true}),
         "it was not in memory");
    rig_run(&rig, 20);
    store_stats(rig.store, &after);
    must(after.pages_read == before.pages_read, "pages were read");
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_lead_where_look_ups_do),
        cmocka_unit_test(keys_with_trees_are_told),
        cmocka_unit_test(what_is_not_in_memory_stays_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
