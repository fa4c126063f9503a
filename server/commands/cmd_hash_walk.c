/*
 * Commands that reply with many fields of a hash. Large hashes are walked in steps: see
 * collector.h.
 */
#include "server/commands/commands.h"

#include <limits.h>

#include "server/types/hash.h"
#include "server/types/members_reply.h"
#include "server/core/call.h"

static enum store_result reply_all(struct call *call, enum members_part part, members_head *head)
{
    struct members hash;
    enum store_result result = hash_find(call, call->keys, &hash);
    return result != STORE_OK ? result : members_reply_all(call, &hash, part, head);
}

enum store_result cmd_hgetall(struct call *call)
{
    return reply_all(call, PART_BOTH, resp_map);
}

enum store_result cmd_hkeys(struct call *call)
{
    return reply_all(call, PART_NAMES, resp_array);
}

enum store_result cmd_hvals(struct call *call)
{
    return reply_all(call, PART_VALUES, resp_array);
}

enum store_result cmd_hscan(struct call *call)
{
    return members_reply_scan(call, TYPE_HASH);
}

static bool random_options(struct call *call, int64_t *count, bool *with_values)
{
    *with_values = call->argc == 4;
    if (!call_int64_between(call, call->argv[2], -LONG_MAX, LONG_MAX, count))
        return false;
    if (call->argc > 4 || (*with_values && !slice_is(call->argv[3], "withvalues")))
        return call_syntax_error(call);
    if (!*with_values || (*count >= -LONG_MAX / 2 && *count <= LONG_MAX / 2))
        return true;
    resp_error(call->reply, "ERR value is out of range");
    return false;
}

enum store_result cmd_hrandfield(struct call *call)
{
    struct members hash;
    int64_t count = 0;
    bool with_values = false;
    if (call->argc > 2 && !random_options(call, &count, &with_values))
        return STORE_OK;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK)
        return result;
    if (call->argc == 2)
        return members_reply_one(call, &hash);
    bool in_pairs = with_values && call->reply->version >= 3;
    return members_reply_some(call, &hash, count, with_values ? PART_BOTH : PART_NAMES, in_pairs,
                              resp_array);
}
