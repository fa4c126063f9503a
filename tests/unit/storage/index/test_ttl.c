/* The expiry table against a plain list: random operations, walks while it grows and shrinks, times
 * out of range, promises kept without memory. A run is repeated with its seed: VELLUM_SEED=n. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/index/index.h"
#include "storage/index/ttl.h"
#include "tests/unit/seed.h"

#define BASE_MS INT64_C(1700000000000)
#define FIRST_SLOT 8192
#define SLOT_COUNT 8192

struct random {
    uint64_t state;
};

static uint32_t below(struct random *random, uint32_t bound)
{
    random->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = random->state;
    x = (x ^ x >> 31) * UINT64_C(0x7fb5d329728ea185);
    x = (x ^ x >> 27) * UINT64_C(0x81dadef4bc2dd44d);
    return (uint32_t)((x ^ x >> 33) % bound);
}

static struct random seeded(const char *test)
{
    return (struct random){.state = seed_for(test)};
}

struct known {
    uint32_t slot, tag;
    int64_t expire_ms;
    uint32_t named; /* times, in the present walk */
};

#define MODEL_MAX 20000

struct model {
    struct known entries[MODEL_MAX];
    uint32_t count;
    int64_t now_ms;
    uint64_t strangers; /* named, but not in the model or not expired */
};

static struct known random_entry(struct random *random)
{
    bool crowd = below(random, 4) == 0; /* few identities, so that there are equal ones */
    return (struct known){
        .slot =
            FIRST_SLOT + (crowd ? below(random, 2) * (SLOT_COUNT - 1) : below(random, SLOT_COUNT)),
        .tag = crowd ? below(random, 2) * INDEX_TAG_MAX : below(random, INDEX_TAG_MAX + 1),
        .expire_ms = BASE_MS + below(random, 100000),
    };
}

static bool add_both(struct ttl *ttl, struct model *model, struct known entry)
{
    if (!ttl_add(ttl, entry.slot, entry.tag, entry.expire_ms)) {
        return false;
    }
    assert_true(model->count < MODEL_MAX);
    model->entries[model->count++] = entry;
    return true;
}

static void remove_both(struct ttl *ttl, struct model *model, uint32_t at)
{
    struct known entry = model->entries[at];
    model->entries[at] = model->entries[--model->count];
    assert_true(ttl_remove(ttl, entry.slot, entry.tag, entry.expire_ms));
}

static bool is_before(const struct known *a, const struct known *b)
{
    return a->named != b->named ? a->named < b->named : a->expire_ms < b->expire_ms;
}

/* Of equal keys the one that expired first and was named least is meant. */
static bool name_in_model(void *arg, uint32_t slot, uint32_t tag)
{
    struct model *model = arg;
    struct known *least = NULL;
    for (uint32_t i = 0; i < model->count; i++) {
        struct known *e = &model->entries[i];
        if (e->slot == slot && e->tag == tag && e->expire_ms <= model->now_ms &&
            (least == NULL || is_before(e, least))) {
            least = e;
        }
    }
    if (least == NULL) {
        model->strangers++;
    } else {
        least->named++;
    }
    return true;
}

static bool ignore_named(void *arg, uint32_t slot, uint32_t tag)
{
    (void)arg;
    (void)slot;
    (void)tag;
    return true;
}

/* One whole walk, from wherever the last one stopped, names each expired entry once, and nothing
 * else. */
static void assert_same(struct ttl *ttl, struct model *model)
{
    ttl_check(ttl);
    assert_int_equal(ttl_count(ttl), model->count);
    for (uint32_t i = 0; i < model->count; i++) {
        model->entries[i].named = 0;
    }
    (void)ttl_step(ttl, model->now_ms, model->count / 3, ignore_named, NULL);
    assert_int_equal(ttl_step(ttl, model->now_ms, UINT64_MAX, name_in_model, model), model->count);
    assert_int_equal(model->strangers, 0);
    for (uint32_t i = 0; i < model->count; i++) {
        const struct known *e = &model->entries[i];
        assert_true(e->named <= 1);
        assert_true(e->named == 1 || e->expire_ms > model->now_ms - TTL_UNIT_MS);
    }
}

