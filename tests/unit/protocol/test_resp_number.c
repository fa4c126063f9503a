/* RESP: numbers at their edges, read and printed. */
#include "protocol/resp.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_int64(const char *text, int64_t expected)
{
    int64_t value = 0;
    char printed[24];
    assert_true(resp_read_int64(text, strlen(text), &value));
    assert_true(value == expected);
    assert_int_equal(resp_print_int64(printed, expected), strlen(text));
    assert_string_equal(printed, text);
}

static void int64_values(void **state)
{
    (void)state;
    expect_int64("0", 0);
    expect_int64("1", 1);
    expect_int64("-1", -1);
    expect_int64("10", 10);
    expect_int64("99", 99);
    expect_int64("100", 100);
    expect_int64("-100", -100);
    expect_int64("2147483648", 2147483648);
    expect_int64("999999999999999999", 999999999999999999);
    expect_int64("1000000000000000000", 1000000000000000000);
    expect_int64("9223372036854775806", INT64_MAX - 1);
    expect_int64("9223372036854775807", INT64_MAX);
    expect_int64("-9223372036854775807", INT64_MIN + 1);
    expect_int64("-9223372036854775808", INT64_MIN);
    int64_t value;
    assert_true(resp_read_int64("123", 2, &value)); /* the length counts, not a NUL */
    assert_true(value == 12);
    for (int64_t i = 1; i > 0 && i < INT64_MAX / 10; i *= 10) {
        char text[24];
        sprintf(text, "%lld", (long long)i - 1);
        expect_int64(text, i - 1);
        sprintf(text, "%lld", -(long long)i);
        expect_int64(text, -i);
    }
}

static void int64_refusals(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "",
        "-",
        "+",
        "+1",
        " 1",
        "1 ",
        "01",
        "-01",
        "00",
        "-0",
        "--1",
        "1-",
        "1.0",
        "1.",
        "1e3",
        "0x10",
        "inf",
        "nan",
        "a",
        "\t1",
        "1\n",
        "/",
        ":",
        "-/",
        "9223372036854775808",
        "-9223372036854775809",
        "9999999999999999999",
        "18446744073709551616",
        "18446744073709551617",
        "10000000000000000000",
        "92233720368547758070",
        "00000000000000000000000001",
        "100000000000000000000000000000",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        int64_t value = 77;
        if (resp_read_int64(refused[i], strlen(refused[i]), &value))
            fail_msg("accepted '%s'", refused[i]);
        assert_true(value == 77);
    }
    int64_t value;
    assert_false(resp_read_int64("1\0", 2, &value));
}

static void expect_double(const char *text, double expected)
{
    double value = 77;
    if (!resp_read_double(text, strlen(text), &value))
        fail_msg("refused '%s'", text);
    if (memcmp(&value, &expected, sizeof value) != 0)
        fail_msg("'%s' read as %a, not as %a", text, value, expected);
}

static void double_values(void **state)
{
    (void)state;
    expect_double("0", 0.0);
    expect_double("-0", -0.0);
    expect_double("1", 1);
    expect_double("+1", 1);
    expect_double("-1.5", -1.5);
    expect_double("0.1", 0.1);
    expect_double("007.250", 7.25);
    expect_double(".5", 0.5);
    expect_double("5.", 5);
    expect_double("1e3", 1000);
    expect_double("3.14159265358979", 3.14159265358979);
    expect_double("999999999999999", 999999999999999.0);
    expect_double("9999999999999999", 9999999999999999.0);
    expect_double("0.1234567890123456", 0.1234567890123456);
    expect_double("9007199254740993", 9007199254740992.0);
    expect_double("0x10", 16);
    expect_double("0x1.8p1", 3);
    expect_double("1e308", 1e308);
    expect_double("1.7976931348623157e308", DBL_MAX);
    expect_double("5e-324", 5e-324);
    expect_double("1e-310", 1e-310);
    expect_double("inf", INFINITY);
    expect_double("+inf", INFINITY);
    expect_double("-inf", -INFINITY);
    expect_double("Infinity", INFINITY);
    expect_double("-INF", -INFINITY);
}

static void double_refusals(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "",      "-",    "+",      ".",      "-.",      "e5",      " 1",     "1 ",  "\t1", "\n1",
        "1.2.3", "1e",   "1e+",    "nan",    "-nan",    "NaN",     "nan(1)", "1,5", "--1", "1-",
        "1e400", "inf ", "-1e400", "1e-400", "-1e-400", "infinit", "abc",    "1a",  "\v1",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        double value = 77;
        long double long_value = 77;
        if (resp_read_double(refused[i], strlen(refused[i]), &value))
            fail_msg("accepted '%s'", refused[i]);
        bool in_long_range = strstr(refused[i], "e400") || strstr(refused[i], "e-400");
        if (resp_read_long_double(refused[i], strlen(refused[i]), &long_value) != in_long_range)
            fail_msg("long double '%s'", refused[i]);
    }
    double value;
    long double long_value;
    assert_false(resp_read_double("1\0", 2, &value));
    assert_false(resp_read_double("1.5e1\0", 6, &value));
    assert_false(resp_read_long_double("1\0", 2, &long_value));
    assert_false(resp_read_long_double("1e5000", 6, &long_value));
    assert_false(resp_read_long_double("1e-5000", 7, &long_value));

    char digits[RESP_NUMBER_MAX];
    memset(digits, '0', sizeof digits);
    assert_true(resp_read_double(digits, sizeof digits - 1, &value));
    assert_false(resp_read_double(digits, sizeof digits, &value));
    assert_false(resp_read_long_double(digits, sizeof digits, &long_value));
}

