/*
 * COMMAND: the command table in Redis's reply formats.
 */
#include "server/commands/commands.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/core/command_syntax.h"
#include "server/base/glob.h"
#include "server/core/server.h"
#include "server/base/word_list.h"
#include "server/core/call.h"

#define WORD_MAX 24

/* ---- lists of words ---- */

static void reply_status_words(struct resp_writer *reply, const char *words)
{
    struct resp_slice word;
    char text[WORD_MAX];
    resp_set(reply, word_list_count(words));
    while (word_list_next(&words, &word)) {
        assert(word.len < sizeof text); /* or the name would be cut off */
        snprintf(text, sizeof text, "%.*s", (int)word.len, word.data);
        resp_status(reply, text);
    }
}

static void reply_bulk_words(struct resp_writer *reply, const char *words)
{
    struct resp_slice word;
    resp_set(reply, word_list_count(words));
    while (word_list_next(&words, &word))
        resp_bulk(reply, word.data, word.len);
}

/* ---- flags and categories ---- */

static const struct {
    uint32_t flag;
    const char *name;
} flag_names[] = {
    {CMD_WRITE, "write"},
    {CMD_READONLY, "readonly"},
    {CMD_DENYOOM, "denyoom"},
    {CMD_ADMIN, "admin"},
    {CMD_PUBSUB, "pubsub"},
    {CMD_NOSCRIPT, "noscript"},
    {CMD_BLOCKING, "blocking"},
    {CMD_LOADING, "loading"},
    {CMD_STALE, "stale"},
    {CMD_SKIP_MONITOR, "skip_monitor"},
    {CMD_KEYS_OPTIONAL, "no_mandatory_keys"},
    {CMD_FAST, "fast"},
    {CMD_NO_AUTH, "no_auth"},
    {CMD_NO_MULTI, "no_multi"},
    {CMD_MOVABLE_KEYS, "movablekeys"},
    {CMD_ALLOW_BUSY, "allow_busy"},
    {CMD_SKIP_SLOWLOG, "skip_slowlog"},
};
#define FLAG_NAMES (sizeof flag_names / sizeof flag_names[0])

static void reply_flags(struct resp_writer *reply, uint32_t flags)
{
    uint64_t count = 0;
    for (size_t i = 0; i < FLAG_NAMES; i++)
        count += (flags & flag_names[i].flag) != 0;
    resp_set(reply, count);
    for (size_t i = 0; i < FLAG_NAMES; i++)
        if ((flags & flag_names[i].flag) != 0)
            resp_status(reply, flag_names[i].name);
}

/* ACL categories in Redis's order, with the flags that imply them. */
static const struct {
    const char *name;
    uint32_t implied_by;
} categories[] = {
    {"@keyspace", 0},
    {"@read", CMD_READONLY},
    {"@write", CMD_WRITE},
    {"@set", 0},
    {"@sortedset", 0},
    {"@list", 0},
    {"@hash", 0},
    {"@string", 0},
    {"@bitmap", 0},
    {"@hyperloglog", 0},
    {"@stream", 0},
    {"@geo", 0},
    {"@pubsub", CMD_PUBSUB},
    {"@admin", CMD_ADMIN},
    {"@fast", CMD_FAST},
    {"@slow", 0},
    {"@blocking", CMD_BLOCKING},
    {"@dangerous", CMD_ADMIN},
    {"@connection", 0},
    {"@transaction", 0},
    {"@scripting", 0},
};
#define CATEGORIES (sizeof categories / sizeof categories[0])

static bool is_in_category(const struct command *command, size_t category)
{
    const char *name = categories[category].name;
    if (strcmp(name, "@slow") == 0)
        return (command->flags & CMD_FAST) == 0;
    if (strcmp(name, "@read") == 0 && word_list_contain(command->acl, "scripting"))
        return false;
    return (command->flags & categories[category].implied_by) != 0 ||
           word_list_contain(command->acl, name + 1);
}

static void reply_categories(struct resp_writer *reply, const struct command *command)
{
    uint64_t count = 0;
    for (size_t i = 0; i < CATEGORIES; i++)
        count += is_in_category(command, i);
    resp_set(reply, count);
    for (size_t i = 0; i < CATEGORIES; i++)
        if (is_in_category(command, i))
            resp_status(reply, categories[i].name);
}

/* ---- key specifications ---- */

