/* The index checkpoint: a start that loads it knows what a scan would have found; one that finds
 * anything in doubt scans, and the store is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "storage/txn/engine.h"
#include "tests/storage/workload.h"

#define LATER_MS 4000000000000ll
#define FIRST_PARTITION (sizeof(struct format_index_block) + sizeof(struct format_index_head))

static bool open_rig(struct rig *rig, struct medium *medium)
{
    struct store_stats stats;
    rig_open_on(rig, medium);
    store_stats(rig->store, &stats);
    return stats.is_loaded;
}

static void crash(struct rig *rig, struct medium *medium)
{
    medium_set_fate(medium, FATE_KEPT);
    medium_cut_now(medium);
    must(rig_close(rig) != STORE_OK, "closing without power");
}

/* Three keys: small, with an expiry, large. */
static struct medium *small_store(struct rig *rig, uint64_t seed)
{
    struct medium *medium = medium_new(seed);
    struct rng rng = {seed};
    rig_defaults(rig);
    open_rig(rig, medium);
    must(do_set(rig, "small", "value") == STORE_OK, "set");
    put_until(rig, "mortal", "for long", LATER_MS);
    must(do_put(rig, "large", blob_random(&rng, 300000)) == STORE_OK, "put");
    return medium;
}

static void expect_small_store(struct rig *rig)
{
    enum store_result result;
    struct blob *large = do_get(rig, "large", &result);
    must(has_value(rig, "small", "value") && has_value(rig, "mortal", "for long"), "values");
    must(large && large->len == 300000, "the large value");
    must(store_db_stats(rig->store, 0).keys == 3 && store_db_stats(rig->store, 0).expires == 1,
         "counts");
    blob_unref(large);
}

static struct medium *stopped_store(struct rig *rig, uint64_t seed)
{
    struct medium *medium = small_store(rig, seed);
    rig_close_well(rig);
    return medium;
}

/* ---- it says what a scan finds ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The cells, without their lowest bits, in an order of their own. */
static uint64_t *cells_of(const struct otable *table, uint32_t drop)
{
    uint64_t *cells = malloc((table->count + 1) * sizeof *cells);
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->size; i++)
        if (table->cells[i])
            cells[count++] = table->cells[i] >> drop;
    must(count == table->count, "a table's count");
    qsort(cells, count, sizeof *cells, by_value);
    return cells;
}

static void same_tables(const struct otable *a, const struct otable *b, uint32_t drop)
{
    must(a->count == b->count, "%u entries are %u", b->count, a->count);
    uint64_t *x = cells_of(a, drop), *y = cells_of(b, drop);
    must(memcmp(x, y, a->count * sizeof *x) == 0, "other entries");
    free(x);
    free(y);
}

static void same_page_file(const struct page_file *a, const struct page_file *b)
{
    must(a->segment_assigned == b->segment_assigned, "segments");
    for (uint32_t i = 0; i < a->segment_assigned; i++) {
        size_t at = (size_t)i * SEGMENT_PAGES;
        must(a->segment_class[i] == b->segment_class[i] && a->segment_free[i] == b->segment_free[i],
             "segment %u of space %u", i, a->id);
        must(memcmp(&a->free_slots[at], &b->free_slots[at], SEGMENT_PAGES * 8) == 0,
             "free slots of segment %u, space %u", i, a->id);
    }
    for (uint32_t i = 0; i < PAGE_FILE_CLASS_MAX; i++)
        must(a->classes[i].free_count == b->classes[i].free_count, "class %u", i);
}

static void same_stores(const struct store *loaded, const struct store *scanned)
{
    for (uint32_t i = 0; i < loaded->partition_count; i++) {
        const struct partition *a = &loaded->partitions[i], *b = &scanned->partitions[i];
        index_check(&a->index);
        ttl_check(&a->ttl);
        page_file_check(&a->file);
        same_page_file(&a->file, &b->file);
        for (uint32_t slot = 0; slot < a->index.slot_count; slot++)
            same_tables(&a->index.tables[slot], &b->index.tables[slot], 0);
        for (uint32_t table = 0; table < TTL_TABLE_COUNT; table++)
            same_tables(&a->ttl.tables[table], &b->ttl.tables[table], 32); /* bases differ */
        for (uint32_t db = 0; db <= STORE_DB_COUNT; db++)
            must(a->databases[db].keys == b->databases[db].keys &&
                     a->databases[db].expires == b->databases[db].expires &&
                     a->databases[db].expiries == b->databases[db].expiries,
                 "counts of database %u", db);
    }
    same_page_file(&loaded->extents, &scanned->extents);
    must(loaded->recovered_items == scanned->recovered_items, "items");
}