static void expect_printed(double value, const char *expected)
{
    char text[40];
    size_t len = resp_print_double(text, value);
    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
}

static void doubles_printed(void **state)
{
    (void)state;
    expect_printed(0.0, "0");
    expect_printed(-0.0, "-0");
    expect_printed(1, "1");
    expect_printed(-17, "-17");
    expect_printed(0.1, "0.1");
    expect_printed(3.1, "3.1");
    expect_printed(-2.5, "-2.5");
    expect_printed(0.1 + 0.2, "0.30000000000000004");
    expect_printed(1.0 / 3, "0.3333333333333333");
    expect_printed(100.25, "100.25");
    expect_printed(1234567.891, "1234567.891");
    expect_printed(0.000001, "0.000001");
    expect_printed(0.0000001, "1e-7");
    expect_printed(0.000015, "0.000015");
    expect_printed(0.00012345678, "1.2345678e-4");
    expect_printed(0.0012345678, "0.0012345678");
    expect_printed(4503599627370495.0, "4503599627370495");
    expect_printed(4503599627370496.0, "4503599627370496");
    expect_printed(-4503599627370497.0, "-4503599627370497");
    expect_printed(9007199254740992.0, "9007199254740992");
    expect_printed(123456789012345680.0, "123456789012345680");
    expect_printed(1234567890123456789012.0, "1234567890123456800000");
    expect_printed(12345678910000000.0, "12345678910000000");
    expect_printed(12345678900000000.0, "12345678900000000");
    expect_printed(1700000000123456789.0, "1700000000123456768");
    expect_printed(0x1p62, "4611686018427387904");
    expect_printed(-0x1p62, "-4611686018427387904");
    expect_printed(0x1p62 + 1024, "4611686018427389000");
    expect_printed(5e18, "5e+18");
    expect_printed(1e21, "1e+21");
    expect_printed(-1.5e100, "-1.5e+100");
    expect_printed(1e-100, "1e-100");
    expect_printed(DBL_MAX, "1.7976931348623157e+308");
    expect_printed(-DBL_MIN, "-2.2250738585072014e-308");
    expect_printed(5e-324, "5e-324");
    expect_printed(0x1p-44, "5.684341886080802e-14"); /* not the nearest 16 digits */
    expect_printed(-0x1p-44, "-5.684341886080802e-14");
    expect_printed(1e-310, "1e-310");
    expect_printed(INFINITY, "inf");
    expect_printed(-INFINITY, "-inf");
    expect_printed(NAN, "nan");
    expect_printed(-NAN, "nan");
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void expect_round_trip(double value)
{
    char text[40], shorter[40];
    double again;
    size_t len = resp_print_double(text, value);
    assert_true(len < sizeof text);
    if (!resp_read_double(text, len, &again) || memcmp(&again, &value, sizeof value) != 0)
        fail_msg("%a printed as %s", value, text);
    int digits = 0;
    for (const char *at = text; *at != '\0' && *at != 'e'; at++)
        digits += *at >= '0' && *at <= '9' && (digits > 0 || *at != '0');
    if (digits > 17 || digits < 2 || strpbrk(text, ".e") == NULL)
        return; /* zeros filled in */
    snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
    if (strtod(shorter, NULL) == value)
        fail_msg("%s would do instead of %s", shorter, text);
}

static void doubles_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next_random(&seed);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            expect_round_trip(value);
        expect_round_trip((double)(bits % 100000000) / 1000);
        expect_round_trip((double)(int64_t)bits / 1048576);
    }
}

/* INCRBYFLOAT's way from text to text. */
static void expect_long_double(const char *text, const char *expected)
{
    long double value;
    static char printed[RESP_NUMBER_MAX];
    if (!resp_read_long_double(text, strlen(text), &value))
        fail_msg("refused '%s'", text);
    size_t len = resp_print_long_double(printed, value);
    assert_string_equal(printed, expected);
    assert_int_equal(len, strlen(expected));
}

static void long_doubles(void **state)
{
    (void)state;
    expect_long_double("0", "0");
    expect_long_double("-0", "0");
    expect_long_double("10.50", "10.5");
    expect_long_double("3.0", "3");
    expect_long_double("-100", "-100");
    expect_long_double("0.1", "0.1");
    expect_long_double("1e-17", "0.00000000000000001");
    expect_long_double("-1e-18", "0");
    expect_long_double("5.0e3", "5000");
    expect_long_double("17179869184.17179869184", "17179869184.17179869115352631");
    expect_long_double("1.23456789012345678", "1.23456789012345678");
    expect_long_double("0x10", "16");
    expect_long_double("inf", "inf");
    expect_long_double("-inf", "-inf");
    char largest[RESP_NUMBER_MAX];
    assert_int_equal(resp_print_long_double(largest, -LDBL_MAX), 1 + LDBL_MAX_10_EXP + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(int64_values),    cmocka_unit_test(int64_refusals),
        cmocka_unit_test(double_values),   cmocka_unit_test(double_refusals),
        cmocka_unit_test(doubles_printed), cmocka_unit_test(doubles_round_trip),
        cmocka_unit_test(long_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