/* One key specification, for one part of key_flags. `last` is as in the table. If count_at, the
 * argument with the number of keys, or streams_at is set, the other numbers are ignored; they are
 * also ignored if the keys are unknown, or if one key follows a keyword. */
struct key_spec {
    char flags[64];
    int first, last, step, count_at, streams_at;
    bool is_unknown;
    char keyword[WORD_MAX]; /* empty: none */
    int from;               /* index of the first argument that may be the keyword */
};

#define KEY_SPECS_MAX 4

/* Returns what follows "@6 STORE ", if the part begins so. */
static const char *take_keyword(const char *part, struct key_spec *spec)
{
    int len = 0;
    spec->keyword[0] = '\0';
    if (*part != '@')
        return part;
    int found = sscanf(part, "@%d %23[A-Z] %n", &spec->from, spec->keyword, &len);
    assert(found == 2 && len > 0);
    (void)found;
    return part + len;
}

static size_t list_key_specs(const struct command *command, struct key_spec specs[KEY_SPECS_MAX])
{
    size_t count = 0;
    const char *at = command_has_keys(command) ? command->key_flags : NULL;
    while (at != NULL && count < KEY_SPECS_MAX) {
        struct key_spec *spec = &specs[count];
        at = take_keyword(at, spec);
        size_t len = strcspn(at, ";");
        bool is_last = at[len] == '\0';
        spec->is_unknown = *at == '?';
        assert(len < sizeof spec->flags); /* or flags would be cut off */
        snprintf(spec->flags, sizeof spec->flags, "%.*s", (int)len - spec->is_unknown,
                 at + spec->is_unknown);
        spec->step = command->key_step;
        spec->first = command->first_key + (int)count * command->key_step;
        spec->last = is_last && spec->keyword[0] == '\0' ? command->last_key : spec->first;
        spec->count_at = is_last ? command->key_count_at : 0;
        spec->streams_at = is_last ? command->streams_at : 0;
        if (spec->streams_at != 0) {
            snprintf(spec->keyword, sizeof spec->keyword, "STREAMS");
            spec->from = spec->streams_at;
        }
        at = is_last ? NULL : at + len + 1;
        count++;
    }
    assert(at == NULL); /* no specification of the table is left out */
    return count;
}

static void reply_numbers(struct resp_writer *reply, const char *const names[3],
                          const int numbers[3])
{
    for (int i = 0; i < 3; i++) {
        resp_bulk_string(reply, names[i]);
        resp_integer(reply, numbers[i]);
    }
}

/* "begin_search" or "find_keys" of unknown keys. */
static void reply_unknown(struct resp_writer *reply, const char *what)
{
    resp_bulk_string(reply, what);
    resp_map(reply, 2);
    resp_bulk_string(reply, "type");
    resp_bulk_string(reply, "unknown");
    resp_bulk_string(reply, "spec");
    resp_map(reply, 0);
}

static void reply_begin_search(struct resp_writer *reply, const struct key_spec *spec)
{
    bool has_keyword = spec->keyword[0] != '\0';
    resp_bulk_string(reply, "begin_search");
    resp_map(reply, 2);
    resp_bulk_string(reply, "type");
    resp_bulk_string(reply, has_keyword ? "keyword" : "index");
    resp_bulk_string(reply, "spec");
    resp_map(reply, has_keyword ? 2 : 1);
    if (has_keyword) {
        resp_bulk_string(reply, "keyword");
        resp_bulk_string(reply, spec->keyword);
        resp_bulk_string(reply, "startfrom");
        resp_integer(reply, spec->from);
        return;
    }
    resp_bulk_string(reply, "index");
    resp_integer(reply, spec->count_at != 0 ? spec->count_at : spec->first);
}

static void reply_find_keys(struct resp_writer *reply, const struct key_spec *spec)
{
    static const char *const range[] = {"lastkey", "keystep", "limit"};
    resp_bulk_string(reply, "find_keys");
    resp_map(reply, 2);
    resp_bulk_string(reply, "type");
    resp_bulk_string(reply, spec->count_at != 0 ? "keynum" : "range");
    resp_bulk_string(reply, "spec");
    resp_map(reply, 3);
    if (spec->count_at != 0)
        reply_numbers(reply, (const char *[]){"keynumidx", "firstkey", "keystep"},
                      (const int[]){0, 1, 1});
    else if (spec->streams_at != 0) /* the first half */
        reply_numbers(reply, range, (const int[]){-1, 1, 2});
    else /* relative to the first key, unless counted from the end */
        reply_numbers(
            reply, range,
            (const int[]){spec->last < 0 ? spec->last : spec->last - spec->first, spec->step, 0});
}

