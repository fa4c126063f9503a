/* Devices that fail, fill up or lie, and directories that cannot be opened: what is refused, what
 * goes on, and what is said about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "storage/format/format.h"
#include "storage/txn/engine.h"
#include "tests/storage/tree_job.h"
#include "tests/storage/workload.h"

#define SPREAD 600u /* keys that do not all fit into the cache with their values */

static void start(struct rig *rig, struct medium **medium)
{
    *medium = medium_new(1);
    rig_defaults(rig);
    rig_open_on(rig, *medium);
}

static void name_of(uint32_t i, char name[32])
{
    snprintf(name, 32, "spread:%u", i);
}

/* Values of 3 KB: one in a page. */
static void fill(struct rig *rig)
{
    struct rng rng = {7};
    for (uint32_t i = 0; i < SPREAD; i++) {
        char name[32];
        name_of(i, name);
        must(do_put(rig, name, blob_random(&rng, 3000)) == STORE_OK, "put");
    }
}

/* How many of the keys end with each result. */
static void read_all(struct rig *rig, uint32_t counts[16])
{
    memset(counts, 0, 16 * sizeof *counts);
    for (uint32_t i = 0; i < SPREAD; i++) {
        char name[32];
        enum store_result result;
        name_of(i, name);
        blob_unref(do_get(rig, name, &result));
        counts[result]++;
    }
}

/* ---- failing devices ---- */

static void a_read_error_fails_one_command(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    uint32_t counts[16];
    start(&rig, &medium);
    fill(&rig);
    medium_fail(medium, FAULT_READ, "slabs", 5, EIO, false);
    read_all(&rig, counts);
    must(counts[STORE_IO] == 1 && counts[STORE_OK] == SPREAD - 1, "%u fail", counts[STORE_IO]);
    read_all(&rig, counts);
    must(counts[STORE_OK] == SPREAD, "%u are read", counts[STORE_OK]);
    must(do_set(&rig, "after", "works") == STORE_OK && has_value(&rig, "after", "works"), "set");
    rig_end(&rig, medium);
}

static void remember(struct blob **place, struct blob *value)
{
    blob_unref(*place);
    *place = value ? blob_ref(value) : NULL;
}

/* What was acknowledged is shown, also where it could not be written to its page. */
static void read_written(struct rig *rig, struct blob *written[SPREAD])
{
    for (uint32_t i = 0; i < SPREAD; i++) {
        char name[32];
        enum store_result result;
        name_of(i, name);
        struct blob *found = written[i] ? do_get(rig, name, &result) : NULL;
        must(!written[i] || (found && memcmp(found->bytes, written[i]->bytes, found->len) == 0),
             "%s is not as it was acknowledged", name);
        blob_unref(found);
        blob_unref(written[i]);
    }
}

static void after_a_failed_write(enum fault_kind kind, const char *file)
{
    struct blob *written[SPREAD] = {NULL};
    uint32_t counts[16];
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    must(do_set(&rig, "before", "kept") == STORE_OK, "set");
    fill(&rig); /* reading all of it afterwards drops what is clean */
    medium_fail(medium, kind, file, 1, EIO, true);
    struct rng rng = {3};
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 40000 && refused < 3; i++) {
        char name[32];
        name_of(i % SPREAD, name);
        struct blob *value = blob_random(&rng, 3000);
        enum store_result result = do_put(&rig, name, blob_ref(value));
        remember(&written[i % SPREAD], result == STORE_OK ? value : NULL);
        blob_unref(value);
        must(result == STORE_OK || result == STORE_REFUSED, "put: %d", result);
        must(result != STORE_OK || refused == 0, "a write is acknowledged after a failure");
        refused += result == STORE_REFUSED;
    }
    must(refused == 3 && store_has_failed(rig.store), "nothing was refused");
    must(has_value(&rig, "before", "kept"), "reads do not go on");
    read_all(&rig, counts);
    read_written(&rig, written);
    must(do_delete(&rig, "before") == STORE_REFUSED, "a delete is not refused");
    must(rig_close(&rig) == STORE_REFUSED && rig.warnings > 0, "closing does not tell");
    medium_fail(medium, kind, NULL, 0, 0, false);
    medium_cut_now(medium);
    rig_open_on(&rig, medium);
    must(has_value(&rig, "before", "kept"), "what was acknowledged is gone");
    must(do_set(&rig, "after", "works") == STORE_OK, "set");
    rig_end(&rig, medium);
}

