/* Segments that a class has emptied serve the others: the files do not grow while there is room in
 * them, and a cut in the midst of it leaves nothing of what was there before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../storage/engine.h"
#include "fault_disk.h"

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

static void fill(struct rig *rig, uint32_t count, uint32_t len)
{
    for (uint32_t i = 0; i < count; i++)
        put(rig, i, len);
}

static void empty(struct rig *rig, uint32_t count, uint32_t len)
{
    char name[32];
    for (uint32_t i = 0; i < count; i++) {
        name_of(i, len, name);
        must(do_delete(rig, name) == STORE_OK, "delete %s", name);
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
    rig_close_well(&rig);
    rig_open_on(&rig, medium);
    must(rig.store->is_loaded, "the checkpoint is not loaded");
    fill(&rig, in_segment(900), 900);
    expect_all(&rig, in_segment(900), 900);
    must(damaged(&rig) == 0, "damage: %s", rig.last_warning);
    rig_close_well(&rig);
    medium_free(medium);
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
        rig_sync(&rig, atomic_load(&rig.store->journal.appended));
        if (!size)
            size = medium_size(medium, "extents");
    }
    must(medium_size(medium, "extents") <= size + (5u << 20), "%llu MB of files, once %llu did",
         (unsigned long long)medium_size(medium, "extents") >> 20, (unsigned long long)size >> 20);
    rig_close_well(&rig);
    medium_free(medium);
}

/* A full disk has room again when another class is deleted. */
static void a_full_disk(void **state)
{
    (void)state;
    struct rig rig;
    struct medium *medium = new_store(&rig);
    uint32_t count = 0, small = 4 * in_segment(900);
    char name[32];
    medium_set_room(medium, medium_bytes(medium) + (8u << 20));
    for (;; count++) {
        name_of(count, 3900, name);
        if (do_put(&rig, name, value_of(count, 3900)) != STORE_OK)
            break;
    }
    empty(&rig, count, 3900);
    rig_run(&rig, 1500);
    fill(&rig, small, 900);
    expect_all(&rig, small, 900);
    rig_close_well(&rig);
    medium_free(medium);
}

/* ---- cuts ---- */

/* More of the old ones in a page: redone over the new they would hit others. */
#define OLD_LEN 700u
#define NEW_LEN 1900u
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
    for (uint32_t i = 0; i < old_count; i += 7)
        must(!is_there(&rig, i, OLD_LEN), "%u has come back", i);
    expect_all(&rig, acknowledged, NEW_LEN);
    fill(&rig, 300, 500);
    expect_all(&rig, 300, 500);
    rig_close_well(&rig);
    rig_open_on(&rig, medium);
    expect_all(&rig, 300, 500);
    must(damaged(&rig) == 0, "damage: %s", rig.last_warning);
    rig_close_well(&rig);
    medium_free(medium);
}

static void a_cut_while_a_segment_changes_its_class(void **state)
{
    (void)state;
    struct cuts *cuts = calloc(1, sizeof *cuts);
    struct rig rig;
    uint32_t old_count = 4 * in_segment(OLD_LEN), new_count = 5 * in_segment(NEW_LEN);
    cuts->rng.state = rng_seed("space");
    cuts->writer = &rig;
    struct medium *medium = new_store(&rig);
    store_set_memory(rig.store, 64 << 20); /* so that the journal is all there is, for long */
    fill(&rig, old_count, OLD_LEN);
    empty(&rig, old_count, OLD_LEN);
    rig_sync(&rig, atomic_load(&rig.store->journal.appended));
    medium_record(medium, keep_state, cuts);
    while (cuts->put < new_count) {
        put(&rig, cuts->put, NEW_LEN);
        rig_sync(&rig, atomic_load(&rig.store->journal.appended));
        cuts->put++;
    }
    medium_record(medium, NULL, NULL);
    must(reclaimed(&rig) > 2, "%llu reclaimed", (unsigned long long)reclaimed(&rig));
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
        cmocka_unit_test(a_cut_while_a_segment_changes_its_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