static void reply_spec(struct resp_writer *reply, const struct key_spec *spec)
{
    resp_map(reply, 3);
    resp_bulk_string(reply, "flags");
    reply_status_words(reply, spec->flags);
    if (spec->is_unknown) {
        reply_unknown(reply, "begin_search");
        reply_unknown(reply, "find_keys");
        return;
    }
    reply_begin_search(reply, spec);
    reply_find_keys(reply, spec);
}

static void reply_key_specs(struct resp_writer *reply, const struct command *command)
{
    struct key_spec specs[KEY_SPECS_MAX];
    size_t count = list_key_specs(command, specs);
    resp_set(reply, count);
    for (size_t i = 0; i < count; i++)
        reply_spec(reply, &specs[i]);
}

/* ---- subcommands ---- */

static bool is_subcommand(const struct command *command)
{
    return strchr(command->name, '|') != NULL;
}

static size_t count_subcommands(const struct command *command)
{
    size_t count = 0;
    if (command_is_container(command))
        while (command[count + 1].name != NULL && is_subcommand(command + count + 1))
            count++;
    return count;
}

/* A top-level command that rename-command has not removed. */
static bool is_shown(const struct call *call, const struct command *command)
{
    return !is_subcommand(command) && command_is_reachable(&call->server->commands, command);
}

static size_t count_commands(const struct call *call)
{
    const struct command_index *all = &call->server->commands;
    size_t count = 0;
    for (size_t row = 0; row < all->count; row++)
        count += is_shown(call, &all->table[row]);
    return count;
}

/* A command by a name like "get" or "config|get". */
static const struct command *find_full(const struct call *call, struct resp_slice name)
{
    const char *bar = memchr(name.data, '|', name.len);
    if (bar == NULL)
        return command_find(&call->server->commands, name);
    size_t len = (size_t)(bar - name.data);
    const struct command *container =
        command_find(&call->server->commands, (struct resp_slice){.data = name.data, .len = len});
    if (container == NULL || !command_is_container(container))
        return NULL;
    return command_find_sub(container,
                            (struct resp_slice){.data = bar + 1, .len = name.len - len - 1});
}

/* ---- COMMAND INFO ---- */

static void reply_info(struct resp_writer *reply, const struct command *command)
{
    size_t subcommands = count_subcommands(command);
    resp_array(reply, 10);
    resp_bulk_string(reply, command->name);
    resp_integer(reply, command->arity);
    reply_flags(reply, command->flags);
    resp_integer(reply, command->first_key);
    resp_integer(reply, command->last_key);
    resp_integer(reply, command->key_step);
    reply_categories(reply, command);
    reply_bulk_words(reply, command->tips);
    reply_key_specs(reply, command);
    if (subcommands == 0) /* Redis: an empty set, but a non-empty array */
        resp_set(reply, 0);
    else
        resp_array(reply, subcommands);
    for (size_t i = 0; i < subcommands; i++) /* subcommands contain no others */
        reply_info(reply, command + 1 + i);
}

enum store_result cmd_command(struct call *call)
{
    const struct command_index *all = &call->server->commands;
    resp_array(call->reply, count_commands(call));
    for (size_t row = 0; row < all->count; row++)
        if (is_shown(call, &all->table[row]))
            reply_info(call->reply, &all->table[row]);
    return STORE_OK;
}

enum store_result cmd_command_info(struct call *call)
{
    if (call->argc == 2)
        return cmd_command(call);
    if (call_too_many_names(call))
        return STORE_OK;
    resp_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++) {
        const struct command *command = find_full(call, call->argv[i]);
        if (command != NULL)
            reply_info(call->reply, command);
        else
            resp_null(call->reply);
    }
    return STORE_OK;
}

enum store_result cmd_command_count(struct call *call)
{
    resp_integer(call->reply, (int64_t)count_commands(call));
    return STORE_OK;
}

/* ---- COMMAND DOCS ---- */

static void reply_deprecation(struct resp_writer *reply, const char *deprecated)
{
    size_t version = strcspn(deprecated, " ");
    resp_bulk_string(reply, "doc_flags");
    resp_set(reply, 1);
    resp_status(reply, "deprecated");
    resp_bulk_string(reply, "deprecated_since");
    resp_bulk(reply, deprecated, version);
    resp_bulk_string(reply, "replaced_by");
    resp_bulk_string(reply, deprecated + version + 1);
}

