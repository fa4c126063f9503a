/* A device that keeps some operations waiting, and what goes on, or must not go on, meanwhile. One
 * thread drives all workers by hand, so that each case comes about every time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/storage/fault_disk.h"

#define RING_GROUPS 2048u /* of one page each in the smallest journal */
#define PATIENCE_MS 300u  /* what has not come by then is waiting */
#define SURELY_MS 20000u  /* what has not come by then never will */
#define WRITERS 150u
#define DIRTYING 70u /* pages that make a checkpoint due */
#define READ_PAGES 400u
#define LONG_BYTES 100000u        /* ten to a segment */
#define LONG_FILES (150ull << 20) /* with so much in it a file becomes longer by 16 segments */
#define LONG_WRITES 110u          /* two thirds of these */

/* One partition, so that a checkpoint has all pages under way at once. */
static void start(struct rig *rig, struct medium **medium)
{
    *medium = medium_new(1);
    rig_defaults(rig);
    rig->options.partition_count = 1;
    rig->options.worker_count = 2;
    rig_open_on(rig, *medium);
}

static void reopen(struct rig *rig, struct medium *medium)
{
    rig_reopen(rig, medium);
}

static bool finishes(struct rig *rig, const struct call *call, uint32_t most_ms)
{
    for (uint32_t waited = 0; waited < most_ms && !call->finished; waited += 10)
        rig_run(rig, 10);
    return call->finished;
}

static struct call *start_put_of(struct rig *rig, const char *key, struct blob *blob)
{
    struct call *call = call_new();
    call_step(call, STEP_PUT, call_key(call, 0, 0, key, (uint32_t)strlen(key)))->blob = blob;
    call_start(rig->workers[0], call);
    return call;
}

static struct call *start_put(struct rig *rig, const char *key, const char *value)
{
    return start_put_of(rig, key, blob_text(value));
}

static void make_dirty(struct rig *rig)
{
    struct rng rng = {1};
    for (uint32_t i = 0; i < DIRTYING; i++) {
        char name[32];
        snprintf(name, sizeof name, "dirtying:%u", i);
        must(do_put(rig, name, blob_random(&rng, 3000)) == STORE_OK, "put");
    }
}

/* The pages of a checkpoint, or the superblock, are submitted, and do not arrive. */
static void stall_a_checkpoint(struct rig *rig, struct medium *medium, const char *file)
{
    medium_hold(medium, FAULT_WRITE, file, 0);
    make_dirty(rig);
    for (uint32_t waited = 0; medium_held(medium) == 0; waited += 10) {
        must(waited < SURELY_MS, "no checkpoint begins");
        rig_run(rig, 10);
    }
}

/* ---- checkpoints that take their time ---- */

static void await_checkpoints(struct rig *rig, uint64_t count)
{
    struct store_stats stats;
    do {
        rig_run(rig, 5);
        store_stats(rig->store, &stats);
    } while (stats.checkpoints < count);
}

/* Without the power a checkpoint never ends: the journal has to have everything still. */
static void fill_the_ring(const char *stalled)
{
    struct medium *medium;
    struct rig rig;
    char value[32], last[32] = "";
    start(&rig, &medium);
    stall_a_checkpoint(&rig, medium, stalled);
    struct call *call;
    uint32_t done = 0;
    for (;; done++) {
        snprintf(value, sizeof value, "value %06u", done);
        call = start_put(&rig, "key", value);
        if (!finishes(&rig, call, PATIENCE_MS))
            break;
        must(call->result == STORE_OK, "put: %d", call->result);
        must(done < RING_GROUPS, "the ring takes more groups than it has room for");
        rig_sync(&rig, call->request.shown);
        memcpy(last, value, sizeof last);
        call_free(call);
    }
    must(done > RING_GROUPS / 2, "only %u groups fit into the ring", done);
    medium_set_fate(medium, FATE_LOST);
    medium_cut_now(medium);
    call_wait(&rig, call);
    must(call->result != STORE_OK, "a write is acknowledged without power");
    call_free(call);
    must(rig_close(&rig) != STORE_OK, "closing without power");
    rig_open_on(&rig, medium);
    must(has_value(&rig, "key", last), "the last of %u values is gone", done);
    rig_end(&rig, medium);
}

