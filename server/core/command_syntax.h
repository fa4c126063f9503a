/*
 * Parses the arguments of a command, as written in the command table, one by one, for COMMAND DOCS.
 *
 * The notation is a shortened form of the syntax lines in a command reference, with names for
 * arguments that have none there:
 *
 *     key value              arguments by their names; the type follows from the name, or stands
 *                            after it, as in increment:double
 *     NX                     a token that is an argument of its own, with the token's name, or
 *                            with the name given: change=CH, auto-id=*
 *     EX seconds             a token before an argument
 *     condition(NX|XX)       one of several arguments
 *     data(score member)     several arguments together
 *     [count]                optional
 *     key...                 may be repeated
 *     [GET pattern]...       optional, may be repeated, each time with its token
 *
 * After an argument, before its dots, may stand:
 *
 *     @6.2.0                 the version that introduced it
 *     !2.8.12                the version that deprecated it
 *     #1                     the key specification it belongs to; #0 is the default for keys
 *     'ip:port'              the text shown instead of its name
 *
 * Only names are copied: all other slices point into the text. A malformed text is a bug in the
 * table.
 */
#ifndef VELLUM_COMMAND_SYNTAX_H
#define VELLUM_COMMAND_SYNTAX_H

#include <string.h>

#include "protocol/resp.h"

enum syntax_type {
    SYNTAX_STRING,
    SYNTAX_INTEGER,
    SYNTAX_DOUBLE,
    SYNTAX_KEY,
    SYNTAX_PATTERN,
    SYNTAX_UNIX_TIME,
    SYNTAX_PURE_TOKEN,
    SYNTAX_ONEOF,
    SYNTAX_BLOCK,
};

enum syntax_flags {
    SYNTAX_OPTIONAL = 1 << 0,
    SYNTAX_MULTIPLE = 1 << 1,
    SYNTAX_MULTIPLE_TOKEN = 1 << 2, /* its token is repeated with it */
};

#define SYNTAX_NAME_MAX 32

struct syntax_argument {
    enum syntax_type type;
    uint32_t flags;
    char name[SYNTAX_NAME_MAX];
    struct resp_slice token, shown, since, deprecated_since; /* empty: none */
    int key_spec;                                            /* -1: none */
    struct resp_slice arguments; /* of SYNTAX_ONEOF and SYNTAX_BLOCK: the arguments inside */
};

static inline bool syntax_is_group(const struct syntax_argument *argument)
{
    return argument->type == SYNTAX_ONEOF || argument->type == SYNTAX_BLOCK;
}

static inline struct resp_slice syntax_of(const char *text)
{
    return (struct resp_slice){.data = text, .len = strlen(text)};
}

/* Takes the first argument off the text; false: no argument is left. */
bool syntax_next(struct resp_slice *text, struct syntax_argument *argument);
size_t syntax_count(struct resp_slice text);

/* The text shown for it in a syntax line. */
struct resp_slice syntax_shown(const struct syntax_argument *argument);

const char *syntax_type_name(enum syntax_type type); /* as in COMMAND DOCS */

#endif