static void compare_with_a_scan(struct rig *rig, struct workload *load, struct medium *medium)
{
    struct medium *copy = medium_copy(medium);
    struct rig other = *rig;
    other.options.scans = true;
    must(!open_rig(&other, copy), "it does not scan");
    must(open_rig(rig, medium), "the checkpoint is not loaded: %s", rig->last_warning);
    same_stores(rig->store, other.store);
    rig_end(&other, copy);
    oracle_compare(load->now, rig);
}

static uint64_t entries(const struct rig *rig)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < rig->store->partition_count; i++)
        sum += index_count(&rig->store->partitions[i].index);
    return sum;
}

/* What a flush left is swept; until then it is in the index, and no scan finds it. */
static void await_sweep(struct rig *rig)
{
    uint64_t dead = 1;
    for (uint32_t i = 0; i < 1000 && dead; i++) {
        rig_run(rig, 10);
        dead = entries(rig);
        for (uint32_t partition = 0; partition < rig->store->partition_count; partition++)
            for (uint32_t db = 0; db <= STORE_DB_COUNT; db++)
                dead -= counter_read(&rig->store->partitions[partition].databases[db].keys);
    }
    must(!dead, "%llu dead items stay in the index", (unsigned long long)dead);
    rig_run(rig, 200); /* what they gave up is free */
}

static void loading_is_as_good_as_scanning(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("index");
    struct medium *medium = medium_new(seed);
    struct rig rig;
    struct workload load;
    uint32_t loaded = 0;
    rig_defaults(&rig);
    workload_init(&load, &rig, seed);
    load.large_percent = 10;
    load.alone_permille = 5;
    for (uint32_t life = 0; life < 6; life++) {
        if (life == 0)
            open_rig(&rig, medium);
        for (uint32_t i = 0; i < 400; i++)
            workload_step(&load);
        workload_drain(&load);
        await_sweep(&rig);
        rig_close_well(&rig);
        workload_settle(&load);
        compare_with_a_scan(&rig, &load, medium);
        loaded++;
    }
    rig_close_well(&rig);
    workload_free(&load);
    medium_free(medium);
}

/* ---- doubts ---- */

/* It scans, everything is there, and the next stop's checkpoint is good again. */
static void expect_a_scan(struct rig *rig, struct medium *medium, const char *why, uint64_t where)
{
    must(!open_rig(rig, medium), "%s (%llu): it is believed", why, (unsigned long long)where);
    expect_small_store(rig);
    rig_close_well(rig);
    must(open_rig(rig, medium), "%s: the next one is not loaded", why);
    expect_small_store(rig);
    rig_end(rig, medium);
}

/* Bytes of the file up to the last that is not zero. */
static uint64_t used_bytes(struct medium *medium)
{
    uint64_t size = medium_size(medium, "index");
    char *bytes = malloc(size);
    medium_peek(medium, "index", 0, bytes, size);
    while (size > 0 && bytes[size - 1] == 0)
        size--;
    free(bytes);
    return size;
}

static void any_bit_flipped(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = stopped_store(&rig, 1);
    uint64_t used = used_bytes(medium), step = used / 150;
    struct rng rng = {rng_seed("bits")}; /* of several runs each has others */
    uint64_t later = 80 + rng_below(&rng, (uint32_t)step);
    for (uint64_t at = 0; at < used; at = at < 80 ? at + 1 : at < later ? later : at + step) {
        struct medium *copy = medium_copy(medium);
        medium_flip(copy, "index", at, (uint8_t)(1u << at % 8));
        expect_a_scan(&rig, copy, "flipped", at);
    }
    medium_free(medium);
}

static void truncated_anywhere(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = stopped_store(&rig, 2);
    uint64_t used = used_bytes(medium);
    for (uint64_t size = 0; size < used; size += PAGE_SIZE) {
        struct medium *copy = medium_copy(medium);
        medium_shorten(copy, "index", size);
        expect_a_scan(&rig, copy, "truncated", size);
    }
    medium_free(medium);
}

