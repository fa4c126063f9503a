/* Keys stored outside of their items: at the lengths where the representation changes, over
 * restarts and power cuts; their space is freed with them, and damage to one affects no other key.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "storage/txn/engine.h"
#include "tests/storage/fault_disk.h"
#include "tests/storage/harness.h"

#define ROUNDS_MOST 20000u

static const size_t lengths[] = {2048, 2049, 4096, 5000, 131072, 131073, 700000, (8u << 20) + 1};
#define LENGTHS (sizeof lengths / sizeof *lengths)

static char *new_key(size_t len, char last)
{
    char *key = malloc(len + 1);
    must(key, "out of memory");
    for (size_t i = 0; i < len; i++)
        key[i] = (char)('a' + i % 23);
    key[len - 1] = last;
    key[len] = 0;
    return key;
}

/* Runs of pages in use; what was given up is waited for. */
static uint32_t used_runs(struct rig *rig, uint32_t expected)
{
    struct page_file *extents = &rig->store->extents;
    uint32_t used = expected + 1;
    for (uint32_t round = 0; used != expected && round < ROUNDS_MOST; round++) {
        rig_round(rig);
        pthread_mutex_lock(&extents->lock);
        used = page_file_used_runs(extents, NULL);
        pthread_mutex_unlock(&extents->lock);
    }
    return used;
}

static void rename_key(struct rig *rig, const char *from, const char *to)
{
    struct call *call = call_new();
    uint32_t first = call_key(call, 0, 0, from, (uint32_t)strlen(from));
    call_step(call, STEP_RENAME, first)->other = call_key(call, 0, 1, to, (uint32_t)strlen(to));
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "rename: %d", call->result);
    call_free(call);
}

/* The keys that a walk over database 0 shows: how many, and their bytes together. */
struct shown {
    struct store_request request;
    uint32_t count, budget, most; /* most: in one step */
    uint64_t bytes, cursor;
    bool finished;
};

static void count_key(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    struct shown *shown = arg;
    (void)item;
    char *expected = new_key(key_len, key[key_len - 1]);
    must(key_len < 3 || memcmp(expected, key, key_len) == 0, "one of %u bytes is another", key_len);
    free(expected);
    shown->count++;
    shown->bytes += key_len;
}

static enum store_result scan_some(struct store_txn *txn, struct store_request *request)
{
    struct shown *shown = (struct shown *)request;
    uint32_t budget = shown->budget, before = shown->count;
    enum store_result result = store_scan(txn, 0, &shown->cursor, &budget, count_key, shown);
    if (shown->count - before > shown->most)
        shown->most = shown->count - before;
    return result;
}

static void scanned(struct store_request *request, enum store_result result)
{
    must(result == STORE_OK, "a scan ends with %d", result);
    ((struct shown *)request)->finished = true;
}

static struct shown scan(struct rig *rig, uint32_t budget)
{
    struct shown shown = {.budget = budget};
    do {
        shown.request = (struct store_request){
            .run = scan_some, .done = scanned, .scope = STORE_SCOPE_NONE, .now_ms = 1};
        shown.finished = false;
        enum store_result result = store_execute(rig->workers[0], &shown.request);
        if (result != STORE_WAIT)
            scanned(&shown.request, result);
        while (!shown.finished)
            rig_round(rig);
    } while (shown.cursor);
    return shown;
}

static void open_on(struct rig *rig, struct medium *medium)
{
    enum store_result result = rig_open(rig, medium_disk(medium));
    must(result == STORE_OK, "open: %d, %s", result, rig->message);
}