static void writers_wait_for_room_in_the_ring(void **state)
{
    (void)state;
    fill_the_ring("slabs");
    fill_the_ring("superblock");
}

/* They go on when it has finished, in the order in which they came. */
static void room_in_the_ring_comes_back(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    stall_a_checkpoint(&rig, medium, "slabs");
    struct call *call;
    for (uint32_t i = 0; finishes(&rig, call = start_put(&rig, "key", "value"), PATIENCE_MS); i++) {
        must(i < RING_GROUPS, "the ring takes more groups than it has room for");
        rig_sync(&rig, call->request.shown);
        call_free(call);
    }
    struct call *next = start_put(&rig, "another key", "value");
    must(!finishes(&rig, next, PATIENCE_MS / 3), "there is room for another writer");
    medium_release(medium);
    must(finishes(&rig, call, SURELY_MS) && call->result == STORE_OK, "the writer waits for ever");
    must(finishes(&rig, next, SURELY_MS) && next->result == STORE_OK,
         "the next one waits for ever");
    must(call->request.shown < next->request.shown, "who has waited longer goes later");
    call_free(call);
    call_free(next);
    rig_end(&rig, medium);
}

/* A change of a page that is under way to the disk must not get there with it: its commit is not
 * durable yet, and never will be. */
static void a_page_under_way_is_not_changed(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    struct store_stats before;
    start(&rig, &medium);
    must(do_set(&rig, "key", "old value") == STORE_OK, "set");
    store_stats(rig.store, &before);
    stall_a_checkpoint(&rig, medium, "slabs");
    store_set_sync(rig.store, STORE_SYNC_NO);
    struct call *call = start_put(&rig, "key", "new value");
    must(finishes(&rig, call, SURELY_MS) && call->result == STORE_OK, "put");
    must(has_value(&rig, "key", "new value"), "it is not shown");
    medium_release(medium);
    await_checkpoints(&rig, before.checkpoints + 1);
    must(store_durable(rig.store) < call->request.shown, "the test's own assumption");
    call_free(call);
    medium_cut_now(medium);
    must(rig_close(&rig) != STORE_OK, "closing without power");
    rig_open_on(&rig, medium);
    must(has_value(&rig, "key", "old value"), "a commit that was not durable is there");
    rig_end(&rig, medium);
}

/* A flush of a database that is not written yet when a checkpoint begins is none of its business:
 * the superblock has the databases as they are at the journal's tail. */
static void a_flush_does_not_overtake_its_commit(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    struct store_stats before;
    start(&rig, &medium);
    must(do_set(&rig, "key", "value") == STORE_OK, "set");
    struct call *call = call_new();
    call->exclusive = true;
    call_step(call, STEP_SWAP_DB, 0)->other = 1;
    call_start(rig.workers[0], call);
    call_wait(&rig, call);
    call_free(call);
    store_stats(rig.store, &before);
    stall_a_checkpoint(&rig, medium, "superblock");
    make_dirty(&rig); /* so that another one is due */
    store_set_sync(rig.store, STORE_SYNC_NO);
    call = call_new();
    call->exclusive = true;
    call_step(call, STEP_FLUSH_DB, 1);
    call_start(rig.workers[0], call);
    call_wait(&rig, call);
    medium_release(medium);
    await_checkpoints(&rig, before.checkpoints + 2);
    must(store_durable(rig.store) < call->request.shown, "the test's own assumption");
    call_free(call);
    medium_cut_now(medium);
    must(rig_close(&rig) != STORE_OK, "closing without power");
    rig_open_on(&rig, medium);
    must(store_db_stats(rig.store, 1).keys == 1, "a commit that was not durable is there");
    rig_end(&rig, medium);
}

/* The next value of LONG_BYTES. */
static struct call *start_long(struct rig *rig, struct rng *rng, uint32_t *count)
{
    char key[32];
    snprintf(key, sizeof key, "long:%u", (*count)++);
    return start_put_of(rig, key, blob_random(rng, LONG_BYTES));
}

static void put_long(struct rig *rig, struct rng *rng, uint32_t *count)
{
    struct call *call = start_long(rig, rng, count);
    must(finishes(rig, call, SURELY_MS) && call->result == STORE_OK, "put");
    call_free(call);
}

/* The maintenance thread is kept waiting until there is no room left: then there are as many
 * segments more. */
