/* What is lost and reads as zeros, or is missing: a page, a segment, the end of a file, a copy of
 * the superblock. It is noticed, and not taken for what has never been written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "storage/format/format.h"
#include "storage/recovery/check.h"
#include "tests/storage/fault_disk.h"

static void zero(struct medium *medium, const char *file, uint64_t offset, uint64_t len)
{
    char *zeros = calloc(1, len);
    must(zeros, "out of memory");
    medium_poke(medium, file, offset, zeros, len);
    free(zeros);
}

/* ---- headers of segments ---- */

struct said {
    uint32_t of_segments, to_remove;
};

static void listen(void *arg, enum store_log_level level, const char *line)
{
    struct said *said = arg;
    said->of_segments += level == STORE_LOG_WARNING && strstr(line, "egment") != NULL;
    said->to_remove += strstr(line, "remove the file") && !strstr(line, "do not remove");
}

static void check_reports_segments(struct medium *medium)
{
    struct store_check found;
    struct said said = {0};
    char message[STORE_MESSAGE_MAX];
    enum store_result result = check_disk(medium_disk(medium), listen, &said, &found, message);
    must(result == STORE_OK && found.faults > 0 && said.of_segments > 0, "the check: %d, %llu",
         result, (unsigned long long)found.faults);
    must(said.to_remove == 0, "it says to remove what alone knows of the segment");
}

/* The segment that "hurt" is in; that of "well" is another. */
static uint64_t segment_of_hurt(struct medium *medium, const char *value)
{
    uint64_t at = medium_find(medium, "slabs-00", value, strlen(value));
    must(at != UINT64_MAX, "the item is not in its file");
    return at / SEGMENT_BYTES * SEGMENT_BYTES;
}

#define LEFT_ALONE                                                                                 \
    "value-left-alone, of another class and so in another segment: the quick brown fox jumps "     \
    "over "                                                                                        \
    "the lazy dog, and the dog sleeps on"

static void expect_a_lost_segment(struct rig *rig, struct medium *medium)
{
    rig_open_on(rig, medium);
    must(rig_damaged(rig) == 1 && rig->warnings == 1 && strstr(rig->last_warning, "missing"),
         "%llu are counted; %s", (unsigned long long)rig_damaged(rig), rig->last_warning);
    must(has_value(rig, "hurt", NULL) && has_value(rig, "well", LEFT_ALONE), "the keys");
    must(do_set(rig, "hurt", "again") == STORE_OK, "set");
    rig_crash(rig, medium);
    rig_open_on(rig, medium);
    must(has_value(rig, "hurt", "again"), "what came later is gone");
    rig_end(rig, medium);
}

/* Its items are missed, and it is not taken for a blank one, in which they could come back. */
static void a_slab_header_of_zeros(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin_scanned(&rig);
    must(do_set(&rig, "well", LEFT_ALONE) == STORE_OK, "set");
    must(do_set(&rig, "hurt", "value-to-be-hurt") == STORE_OK, "set");
    rig_close_well(&rig);
    uint64_t at = segment_of_hurt(medium, "value-to-be-hurt");
    struct medium *stopped = medium_copy(medium);
    zero(stopped, "slabs-00", at, PAGE_SIZE);
    check_reports_segments(stopped);
    expect_a_lost_segment(&rig, stopped);
    stopped = medium_copy(medium);
    zero(stopped, "slabs-00", at, SEGMENT_BYTES); /* the checkpoint of the index knows of it */
    check_reports_segments(stopped);
    medium_free(stopped);
    rig_open_on(&rig, medium);
    must(do_set(&rig, "hurt", "newer") == STORE_OK, "set");
    rig_crash(&rig, medium);
    zero(medium, "slabs-00", at, SEGMENT_BYTES); /* the journal has something for it */
    expect_a_lost_segment(&rig, medium);
}

/* ---- headers of extents ---- */

#define MANY 60u /* values of three extents */

/* All are counted, but they do not fill the log. */
static void many_lost_runs(void **state)
{
    (void)state;
    struct rig rig;
    struct rng rng = {1};
    struct medium *medium = rig_begin_scanned(&rig);
    char key[16];
    enum store_result result;
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "key:%u", i);
        must(do_put(&rig, key, blob_random(&rng, 300000)) == STORE_OK, "put");
    }
    rig_close_well(&rig);
    for (uint64_t at = 0; at < medium_size(medium, "extents"); at += SEGMENT_BYTES)
        zero(medium, "extents", at, PAGE_SIZE);
    rig_open_on(&rig, medium);
    must(rig_damaged(&rig) == 3 * MANY, "%llu are counted", (unsigned long long)rig_damaged(&rig));
    must(rig.warnings == 101, "%u warnings", rig.warnings);
    for (uint32_t i = 0; i < MANY; i++) { /* whose runs are not given back: others may have them */
        snprintf(key, sizeof key, "key:%u", i);
        blob_unref(do_get(&rig, key, &result));
        must(do_delete(&rig, key) == STORE_OK, "it cannot be deleted");
    }
    rig_run(&rig, 5);
    must(do_put(&rig, "another", blob_random(&rng, 300000)) == STORE_OK, "put");
    rig_reopen(&rig, medium);
    must(rig_damaged(&rig) == 0, "something is left");
    rig_end(&rig, medium);
}

/* ---- files that were cut ---- */

/* Other keys, of the class of "hurt", until there is a segment more. */
static void fill_until_it_grows(struct rig *rig)
{
    const struct page_file *file = &rig->store->partitions[0].file;
    uint32_t before = file->segment_count;
    char key[16];
    for (uint32_t i = 0; file->segment_count == before; i++) {
        snprintf(key, sizeof key, "key:%u", i);
        must(do_set(rig, key, "value-of-the-rest") == STORE_OK, "a set fails: %s",
             rig->last_warning);
    }
}

