#include "server/commands/cmd_string.h"

#include <assert.h>
#include <string.h>

#include "server/commands/commands.h"
#include "server/core/server.h"
#include "server/exec/long_run.h"
#include "server/exec/upload.h"
#include "server/exec/keyspace.h"
#include "server/pubsub/notify.h"
#include "server/exec/request_reply.h"
#include "server/types/string_walk.h"
#include "server/core/call.h"

/* ---- shared by all string commands ---- */

enum store_result string_find(struct call *call, const struct store_key *key,
                              struct string_value *value)
{
    enum store_result result = call_get(call, key, TYPE_STRING, &value->item);
    value->exists = result == STORE_OK;
    value->length = value->exists ? value->item.length : 0;
    return result == STORE_ABSENT ? STORE_OK : result;
}

enum store_result string_look_up(struct call *call, const struct store_key *key,
                                 struct string_value *value)
{
    enum store_result result = string_find(call, key, value);
    bool is_answered = result == STORE_OK || result == STORE_ANSWERED;
    bool is_hit = value->exists || result == STORE_ANSWERED;
    if (is_answered && !call_only_reads(call, key))
        call_count_lookup(call, key, is_hit ? STORE_OK : STORE_ABSENT);
    return result;
}

void string_notify(struct call *call, const struct string_value *value, const char *event)
{
    if (!value->exists)
        call_notify(call, NOTIFY_NEW, "new", call->keys);
    call_notify(call, NOTIFY_STRING, event, call->keys);
}

uint64_t string_limit(const struct call *call)
{
    int64_t limit = config_number(&call->server->config, CONFIG_PROTO_MAX_BULK_LEN);
    return limit < (int64_t)STORE_VALUE_MAX ? (uint64_t)limit : STORE_VALUE_MAX;
}