static void use_up(struct rig *rig, struct medium *medium, struct rng *rng, uint32_t *count)
{
    struct call *call;
    stall_a_checkpoint(rig, medium, "slabs");
    while (finishes(rig, call = start_long(rig, rng, count), PATIENCE_MS))
        call_free(call);
    medium_release(medium);
    must(finishes(rig, call, SURELY_MS) && call->result == STORE_OK, "the writer waits for ever");
    call_free(call);
}

/* The maintenance thread may have much else to do: writers are to go on meanwhile in what there is.
 */
static void a_file_grows_well_before_it_is_full(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    struct rng rng = {6};
    uint32_t count = 0;
    start(&rig, &medium);
    while (medium_bytes(medium) < LONG_FILES)
        put_long(&rig, &rng, &count);
    use_up(&rig, medium, &rng, &count);
    uint64_t bytes = medium_bytes(medium);
    for (uint32_t i = 0; i < LONG_WRITES; i++)
        put_long(&rig, &rng, &count);
    for (uint32_t waited = 0; medium_bytes(medium) == bytes; waited += 10) {
        must(waited < SURELY_MS, "with a third of the last growth left nobody has asked for more");
        rig_run(&rig, 10);
    }
    rig_end(&rig, medium);
}

/* ---- a group of the journal that takes its time ---- */

/* Under `everysec` what is acknowledged meanwhile is a second's worth and no more. */
static void writers_wait_for_an_overdue_flush(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    start(&rig, &medium);
    must(do_set(&rig, "other", "value") == STORE_OK, "set");
    store_set_sync(rig.store, STORE_SYNC_EVERYSEC);
    medium_hold(medium, FAULT_WRITE, "journal", 0);
    struct call *call;
    uint32_t done = 0;
    while (finishes(&rig, call = start_put(&rig, "key", "value"), PATIENCE_MS)) {
        must(call->result == STORE_OK && ++done < SURELY_MS / 10, "they go on and on");
        call_free(call);
        rig_run(&rig, 10);
    }
    must(done > 0 && medium_held(medium) > 0, "nobody waits for the flush");
    must(has_value(&rig, "other", "value"), "readers wait too");
    medium_release(medium);
    must(finishes(&rig, call, SURELY_MS) && call->result == STORE_OK, "the writer waits for ever");
    call_free(call);
    rig_end(&rig, medium);
}

/* ---- reads that take their time ---- */

/* Two keys on pages of their own, neither in memory but "near". */
static void start_cold(struct rig *rig, struct medium **medium)
{
    struct rng rng = {2};
    enum store_result result;
    start(rig, medium);
    must(do_put(rig, "near", blob_random(&rng, 3000)) == STORE_OK, "put");
    must(do_put(rig, "far", blob_random(&rng, 3000)) == STORE_OK, "put");
    reopen(rig, *medium);
    blob_unref(do_get(rig, "near", &result));
    must(result == STORE_OK, "get: %d", result);
    medium_hold(*medium, FAULT_READ, "slabs", 0);
}

/* Writes "near" once it has read "far", which does not come. */
static struct call *start_writer(struct rig *rig)
{
    struct call *writer = call_new();
    call_step(writer, STEP_PUT, call_key(writer, 0, 0, "near", 4))->blob = blob_text("new");
    call_step(writer, STEP_GET, call_key(writer, 0, 0, "far", 3));
    call_start(rig->workers[0], writer);
    return writer;
}

static void a_reader_waits_for_the_writer_before_it(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    start_cold(&rig, &medium);
    struct call *writer = start_writer(&rig), *reader = call_new();
    struct step *step = call_step(reader, STEP_GET, call_key(reader, 0, 0, "near", 4));
    call_start(rig.workers[1], reader);
    must(!finishes(&rig, reader, 100) && !writer->finished, "a reader overtakes a writer");
    medium_release(medium);
    must(finishes(&rig, writer, SURELY_MS) && finishes(&rig, reader, SURELY_MS), "they hang");
    must(step->found && step->value->len == 3, "the reader shows what was before the writer");
    call_free(writer);
    call_free(reader);
    rig_end(&rig, medium);
}