/* What is left of the segment does not come back when the file grows over it. */
static void a_file_cut_within_a_segment(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin_scanned(&rig);
    must(do_set(&rig, "well", LEFT_ALONE) == STORE_OK, "set");
    for (uint32_t i = 0; i < 200; i++) { /* beyond the pages that are written at once */
        char key[16];
        snprintf(key, sizeof key, "old:%u", i);
        must(do_set(&rig, key, "value-of-before") == STORE_OK, "set");
    }
    must(do_set(&rig, "hurt", "value-to-be-hurt") == STORE_OK, "set");
    rig_close_well(&rig);
    uint64_t at = segment_of_hurt(medium, "value-to-be-hurt");
    must(at > 0, "the test's own assumption");
    medium_shorten(medium, "slabs-00", at + SEGMENT_BYTES / 2);
    rig_open_on(&rig, medium);
    must(rig_damaged(&rig) == 1 && rig.warnings == 1 && strstr(rig.last_warning, "slabs-00"),
         "%llu are counted; %s", (unsigned long long)rig_damaged(&rig), rig.last_warning);
    must(has_value(&rig, "hurt", NULL) && has_value(&rig, "well", LEFT_ALONE), "the keys");
    fill_until_it_grows(&rig);
    rig_reopen(&rig, medium);
    must(rig_damaged(&rig) == 0 && rig.warnings == 0, "something is left of it: %s",
         rig.last_warning);
    must(has_value(&rig, "hurt", NULL) && has_value(&rig, "well", LEFT_ALONE), "it has come back");
    rig_end(&rig, medium);
}

/* No multiple of a block, either, which a device does not take. */
static void a_real_file_cut_within_a_block(void **state)
{
    (void)state;
    struct rig rig;
    char directory[256], path[300];
    scratch_make(directory);
    rig_defaults(&rig);
    rig.options.partition_count = 1;
    rig.options.scans = true;
    rig.options.directory = directory;
    must(rig_open(&rig, NULL) == STORE_OK, "open: %s", rig.message);
    fill_until_it_grows(&rig);
    rig_close_well(&rig);
    snprintf(path, sizeof path, "%s/slabs-00", directory);
    must(truncate(path, 2 * SEGMENT_BYTES + 500001) == 0, "truncate");
    must(rig_open(&rig, NULL) == STORE_OK, "open: %s", rig.message);
    fill_until_it_grows(&rig);
    must(do_set(&rig, "well", "value") == STORE_OK, "set");
    rig_close_well(&rig);
    must(rig_open(&rig, NULL) == STORE_OK && rig.warnings == 0, "open: %s", rig.message);
    must(has_value(&rig, "well", "value"), "the key");
    rig_close_well(&rig);
    scratch_remove(directory);
}

/* ---- the superblock ---- */

/* With one copy all zeros: all of it is there, or the store is not opened. How often it was, of
 * twice. */
static uint32_t blank_superblock(struct rig *rig, const struct medium *medium, const char *value)
{
    uint32_t opened = 0;
    for (uint32_t copy = 0; copy < 2; copy++) {
        struct medium *hurt = medium_copy(medium);
        zero(hurt, "superblock", copy * PAGE_SIZE, PAGE_SIZE);
        enum store_result result = rig_open(rig, medium_disk(hurt));
        must(result == STORE_OK || (result == STORE_CORRUPT && strstr(rig->message, "backup")),
             "copy %u: %d, %s", copy, result, rig->message);
        if (result == STORE_OK) {
            opened++;
            must(rig->warnings > 0, "copy %u: its loss is not noticed", copy);
            must(has_value(rig, "key", value), "copy %u: a commit is gone", copy);
            rig_close_well(rig);
        }
        medium_free(hurt);
    }
    return opened;
}

static void a_superblock_of_zeros_in_the_first_epoch(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin_scanned(&rig);
    must(do_set(&rig, "key", "first") == STORE_OK, "set");
    rig_crash(&rig, medium);
    must(blank_superblock(&rig, medium, "first") == 1,
         "the copy of the making knows nothing of what came behind");
    medium_free(medium);
}

static void a_superblock_of_zeros(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin_scanned(&rig);
    must(do_set(&rig, "key", "first") == STORE_OK, "set");
    rig_close_well(&rig);
    must(blank_superblock(&rig, medium, "first") == 2, "one copy should do after a clean stop");
    struct medium *changed = medium_copy(medium);
    rig_open_on(&rig, changed);
    must(do_set(&rig, "key", "second") == STORE_OK, "set");
    rig_crash(&rig, changed);
    must(blank_superblock(&rig, changed, "second") == 1,
         "the copy of the stop knows nothing of what came behind");
    rig_open_on(&rig, medium);
    rig_crash(&rig, medium);
    must(blank_superblock(&rig, medium, "first") == 2, "one copy should do where nothing is new");
    rig_open_on(&rig, medium);
    must(do_set(&rig, "key", "second") == STORE_OK, "set");
    rig_crash(&rig, medium);
    must(blank_superblock(&rig, medium, "second") == 1,
         "the older copy knows nothing of the last start");
    medium_free(changed);
    medium_free(medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slab_header_of_zeros),
        cmocka_unit_test(many_lost_runs),
        cmocka_unit_test(a_file_cut_within_a_segment),
        cmocka_unit_test(a_real_file_cut_within_a_block),
        cmocka_unit_test(a_superblock_of_zeros_in_the_first_epoch),
        cmocka_unit_test(a_superblock_of_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
