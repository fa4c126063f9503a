/* Arrays that grow. */
#include "storage/base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void elements_stay_while_room_at_least_doubles(void **state)
{
    (void)state;
    uint32_t *numbers = NULL;
    size_t capacity = 0, moves = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        size_t before = capacity;
        assert_true(array_reserve(&numbers, &capacity, i + 1, sizeof *numbers));
        assert_true(capacity > i && (capacity == before || capacity >= 2 * before));
        moves += capacity != before;
        numbers[i] = i;
    }
    assert_true(moves < 10);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(numbers[i], i);
    free(numbers);
}

static void many_are_made_room_for_at_once(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t capacity = 0;
    assert_true(array_reserve(&bytes, &capacity, 12345, 1));
    assert_int_equal(capacity, 12345);
    memset(bytes, 1, capacity);
    free(bytes);
}

/* Sizes that wrap around must not look like small ones. */
static void what_cannot_be_had_changes_nothing(void **state)
{
    (void)state;
    static const size_t counts[] = {SIZE_MAX, SIZE_MAX / sizeof(uint64_t) + 3, SIZE_MAX / 16};
    uint64_t *numbers = NULL;
    size_t capacity = 0;
    assert_true(array_reserve(&numbers, &capacity, 1, sizeof *numbers));
    numbers[0] = 7;
    const uint64_t *before = numbers;
    size_t room = capacity;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        assert_false(array_reserve(&numbers, &capacity, counts[i], sizeof *numbers));
        assert_true(numbers == before && capacity == room && numbers[0] == 7);
    }
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_stay_while_room_at_least_doubles),
        cmocka_unit_test(many_are_made_room_for_at_once),
        cmocka_unit_test(what_cannot_be_had_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
