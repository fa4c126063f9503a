/* Bit rot: each byte of what is on disk is changed in turn. The damage is detected, counted,
 * logged and never served as a value; the rest stays available, or the store is not opened and
 * says what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/format/format.h"
#include "storage/journal/journal.h"
#include "tests/storage/fault_disk.h"

#define LATER_MS 4000000000000ll
#define LARGE_BYTES ((8u << 20) + 300000) /* more extents than a root names: there are nodes */

/* The same medium with one byte changed. */
static struct medium *rotten(const struct medium *medium, const char *file, uint64_t offset,
                             uint8_t mask)
{
    struct medium *copy = medium_copy(medium);
    medium_flip(copy, file, offset, mask);
    return copy;
}

/* Where to begin with every so many bytes: of several runs each has others. */
static uint64_t first_of(const char *test, uint64_t step)
{
    struct rng rng = {rng_seed(test)};
    return rng_below(&rng, (uint32_t)step);
}

/* ---- items ---- */

static void rot_at_the_start(struct rig *rig, const struct medium *medium, uint64_t offset,
                             uint8_t mask)
{
    struct medium *copy = rotten(medium, "slabs-00", offset, mask);
    rig_open_on(rig, copy);
    must(rig_damaged(rig) == 1 && rig->warnings == 1, "byte %llu: %llu are counted",
         (unsigned long long)offset, (unsigned long long)rig_damaged(rig));
    must(has_value(rig, "hurt", NULL), "byte %llu: it is served", (unsigned long long)offset);
    must(has_value(rig, "well", "value-left-alone"), "the rest is not served");
    must(do_set(rig, "hurt", "healed") == STORE_OK, "set");
    rig_crash(rig, copy);
    rig_open_on(rig, copy);
    must(has_value(rig, "hurt", "healed"), "byte %llu: the new value is gone",
         (unsigned long long)offset);
    rig_end(rig, copy);
}

static void rot_while_it_runs(struct rig *rig, const struct medium *medium, uint64_t offset,
                              uint8_t mask)
{
    struct medium *copy = medium_copy(medium);
    enum store_result result;
    rig_open_on(rig, copy);
    medium_flip(copy, "slabs-00", offset, mask);
    must(!do_get(rig, "hurt", &result) && result == STORE_DAMAGED, "byte %llu: reading gives %d",
         (unsigned long long)offset, result);
    must(rig_damaged(rig) == 1 && rig->warnings == 1, "byte %llu: it is not counted",
         (unsigned long long)offset);
    must(has_value(rig, "well", "value-left-alone"), "the rest is not served");
    rig_end(rig, copy);
}

static void any_byte_of_an_item(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin_scanned(&rig);
    must(do_set(&rig, "well", "value-left-alone") == STORE_OK, "set");
    put_until(&rig, "hurt", "value-to-be-hurt", LATER_MS);
    rig_close_well(&rig);
    uint64_t key = medium_find(medium, "slabs-00", "hurtvalue-to-be-hurt", 20);
    must(key != UINT64_MAX, "the item is not in its file");
    uint64_t first = key - sizeof(struct format_item) - 8;
    for (uint64_t offset = first; offset < key + 20; offset++) {
        rot_at_the_start(&rig, medium, offset, 1);
        rot_at_the_start(&rig, medium, offset, 0x80);
        rot_while_it_runs(&rig, medium, offset, 1);
        rot_while_it_runs(&rig, medium, offset, 0x40);
    }
    medium_free(medium);
}

/* ---- headers of segments ---- */

/* One copy of the header does, and the other one is mended. */
static void rot_one_header(struct rig *rig, const struct medium *medium, uint64_t offset)
{
    struct medium *copy = rotten(medium, "slabs-00", offset, 4);
    rig_open_on(rig, copy);
    must(rig->warnings == 1, "byte %llu is not noticed", (unsigned long long)offset);
    must(rig_damaged(rig) == 0 && has_value(rig, "hurt", "small"), "byte %llu: it is not served",
         (unsigned long long)offset);
    rig_reopen(rig, copy);
    must(rig->warnings == 0 && has_value(rig, "hurt", "small"), "byte %llu: it was not mended",
         (unsigned long long)offset);
    rig_end(rig, copy);
}

