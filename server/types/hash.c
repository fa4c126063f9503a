#include "server/types/hash.h"

#include "server/core/server.h"
#include "server/types/members_expiry.h"

static int64_t limit(const struct call *call, enum config_id id)
{
    return config_number(&call->server->config, id);
}

static bool is_long(const struct call *call, struct resp_slice slice)
{
    return (int64_t)slice.len > limit(call, CONFIG_HASH_MAX_LISTPACK_VALUE);
}

void hash_expect(struct call *call, struct members *hash, const struct resp_slice *pairs,
                 size_t count)
{
    if ((int64_t)(count / 2) > limit(call, CONFIG_HASH_MAX_LISTPACK_ENTRIES))
        hash->type |= ITEM_BIG;
    for (size_t i = 0; i < count; i++)
        if (is_long(call, pairs[i]))
            hash->type |= ITEM_BIG;
}

enum store_result hash_set(struct call *call, struct members *hash, struct resp_slice field,
                           struct resp_slice value, bool *added)
{
    if (is_long(call, field) || is_long(call, value))
        hash->type |= ITEM_BIG;
    enum store_result result = members_put(call, hash, field, value, added);
    if ((int64_t)members_count(hash) > limit(call, CONFIG_HASH_MAX_LISTPACK_ENTRIES))
        hash->type |= ITEM_BIG;
    return result;
}

enum store_result hash_wake(void *server, struct store_txn *txn, const struct store_key *key,
                            uint32_t *removed)
{
    struct call call = {.server = server, .txn = txn, .now_ms = store_now(txn)};
    struct store_item item;
    struct members hash;
    *removed = 0;
    enum store_result result = store_get(txn, key, &item);
    if (result != STORE_OK)
        return result == STORE_ABSENT ? STORE_OK : result;
    if (item_type(&item) != TYPE_HASH)
        return STORE_DAMAGED;
    result = members_open(&call, key, &item, &hash);
    if (result == STORE_OK)
        result = members_remove_due(&call, &hash, HASH_EXPIRES_MOST, removed);
    return result == STORE_OK && *removed > 0 ? members_store(&call, &hash) : result;
}
