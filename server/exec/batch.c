#include "server/exec/batch.h"

#include <string.h>

#include "server/exec/monitor.h"

#define REPLY_MOST (16 * 1024) /* a reply longer than this ends its batch */

static bool is_alike(const struct call *call, const struct ahead *next)
{
    const struct store_key *key = &call->keys[0];
    return next->command == call->command && next->count == call->argc && next->key != NULL &&
           next->key->hash == key->hash && next->key->len == key->len &&
           memcmp(next->key->data, key->data, key->len) == 0;
}

bool call_next_in_batch(struct call *call)
{
    if (call->batch_left == 0 || !is_alike(call, call->batch) || store_is_prefetch_run(call->txn) ||
        monitor_any(call->server))
        return false;
    const struct request *request = request_of_call(call);
    if (request->reader_count > 0 || call->reply->len - request->reply_start > REPLY_MOST)
        return false;
    call->argv += call->argc;
    call->batch++;
    call->batch_left--;
    call->batch_taken++;
    return true;
}

enum store_result batch_end(struct call *call, enum store_result result)
{
    call->argv -= call->batch_taken * call->argc;
    if (result == STORE_OK || call->batch_taken == 0)
        return result;
    batch_drop(call);
    call->batch_taken = 0;
    return result == STORE_WAIT ? result : store_step(call->txn);
}
