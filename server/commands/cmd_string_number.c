#include "server/commands/commands.h"

#include <math.h>
#include <string.h>

#include "server/commands/cmd_string.h"
#include "server/core/call.h"

/* Replaces the value by a number's text and keeps its expiry. The text is copied, because it must
 * live until the request is finished. */
static enum store_result put_number(struct call *call, const struct string_value *value,
                                    const char *event, uint8_t type, const char *text, size_t len)
{
    string_notify(call, value, event);
    char *copy = store_alloc(call->txn, len);
    if (copy == NULL)
        return STORE_NO_MEMORY;
    memcpy(copy, text, len);
    return store_put(call->txn, call->keys, type, copy, len,
                     value->exists ? value->item.expire_ms : STORE_NO_EXPIRY);
}

static enum store_result add(struct call *call, int64_t increment)
{
    struct string_value value;
    int64_t number = 0;
    enum store_result result = string_find(call, call->keys, &value);
    if (result != STORE_OK)
        return result;
    /* No large value is a number, so its bytes are not read. */
    if (value.exists &&
        (value.item.large || !resp_read_int64(value.item.bytes, value.length, &number))) {
        resp_error(call->reply, "ERR value is not an integer or out of range");
        return STORE_OK;
    }
    if (increment < 0 ? number < INT64_MIN - increment : number > INT64_MAX - increment) {
        resp_error(call->reply, "ERR increment or decrement would overflow");
        return STORE_OK;
    }
    number += increment;
    resp_integer(call->reply, number);
    char text[24];
    size_t len = resp_print_int64(text, number);
    return put_number(call, &value, "incrby", TYPE_STRING, text, len);
}

enum store_result cmd_incr(struct call *call)
{
    return add(call, 1);
}

enum store_result cmd_decr(struct call *call)
{
    return add(call, -1);
}

enum store_result cmd_incrby(struct call *call)
{
    int64_t increment;
    if (!call_int64(call, call->argv[2], &increment))
        return STORE_OK;
    return add(call, increment);
}

enum store_result cmd_decrby(struct call *call)
{
    int64_t decrement;
    if (!call_int64(call, call->argv[2], &decrement))
        return STORE_OK;
    if (decrement == INT64_MIN) {
        resp_error(call->reply, "ERR decrement would overflow");
        return STORE_OK;
    }
    return add(call, -decrement);
}

enum store_result cmd_incrbyfloat(struct call *call)
{
    struct string_value value;
    long double number = 0, increment;
    enum store_result result = string_find(call, call->keys, &value);
    if (result != STORE_OK)
        return result;
    bool readable =
        !value.exists ||
        (!value.item.large && resp_read_long_double(value.item.bytes, value.length, &number));
    if (!readable || !resp_read_long_double(call->argv[2].data, call->argv[2].len, &increment)) {
        resp_error(call->reply, "ERR value is not a valid float");
        return STORE_OK;
    }
    number += increment;
    if (isnan(number) || isinf(number)) {
        resp_error(call->reply, "ERR increment would produce NaN or Infinity");
        return STORE_OK;
    }
    char text[5 * 1024];
    size_t len = resp_print_long_double(text, number);
    resp_bulk(call->reply, text, len);
    return put_number(call, &value, "incrbyfloat", TYPE_STRING | ITEM_TEXT, text, len);
}