bool string_fits(struct call *call, uint64_t offset, uint64_t length)
{
    uint64_t limit = string_limit(call);
    if (offset <= limit && length <= limit - offset)
        return true;
    resp_error(call->reply, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    return false;
}

enum store_result string_write(struct call *call, const struct store_key *key,
                               const struct string_value *value, uint64_t offset, const char *bytes,
                               size_t len)
{
    if (value->exists) {
        struct store_item changed = value->item;
        changed.type |= ITEM_RAW;
        return store_patch(call->txn, key, &changed, offset, bytes, len);
    }
    if (offset == 0)
        return store_put(call->txn, key, TYPE_STRING | ITEM_RAW, bytes, len, STORE_NO_EXPIRY);
    /* Starts with an empty string: the store then creates the zeros before `offset`, which take no
     * memory here. */
    struct store_item fresh;
    enum store_result result =
        store_put(call->txn, key, TYPE_STRING | ITEM_RAW, "", 0, STORE_NO_EXPIRY);
    if (result == STORE_OK)
        result = store_get(call->txn, key, &fresh);
    if (result == STORE_OK)
        result = store_patch(call->txn, key, &fresh, offset, bytes, len);
    return result;
}

bool string_range(int64_t *first, int64_t *last, int64_t total)
{
    if (*first < 0)
        *first = *first + total < 0 ? 0 : *first + total;
    if (*last < 0)
        *last = *last + total < 0 ? 0 : *last + total;
    if (*last >= total)
        *last = total - 1;
    return *first <= *last;
}

bool string_range_is_backwards(int64_t first, int64_t last)
{
    return first < 0 && last < 0 && first > last;
}

static enum store_result reply_value(struct call *call, const struct string_value *value)
{
    if (value->exists)
        return call_reply_item(call, &value->item);
    resp_null(call->reply);
    return STORE_OK;
}

static bool is_zeros(const char *bytes, uint64_t len)
{
    return len == 0 || (bytes[0] == '\0' && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* Compares piece by piece. The walk's sum is 1 from the first difference on, for later runs. */
static enum store_result is_equal(struct call *call, const struct string_value *value,
                                  struct resp_slice other, bool *equal)
{
    struct string_walk here, *walk;
    struct store_piece piece;
    enum store_result result = STORE_OK;
    *equal = value->exists && value->length == other.len;
    if (!*equal)
        return STORE_OK;
    if ((walk = string_walk(call, &value->item, 0, value->length, &here)) == NULL)
        return STORE_NO_MEMORY;
    while (walk->sum == 0) {
        const char *bytes = other.data + walk->at;
        result = string_walk_next(call, walk, &value->item, &piece);
        if (result != STORE_OK)
            break;
        if (piece.bytes == NULL && piece.length > STORE_READER_PIECE) {
            /* One run does not compare a whole hole. */
            walk->at -= piece.length - STORE_READER_PIECE;
            walk->work += STRING_PIECE_WORK;
            piece.length = STORE_READER_PIECE;
        }
        bool same = piece.bytes == NULL ? is_zeros(bytes, piece.length)
                                        : memcmp(bytes, piece.bytes, piece.length) == 0;
        walk->sum = same ? 0 : 1;
    }
    *equal = walk->sum == 0;
    return result == STORE_ABSENT ? STORE_OK : result;
}

/* Deleting an absent key is not an error. */
static enum store_result delete_key(struct call *call, const struct store_key *key)
{
    enum store_result result = store_delete(call->txn, key);
    return result == STORE_ABSENT ? STORE_OK : result;
}

/* ---- options of SET and GETEX ---- */

enum option_bit {
    OPTION_NX = 1 << 0,
    OPTION_XX = 1 << 1,
    OPTION_GET = 1 << 2,
    OPTION_KEEPTTL = 1 << 3,
    OPTION_PERSIST = 1 << 4,
    OPTION_EX = 1 << 5,
    OPTION_PX = 1 << 6,
    OPTION_EXAT = 1 << 7,
    OPTION_PXAT = 1 << 8,
    OPTION_IFEQ = 1 << 9,
};
#define OPTIONS_CONDITION (OPTION_NX | OPTION_XX | OPTION_IFEQ)
#define OPTIONS_EXPIRY (OPTION_EX | OPTION_PX | OPTION_EXAT | OPTION_PXAT)
#define OPTIONS_TTL (OPTION_KEEPTTL | OPTION_PERSIST | OPTIONS_EXPIRY)
#define OPTIONS_OF_SET (OPTIONS_CONDITION | OPTION_GET | OPTION_KEEPTTL | OPTIONS_EXPIRY)
#define OPTIONS_OF_GETEX (OPTION_PERSIST | OPTIONS_EXPIRY)

/* `group`: options of a group exclude each other, but one may be repeated. */
static const struct option_word {
    const char *word;
    unsigned bit, group;
} option_words[] = {
    {"EX", OPTION_EX, OPTIONS_TTL},           {"PX", OPTION_PX, OPTIONS_TTL},
    {"NX", OPTION_NX, OPTIONS_CONDITION},     {"XX", OPTION_XX, OPTIONS_CONDITION},
    {"IFEQ", OPTION_IFEQ, OPTIONS_CONDITION}, {"GET", OPTION_GET, OPTION_GET},
    {"KEEPTTL", OPTION_KEEPTTL, OPTIONS_TTL}, {"EXAT", OPTION_EXAT, OPTIONS_TTL},
    {"PXAT", OPTION_PXAT, OPTIONS_TTL},       {"PERSIST", OPTION_PERSIST, OPTIONS_TTL},
};

struct options {
    unsigned bits;
    struct resp_slice time;     /* of the last expiry option */
    struct resp_slice expected; /* of the last IFEQ */
};

static const struct option_word *find_option(struct resp_slice arg, unsigned allowed)
{
    for (size_t i = 0; i < sizeof(option_words) / sizeof(option_words[0]); i++)
        if (slice_is(arg, option_words[i].word))
            return (option_words[i].bit & allowed) != 0 ? &option_words[i] : NULL;
    return NULL;
}

static bool read_options(struct call *call, size_t first, unsigned allowed, struct options *options)
{
    options->bits = 0;
    for (size_t i = first; i < call->argc; i++) {
        const struct option_word *option = find_option(call->argv[i], allowed);
        if (option == NULL || (options->bits & option->group & ~option->bit) != 0)
            return call_syntax_error(call);
        options->bits |= option->bit;
        if ((option->bit & (OPTIONS_EXPIRY | OPTION_IFEQ)) == 0)
            continue;
        if (++i == call->argc)
            return call_syntax_error(call);
        if (option->bit == OPTION_IFEQ)
            options->expected = call->argv[i];
        else
            options->time = call->argv[i];
    }
    unsigned ttl = options->bits & OPTIONS_TTL;
    assert((ttl & (ttl - 1)) == 0); /* one at most: they exclude each other */
    return true;
}

static bool expire_time_error(struct call *call)
{
    resp_errorf(call->reply, "ERR invalid expire time in '%s' command", call->command->name);
    return false;
}

/* Converts `time` by the option `bit` to a Unix time in milliseconds. */
static bool read_expiry(struct call *call, unsigned bit, struct resp_slice time, int64_t *expire_ms)
{
    int64_t value;
    if (!call_int64(call, time, &value))
        return false;
    if (value <= 0)
        return expire_time_error(call);
    if ((bit & (OPTION_EX | OPTION_EXAT)) != 0) {
        if (value > INT64_MAX / 1000)
            return expire_time_error(call);
        value *= 1000;
    }
    if ((bit & (OPTION_EX | OPTION_PX)) != 0) {
        if (value > INT64_MAX - call->now_ms)
            return expire_time_error(call);
        value += call->now_ms;
    }
    *expire_ms = value;
    return true;
}

/* Replaces the value. One that has expired already is not stored at all. */
static enum store_result put_and_notify(struct call *call, struct resp_slice value,
                                        int64_t expire_ms, bool notifies_expiry)
{
    const struct store_key *key = call->keys;
    enum store_result result = call_notify_if_new(call, key);
    if (result != STORE_OK)
        return result;
    call_notify(call, NOTIFY_STRING, "set", key);
    if (notifies_expiry)
        call_notify(call, NOTIFY_GENERIC, "expire", key);
    bool is_kept = expire_ms == STORE_NO_EXPIRY || expire_ms > call->now_ms;
    if (is_kept && call->upload != NULL)
        return upload_put(call->upload, call->txn, key, TYPE_STRING, expire_ms);
    if (is_kept)
        return store_put(call->txn, key, TYPE_STRING, value.data, value.len, expire_ms);
    call_notify(call, NOTIFY_EXPIRED, "expired", key);
    return delete_key(call, key);
}

static enum store_result put(struct call *call, struct resp_slice value)
{
    return put_and_notify(call, value, STORE_NO_EXPIRY, false);
}

/* ---- GET, SET and their relatives ---- */

enum store_result cmd_get(struct call *call)
{
    struct string_value value;
    enum store_result result = string_find(call, call->keys, &value);
    if (result != STORE_OK)
        return result;
    return reply_value(call, &value);
}

/* Finds the value that SET with options replaces: any type, unless GET or IFEQ requires a string.
 */
static enum store_result find_replaced(struct call *call, unsigned bits, struct string_value *old)
{
    old->exists = false;
    if ((bits & OPTION_GET) != 0)
        return string_look_up(call, call->keys, old);
    if ((bits & OPTION_IFEQ) != 0)
        return string_find(call, call->keys, old);
    if ((bits & (OPTION_NX | OPTION_XX | OPTION_KEEPTTL)) == 0)
        return STORE_OK;
    enum store_result result = store_get(call->txn, call->keys, &old->item);
    old->exists = result == STORE_OK;
    return result == STORE_ABSENT ? STORE_OK : result;
}

static enum store_result meets_condition(struct call *call, const struct options *options,
                                         const struct string_value *old, bool *met)
{
    if ((options->bits & OPTION_IFEQ) != 0)
        return is_equal(call, old, options->expected, met);
    *met = (options->bits & (old->exists ? OPTION_NX : OPTION_XX)) == 0;
    return STORE_OK;
}

static enum store_result set_with_options(struct call *call)
{
    struct options options;
    bool met;
    int64_t expire_ms = STORE_NO_EXPIRY;
    if (!read_options(call, 3, OPTIONS_OF_SET, &options))
        return STORE_OK;
    if ((options.bits & OPTIONS_EXPIRY) != 0 &&
        !read_expiry(call, options.bits, options.time, &expire_ms))
        return STORE_OK;

    struct string_value old;
    enum store_result result = find_replaced(call, options.bits, &old);
    if (result == STORE_OK)
        result = meets_condition(call, &options, &old, &met);
    if (result == STORE_OK && (options.bits & OPTION_GET) != 0)
        result = reply_value(call, &old);
    if (result != STORE_OK)
        return result;

    if ((options.bits & OPTION_GET) == 0) {
        if (met)
            resp_ok(call->reply);
        else
            resp_null(call->reply);
    }
    if (!met)
        return STORE_OK;
    if ((options.bits & OPTION_KEEPTTL) != 0 && old.exists)
        expire_ms = old.item.expire_ms;
    return put_and_notify(call, call->argv[2], expire_ms, (options.bits & OPTIONS_EXPIRY) != 0);
}

enum store_result cmd_set(struct call *call)
{
    if (call->argc > 3)
        return set_with_options(call);
    resp_ok(call->reply);
    return put(call, call->argv[2]);
}

enum store_result cmd_setnx(struct call *call)
{
    struct store_item item;
    enum store_result result = store_get(call->txn, call->keys, &item);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    resp_integer(call->reply, result == STORE_ABSENT);
    if (result == STORE_OK)
        return STORE_OK;
    return put(call, call->argv[2]);
}

static enum store_result set_for(struct call *call, unsigned unit)
{
    int64_t expire_ms;
    if (!read_expiry(call, unit, call->argv[2], &expire_ms))
        return STORE_OK;
    resp_ok(call->reply);
    return put_and_notify(call, call->argv[3], expire_ms, true);
}

enum store_result cmd_setex(struct call *call)
{
    return set_for(call, OPTION_EX);
}

enum store_result cmd_psetex(struct call *call)
{
    return set_for(call, OPTION_PX);
}

enum store_result cmd_getset(struct call *call)
{
    struct string_value old;
    enum store_result result = string_look_up(call, call->keys, &old);
    if (result == STORE_OK)
        result = reply_value(call, &old);
    if (result != STORE_OK)
        return result;
    return put(call, call->argv[2]);
}

enum store_result cmd_getdel(struct call *call)
{
    struct string_value value;
    enum store_result result = string_look_up(call, call->keys, &value);
    if (result == STORE_OK)
        result = reply_value(call, &value);
    if (result != STORE_OK || !value.exists)
        return result;
    call_notify(call, NOTIFY_GENERIC, "del", call->keys);
    return delete_key(call, call->keys);
}

enum store_result cmd_delifeq(struct call *call)
{
    struct string_value value;
    bool equal;
    enum store_result result = string_find(call, call->keys, &value);
    if (result == STORE_OK)
        result = is_equal(call, &value, call->argv[2], &equal);
    if (result != STORE_OK)
        return result;
    resp_integer(call->reply, equal);
    if (!equal)
        return STORE_OK;
    call_notify(call, NOTIFY_GENERIC, "del", call->keys);
    return delete_key(call, call->keys);
}

enum store_result cmd_getex(struct call *call)
{
    struct options options;
    struct string_value value;
    int64_t expire_ms = STORE_NO_EXPIRY;
    if (!read_options(call, 2, OPTIONS_OF_GETEX, &options))
        return STORE_OK;
    enum store_result result = string_look_up(call, call->keys, &value);
    if (result != STORE_OK)
        return result;
    /* An absent key replies null before its expiry argument is checked. */
    if (value.exists && (options.bits & OPTIONS_EXPIRY) != 0 &&
        !read_expiry(call, options.bits, options.time, &expire_ms))
        return STORE_OK;
    result = reply_value(call, &value);
    if (result != STORE_OK || !value.exists || options.bits == 0)
        return result;
    bool persists = expire_ms == STORE_NO_EXPIRY;
    if (persists && value.item.expire_ms == STORE_NO_EXPIRY)
        return STORE_OK;
    if (!persists && expire_ms <= call->now_ms) {
        call_notify(call, NOTIFY_GENERIC, "del", call->keys);
        return delete_key(call, call->keys);
    }
    call_notify(call, NOTIFY_GENERIC, persists ? "persist" : "expire", call->keys);
    return store_set_expiry(call->txn, call->keys, &value.item, expire_ms);
}

/* ---- parts of strings ---- */

enum store_result cmd_strlen(struct call *call)
{
    struct string_value value;
    enum store_result result = string_find(call, call->keys, &value);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)value.length);
    return result;
}

enum store_result cmd_append(struct call *call)
{
    struct string_value value;
    struct resp_slice tail = call->argv[2];
    enum store_result result = string_find(call, call->keys, &value);
    if (result != STORE_OK)
        return result;
    if (value.exists && !string_fits(call, value.length, tail.len))
        return STORE_OK;
    resp_integer(call->reply, (int64_t)(value.length + tail.len));
    string_notify(call, &value, "append");
    if (value.exists && tail.len == 0) /* counts as a change for WATCH, too */
        return store_set_expiry(call->txn, call->keys, &value.item, value.item.expire_ms);
    if (!value.exists)
        return store_put(call->txn, call->keys, TYPE_STRING, tail.data, tail.len, STORE_NO_EXPIRY);
    return string_write(call, call->keys, &value, value.length, tail.data, tail.len);
}

enum store_result cmd_getrange(struct call *call)
{
    struct string_value value;
    int64_t first, last;
    if (!call_int64(call, call->argv[2], &first) || !call_int64(call, call->argv[3], &last))
        return STORE_OK;
    enum store_result result = string_find(call, call->keys, &value);
    if (result != STORE_OK)
        return result;
    if (string_range_is_backwards(first, last) ||
        !string_range(&first, &last, (int64_t)value.length)) {
        resp_bulk(call->reply, "", 0);
        return STORE_OK;
    }
    return call_reply_range(call, &value.item, (uint64_t)first, (uint64_t)(last - first + 1));
}

enum store_result cmd_substr(struct call *call)
{
    return cmd_getrange(call);
}

enum store_result cmd_setrange(struct call *call)
{
    struct string_value value;
    struct resp_slice part = call->argv[3];
    int64_t offset;
    if (!call_int64(call, call->argv[2], &offset))
        return STORE_OK;
    if (offset < 0) {
        resp_error(call->reply, "ERR offset is out of range");
        return STORE_OK;
    }
    enum store_result result = string_find(call, call->keys, &value);
    if (result != STORE_OK)
        return result;
    if (part.len > 0 && !string_fits(call, (uint64_t)offset, part.len))
        return STORE_OK;
    uint64_t end = (uint64_t)offset + part.len;
    resp_integer(call->reply, (int64_t)(part.len > 0 && end > value.length ? end : value.length));
    if (part.len == 0)
        return STORE_OK;
    string_notify(call, &value, "setrange");
    return string_write(call, call->keys, &value, (uint64_t)offset, part.data, part.len);
}

/* ---- several keys ---- */

/* Without turns of others: they would take locks of all keys, for longer than it looks them up. */
enum store_result cmd_mget(struct call *call)
{
    resp_array(call->reply, call->key_count);
    for (uint32_t i = 0; i < call->key_count; i++) {
        struct string_value value;
        if (i % YIELD_EVERY == YIELD_EVERY - 1 && !call_may_reply(call))
            return STORE_NO_MEMORY;
        enum store_result result = call_find(call, &call->keys[i], &value.item);
        if (result != STORE_OK && result != STORE_ABSENT)
            return result;
        value.exists = result == STORE_OK && item_type(&value.item) == TYPE_STRING;
        result = reply_value(call, &value);
        if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

/* A key without a value: keys and values alternate after the command's name. */
static bool pairs_are_whole(struct call *call)
{
    if (call->argc % 2 == 1)
        return true;
    resp_errorf(call->reply, "ERR wrong number of arguments for '%s' command", call->command->name);
    return false;
}

static enum store_result put_pairs(struct call *call)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < call->key_count && result == STORE_OK; i++) {
        struct resp_slice value = call->argv[2 * i + 2];
        result = call_yield_at(call, i);
        if (result == STORE_OK)
            result = call_notify_if_new(call, &call->keys[i]);
        if (result != STORE_OK)
            return result;
        call_notify(call, NOTIFY_STRING, "set", &call->keys[i]);
        result = store_put(call->txn, &call->keys[i], TYPE_STRING, value.data, value.len,
                           STORE_NO_EXPIRY);
    }
    return result;
}

enum store_result cmd_mset(struct call *call)
{
    if (!pairs_are_whole(call))
        return STORE_OK;
    resp_ok(call->reply);
    return put_pairs(call);
}

enum store_result cmd_msetnx(struct call *call)
{
    if (!pairs_are_whole(call))
        return STORE_OK;
    /* All keys are looked up before the first write, so that a key may be given twice. */
    for (uint32_t i = 0; i < call->key_count; i++) {
        struct store_item item;
        enum store_result result = call_yield_at(call, i);
        if (result != STORE_OK)
            return result;
        result = store_get(call->txn, &call->keys[i], &item);
        if (result == STORE_OK)
            resp_integer(call->reply, 0);
        if (result != STORE_ABSENT)
            return result;
    }
    resp_integer(call->reply, 1);
    return put_pairs(call);
}
