/*
 * Commands on lists, except for searches (cmd_list_search.c).
 */
#include "server/commands/cmd_list.h"

#include <assert.h>

#include "server/commands/commands.h"
#include "server/commands/multi_pop.h"
#include "server/exec/steps.h"
#include "server/pubsub/notify.h"
#include "server/exec/batch.h"
#include "server/exec/request_reply.h"
#include "server/exec/watch.h"
#include "server/core/call.h"
#include "server/core/server.h"

#define READ_TOGETHER 32 /* elements */

/* ---- shared by the list commands ---- */

static const char *pop_event(enum list_end end)
{
    return end == LIST_HEAD ? "lpop" : "rpop";
}

static const char *push_event(enum list_end end)
{
    return end == LIST_HEAD ? "lpush" : "rpush";
}

bool list_read_end(struct call *call, struct resp_slice arg, enum list_end *end)
{
    bool left = slice_is(arg, "left");
    *end = left ? LIST_HEAD : LIST_TAIL;
    return left || slice_is(arg, "right") || call_syntax_error(call);
}

static enum store_result seek_end(struct list *list, enum list_end end, struct list_place *place)
{
    return list_seek(list, end == LIST_HEAD ? 0 : list_count(list), place);
}

static void notify(struct list *list, const char *event)
{
    call_notify(list->call, NOTIFY_LIST, event, list->key);
    if (list_count(list) == 0)
        call_notify(list->call, NOTIFY_GENERIC, "del", list->key);
}

enum store_result list_changed(struct list *list, const char *event)
{
    if (!list->exists)
        call_notify(list->call, NOTIFY_NEW, "new", list->key);
    notify(list, event);
    return list_save(list);
}

/* An unchanged list counts as changed, as in Redis: a transaction that watches it is aborted. Costs
 * a write, but only if it is watched. */
static enum store_result list_touch(const struct list *list)
{
    struct store_item item;
    if (!watch_registry_has(list->call->server->watches, list->key))
        return STORE_OK;
    enum store_result result = store_get(list->call->txn, list->key, &item);
    return result == STORE_OK ? store_set_expiry(list->call->txn, list->key, &item, list->expire_ms)
                              : result;
}

/* Writes contiguous elements from the position on. */
static enum store_result reply_some(struct steps *steps, struct list *list,
                                    struct list_place *place, uint64_t left)
{
    struct store_entry elements[READ_TOGETHER];
    uint32_t read;
    uint32_t most = left < READ_TOGETHER ? (uint32_t)left : READ_TOGETHER;
    enum store_result result = list_read(list, place, elements, most, &read);
    for (uint32_t i = 0; result == STORE_OK && i < read; i++) {
        result = steps_put_item(steps, &elements[i].value);
        if (result == STORE_OK)
            result = steps_count(steps);
    }
    return result;
}

static enum store_result reply_backwards(struct steps *steps, struct list *list,
                                         struct list_place *place)
{
    struct store_item element;
    enum store_result result = list_prev(list, place);
    if (result == STORE_OK)
        result = list_get(list, place, &element);
    if (result == STORE_OK)
        result = steps_put_item(steps, &element);
    return result == STORE_OK ? steps_count(steps) : result;
}

static enum store_result reply_range(struct steps *steps, struct list *list, uint64_t first,
                                     uint64_t count, bool backwards)
{
    struct list_place place;
    enum store_result result =
        list_seek(list, backwards ? first - *steps->done : first + *steps->done, &place);
    while (result == STORE_OK && *steps->done < count)
        result = backwards ? reply_backwards(steps, list, &place)
                           : reply_some(steps, list, &place, count - *steps->done);
    return result == STORE_OK ? steps_finish(steps) : result;
}

static enum store_result take(struct list *list, enum list_end end, uint64_t count)
{
    struct list_place place;
    if (count == list_count(list))
        return list_keep(list, 0, 0);
    enum store_result result =
        list_seek(list, end == LIST_HEAD ? 0 : list_count(list) - count, &place);
    return result == STORE_OK ? list_remove(list, &place, count) : result;
}