static size_t count_lines(const char *text)
{
    size_t count = 1;
    while ((text = strchr(text, '\n')) != NULL) {
        text++;
        count++;
    }
    return count;
}

static void reply_history(struct resp_writer *reply, const char *history)
{
    resp_bulk_string(reply, "history");
    resp_set(reply, count_lines(history));
    for (const char *line = history; line != NULL;) {
        const char *end = strchr(line, '\n'), *text = strchr(line, ' ') + 1;
        resp_array(reply, 2);
        resp_bulk(reply, line, (size_t)(text - line) - 1);
        resp_bulk(reply, text, end != NULL ? (size_t)(end - text) : strlen(text));
        line = end != NULL ? end + 1 : NULL;
    }
}

/* A part of an argument's description; omitted if it is empty. */
static void reply_part(struct resp_writer *reply, const char *name, struct resp_slice value)
{
    if (value.len == 0)
        return;
    resp_bulk_string(reply, name);
    resp_bulk(reply, value.data, value.len);
}

static void reply_argument_flags(struct resp_writer *reply, uint32_t flags)
{
    static const char *const names[] = {"optional", "multiple", "multiple_token"};
    if (flags == 0)
        return;
    resp_bulk_string(reply, "flags");
    resp_set(reply, (uint64_t)__builtin_popcount(flags));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((flags & 1u << i) != 0)
            resp_status(reply, names[i]);
}

static void reply_arguments(struct resp_writer *reply, struct resp_slice syntax);

static void reply_argument(struct resp_writer *reply, const struct syntax_argument *argument)
{
    bool is_group = syntax_is_group(argument), has_key_spec = argument->key_spec >= 0;
    /* Three parts: the name, the type, and the display text or the nested arguments. */
    resp_map(reply, 3 + has_key_spec + (argument->token.len > 0) + (argument->since.len > 0) +
                        (argument->deprecated_since.len > 0) + (argument->flags != 0));
    resp_bulk_string(reply, "name");
    resp_bulk_string(reply, argument->name);
    resp_bulk_string(reply, "type");
    resp_bulk_string(reply, syntax_type_name(argument->type));
    if (!is_group)
        reply_part(reply, "display_text", syntax_shown(argument));
    if (has_key_spec) {
        resp_bulk_string(reply, "key_spec_index");
        resp_integer(reply, argument->key_spec);
    }
    reply_part(reply, "token", argument->token);
    reply_part(reply, "since", argument->since);
    reply_part(reply, "deprecated_since", argument->deprecated_since);
    reply_argument_flags(reply, argument->flags);
    if (is_group)
        reply_arguments(reply, argument->arguments);
}

/* Recursion is bounded by the nesting in the command table. */
static void reply_arguments(struct resp_writer *reply, struct resp_slice syntax)
{
    struct syntax_argument argument;
    resp_bulk_string(reply, "arguments");
    resp_array(reply, syntax_count(syntax));
    while (syntax_next(&syntax, &argument))
        reply_argument(reply, &argument);
}

static void reply_docs(struct resp_writer *reply, const struct command *command)
{
    size_t subcommands = count_subcommands(command);
    resp_bulk_string(reply, command->name);
    resp_map(reply, 4 + (command->deprecated != NULL ? 3 : 0) + (command->history != NULL) +
                        (command->syntax != NULL) + (subcommands > 0));
    resp_bulk_string(reply, "summary");
    resp_bulk_string(reply, command->summary);
    resp_bulk_string(reply, "since");
    resp_bulk_string(reply, command->since);
    resp_bulk_string(reply, "group");
    resp_bulk_string(reply, command->group);
    resp_bulk_string(reply, "complexity");
    resp_bulk_string(reply, command->complexity);
    if (command->deprecated != NULL)
        reply_deprecation(reply, command->deprecated);
    if (command->history != NULL)
        reply_history(reply, command->history);
    if (command->syntax != NULL)
        reply_arguments(reply, syntax_of(command->syntax));
    if (subcommands == 0)
        return;
    resp_bulk_string(reply, "subcommands");
    resp_map(reply, subcommands);
    for (size_t i = 0; i < subcommands; i++) /* subcommands contain no others */
        reply_docs(reply, command + 1 + i);
}