/* What came later is not lost with what the segment held. */
static void rot_both_headers(struct rig *rig, const struct medium *medium, uint64_t offset,
                             const struct blob *well)
{
    struct medium *copy = rotten(medium, "slabs-00", offset, 4);
    enum store_result result;
    medium_flip(copy, "slabs-00", FORMAT_SEGMENT_COPY + offset, 4);
    rig_open_on(rig, copy);
    must(rig_damaged(rig) == 1 && rig->warnings == 1, "byte %llu is not noticed",
         (unsigned long long)offset);
    must(has_value(rig, "hurt", NULL), "hurt");
    struct blob *found = do_get(rig, "well", &result);
    must(found && memcmp(found->bytes, well->bytes, well->len) == 0, "the rest is not served");
    blob_unref(found);
    must(do_set(rig, "hurt", "again") == STORE_OK && do_set(rig, "new", "one") == STORE_OK, "set");
    rig_crash(rig, copy);
    rig_open_on(rig, copy);
    must(has_value(rig, "hurt", "again") && has_value(rig, "new", "one"),
         "byte %llu: what came later is gone", (unsigned long long)offset);
    rig_end(rig, copy);
}

static void any_byte_of_a_slab_header(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin_scanned(&rig);
    must(do_set(&rig, "hurt", "small") == STORE_OK, "set");
    struct rng rng = {1};
    struct blob *well = blob_random(&rng, 2000); /* of another class, so in another segment */
    must(do_put(&rig, "well", blob_ref(well)) == STORE_OK, "put");
    rig_close_well(&rig);
    for (uint64_t offset = 0; offset < sizeof(struct format_segment); offset++) {
        rot_one_header(&rig, medium, offset);
        rot_one_header(&rig, medium, FORMAT_SEGMENT_COPY + offset);
        rot_both_headers(&rig, medium, offset, well);
    }
    blob_unref(well);
    medium_free(medium);
}

/* ---- large values ---- */

/* Whole, or an error; then it goes, and another one takes its place. */
static void check_large(struct rig *rig, struct medium *medium, const struct blob *value,
                        bool may_be_read, uint64_t offset)
{
    enum store_result result;
    struct rng rng = {offset};
    struct blob *found = do_get(rig, "hurt", &result);
    must(!found || (may_be_read && memcmp(found->bytes, value->bytes, value->len) == 0),
         "byte %llu: it is served", (unsigned long long)offset);
    must(found || result == STORE_DAMAGED, "byte %llu: reading gives %d",
         (unsigned long long)offset, result);
    blob_unref(found);
    must(do_delete(rig, "hurt") == STORE_OK, "byte %llu: it cannot be deleted",
         (unsigned long long)offset);
    rig_run(rig, 5); /* its runs come back */
    struct blob *another = blob_random(&rng, 500000);
    must(do_put(rig, "another", blob_ref(another)) == STORE_OK, "put");
    must(has_value(rig, "well", "value"), "the rest is not served");
    rig_reopen(rig, medium);
    found = do_get(rig, "another", &result);
    must(found && memcmp(found->bytes, another->bytes, another->len) == 0, "another: %d", result);
    must(has_value(rig, "hurt", NULL), "it has come back");
    blob_unref(found);
    blob_unref(another);
    rig_close_well(rig);
}

static struct medium *store_with_large(struct rig *rig, struct blob **value, uint64_t len)
{
    struct medium *medium = rig_begin_scanned(rig);
    struct rng rng = {3};
    *value = blob_random(&rng, len);
    must(do_set(rig, "well", "value") == STORE_OK, "set");
    must(do_put(rig, "hurt", blob_ref(*value)) == STORE_OK, "put");
    rig_close_well(rig);
    return medium;
}