static void a_write_error_refuses_writes(void **state)
{
    (void)state;
    after_a_failed_write(FAULT_WRITE, "journal");
    after_a_failed_write(FAULT_WRITE, "slabs");
    after_a_failed_write(FAULT_WRITE, "superblock");
    after_a_failed_write(FAULT_FLUSH, NULL);
}

/* Its flush is that of the pages written before it, too, and reports a failure only once: a
 * checkpoint that took place afterwards would give up the journal for pages that are lost. */
static void a_flush_that_fails_while_a_file_grows_refuses_writes(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    must(do_set(&rig, "before", "kept") == STORE_OK, "set");
    medium_fail(medium, FAULT_EXTEND, "slabs", 1, EIO, false);
    struct rng rng = {3};
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < 40000 && result == STORE_OK; i++) {
        char name[32];
        snprintf(name, sizeof name, "new-%u", i);
        result = do_put(&rig, name, blob_random(&rng, 3000));
    }
    must(result == STORE_REFUSED && store_has_failed(rig.store), "a put ends with %d", result);
    must(has_value(&rig, "before", "kept"), "reads do not go on");
    must(rig_close(&rig) == STORE_REFUSED, "closing does not tell");
    medium_set_fate(medium, FATE_LOST);
    medium_cut_now(medium);
    rig_open_on(&rig, medium);
    must(has_value(&rig, "before", "kept"), "what was acknowledged is gone");
    rig_end(&rig, medium);
}

/* An insertion into a collection takes slots before it commits, and may wait for a file to grow. */
static void an_insertion_that_waits_for_a_file_is_refused(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    enum store_result result = STORE_OK;
    start(&rig, &medium);
    store_set_memory(rig.store, 64 << 20); /* so that dirty pages are not what it waits for */
    tree_job_fill(&rig, "collection", 10, 400);
    medium_fail(medium, FAULT_EXTEND, "slabs", 1, EIO, true);
    medium_hold(medium, FAULT_EXTEND, "slabs", 0);
    for (uint32_t i = 1; i < 10000 && result == STORE_OK; i++) {
        struct tree_job job = {
            .from = 300 * i, .count = 300, .value_len = 1500, .act = tree_job_insert};
        tree_job_start(&rig, "collection", &job);
        for (uint32_t turns = 0; turns < 50 && !job.finished; turns++)
            rig_run(&rig, 10);
        if (!job.finished)
            medium_release(medium);
        for (uint32_t turns = 0; turns < 1000 && !job.finished; turns++)
            rig_run(&rig, 10);
        must(job.finished, "it waits although no file grows any more");
        result = job.result;
    }
    must(result == STORE_REFUSED && store_has_failed(rig.store), "it ends with %d", result);
    must(rig_close(&rig) == STORE_REFUSED, "closing does not tell");
    medium_free(medium);
}

/* The nth I/O of any kind fails once, for every n. */
static void any_operation_may_fail(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("faults");
    for (uint32_t n = 1; n <= 30; n++)
        for (enum fault_kind kind = FAULT_READ; kind <= FAULT_EXTEND; kind++) {
            struct medium *medium = medium_new(seed + n);
            struct workload load;
            struct rig rig;
            rig_defaults(&rig);
            rig.options.ordered_keys = n % 2 ? STORE_ORDERED_YES : STORE_ORDERED_NO;
            rig_open_on(&rig, medium);
            workload_init(&load, &rig, seed + n);
            load.tolerant = true;
            load.medium = medium;
            medium_fail(medium, kind, NULL, n * n / 4 + n, EIO, false);
            for (uint32_t i = 0; i < 400; i++)
                workload_step(&load);
            workload_drain(&load);
            uint64_t durable = store_durable(rig.store);
            if (rig_close(&rig) == STORE_OK)
                durable = load.last_commit;
            medium_fail(medium, kind, NULL, 0, 0, false);
            medium_cut_now(medium);
            rig_open_on(&rig, medium);
            struct store_stats stats;
            store_stats(rig.store, &stats);
            must(stats.commits >= durable, "what was durable is gone");
            workload_rewind(&load, stats.commits);
            oracle_compare(load.now, &rig);
            rig_close_well(&rig);
            workload_free(&load);
            medium_free(medium);
        }
}

