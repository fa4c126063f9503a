/* Segments that a class has emptied serve the others: the files do not grow while there is room in
 * them, and a cut in the midst of it leaves nothing of what was there before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/txn/engine.h"
#include "tests/storage/fault_disk.h"
#include "storage/txn/wait.h"

#define SEGMENTS 6u

static struct medium *new_store(struct rig *rig)
{
    struct medium *medium = medium_new(1);
    rig_defaults(rig);
    rig->options.partition_count = 1;
    rig_open_on(rig, medium);
    return medium;
}

/* The value of key `i` among those of `len` bytes. */
static struct blob *value_of(uint32_t i, uint32_t len)
{
    struct rng rng = {(uint64_t)len << 32 | i};
    return blob_random(&rng, len);
}

static void name_of(uint32_t i, uint32_t len, char name[32])
{
    snprintf(name, 32, "%u:%u", len, i);
}

static void put(struct rig *rig, uint32_t i, uint32_t len)
{
    char name[32];
    name_of(i, len, name);
    must(do_put(rig, name, value_of(i, len)) == STORE_OK, "put %s", name);
}

static void run(struct rig *rig, struct call *call, const char *what)
{
    call_start(rig->workers[0], call);
    call_wait(rig, call);
    must(call->result == STORE_OK, "%s: %d", what, call->result);
    call_free(call);
}

/* Applied in memory; the function does not wait until it is durable. */
static void fill(struct rig *rig, uint32_t count, uint32_t len)
{
    char name[32];
    for (uint32_t i = 0; i < count;) {
        struct call *call = call_new();
        for (uint32_t end = i + CALL_STEPS; i < count && i < end; i++) {
            name_of(i, len, name);
            uint32_t key = call_key(call, 0, i, name, (uint32_t)strlen(name));
            call_step(call, STEP_PUT, key)->blob = value_of(i, len);
        }
        run(rig, call, "put");
    }
}

static void empty(struct rig *rig, uint32_t count, uint32_t len)
{
    char name[32];
    for (uint32_t i = 0; i < count;) {
        struct call *call = call_new();
        for (uint32_t end = i + CALL_STEPS; i < count && i < end; i++) {
            name_of(i, len, name);
            call_step(call, STEP_DELETE, call_key(call, 0, i, name, (uint32_t)strlen(name)));
        }
        run(rig, call, "delete");
    }
}

/* Whether it is there; then it is what was put. */
static bool is_there(struct rig *rig, uint32_t i, uint32_t len)
{
    char name[32];
    enum store_result result;
    name_of(i, len, name);
    struct blob *found = do_get(rig, name, &result), *wanted = value_of(i, len);
    must(found || result == STORE_ABSENT, "%s: %d", name, result);
    must(!found || (found->len == len && memcmp(found->bytes, wanted->bytes, len) == 0),
         "%s has another value", name);
    blob_unref(wanted);
    blob_unref(found);
    return result == STORE_OK;
}

static void expect_all(struct rig *rig, uint32_t count, uint32_t len)
{
    for (uint32_t i = 0; i < count; i++)
        must(is_there(rig, i, len), "%u:%u is gone", len, i);
}

static uint64_t reclaimed(const struct rig *rig)
{
    struct store_stats stats;
    store_stats(rig->store, &stats);
    return stats.segments_reclaimed;
}

static uint64_t damaged(const struct rig *rig)
{
    struct store_stats stats;
    store_stats(rig->store, &stats);
    return stats.damaged_items;
}

static void sync_all(struct rig *rig)
{
    rig_sync(rig, atomic_load(&rig->store->journal.appended));
}

/* Of `len` bytes, how many fill a segment. */
static uint32_t in_segment(uint32_t len)
{
    uint32_t item = (uint32_t)sizeof(struct format_item) + 32 + len;
    return (SEGMENT_PAGES - 1) * format_class_slots(format_class_for(item));
}

