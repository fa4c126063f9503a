#include "look_ahead.h"

#define LEN_MIN 64 /* less is hardly more than one command */

/* The first key of a command is what counts: those of many keys prefetch for themselves. */
static bool first_key(struct worker *worker, const struct session *session, struct store_key *key)
{
    const struct resp_parser *parser = &worker->scout;
    if (parser->count < 2)
        return false;
    const struct command *command = command_find(&worker->server->commands, parser->args[0]);
    if (command == NULL || command->first_key <= 0 || (size_t)command->first_key >= parser->count)
        return false;
    const struct resp_slice *name = &parser->args[command->first_key];
    store_key(key, session->db, name->data, name->len, STORE_SHARED);
    return true;
}

void look_ahead(struct worker *worker, const struct session *session, const char *data, size_t len)
{
    struct store_key keys[LOOK_AHEAD_COMMANDS];
    struct resp_parser *parser = &worker->scout;
    uint32_t count = 0;
    if (len < LEN_MIN)
        return;
    for (int i = 0; i < LOOK_AHEAD_COMMANDS && len > 0 && data[0] == '*'; i++) {
        if (resp_parse(parser, data, len) != RESP_COMPLETE) {
            struct resp_limits limits = parser->limits;
            resp_parser_free(parser); /* it would go on in the middle of a command */
            resp_parser_init(parser, limits);
            break;
        }
        data += parser->consumed;
        len -= parser->consumed;
        if (first_key(worker, session, &keys[count]))
            count++;
    }
    if (count > 1)
        store_prefetch(worker->store, keys, count);
}