/* Under `no`: what could not be written, since the journal fails, stays in memory and is shown,
 * whatever else is read. */
static void what_was_not_written_is_shown(void **state)
{
    (void)state;
    struct blob *written[SPREAD] = {NULL};
    uint32_t counts[16];
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    fill(&rig);
    store_set_sync(rig.store, STORE_SYNC_NO);
    medium_fail(medium, FAULT_WRITE, "journal", 1, EIO, true);
    struct rng rng = {3};
    for (uint32_t i = 0; i < SPREAD && !store_has_failed(rig.store); i++) {
        char name[32];
        name_of(i, name);
        struct blob *value = blob_random(&rng, 3000);
        struct call *call = call_new();
        call_step(call, STEP_PUT, call_key(call, 0, 0, name, (uint32_t)strlen(name)))->blob =
            blob_ref(value);
        call_start(rig.workers[0], call);
        call_wait(&rig, call);
        remember(&written[i], call->result == STORE_OK ? value : NULL);
        blob_unref(value);
        call_free(call);
    }
    must(store_has_failed(rig.store), "no checkpoint has failed");
    read_all(&rig, counts); /* drops what is clean */
    read_written(&rig, written);
    must(rig_close(&rig) == STORE_REFUSED, "closing does not tell");
    medium_free(medium);
}

#define RECOVERY_OPERATIONS 60u

static struct medium *store_to_recover(struct rig *rig, const struct blob *large)
{
    struct medium *medium;
    start(rig, &medium);
    for (uint32_t i = 0; i < 40; i++) {
        char name[32];
        name_of(i, name);
        must(do_set(rig, name, name) == STORE_OK, "set");
    }
    must(do_put(rig, "large", blob_ref((struct blob *)large)) == STORE_OK, "put");
    must(do_set(rig, "gone", "value") == STORE_OK && do_delete(rig, "gone") == STORE_OK, "gone");
    medium_set_fate(medium, FATE_LOST);
    medium_cut_now(medium);
    must(rig_close(rig) != STORE_OK, "closing without power");
    return medium;
}

static void expect_all(struct rig *rig, const struct blob *large)
{
    enum store_result result;
    for (uint32_t i = 0; i < 40; i++) {
        char name[32];
        name_of(i, name);
        must(has_value(rig, name, name), "%s is gone", name);
    }
    struct blob *found = do_get(rig, "large", &result);
    must(found && memcmp(found->bytes, large->bytes, large->len) == 0, "large: %d", result);
    blob_unref(found);
    must(has_value(rig, "gone", NULL), "what was deleted is there");
}

/* A start during which the nth operation of some kind fails is none, or has everything; nothing of
 * what it was to recover is given up by it. */
static void any_operation_of_a_recovery_may_fail(void **state)
{
    (void)state;
    struct rng rng = {5};
    struct rig rig;
    uint32_t failed[FAULT_KINDS] = {0};
    struct blob *large = blob_random(&rng, 50000);
    struct medium *medium = store_to_recover(&rig, large);
    for (enum fault_kind kind = FAULT_READ; kind <= FAULT_FLUSH; kind++)
        for (uint32_t n = 1; n <= RECOVERY_OPERATIONS; n++) {
            struct medium *copy = medium_copy(medium);
            struct disk *disk = medium_disk(copy);
            medium_fail(copy, kind, NULL, n, EIO, false);
            enum store_result result = rig_open(&rig, disk);
            medium_fail(copy, kind, NULL, 0, 0, false);
            failed[kind] += result != STORE_OK;
            must(result == STORE_OK || result == STORE_IO, "opening gives %d: %s", result,
                 rig.message);
            if (result == STORE_OK) {
                expect_all(&rig, large);
                must(do_set(&rig, "after", "works") == STORE_OK, "set");
                medium_cut_now(copy);
                must(rig_close(&rig) != STORE_OK, "closing without power");
            } else {
                medium_cut_now(copy);
            }
            rig_open_on(&rig, copy);
            expect_all(&rig, large);
            must(has_value(&rig, "after", result == STORE_OK ? "works" : NULL), "what came later");
            rig_end(&rig, copy);
        }
    must(failed[FAULT_READ] > 5 && failed[FAULT_WRITE] > 3 && failed[FAULT_FLUSH] > 3,
         "only %u, %u and %u failures", failed[FAULT_READ], failed[FAULT_WRITE],
         failed[FAULT_FLUSH]);
    blob_unref(large);
    medium_free(medium);
}