static void one_class_after_another(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {3900, 900, 1900, 3900, 400};
    struct rig rig;
    struct medium *medium = new_store(&rig);
    uint64_t size = 0;
    for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint32_t count = SEGMENTS * in_segment(lengths[i]);
        fill(&rig, count, lengths[i]);
        if (i == 0)
            size = medium_size(medium, "slabs-00");
        expect_all(&rig, count, lengths[i]);
        empty(&rig, count, lengths[i]);
    }
    must(medium_size(medium, "slabs-00") <= size + (4u << 20), "%llu MB of files, once %llu did",
         (unsigned long long)medium_size(medium, "slabs-00") >> 20, (unsigned long long)size >> 20);
    must(reclaimed(&rig) > 3 * SEGMENTS, "%llu reclaimed", (unsigned long long)reclaimed(&rig));
    rig_reopen(&rig, medium);
    must(rig.store->is_loaded, "the checkpoint is not loaded");
    fill(&rig, in_segment(900), 900);
    expect_all(&rig, in_segment(900), 900);
    must(damaged(&rig) == 0, "damage: %s", rig.last_warning);
    rig_end(&rig, medium);
}

/* Extents, too, of all numbers of pages. */
static void large_values_of_all_sizes(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = new_store(&rig);
    uint64_t size = 0;
    for (uint32_t pages = 31; pages > 1; pages -= 5) {
        uint32_t len = pages * PAGE_SIZE - 100, count = 5 * (SEGMENT_PAGES / pages);
        fill(&rig, count, len);
        expect_all(&rig, count, len);
        empty(&rig, count, len);
        rig_run(&rig, 150); /* deferred until the deletions are durable */
        sync_all(&rig);
        if (!size)
            size = medium_size(medium, "extents");
    }
    must(medium_size(medium, "extents") <= size + (5u << 20), "%llu MB of files, once %llu did",
         (unsigned long long)medium_size(medium, "extents") >> 20, (unsigned long long)size >> 20);
    rig_end(&rig, medium);
}

static uint32_t fill_up(struct rig *rig, uint32_t len)
{
    char name[32];
    for (uint32_t count = 0;; count++) {
        name_of(count, len, name);
        if (do_put(rig, name, value_of(count, len)) != STORE_OK)
            return count;
    }
}

/* A full disk has room again when another class is deleted, to the last segment. */
static void a_full_disk(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = new_store(&rig);
    medium_set_room(medium, medium_bytes(medium) + (8u << 20));
    uint32_t count = fill_up(&rig, 3900), segments = count / in_segment(3900);
    empty(&rig, count, 3900);
    rig_run(&rig, 1500);
    uint32_t small = fill_up(&rig, 900);
    must(small >= segments * in_segment(900), "%u values, where %u have room", small,
         segments * in_segment(900));
    expect_all(&rig, small, 900);
    rig_end(&rig, medium);
}

/* Items that grow step by step leave class after class empty, again and again. */
static void growing_items_find_room_where_they_were(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {100, 200, 400, 900, 1900, 3900};
    struct rig rig;
    struct medium *medium = new_store(&rig);
    for (uint32_t i = 0; i < 300; i++) {
        for (uint32_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
            struct blob *value = value_of(i, lengths[j]);
            must(do_put(&rig, "grows", value) == STORE_OK, "put");
        }
        must(do_delete(&rig, "grows") == STORE_OK, "delete");
    }
    must(reclaimed(&rig) == 0, "%llu segments change their classes",
         (unsigned long long)reclaimed(&rig));
    rig_end(&rig, medium);
}

/* ---- order ---- */

#define HELD_LEN 3000u
#define HELD_MS 150u

/* Three segments full of values that stand nowhere but there, and a cache with room for all of it.
 */