/* The item with the descriptors: of no use with any byte changed. Its runs are lost then, no more.
 */
static void any_byte_of_a_root(void **state)
{
    (void)state;
    struct rig rig;
    struct blob *value;
    struct medium *medium = store_with_large(&rig, &value, 300000);
    struct format_root root = {.length = value->len, .count = 3};
    uint64_t at = medium_find(medium, "slabs-00", &root, sizeof root);
    must(at != UINT64_MAX, "the root is not in its file");
    uint64_t first = at - 4 - sizeof(struct format_item);
    uint64_t end = at + sizeof root + 3 * sizeof(struct format_extent);
    for (uint64_t offset = first; offset < end; offset++) {
        struct medium *copy = rotten(medium, "slabs-00", offset, 1);
        rig_open_on(&rig, copy);
        must(rig_damaged(&rig) == 1 && rig.warnings == 1, "byte %llu: %llu are counted",
             (unsigned long long)offset, (unsigned long long)rig_damaged(&rig));
        must(has_value(&rig, "hurt", NULL), "byte %llu: it is served", (unsigned long long)offset);
        must(do_put(&rig, "hurt", blob_ref(value)) == STORE_OK, "put");
        check_large(&rig, copy, value, true, offset);
        medium_free(copy);
    }
    blob_unref(value);
    medium_free(medium);
}

static void any_byte_of_an_extent_header(void **state)
{
    (void)state;
    struct rig rig;
    struct blob *value;
    struct medium *medium = store_with_large(&rig, &value, 300000);
    for (uint64_t offset = 0; offset < sizeof(struct format_segment); offset++) {
        struct medium *copy = rotten(medium, "extents", offset, 4);
        bool both = offset % 2;
        if (both)
            medium_flip(copy, "extents", FORMAT_SEGMENT_COPY + offset, 4);
        rig_open_on(&rig, copy);
        must((rig_damaged(&rig) > 0) == both && rig.warnings > 0, "byte %llu is not noticed",
             (unsigned long long)offset);
        check_large(&rig, copy, value, true, offset);
        medium_free(copy);
    }
    blob_unref(value);
    medium_free(medium);
}

static void some_bytes_of_an_extent(void **state)
{
    (void)state;
    struct rig rig;
    struct blob *value;
    struct medium *medium = store_with_large(&rig, &value, 20000);
    uint64_t first = medium_find(medium, "extents", value->bytes, 64);
    must(first != UINT64_MAX, "the value is not in its file");
    for (uint64_t offset = first_of("extent", 397); offset < value->len; offset += 397) {
        struct medium *copy = rotten(medium, "extents", first + offset, 2);
        rig_open_on(&rig, copy);
        check_large(&rig, copy, value, false, offset);
        medium_free(copy);
    }
    blob_unref(value);
    medium_free(medium);
}

/* A node is the page that begins with the descriptor of the value's first extent. */
static uint64_t find_node(struct medium *medium, const struct blob *value)
{
    uint64_t first = medium_find(medium, "extents", value->bytes, 64);
    struct format_extent extent = {.page = (uint32_t)(first / PAGE_SIZE),
                                   .length = FORMAT_EXTENT_BYTES,
                                   .checksum = format_checksum(value->bytes, FORMAT_EXTENT_BYTES)};
    return medium_find(medium, "extents", &extent, sizeof extent);
}

static void some_bytes_of_a_node(void **state)
{
    (void)state;
    struct rig rig;
    struct blob *value;
    struct medium *medium = store_with_large(&rig, &value, LARGE_BYTES);
    uint64_t node = find_node(medium, value);
    must(node != UINT64_MAX, "the node is not in its file");
    for (uint64_t offset = first_of("node", 331); offset < PAGE_SIZE; offset += 331) {
        struct medium *copy = rotten(medium, "extents", node + offset, 2);
        rig_open_on(&rig, copy);
        must(rig_damaged(&rig) == 1 && rig.warnings == 1, "byte %llu is not noticed",
             (unsigned long long)offset);
        check_large(&rig, copy, value, false, offset);
        medium_free(copy);
    }
    blob_unref(value);
    medium_free(medium);
}

