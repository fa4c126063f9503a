#include "server/types/hash.h"

#include "server/core/server.h"

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