static void a_full_disk_takes_deletes(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    uint32_t counts[16];
    start(&rig, &medium);
    fill(&rig);
    medium_set_room(medium, medium_bytes(medium) + (3 << 20));
    struct rng rng = {5};
    enum store_result result = STORE_OK;
    uint32_t more = 0;
    for (; more < 20000 && result == STORE_OK; more++) {
        char name[32];
        snprintf(name, sizeof name, "more:%u", more);
        result = do_put(&rig, name, blob_random(&rng, 3000));
    }
    must(result == STORE_FULL, "a full disk gives %d", result);
    read_all(&rig, counts);
    must(counts[STORE_OK] == SPREAD, "reads do not go on");
    must(do_delete(&rig, "more:0") == STORE_OK && do_delete(&rig, "spread:1") == STORE_OK,
         "deletes do not go on");
    medium_set_room(medium, 0);
    rig_run(&rig, 1500);
    for (uint32_t i = 0; i < 2000; i++) {
        char name[32];
        snprintf(name, sizeof name, "again:%u", i);
        must(do_put(&rig, name, blob_random(&rng, 3000)) == STORE_OK, "still full");
    }
    rig_reopen(&rig, medium);
    must(has_value(&rig, "spread:1", NULL) && has_value(&rig, "more:0", NULL), "deleted");
    rig_end(&rig, medium);
}

/* ---- bytes that are not as they were written ---- */

/* Each flush of a database with keys takes an id for ever. */
static void the_last_database_id_is_not_taken(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    rig.store->databases.next_id = FORMAT_HIDDEN - STORE_DB_COUNT - 1;
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < 3; i++) {
        must(do_set(&rig, "key", "value") == STORE_OK, "set");
        struct call *call = call_new();
        call->exclusive = true;
        call_step(call, STEP_FLUSH_ALL, 0);
        call_start(rig.workers[0], call);
        call_wait(&rig, call);
        result = call->result;
        call_free(call);
    }
    must(result == STORE_FULL && rig.warnings > 0, "the last flush says %d", result);
    rig_reopen(&rig, medium);
    struct blob *value = do_get(&rig, "key", &result);
    must(value, "the key that was not flushed: %d", result);
    blob_unref(value);
    rig_end(&rig, medium);
}

static void flip_value(struct medium *medium, const char *value)
{
    for (uint32_t i = 0; i < 4; i++) {
        char file[16];
        snprintf(file, sizeof file, "slabs-%02x", i);
        uint64_t offset = medium_find(medium, file, value, strlen(value));
        if (offset != UINT64_MAX) {
            medium_flip(medium, file, offset, 0x10);
            return;
        }
    }
    must(false, "the value %s is in no slab", value);
}

/* Found at the start: set aside and counted. The rest is served. */
static void a_flipped_byte_is_noticed_at_the_start(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    struct store_stats stats;
    start(&rig, &medium);
    must(do_set(&rig, "hurt", "value-to-be-hurt") == STORE_OK, "set");
    must(do_set(&rig, "well", "value-left-alone") == STORE_OK, "set");
    rig_close_well(&rig);
    flip_value(medium, "value-to-be-hurt");
    rig.options.scans = true;
    rig_open_on(&rig, medium);
    store_stats(rig.store, &stats);
    must(stats.damaged_items == 1 && rig.warnings == 1, "%llu are counted",
         (unsigned long long)stats.damaged_items);
    must(!has_value(&rig, "hurt", "value-to-be-hurt"), "a damaged value is served");
    must(has_value(&rig, "well", "value-left-alone"), "the rest is not served");
    must(do_set(&rig, "hurt", "healed") == STORE_OK && has_value(&rig, "hurt", "healed"), "set");
    rig_reopen(&rig, medium);
    must(has_value(&rig, "hurt", "healed"), "the new value is gone");
    rig_end(&rig, medium);
}

