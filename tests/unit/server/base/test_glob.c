/* Glob patterns: what matches, and that hostile ones cost little. */
#include "server/base/glob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static bool matches(const char *pattern, const char *text)
{
    return glob_match(pattern, strlen(pattern), text, strlen(text), false);
}

static bool matches_folded(const char *pattern, const char *text)
{
    return glob_match(pattern, strlen(pattern), text, strlen(text), true);
}

static void stars_and_question_marks(void **state)
{
    (void)state;
    assert_true(matches("*", "a"));
    assert_true(matches("***", "abc"));
    assert_true(matches("a*", "a"));
    assert_true(matches("a**", "a"));
    assert_true(matches("*c", "abc"));
    assert_true(matches("a*b*c", "axxbyyc"));
    assert_true(matches("a*b*c", "abcbc"));
    assert_false(matches("a*b*c", "axxbyy"));
    assert_true(matches("h?llo", "hello"));
    assert_false(matches("h?llo", "hllo"));
    assert_false(matches("?", "ab"));
    assert_true(matches("*?", "a"));
    assert_false(matches("*??", "a"));
    assert_false(matches("abc", "abcd"));
    assert_false(matches("abcd", "abc"));
}

static void empty_text_matches_only_the_empty_pattern(void **state)
{
    (void)state;
    assert_true(matches("", ""));
    assert_false(matches("*", ""));
    assert_false(matches("", "a"));
}

static void classes(void **state)
{
    (void)state;
    assert_true(matches("h[ae]llo", "hallo"));
    assert_false(matches("h[ae]llo", "hillo"));
    assert_true(matches("h[^e]llo", "hallo"));
    assert_false(matches("h[^e]llo", "hello"));
    assert_true(matches("[a-c]x", "bx"));
    assert_true(matches("[c-a]x", "bx"));
    assert_false(matches("[a-c]x", "dx"));
    assert_true(matches("[^a-c]", "d"));
    assert_true(matches("[a\\]b]", "]"));
    assert_true(matches("[\\a-z]", "-"));
    assert_false(matches("[\\a-z]", "m"));
    assert_true(matches("[a-]", "_")); /* a range up to the bracket, then unterminated */
    assert_false(matches("[a-]", "-"));
    assert_false(matches("[]", "]"));
    assert_false(matches("[]a", "a"));
    assert_true(matches("[^]a", "xa"));
}

static void unterminated_classes_end_with_the_pattern(void **state)
{
    (void)state;
    assert_true(matches("[abc", "b"));
    assert_false(matches("[abc", "d"));
    assert_false(matches("[", "["));
    assert_true(matches("[^", "x"));
    assert_true(matches("[\\", "\\"));
    assert_true(matches("x[a-", "x-"));
    assert_false(matches("[abc", "bc"));
}

static void escapes(void **state)
{
    (void)state;
    assert_true(matches("\\*", "*"));
    assert_false(matches("\\*", "a"));
    assert_true(matches("a\\?", "a?"));
    assert_true(matches("\\[a]", "[a]"));
    assert_true(matches("\\", "\\"));
    assert_true(matches("a\\", "a\\"));
    assert_true(matches("\\\\", "\\"));
}

static void letters_fold_on_demand(void **state)
{
    (void)state;
    assert_false(matches("ABC", "abc"));
    assert_true(matches_folded("ABC*", "abcD"));
    assert_true(matches_folded("[A-C]", "b"));
    assert_true(matches_folded("[a-c]", "B"));
    assert_false(matches_folded("[a-c]", "D"));
}

static void bytes_are_data(void **state)
{
    (void)state;
    assert_true(glob_match("a\0*", 3, "a\0bc", 4, false));
    assert_false(glob_match("a\0*", 3, "abc", 3, false));
    /* Ranges compare signed bytes: \xff is below 'a'. */
    assert_true(matches("[\xff-a]", "A"));
}