static void they_are_kept_apart(void **state)
{
    (void)state;
    struct medium *medium = medium_new(1);
    struct rig rig;
    uint64_t bytes = 0;
    rig_defaults(&rig);
    open_on(&rig, medium);
    for (uint32_t i = 0; i < LENGTHS; i++) {
        char *key = new_key(lengths[i], 'A'), *other = new_key(lengths[i], 'B');
        must(do_set(&rig, key, "first") == STORE_OK, "setting a key of %zu bytes", lengths[i]);
        must(has_value(&rig, key, "first") && has_value(&rig, other, NULL),
             "another of its length");
        must(do_set(&rig, other, "other") == STORE_OK && has_value(&rig, key, "first"),
             "a key of %zu bytes is overwritten by another", lengths[i]);
        must(do_set(&rig, key, "second") == STORE_OK && has_value(&rig, key, "second"),
             "overwrite");
        bytes += 2 * lengths[i];
        free(key);
        free(other);
    }
    for (uint32_t pass = 0; pass < 3; pass++) { /* running; from the index; from the slabs */
        struct shown shown = scan(&rig, 3);
        must(shown.count == 2 * LENGTHS && shown.bytes == bytes, "a scan shows %u keys, %llu bytes",
             shown.count, (unsigned long long)shown.bytes);
        for (uint32_t i = 0; i < LENGTHS; i++) {
            char *key = new_key(lengths[i], 'A'), *other = new_key(lengths[i], 'B');
            must(has_value(&rig, key, "second") && has_value(&rig, other, "other"),
                 "keys of %zu bytes, pass %u", lengths[i], pass);
            free(key);
            free(other);
        }
        rig_close_well(&rig);
        rig.options.scans = pass == 1;
        open_on(&rig, medium);
    }
    rig_end(&rig, medium);
}

static void fill(struct rig *rig, uint32_t db)
{
    struct call *call = call_new();
    for (uint32_t i = 0; i < LENGTHS; i++) {
        char *key = new_key(lengths[i], 'A');
        uint32_t number = call_key(call, db, i, key, (uint32_t)lengths[i]);
        call_step(call, STEP_PUT, number)->blob = blob_text("value");
        free(key);
    }
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "filling: %d", call->result);
    call_free(call);
}

/* A run for each extent, one more for the node of the longest. */
static uint32_t runs_for_all(void)
{
    uint32_t runs = 1;
    for (uint32_t i = 1; i < LENGTHS; i++)
        runs += (uint32_t)((lengths[i] + FORMAT_EXTENT_BYTES - 1) / FORMAT_EXTENT_BYTES);
    return runs;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

static void their_space_comes_back(void **state)
{
    (void)state;
    struct medium *medium = medium_new(2);
    struct rig rig;
    uint32_t all = runs_for_all();
    rig_defaults(&rig);
    open_on(&rig, medium);
    for (uint32_t way = 0; way < 5; way++) {
        fill(&rig, 0);
        fill(&rig, 0); /* what is there is not written again */
        must(used_runs(&rig, all) == all, "filled");
        for (uint32_t i = 0; i < LENGTHS; i++) {
            char *key = new_key(lengths[i], 'A'), *other = new_key(lengths[i], 'B');
            if (way == 0)
                must(do_delete(&rig, key) == STORE_OK, "delete");
            if (way == 1)
                rename_key(&rig, key, i ? other : "short");
            if (way == 2)
                put_until(&rig, key, "value", now_ms() - 1);
            free(key);
            free(other);
        }
        if (way == 1) {
            must(used_runs(&rig, all) == all, "renamed, they take as much as before");
            flush_db(&rig, 0);
        }
        if (way == 3) { /* beside another database: swept, not forgotten as a whole */
            must(do_set(&rig, "stays", "value") == STORE_OK, "set");
            fill(&rig, 1);
            flush_db(&rig, 1);
            must(used_runs(&rig, all) == all, "flushed beside others: %u", used_runs(&rig, all));
        }
        if (way >= 3)
            flush_db(&rig, 0);
        must(used_runs(&rig, 0) == 0, "way %u: %u runs are left", way, used_runs(&rig, 0));
    }
    rig_end(&rig, medium);
}

/* Whatever of a key's bytes is damaged: it is found, is not shown, and can be deleted. */
static void damage_to_one_is_its_own(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 3);
    char *hurt = new_key(300000, 'H'), *well = new_key(9000, 'W');
    open_on(&rig, medium);
    must(do_set(&rig, hurt, "value") == STORE_OK && do_set(&rig, well, "value") == STORE_OK, "set");
    rig_close_well(&rig);
    uint64_t at = medium_find(medium, "extents", hurt + 262144, 37856);
    medium_flip(medium, "extents", at + 1000, 4);
    open_on(&rig, medium);
    struct shown shown = scan(&rig, 3);
    must(shown.count == 1 && shown.bytes == 9000, "%u keys are shown", shown.count);
    must(has_value(&rig, hurt, "value") && has_value(&rig, well, "value"), "both are found");
    must(do_set(&rig, hurt, "another") == STORE_OK && has_value(&rig, hurt, "another"), "set");
    must(do_delete(&rig, hurt) == STORE_OK && has_value(&rig, hurt, NULL), "delete");
    must(used_runs(&rig, 1) == 1, "its space has not come back");
    rig_close_well(&rig);
    free(hurt);
    free(well);
    medium_free(medium);
}