/* Replies with up to `count` elements as an array; with_key: preceded by the key's name. */
static enum store_result pop_some(struct list *list, enum list_end end, int64_t count,
                                  bool with_key)
{
    struct steps steps;
    assert(list->exists);
    uint64_t total = list_count(list), most = (uint64_t)count < total ? (uint64_t)count : total;
    enum store_result result =
        steps_begin(&steps, list->call, list_is_large(list) && steps_are_many(most));
    if (result != STORE_OK)
        return result;
    if (steps.fresh && with_key) {
        resp_array(steps.out, 2);
        resp_bulk(steps.out, list->key->data, list->key->len);
    }
    if (steps.fresh)
        resp_array(steps.out, most);
    result = reply_range(&steps, list, end == LIST_HEAD ? 0 : total, most, end == LIST_TAIL);
    if (result == STORE_OK)
        result = take(list, end, most);
    return result == STORE_OK ? list_changed(list, pop_event(end)) : result;
}

enum store_result list_pop_many(struct list *list, enum list_end end, int64_t count)
{
    return pop_some(list, end, count, true);
}

static enum store_result copy_end(struct list *list, enum list_end end, struct resp_slice *value)
{
    struct list_place place;
    struct store_item element;
    assert(list->exists);
    enum store_result result = list_seek(list, end == LIST_HEAD ? 0 : list_count(list) - 1, &place);
    if (result == STORE_OK)
        result = list_get(list, &place, &element);
    return result == STORE_OK ? list_copy(list, &element, value) : result;
}

/* Whether the next command of the batch is the same and will find an element. */
static bool goes_on(struct list *list)
{
    return list_is_large(list) && list_count(list) > 0 && call_next_in_batch(list->call);
}

/* ---- LPUSH, RPUSH, LPUSHX, RPUSHX ---- */

static enum store_result push_all(struct list *list, enum list_end end)
{
    struct list_place place;
    const struct call *call = list->call;
    enum store_result result = seek_end(list, end, &place);
    for (size_t i = 2; i < call->argc && result == STORE_OK; i++) {
        result = list_insert(list, &place, call->argv[i]);
        if (result == STORE_OK && end == LIST_TAIL && i + 1 < call->argc)
            result = list_next(list, &place);
        if (result == STORE_OK)
            result = list_yield(list, i);
    }
    if (result != STORE_OK)
        return result;
    resp_integer(call->reply, (int64_t)list_count(list));
    return list_changed(list, push_event(end));
}

static enum store_result push(struct call *call, enum list_end end, bool only_existing)
{
    struct list list;
    enum store_result result = list_find(call, call->keys, &list);
    if (result != STORE_OK)
        return result;
    if (only_existing && !list.exists) {
        resp_integer(call->reply, 0);
        return STORE_OK;
    }
    do
        result = push_all(&list, end);
    while (result == STORE_OK && list.exists && goes_on(&list));
    return result;
}

enum store_result cmd_lpush(struct call *call)
{
    return push(call, LIST_HEAD, false);
}

enum store_result cmd_rpush(struct call *call)
{
    return push(call, LIST_TAIL, false);
}

enum store_result cmd_lpushx(struct call *call)
{
    return push(call, LIST_HEAD, true);
}

enum store_result cmd_rpushx(struct call *call)
{
    return push(call, LIST_TAIL, true);
}

/* ---- LPOP, RPOP, LMPOP ---- */

enum store_result list_pop_one(struct list *list, enum list_end end)
{
    struct list_place place;
    struct store_item element;
    assert(list->exists);
    enum store_result result = list_seek(list, end == LIST_HEAD ? 0 : list_count(list) - 1, &place);
    if (result == STORE_OK)
        result = list_get(list, &place, &element);
    if (result == STORE_OK)
        result = call_reply_item(list->call, &element);
    if (result == STORE_OK)
        result = list_remove(list, &place, 1);
    return result == STORE_OK ? list_changed(list, pop_event(end)) : result;
}