static void it_does_what_a_list_does(void **state)
{
    (void)state;
    struct random random = seeded(__func__);
    struct ttl *ttl = malloc(sizeof *ttl);
    struct model *model = calloc(1, sizeof *model);
    ttl_init(ttl, FIRST_SLOT, SLOT_COUNT, BASE_MS);
    for (uint32_t phase = 0; phase < 24; phase++) {
        ttl->memory.pool.limit = phase % 6 == 5 ? ttl->memory.pool.bytes : UINT64_MAX;
        model->now_ms = BASE_MS + below(&random, 3000);
        for (uint32_t i = 0; i < 1000; i++) {
            if (below(&random, 100) < (phase % 8 < 5 ? 70u : 25u)) {
                (void)add_both(ttl, model, random_entry(&random));
            } else if (model->count > 0) {
                remove_both(ttl, model, below(&random, model->count));
            }
        }
        assert_same(ttl, model);
    }
    while (model->count > 0) {
        remove_both(ttl, model, below(&random, model->count));
    }
    assert_same(ttl, model);
    assert_int_equal(ttl->memory.pool.bytes, 0);
    free(model);
    free(ttl);
}

static void what_was_not_added_is_not_removed(void **state)
{
    (void)state;
    struct ttl *ttl = malloc(sizeof *ttl);
    ttl_init(ttl, 0, 16384, BASE_MS);
    assert_false(ttl_remove(ttl, 0, 0, BASE_MS));
    assert_true(ttl_add(ttl, 0, 0, BASE_MS + 1000));
    assert_true(ttl_add(ttl, 0, 0, BASE_MS + 5000));
    assert_false(ttl_remove(ttl, 0, 0, BASE_MS + 3000));
    assert_false(ttl_remove(ttl, 1, 0, BASE_MS + 1000));
    assert_false(ttl_remove(ttl, 0, 1, BASE_MS + 1000));
    assert_false(ttl_remove(ttl, 0, 256, BASE_MS + 1000));
    assert_true(ttl_remove(ttl, 0, 0, BASE_MS + 5000));
    assert_false(ttl_remove(ttl, 0, 0, BASE_MS + 5000));
    assert_int_equal(ttl_count(ttl), 1);
    ttl_clear(ttl);
    ttl_check(ttl);
    assert_int_equal(ttl_count(ttl), 0);
    assert_int_equal(ttl_bytes(ttl), sizeof *ttl);
    free(ttl);
}

struct named {
    uint64_t count;
    uint32_t slot, tag;
};

static bool count_named(void *arg, uint32_t slot, uint32_t tag)
{
    struct named *named = arg;
    *named = (struct named){.count = named->count + 1, .slot = slot, .tag = tag};
    return true;
}

static bool count_three(void *arg, uint32_t slot, uint32_t tag)
{
    struct named *named = arg;
    return named->count < 3 && count_named(arg, slot, tag);
}

static uint64_t named_at(struct ttl *ttl, int64_t now_ms)
{
    struct named named = {.count = 0};
    (void)ttl_step(ttl, now_ms, UINT64_MAX, count_named, &named);
    return named.count;
}

/* Each of these keys alone: not named before its time, and soon after it. */
static void a_key_is_named_when_it_has_expired(void **state)
{
    (void)state;
    const int64_t times[] = {BASE_MS + 1, BASE_MS + 127, BASE_MS + 128, BASE_MS + 86400000,
                             BASE_MS + INT64_C(16) * 365 * 86400000};
    const uint32_t slots[] = {0, 16383}, tags[] = {0, 1, 255, 256, INDEX_TAG_MAX};
    struct ttl *ttl = malloc(sizeof *ttl);
    ttl_init(ttl, 0, 16384, BASE_MS);
    for (uint32_t i = 0; i < 5 * 2 * 5; i++) {
        int64_t time_ms = times[i % 5];
        uint32_t slot = slots[i / 5 % 2], tag = tags[i / 10];
        struct named named = {.count = 0};
        assert_true(ttl_add(ttl, slot, tag, time_ms));
        (void)ttl_step(ttl, time_ms - 1, UINT64_MAX, count_named, &named);
        assert_int_equal(named.count, 0);
        (void)ttl_step(ttl, time_ms + TTL_UNIT_MS, UINT64_MAX, count_named, &named);
        assert_int_equal(named.count, 1);
        assert_int_equal(named.slot, slot);
        assert_int_equal(named.tag, tag);
        assert_true(ttl_remove(ttl, slot, tag, time_ms));
    }
    free(ttl);
}