enum store_result cmd_command_docs(struct call *call)
{
    const struct command_index *all = &call->server->commands;
    size_t found = 0;
    if (call_too_many_names(call))
        return STORE_OK;
    if (call->argc == 2) {
        resp_map(call->reply, count_commands(call));
        for (size_t row = 0; row < all->count; row++)
            if (is_shown(call, &all->table[row]))
                reply_docs(call->reply, &all->table[row]);
        return STORE_OK;
    }
    for (size_t i = 2; i < call->argc; i++)
        found += find_full(call, call->argv[i]) != NULL;
    resp_map(call->reply, found);
    for (size_t i = 2; i < call->argc; i++) {
        const struct command *command = find_full(call, call->argv[i]);
        if (command != NULL)
            reply_docs(call->reply, command);
    }
    return STORE_OK;
}

/* ---- COMMAND LIST ---- */

enum list_filter { LIST_ALL, LIST_NONE, LIST_CATEGORY, LIST_PATTERN };

static bool is_listed(const struct call *call, const struct command *command,
                      enum list_filter filter, struct resp_slice wanted)
{
    if (!command_is_reachable(&call->server->commands, command))
        return false;
    switch (filter) {
    case LIST_ALL:
        return true;
    case LIST_NONE:
        return false;
    case LIST_PATTERN:
        return glob_match(wanted.data, wanted.len, command->name, strlen(command->name), true);
    case LIST_CATEGORY:
        for (size_t i = 0; i < CATEGORIES; i++)
            if (slice_is(wanted, categories[i].name + 1))
                return is_in_category(command, i);
        return false;
    }
    return false;
}

enum store_result cmd_command_list(struct call *call)
{
    const struct resp_slice *argv = call->argv;
    struct resp_slice wanted = {.len = 0};
    enum list_filter filter = LIST_ALL;
    if (call->argc > 2) {
        bool good = call->argc == 5 && slice_is(argv[2], "filterby");
        if (good && slice_is(argv[3], "module"))
            filter = LIST_NONE; /* there are no modules */
        else if (good && slice_is(argv[3], "aclcat"))
            filter = LIST_CATEGORY;
        else if (good && slice_is(argv[3], "pattern"))
            filter = LIST_PATTERN;
        else {
            call_syntax_error(call);
            return STORE_OK;
        }
        wanted = argv[4];
    }
    const struct command_index *all = &call->server->commands;
    uint64_t count = 0;
    for (size_t row = 0; row < all->count; row++)
        count += is_listed(call, &all->table[row], filter, wanted);
    resp_array(call->reply, count);
    for (size_t row = 0; row < all->count; row++)
        if (is_listed(call, &all->table[row], filter, wanted))
            resp_bulk_string(call->reply, all->table[row].name);
    return STORE_OK;
}

/* ---- COMMAND GETKEYS ---- */

/* The command given by argv[2 ...], if it is well-formed and has keys. Otherwise replies with an
 * error. */
static const struct command *inner_command(struct call *call)
{
    const struct resp_slice *argv = call->argv + 2;
    size_t argc = call->argc - 2;
    const struct command *command = command_find(&call->server->commands, argv[0]);
    if (command != NULL && command_is_container(command) && argc > 1)
        command = command_find_sub(command, argv[1]);
    if (command == NULL) {
        resp_error(call->reply, "ERR Invalid command specified");
    } else if (!command_has_keys(command) || strcmp(command->key_flags, "not_key") == 0) {
        resp_error(call->reply, "ERR The command has no key arguments");
    } else if (!command_arity_ok(command, argc)) {
        resp_error(call->reply, "ERR Invalid number of arguments specified for command");
    } else {
        return command;
    }
    return NULL;
}

/* Whether one of the words `options` is among the arguments from `argv[from]` on. */
static bool has_option(const struct call *call, size_t from, const char *options)
{
    struct resp_slice option;
    while (word_list_next(&options, &option))
        for (size_t i = from; i < call->argc; i++)
            if (call->argv[i].len == option.len &&
                strncasecmp(call->argv[i].data, option.data, option.len) == 0)
                return true;
    return false;
}

/* The access to a key may depend on the arguments. */
static const char *flags_in_call(struct call *call, const struct command *command,
                                 const struct key_spec *spec)
{
    const struct variable_flags *variable = &command->variable;
    if (variable->options == NULL)
        return spec->flags;
    /* The command's name is the third argument of this call. */
    return has_option(call, (size_t)variable->from + 2, variable->options) ? variable->with
                                                                           : variable->without;
}

