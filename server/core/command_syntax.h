/*
 * The arguments of a command, as the command table writes them, read one by one: what COMMAND DOCS
 * tells of them.
 *
 * The notation is that of the syntax lines in a command reference, made shorter, and with names for
 * what has none there:
 *
 *     key value              arguments by their names; what type they are follows from the name, or
 *                            stands behind it, as in increment:double
 *     NX                     a token that is an argument of its own, and named after it, or as the
 *                            table wants: change=CH
 *     EX seconds             a token that stands before an argument
 *     condition(NX|XX)       one of several; these are arguments, too
 *     data(score member)     several together
 *     [count]                may be left out
 *     key...                 may be repeated
 *     [GET pattern]...       may be left out or repeated, each time with its token
 *
 * Behind an argument may stand, before its dots:
 *
 *     @6.2.0                 the version that brought it
 *     !2.8.12                the version that brought something better
 *     #1                     the key specification it belongs to; keys, unless they say, to #0
 *     'ip:port'              what is shown instead of its name
 *
 * Nothing is copied but names: the rest lies in the text. A text that is not well formed is our own
 * mistake, in the table.
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
    struct resp_slice token, shown, since, deprecated_since; /* empty: it has none */
    int key_spec;                                            /* -1: none */
    struct resp_slice arguments; /* of SYNTAX_ONEOF and SYNTAX_BLOCK: what they consist of */
};

static inline bool syntax_is_group(const struct syntax_argument *argument)
{
    return argument->type == SYNTAX_ONEOF || argument->type == SYNTAX_BLOCK;
}

static inline struct resp_slice syntax_of(const char *text)
{
    return (struct resp_slice){.data = text, .len = strlen(text)};
}

/* Takes the first argument off the text; false: there is none. */
bool syntax_next(struct resp_slice *text, struct syntax_argument *argument);
size_t syntax_count(struct resp_slice text);

/* What stands for it where its syntax is shown. */
struct resp_slice syntax_shown(const struct syntax_argument *argument);

const char *syntax_type_name(enum syntax_type type); /* as COMMAND DOCS has it */

#endif