static enum store_result pop(struct call *call, enum list_end end)
{
    struct list list;
    bool counted = call->argc == 3;
    int64_t count = 1;
    if (call->argc > 3) {
        resp_errorf(call->reply, "ERR wrong number of arguments for '%s' command",
                    call->command->name);
        return STORE_OK;
    }
    if (counted && !call_count(call, call->argv[2], &count))
        return STORE_OK;
    enum store_result result = list_find(call, call->keys, &list);
    if (result != STORE_OK)
        return result;
    if (!list.exists) {
        if (counted)
            resp_null_array(call->reply);
        else
            resp_null(call->reply);
        return STORE_OK;
    }
    if (!counted) {
        do
            result = list_pop_one(&list, end);
        while (result == STORE_OK && goes_on(&list));
        return result;
    }
    if (count == 0) {
        resp_array(call->reply, 0);
        return STORE_OK;
    }
    return pop_some(&list, end, count, false);
}

enum store_result cmd_lpop(struct call *call)
{
    return pop(call, LIST_HEAD);
}

enum store_result cmd_rpop(struct call *call)
{
    return pop(call, LIST_TAIL);
}

bool list_read_mpop(struct call *call, size_t at, enum list_end *end, int64_t *count)
{
    static const char *const words[] = {"left", "right"};
    size_t word;
    if (!multi_pop_read(call, at, words, &word, count))
        return false;
    *end = word == 0 ? LIST_HEAD : LIST_TAIL;
    return true;
}

enum store_result cmd_lmpop(struct call *call)
{
    enum list_end end;
    int64_t count;
    if (!list_read_mpop(call, 1, &end, &count))
        return STORE_OK;
    for (uint32_t i = 0; i < call->key_count; i++) {
        struct list list;
        enum store_result result = list_find(call, &call->keys[i], &list);
        if (result != STORE_OK)
            return result;
        if (list.exists)
            return list_pop_many(&list, end, count);
    }
    resp_null_array(call->reply);
    return STORE_OK;
}

/* ---- LMOVE, RPOPLPUSH ---- */

static enum store_result rotate(struct list *list, enum list_end from, enum list_end to,
                                struct resp_slice value)
{
    struct list_place place;
    enum store_result result = take(list, from, 1);
    if (result == STORE_OK)
        result = seek_end(list, to, &place);
    if (result == STORE_OK)
        result = list_insert(list, &place, value);
    if (result != STORE_OK)
        return result;
    notify(list, push_event(to));
    notify(list, pop_event(from));
    return list_save(list);
}

enum store_result list_move(struct call *call, enum list_end from, enum list_end to, bool *moved)
{
    struct list source, target;
    struct list_place place;
    struct resp_slice value;
    assert(call->key_count == 2); /* by arity */
    bool turns = call_same_name(&call->keys[0], &call->keys[1]);
    *moved = true;
    enum store_result result = list_find(call, &call->keys[0], &source);
    if (result != STORE_OK)
        return result;
    *moved = source.exists;
    if (!source.exists)
        return STORE_OK;
    if (!turns)
        result = list_find(call, &call->keys[1], &target);
    if (result != STORE_OK)
        return result;
    result = copy_end(&source, from, &value);
    if (result != STORE_OK)
        return result;
    resp_bulk(call->reply, value.data, value.len);
    if (turns)
        return rotate(&source, from, to, value);
    result = seek_end(&target, to, &place);
    if (result == STORE_OK)
        result = list_insert(&target, &place, value);
    if (result == STORE_OK)
        result = list_changed(&target, push_event(to));
    if (result == STORE_OK)
        result = take(&source, from, 1);
    return result == STORE_OK ? list_changed(&source, pop_event(from)) : result;
}

static enum store_result move(struct call *call, enum list_end from, enum list_end to)
{
    bool moved;
    enum store_result result = list_move(call, from, to, &moved);
    if (result == STORE_OK && !moved)
        resp_null(call->reply);
    return result;
}

