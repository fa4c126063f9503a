/*
 * Commands that block, for an element or for a time.
 */
#include "server/commands/cmd_list.h"

#include <assert.h>

#include "server/commands/cmd_zset.h"
#include "server/commands/cmd_zset_pop.h"
#include "server/commands/commands.h"
#include "server/core/server.h"
#include "server/exec/blocked.h"
#include "server/core/call.h"

/* ---- elements of lists ---- */

/* A blocked request may find another type at a key when it is woken: meanwhile a command has
 * overwritten the key, or databases were swapped. The request keeps waiting, unless a later key has
 * an element: as in Redis 7.2, it is then answered with WRONGTYPE, and the element stays. */
struct found {
    bool takes;    /* the key has an element for this request */
    bool is_wrong; /* this key, or one before it, has another type */
};

static enum store_result note_found(struct call *call, enum store_result result, size_t reply_start,
                                    bool exists, struct found *found)
{
    bool is_wrong = result == STORE_ANSWERED && call_has_waited(call);
    found->takes = result == STORE_OK && exists;
    found->is_wrong |= is_wrong;
    if (found->takes && found->is_wrong) {
        call_wrong_type(call);
        return STORE_ANSWERED;
    }
    if (!is_wrong)
        return result;
    resp_truncate(call->reply, reply_start);
    return STORE_OK;
}

static enum store_result find_for(struct call *call, const struct store_key *key, struct list *list,
                                  struct found *found)
{
    size_t reply_start = call->reply->len;
    enum store_result result = list_find(call, key, list);
    return note_found(call, result, reply_start, result == STORE_OK && list->exists, found);
}

static enum store_result wait_for(struct call *call, enum item_type type, uint32_t key_count,
                                  int64_t timeout_ms)
{
    assert(key_count > 0 && key_count <= call->key_count);
    resp_null_array(call->reply);
    return call_block(call, call->keys, key_count, type, timeout_ms);
}

static enum store_result blocking_pop(struct call *call, enum list_end end)
{
    int64_t timeout_ms;
    if (!call_timeout(call, call->argv[call->argc - 1], &timeout_ms))
        return STORE_OK;
    struct found found = {.takes = false};
    for (uint32_t i = 0; i < call->key_count; i++) {
        const struct store_key *key = &call->keys[i];
        struct list list;
        enum store_result result = find_for(call, key, &list, &found);
        if (result != STORE_OK)
            return result;
        if (!found.takes)
            continue;
        resp_array(call->reply, 2);
        resp_bulk(call->reply, key->data, key->len);
        return list_pop_one(&list, end);
    }
    return wait_for(call, TYPE_LIST, call->key_count, timeout_ms);
}

enum store_result cmd_blpop(struct call *call)
{
    return blocking_pop(call, LIST_HEAD);
}

enum store_result cmd_brpop(struct call *call)
{
    return blocking_pop(call, LIST_TAIL);
}

enum store_result cmd_blmpop(struct call *call)
{
    enum list_end end;
    int64_t count, timeout_ms;
    if (!list_read_mpop(call, 2, &end, &count) || !call_timeout(call, call->argv[1], &timeout_ms))
        return STORE_OK;
    struct found found = {.takes = false};
    for (uint32_t i = 0; i < call->key_count; i++) {
        struct list list;
        enum store_result result = find_for(call, &call->keys[i], &list, &found);
        if (result != STORE_OK)
            return result;
        if (!found.takes)
            continue;
        return list_pop_many(&list, end, count);
    }
    return wait_for(call, TYPE_LIST, call->key_count, timeout_ms);
}

static enum store_result blocking_move(struct call *call, enum list_end from, enum list_end to,
                                       struct resp_slice timeout)
{
    int64_t timeout_ms;
    struct list source;
    struct found found = {.takes = false};
    if (!call_timeout(call, timeout, &timeout_ms))
        return STORE_OK;
    enum store_result result = find_for(call, call->keys, &source, &found);
    if (result != STORE_OK)
        return result;
    if (found.takes)
        return list_move(call, from, to, &found.takes);
    if (call->outer == NULL)
        return wait_for(call, TYPE_LIST, 1, timeout_ms);
    resp_null(call->reply); /* differs from the reply at a timeout */
    return STORE_OK;
}