/* The time of a power of the stars would outlast any patience. */
static void hostile_patterns_are_cheap(void **state)
{
    (void)state;
    enum { STARS = 1000, TEXT = 10000 };
    char *pattern = malloc(2 * STARS + 2), *text = malloc(TEXT);
    for (size_t i = 0; i < STARS; i++)
        memcpy(pattern + 2 * i, "a*", 2);
    memcpy(pattern + 2 * STARS, "b", 2);
    memset(text, 'a', TEXT);
    clock_t start = clock();
    assert_false(glob_match(pattern, 2 * STARS + 1, text, TEXT, false));
    text[TEXT - 1] = 'b';
    assert_true(glob_match(pattern, 2 * STARS + 1, text, TEXT, false));
    assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
    free(pattern);
    free(text);
}

static bool matches_compiled(const char *pattern, size_t len, const char *text, size_t text_len,
                             bool ignore_case)
{
    struct glob glob = {.pattern = pattern, .len = len, .ignore_case = ignore_case};
    struct glob_class classes[4];
    size_t count = glob_find_classes(&glob, classes, 4);
    glob.classes = classes;
    glob.class_count = count < 4 ? count : 4;
    return glob_matches(&glob, text, text_len);
}

/* Of characters that mean something in a class, in any order and of any length. */
static void long_classes_match_as_short_ones_do(void **state)
{
    (void)state;
    static const char characters[] = "aAzZmM]^-\\\\--[*?_09\xff\x80\x7f\0b";
    unsigned seed = 1;
    size_t compiled = 0, matched = 0;
    for (int round = 0; round < 4000; round++) {
        char pattern[120], text[2];
        size_t len = 2 + (size_t)rand_r(&seed) % (sizeof pattern - 2);
        for (size_t i = 0; i < len; i++)
            pattern[i] = characters[(size_t)rand_r(&seed) % (sizeof characters - 1)];
        for (size_t i = 0; i < len && rand_r(&seed) % 4 > 0; i++)
            pattern[i] = pattern[i] == ']' ? 'q' : pattern[i];
        pattern[(size_t)rand_r(&seed) % 2] = '[';
        struct glob glob = {.pattern = pattern, .len = len};
        compiled += glob_find_classes(&glob, NULL, 0);
        for (int c = 0; c < 256; c++) {
            text[0] = text[1] = (char)c;
            for (size_t n = 1; n <= 2; n++)
                for (int folds = 0; folds < 2; folds++) {
                    bool is = glob_match(pattern, len, text, n, folds != 0);
                    assert_int_equal(is, matches_compiled(pattern, len, text, n, folds != 0));
                    matched += is;
                }
        }
    }
    assert_true(compiled > 500 && matched > 500);
}

static void long_classes_are_read_once(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 20 };
    char *pattern = malloc(LENGTH), *text = malloc(LENGTH);
    memset(pattern, 'b', LENGTH);
    memcpy(pattern, "*[", 2);
    memcpy(pattern + LENGTH - 2, "]z", 2);
    memset(text, 'a', LENGTH);
    clock_t start = clock();
    assert_false(matches_compiled(pattern, LENGTH, text, LENGTH, false));
    memcpy(text + LENGTH - 2, "bz", 2);
    assert_true(matches_compiled(pattern, LENGTH, text, LENGTH, false));
    assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
    free(pattern);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stars_and_question_marks),
        cmocka_unit_test(empty_text_matches_only_the_empty_pattern),
        cmocka_unit_test(classes),
        cmocka_unit_test(unterminated_classes_end_with_the_pattern),
        cmocka_unit_test(escapes),
        cmocka_unit_test(letters_fold_on_demand),
        cmocka_unit_test(bytes_are_data),
        cmocka_unit_test(hostile_patterns_are_cheap),
        cmocka_unit_test(long_classes_match_as_short_ones_do),
        cmocka_unit_test(long_classes_are_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