/* Some sectors are of the new file, some of the one before. */
static void torn_anywhere(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = stopped_store(&rig, 3);
    uint64_t used = used_bytes(medium), len = (used + 511) / 512 * 512;
    char *older = malloc(len), *newer = malloc(len);
    medium_peek(medium, "index", 0, older, len);
    must(open_rig(&rig, medium), "the checkpoint is not loaded");
    rig_close_well(&rig);
    medium_peek(medium, "index", 0, newer, len);
    for (uint64_t at = 0; at < len; at += 512) {
        bool differs = memcmp(older + at, newer + at, 512) != 0;
        struct medium *copy = medium_copy(medium);
        medium_poke(copy, "index", at, older + at, 512);
        if (differs)
            expect_a_scan(&rig, copy, "torn", at);
        else
            medium_free(copy);
    }
    free(older);
    free(newer);
    medium_free(medium);
}

static void of_an_earlier_stop(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = stopped_store(&rig, 4);
    uint64_t size = medium_size(medium, "index");
    char *older = malloc(size);
    medium_peek(medium, "index", 0, older, size);
    must(open_rig(&rig, medium), "the checkpoint is not loaded");
    rig_close_well(&rig);
    medium_poke(medium, "index", 0, older, size);
    free(older);
    expect_a_scan(&rig, medium, "stale", 0);
}

/* Blocks of which each is whole, but not all are of one stop. */
static void of_two_stops(void **state)
{
    (void)state;
    static char older[FORMAT_INDEX_BLOCK];
    struct rig rig;
    struct medium *medium = small_store(&rig, 14);
    char key[16];
    for (uint32_t i = 0; i < 9000; i++) {
        snprintf(key, sizeof key, "key:%u", i);
        must(do_set(&rig, key, "value") == STORE_OK, "set");
    }
    rig_close_well(&rig);
    must(used_bytes(medium) > FORMAT_INDEX_BLOCK + 1000, "it is one block");
    medium_peek(medium, "index", FORMAT_INDEX_BLOCK, older, sizeof older);
    must(open_rig(&rig, medium), "the checkpoint is not loaded");
    rig_close_well(&rig);
    medium_poke(medium, "index", FORMAT_INDEX_BLOCK, older, sizeof older);
    must(!open_rig(&rig, medium), "it is believed");
    must(entries(&rig) == 9003 && has_value(&rig, "key:8999", "value"), "keys");
    rig_end(&rig, medium);
}

static void of_another_store(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = stopped_store(&rig, 5), *other = stopped_store(&rig, 5);
    uint64_t size = medium_size(other, "index");
    char *bytes = malloc(size);
    medium_peek(other, "index", 0, bytes, size);
    medium_poke(medium, "index", 0, bytes, size);
    free(bytes);
    medium_free(other);
    expect_a_scan(&rig, medium, "another store's", 0);
}

/* Its first partition's numbers, under a right checksum. */
static void put_wrong(struct medium *medium, const struct format_index_page_file *wrong)
{
    static char block[FORMAT_INDEX_BLOCK];
    struct format_index_block *head = (struct format_index_block *)block;
    struct format_superblock copies[2];
    for (uint32_t i = 0; i < 2; i++)
        medium_peek(medium, "superblock", i * PAGE_SIZE, &copies[i], sizeof copies[i]);
    medium_peek(medium, "index", 0, block, sizeof block);
    memcpy(block + FIRST_PARTITION, wrong, sizeof *wrong);
    head->checksum = XXH3_64bits_withSeed(
        &head->number, sizeof *head - sizeof head->checksum + head->length,
        XXH3_64bits_withSeed(head + 1, sizeof(struct format_index_head), copies[0].seed));
    medium_poke(medium, "index", 0, block, sizeof block);
}

/* A wrong time base would let keys be named as expired for ever, or never; wrong counts of keys
 * that expire would wrap around. */
static void with_wrong_counts(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = small_store(&rig, 16);
    struct format_index_page_file right;
    char key[16];
    for (uint32_t i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "key:%u", i);
        must(do_set(&rig, key, "value") == STORE_OK, "set");
    }
    rig_close_well(&rig);
    medium_peek(medium, "index", FIRST_PARTITION, &right, sizeof right);
    must(right.is_swept && right.databases[0].keys > right.databases[0].expires,
         "the test's own assumption");
    for (uint32_t i = 0; i < 6; i++) {
        struct format_index_page_file wrong = right;
        wrong.expiry_base_ms = i == 0 ? -5000 : i == 1 ? INT64_MAX / 2 : right.expiry_base_ms;
        wrong.databases[0].expires += i == 2 ? 1 : i == 3 ? -1ull : 0;
        wrong.databases[3].expires += i == 4 ? 7 : 0;
        wrong.databases[0].expiries += i == 5 ? 1ull << 60 : 0;
        struct medium *copy = medium_copy(medium);
        put_wrong(copy, &wrong);
        must(!open_rig(&rig, copy), "%u: it is believed", i);
        must(entries(&rig) == 23 && has_value(&rig, "key:0", "value"), "%u: the keys", i);
        rig_end(&rig, copy);
    }
    put_wrong(medium, &right);
    must(open_rig(&rig, medium), "the right one is not loaded");
    rig_end(&rig, medium);
}