/* While the store runs: the page is read after it was damaged. */
static void a_flipped_byte_is_noticed_when_it_is_read(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    enum store_result result;
    uint32_t counts[16];
    start(&rig, &medium);
    must(do_set(&rig, "hurt", "value-to-be-hurt") == STORE_OK, "set");
    fill(&rig);
    rig_reopen(&rig, medium);
    flip_value(medium, "value-to-be-hurt");
    must(!do_get(&rig, "hurt", &result) && result == STORE_DAMAGED, "a damaged value: %d", result);
    struct store_stats stats;
    store_stats(rig.store, &stats);
    must(stats.damaged_items == 1, "it is not counted");
    read_all(&rig, counts);
    must(counts[STORE_OK] == SPREAD, "the rest is not served");
    rig_end(&rig, medium);
}

static void flip_large_value(uint64_t len)
{
    struct medium *medium;
    struct rig rig;
    enum store_result result;
    struct rng rng = {11};
    start(&rig, &medium);
    struct blob *value = blob_random(&rng, len);
    must(do_put(&rig, "large", blob_ref(value)) == STORE_OK, "put");
    rig_close_well(&rig);
    uint64_t offset = medium_find(medium, "extents", value->bytes + 5000, 16);
    must(offset != UINT64_MAX, "the large value is not in its file");
    medium_flip(medium, "extents", offset, 0x10);
    rig_open_on(&rig, medium);
    must(!do_get(&rig, "large", &result) && result == STORE_DAMAGED, "it is served: %d", result);
    must(do_put(&rig, "large", blob_ref(value)) == STORE_OK, "put");
    struct blob *found = do_get(&rig, "large", &result);
    must(found && memcmp(found->bytes, value->bytes, value->len) == 0, "written anew: %d", result);
    blob_unref(found);
    blob_unref(value);
    rig_end(&rig, medium);
}

/* One that is read through the cache, and one that is too large to be pinned there. */
static void a_flipped_byte_of_a_large_value_is_noticed(void **state)
{
    (void)state;
    flip_large_value(20000);
    flip_large_value(300000);
}

/* ---- directories that cannot be opened ---- */

static void a_directory_is_opened_once(void **state)
{
    (void)state;
    struct rig first, second;
    char directory[256];
    scratch_make(directory);
    rig_defaults(&first);
    first.options.directory = directory;
    second = first;
    must(rig_open(&first, NULL) == STORE_OK, "open: %s", first.message);
    must(rig_open(&second, NULL) == STORE_LOCKED && strstr(second.message, "in use"), "%s",
         second.message);
    must(do_set(&first, "key", "value") == STORE_OK, "set");
    rig_close_well(&first);
    must(rig_open(&second, NULL) == STORE_OK && has_value(&second, "key", "value"), "%s",
         second.message);
    rig_close_well(&second);
    scratch_remove(directory);
}

/* A store with one key, closed; its superblock's two copies. */
static struct medium *closed_store(struct rig *rig)
{
    struct medium *medium;
    start(rig, &medium);
    must(do_set(rig, "key", "value") == STORE_OK, "set");
    rig_close_well(rig);
    return medium;
}

static void expect_refusal(struct rig *rig, struct medium *medium, enum store_result expected,
                           const char *words)
{
    enum store_result result = rig_open(rig, medium_disk(medium));
    must(result == expected, "opening gives %d: %s", result, rig->message);
    must(strstr(rig->message, words), "the message is: %s", rig->message);
}

static void one_copy_of_the_superblock_is_enough(void **state)
{
    (void)state;
    for (uint32_t copy = 0; copy < 2; copy++) {
        struct rig rig;
        struct medium *medium = closed_store(&rig);
        medium_flip(medium, "superblock", copy * PAGE_SIZE + 50, 0x10);
        rig_open_on(&rig, medium);
        must(has_value(&rig, "key", "value"), "the key is gone");
        rig_close_well(&rig);
        medium_flip(medium, "superblock", 50, 0x10);
        medium_flip(medium, "superblock", PAGE_SIZE + 50, 0x10);
        expect_refusal(&rig, medium, STORE_CORRUPT, "damaged");
        medium_free(medium);
    }
}

static void expect_no_start(uint32_t version, const char *words)
{
    struct rig rig;
    struct medium *medium = closed_store(&rig);
    for (uint32_t copy = 0; copy < 2; copy++) {
        struct format_superblock super;
        medium_peek(medium, "superblock", copy * PAGE_SIZE, &super, sizeof super);
        super.version = version;
        super.checksum = format_checksum(&super, offsetof(struct format_superblock, checksum));
        medium_poke(medium, "superblock", copy * PAGE_SIZE, &super, sizeof super);
    }
    expect_refusal(&rig, medium, STORE_VERSION, words);
    medium_free(medium);
}

