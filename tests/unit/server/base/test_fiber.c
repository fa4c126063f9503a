/* Fibers: left and entered again with all that they had, given up halfway, used again. */
#include "server/base/fiber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct counting {
    struct fiber *fiber;
    uint32_t turns, total;
};

/* Deep in its stack, and with all of it in use. */
static uint32_t descend(struct counting *counting, uint32_t depth)
{
    char bytes[4096];
    memset(bytes, (int)depth, sizeof bytes);
    uint32_t below = 0;
    if (depth > 0)
        below = descend(counting, depth - 1);
    else
        for (uint32_t i = 0; i < counting->turns; i++)
            fiber_leave(counting->fiber);
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal((unsigned char)bytes[i], depth & 0xff);
    return below + 1;
}

static void count(void *arg)
{
    struct counting *counting = arg;
    counting->total += descend(counting, 300);
}

static uint32_t enter_to_the_end(struct counting *counting)
{
    uint32_t entered = 1;
    while (!fiber_enter(counting->fiber, count, counting))
        entered++;
    return entered;
}

static void each_goes_on_where_it_was(void **state)
{
    (void)state;
    struct fiber_pool pool = {.spare_count = 0};
    struct counting two[2] = {{.turns = 3}, {.turns = 5}};
    for (int i = 0; i < 2; i++)
        assert_non_null(two[i].fiber = fiber_new(&pool));
    for (int i = 0; i < 2; i++)
        assert_false(fiber_enter(two[i].fiber, count, &two[i]));
    assert_int_equal(pool.used_count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(enter_to_the_end(&two[i]), two[i].turns);
        assert_int_equal(two[i].total, 301);
        fiber_free(&pool, two[i].fiber);
    }
    assert_int_equal(pool.used_count, 0);
    fiber_pool_free(&pool);
}

static void one_given_up_begins_anew(void **state)
{
    (void)state;
    struct fiber_pool pool = {.spare_count = 0};
    struct counting counting = {.turns = 2};
    for (int i = 0; i < 2 * FIBER_SPARES; i++) {
        counting.fiber = fiber_new(&pool);
        assert_non_null(counting.fiber);
        assert_false(fiber_enter(counting.fiber, count, &counting));
        fiber_free(&pool, counting.fiber);
        assert_int_equal(pool.spare_count, 1);
    }
    assert_int_equal(counting.total, 0);
    counting.fiber = fiber_new(&pool);
    assert_int_equal(enter_to_the_end(&counting), 3);
    fiber_free(&pool, counting.fiber);
    fiber_pool_free(&pool);
}

static uint32_t sum_of(const volatile unsigned char *bytes, size_t length)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < length; i++)
        sum += bytes[i];
    return sum;
}

static void fill_much(void *arg)
{
    unsigned char bytes[1 << 20];
    memset(bytes, 1, sizeof bytes);
    ((struct counting *)arg)->total = sum_of(bytes, sizeof bytes);
}

/* What a sanitizer knew of the frames of the former function is forgotten with them. */
static void a_stack_left_halfway_is_clean(void **state)
{
    (void)state;
    struct fiber_pool pool = {.spare_count = 0};
    struct counting counting = {.turns = 1};
    counting.fiber = fiber_new(&pool);
    assert_false(fiber_enter(counting.fiber, count, &counting));
    fiber_free(&pool, counting.fiber);
    counting.fiber = fiber_new(&pool);
    assert_true(fiber_enter(counting.fiber, fill_much, &counting));
    assert_int_equal(counting.total, 1 << 20);
    fiber_free(&pool, counting.fiber);
    fiber_pool_free(&pool);
}

static void what_a_stack_takes_is_counted(void **state)
{
    (void)state;
    struct fiber_pool pool = {.spare_count = 0};
    struct counting two[2] = {{.turns = 1}, {.turns = 1}};
    for (int i = 0; i < 2; i++) {
        two[i].fiber = fiber_new(&pool);
        assert_false(fiber_enter(two[i].fiber, count, &two[i]));
        uint64_t bytes = fiber_measure(&pool, two[i].fiber);
        assert_in_range(bytes, 300 * 4096, 8 << 20);
        assert_int_equal(fiber_measure(&pool, two[i].fiber), bytes);
        assert_int_equal(pool.bytes, (uint64_t)(i + 1) * bytes);
    }
    for (int i = 0; i < 2; i++)
        fiber_free(&pool, two[i].fiber);
    assert_in_range(pool.bytes, 1, 2 * (64 << 10)); /* the spares keep a little */
    fiber_pool_free(&pool);
    assert_int_equal(pool.bytes, 0);
}

static void more_than_spares_come_and_go(void **state)
{
    (void)state;
    struct fiber_pool pool = {.spare_count = 0};
    struct counting many[3 * FIBER_SPARES];
    uint32_t number = sizeof many / sizeof *many;
    for (uint32_t i = 0; i < number; i++) {
        many[i] = (struct counting){.fiber = fiber_new(&pool), .turns = i};
        assert_non_null(many[i].fiber);
    }
    for (uint32_t i = 0; i < number; i++)
        assert_int_equal(enter_to_the_end(&many[i]), i + 1);
    for (uint32_t i = 0; i < number; i++)
        fiber_free(&pool, many[i].fiber);
    assert_int_equal(pool.spare_count, FIBER_SPARES);
    fiber_pool_free(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_goes_on_where_it_was),
        cmocka_unit_test(one_given_up_begins_anew),
        cmocka_unit_test(a_stack_left_halfway_is_clean),
        cmocka_unit_test(what_a_stack_takes_is_counted),
        cmocka_unit_test(more_than_spares_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
