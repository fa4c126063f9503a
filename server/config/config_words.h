/*
 * The words of a line of the configuration file.
 */
#ifndef VELLUM_CONFIG_WORDS_H
#define VELLUM_CONFIG_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* The words of a line, which may be quoted with "..." (escapes \n \r \t \a \b \xHH) or '...'. */
struct config_words {
    size_t count, capacity;
    char **words;
    bool has_zero; /* a word contains a zero byte, \x00, and ends there: to be refused */
};
/* False: unbalanced quotes, or out of memory. */
bool config_split(const char *line, struct config_words *words);
void config_words_free(struct config_words *words);

/* Quotes a word if it could not be parsed back otherwise. NULL: out of memory. */
char *config_quote(const char *word);

#endif