/* The copy that says that the store has gone on is lost; the other one is that of the stop. */
static void lose_a_superblock(uint32_t page, bool lost, bool changed)
{
    static const char blank[PAGE_SIZE];
    struct rig rig;
    struct medium *medium = stopped_store(&rig, 6);
    must(open_rig(&rig, medium), "the checkpoint is not loaded");
    if (changed) {
        must(do_set(&rig, "small", "value") == STORE_OK, "set");
        rig_sync(&rig, 4);
    }
    crash(&rig, medium);
    if (lost)
        medium_poke(medium, "superblock", page * PAGE_SIZE, blank, sizeof blank);
    else
        medium_flip(medium, "superblock", page * PAGE_SIZE + 40, 1);
    must(rig_open(&rig, medium_disk(medium)) != STORE_OK || !rig.store->is_loaded,
         "copy %u: an older superblock is enough", page);
    if (rig.store)
        rig_close(&rig);
    medium_free(medium);
}

static void with_one_superblock(void **state)
{
    (void)state;
    for (uint32_t page = 0; page < 2; page++)
        for (uint32_t i = 0; i < 4; i++)
            lose_a_superblock(page, i % 2, i / 2);
}

/* Nothing else knows of what is gone: the start is refused, and changes nothing. Without the
 * checkpoint it goes on with what is left. */
static void expect_refusal(struct rig *rig, const struct medium *medium, const char *file,
                           uint64_t size)
{
    struct medium *copy = medium_copy(medium);
    medium_shorten(copy, file, size);
    for (uint32_t i = 0; i < 2; i++) {
        must(rig_open(rig, medium_disk(copy)) == STORE_CORRUPT, "%s: it is opened", file);
        must(strstr(rig->message, file) && strstr(rig->message, "cut short") &&
                 strstr(rig->message, "backup"),
             "the message is: %s", rig->message);
    }
    medium_shorten(copy, "index", 0);
    must(!open_rig(rig, copy), "it is loaded");
    rig_end(rig, copy);
}

/* How much of a file is in use. */
static uint64_t bytes_in_use(struct rig *rig, const struct medium *medium, uint32_t file)
{
    struct medium *copy = medium_copy(medium);
    rig_open_on(rig, copy);
    const struct page_file *space =
        file == 4 ? &rig->store->extents : &rig->store->partitions[file].file;
    uint64_t bytes = (uint64_t)space->segment_assigned * SEGMENT_BYTES;
    rig_end(rig, copy);
    return bytes;
}

/* What it says of segments is not of these files. */
static void of_shorter_files(void **state)
{
    (void)state;
    static const char *files[] = {"slabs-00", "slabs-01", "slabs-02", "slabs-03", "extents"};
    struct rig rig;
    struct medium *medium = stopped_store(&rig, 15);
    uint32_t shortened = 0;
    for (uint32_t i = 0; i < 5; i++) {
        uint64_t used = bytes_in_use(&rig, medium, i);
        if (used == 0)
            continue;
        shortened++;
        expect_refusal(&rig, medium, files[i], used - SEGMENT_BYTES);
        expect_refusal(&rig, medium, files[i], used - PAGE_SIZE);
        if (used == medium_size(medium, files[i]))
            continue;
        struct medium *copy = medium_copy(medium); /* nothing was behind */
        medium_shorten(copy, files[i], used);
        expect_a_scan(&rig, copy, files[i], used);
    }
    must(shortened > 1, "the test's own assumption");
    medium_free(medium);
}

/* ---- crashes ---- */