static void times_out_of_range_are_kept(void **state)
{
    (void)state;
    const int64_t past[] = {INT64_MIN, -1, 0, BASE_MS - 100000, BASE_MS};
    const int64_t future[] = {INT64_MAX, INT64_MAX - BASE_MS, BASE_MS * 2};
    struct ttl *ttl = malloc(sizeof *ttl);
    ttl_init(ttl, 0, 16384, BASE_MS);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(ttl_add(ttl, i, 7, past[i]));
    }
    assert_true(ttl_add(ttl, 0, 0, BASE_MS - 2 * TTL_UNIT_MS));
    assert_int_equal(named_at(ttl, BASE_MS + TTL_UNIT_MS), 6);
    assert_true(ttl_remove(ttl, 0, 0, BASE_MS - 2 * TTL_UNIT_MS));
    assert_int_equal(named_at(ttl, 0), 0); /* a clock set back names nothing */
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(ttl_remove(ttl, i, 7, past[i]));
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(ttl_add(ttl, 16383, INDEX_TAG_MAX, future[i]));
    }
    assert_int_equal(named_at(ttl, BASE_MS + INT64_C(17) * 365 * 86400000), 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(ttl_remove(ttl, 16383, INDEX_TAG_MAX, future[i]));
    }
    assert_int_equal(ttl_count(ttl), 0);
    free(ttl);
}

/* Small steps over a table that grows and shrinks between them: in the steps of one round every
 * entry that stays is named, and a step keeps to its budget. */
static void a_round_of_small_steps_names_all(void **state)
{
    (void)state;
    struct random random = seeded(__func__);
    struct ttl *ttl = malloc(sizeof *ttl);
    struct model *model = calloc(1, sizeof *model), *passing = calloc(1, sizeof *passing);
    ttl_init(ttl, FIRST_SLOT, SLOT_COUNT, BASE_MS);
    model->now_ms = BASE_MS + 1000000;
    while (model->count < 500) {
        struct known entry = random_entry(&random);
        entry.tag = below(&random, INDEX_TAG_MAX + 1);
        assert_true(add_both(ttl, model, entry));
    }
    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t i = 0; i < model->count; i++) {
            model->entries[i].named = 0;
        }
        uint32_t least = 0;
        for (uint32_t steps = 0; least == 0; steps++) {
            assert_true(steps < 10000);
            uint64_t seen = ttl_step(ttl, model->now_ms, 50, name_in_model, model);
            assert_true(seen >= 50 && seen <= 50 + passing->count);
            bool growing = passing->count < 100 || (passing->count < 5000 && below(&random, 2));
            for (uint32_t i = 0; i < 100; i++) {
                struct known entry = random_entry(&random);
                entry.expire_ms = BASE_MS + 100000000;
                if (growing) {
                    assert_true(add_both(ttl, passing, entry));
                } else if (passing->count > 0) {
                    remove_both(ttl, passing, below(&random, passing->count));
                }
            }
            least = UINT32_MAX;
            for (uint32_t i = 0; i < model->count; i++) {
                least = model->entries[i].named < least ? model->entries[i].named : least;
            }
        }
        assert_int_equal(model->strangers, 0);
    }
    ttl_clear(ttl);
    free(passing);
    free(model);
    free(ttl);
}

