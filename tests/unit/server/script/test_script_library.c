/* The stored value of the libraries of functions: what is written is read again, and nothing that
 * is cut off or claims too much. Each value has memory of just its size, so that the address
 * sanitizer sees what is read beyond it. */
#include "server/script/script_library.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/core/function_names.h"

#define STAMP 0x123456789abcdef1ull

static struct resp_slice text(const char *characters)
{
    return (struct resp_slice){characters, strlen(characters)};
}

static void add(struct resp_writer *value, const char *name, const char *first, const char *second)
{
    struct resp_writer functions;
    resp_writer_init(&functions, 2);
    library_add_function(&functions, &(struct library_function){.name = text(first), .flags = 5});
    library_add_function(
        &functions,
        &(struct library_function){.name = text(second), .description = text("what it does")});
    struct library library = {.id = 77,
                              .name = text(name),
                              .functions = {functions.data, functions.len},
                              .code = text("#!lua\ncode"),
                              .function_count = 2};
    libraries_add(value, &library);
    resp_writer_free(&functions);
}

static void make(struct resp_writer *value)
{
    resp_writer_init(value, 2);
    libraries_begin(value, STAMP);
    add(value, "one", "f", "g");
    add(value, "two", "h", "long_name");
}

static bool is(struct resp_slice slice, const char *characters)
{
    return slice.len == strlen(characters) && memcmp(slice.data, characters, slice.len) == 0;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct resp_writer value;
    struct libraries libraries;
    struct library library;
    struct library_function function;
    make(&value);
    assert_true(libraries_read_head(&libraries, value.data, value.len));
    assert_true(libraries.stamp == STAMP && libraries.count == 2 && libraries.function_count == 4);
    size_t at = 0, in = 0;
    assert_true(libraries_next(&libraries, &at, &library) && is(library.name, "one"));
    assert_true(libraries_next(&libraries, &at, &library) && is(library.name, "two"));
    assert_true(library.id == 77 && is(library.code, "#!lua\ncode"));
    assert_true(library_next_function(&library, &in, &function) && is(function.name, "h"));
    assert_true(function.description.data == NULL && function.flags == 5);
    assert_true(library_next_function(&library, &in, &function) && is(function.name, "long_name"));
    assert_true(is(function.description, "what it does") && function.flags == 0);
    assert_false(library_next_function(&library, &in, &function));
    assert_false(libraries_next(&libraries, &at, &library));
    assert_true(libraries_find(&libraries, text("one"), &library));
    assert_false(libraries_find(&libraries, text("One"), &library));
    resp_writer_free(&value);
}

static void no_value_is_no_library(void **state)
{
    (void)state;
    struct libraries libraries;
    struct library library;
    struct resp_slice name;
    size_t at = 0;
    assert_true(libraries_read_head(&libraries, "", 0));
    assert_true(libraries.stamp == 0 && libraries.count == 0);
    assert_false(libraries_next(&libraries, &at, &library));
    assert_int_equal(libraries_find_twice(&libraries, &name), 0);
}

/* Reads all that is there. */
static void read_all(const char *bytes, size_t len)
{
    struct libraries libraries;
    struct library library;
    struct library_function function;
    uint64_t seen = 0;
    if (!libraries_read_head(&libraries, bytes, len))
        return;
    for (size_t at = 0; libraries_next(&libraries, &at, &library);)
        for (size_t in = 0; library_next_function(&library, &in, &function);)
            for (size_t i = 0; i < function.name.len; i++)
                seen += (unsigned char)function.name.data[i];
    assert_true(seen < 1 << 20);
}

static void nothing_is_read_beyond_the_end(void **state)
{
    (void)state;
    struct resp_writer value;
    make(&value);
    for (size_t len = 0; len <= value.len; len++)
        for (size_t at = 0; at <= len; at++) {
            char *bytes = malloc(len);
            if (len > 0)
                memcpy(bytes, value.data, len);
            if (at < len)
                bytes[at] = (char)0xff;
            read_all(bytes, len);
            free(bytes);
        }
    resp_writer_free(&value);
}

static void names_are_the_same_in_any_case(void **state)
{
    (void)state;
    struct resp_writer value;
    struct libraries libraries;
    struct resp_slice name;
    make(&value);
    assert_true(libraries_read_head(&libraries, value.data, value.len));
    assert_int_equal(libraries_find_twice(&libraries, &name), 0);
    add(&value, "three", "LONG_Name", "i");
    assert_true(libraries_read_head(&libraries, value.data, value.len));
    assert_int_equal(libraries_find_twice(&libraries, &name), 1);
    assert_true(function_name_same(name, text("long_name")));
    assert_true(library_name_is_good(text("aZ_09")));
    assert_false(library_name_is_good(text("")) || library_name_is_good(text("a-b")));
    resp_writer_free(&value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(no_value_is_no_library),
        cmocka_unit_test(nothing_is_read_beyond_the_end),
        cmocka_unit_test(names_are_the_same_in_any_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
