/*
 * Commands on single fields of hashes. Those on many fields are in cmd_hash_walk.c.
 */
#include "server/commands/commands.h"

#include <math.h>

#include "server/types/hash.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

/* ---- setting ---- */

/* HSET and HMSET. */
static enum store_result set_pairs(struct call *call, int64_t *created)
{
    struct members hash;
    if (call->argc % 2 != 0) {
        resp_errorf(call->reply, "ERR wrong number of arguments for '%s' command",
                    call->command->name);
        return STORE_ANSWERED;
    }
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK)
        return result;
    hash_expect(call, &hash, call->argv + 2, call->argc - 2);
    *created = 0;
    for (size_t i = 2; i < call->argc && result == STORE_OK; i += 2) {
        bool added = false;
        result = hash_set(call, &hash, call->argv[i], call->argv[i + 1], &added);
        *created += added;
        if (result == STORE_OK)
            result = members_yield(call, &hash, i / 2);
    }
    return result == STORE_OK ? members_write(call, &hash, NOTIFY_HASH, "hset") : result;
}

enum store_result cmd_hset(struct call *call)
{
    int64_t created;
    enum store_result result = set_pairs(call, &created);
    if (result == STORE_OK)
        resp_integer(call->reply, created);
    return result;
}

enum store_result cmd_hmset(struct call *call)
{
    int64_t created;
    enum store_result result = set_pairs(call, &created);
    if (result == STORE_OK)
        resp_ok(call->reply);
    return result;
}

enum store_result cmd_hsetnx(struct call *call)
{
    struct members hash;
    bool found, added;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK)
        return result;
    result = members_get(call, &hash, call->argv[2], NULL, &found);
    if (result == STORE_OK && !found) {
        hash_expect(call, &hash, call->argv + 2, 2);
        result = hash_set(call, &hash, call->argv[2], call->argv[3], &added);
        if (result == STORE_OK)
            result = members_write(call, &hash, NOTIFY_HASH, "hset");
    }
    if (result == STORE_OK)
        resp_integer(call->reply, !found);
    return result;
}

/* ---- getting ---- */

enum store_result cmd_hget(struct call *call)
{
    struct members hash;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK)
        return result;
    return members_reply_value(call, &hash, call->argv[2]);
}

enum store_result cmd_hmget(struct call *call)
{
    struct members hash;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK)
        return result;
    resp_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc && result == STORE_OK; i++) {
        result = members_reply_value(call, &hash, call->argv[i]);
        if (result == STORE_OK)
            result = members_yield(call, &hash, i);
    }
    return result;
}

enum store_result cmd_hexists(struct call *call)
{
    struct members hash;
    bool found = false;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK)
        return result;
    result = members_get(call, &hash, call->argv[2], NULL, &found);
    resp_integer(call->reply, found);
    return result;
}

enum store_result cmd_hstrlen(struct call *call)
{
    struct members hash;
    uint64_t length;
    bool found = false;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK)
        return result;
    result = members_get_length(call, &hash, call->argv[2], &length, &found);
    resp_integer(call->reply, found ? (int64_t)length : 0);
    return result;
}

enum store_result cmd_hlen(struct call *call)
{
    struct members hash;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)members_shown(&hash));
    return result;
}

/* ---- deleting ---- */

enum store_result cmd_hdel(struct call *call)
{
    struct members hash;
    int64_t deleted = 0;
    enum store_result result = hash_find(call, call->keys, &hash);
    if (result != STORE_OK)
        return result;
    for (size_t i = 2; i < call->argc && result == STORE_OK && members_count(&hash) > 0; i++) {
        bool removed = false;
        result = members_remove(call, &hash, call->argv[i], &removed);
        deleted += removed;
        if (result == STORE_OK)
            result = members_yield(call, &hash, i);
    }
    if (result == STORE_OK)
        result = members_write(call, &hash, NOTIFY_HASH, "hdel");
    resp_integer(call->reply, deleted);
    return result;
}

/* ---- numbers ---- */

/* The field's value, and whether the field exists. */
static enum store_result find_value(struct call *call, struct members *hash,
                                    struct resp_slice *value, bool *found)
{
    enum store_result result = hash_find(call, call->keys, hash);
    return result == STORE_OK ? members_get(call, hash, call->argv[2], value, found) : result;
}

static enum store_result set_number(struct call *call, struct members *hash, const char *text,
                                    size_t len, const char *event)
{
    bool added;
    hash->keeps_expiry = true;
    enum store_result result =
        hash_set(call, hash, call->argv[2], (struct resp_slice){text, len}, &added);
    return result == STORE_OK ? members_write(call, hash, NOTIFY_HASH, event) : result;
}

enum store_result cmd_hincrby(struct call *call)
{
    struct members hash;
    struct resp_slice value;
    int64_t increment, number = 0;
    bool found;
    if (!call_int64(call, call->argv[3], &increment))
        return STORE_OK;
    enum store_result result = find_value(call, &hash, &value, &found);
    if (result != STORE_OK)
        return result;
    if (found && !resp_read_int64(value.data, value.len, &number)) {
        resp_error(call->reply, "ERR hash value is not an integer");
        return STORE_OK;
    }
    if (__builtin_add_overflow(number, increment, &number)) {
        resp_error(call->reply, "ERR increment or decrement would overflow");
        return STORE_OK;
    }
    char text[24];
    size_t len = resp_print_int64(text, number);
    resp_integer(call->reply, number);
    return set_number(call, &hash, text, len, "hincrby");
}

/* False: replied with an error. */
static bool read_increment(struct call *call, long double *increment)
{
    if (!resp_read_long_double(call->argv[3].data, call->argv[3].len, increment))
        resp_error(call->reply, "ERR value is not a valid float");
    else if (isnan(*increment) || isinf(*increment))
        resp_error(call->reply, "ERR value is NaN or Infinity");
    else
        return true;
    return false;
}

enum store_result cmd_hincrbyfloat(struct call *call)
{
    struct members hash;
    struct resp_slice value;
    long double increment, number = 0;
    bool found;
    if (!read_increment(call, &increment))
        return STORE_OK;
    enum store_result result = find_value(call, &hash, &value, &found);
    if (result != STORE_OK)
        return result;
    if (found && !resp_read_long_double(value.data, value.len, &number)) {
        resp_error(call->reply, "ERR hash value is not a float");
        return STORE_OK;
    }
    number += increment;
    if (isnan(number) || isinf(number)) {
        resp_error(call->reply, "ERR increment would produce NaN or Infinity");
        return STORE_OK;
    }
    char text[RESP_NUMBER_MAX];
    size_t len = resp_print_long_double(text, number);
    resp_bulk(call->reply, text, len);
    return set_number(call, &hash, text, len, "hincrbyfloat");
}