/* What cannot be read at the start is not taken for damaged, and its extents not for free. */
static void a_node_that_cannot_be_read_now(void **state)
{
    (void)state;
    struct rig rig;
    struct blob *value;
    enum store_result result;
    struct medium *medium = store_with_large(&rig, &value, LARGE_BYTES);
    struct disk *disk = medium_disk(medium);
    uint32_t headers = (uint32_t)(medium_size(medium, "extents") / SEGMENT_BYTES);
    medium_fail(medium, FAULT_READ, "extents", headers + 1, EIO, false);
    must(rig_open(&rig, disk) == STORE_IO, "it is opened without the node");
    rig_open_on(&rig, medium);
    struct blob *found = do_get(&rig, "hurt", &result);
    must(found && memcmp(found->bytes, value->bytes, value->len) == 0, "the value: %d", result);
    blob_unref(found);
    blob_unref(value);
    rig_end(&rig, medium);
}

/* ---- large collections ---- */

#define ENTRIES 300u
#define ENTRY_LEN 11u

struct visit {
    struct store_request request;
    struct store_key key;
    char names[ENTRIES][16];
    uint32_t seen;
    bool finished;
    enum store_result result;
};

static enum store_result fill_tree(struct store_txn *txn, struct store_request *request)
{
    struct visit *visit = (struct visit *)request;
    struct store_item item;
    struct store_tree *tree;
    struct store_cursor cursor;
    enum store_result result = store_tree_create(txn, &visit->key, 1, 1, STORE_NO_EXPIRY);
    if (result == STORE_OK)
        result = store_get(txn, &visit->key, &item);
    if (result == STORE_OK)
        result = store_tree_open(txn, &visit->key, &item, 0, &tree);
    for (uint32_t i = 0; i < ENTRIES && result == STORE_OK; i++) {
        snprintf(visit->names[i], sizeof visit->names[i], "entry:%05u", i);
        result = store_tree_seek_rank(tree, i, &cursor);
        if (result == STORE_OK)
            result = store_tree_insert(&cursor, visit->names[i], ENTRY_LEN, visit->names[i], 16);
    }
    return result;
}

/* From the start, as far as it can be read. */
static enum store_result walk_tree(struct store_txn *txn, struct store_request *request)
{
    struct visit *visit = (struct visit *)request;
    struct store_item item;
    struct store_tree *tree;
    struct store_cursor cursor;
    struct store_entry entry;
    visit->seen = 0;
    enum store_result result = store_get(txn, &visit->key, &item);
    if (result == STORE_OK)
        result = store_tree_open(txn, &visit->key, &item, 0, &tree);
    if (result == STORE_OK)
        result = store_tree_seek_rank(tree, 0, &cursor);
    while (result == STORE_OK && (result = store_tree_get(&cursor, &entry)) == STORE_OK) {
        char name[16];
        snprintf(name, sizeof name, "entry:%05u", visit->seen++);
        must(entry.key_len == ENTRY_LEN && memcmp(entry.key, name, ENTRY_LEN) == 0 &&
                 entry.value.length == 16 && memcmp(entry.value.bytes, name, ENTRY_LEN) == 0,
             "an entry is served that is another");
        result = store_tree_next(&cursor);
    }
    return result == STORE_ABSENT ? STORE_OK : result;
}

static void visited(struct store_request *request, enum store_result result)
{
    struct visit *visit = (struct visit *)request;
    visit->finished = true;
    visit->result = result;
}

