/*
 * Private to config*.c: one directive of the table, and how its values are read and shown.
 */
#ifndef VELLUM_CONFIG_DIRECTIVE_H
#define VELLUM_CONFIG_DIRECTIVE_H

#include "server/config/config.h"

enum directive_type {
    DIRECTIVE_BOOL,
    DIRECTIVE_INT,
    DIRECTIVE_OCTAL,
    DIRECTIVE_MEMORY,
    DIRECTIVE_PERCENT, /* a memory size, or negative: percent */
    DIRECTIVE_ENUM,
    DIRECTIVE_TEXT, /* from here on: kept as a text */
    DIRECTIVE_WORDS,
    DIRECTIVE_SAVE,   /* pairs of seconds and changes; a file's lines add up */
    DIRECTIVE_EVENTS, /* notify-keyspace-events' letters */
    DIRECTIVE_LIMITS, /* client-output-buffer-limit; kept in config.output_limits */
};

enum directive_flags {
    DIRECTIVE_FIXED = 1 << 0, /* not to be changed while running */
    DIRECTIVE_KEPT = 1 << 1,  /* likewise, but may be set to what it is, as tools do that set all */
};

struct directive_choice {
    const char *name;
    int64_t number;
};

struct directive {
    const char *name, *alias;               /* alias: an older name, or NULL */
    const char *initial;                    /* the default, as it would stand in a file */
    const struct directive_choice *choices; /* ENUM: the last one has no name */
    const char *ignored;                    /* why it has no effect; NULL: it has */
    const char *(*check)(int64_t number);   /* what is wrong with a number in range, or NULL */
    /* Of WORDS: what is wrong with one, or NULL; else how it is to be shown. NULL: they are free.
     */
    const char *(*read_word)(const char *word, char *shown, size_t size);
    int64_t min, max; /* of numbers; of WORDS: how many */
    uint8_t type, flags;
};

extern const struct directive directive_table[]; /* rows below CONFIG_NAMED: enum config_id */
extern const size_t directive_count;

/* A value that was read and not yet taken into effect. */
struct config_value {
    int64_t number;
    char *text; /* owned; NULL for numbers */
    uint64_t limits[CONFIG_CLIENT_CLASSES * 3];
};

static inline bool directive_is_number(const struct directive *directive)
{
    return directive->type < DIRECTIVE_TEXT;
}

/* By name or alias, whatever the case; directive_count if there is none. */
size_t directive_find(const char *name);

#define DIRECTIVE_ERROR_MAX 512

/* Reads a directive's arguments. LIMITS start from the present ones. On failure false, and why. */
bool directive_parse(const struct config *config, size_t row, size_t argc, char *const argv[],
                     struct config_value *value, char error[DIRECTIVE_ERROR_MAX]);
void config_take(struct config *config, size_t row, struct config_value *value); /* empties it */

/* The value as CONFIG GET shows it; to be freed; NULL: out of memory. */
char *config_show(struct config *config, size_t row);

/* Writes the present values into config->file. On failure false, and why; the file is as it was. */
bool config_rewrite(struct config *config, char error[DIRECTIVE_ERROR_MAX]);

/* Keeps a warning for config_each_note; the same text once. False: out of memory. */
bool config_note(struct config *config, const char *text);
void config_notes_free(struct config *config);

/* ---- lines ---- */

/* The words of a line, with "..." (escapes \n \r \t \a \b \xHH) and '...'. */
struct config_words {
    size_t count;
    char **words;
};
/* False: quotes do not match, or out of memory. */
bool config_split(const char *line, struct config_words *words);
void config_words_free(struct config_words *words);

/* Quotes a word where it would not be read back as it is. NULL: out of memory. */
char *config_quote(const char *word);

#endif