static struct medium *full_segments(struct rig *rig, uint32_t *count)
{
    struct medium *medium = new_store(rig);
    *count = 3 * in_segment(HELD_LEN);
    fill(rig, *count, HELD_LEN);
    rig_close_well(rig);
    rig->options.memory_bytes = 64 << 20;
    rig_open_on(rig, medium);
    return medium;
}

/* Three segments whose values have been deleted, on slabs that hold these operations back. One of
 * them stays with its class. */
static struct medium *emptied_segments(struct rig *rig, uint32_t *count, enum fault_kind held)
{
    struct medium *medium = full_segments(rig, count);
    empty(rig, *count, HELD_LEN);
    sync_all(rig);
    medium_hold(medium, held, "slabs", 0);
    return medium;
}

static void ask_for_room(struct rig *rig)
{
    struct page_file *file = &rig->store->partitions[0].file;
    pthread_mutex_lock(&file->lock);
    file->growing = true;
    pthread_mutex_unlock(&file->lock);
    maintenance_ask(rig->store);
}

static void cut(struct rig *rig, struct medium *medium)
{
    medium_set_fate(medium, FATE_LOST);
    medium_cut_now(medium);
    must(rig_close(rig) != STORE_OK, "closing without power");
}

static uint64_t reclaimed_when_asked(struct rig *rig)
{
    ask_for_room(rig);
    rig_run(rig, HELD_MS);
    return reclaimed(rig);
}

/* A segment is emptied on disk only when no crash can bring back what was in it. */
static void deletions_are_durable_first(void **state)
{
    (void)state;
    struct rig rig;
    uint32_t count;
    struct medium *medium = full_segments(&rig, &count);
    medium_hold(medium, FAULT_WRITE, "journal", 0);
    empty(&rig, count, HELD_LEN);
    must(reclaimed_when_asked(&rig) == 0, "segments are blank before the deletions are durable");
    cut(&rig, medium);
    rig_open_on(&rig, medium);
    expect_all(&rig, count, HELD_LEN);
    must(damaged(&rig) == 0, "damage: %s", rig.last_warning);
    rig_end(&rig, medium);
}

/* And it may be taken only when a crash cannot bring it back either. */
static void zeros_are_durable_first(void **state)
{
    (void)state;
    struct rig rig;
    uint32_t count;
    struct medium *medium = emptied_segments(&rig, &count, FAULT_FLUSH);
    must(reclaimed_when_asked(&rig) == 0, "segments are blank before the zeros are durable");
    medium_release(medium);
    for (uint32_t i = 0; i < 200 && reclaimed_when_asked(&rig) == 0; i++)
        ;
    must(reclaimed(&rig) == 2, "%llu are reclaimed", (unsigned long long)reclaimed(&rig));
    rig_end(&rig, medium);
}

/* What was to be emptied when the power went is emptied by the start, cut as often as one likes:
 * the next ones know nothing of it. */
static void a_start_goes_on_emptying(void **state)
{
    (void)state;
    struct rig rig;
    uint32_t count, small = in_segment(900);
    struct medium *medium = emptied_segments(&rig, &count, FAULT_WRITE);
    ask_for_room(&rig);
    for (uint32_t i = 0; i < 2000 && medium_held(medium) == 0; i++)
        rig_run(&rig, 1);
    must(medium_held(medium) > 0, "nothing is being emptied");
    cut(&rig, medium);
    for (uint32_t events = 1; !rig_try_open(&rig, medium, events); events++)
        medium_set_fate(medium, (enum fate)(events % FATES));
    fill(&rig, small, 900);
    rig.options.scans = true;
    for (uint32_t i = 0; i < 2; i++) {
        expect_all(&rig, small, 900);
        for (uint32_t j = 0; j < count; j++)
            must(!is_there(&rig, j, HELD_LEN), "%u has come back", j);
        must(damaged(&rig) == 0, "damage: %s", rig.last_warning);
        rig_reopen(&rig, medium);
    }
    rig_end(&rig, medium);
}