static enum store_result visit_tree(struct rig *rig, struct visit *visit,
                                    enum store_result (*run)(struct store_txn *,
                                                             struct store_request *))
{
    store_key(rig->store, &visit->key, 0, "hurt", 4, STORE_EXCLUSIVE);
    visit->request = (struct store_request){
        .run = run, .done = visited, .keys = &visit->key, .key_count = 1, .now_ms = 1};
    visit->finished = false;
    enum store_result result = store_execute(rig->workers[0], &visit->request);
    if (result != STORE_WAIT)
        visited(&visit->request, result);
    while (!visit->finished)
        rig_round(rig);
    return visit->result;
}

/* All of the header, and then every 89th. */
static uint64_t next_offset(uint64_t offset, uint64_t later)
{
    return offset < 60 ? offset + 1 : offset < later ? later : offset + 89;
}

/* The page's bytes at every so often; the collection can still be given up. */
static void rot_tree_page(struct rig *rig, const struct medium *medium, struct visit *visit,
                          uint64_t page)
{
    uint64_t later = 60 + first_of("collection", 89);
    for (uint64_t offset = 0; offset < PAGE_SIZE; offset = next_offset(offset, later)) {
        struct medium *copy = medium_copy(medium);
        bool running = offset % 2;
        if (running)
            rig_open_on(rig, copy);
        medium_flip(copy, "slabs-00", page + offset, 0x10);
        if (!running)
            rig_open_on(rig, copy);
        enum store_result result = visit_tree(rig, visit, walk_tree);
        must(result == STORE_DAMAGED, "byte %llu: walking gives %d", (unsigned long long)offset,
             result);
        must(rig_damaged(rig) > 0 && rig->warnings > 0, "byte %llu is not counted",
             (unsigned long long)offset);
        must(do_delete(rig, "hurt") == STORE_OK, "it cannot be deleted");
        rig_run(rig, 3);
        must(has_value(rig, "well", "value"), "the rest is not served");
        rig_reopen(rig, copy);
        must(has_value(rig, "hurt", NULL) && has_value(rig, "well", "value"), "opened again");
        rig_end(rig, copy);
    }
}

static void some_bytes_of_a_collection(void **state)
{
    (void)state;
    struct rig rig;
    struct visit visit;
    struct medium *medium = rig_begin_scanned(&rig);
    must(do_set(&rig, "well", "value") == STORE_OK, "set");
    must(visit_tree(&rig, &visit, fill_tree) == STORE_OK, "filling: %d", visit.result);
    must(visit_tree(&rig, &visit, walk_tree) == STORE_OK && visit.seen == ENTRIES, "walking");
    rig_close_well(&rig);
    uint64_t leaf = medium_find(medium, "slabs-00", visit.names[ENTRIES / 2], ENTRY_LEN);
    must(leaf != UINT64_MAX, "the entry is not in its file");
    rot_tree_page(&rig, medium, &visit, leaf / PAGE_SIZE * PAGE_SIZE);
    medium_free(medium);
}

/* ---- the superblock ---- */

/* With one copy damaged: all of it is there, or the store is not opened. How often it was, of
 * SUPER_TRIES times. */
#define SUPER_STEP 3u
#define SUPER_TRIES (2 * (uint32_t)sizeof(struct format_superblock) / SUPER_STEP)
static uint32_t rot_superblock(struct rig *rig, const struct medium *medium, const char *value,
                               uint32_t first)
{
    uint32_t opened = 0;
    for (uint32_t copy = 0; copy < 2; copy++)
        for (uint32_t offset = first; offset < sizeof(struct format_superblock);
             offset += SUPER_STEP) {
            struct medium *hurt = rotten(medium, "superblock", copy * PAGE_SIZE + offset, 1);
            enum store_result result = rig_open(rig, medium_disk(hurt));
            must(result == STORE_OK || (result == STORE_CORRUPT && strstr(rig->message, "backup")),
                 "byte %u of copy %u: %d, %s", offset, copy, result, rig->message);
            must(rig->warnings > 0 && strstr(rig->last_warning, "superblock"),
                 "byte %u of copy %u is not noticed", offset, copy);
            if (result == STORE_OK) {
                opened++;
                must(has_value(rig, "key", value), "byte %u of copy %u: a commit is gone", offset,
                     copy);
                rig_close_well(rig);
            }
            medium_free(hurt);
        }
    return opened;
}