enum store_result cmd_lmove(struct call *call)
{
    enum list_end from, to;
    if (!list_read_end(call, call->argv[3], &from) || !list_read_end(call, call->argv[4], &to))
        return STORE_OK;
    return move(call, from, to);
}

enum store_result cmd_rpoplpush(struct call *call)
{
    return move(call, LIST_TAIL, LIST_HEAD);
}

/* ---- by position ---- */

enum store_result cmd_llen(struct call *call)
{
    struct list list;
    enum store_result result = list_find(call, call->keys, &list);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)list_count(&list));
    return result;
}

/* Resolves an index, which may be negative. False: there is no such element. */
static bool find_index(const struct list *list, int64_t index, uint64_t *at)
{
    int64_t count = (int64_t)list_count(list);
    if (index < 0)
        index += count;
    *at = (uint64_t)index;
    return index >= 0 && index < count;
}

enum store_result cmd_lindex(struct call *call)
{
    struct list list;
    struct list_place place;
    struct store_item element;
    int64_t index;
    uint64_t at;
    enum store_result result = list_find(call, call->keys, &list);
    if (result != STORE_OK)
        return result;
    if (list.exists && !call_int64(call, call->argv[2], &index))
        return STORE_OK;
    if (!list.exists || !find_index(&list, index, &at)) {
        resp_null(call->reply);
        return STORE_OK;
    }
    result = list_seek(&list, at, &place);
    if (result == STORE_OK)
        result = list_get(&list, &place, &element);
    return result == STORE_OK ? call_reply_item(call, &element) : result;
}

enum store_result cmd_lset(struct call *call)
{
    struct list list;
    struct list_place place;
    int64_t index;
    uint64_t at;
    enum store_result result = list_find(call, call->keys, &list);
    if (result != STORE_OK)
        return result;
    if (!list.exists) {
        resp_error(call->reply, "ERR no such key");
        return STORE_OK;
    }
    if (!call_int64(call, call->argv[2], &index))
        return STORE_OK;
    if (!find_index(&list, index, &at)) {
        resp_error(call->reply, "ERR index out of range");
        return STORE_OK;
    }
    result = list_seek(&list, at, &place);
    if (result == STORE_OK)
        result = list_replace(&list, &place, call->argv[3]);
    if (result != STORE_OK)
        return result;
    resp_ok(call->reply);
    return list_changed(&list, "lset");
}

enum store_result cmd_lrange(struct call *call)
{
    struct list list;
    struct steps steps;
    int64_t from, to;
    uint64_t first, count;
    if (!call_int64(call, call->argv[2], &from) || !call_int64(call, call->argv[3], &to))
        return STORE_OK;
    enum store_result result = list_find(call, call->keys, &list);
    if (result != STORE_OK)
        return result;
    rank_range(from, to, list_count(&list), &first, &count);
    result = steps_begin(&steps, call, list_is_large(&list) && steps_are_many(count));
    if (result == STORE_OK && steps.fresh)
        resp_array(steps.out, count);
    return result == STORE_OK ? reply_range(&steps, &list, first, count, false) : result;
}

enum store_result cmd_ltrim(struct call *call)
{
    struct list list;
    int64_t from, to;
    uint64_t first, count;
    if (!call_int64(call, call->argv[2], &from) || !call_int64(call, call->argv[3], &to))
        return STORE_OK;
    enum store_result result = list_find(call, call->keys, &list);
    if (result != STORE_OK)
        return result;
    resp_ok(call->reply);
    if (!list.exists)
        return STORE_OK;
    uint64_t total = list_count(&list);
    rank_range(from, to, total, &first, &count);
    if (count == total) {
        notify(&list, "ltrim");
        return list_touch(&list);
    }
    result = list_keep(&list, first, count);
    return result == STORE_OK ? list_changed(&list, "ltrim") : result;
}