/* The position of the key after the specification's keyword; 0: none. */
static size_t key_after_word(const struct key_spec *spec, size_t argc,
                             const struct resp_slice *argv)
{
    for (size_t i = (size_t)spec->from; i + 1 < argc; i++)
        if (slice_is(argv[i], spec->keyword))
            return i + 1;
    return 0;
}

/* The positions of one specification's keys in a call, and the distance between them. */
static void spec_range(const struct command *command, const struct key_spec *spec, size_t argc,
                       const struct resp_slice *argv, size_t range[2])
{
    range[0] = range[1] = 0;
    if (spec->is_unknown)
        return;
    if (spec->keyword[0] != '\0' && spec->streams_at == 0) {
        range[0] = key_after_word(spec, argc, argv);
        range[1] = range[0] + (range[0] != 0);
        return;
    }
    range[0] = (size_t)spec->first;
    range[1] = spec->last < 0 ? argc + (size_t)(spec->last + 1) : (size_t)spec->last + 1;
    if (spec->count_at != 0 || spec->streams_at != 0)
        command_counted_keys(command, argc, argv, &range[0], &range[1]);
}

static size_t spec_step(const struct key_spec *spec)
{
    size_t step = spec->count_at != 0 || spec->streams_at != 0 ? 1 : (size_t)spec->step;
    assert(step > 0); /* or the loops over the keys would not end */
    return step;
}

static void reply_key(struct call *call, size_t at, const char *flags, bool with_flags)
{
    const struct resp_slice *argv = call->argv + 2;
    if (with_flags)
        resp_array(call->reply, 2);
    resp_bulk(call->reply, argv[at].data, argv[at].len);
    if (with_flags)
        reply_status_words(call->reply, flags);
}

static void reply_spec_keys(struct call *call, const struct command *command,
                            const struct key_spec *spec, const size_t range[2], bool with_flags)
{
    const char *flags = flags_in_call(call, command, spec);
    for (size_t i = range[0]; i < range[1]; i += spec_step(spec))
        reply_key(call, i, flags, with_flags);
}

static enum store_result reply_keys(struct call *call, bool with_flags)
{
    const struct command *command = inner_command(call);
    if (command == NULL)
        return STORE_OK;
    struct key_spec specs[KEY_SPECS_MAX];
    size_t ranges[KEY_SPECS_MAX][2];
    size_t spec_count = list_key_specs(command, specs), count = 0;
    bool has_unknown = false;
    for (size_t i = 0; i < spec_count; i++) {
        has_unknown = has_unknown || specs[i].is_unknown;
        spec_range(command, &specs[i], call->argc - 2, call->argv + 2, ranges[i]);
        for (size_t at = ranges[i][0]; at < ranges[i][1]; at += spec_step(&specs[i]))
            count++;
        bool is_counted = specs[i].count_at != 0 || specs[i].streams_at != 0;
        bool is_empty = is_counted && ranges[i][0] == ranges[i][1];
        if (is_empty && (command->flags & CMD_KEYS_OPTIONAL) == 0) {
            resp_error(call->reply, "ERR Invalid arguments specified for command");
            return STORE_OK;
        }
    }
    size_t store = has_unknown ? command_store_key(command, call->argc - 2, call->argv + 2) : 0;
    resp_array(call->reply, count + (store != 0));
    for (size_t i = 0; i < spec_count; i++)
        reply_spec_keys(call, command, &specs[i], ranges[i], with_flags);
    if (store != 0)
        reply_key(call, store, "OW update", with_flags);
    return STORE_OK;
}

enum store_result cmd_command_getkeys(struct call *call)
{
    return reply_keys(call, false);
}

enum store_result cmd_command_getkeysandflags(struct call *call)
{
    return reply_keys(call, true);
}

enum store_result cmd_command_help(struct call *call)
{
    static const char *const lines[] = {
        "(no subcommand)",
        "    Describe all commands.",
        "COUNT",
        "    Count the commands.",
        "DOCS [<command-name> ...]",
        "    Document these commands, or all.",
        "GETKEYS <full-command>",
        "    Find the keys among the arguments.",
        "GETKEYSANDFLAGS <full-command>",
        "    Find the keys among the arguments and tell what is done with them.",
        "INFO [<command-name> ...]",
        "    Describe these commands, or all.",
        "LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]",
        "    List the commands' names.",
        NULL,
    };
    call_help(call, lines);
    return STORE_OK;
}
