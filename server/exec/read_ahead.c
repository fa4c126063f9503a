#include "server/exec/read_ahead.h"

#include <string.h>

#include "server/net/client_memory.h"
#include "server/core/call.h"
#include "server/exec/tracking.h"
#include "storage/collections.h"

#define LEN_MIN 64 /* shorter input is hardly more than one command */

void read_ahead_begin(struct read_ahead *look, struct worker *worker, const struct session *session,
                      bool is_middle)
{
    look->worker = worker;
    look->session = session;
    look->count = look->next = 0;
    look->is_cut = is_middle;
}

void read_ahead_forget(struct read_ahead *look)
{
    look->count = look->next = 0;
    look->is_cut = true;
}

static void describe(struct read_ahead *look, struct ahead *ahead, const struct resp_parser *parser,
                     const struct resp_slice *args)
{
    *ahead = (struct ahead){.args = args, .count = parser->count, .consumed = parser->consumed};
    if (ahead->count > 0)
        ahead->command = command_find(&look->worker->server->commands, args[0]);
}

/* Finds the first key of a command; commands with many keys prefetch the others themselves. */
static bool find_key(const struct store *store, const struct ahead *ahead, uint32_t db,
                     struct store_key *key)
{
    if (ahead->command == NULL)
        return false;
    size_t at = command_first_key(ahead->command, ahead->count, ahead->args);
    if (at == 0 || at >= ahead->count)
        return false;
    const struct resp_slice *name = &ahead->args[at];
    store_key(store, key, db, name->data, name->len, STORE_SHARED);
    return true;
}

/* Bit i of `with_trees`: look->keys[i] has trees. */
static void hint_trees(const struct read_ahead *look, uint64_t with_trees)
{
    struct store_prefetch_hint prefetch_hints[PROBES_MOST * READ_AHEAD_COMMANDS];
    const struct store *store = look->worker->server->store;
    uint32_t count = 0;
    for (uint32_t i = 0; with_trees != 0 && i < look->count; i++) {
        const struct ahead *ahead = &look->commands[i];
        if (ahead->key != NULL && ahead->command->prefetch_hints != NULL &&
            (with_trees >> (ahead->key - look->keys) & 1) != 0)
            count += ahead->command->prefetch_hints(store, ahead, i, prefetch_hints + count);
    }
    if (count > 1)
        store_prefetch_trees(look->worker->store, prefetch_hints, count);
}

/* Parses one whole command of no more than `room` arguments. */
static bool prefetch_command(struct resp_parser *ahead_parser, const char *data, size_t len,
                             size_t room)
{
    if (len == 0 || data[0] != '*')
        return false;
    if (resp_parse(ahead_parser, data, len) == RESP_COMPLETE)
        return ahead_parser->count <= room;
    struct resp_limits limits = ahead_parser->limits;
    resp_parser_free(ahead_parser); /* it would continue in the middle of a command */
    resp_parser_init(ahead_parser, limits);
    return false;
}

/* The commands will look for their keys in the tracking table if they write, or their client
 * tracks. */
static void prefetch_tracked(const struct read_ahead *look, uint32_t key_count)
{
    struct tracking *tracking = look->worker->server->tracking;
    if (tracking_clients(tracking) == 0)
        return;
    bool looks = look->session->tracker != NULL;
    for (uint32_t i = 0; i < look->count && !looks; i++) {
        const struct command *command = look->commands[i].command;
        looks = command != NULL && (command->flags & CMD_WRITE) != 0;
    }
    if (looks)
        tracking_prefetch(tracking, look->keys, key_count);
}

static void read_ahead(struct read_ahead *look, struct resp_limits limits, const char *data,
                       size_t len)
{
    struct resp_parser *ahead_parser = &look->worker->ahead_parser;
    struct resp_slice *args = look->args;
    uint32_t key_count = 0;
    look->count = look->next = 0;
    resp_parser_set_limits(ahead_parser, limits);
    while (
        look->count < READ_AHEAD_COMMANDS &&
        prefetch_command(ahead_parser, data, len, (size_t)(look->args + READ_AHEAD_ARGS - args))) {
        struct ahead *ahead = &look->commands[look->count++];
        if (ahead_parser->count > 0) /* an empty line has no words */
            memcpy(args, ahead_parser->args, ahead_parser->count * sizeof *args);
        describe(look, ahead, ahead_parser, args);
        if (find_key(look->worker->server->store, ahead, look->session->db, &look->keys[key_count]))
            ahead->key = &look->keys[key_count++];
        args += ahead_parser->count;
        data += ahead_parser->consumed;
        len -= ahead_parser->consumed;
    }
    look->is_cut = look->count < READ_AHEAD_COMMANDS;
    if (key_count <= 1)
        return;
    prefetch_tracked(look, key_count);
    if (!client_memory_is_short(look->worker)) /* else they are evicted before they are used */
        hint_trees(look, store_prefetch(look->worker->store, look->keys, key_count));
}

enum resp_status read_ahead_next(struct read_ahead *look, struct resp_parser *parser,
                                 const char *data, size_t len, const struct ahead **next)
{
    bool is_wanted = look->next == look->count && !look->is_cut && len >= LEN_MIN;
    if (is_wanted && look->session->authenticated)
        read_ahead(look, parser->limits, data, len);
    if (look->next < look->count) {
        *next = &look->commands[look->next++];
        return RESP_COMPLETE;
    }
    look->is_cut = false;
    enum resp_status status = resp_parse(parser, data, len);
    if (status == RESP_COMPLETE)
        describe(look, &look->commands[0], parser, parser->args);
    *next = &look->commands[0];
    return status;
}

size_t read_ahead_skip(struct read_ahead *look, uint32_t count)
{
    size_t bytes = 0;
    for (; count > 0; count--)
        bytes += look->commands[look->next++].consumed;
    return bytes;
}