static void any_byte_of_a_superblock(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin_scanned(&rig);
    must(do_set(&rig, "key", "first") == STORE_OK, "set");
    rig_close_well(&rig);
    struct medium *clean = medium_copy(medium), *changed = medium_copy(medium);
    rig_open_on(&rig, changed);
    must(do_set(&rig, "key", "second") == STORE_OK, "set");
    rig_crash(&rig, changed);
    rig_open_on(&rig, medium);
    rig_crash(&rig, medium);
    struct medium *unchanged = medium_copy(medium);
    rig_open_on(&rig, medium);
    must(do_set(&rig, "key", "second") == STORE_OK, "set");
    rig_crash(&rig, medium);
    for (uint32_t first = 0; first < SUPER_STEP; first++) {
        if (first == 0) {
            must(rot_superblock(&rig, clean, "first", first) == SUPER_TRIES,
                 "one copy should do after a clean stop");
            must(rot_superblock(&rig, unchanged, "first", first) == SUPER_TRIES,
                 "one copy should do where nothing is new");
            must(rot_superblock(&rig, changed, "second", first) == SUPER_TRIES / 2,
                 "the copy of the stop knows nothing of what came behind");
        }
        must(rot_superblock(&rig, medium, "second", first) == SUPER_TRIES / 2,
             "the older copy knows nothing of the last start");
    }
    medium_free(clean);
    medium_free(changed);
    medium_free(unchanged);
    medium_free(medium);
}

/* ---- the journal ---- */

#define GROUPS 5u

/* Where the group stands that was written so many before the newest one. */
static uint64_t find_group(struct medium *medium, uint64_t before, struct format_group *group)
{
    uint64_t newest = 0, found = UINT64_MAX, size = medium_size(medium, "journal");
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint64_t at = 0; at < size; at += PAGE_SIZE) {
            struct format_group candidate;
            medium_peek(medium, "journal", at, &candidate, sizeof candidate);
            if (candidate.magic != FORMAT_GROUP_MAGIC)
                continue;
            if (pass == 0 && candidate.sequence > newest)
                newest = candidate.sequence;
            if (pass == 1 && candidate.sequence == newest - before) {
                *group = candidate;
                found = at;
            }
        }
    must(found != UINT64_MAX, "there is no group %llu before the newest",
         (unsigned long long)before);
    return found;
}

static void expect_refusal(struct rig *rig, struct medium *medium, uint64_t offset)
{
    enum store_result result = rig_open(rig, medium_disk(medium));
    must(result == STORE_CORRUPT, "byte %llu: opening gives %d", (unsigned long long)offset,
         result);
    must(strstr(rig->message, "journal is damaged") && strstr(rig->message, "backup"),
         "the message is: %s", rig->message);
}

/* In front of other groups it is noticed: nothing is opened, nothing changed. */
static void rot_group(struct rig *rig, const struct medium *medium, uint64_t offset,
                      const char *value)
{
    struct medium *copy = rotten(medium, "journal", offset, 8);
    expect_refusal(rig, copy, offset);
    medium_flip(copy, "journal", offset, 8);
    rig_open_on(rig, copy);
    must(has_value(rig, "key", value), "the refusal has changed something");
    rig_end(rig, copy);
}

/* The last one looks as if the power had gone while it was written: it does not count. */
static void rot_last_group(struct rig *rig, const struct medium *medium, uint64_t offset,
                           const char *value)
{
    struct medium *copy = rotten(medium, "journal", offset, 8);
    rig_open_on(rig, copy);
    must(has_value(rig, "key", value), "byte %llu: not the one before", (unsigned long long)offset);
    rig_end(rig, copy);
}

