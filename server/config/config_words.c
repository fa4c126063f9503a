#include "server/config/config_words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes the escape after a backslash and returns its length in characters. */
static size_t read_escape(const char *at, char *to)
{
    static const char names[] = "nrtab", meanings[] = "\n\r\t\a\b";
    if (at[0] == 'x' && hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0) {
        *to = (char)(hex_digit(at[1]) * 16 + hex_digit(at[2]));
        return 3;
    }
    const char *found = strchr(names, at[0]);
    *to = found != NULL ? meanings[found - names] : at[0];
    return 1;
}

/* Reads the rest of a quoted word. NULL: the closing quote is missing or not followed by a space.
 */
static const char *read_quoted(const char *at, char quote, char **to)
{
    while (*at != quote) {
        if (*at == '\0')
            return NULL;
        bool escaped = *at == '\\' && at[1] != '\0' && (quote == '"' || at[1] == '\'');
        if (!escaped) {
            *(*to)++ = *at++;
            continue;
        }
        char c = at[1];
        at += quote == '"' ? 1 + read_escape(at + 1, &c) : 2;
        *(*to)++ = c;
    }
    at++;
    return *at == '\0' || isspace((unsigned char)*at) ? at : NULL;
}

static const char *read_word(const char *at, char *word, bool *has_zero)
{
    const char *begin = word;
    while (at != NULL && *at != '\0' && !isspace((unsigned char)*at)) {
        if (*at == '"' || *at == '\'')
            at = read_quoted(at + 1, *at, &word);
        else
            *word++ = *at++;
    }
    *word = '\0';
    *has_zero |= strlen(begin) < (size_t)(word - begin);
    return at;
}

static bool add_word(struct config_words *words, const char *word)
{
    if (!array_reserve(&words->words, &words->capacity, words->count + 1, sizeof *words->words))
        return false;
    words->words[words->count] = strdup(word);
    if (words->words[words->count] == NULL)
        return false;
    words->count++;
    return true;
}

bool config_split(const char *line, struct config_words *words)
{
    *words = (struct config_words){.count = 0};
    char *word = malloc(strlen(line) + 1); /* no word is longer than its line */
    bool good = word != NULL;
    while (good) {
        while (isspace((unsigned char)*line))
            line++;
        if (*line == '\0')
            break;
        line = read_word(line, word, &words->has_zero);
        good = line != NULL && add_word(words, word);
    }
    free(word);
    if (!good)
        config_words_free(words);
    return good;
}

void config_words_free(struct config_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->words[i]);
    free(words->words);
    *words = (struct config_words){.count = 0};
}

static bool needs_quotes(const char *word)
{
    for (const char *at = word; *at != '\0'; at++)
        if (!isgraph((unsigned char)*at) || strchr("\"'\\", *at) != NULL)
            return true;
    return *word == '\0' || *word == '#';
}

char *config_quote(const char *word)
{
    if (!needs_quotes(word))
        return strdup(word);
    char *quoted = malloc(strlen(word) * 4 + 3); /* worst case: every byte becomes \xHH */
    if (quoted == NULL)
        return NULL;
    char *to = quoted;
    *to++ = '"';
    for (const char *at = word; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            *to++ = '\\';
            *to++ = *at;
        } else if (isprint((unsigned char)*at)) {
            *to++ = *at;
        } else {
            to += sprintf(to, "\\x%02x", (unsigned char)*at);
        }
    }
    *to++ = '"';
    *to = '\0';
    return quoted;
}