static void readers_share_a_key(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    start_cold(&rig, &medium);
    struct call *slow = call_new(), *quick = call_new();
    call_step(slow, STEP_GET, call_key(slow, 0, 0, "near", 4));
    call_step(slow, STEP_GET, call_key(slow, 0, 0, "far", 3));
    call_start(rig.workers[0], slow);
    call_step(quick, STEP_GET, call_key(quick, 0, 0, "near", 4));
    call_start(rig.workers[1], quick);
    must(finishes(&rig, quick, SURELY_MS) && !slow->finished, "a reader waits for a reader");
    medium_release(medium);
    must(finishes(&rig, slow, SURELY_MS), "it hangs");
    call_free(slow);
    call_free(quick);
    rig_end(&rig, medium);
}

static struct call *names_twice(struct rig *rig, uint32_t worker)
{
    struct call *call = call_new();
    uint32_t first = call_key(call, 0, 0, "far", 3), again = call_key(call, 0, 0, "far", 3);
    call_step(call, STEP_GET, first);
    call_step(call, STEP_PUT, again)->blob = blob_text("new");
    call_start(rig->workers[worker], call);
    return call;
}

/* At the head of the key's queue, and behind another. */
static void a_key_may_be_named_twice(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    start_cold(&rig, &medium);
    struct call *first = names_twice(&rig, 0), *second = names_twice(&rig, 1);
    must(!finishes(&rig, first, 50) && !finishes(&rig, second, 50), "the test's own assumption");
    medium_release(medium);
    must(finishes(&rig, first, SURELY_MS), "a transaction waits for itself");
    must(finishes(&rig, second, SURELY_MS), "a transaction behind another waits for itself");
    must(second->steps[0].value->len == 3, "the second one does not see the first one's write");
    call_free(first);
    call_free(second);
    rig_end(&rig, medium);
}

/* It is run again from the top, and finds everything as it was. */
static void a_run_that_waits_leaves_nothing_behind(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    start_cold(&rig, &medium);
    struct call *call = call_new();
    uint32_t near = call_key(call, 0, 0, "near", 4), away = call_key(call, 0, 0, "away", 4);
    struct step *before = call_step(call, STEP_GET, near), *after;
    call_step(call, STEP_RENAME, near)->other = away;
    after = call_step(call, STEP_GET, near);
    call_step(call, STEP_GET, call_key(call, 0, 0, "far", 3));
    call_start(rig.workers[0], call);
    must(!finishes(&rig, call, 50), "the test's own assumption");
    medium_release(medium);
    must(finishes(&rig, call, SURELY_MS) && call->result == STORE_OK, "it hangs");
    must(before->found && !after->found, "the run sees what the one before it has written");
    call_free(call);
    must(has_value(&rig, "near", NULL), "it is still there");
    rig_end(&rig, medium);
}

/* A few of the writers' reads keep the device busy; a GET's read does not queue behind all of them.
 */
static void a_reader_does_not_queue_behind_writers(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    struct rng rng = {3};
    struct call *writers[WRITERS], *reader = call_new();
    char key[16];
    start_cold(&rig, &medium);
    medium_release(medium);
    for (uint32_t i = 0; i < WRITERS; i++) {
        snprintf(key, sizeof key, "key%u", i);
        must(do_put(&rig, key, blob_random(&rng, 3000)) == STORE_OK, "put");
    }
    reopen(&rig, medium);
    medium_hold(medium, FAULT_READ, "slabs", 0);
    for (uint32_t i = 0; i < WRITERS; i++) {
        snprintf(key, sizeof key, "key%u", i);
        writers[i] = start_put(&rig, key, "new");
    }
    rig_run(&rig, 50);
    uint32_t held = medium_held(medium);
    must(held > 0 && held < WRITERS / 2, "%u reads of writers are under way", held);
    call_step(reader, STEP_GET, call_key(reader, 0, 0, "far", 3));
    call_start(rig.workers[0], reader);
    rig_run(&rig, 50);
    must(medium_held(medium) == held + 1, "the reader's read stands behind those of writers");
    medium_release(medium);
    must(finishes(&rig, reader, SURELY_MS), "the reader hangs");
    for (uint32_t i = 0; i < WRITERS; i++) {
        must(finishes(&rig, writers[i], SURELY_MS), "a writer hangs");
        call_free(writers[i]);
    }
    call_free(reader);
    rig_end(&rig, medium);
}

static void put_small(struct rig *rig, struct rng *rng, const char *kind, uint32_t i)
{
    char key[32];
    snprintf(key, sizeof key, "%s:%u", kind, i);
    must(do_put(rig, key, blob_random(rng, 1500)) == STORE_OK, "put");
}