/* More equal keys than the budget do not hold the walk up. */
static void a_walk_passes_equal_keys(void **state)
{
    (void)state;
    struct named named = {.count = 0};
    struct ttl *ttl = malloc(sizeof *ttl);
    ttl_init(ttl, 0, 16384, BASE_MS);
    for (uint32_t i = 0; i < 10; i++) {
        assert_true(ttl_add(ttl, 9, 256, BASE_MS));
    }
    assert_true(ttl_add(ttl, 9, 512, BASE_MS));
    assert_int_equal(ttl_step(ttl, BASE_MS + 1000, 3, count_named, &named), 10);
    assert_int_equal(named.tag, 256);
    assert_int_equal(ttl_step(ttl, BASE_MS + 1000, 1, count_named, &named), 1);
    assert_int_equal(named.tag, 512);
    ttl_clear(ttl);
    free(ttl);
}

/* Whoever takes only a few keys gets the others from the next call on, and none is passed over. */
static void a_walk_stops_where_it_is_told(void **state)
{
    (void)state;
    struct ttl *ttl = malloc(sizeof *ttl);
    uint32_t seen = 0;
    ttl_init(ttl, 0, 16384, BASE_MS);
    for (uint32_t i = 0; i < 20; i++)
        assert_true(ttl_add(ttl, i, 256 * i, BASE_MS));
    for (uint32_t i = 0; i < 7; i++) {
        struct named named = {.count = 0};
        (void)ttl_step(ttl, BASE_MS + 1000, UINT64_MAX, count_three, &named);
        assert_int_equal(named.count, 3);
        seen |= 1u << named.slot; /* the last of the three */
    }
    uint32_t lasts = 0;
    for (uint32_t bits = seen; bits; bits &= bits - 1)
        lasts++;
    assert_int_equal(lasts, 7);
    ttl_clear(ttl);
    free(ttl);
}

static void a_promised_add_needs_no_memory(void **state)
{
    (void)state;
    struct random random = seeded(__func__);
    struct ttl *ttl = malloc(sizeof *ttl);
    struct model *model = calloc(1, sizeof *model);
    ttl_init(ttl, FIRST_SLOT, SLOT_COUNT, BASE_MS);
    for (uint32_t round = 0; round < 300; round++) {
        struct known entries[20];
        for (uint32_t i = 0; i < 20; i++) {
            entries[i] = random_entry(&random);
            assert_true(ttl_reserve(ttl, entries[i].tag));
        }
        ttl->memory.pool.limit = 0;
        for (uint32_t i = 0; i < 20; i++) {
            if (i % 5 == 4) {
                ttl_release(ttl, entries[i].tag);
            } else {
                assert_true(add_both(ttl, model, entries[i]));
            }
            if (i % 3 == 0) {
                remove_both(ttl, model, below(&random, model->count));
            }
        }
        ttl->memory.pool.limit = UINT64_MAX;
    }
    assert_same(ttl, model);
    ttl_clear(ttl);
    free(model);
    free(ttl);
}

static void an_expiry_costs_16_bytes_at_most(void **state)
{
    (void)state;
    struct random random = {.state = 1};
    struct ttl *ttl = malloc(sizeof *ttl);
    ttl_init(ttl, 0, 16384, BASE_MS);
    double worst = 0;
    for (uint32_t i = 0; i < 600000; i++) {
        assert_true(
            ttl_add(ttl, below(&random, 16384), below(&random, INDEX_TAG_MAX + 1), BASE_MS));
        double cost = (double)ttl_bytes(ttl) / (i + 1);
        worst = i > 100000 && cost > worst ? cost : worst;
    }
    print_message("at worst %.2f bytes per expiry\n", worst);
    assert_true(worst > 8 && worst <= 16);
    ttl_check(ttl);
    ttl_clear(ttl);
    free(ttl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_does_what_a_list_does),
        cmocka_unit_test(what_was_not_added_is_not_removed),
        cmocka_unit_test(a_key_is_named_when_it_has_expired),
        cmocka_unit_test(times_out_of_range_are_kept),
        cmocka_unit_test(a_round_of_small_steps_names_all),
        cmocka_unit_test(a_walk_passes_equal_keys),
        cmocka_unit_test(a_walk_stops_where_it_is_told),
        cmocka_unit_test(a_promised_add_needs_no_memory),
        cmocka_unit_test(an_expiry_costs_16_bytes_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