enum store_result cmd_blmove(struct call *call)
{
    enum list_end from, to;
    if (!list_read_end(call, call->argv[3], &from) || !list_read_end(call, call->argv[4], &to))
        return STORE_OK;
    return blocking_move(call, from, to, call->argv[5]);
}

enum store_result cmd_brpoplpush(struct call *call)
{
    return blocking_move(call, LIST_TAIL, LIST_HEAD, call->argv[3]);
}

/* ---- elements of sorted sets ---- */

/* The first sorted set with an element for this request. Not *takes: there is none. */
static enum store_result find_zset(struct call *call, struct zset *zset, bool *takes)
{
    struct found found = {.takes = false};
    for (uint32_t i = 0; i < call->key_count && !found.takes; i++) {
        size_t reply_start = call->reply->len;
        enum store_result result = zset_find(call, &call->keys[i], zset);
        result = note_found(call, result, reply_start, result == STORE_OK && zset->exists, &found);
        if (result != STORE_OK)
            return result;
    }
    *takes = found.takes;
    return STORE_OK;
}

static enum store_result blocking_zpop(struct call *call, enum zset_end end)
{
    struct zset zset;
    int64_t timeout_ms;
    bool takes;
    if (!call_timeout(call, call->argv[call->argc - 1], &timeout_ms))
        return STORE_OK;
    enum store_result result = find_zset(call, &zset, &takes);
    if (result != STORE_OK)
        return result;
    return takes ? zset_pop_one(&zset, end)
                 : wait_for(call, TYPE_ZSET, call->key_count, timeout_ms);
}

enum store_result cmd_bzpopmin(struct call *call)
{
    return blocking_zpop(call, ZSET_MIN);
}

enum store_result cmd_bzpopmax(struct call *call)
{
    return blocking_zpop(call, ZSET_MAX);
}

enum store_result cmd_bzmpop(struct call *call)
{
    struct zset zset;
    enum zset_end end;
    int64_t count, timeout_ms;
    bool takes;
    if (!zset_read_mpop(call, 2, &end, &count) || !call_timeout(call, call->argv[1], &timeout_ms))
        return STORE_OK;
    enum store_result result = find_zset(call, &zset, &takes);
    if (result != STORE_OK)
        return result;
    return takes ? zset_pop_many(&zset, end, count)
                 : wait_for(call, TYPE_ZSET, call->key_count, timeout_ms);
}

/* ---- WAIT and WAITAOF: there are no replicas that could acknowledge anything ---- */

static void answer_acknowledged(struct call *call)
{
    resp_array(call->reply, 2);
    resp_integer(call->reply, call_written(call) <= store_durable(call->server->store));
    resp_integer(call->reply, 0);
}

/* The journal takes the role of Redis's AOF. It is always on, whatever `appendonly` says. */
enum store_result cmd_waitaof(struct call *call)
{
    int64_t local, replicas, timeout_ms;
    uint64_t written = call_written(call);
    if (!call_int64_between(call, call->argv[1], 0, 1, &local) ||
        !call_count(call, call->argv[2], &replicas) ||
        !call_timeout_ms(call, call->argv[3], &timeout_ms))
        return STORE_OK;
    bool is_durable = written <= store_durable(call->server->store);
    if (replicas == 0 && (local == 0 || is_durable)) {
        answer_acknowledged(call);
        return STORE_OK;
    }
    return call_await(call, replicas == 0 ? written : 0, timeout_ms, answer_acknowledged);
}

/* There are no replicas: unless it asks for none, it waits for the whole timeout. */
enum store_result cmd_wait(struct call *call)
{
    int64_t replicas, timeout_ms;
    if (!call_int64(call, call->argv[1], &replicas) ||
        !call_timeout_ms(call, call->argv[2], &timeout_ms))
        return STORE_OK;
    resp_integer(call->reply, 0);
    return replicas <= 0 ? STORE_OK : call_block(call, NULL, 0, TYPE_STRING, timeout_ms);
}