static void after_the_start_that_loaded_it(void **state)
{
    (void)state;
    for (uint32_t writes = 0; writes < 2; writes++) {
        struct rig rig;
        struct medium *medium = stopped_store(&rig, 7);
        must(open_rig(&rig, medium), "the checkpoint is not loaded");
        if (writes) {
            must(do_delete(&rig, "small") == STORE_OK, "delete");
            must(do_set(&rig, "other", "value") == STORE_OK, "set");
            rig_run(&rig, 1100); /* `everysec` */
        }
        crash(&rig, medium);
        must(!open_rig(&rig, medium), "a crashed store is loaded");
        must(has_value(&rig, "small", writes ? NULL : "value"), "what was deleted");
        must(has_value(&rig, "other", writes ? "value" : NULL), "what was written");
        rig_end(&rig, medium);
    }
}

struct cuts {
    struct rig rig;
    uint32_t states, loaded;
};

static void go_on_from(void *arg, struct medium *state)
{
    struct cuts *cuts = arg;
    for (uint32_t fate = 0; fate < FATES; fate++) {
        struct medium *medium = medium_copy(state);
        medium_set_fate(medium, (enum fate)fate);
        cuts->states++;
        cuts->loaded += open_rig(&cuts->rig, medium);
        expect_small_store(&cuts->rig);
        must(do_set(&cuts->rig, "after", "it") == STORE_OK, "set");
        rig_close_well(&cuts->rig);
        must(open_rig(&cuts->rig, medium), "the next checkpoint is not loaded");
        must(has_value(&cuts->rig, "after", "it"), "what was set after the cut");
        rig_end(&cuts->rig, medium);
    }
    medium_free(state);
}

/* Whatever the power leaves of a stop, of the start that follows and of its first write. */
static void a_cut_at_any_event(void **state)
{
    (void)state;
    struct cuts cuts = {0};
    struct rig rig;
    struct medium *medium = small_store(&rig, 8);
    rig.options.sync = STORE_SYNC_ALWAYS;
    rig_defaults(&cuts.rig);
    rig_sync(&rig, 3);
    for (uint32_t i = 0; i < 2; i++) { /* a file that is made, then one that is there */
        medium_record(medium, go_on_from, &cuts);
        rig_close_well(&rig);
        must(open_rig(&rig, medium), "the checkpoint is not loaded");
        must(do_set(&rig, "small", "value") == STORE_OK, "set");
        rig_sync(&rig, 4 + i);
        medium_record(medium, NULL, NULL);
    }
    rig_end(&rig, medium);
    printf("%u states, %u of them loaded\n", cuts.states, cuts.loaded);
    must(cuts.states > 100 && cuts.loaded > 0, "%u states", cuts.states);
}

/* ---- none is written ---- */

static void not_over_damage(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = stopped_store(&rig, 9);
    for (uint32_t i = 0; i < 4; i++) {
        char file[16];
        snprintf(file, sizeof file, "slabs-%02x", i);
        uint64_t at = medium_find(medium, file, "smallvalue", 10);
        if (at != UINT64_MAX)
            medium_flip(medium, file, at + 6, 1);
    }
    rig.options.scans = true;
    for (uint32_t i = 0; i < 2; i++) { /* each start tells of it */
        must(!open_rig(&rig, medium), "loaded over damage");
        must(atomic_load(&rig.store->damaged) == 1, "the damage is not counted");
        rig_close_well(&rig);
        rig.options.scans = false;
    }
    medium_free(medium);
}

static void without_room(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = small_store(&rig, 10);
    medium_fail(medium, FAULT_EXTEND, "index", 1, ENOSPC, true);
    rig_close_well(&rig);
    medium_fail(medium, FAULT_EXTEND, NULL, 0, 0, false);
    expect_a_scan(&rig, medium, "without room", 0);
}

static void write_fails(void **state)
{
    (void)state;
    static const enum fault_kind kinds[] = {FAULT_WRITE, FAULT_FLUSH};
    for (uint32_t i = 0; i < 2; i++) {
        struct rig rig;
        struct medium *medium = small_store(&rig, 11);
        medium_fail(medium, kinds[i], "index", 1, EIO, true);
        rig_close_well(&rig);
        medium_fail(medium, kinds[i], NULL, 0, 0, false);
        must(open_rig(&rig, medium) == (kinds[i] == FAULT_FLUSH), "a write of it has failed");
        expect_small_store(&rig);
        rig_end(&rig, medium);
    }
}

static void maxstore_bounds_it(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = small_store(&rig, 12);
    store_set_max_store(rig.store, 1 << 20);
    rig_close_well(&rig);
    expect_a_scan(&rig, medium, "maxstore", 0);
}

/* ---- work left undone ---- */

