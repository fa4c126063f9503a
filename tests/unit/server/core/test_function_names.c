/* Names of functions, and the set of those that do not write. */
#include "server/core/function_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MANY 5000u

static struct resp_slice text(const char *string)
{
    return (struct resp_slice){string, strlen(string)};
}

static void names_are_the_same_in_any_case(void **state)
{
    (void)state;
    assert_true(function_name_same(text("LONG_Name"), text("long_name")));
    assert_int_equal(function_name_hash(text("LONG_Name")), function_name_hash(text("long_NAME")));
    assert_false(function_name_same(text("a"), text("ab")));
    assert_true(function_name_compare(text("B"), text("a")) > 0);
    assert_true(function_name_compare(text("a"), text("Ab")) < 0);
}

static void a_set_has_what_was_added(void **state)
{
    (void)state;
    char name[32];
    struct readonly_names *names = readonly_names_new();
    struct name_set *set = name_set_new(MANY, MANY * sizeof name);
    assert_non_null(names);
    assert_non_null(set);
    assert_false(readonly_names_has(names, text("f1")));
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "F%u", i);
        name_set_add(set, text(name)); /* copied */
    }
    name_set_add(set, text("f0")); /* it is there already */
    readonly_names_publish(names, set);
    for (uint32_t i = 0; i < 2 * MANY; i++) {
        snprintf(name, sizeof name, "f%u", i);
        assert_int_equal(readonly_names_has(names, text(name)), i < MANY);
    }
    assert_false(readonly_names_has(names, text("f")));
    readonly_names_free(names);
}

static void a_set_gives_way_to_the_next(void **state)
{
    (void)state;
    struct readonly_names *names = readonly_names_new();
    struct name_set *set = name_set_new(1, 3);
    assert_non_null(names);
    assert_non_null(set);
    name_set_add(set, text("one"));
    readonly_names_publish(names, set);
    set = name_set_new(1, 3);
    assert_non_null(set);
    name_set_add(set, text("two"));
    readonly_names_publish(names, set);
    assert_false(readonly_names_has(names, text("one")));
    assert_true(readonly_names_has(names, text("two")));
    readonly_names_publish(names, NULL);
    assert_false(readonly_names_has(names, text("two")));
    readonly_names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_the_same_in_any_case),
        cmocka_unit_test(a_set_has_what_was_added),
        cmocka_unit_test(a_set_gives_way_to_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