/* What has expired and cannot be named is told of once, and goes when its name is used. */
static void what_cannot_be_named_is_told_once(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 4);
    char *hurt = new_key(70000, 'H');
    open_on(&rig, medium);
    put_until(&rig, hurt, "value", now_ms() + 3600000);
    rig_close_well(&rig);
    medium_flip(medium, "extents", medium_find(medium, "extents", hurt, 4096) + 5, 4);
    open_on(&rig, medium);
    put_until(&rig, hurt, "value", now_ms() - 1);
    rig_run(&rig, 700);
    must(rig.warnings == 1, "%u warnings", rig.warnings);
    must(has_value(&rig, hurt, NULL) && do_set(&rig, hurt, "again") == STORE_OK, "set again");
    must(has_value(&rig, hurt, "again") && do_delete(&rig, hurt) == STORE_OK, "deleted");
    must(used_runs(&rig, 0) == 0, "its space has not come back");
    rig_close_well(&rig);
    free(hurt);
    medium_free(medium);
}

/* However many a step may look at, it holds the bytes of few long keys. */
static void a_step_of_a_scan_is_bounded(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 6);
    rig.options.partition_count = 1;
    open_on(&rig, medium);
    for (char last = 'A'; last < 'E'; last++) {
        char *key = new_key(9u << 20, last), small[] = {'k', last, 0};
        must(do_set(&rig, key, "value") == STORE_OK, "a long key");
        must(do_set(&rig, small, "value") == STORE_OK, "a short key");
        free(key);
    }
    struct shown shown = scan(&rig, 100);
    must(shown.count == 8 && shown.most < 6, "%u keys, %u in a step", shown.count, shown.most);
    rig_end(&rig, medium);
}

/* A scan that reads a key's bytes while the key goes: they stay until it has them. */
static void a_key_goes_while_a_scan_reads_it(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 5);
    char *going = new_key(140000, 'G'), *next = new_key(140000, 'N');
    open_on(&rig, medium);
    must(do_set(&rig, going, "value") == STORE_OK, "set");
    rig_close_well(&rig);
    open_on(&rig, medium);
    must(has_value(&rig, going, "value"), "its page is in memory");
    medium_hold(medium, FAULT_READ, "extents", 0);
    struct shown shown = {.budget = 3};
    shown.request = (struct store_request){.run = scan_some, .done = scanned, .now_ms = 1};
    shown.request.scope = STORE_SCOPE_NONE;
    while (medium_held(medium) == 0) {
        shown.finished = false;
        enum store_result result = store_execute(rig.workers[0], &shown.request);
        if (result != STORE_WAIT)
            scanned(&shown.request, result);
        while (!shown.finished && medium_held(medium) == 0)
            rig_round(&rig);
    }
    must(do_delete(&rig, going) == STORE_OK && do_set(&rig, next, "value") == STORE_OK,
         "meanwhile");
    rig_run(&rig, 50);
    must(used_runs(&rig, 4) == 4, "its runs are free while they are read");
    medium_release(medium);
    while (!shown.finished)
        rig_round(&rig);
    must(rig.warnings == 0, "%s", rig.last_warning);
    must(used_runs(&rig, 2) == 2 && has_value(&rig, next, "value"), "afterwards");
    rig_close_well(&rig);
    free(going);
    free(next);
    medium_free(medium);
}

