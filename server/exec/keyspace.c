#include "server/exec/keyspace.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

enum store_result call_delete(struct call *call, const struct store_key *key)
{
    struct store_item item;
    enum store_result result = store_get(call->txn, key, &item);
    if (result != STORE_OK)
        return result == STORE_ABSENT ? STORE_OK : result;
    call_notify(call, NOTIFY_GENERIC, "del", key);
    return store_delete(call->txn, key);
}

void call_count_lookup(struct call *call, const struct store_key *key, enum store_result result)
{
    call->hits += result == STORE_OK;
    call->misses += result == STORE_ABSENT;
    if (result == STORE_ABSENT)
        call_notify(call, NOTIFY_KEY_MISS, "keymiss", key);
}

enum store_result call_find(struct call *call, const struct store_key *key, struct store_item *item)
{
    enum store_result result = store_get(call->txn, key, item);
    if ((call->command->flags & CMD_READONLY) == 0 && !call_only_reads(call, key))
        return result;
    if (result == STORE_OK)
        call->hits++; /* the usual case: no function call */
    else
        call_count_lookup(call, key, result);
    return result;
}

enum store_result call_get(struct call *call, const struct store_key *key, enum item_type type,
                           struct store_item *item)
{
    enum store_result result = call_find(call, key, item);
    if (result != STORE_OK || item_type(item) == type)
        return result;
    call_wrong_type(call);
    return STORE_ANSWERED;
}
