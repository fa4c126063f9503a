/*
 * One directive of the table, and how its values are parsed and shown.
 */
#ifndef VELLUM_CONFIG_DIRECTIVE_H
#define VELLUM_CONFIG_DIRECTIVE_H

#include "server/config/config.h"

enum directive_type {
    DIRECTIVE_BOOL,
    DIRECTIVE_INT,
    DIRECTIVE_OCTAL,
    DIRECTIVE_MEMORY,
    DIRECTIVE_PERCENT, /* a memory size; negative: percent */
    DIRECTIVE_ENUM,
    DIRECTIVE_TEXT, /* types from here on are stored as text */
    DIRECTIVE_WORDS,
    DIRECTIVE_SAVE,   /* pairs of seconds and changes; the lines of a file accumulate */
    DIRECTIVE_EVENTS, /* notify-keyspace-events' letters */
    DIRECTIVE_LIMITS, /* client-output-buffer-limit; kept in config.output_limits */
};

enum directive_flags {
    DIRECTIVE_FIXED = 1 << 0, /* cannot be changed at run time */
    DIRECTIVE_KEPT = 1 << 1,  /* as FIXED, but setting the present value is accepted: some tools set
                                 all directives */
    DIRECTIVE_PROTECTED = 1 << 2, /* can be changed as enable-protected-configs allows */
    DIRECTIVE_SECRET = 1 << 3,    /* is not to be seen among the processes */
};

struct directive_choice {
    const char *name;
    int64_t number;
};

struct directive {
    const char *name, *alias;               /* alias: an older name, or NULL */
    const char *initial;                    /* the default, as it would stand in a file */
    const struct directive_choice *choices; /* ENUM: terminated by an entry without a name */
    const char *ignored;                    /* why the directive has no effect; NULL: it has one */
    const char *(*check)(int64_t number); /* returns the problem with a number in range, or NULL */
    /* WORDS: returns the problem with a word, or NULL and the word's shown form. A NULL pointer:
     * any word of printable ASCII without quotes and backslashes is accepted. */
    const char *(*read_word)(const char *word, char *shown, size_t size);
    /* TEXT and WORDS, joined: returns the problem with `text`, or NULL and `text` in its shown
     * form, which is never longer. */
    const char *(*check_text)(char *text);
    int64_t min, max; /* of a number; WORDS: of the number of words */
    uint8_t type, flags;
};

extern const struct directive directive_table[]; /* rows below CONFIG_NAMED: enum config_id */
extern const size_t directive_count;

/* A value that was parsed but not yet applied. */
struct config_value {
    int64_t number;
    char *text; /* owned; NULL for numbers */
    uint64_t limits[CONFIG_CLIENT_CLASSES * 3];
};

static inline bool directive_is_number(const struct directive *directive)
{
    return directive->type < DIRECTIVE_TEXT;
}

/* Reads a memory size, as "100mb". False: it is none, or too large. */
bool config_read_memory(const char *text, int64_t *number);

/* Finds a directive by name or alias, case-insensitively. Returns directive_count if there is none.
 */
size_t directive_find(const char *name);

#define DIRECTIVE_ERROR_MAX 512

/* Parses a directive's arguments. LIMITS start from the present values. On failure returns false
 * and fills `error`. */
bool directive_parse(const struct config *config, size_t row, size_t argc, char *const argv[],
                     struct config_value *value, char error[DIRECTIVE_ERROR_MAX]);
void config_take(struct config *config, size_t row, struct config_value *value); /* empties it */

/* The value as CONFIG GET shows it. The caller frees it. NULL: out of memory. */
char *config_show(struct config *config, size_t row);

#endif