static void any_byte_of_a_group(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin_scanned(&rig);
    char value[32] = "", before[32] = "";
    for (uint32_t i = 0; i < GROUPS; i++) {
        memcpy(before, value, sizeof before);
        snprintf(value, sizeof value, "value %u", i);
        must(do_set(&rig, "key", value) == STORE_OK, "set");
    }
    rig_crash(&rig, medium);
    struct format_group group;
    for (uint64_t behind = 0; behind < GROUPS; behind++) {
        uint64_t first = find_group(medium, behind, &group), step = behind == 2 ? 1 : 5;
        for (uint64_t at = first; at < first + group.length; at += step)
            if (behind == 0)
                rot_last_group(&rig, medium, at, before);
            else
                rot_group(&rig, medium, at, value);
    }
    medium_free(medium);
}

/* The first group of many pages from the journal's tail on; how long a group becomes depends on how
 * long the one before it takes. */
static uint64_t find_long_group(struct medium *medium, struct format_group *group)
{
    struct format_superblock copies[2];
    for (uint32_t i = 0; i < 2; i++)
        medium_peek(medium, "superblock", i * PAGE_SIZE, &copies[i], sizeof copies[i]);
    const struct format_superblock *super = &copies[copies[1].sequence > copies[0].sequence];
    uint64_t at = super->tail_position, sequence = super->tail_sequence;
    for (;;) {
        medium_peek(medium, "journal", at, group, sizeof *group);
        bool follows = group->magic == FORMAT_GROUP_MAGIC && group->sequence == sequence;
        if (follows && group->length > 50 * PAGE_SIZE)
            return at;
        must(follows || at > 0, "there is no long group");
        at = follows ? at + journal_padded(group->length) : 0;
        sequence += follows;
        if (at == medium_size(medium, "journal"))
            at = 0;
    }
}

/* Groups of many pages; and one that a whole lap of the ring stands in front of. */
static void some_bytes_of_long_groups(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin_scanned(&rig);
    rig.options.sync = STORE_SYNC_NO;
    must(do_set(&rig, "key", "first") == STORE_OK, "set"); /* its segment is there */
    store_set_sync(rig.store, STORE_SYNC_NO);
    for (uint32_t i = 0; i < 2000; i++) {
        struct call *call = call_new();
        struct rng rng = {i};
        call_step(call, STEP_PUT, call_key(call, 0, 0, "other", 5))->blob = blob_random(&rng, 3900);
        call_start(rig.workers[0], call);
        call_wait(&rig, call);
        call_free(call);
    }
    medium_hold(medium, FAULT_WRITE, "superblock", 0); /* the journal's tail stays from here on */
    store_set_sync(rig.store, STORE_SYNC_ALWAYS);
    must(do_set(&rig, "key", "last") == STORE_OK, "set");
    must(do_set(&rig, "key", "very last") == STORE_OK, "set");
    rig_crash(&rig, medium);
    struct format_group group;
    uint64_t at = find_long_group(medium, &group);
    for (uint64_t offset = 0; offset < group.length; offset += 34567)
        rot_group(&rig, medium, at + offset, "very last");
    medium_free(medium);
}

