#include "benchmarks/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/keys.h"

#define HEAD_MAX 24 /* "*N\r\n" or "$N\r\n" */

static const char *word_end(const char *word)
{
    return word + strcspn(word, " ");
}

static const char *next_word(const char *word)
{
    return word + strspn(word, " ");
}

/* Bytes of a word with its numbers and values written out. */
static size_t expanded(const char *word, uint32_t value_len)
{
    size_t len = 0;
    for (const char *at = word; at < word_end(word); at++) {
        if (*at != '%') {
            len++;
            continue;
        }
        at++;
        len += *at == 'v' ? value_len : KEY_DIGITS;
    }
    return len;
}

static void add_value(struct pattern *pattern, uint32_t value_len)
{
    for (uint32_t i = 0; i < value_len; i++)
        pattern->bytes[pattern->len++] = (char)('a' + i * 7 % 26);
}

static bool add_number(struct pattern *pattern, char kind)
{
    if (pattern->place_count == PATTERN_PLACES_MAX || (kind != 'k' && kind != 'm'))
        return false;
    pattern->places[pattern->place_count].at = pattern->len;
    pattern->places[pattern->place_count++].kind = kind;
    pattern->len += KEY_DIGITS;
    return true;
}

static bool add_word(struct pattern *pattern, const char *word, uint32_t value_len)
{
    bool good = true;
    pattern->len +=
        (size_t)sprintf(pattern->bytes + pattern->len, "$%zu\r\n", expanded(word, value_len));
    for (const char *at = word; at < word_end(word) && good; at++) {
        if (*at != '%')
            pattern->bytes[pattern->len++] = *at;
        else if (*++at == 'v')
            add_value(pattern, value_len);
        else
            good = add_number(pattern, *at);
    }
    memcpy(pattern->bytes + pattern->len, "\r\n", 2);
    pattern->len += 2;
    return good;
}

bool pattern_make(struct pattern *pattern, const char *words, uint32_t value_len)
{
    uint32_t count = 0;
    size_t size = HEAD_MAX;
    for (const char *w = next_word(words); *w != '\0'; w = next_word(word_end(w)), count++)
        size += expanded(w, value_len) + HEAD_MAX;
    *pattern = (struct pattern){.bytes = malloc(size)};
    if (pattern->bytes == NULL || count == 0)
        return false;
    pattern->len = (size_t)sprintf(pattern->bytes, "*%u\r\n", count);
    for (const char *w = next_word(words); *w != '\0'; w = next_word(word_end(w)))
        if (!add_word(pattern, w, value_len))
            return false;
    return true;
}