static struct call *start_get(struct rig *rig, const char *key)
{
    struct call *call = call_new();
    call_step(call, STEP_GET, call_key(call, 0, 0, key, (uint32_t)strlen(key)));
    call_start(rig->workers[0], call);
    return call;
}

/* Two items to a page: one that a writer wants, with many before it, and one that a GET wants. */
static void a_reader_hurries_a_read_that_is_held_back(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    struct rng rng = {4};
    struct call *writers[WRITERS], *reader;
    struct store_stats stats;
    char key[32];
    start(&rig, &medium);
    for (uint32_t i = 0; i < WRITERS; i++) {
        put_small(&rig, &rng, "write", i);
        put_small(&rig, &rng, "read", i);
    }
    reopen(&rig, medium);
    medium_hold(medium, FAULT_READ, "slabs", 0);
    store_stats(rig.store, &stats);
    uint64_t before = stats.pages_read;
    for (uint32_t i = 0; i < WRITERS; i++) {
        snprintf(key, sizeof key, "write:%u", i);
        writers[i] = start_put(&rig, key, "new");
    }
    rig_run(&rig, 50);
    uint32_t held = medium_held(medium);
    snprintf(key, sizeof key, "read:%u", WRITERS - 1);
    reader = start_get(&rig, key);
    rig_run(&rig, 50);
    must(medium_held(medium) == held + 1, "the read that a GET waits for is held back");
    medium_release(medium);
    must(finishes(&rig, reader, SURELY_MS), "the reader hangs");
    for (uint32_t i = 0; i < WRITERS; i++) {
        must(finishes(&rig, writers[i], SURELY_MS), "a writer hangs");
        call_free(writers[i]);
    }
    store_stats(rig.store, &stats);
    must(stats.pages_read - before <= WRITERS + 1, "the test's own assumption: one page for both");
    call_free(reader);
    rig_end(&rig, medium);
}

/* Memory is scarce, and the maintenance thread, which is to shrink the page cache, waits for a
 * disk: a reader replaces a clean page. */
static void a_reader_needs_no_maintenance_thread_for_a_frame(void **state)
{
    (void)state;
    struct medium *medium;
    struct rig rig;
    struct rng rng = {5};
    struct call *call;
    char key[32];
    start(&rig, &medium);
    for (uint32_t i = 0; i < 2 * READ_PAGES + 4; i++)
        put_small(&rig, &rng, "read", i);
    reopen(&rig, medium);
    stall_a_checkpoint(&rig, medium, "slabs");
    store_set_memory(rig.store, 4 * rig.options.memory_bytes);
    for (uint32_t i = 0; i < 2 * READ_PAGES; i++) {
        snprintf(key, sizeof key, "read:%u", i);
        call = start_get(&rig, key);
        must(finishes(&rig, call, SURELY_MS) && call->result == STORE_OK, "a read hangs");
        call_free(call);
    }
    store_set_memory(rig.store, rig.options.memory_bytes);
    snprintf(key, sizeof key, "read:%u", 2 * READ_PAGES + 3);
    call = start_get(&rig, key);
    must(finishes(&rig, call, PATIENCE_MS) && call->result == STORE_OK,
         "a reader waits for the maintenance thread");
    call_free(call);
    medium_release(medium);
    rig_end(&rig, medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writers_wait_for_room_in_the_ring),
        cmocka_unit_test(room_in_the_ring_comes_back),
        cmocka_unit_test(a_page_under_way_is_not_changed),
        cmocka_unit_test(a_flush_does_not_overtake_its_commit),
        cmocka_unit_test(a_file_grows_well_before_it_is_full),
        cmocka_unit_test(writers_wait_for_an_overdue_flush),
        cmocka_unit_test(a_reader_waits_for_the_writer_before_it),
        cmocka_unit_test(readers_share_a_key),
        cmocka_unit_test(a_key_may_be_named_twice),
        cmocka_unit_test(a_run_that_waits_leaves_nothing_behind),
        cmocka_unit_test(a_reader_does_not_queue_behind_writers),
        cmocka_unit_test(a_reader_hurries_a_read_that_is_held_back),
        cmocka_unit_test(a_reader_needs_no_maintenance_thread_for_a_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