/* One item, or one value reader, is enough. */
static void what_is_in_use_stays(void **state)
{
    (void)state;
    struct rig rig;
    uint32_t count;
    char name[32];
    struct medium *medium = full_segments(&rig, &count);
    struct page_file *file = &rig.store->partitions[0].file;
    for (uint32_t i = 0; i < count; i++) { /* of each segment one stays */
        name_of(i, HELD_LEN, name);
        if (i != 1 && i != count / 2 && i != count - 2)
            must(do_delete(&rig, name) == STORE_OK, "delete %s", name);
    }
    must(reclaimed_when_asked(&rig) == 0, "a segment is taken that is not empty");
    must(is_there(&rig, 1, HELD_LEN) && is_there(&rig, count - 2, HELD_LEN), "an item is gone");
    name_of(1, HELD_LEN, name);
    must(do_delete(&rig, name) == STORE_OK, "delete %s", name);
    pthread_mutex_lock(&file->lock);
    uint32_t first = 0;
    while (!page_file_segment_is_free(file, first))
        first++;
    uint32_t frame = file->table[first * SEGMENT_PAGES + 1];
    must(frame, "the page is not in memory");
    page_file_ref(file, frame);
    pthread_mutex_unlock(&file->lock);
    must(reclaimed_when_asked(&rig) == 0, "a segment is taken while a page of it is read");
    pthread_mutex_lock(&file->lock);
    page_file_unref(file, frame);
    pthread_mutex_unlock(&file->lock);
    for (uint32_t i = 0; i < 200 && reclaimed_when_asked(&rig) == 0; i++)
        ;
    must(reclaimed(&rig) == 1, "%llu are reclaimed", (unsigned long long)reclaimed(&rig));
    must(is_there(&rig, count - 2, HELD_LEN), "an item is gone");
    rig_end(&rig, medium);
}

/* Until the older frame has been written: a clean copy might be evicted, and the page read again as
 * it was on the disk before. */
static void a_copy_of_what_is_being_written_stays(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = new_store(&rig);
    put(&rig, 1, 100);
    sync_all(&rig);
    struct page_file *file = &rig.store->partitions[0].file;
    pthread_mutex_lock(&file->lock);
    uint32_t page = 0;
    while (!file->table[page] || !arena_frame(file->arena, file->table[page])->dirty)
        page++;
    uint32_t old = file->table[page], copy = old;
    page_file_mark_clean(file, old); /* as write-back does */
    page_file_ref(file, old);
    arena_frame(file->arena, old)->writing = true;
    must(page_file_writable(file, &copy) && copy != old, "no copy");
    must(arena_frame(file->arena, copy)->dirty, "the copy may be evicted");
    arena_frame(file->arena, old)->writing = false;
    page_file_unref(file, old);
    pthread_mutex_unlock(&file->lock);
    must(is_there(&rig, 1, 100), "the key is gone");
    rig_end(&rig, medium);
}

/* ---- cuts ---- */

/* Many of the old ones in a page: redone over the new they would hit other pages, and segments. */
#define OLD_LEN 300u
#define NEW_LEN 3900u
#define LATEST 16u

struct state {
    struct medium *medium;
    uint32_t acknowledged; /* new values that must be there */
};

struct cuts {
    struct rng rng;
    struct rig *writer;
    struct state kept[300], latest[LATEST]; /* the latest: a ring */
    uint32_t count, turn;
    uint64_t reclaimed;
    _Atomic uint32_t put; /* new values, acknowledged by now */
};

static void keep(struct cuts *cuts, struct state *state)
{
    if (cuts->count < sizeof cuts->kept / sizeof *cuts->kept)
        cuts->kept[cuts->count++] = *state;
    else if (state->medium)
        medium_free(state->medium);
    state->medium = NULL;
}

