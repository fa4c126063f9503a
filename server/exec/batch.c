#include "server/exec/batch.h"

#include <string.h>

#include "server/exec/monitor.h"

#define REPLY_MOST (16 * 1024) /* then the connection's output is looked at first */

static bool is_alike(const struct call *call, const struct ahead *next)
{
    const struct store_key *key = &call->keys[0];
    return next->command == call->command && next->count == call->argc && next->key != NULL &&
           next->key->hash == key->hash && next->key->len == key->len &&
           memcmp(next->key->data, key->data, key->len) == 0;
}

bool call_next(struct call *call)
{
    if (call->row_left == 0 || !is_alike(call, call->row) || store_is_scouting(call->txn) ||
        monitor_any(call->server))
        return false;
    const struct request *request = request_of_call(call);
    if (request->stream_count > 0 || call->reply->len - request->reply_start > REPLY_MOST)
        return false;
    call->argv += call->argc;
    call->row++;
    call->row_left--;
    call->row_taken++;
    return true;
}

enum store_result row_end(struct call *call, enum store_result result)
{
    call->argv -= call->row_taken * call->argc;
    if (result == STORE_OK || call->row_taken == 0)
        return result;
    row_drop(call);
    call->row_taken = 0;
    return result == STORE_WAIT ? result : store_step(call->txn);
}
