/* The index against a sorted array: random operations, scans while tables grow and shrink, tags
 * that cluster at both ends, no memory, one huge slot, and what a key costs. A run is repeated with
 * its seed: VELLUM_SEED=n test_index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/index/index.h"
#include "tests/unit/seed.h"

/* ---- random numbers ---- */

struct random {
    uint64_t state;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * UINT64_C(0x7fb5d329728ea185);
    x = (x ^ x >> 27) * UINT64_C(0x81dadef4bc2dd44d);
    return x ^ x >> 33;
}

static uint32_t below(struct random *random, uint32_t bound)
{
    random->state += UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mix(random->state) % bound);
}

static struct random seeded(const char *test)
{
    return (struct random){.state = seed_for(test)};
}

/* ---- the model: all entries, in (slot, tag) order ---- */

#define MODEL_MAX 6000

struct known {
    uint32_t slot, tag, page, item_slot, flags;
};

struct model {
    struct known entries[MODEL_MAX];
    uint32_t count;
};

static uint64_t order_of(uint32_t slot, uint32_t tag)
{
    return (uint64_t)slot << 32 | tag;
}

static uint32_t model_seek(const struct model *model, uint32_t slot, uint32_t tag)
{
    uint32_t from = 0, to = model->count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        const struct known *e = &model->entries[middle];
        if (order_of(e->slot, e->tag) < order_of(slot, tag)) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static void model_insert(struct model *model, struct known entry)
{
    uint32_t at = model_seek(model, entry.slot, entry.tag);
    assert_true(model->count < MODEL_MAX);
    memmove(&model->entries[at + 1], &model->entries[at],
            (model->count - at) * sizeof model->entries[0]);
    model->entries[at] = entry;
    model->count++;
}

static void model_remove(struct model *model, uint32_t at)
{
    model->count--;
    memmove(&model->entries[at], &model->entries[at + 1],
            (model->count - at) * sizeof model->entries[0]);
}

static bool same(uint64_t entry, const struct known *known)
{
    return index_tag(entry) == known->tag && index_page(entry) == known->page &&
           index_item_slot(entry) == known->item_slot && index_flags(entry) == known->flags;
}

/* Where the index has exactly this entry, by find and next. */
static uint32_t position_of(const struct index *ix, const struct known *known)
{
    index_prefetch(ix, known->slot, known->tag);
    uint32_t position = index_find(ix, known->slot, known->tag);
    while (position != INDEX_NONE && !same(index_get(ix, known->slot, position), known)) {
        position = index_next(ix, known->slot, position);
    }
    return position;
}

/* The index holds what the model holds: each is found, and a walk meets no others. */
static void assert_same(const struct index *ix, const struct model *model)
{
    index_check(ix);
    assert_int_equal(index_count(ix), model->count);
    for (uint32_t i = 0; i < model->count; i++) {
        assert_true(position_of(ix, &model->entries[i]) != INDEX_NONE);
    }
    uint32_t met = 0;
    for (uint32_t slot = ix->first_slot; slot < ix->first_slot + ix->slot_count; slot++) {
        uint64_t in_slot = 0;
        uint32_t position = index_seek(ix, slot, 0);
        for (; position != INDEX_NONE; position = index_after(ix, slot, position)) {
            assert_true(met < model->count);
            assert_int_equal(model->entries[met].slot, slot);
            assert_int_equal(model->entries[met].tag, index_tag(index_get(ix, slot, position)));
            met++;
            in_slot++;
        }
        assert_int_equal(index_slot_count(ix, slot), in_slot);
    }
    assert_int_equal(met, model->count);
}

/* ---- random operations ---- */

#define FIRST_SLOT 96
#define SLOT_COUNT 32

enum tags { TAGS_EVEN, TAGS_FEW, TAGS_LOW, TAGS_HIGH, TAGS_SHAPES };

static uint32_t random_tag(struct random *random, enum tags shape)
{
    switch (shape) {
    case TAGS_FEW:
        return below(random, 8) * (INDEX_TAG_MAX / 7);
    case TAGS_LOW:
        return below(random, 3);
    case TAGS_HIGH:
        return INDEX_TAG_MAX - below(random, 3);
    default:
        return below(random, INDEX_TAG_MAX + 1);
    }
}

/* Half of all in one slot, so that there are large and tiny tables. */
static uint32_t random_slot(struct random *random)
{
    return FIRST_SLOT + (below(random, 2) ? 7 : below(random, SLOT_COUNT));
}

static struct known random_entry(struct random *random, enum tags shape)
{
    struct known entry = {
        .slot = random_slot(random),
        .tag = random_tag(random, below(random, 8) == 0 ? TAGS_EVEN : shape),
        .page = 1 + below(random, INDEX_PAGE_MAX),
        .item_slot = below(random, INDEX_ITEM_SLOT_MAX + 1),
        .flags = below(random, INDEX_TRAITS + 1),
    };
    return entry;
}

static bool insert_both(struct index *ix, struct model *model, struct known entry)
{
    if (!index_insert(ix, entry.slot, entry.tag, entry.page, entry.item_slot, entry.flags)) {
        return false;
    }
    model_insert(model, entry);
    return true;
}

static void remove_both(struct index *ix, struct model *model, uint32_t at)
{
    const struct known *known = &model->entries[at];
    uint32_t position = position_of(ix, known);
    assert_true(position != INDEX_NONE);
    index_remove(ix, known->slot, position);
    model_remove(model, at);
}

static void change_both(struct index *ix, struct random *random, struct known *known)
{
    uint32_t position = position_of(ix, known);
    assert_true(position != INDEX_NONE);
    known->page = 1 + below(random, INDEX_PAGE_MAX);
    known->item_slot = below(random, INDEX_ITEM_SLOT_MAX + 1);
    known->flags = below(random, INDEX_TRAITS + 1);
    index_set(ix, known->slot, position, known->page, known->item_slot, known->flags);
    assert_true(same(index_get(ix, known->slot, position), known));
}

static void look_for_random_tag(const struct index *ix, const struct model *model,
                                struct random *random, enum tags shape)
{
    uint32_t slot = random_slot(random), tag = random_tag(random, shape), candidates = 0;
    uint32_t position = index_find(ix, slot, tag);
    for (; position != INDEX_NONE; position = index_next(ix, slot, position)) {
        candidates++;
    }
    uint32_t from = model_seek(model, slot, tag), to = from;
    while (to < model->count && model->entries[to].slot == slot && model->entries[to].tag == tag) {
        to++;
    }
    assert_int_equal(candidates, to - from);
}

/* Memory that lasts for inserts promised, however much is removed in between, and no others. */
static void reserve_and_use(struct index *ix, struct model *model, struct random *random,
                            enum tags shape)
{
    uint32_t slot = random_slot(random), promised = 0, wanted = 1 + below(random, 40);
    while (promised < wanted && index_reserve(ix, slot)) {
        promised++;
    }
    index_check(ix);
    uint64_t limit = ix->memory.pool.limit;
    ix->memory.pool.limit = 0;
    uint32_t released = promised > 0 ? below(random, promised) : 0;
    for (uint32_t i = 0; i < promised; i++) {
        struct known entry = random_entry(random, shape);
        entry.slot = slot;
        if (i < released) {
            index_release(ix, slot);
        } else {
            assert_true(insert_both(ix, model, entry));
        }
        for (uint32_t n = below(random, 4); n > 0 && model->count > 0; n--) {
            remove_both(ix, model, below(random, model->count));
        }
    }
    ix->memory.pool.limit = limit;
}

static void random_operation(struct index *ix, struct model *model, struct random *random,
                             enum tags shape, bool growing)
{
    uint32_t kind = below(random, 100);
    if (kind < (growing ? 50u : 20u) && model->count < MODEL_MAX - 100) {
        (void)insert_both(ix, model, random_entry(random, shape));
    } else if (kind < 70 && model->count > 0) {
        remove_both(ix, model, below(random, model->count));
    } else if (kind < 85 && model->count > 0) {
        change_both(ix, random, &model->entries[below(random, model->count)]);
    } else if (kind < 99) {
        look_for_random_tag(ix, model, random, shape);
    } else {
        reserve_and_use(ix, model, random, shape);
    }
}

static void it_does_what_a_sorted_array_does(void **state)
{
    (void)state;
    struct random random = seeded(__func__);
    struct model *model = calloc(1, sizeof *model);
    struct index ix;
    assert_true(index_init(&ix, FIRST_SLOT, SLOT_COUNT));
    for (uint32_t phase = 0; phase < 48; phase++) {
        enum tags shape = below(&random, TAGS_SHAPES);
        /* Now and then memory runs out: inserts fail, and the rest goes on. */
        ix.memory.pool.limit = phase % 4 == 3 ? ix.memory.pool.bytes : UINT64_MAX;
        for (uint32_t i = 0; i < 1500; i++) {
            random_operation(&ix, model, &random, shape, phase % 8 < 5);
            if (i % 100 == 0) {
                assert_same(&ix, model);
            }
        }
    }
    ix.memory.pool.limit = UINT64_MAX;
    while (model->count > 0) {
        remove_both(&ix, model, below(&random, model->count));
    }
    assert_same(&ix, model);
    assert_int_equal(ix.memory.pool.bytes, 0);
    index_free(&ix);
    free(model);
}

static void clearing_drops_everything(void **state)
{
    (void)state;
    struct random random = seeded(__func__);
    struct model *model = calloc(1, sizeof *model);
    struct index ix;
    assert_true(index_init(&ix, FIRST_SLOT, SLOT_COUNT));
    uint64_t empty = index_bytes(&ix);
    for (uint32_t i = 0; i < 3000; i++) {
        assert_true(insert_both(&ix, model, random_entry(&random, TAGS_EVEN)));
    }
    assert_true(index_reserve(&ix, FIRST_SLOT));
    assert_true(index_bytes(&ix) > empty + 3000 * sizeof(uint64_t));
    index_clear(&ix);
    model->count = 0;
    assert_same(&ix, model);
    assert_int_equal(index_bytes(&ix), empty);
    assert_true(insert_both(&ix, model, random_entry(&random, TAGS_EVEN)));
    assert_same(&ix, model);
    index_free(&ix);
    free(model);
}

/* A table that shrinks keeps the room that was promised, at its end too. */
static void promises_outlast_shrinking(void **state)
{
    (void)state;
    struct random random = seeded(__func__);
    struct model *model = calloc(1, sizeof *model);
    struct index ix;
    assert_true(index_init(&ix, FIRST_SLOT, SLOT_COUNT));
    for (uint32_t i = 0; i < 3000; i++) {
        assert_true(insert_both(&ix, model, random_entry(&random, TAGS_EVEN)));
    }
    for (uint32_t i = 0; i < 60; i++) {
        assert_true(index_reserve(&ix, FIRST_SLOT + 7));
    }
    while (model->count > 0) {
        remove_both(&ix, model, below(&random, model->count));
    }
    index_check(&ix);
    ix.memory.pool.limit = 0;
    for (uint32_t i = 0; i < 60; i++) {
        struct known entry = {.slot = FIRST_SLOT + 7, .tag = INDEX_TAG_MAX, .page = i + 1};
        assert_true(insert_both(&ix, model, entry));
    }
    assert_same(&ix, model);
    index_free(&ix);
    free(model);
}

static void a_failed_insert_changes_nothing(void **state)
{
    (void)state;
    struct random random = seeded(__func__);
    struct model *model = calloc(1, sizeof *model);
    struct index ix;
    assert_true(index_init(&ix, FIRST_SLOT, SLOT_COUNT));
    ix.memory.pool.limit = 0;
    assert_false(index_insert(&ix, FIRST_SLOT, 1, 1, 0, 0));
    assert_false(index_reserve(&ix, FIRST_SLOT));
    assert_same(&ix, model);
    for (uint32_t round = 0; round < 200; round++) {
        ix.memory.pool.limit = UINT64_MAX;
        for (uint32_t i = below(&random, 20); i > 0; i--) {
            assert_true(insert_both(&ix, model, random_entry(&random, TAGS_EVEN)));
        }
        ix.memory.pool.limit = 0;
        uint32_t failures = 0;
        while (failures < 3 && model->count < MODEL_MAX - 100) {
            failures += !insert_both(&ix, model, random_entry(&random, TAGS_HIGH));
        }
        assert_int_equal(failures, 3);
        assert_same(&ix, model);
    }
    index_free(&ix);
    free(model);
}

/* ---- scans ---- */

struct scan {
    const struct model *lasting; /* entries that are there all the time */
    uint32_t seen[MODEL_MAX];
    uint64_t last;         /* order of the entry last visited */
    uint32_t visits, stop; /* visits in this call; refuse the one with this number, if not 0 */
    bool refused;
};

/* Lasting entries are told by their page, which is their number in the model plus 1. */
static bool count_visit(void *arg, uint32_t slot, uint64_t entry)
{
    struct scan *scan = arg;
    uint64_t order = order_of(slot, index_tag(entry));
    assert_true(order >= scan->last);
    if (++scan->visits == scan->stop) {
        scan->refused = true;
        return false;
    }
    scan->last = order;
    if (index_page(entry) <= scan->lasting->count) {
        scan->seen[index_page(entry) - 1]++;
    }
    return true;
}

static void fill_lasting(struct index *ix, struct model *lasting, struct random *random)
{
    for (uint32_t i = 0; i < 1000; i++) {
        struct known entry = random_entry(random, i % 10 == 0 ? TAGS_FEW : TAGS_EVEN);
        entry.page = i + 1;
        assert_true(insert_both(ix, lasting, entry));
    }
}

/* Removes or inserts many entries that do not last. */
static void disturb(struct index *ix, struct model *passing, struct random *random)
{
    bool growing = passing->count < 50 || (passing->count < 4000 && below(random, 2));
    for (uint32_t i = 0; i < 300; i++) {
        struct known entry = random_entry(random, TAGS_EVEN);
        entry.page = MODEL_MAX + 1 + below(random, 1000);
        if (growing) {
            assert_true(insert_both(ix, passing, entry));
        } else if (passing->count > 0) {
            remove_both(ix, passing, below(random, passing->count));
        }
    }
}

/* One scan from end to end, with growth or shrinking after every call. */
static void run_scan(struct index *ix, struct scan *scan, struct model *passing,
                     struct random *random, bool refusing)
{
    struct index_cursor at = {.slot = FIRST_SLOT};
    bool more = true;
    memset(scan->seen, 0, sizeof scan->seen);
    scan->last = 0;
    while (more) {
        uint32_t limit = below(random, 60);
        scan->visits = 0;
        scan->refused = false;
        scan->stop = refusing && below(random, 2) ? 1 + below(random, 30) : 0;
        more = index_scan(ix, &at, limit, count_visit, scan);
        assert_true(more || !scan->refused);
        if (more && !scan->refused) {
            assert_true(scan->visits >= limit && scan->visits >= 1);
        }
        disturb(ix, passing, random);
    }
    for (uint32_t i = 0; i < scan->lasting->count; i++) {
        assert_true(refusing ? scan->seen[i] >= 1 : scan->seen[i] == 1);
    }
}

static void a_scan_sees_what_is_there_throughout(void **state)
{
    (void)state;
    struct random random = seeded(__func__);
    struct model *lasting = calloc(1, sizeof *lasting), *passing = calloc(1, sizeof *passing);
    struct scan *scan = calloc(1, sizeof *scan);
    struct index ix;
    assert_true(index_init(&ix, FIRST_SLOT, SLOT_COUNT));
    fill_lasting(&ix, lasting, &random);
    scan->lasting = lasting;
    for (uint32_t round = 0; round < 20; round++) {
        run_scan(&ix, scan, passing, &random, round % 2);
    }
    index_check(&ix);
    index_free(&ix);
    free(scan);
    free(passing);
    free(lasting);
}

static void an_empty_index_is_scanned_in_one_call(void **state)
{
    (void)state;
    struct index ix;
    struct index_cursor at = {.slot = 0};
    assert_true(index_init(&ix, 0, 16384));
    assert_false(index_scan(&ix, &at, 10, count_visit, NULL));
    assert_int_equal(at.slot, 16384);
    index_free(&ix);
}

/* ---- size ---- */

static bool insert_number(struct index *ix, uint32_t slots, uint64_t number)
{
    uint64_t hash = mix(number + 1);
    return index_insert(ix, (uint32_t)(hash % slots), (uint32_t)(hash >> INDEX_TAG_SHIFT),
                        1 + (uint32_t)(number % INDEX_PAGE_MAX), 0, false);
}

static uint32_t find_number(const struct index *ix, uint32_t slots, uint64_t number)
{
    uint64_t hash = mix(number + 1);
    uint32_t slot = (uint32_t)(hash % slots);
    uint32_t position = index_find(ix, slot, (uint32_t)(hash >> INDEX_TAG_SHIFT));
    while (position != INDEX_NONE && index_page(index_get(ix, slot, position)) != number + 1) {
        position = index_next(ix, slot, position);
    }
    return position;
}

/* From 1 M keys on, over somewhat more than a growth step; and most of it given back at the end. */
static void a_key_costs_12_bytes_at_most(void **state)
{
    (void)state;
    const uint32_t slots = 16384, keys = 1000000;
    struct index ix;
    assert_true(index_init(&ix, 0, slots));
    double worst = 0;
    for (uint32_t i = 0; i < keys + keys / 5; i++) {
        assert_true(insert_number(&ix, slots, i));
        if (i + 1 >= keys && (i + 1) % (keys / 50) == 0) {
            double cost = (double)index_bytes(&ix) / (i + 1);
            worst = cost > worst ? cost : worst;
        }
    }
    print_message("worst of ten: %.2f bytes per key\n", worst);
    assert_true(worst > 8 && worst <= 12);
    index_check(&ix);
    for (uint32_t i = 0; i < keys + keys / 5 - 100000; i++) {
        uint32_t position = find_number(&ix, slots, i);
        assert_true(position != INDEX_NONE);
        index_remove(&ix, (uint32_t)(mix(i + 1) % slots), position);
    }
    index_check(&ix);
    assert_true(index_bytes(&ix) <= 100000 * 30);
    index_free(&ix);
}

static void one_slot_may_hold_them_all(void **state)
{
    (void)state;
    const uint32_t keys = 700000;
    struct index ix;
    assert_true(index_init(&ix, 0, 1));
    for (uint32_t i = 0; i < keys; i++) {
        assert_true(insert_number(&ix, 1, i));
        assert_true(i < 100000 || index_bytes(&ix) <= (i + UINT64_C(1)) * 11);
    }
    index_check(&ix);
    for (uint32_t i = 0; i < keys; i++) {
        assert_true(find_number(&ix, 1, i) != INDEX_NONE);
        if (i % 50 != 0) {
            index_remove(&ix, 0, find_number(&ix, 1, i));
        }
    }
    index_check(&ix);
    assert_int_equal(index_count(&ix), keys / 50);
    assert_true(index_bytes(&ix) <= (uint64_t)keys / 50 * 30);
    for (uint32_t i = 0; i < keys; i++) {
        assert_true((find_number(&ix, 1, i) != INDEX_NONE) == (i % 50 == 0));
    }
    index_free(&ix);
}

/* Thousands of equal tags at either end, where the margin has to hold them. */
static void equal_tags_fit_at_both_ends(void **state)
{
    (void)state;
    const uint32_t tags[] = {0, INDEX_TAG_MAX};
    for (uint32_t t = 0; t < 2; t++) {
        struct index ix;
        assert_true(index_init(&ix, 0, 1));
        for (uint32_t i = 0; i < 5000; i++) {
            assert_true(index_insert(&ix, 0, tags[t], i + 1, 0, 0));
        }
        index_check(&ix);
        assert_true(index_bytes(&ix) <= sizeof ix + 5000 * 40);
        uint32_t candidates = 0;
        uint32_t position = index_find(&ix, 0, tags[t]);
        for (; position != INDEX_NONE; position = index_next(&ix, 0, position)) {
            candidates++;
        }
        assert_int_equal(candidates, 5000);
        while (index_count(&ix) > 0) {
            index_remove(&ix, 0, index_find(&ix, 0, tags[t]));
        }
        index_check(&ix);
        assert_int_equal(index_find(&ix, 0, tags[t]), INDEX_NONE);
        index_free(&ix);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_does_what_a_sorted_array_does),
        cmocka_unit_test(clearing_drops_everything),
        cmocka_unit_test(promises_outlast_shrinking),
        cmocka_unit_test(a_failed_insert_changes_nothing),
        cmocka_unit_test(a_scan_sees_what_is_there_throughout),
        cmocka_unit_test(an_empty_index_is_scanned_in_one_call),
        cmocka_unit_test(a_key_costs_12_bytes_at_most),
        cmocka_unit_test(one_slot_may_hold_them_all),
        cmocka_unit_test(equal_tags_fit_at_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