/* Some of the states, and those just before segments had been emptied. */
static void keep_state(void *arg, struct medium *medium)
{
    struct cuts *cuts = arg;
    uint64_t count = atomic_load(&cuts->writer->store->segments_reclaimed);
    struct state *state = &cuts->latest[cuts->turn++ % LATEST];
    for (uint32_t i = 0; i < LATEST && count != cuts->reclaimed; i++)
        if (cuts->latest[i].medium)
            keep(cuts, &cuts->latest[i]);
    cuts->reclaimed = count;
    if (state->medium && rng_chance(&cuts->rng, 2))
        keep(cuts, state);
    else if (state->medium)
        medium_free(state->medium);
    *state = (struct state){medium, cuts->put};
}

static void check_state(struct medium *medium, uint32_t acknowledged, uint32_t old_count,
                        uint32_t fate)
{
    struct rig rig;
    rig_defaults(&rig);
    medium_set_fate(medium, (enum fate)fate);
    rig_open_on(&rig, medium);
    must(damaged(&rig) == 0, "damage: %s", rig.last_warning);
    for (uint32_t i = 0; i < old_count; i += 17)
        must(!is_there(&rig, i, OLD_LEN), "%u has come back", i);
    expect_all(&rig, acknowledged, NEW_LEN);
    fill(&rig, 300, 500);
    expect_all(&rig, 300, 500);
    rig_close_well(&rig);
    rig.options.scans = true;
    rig_open_on(&rig, medium);
    expect_all(&rig, 300, 500);
    expect_all(&rig, acknowledged, NEW_LEN);
    for (uint32_t i = 0; i < old_count; i += 17)
        must(!is_there(&rig, i, OLD_LEN), "%u has come back later", i);
    must(damaged(&rig) == 0, "damage: %s", rig.last_warning);
    rig_end(&rig, medium);
}

static void a_cut_while_a_segment_changes_its_class(void **state)
{
    (void)state;
    struct cuts *cuts = calloc(1, sizeof *cuts);
    struct rig rig;
    uint32_t old_count = 3 * in_segment(OLD_LEN), new_count = 4 * in_segment(NEW_LEN);
    cuts->rng.state = rng_seed("space");
    cuts->writer = &rig;
    struct medium *medium = medium_new(1);
    rig_defaults(&rig);
    rig.options.partition_count = 1;
    rig.options.memory_bytes = 64 << 20; /* so that the journal is all there is, for long */
    rig.options.journal_bytes = 32 << 20;
    rig_open_on(&rig, medium);
    fill(&rig, old_count, OLD_LEN);
    empty(&rig, old_count, OLD_LEN);
    sync_all(&rig);
    medium_record(medium, keep_state, cuts);
    while (cuts->put < new_count) {
        put(&rig, cuts->put, NEW_LEN);
        sync_all(&rig);
        cuts->put++;
    }
    medium_record(medium, NULL, NULL);
    must(reclaimed(&rig) > 1, "%llu reclaimed", (unsigned long long)reclaimed(&rig));
    rig_close_well(&rig);
    printf("%u states\n", cuts->count);
    for (uint32_t i = 0; i < cuts->count; i++)
        check_state(cuts->kept[i].medium, cuts->kept[i].acknowledged, old_count, i % FATES);
    for (uint32_t i = 0; i < LATEST; i++)
        if (cuts->latest[i].medium)
            medium_free(cuts->latest[i].medium);
    medium_free(medium);
    free(cuts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_class_after_another),
        cmocka_unit_test(large_values_of_all_sizes),
        cmocka_unit_test(a_full_disk),
        cmocka_unit_test(growing_items_find_room_where_they_were),
        cmocka_unit_test(deletions_are_durable_first),
        cmocka_unit_test(zeros_are_durable_first),
        cmocka_unit_test(a_start_goes_on_emptying),
        cmocka_unit_test(what_is_in_use_stays),
        cmocka_unit_test(a_copy_of_what_is_being_written_stays),
        cmocka_unit_test(a_cut_while_a_segment_changes_its_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
