#include "server/core/command_syntax.h"

#include <assert.h>

#include "server/base/word_list.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static const char *const type_names[] = {
    [SYNTAX_STRING] = "string",         [SYNTAX_INTEGER] = "integer",
    [SYNTAX_DOUBLE] = "double",         [SYNTAX_KEY] = "key",
    [SYNTAX_PATTERN] = "pattern",       [SYNTAX_UNIX_TIME] = "unix-time",
    [SYNTAX_PURE_TOKEN] = "pure-token", [SYNTAX_ONEOF] = "oneof",
    [SYNTAX_BLOCK] = "block",
};
#define TYPES (sizeof type_names / sizeof type_names[0])

/* The types implied by names. All other names are strings. */
static const struct {
    enum syntax_type type;
    const char *names;
} types_of_names[] = {
    {SYNTAX_KEY, "key key1 key2 newkey destkey sourcekey source destination src dst"},
    {SYNTAX_PATTERN, "pattern by-pattern get-pattern"},
    {SYNTAX_UNIX_TIME, "unix-time-seconds unix-time-milliseconds"},
    {SYNTAX_DOUBLE, "score min max timeout"},
    {SYNTAX_INTEGER, "start stop end offset count limit rank index index1 index2 bit cursor "
                     "increment decrement numkeys num-matches len min-match-len weight frequency "
                     "seconds milliseconds ttl db destination-db numreplicas numlocal client-id "
                     "protover version"},
};
#define TYPES_OF_NAMES (sizeof types_of_names / sizeof types_of_names[0])

/* ---- pieces of the text ---- */

static struct resp_slice take(struct resp_slice *text, size_t len)
{
    assert(len <= text->len);
    struct resp_slice taken = {.data = text->data, .len = len};
    text->data += len;
    text->len -= len;
    return taken;
}

static bool take_mark(struct resp_slice *text, const char *mark)
{
    size_t len = strlen(mark);
    if (text->len < len || memcmp(text->data, mark, len) != 0)
        return false;
    take(text, len);
    return true;
}

static struct resp_slice take_all_of(struct resp_slice *text, const char *characters)
{
    size_t len = 0;
    while (len < text->len && strchr(characters, text->data[len]) != NULL)
        len++;
    return take(text, len);
}

static bool begins_with_any_of(struct resp_slice text, const char *characters)
{
    return take_all_of(&text, characters).len > 0;
}

/* Numbers separated by single dots: three dots in a row are not part of it. */
static struct resp_slice take_version(struct resp_slice *text)
{
    struct resp_slice version = *text;
    struct resp_slice rest = *text;
    do {
        take_all_of(&rest, DIGITS);
        *text = rest;
    } while (take_mark(&rest, ".") && begins_with_any_of(rest, DIGITS));
    version.len -= text->len;
    return version;
}

/* Takes a group up to its closing parenthesis, which is dropped. */
static struct resp_slice take_group(struct resp_slice *text)
{
    size_t len = 0;
    for (int depth = 1; depth > 0; len++) {
        assert(len < text->len);
        depth += text->data[len] == '(';
        depth -= text->data[len] == ')';
    }
    struct resp_slice group = take(text, len);
    group.len--;
    return group;
}

static bool is_choice(struct resp_slice group)
{
    int depth = 0;
    for (size_t i = 0; i < group.len; i++) {
        char c = group.data[i];
        if (c == '|' && depth == 0)
            return true;
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    }
    return false;
}

/* ---- types ---- */

static enum syntax_type type_called(struct resp_slice name)
{
    for (size_t i = 0; i < TYPES; i++)
        if (strlen(type_names[i]) == name.len && memcmp(type_names[i], name.data, name.len) == 0)
            return (enum syntax_type)i;
    assert(!"a type");
    return SYNTAX_STRING;
}

static enum syntax_type type_of_name(const char *name)
{
    for (size_t i = 0; i < TYPES_OF_NAMES; i++)
        if (word_list_contain(types_of_names[i].names, name))
            return types_of_names[i].type;
    return SYNTAX_STRING;
}

const char *syntax_type_name(enum syntax_type type)
{
    return type_names[type];
}

/* ---- arguments ---- */

/* A token's name is the token in lower case. */
static void set_name(struct syntax_argument *argument, struct resp_slice word)
{
    assert(word.len > 0 && word.len < sizeof argument->name);
    for (size_t i = 0; i < word.len; i++) {
        bool is_upper = word.data[i] >= 'A' && word.data[i] <= 'Z';
        argument->name[i] = (char)(is_upper ? word.data[i] - 'A' + 'a' : word.data[i]);
    }
}

static void read_what_is_behind(struct resp_slice *text, struct syntax_argument *argument)
{
    for (;;) {
        if (take_mark(text, ":")) {
            argument->type = type_called(take_all_of(text, LOWER "-"));
        } else if (take_mark(text, "@")) {
            argument->since = take_version(text);
        } else if (take_mark(text, "!")) {
            argument->deprecated_since = take_version(text);
        } else if (take_mark(text, "#")) {
            argument->key_spec = take(text, 1).data[0] - '0';
        } else if (take_mark(text, "'")) {
            argument->shown = take_all_of(text, LOWER ":");
            take_mark(text, "'");
        } else {
            break;
        }
    }
    if (argument->type == SYNTAX_KEY && argument->key_spec < 0)
        argument->key_spec = 0;
}

static void read_token_and_name(struct resp_slice *text, struct syntax_argument *argument)
{
    argument->token = take_all_of(text, UPPER DIGITS "-");
    struct resp_slice rest = *text;
    if (argument->token.len > 0 && !(take_mark(&rest, " ") && begins_with_any_of(rest, LOWER))) {
        set_name(argument, argument->token);
        argument->type = SYNTAX_PURE_TOKEN;
        return;
    }
    take_mark(text, " ");
    set_name(argument, take_all_of(text, LOWER DIGITS "-"));
    argument->type = type_of_name(argument->name);
    if (take_mark(text, "=")) {
        argument->token = take_all_of(text, UPPER DIGITS "-=~*$");
        argument->type = SYNTAX_PURE_TOKEN;
    } else if (take_mark(text, "(")) {
        argument->arguments = take_group(text);
        argument->type = is_choice(argument->arguments) ? SYNTAX_ONEOF : SYNTAX_BLOCK;
    }
}

bool syntax_next(struct resp_slice *text, struct syntax_argument *argument)
{
    if (text->len == 0)
        return false;
    *argument = (struct syntax_argument){.key_spec = -1};
    bool is_optional = take_mark(text, "["), is_closed = !is_optional;
    read_token_and_name(text, argument);
    read_what_is_behind(text, argument);
    if (take_mark(text, "..."))
        argument->flags |= SYNTAX_MULTIPLE;
    if (is_optional) {
        argument->flags |= SYNTAX_OPTIONAL;
        is_closed = take_mark(text, "]");
        if (take_mark(text, "..."))
            argument->flags |= SYNTAX_MULTIPLE | SYNTAX_MULTIPLE_TOKEN;
    }
    bool is_apart = take_mark(text, " ") || take_mark(text, "|") || text->len == 0;
    assert(is_closed && is_apart);
    return true;
}

size_t syntax_count(struct resp_slice text)
{
    struct syntax_argument argument;
    size_t count = 0;
    while (syntax_next(&text, &argument))
        count++;
    return count;
}

struct resp_slice syntax_shown(const struct syntax_argument *argument)
{
    if (argument->shown.len > 0)
        return argument->shown;
    return syntax_of(argument->name);
}
