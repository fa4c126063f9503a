/*
 * Commands on one set, and SMOVE. Random picks are in cmd_set_random.c, set operations in
 * cmd_set_algebra.c.
 */
#include "server/commands/commands.h"

#include "server/types/members_reply.h"
#include "server/types/set.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

/* ---- changing ---- */

enum store_result cmd_sadd(struct call *call)
{
    struct members set;
    int64_t count = 0;
    enum store_result result = set_find(call, call->keys, &set);
    if (result != STORE_OK)
        return result;
    set_expect(call, &set, call->argv[2], call->argc - 2);
    for (size_t i = 2; i < call->argc && result == STORE_OK; i++) {
        bool added = false;
        result = set_add(call, &set, call->argv[i], &added);
        count += added;
        if (result == STORE_OK)
            result = members_yield(call, &set, i);
    }
    if (result == STORE_OK)
        result = members_write(call, &set, NOTIFY_SET, "sadd");
    resp_integer(call->reply, count);
    return result;
}

enum store_result cmd_srem(struct call *call)
{
    struct members set;
    int64_t count = 0;
    enum store_result result = set_find(call, call->keys, &set);
    if (result != STORE_OK)
        return result;
    for (size_t i = 2; i < call->argc && result == STORE_OK && members_count(&set) > 0; i++) {
        bool removed = false;
        result = members_remove(call, &set, call->argv[i], &removed);
        count += removed;
        if (result == STORE_OK)
            result = members_yield(call, &set, i);
    }
    if (result == STORE_OK)
        result = members_write(call, &set, NOTIFY_SET, "srem");
    resp_integer(call->reply, count);
    return result;
}

/* Moves between two different sets. */
static enum store_result move(struct call *call, struct members *from, struct members *to,
                              struct resp_slice member, bool *moved)
{
    bool added;
    enum store_result result = members_remove(call, from, member, moved);
    if (result != STORE_OK || !*moved)
        return result;
    result = members_write(call, from, NOTIFY_SET, "srem");
    if (result != STORE_OK)
        return result;
    set_expect(call, to, member, 1);
    result = set_add(call, to, member, &added);
    return result == STORE_OK ? members_write(call, to, NOTIFY_SET, "sadd") : result;
}

enum store_result cmd_smove(struct call *call)
{
    struct members from, to;
    bool moved = false;
    enum store_result result = set_find(call, call->keys, &from);
    if (result != STORE_OK)
        return result;
    if (!from.exists) {
        resp_integer(call->reply, 0);
        return STORE_OK;
    }
    result = set_find(call, &call->keys[1], &to);
    if (result != STORE_OK)
        return result;
    if (call_same_name(from.key, to.key))
        result = set_has(call, &from, call->argv[3], &moved);
    else
        result = move(call, &from, &to, call->argv[3], &moved);
    resp_integer(call->reply, moved);
    return result;
}

/* ---- asking ---- */

enum store_result cmd_scard(struct call *call)
{
    struct members set;
    enum store_result result = set_find(call, call->keys, &set);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)members_count(&set));
    return result;
}

enum store_result cmd_sismember(struct call *call)
{
    struct members set;
    bool found = false;
    enum store_result result = set_find(call, call->keys, &set);
    if (result != STORE_OK)
        return result;
    result = set_has(call, &set, call->argv[2], &found);
    resp_integer(call->reply, found);
    return result;
}

enum store_result cmd_smismember(struct call *call)
{
    struct members set;
    enum store_result result = set_find(call, call->keys, &set);
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc && result == STORE_OK; i++) {
        bool found = false;
        result = set_has(call, &set, call->argv[i], &found);
        resp_integer(call->reply, found);
        if (result == STORE_OK)
            result = members_yield(call, &set, i);
    }
    return result;
}

enum store_result cmd_smembers(struct call *call)
{
    struct members set;
    enum store_result result = set_find(call, call->keys, &set);
    return result == STORE_OK ? members_reply_all(call, &set, PART_NAMES, resp_set) : result;
}

enum store_result cmd_sscan(struct call *call)
{
    return members_reply_scan(call, TYPE_SET);
}
