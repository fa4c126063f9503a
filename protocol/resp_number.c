/*
 * Numbers in requests and replies: what Redis 7.2 accepts as an argument, and how it prints. All
 * functions are pure. The locale's decimal point must be '.', as it is unless a program sets
 * LC_NUMERIC.
 */
#include "protocol/resp.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INT64_DIGITS_MAX 19
#define DOUBLE_DIGITS_SAFE 15 /* a decimal of so many digits survives the way through a double */
#define DOUBLE_DIGITS_MAX 17  /* a double survives the way through so many digits */
#define DOUBLE_TENS_MAX 22    /* powers of ten up to this one are exact as doubles */
#define DOUBLE_INTEGER_MAX 0x1p62 /* integers up to this one are printed in full */

static const double double_tens[DOUBLE_TENS_MAX + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- integers ---- */

bool resp_read_int64(const char *data, size_t len, int64_t *value)
{
    bool negative = len > 0 && data[0] == '-';
    const char *at = data + negative;
    size_t digits = len - negative;
    if (digits == 0 || digits > INT64_DIGITS_MAX || !is_digit(*at))
        return false;
    if (*at == '0' && len > 1)
        return false; /* also "-0" */

    uint64_t sum = 0; /* any 19 digits fit */
    for (const char *end = at + digits; at < end; at++) {
        if (!is_digit(*at))
            return false;
        sum = sum * 10 + (uint64_t)(*at - '0');
    }
    if (sum > (uint64_t)INT64_MAX + negative)
        return false;
    *value = negative ? (int64_t)(0 - sum) : (int64_t)sum;
    return true;
}

static const char digit_pairs[] = "00010203040506070809"
                                  "10111213141516171819"
                                  "20212223242526272829"
                                  "30313233343536373839"
                                  "40414243444546474849"
                                  "50515253545556575859"
                                  "60616263646566676869"
                                  "70717273747576777879"
                                  "80818283848586878889"
                                  "90919293949596979899";

size_t resp_print_int64(char text[24], int64_t value)
{
    char reversed[24];
    char *at = reversed + sizeof reversed;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    while (rest >= 10) {
        at -= 2;
        memcpy(at, digit_pairs + 2 * (rest % 100), 2);
        rest /= 100;
    }
    /* An odd number of digits leaves one; an even one leaves 0, unless the number is 0 itself. */
    if (rest > 0 || value == 0)
        *--at = (char)('0' + rest);
    if (value < 0)
        *--at = '-';
    size_t len = (size_t)(reversed + sizeof reversed - at);
    memcpy(text, at, len);
    text[len] = '\0';
    return len;
}

/* ---- reading doubles ---- */

/* Reads digits with at most one point in between, so few that mantissa and power of ten are exact:
 * then one division rounds as correctly as strtod. False: strtod has to judge. */
static bool read_plain_double(const char *data, size_t len, double *value)
{
    bool negative = len > 0 && data[0] == '-';
    const char *at = data + negative, *end = data + len, *point = NULL;
    if (end - at > DOUBLE_DIGITS_SAFE + 1 || at == end || !is_digit(*at) || !is_digit(end[-1]))
        return false;
    uint64_t mantissa = 0;
    for (; at < end; at++) {
        if (is_digit(*at))
            mantissa = mantissa * 10 + (uint64_t)(*at - '0');
        else if (*at == '.' && point == NULL)
            point = at;
        else
            return false;
    }
    if (mantissa >= (uint64_t)double_tens[DOUBLE_DIGITS_SAFE])
        return false;
    double result = (double)mantissa / double_tens[point == NULL ? 0 : end - point - 1];
    *value = negative ? -result : result;
    return true;
}

/* Copies a number's text for strtod, which wants a NUL behind it and would skip blanks before. */
static bool copy_number(char text[RESP_NUMBER_MAX], const char *data, size_t len)
{
    if (len == 0 || len >= RESP_NUMBER_MAX || data[0] == ' ' ||
        (data[0] >= '\t' && data[0] <= '\r'))
        return false;
    memcpy(text, data, len);
    text[len] = '\0';
    return true;
}

bool resp_read_double(const char *data, size_t len, double *value)
{
    if (read_plain_double(data, len, value))
        return true;
    char text[RESP_NUMBER_MAX];
    if (!copy_number(text, data, len))
        return false;
    char *end;
    errno = 0;
    double result = strtod(text, &end);
    if (end != text + len || isnan(result))
        return false;
    if (errno == ERANGE && (isinf(result) || result == 0))
        return false;
    *value = result;
    return true;
}

bool resp_read_long_double(const char *data, size_t len, long double *value)
{
    char text[RESP_NUMBER_MAX];
    if (!copy_number(text, data, len))
        return false;
    char *end;
    errno = 0;
    long double result = strtold(text, &end);
    if (end != text + len || isnan(result))
        return false;
    if (errno == ERANGE && (isinf(result) || result == 0))
        return false;
    *value = result;
    return true;
}

/* ---- printing doubles ---- */

/* A positive decimal: 0.DIGITS * 10^point, without zeros at either end of the digits. */
struct decimal {
    char digits[24];
    int count;
    int point;
};

static void trim_zeros(struct decimal *decimal)
{
    while (decimal->count > 1 && decimal->digits[decimal->count - 1] == '0')
        decimal->count--;
}

/* Few digits behind the point, as most scores have: looks for them without printing and reading
 * back. If m / 10^k gives the value again, m's digits are its shortest, since m has at most 15. */
static bool find_few_digits(struct decimal *decimal, double value)
{
    double bound = double_tens[DOUBLE_DIGITS_SAFE];
    for (int places = 1; places <= 6; places++) {
        double scaled = value * double_tens[places];
        if (scaled < 1 || scaled >= bound)
            continue;
        int64_t mantissa = (int64_t)(scaled + 0.5);
        if ((double)mantissa / double_tens[places] != value)
            continue;
        decimal->count = (int)resp_print_int64(decimal->digits, mantissa);
        decimal->point = decimal->count - places;
        trim_zeros(decimal);
        return true;
    }
    return false;
}

/* Above a power of two doubles lie twice as far apart as below: the 16 digits nearest to it may
 * fall below it and miss, while the next ones upwards hit. */
static bool next_digits_hit(char *text, double value)
{
    char *last = strchr(text, 'e') - 1;
    int exponent;
    if (frexp(value, &exponent) != 0.5 || *last == '9')
        return false;
    ++*last;
    return strtod(text, NULL) == value;
}

/* The fewest digits that read back as the value. Below the normal range 15 digits may be more than
 * the value has, so that the search begins at one. */
static void find_shortest_digits(struct decimal *decimal, double value)
{
    char text[40];
    int places = value < DBL_MIN ? 1 : DOUBLE_DIGITS_SAFE;
    for (;; places++) {
        snprintf(text, sizeof text, "%.*e", places - 1, value);
        if (places == DOUBLE_DIGITS_MAX || strtod(text, NULL) == value)
            break;
        if (places == DOUBLE_DIGITS_MAX - 1 && next_digits_hit(text, value))
            break;
    }
    decimal->count = 0;
    const char *at = text;
    for (; *at != 'e'; at++) {
        if (*at != '.')
            decimal->digits[decimal->count++] = *at;
    }
    decimal->point = (int)strtol(at + 1, NULL, 10) + 1;
    trim_zeros(decimal);
}

static char *put_zeros(char *to, int count)
{
    memset(to, '0', (size_t)count);
    return to + count;
}

static char *put_digits(char *to, const struct decimal *decimal, int first, int end)
{
    memcpy(to, decimal->digits + first, (size_t)(end - first));
    return to + (end - first);
}

static char *put_positional(char *to, const struct decimal *decimal)
{
    if (decimal->point <= 0) {
        *to++ = '0';
        *to++ = '.';
        to = put_zeros(to, -decimal->point);
        return put_digits(to, decimal, 0, decimal->count);
    }
    if (decimal->point >= decimal->count) {
        to = put_digits(to, decimal, 0, decimal->count);
        return put_zeros(to, decimal->point - decimal->count);
    }
    to = put_digits(to, decimal, 0, decimal->point);
    *to++ = '.';
    return put_digits(to, decimal, decimal->point, decimal->count);
}

static char *put_scientific(char *to, const struct decimal *decimal)
{
    int exponent = decimal->point - 1;
    *to++ = decimal->digits[0];
    if (decimal->count > 1) {
        *to++ = '.';
        to = put_digits(to, decimal, 1, decimal->count);
    }
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    return to + resp_print_int64(to, abs(exponent));
}

/* Where Redis 7.2 changes over between the two forms depends on the zeros that would have to be
 * filled in behind, or the places behind the point. */
static bool is_positional(const struct decimal *decimal)
{
    int zeros = decimal->point - decimal->count;
    int exponent = decimal->point - 1;
    return zeros >= 0 ? zeros < 8 : zeros > -7 || abs(exponent) < 4;
}

static size_t print_word(char *text, const char *word)
{
    size_t len = strlen(word);
    memcpy(text, word, len + 1);
    return len;
}

size_t resp_print_double(char text[40], double value)
{
    if (isnan(value))
        return print_word(text, "nan");
    if (isinf(value))
        return print_word(text, value < 0 ? "-inf" : "inf");
    if (value == 0)
        return print_word(text, signbit(value) ? "-0" : "0");
    if (fabs(value) <= DOUBLE_INTEGER_MAX && value == (double)(int64_t)value)
        return resp_print_int64(text, (int64_t)value);

    char *to = text;
    if (value < 0)
        *to++ = '-';
    struct decimal decimal;
    if (!find_few_digits(&decimal, fabs(value)))
        find_shortest_digits(&decimal, fabs(value));
    to = is_positional(&decimal) ? put_positional(to, &decimal) : put_scientific(to, &decimal);
    *to = '\0';
    return (size_t)(to - text);
}

size_t resp_print_long_double(char text[RESP_NUMBER_MAX], long double value)
{
    if (isnan(value))
        return print_word(text, "nan");
    if (isinf(value))
        return print_word(text, value < 0 ? "-inf" : "inf");
    size_t len = (size_t)snprintf(text, RESP_NUMBER_MAX, "%.17Lf", value);
    while (text[len - 1] == '0')
        len--; /* ends at the point at the latest */
    if (text[len - 1] == '.')
        len--;
    text[len] = '\0';
    if (strcmp(text, "-0") == 0)
        return print_word(text, "0");
    return len;
}