static void an_unknown_version_is_named(void **state)
{
    (void)state;
    expect_no_start(FORMAT_VERSION + 7, "version 12;");
}

/* Tiny extents and nodes in a store that has others, or the other way round, would be read as what
 * they are not. */
static void a_directory_of_other_sizes_is_refused(void **state)
{
    (void)state;
    uint32_t other = FORMAT_VERSION | (SIZES_ARE_TINY ? 0 : 0x54000000u);
    char words[40];
    snprintf(words, sizeof words, "version %u;", other);
    expect_no_start(other, words);
}

static void a_foreign_file_is_left_alone(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = closed_store(&rig);
    static const char text[2 * PAGE_SIZE] = "somebody else's notes";
    char after[sizeof text];
    medium_poke(medium, "superblock", 0, text, sizeof text);
    expect_refusal(&rig, medium, STORE_FOREIGN, "not Vellum's");
    medium_peek(medium, "superblock", 0, after, sizeof after);
    must(memcmp(text, after, sizeof text) == 0, "it was written to");
    medium_free(medium);
}

/* Of a store in use: lost, blank, cut short. The directory is no new one then. */
static void a_superblock_that_is_gone(void **state)
{
    (void)state;
    struct rig rig;
    static const char zeros[2 * PAGE_SIZE];
    for (uint32_t left = 0; left <= PAGE_SIZE; left += PAGE_SIZE) {
        struct medium *medium = closed_store(&rig);
        medium_shorten(medium, "superblock", left);
        expect_refusal(&rig, medium, STORE_CORRUPT, "backup");
        medium_free(medium);
    }
    struct medium *medium = closed_store(&rig);
    medium_poke(medium, "superblock", 0, zeros, sizeof zeros);
    expect_refusal(&rig, medium, STORE_CORRUPT, "backup");
    medium_free(medium);
    medium = closed_store(&rig);
    for (uint64_t at = 0; at < 2 * PAGE_SIZE; at++)
        medium_flip(medium, "superblock", at, (uint8_t)(at * 7 + 1));
    expect_refusal(&rig, medium, STORE_FOREIGN, "not Vellum's");
    medium_free(medium);
}

/* Not even if the journal is lost as well: the data would be gone for good. */
static void refuse_without(struct rig *rig, const char *super, const char *journal)
{
    char kept[300];
    must((size_t)snprintf(kept, sizeof kept, "%s.kept", journal) < sizeof kept, "a long name");
    must(rig_open(rig, NULL) == STORE_CORRUPT && strstr(rig->message, "backup"), "%s",
         rig->message);
    must(rename(journal, kept) == 0, "renaming %s", journal);
    must(rig_open(rig, NULL) == STORE_CORRUPT && strstr(rig->message, "slabs-"), "%s",
         rig->message);
    must(access(super, F_OK) != 0 && access(journal, F_OK) != 0, "something was made");
    must(rename(kept, journal) == 0, "renaming %s", kept);
}

/* On a real disk, whose files need not end with a page. Nothing of it is changed. */
static void a_directory_without_its_superblock(void **state)
{
    (void)state;
    struct rig rig;
    char directory[256], path[300], kept[300], journal[280];
    scratch_make(directory);
    snprintf(path, sizeof path, "%s/superblock", directory);
    snprintf(journal, sizeof journal, "%s/journal", directory);
    snprintf(kept, sizeof kept, "%s/kept", directory);
    rig_defaults(&rig);
    rig.options.directory = directory;
    FILE *file = fopen(path, "w");
    must(file && fputs("notes", file) >= 0 && fclose(file) == 0, "writing %s", path);
    must(rig_open(&rig, NULL) == STORE_FOREIGN && strstr(rig.message, "not Vellum's"), "%s",
         rig.message);
    must(remove(path) == 0, "removing %s", path);
    must(rig_open(&rig, NULL) == STORE_OK, "%s", rig.message);
    must(do_set(&rig, "key", "value") == STORE_OK, "set");
    rig_close_well(&rig);
    must(rename(path, kept) == 0, "renaming %s", path);
    refuse_without(&rig, path, journal);
    must(rename(kept, path) == 0, "renaming %s", kept);
    must(rig_open(&rig, NULL) == STORE_OK && has_value(&rig, "key", "value"), "%s", rig.message);
    rig_close_well(&rig);
    scratch_remove(directory);
}