static void put_in(struct rig *rig, uint32_t db, const char *key)
{
    struct call *call = call_new();
    struct step *step =
        call_step(call, STEP_PUT, call_key(call, db, 0, key, (uint32_t)strlen(key)));
    step->blob = blob_text("value");
    step->expire_ms = STORE_NO_EXPIRY;
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "put: %d", call->result);
    call_free(call);
}

/* Entries in the index when only those of small_store are left, or after a while. */
static uint64_t entries_in_the_end(struct rig *rig)
{
    for (uint32_t i = 0; i < 100 && entries(rig) > 3; i++)
        rig_run(rig, 20);
    return entries(rig);
}

/* The sweep ends, and leaves what small_store has put. */
static void expect_swept(struct rig *rig)
{
    must(entries_in_the_end(rig) == 3, "%llu entries stay", (unsigned long long)entries(rig));
    expect_small_store(rig);
    rig_close_well(rig);
}

static void expect_sweep_after_start(struct rig *rig, struct medium *medium)
{
    must(open_rig(rig, medium), "the checkpoint is not loaded");
    expect_swept(rig);
}

static void put_dead(struct rig *rig)
{
    char key[16];
    for (uint32_t i = 0; i < 50; i++) {
        snprintf(key, sizeof key, "dead:%u", i);
        put_in(rig, 1, key);
    }
}

/* A flush's dead items are still in the index: the sweep goes on after the start. */
static void a_sweep_goes_on(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = small_store(&rig, 13);
    put_dead(&rig);
    medium_hold(medium, FAULT_READ, "slabs", 300); /* the sweep does not get far */
    flush_db(&rig, 1);
    rig_close_well(&rig);
    medium_release(medium);
    expect_sweep_after_start(&rig, medium);
    medium_free(medium);
}

static uint64_t read_errors(const struct rig *rig)
{
    struct store_stats stats;
    store_stats(rig->store, &stats);
    return stats.read_errors;
}

/* A flush while no segment can be read. */
static struct medium *store_with_skipped_segments(struct rig *rig)
{
    struct medium *medium = small_store(rig, 14);
    put_dead(rig);
    medium_fail(medium, FAULT_READ, "slabs", 1, EIO, true);
    flush_db(rig, 1);
    uint32_t segments = 0;
    for (uint32_t i = 0; i < rig->store->partition_count; i++)
        segments += rig->store->partitions[i].file.segment_assigned;
    for (uint32_t i = 0; i < 1000 && read_errors(rig) < segments; i++)
        rig_run(rig, 10);
    must(read_errors(rig) == segments && entries(rig) > 3, "%u segments, %llu read errors",
         segments, (unsigned long long)read_errors(rig));
    medium_fail(medium, FAULT_READ, "slabs", 0, EIO, false);
    return medium;
}

/* What was in the segments that a sweep could not read is swept after the next start, which finds
 * a checkpoint to believe, ... */
static void a_start_sweeps_what_was_skipped(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = store_with_skipped_segments(&rig);
    rig_close_well(&rig);
    expect_sweep_after_start(&rig, medium);
    must(open_rig(&rig, medium), "the checkpoint is not loaded");
    must(entries(&rig) == 3, "%llu entries are back", (unsigned long long)entries(&rig));
    rig_end(&rig, medium);
}

/* ... or after the next flush. */
static void a_flush_sweeps_what_was_skipped(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = store_with_skipped_segments(&rig);
    put_in(&rig, 1, "once more");
    flush_db(&rig, 1);
    expect_swept(&rig);
    must(open_rig(&rig, medium), "the checkpoint is not loaded");
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loading_is_as_good_as_scanning),
        cmocka_unit_test(any_bit_flipped),
        cmocka_unit_test(truncated_anywhere),
        cmocka_unit_test(torn_anywhere),
        cmocka_unit_test(of_an_earlier_stop),
        cmocka_unit_test(of_two_stops),
        cmocka_unit_test(of_another_store),
        cmocka_unit_test(with_wrong_counts),
        cmocka_unit_test(with_one_superblock),
        cmocka_unit_test(of_shorter_files),
        cmocka_unit_test(after_the_start_that_loaded_it),
        cmocka_unit_test(a_cut_at_any_event),
        cmocka_unit_test(not_over_damage),
        cmocka_unit_test(without_room),
        cmocka_unit_test(write_fails),
        cmocka_unit_test(maxstore_bounds_it),
        cmocka_unit_test(a_sweep_goes_on),
        cmocka_unit_test(a_start_sweeps_what_was_skipped),
        cmocka_unit_test(a_flush_sweeps_what_was_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
