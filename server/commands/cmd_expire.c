/*
 * Commands about the expiry of keys.
 */
#include "server/commands/commands.h"

#include <limits.h>

#include "server/exec/keyspace.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

enum expire_condition {
    EXPIRE_NX = 1 << 0, /* only if it has no expiry */
    EXPIRE_XX = 1 << 1, /* only if it has one */
    EXPIRE_GT = 1 << 2, /* only if later than the present one; no expiry is the latest */
    EXPIRE_LT = 1 << 3, /* only if earlier */
};

/* ---- EXPIRE and related commands ---- */

static bool expire_conditions(struct call *call, unsigned *conditions)
{
    static const char *const names[] = {"nx", "xx", "gt", "lt"}; /* in the order of the flags */
    *conditions = 0;
    for (size_t i = 3; i < call->argc; i++) {
        struct resp_slice arg = call->argv[i];
        unsigned n = 0;
        while (n < 4 && !slice_is(arg, names[n]))
            n++;
        if (n == 4) {
            resp_errorf(call->reply, "ERR Unsupported option %.*s",
                        arg.len > INT_MAX ? INT_MAX : (int)arg.len, arg.data);
            return false;
        }
        *conditions |= 1u << n;
    }
    if ((*conditions & EXPIRE_NX) != 0 && *conditions != EXPIRE_NX) {
        resp_error(call->reply,
                   "ERR NX and XX, GT or LT options at the same time are not compatible");
        return false;
    }
    if ((*conditions & EXPIRE_GT) != 0 && (*conditions & EXPIRE_LT) != 0) {
        resp_error(call->reply, "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    return true;
}

static bool invalid_time(struct call *call)
{
    resp_errorf(call->reply, "ERR invalid expire time in '%s' command", call->command->name);
    return false;
}

/* Parses argv[2], in units of `unit_ms` from base_ms on, to a Unix time in milliseconds. */
static bool expire_time(struct call *call, int64_t base_ms, int64_t unit_ms, int64_t *when_ms)
{
    if (!call_int64(call, call->argv[2], when_ms))
        return false;
    if (*when_ms > INT64_MAX / unit_ms || *when_ms < INT64_MIN / unit_ms)
        return invalid_time(call);
    *when_ms *= unit_ms;
    if (*when_ms > INT64_MAX - base_ms)
        return invalid_time(call);
    *when_ms += base_ms;
    return true;
}

static bool conditions_hold(unsigned conditions, int64_t present_ms, int64_t when_ms)
{
    bool expires = present_ms != STORE_NO_EXPIRY;
    if ((conditions & EXPIRE_NX) != 0 && expires)
        return false;
    if ((conditions & EXPIRE_XX) != 0 && !expires)
        return false;
    if ((conditions & EXPIRE_GT) != 0 && (!expires || when_ms <= present_ms))
        return false;
    return (conditions & EXPIRE_LT) == 0 || !expires || when_ms < present_ms;
}

static enum store_result expire_key(struct call *call, int64_t base_ms, int64_t unit_ms)
{
    unsigned conditions;
    int64_t when_ms;
    if (!expire_conditions(call, &conditions) || !expire_time(call, base_ms, unit_ms, &when_ms))
        return STORE_OK;
    const struct store_key *key = &call->keys[0];
    struct store_item item;
    enum store_result result = store_get(call->txn, key, &item);
    bool changes = result == STORE_OK && conditions_hold(conditions, item.expire_ms, when_ms);
    bool is_over = when_ms <= call->now_ms;
    if (changes)
        call_notify(call, NOTIFY_GENERIC, is_over ? "del" : "expire", key);
    if (changes && is_over)
        result = store_delete(call->txn, key);
    else if (changes)
        result = store_set_expiry(call->txn, key, &item, when_ms);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    resp_integer(call->reply, changes);
    return STORE_OK;
}

enum store_result cmd_expire(struct call *call)
{
    return expire_key(call, call->now_ms, 1000);
}

enum store_result cmd_pexpire(struct call *call)
{
    return expire_key(call, call->now_ms, 1);
}

enum store_result cmd_expireat(struct call *call)
{
    return expire_key(call, 0, 1000);
}

enum store_result cmd_pexpireat(struct call *call)
{
    return expire_key(call, 0, 1);
}

enum store_result cmd_persist(struct call *call)
{
    struct store_item item;
    enum store_result result = store_get(call->txn, &call->keys[0], &item);
    bool changes = result == STORE_OK && item.expire_ms != STORE_NO_EXPIRY;
    if (changes) {
        call_notify(call, NOTIFY_GENERIC, "persist", &call->keys[0]);
        result = store_set_expiry(call->txn, &call->keys[0], &item, STORE_NO_EXPIRY);
    }
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    resp_integer(call->reply, changes);
    return STORE_OK;
}

/* ---- TTL and related commands ---- */

/* Replies with the expiry minus base_ms, rounded to units of `unit_ms`; -1: none; -2: no key. */
static enum store_result report_expiry(struct call *call, int64_t base_ms, int64_t unit_ms)
{
    struct store_item item;
    enum store_result result = call_find(call, &call->keys[0], &item);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    int64_t answer = -2;
    if (result == STORE_OK && item.expire_ms == STORE_NO_EXPIRY) {
        answer = -1;
    } else if (result == STORE_OK) {
        int64_t left_ms = item.expire_ms > base_ms ? item.expire_ms - base_ms : 0;
        answer = left_ms / unit_ms + (unit_ms > 1 && left_ms % unit_ms >= unit_ms / 2);
    }
    resp_integer(call->reply, answer);
    return STORE_OK;
}

enum store_result cmd_ttl(struct call *call)
{
    return report_expiry(call, call->now_ms, 1000);
}

enum store_result cmd_pttl(struct call *call)
{
    return report_expiry(call, call->now_ms, 1);
}

enum store_result cmd_expiretime(struct call *call)
{
    return report_expiry(call, 0, 1000);
}

enum store_result cmd_pexpiretime(struct call *call)
{
    return report_expiry(call, 0, 1);
}