/* ---- groups of the journal that do not belong to its history ---- */

static uint64_t newest_group(struct medium *medium, char page[PAGE_SIZE])
{
    uint64_t where = 0, newest = 0;
    for (uint64_t at = 0; at < medium_size(medium, "journal"); at += PAGE_SIZE) {
        struct format_group group;
        medium_peek(medium, "journal", at, &group, sizeof group);
        if (group.magic != FORMAT_GROUP_MAGIC || group.sequence < newest)
            continue;
        newest = group.sequence;
        where = at;
    }
    medium_peek(medium, "journal", where, page, PAGE_SIZE);
    return where;
}

static void crash(struct rig *rig, struct medium *medium)
{
    medium_cut_now(medium);
    must(rig_close(rig) != STORE_OK, "closing without power");
}

/* A store that crashed twice; its journal begins with the group of the second crash. */
static struct medium *crashed_store(struct rig *rig)
{
    struct medium *medium;
    start(rig, &medium);
    must(do_set(rig, "key", "kept") == STORE_OK, "set");
    crash(rig, medium);
    rig_open_on(rig, medium);
    must(do_set(rig, "key", "late") == STORE_OK, "set");
    crash(rig, medium);
    return medium;
}

static void expect_kept(struct rig *rig, struct medium *medium)
{
    rig_open_on(rig, medium);
    must(has_value(rig, "key", "kept"), "a commit came back that did not count");
}

/* It was lost when the store was opened, and turns up afterwards. */
static void a_group_that_comes_too_late_is_not_followed(void **state)
{
    (void)state;
    static const char zeros[PAGE_SIZE];
    char page[PAGE_SIZE];
    struct rig rig;
    struct medium *medium = crashed_store(&rig);
    uint64_t where = newest_group(medium, page);
    medium_poke(medium, "journal", where, zeros, sizeof zeros);
    expect_kept(&rig, medium);
    crash(&rig, medium);
    medium_poke(medium, "journal", where, page, sizeof page);
    expect_kept(&rig, medium);
    rig_end(&rig, medium);
}

/* It fits in everything but in what was before it. */
static void a_group_behind_another_one_is_not_followed(void **state)
{
    (void)state;
    char page[PAGE_SIZE];
    struct rig rig;
    struct medium *medium = crashed_store(&rig);
    uint64_t where = newest_group(medium, page);
    struct format_group group;
    memcpy(&group, page, sizeof group);
    group.previous ^= 1;
    group.checksum = journal_group_checksum(&group, page + sizeof group);
    medium_poke(medium, "journal", where, &group, sizeof group);
    expect_kept(&rig, medium);
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_error_fails_one_command),
        cmocka_unit_test(a_write_error_refuses_writes),
        cmocka_unit_test(a_flush_that_fails_while_a_file_grows_refuses_writes),
        cmocka_unit_test(an_insertion_that_waits_for_a_file_is_refused),
        cmocka_unit_test(any_operation_may_fail),
        cmocka_unit_test(what_was_not_written_is_shown),
        cmocka_unit_test(any_operation_of_a_recovery_may_fail),
        cmocka_unit_test(a_full_disk_takes_deletes),
        cmocka_unit_test(the_last_database_id_is_not_taken),
        cmocka_unit_test(a_flipped_byte_is_noticed_at_the_start),
        cmocka_unit_test(a_flipped_byte_is_noticed_when_it_is_read),
        cmocka_unit_test(a_flipped_byte_of_a_large_value_is_noticed),
        cmocka_unit_test(a_directory_is_opened_once),
        cmocka_unit_test(one_copy_of_the_superblock_is_enough),
        cmocka_unit_test(an_unknown_version_is_named),
        cmocka_unit_test(a_directory_of_other_sizes_is_refused),
        cmocka_unit_test(a_foreign_file_is_left_alone),
        cmocka_unit_test(a_superblock_that_is_gone),
        cmocka_unit_test(a_directory_without_its_superblock),
        cmocka_unit_test(a_group_that_comes_too_late_is_not_followed),
        cmocka_unit_test(a_group_behind_another_one_is_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
