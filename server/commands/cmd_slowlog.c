/*
 * SLOWLOG.
 */
#include "server/commands/commands.h"

#include "server/core/server.h"
#include "server/exec/slowlog.h"
#include "server/core/call.h"

#define USUAL_COUNT 10

enum store_result cmd_slowlog_get(struct call *call)
{
    int64_t count = USUAL_COUNT;
    if (call->argc > 3) {
        call_wrong_subcommand(call);
        return STORE_OK;
    }
    if (call->argc == 3 &&
        !call_int64_from(call, call->argv[2], -1, "ERR count should be greater than or equal to -1",
                         &count))
        return STORE_OK;
    slowlog_show(call->server->slowlog, count == -1 ? UINT64_MAX : (uint64_t)count, call->reply);
    return STORE_OK;
}

enum store_result cmd_slowlog_len(struct call *call)
{
    resp_integer(call->reply, (int64_t)slowlog_count(call->server->slowlog));
    return STORE_OK;
}

enum store_result cmd_slowlog_reset(struct call *call)
{
    slowlog_clear(call->server->slowlog, call->server->store);
    resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_slowlog_help(struct call *call)
{
    static const char *const lines[] = {
        "GET [<count>]",
        "    The newest entries (10; -1: all of them), each with its number, the time at which the",
        "    command ended, the microseconds it took, its arguments, the client's address and "
        "name.",
        "LEN",
        "    Count the entries.",
        "RESET",
        "    Remove them all.",
        NULL,
    };
    call_help(call, lines);
    return STORE_OK;
}