/* Each group is a page: so many sets go around the ring's end. */
static void groups_around_the_end_of_the_ring(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin_scanned(&rig);
    uint32_t pages = (uint32_t)(medium_size(medium, "journal") / PAGE_SIZE);
    struct rng rng = {1};
    struct store_stats stats = {0};
    for (uint32_t i = 0; i + 2 < pages; i++) {
        must(do_set(&rig, "key", "before") == STORE_OK, "set");
        while (i == pages / 4 * 3 && stats.checkpoints == 0) {
            rig_run(&rig, 10);
            store_stats(rig.store, &stats);
        }
        if (stats.checkpoints) /* the journal's tail stays from here on */
            medium_hold(medium, FAULT_WRITE, "superblock", 0);
    }
    for (uint32_t i = 0; i < 4; i++) /* two pages each, and so the last one of the ring stays */
        must(do_put(&rig, "wide", blob_random(&rng, 4000)) == STORE_OK, "put");
    must(do_set(&rig, "key", "behind") == STORE_OK, "set");
    rig_crash(&rig, medium);
    struct format_group group;
    bool start = false;
    for (uint64_t behind = 1; behind < 8; behind++) {
        uint64_t at = find_group(medium, behind, &group);
        start |= at == 0;
        rot_group(&rig, medium, at + 70, "behind");
    }
    must(start, "the test's own assumption");
    medium_free(medium);
}

/* A client's value may stand at a page's start in the journal, and look like anything. */
static void what_is_not_ours_is_no_group(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin_scanned(&rig);
    char page[PAGE_SIZE] = "";
    struct format_group group;
    must(do_set(&rig, "key", "value") == STORE_OK, "set");
    rig_crash(&rig, medium);
    uint64_t at = find_group(medium, 0, &group) + 10 * PAGE_SIZE;
    group.sequence += 5;
    group.durable_commit += 100;
    group.length = PAGE_SIZE;
    group.seed ^= 1;
    group.checksum = journal_group_checksum(&group, page + sizeof group);
    memcpy(page, &group, sizeof group);
    medium_poke(medium, "journal", at, page, sizeof page);
    rig_open_on(&rig, medium);
    must(has_value(&rig, "key", "value"), "the key");
    rig_end(&rig, medium);
}

/* Kept up word by word, it must tell what a sum over words could miss. */
static void a_nodes_checksum(void **state)
{
    (void)state;
    uint64_t words[PAGE_SIZE / FORMAT_WORD];
    const uint32_t count = PAGE_SIZE / FORMAT_WORD;
    for (uint32_t i = 0; i < count; i++)
        words[i] = 1000 * i;
    uint32_t sum = format_node_checksum(words);
    words[0] ^= UINT32_MAX;
    must(format_node_checksum(words) == sum, "it counts itself");
    words[0] ^= UINT32_MAX;
    for (uint32_t bit = 32; bit < 8 * PAGE_SIZE; bit += 61) {
        words[bit / 64] ^= 1ull << bit % 64;
        must(format_node_checksum(words) != sum, "bit %u", bit);
        words[bit / 64] ^= 1ull << bit % 64;
    }
    for (uint32_t i = 1; i + 1 < count; i++) {
        uint64_t kept[2] = {words[i], words[i + 1]};
        words[i] = kept[1];
        words[i + 1] = kept[0];
        must(format_node_checksum(words) != sum, "words %u and %u in each other's place", i, i + 1);
        words[i] = kept[0] + 1;
        words[i + 1] = kept[1] - 1;
        must(format_node_checksum(words) != sum, "one more in word %u, one less behind it", i);
        words[i] = kept[0];
        words[i + 1] = kept[1];
    }
    must(format_node_checksum(words) == sum, "all is as it was");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nodes_checksum),
        cmocka_unit_test(any_byte_of_an_item),
        cmocka_unit_test(any_byte_of_a_slab_header),
        cmocka_unit_test(any_byte_of_a_root),
        cmocka_unit_test(any_byte_of_an_extent_header),
        cmocka_unit_test(some_bytes_of_an_extent),
        cmocka_unit_test(some_bytes_of_a_node),
        cmocka_unit_test(a_node_that_cannot_be_read_now),
        cmocka_unit_test(some_bytes_of_a_collection),
        cmocka_unit_test(any_byte_of_a_superblock),
        cmocka_unit_test(any_byte_of_a_group),
        cmocka_unit_test(some_bytes_of_long_groups),
        cmocka_unit_test(groups_around_the_end_of_the_ring),
        cmocka_unit_test(what_is_not_ours_is_no_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