static void a_snapshot_ends_while_it_reads_a_key_that_is_gone(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = rig_begin(&rig, 6);
    char *going = new_key(140000, 'G');
    open_on(&rig, medium);
    must(do_set(&rig, going, "value") == STORE_OK, "set");
    rig_close_well(&rig);
    open_on(&rig, medium);
    must(has_value(&rig, going, "value"), "its page is in memory");
    struct store_snapshot_options options = {.memory_bytes = 1u << 20};
    struct store_snapshot *snapshot;
    const struct store_snapshot_item *item;
    must(store_snapshot_begin(rig.workers[0], &options, &snapshot) == STORE_OK, "begin");
    must(do_delete(&rig, going) == STORE_OK, "delete");
    medium_hold(medium, FAULT_READ, "extents", 0);
    while (medium_held(medium) == 0) {
        must(store_snapshot_next(snapshot, &item) == STORE_WAIT, "it has read the key");
        rig_round(&rig);
    }
    store_snapshot_end(snapshot);
    rig_run(&rig, 50);
    medium_release(medium);
    must(used_runs(&rig, 0) == 0, "its runs stay in use");
    must(rig.warnings == 0, "%s", rig.last_warning);
    rig_close_well(&rig);
    free(going);
    medium_free(medium);
}

/* Nothing of a key is lost that was acknowledged, and no run of one that was not stays in use. */
static void power_cuts_leave_whole_keys(void **state)
{
    (void)state;
    char *key = new_key(5000, 'A'), *other = new_key(140000, 'B');
    for (uint64_t events = 1; events < 60; events++) {
        struct rig rig;
        struct medium *medium = rig_begin(&rig, events);
        rig.options.sync = STORE_SYNC_ALWAYS;
        open_on(&rig, medium);
        medium_cut_after(medium, events);
        bool has_set = do_set(&rig, key, "value") == STORE_OK;
        uint64_t commits = atomic_load(&rig.store->journal.appended);
        bool is_kept = has_set && (rig_sync(&rig, commits), store_durable(rig.store) >= commits);
        bool has_other = has_set && do_set(&rig, other, "other") == STORE_OK;
        if (has_other)
            (void)do_delete(&rig, key);
        (void)rig_close(&rig);
        struct medium *after = medium_copy(medium);
        open_on(&rig, after);
        struct shown shown = scan(&rig, 3);
        uint32_t there = has_value(&rig, key, "value"), second = has_value(&rig, other, "other");
        must(shown.count == there + second && (there || second || !is_kept || has_other),
             "%llu events: %u keys shown, %u and %u there", (unsigned long long)events, shown.count,
             there, second);
        must(used_runs(&rig, there + 2 * second) == there + 2 * second, "runs are lost");
        rig_end(&rig, after);
        medium_free(medium);
    }
    free(key);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_kept_apart),
        cmocka_unit_test(their_space_comes_back),
        cmocka_unit_test(damage_to_one_is_its_own),
        cmocka_unit_test(what_cannot_be_named_is_told_once),
        cmocka_unit_test(a_step_of_a_scan_is_bounded),
        cmocka_unit_test(a_key_goes_while_a_scan_reads_it),
        cmocka_unit_test(a_snapshot_ends_while_it_reads_a_key_that_is_gone),
        cmocka_unit_test(power_cuts_leave_whole_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
