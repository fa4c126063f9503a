/*
 * Commands on keys of any type, except for expiry (cmd_expire.c) and scans (cmd_scan.c), and
 * commands on whole databases.
 */
#include "server/commands/cmd_generic.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "server/commands/commands.h"
#include "server/types/copy_trees.h"
#include "server/core/server.h"
#include "server/core/session.h"
#include "server/types/string_build.h"
#include "server/types/string_walk.h"
#include "server/exec/long_run.h"
#include "server/exec/keyspace.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

#define EMBEDDED_MAX 44 /* longest string that Redis embeds in its object */

static const char no_such_key[] = "ERR no such key";
static const char same_object[] = "ERR source and destination objects are the same";

/* ---- key by key ---- */

enum store_result cmd_del(struct call *call)
{
    int64_t deleted = 0;
    for (uint32_t i = 0; i < call->key_count; i++) {
        struct store_item item;
        enum store_result result = call_yield_at(call, i);
        if (result == STORE_OK)
            result = call_find(call, &call->keys[i], &item);
        if (result == STORE_ABSENT)
            continue;
        if (result == STORE_OK)
            result = store_delete(call->txn, &call->keys[i]);
        if (result != STORE_OK)
            return result;
        call_notify(call, NOTIFY_GENERIC, "del", &call->keys[i]);
        deleted++;
    }
    resp_integer(call->reply, deleted);
    return STORE_OK;
}

/* UNLINK and DEL are the same: space is always freed in the background. */
enum store_result cmd_unlink(struct call *call)
{
    return cmd_del(call);
}

enum store_result cmd_exists(struct call *call)
{
    int64_t found = 0;
    for (uint32_t i = 0; i < call->key_count; i++) {
        struct store_item item;
        enum store_result result = call_find(call, &call->keys[i], &item);
        if (result != STORE_OK && result != STORE_ABSENT)
            return result;
        found += result == STORE_OK;
    }
    resp_integer(call->reply, found);
    return STORE_OK;
}

/* Looking up a key marks its page as accessed. */
enum store_result cmd_touch(struct call *call)
{
    return cmd_exists(call);
}

enum store_result cmd_type(struct call *call)
{
    struct store_item item;
    enum store_result result = call_find(call, &call->keys[0], &item);
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    resp_status(call->reply, result == STORE_OK ? call_type_name(item.type) : "none");
    return STORE_OK;
}

/* ---- from one key to another ---- */

/* STORE_ABSENT is a valid answer here, not an error to be passed up. */
static enum store_result key_exists(struct call *call, const struct store_key *key, bool *exists)
{
    struct store_item item;
    enum store_result result = store_get(call->txn, key, &item);
    *exists = result == STORE_OK;
    return result == STORE_ABSENT ? STORE_OK : result;
}

/* As in Redis, the destination is reported as new even if it replaces a key. */
static void notify_moved(struct call *call, const char *from, const char *to)
{
    call_notify(call, NOTIFY_NEW, "new", &call->keys[1]);
    if (from != NULL)
        call_notify(call, NOTIFY_GENERIC, from, &call->keys[0]);
    call_notify(call, NOTIFY_GENERIC, to, &call->keys[1]);
}

static enum store_result rename_key(struct call *call, bool only_if_free)
{
    const struct store_key *from = &call->keys[0], *to = &call->keys[1];
    struct store_item item;
    assert(call->key_count == 2); /* by arity */
    enum store_result result = store_get(call->txn, from, &item);
    if (result == STORE_ABSENT) {
        resp_error(call->reply, no_such_key);
        return STORE_OK;
    }
    bool taken = call_same_name(from, to);
    if (result == STORE_OK && only_if_free && !taken)
        result = key_exists(call, to, &taken);
    if (result == STORE_OK && !call_same_name(from, to) && !(only_if_free && taken)) {
        notify_moved(call, "rename_from", "rename_to");
        result = store_rename(call->txn, from, &item, to);
    }
    if (result != STORE_OK)
        return result;
    if (only_if_free)
        resp_integer(call->reply, !taken);
    else
        resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_rename(struct call *call)
{
    return rename_key(call, false);
}

enum store_result cmd_renamenx(struct call *call)
{
    return rename_key(call, true);
}

/* Parses a C int, as Redis numbers databases. `text`, if not NULL, is the error for anything else.
 */
static bool read_int(struct call *call, struct resp_slice arg, const char *text, int64_t *number)
{
    if (text == NULL)
        return call_int64_between(call, arg, INT_MIN, INT_MAX, number);
    if (resp_read_int64(arg.data, arg.len, number) && *number >= INT_MIN && *number <= INT_MAX)
        return true;
    resp_error(call->reply, text);
    return false;
}

static bool is_db(struct call *call, int64_t number)
{
    if (number >= 0 && number < STORE_DB_COUNT)
        return true;
    resp_error(call->reply, "ERR DB index is out of range");
    return false;
}

static bool copy_options(struct call *call, int64_t *db, bool *replace)
{
    for (size_t i = 3; i < call->argc; i++) {
        if (slice_is(call->argv[i], "replace")) {
            *replace = true;
        } else if (slice_is(call->argv[i], "db") && i + 1 < call->argc) {
            if (!read_int(call, call->argv[++i], NULL, db) || !is_db(call, *db))
                return false;
        } else {
            return call_syntax_error(call);
        }
    }
    return true;
}

static enum store_result copy_long(struct call *call, const struct store_item *item,
                                   const struct store_key *to)
{
    struct store_item source = *item;
    struct string_build *build = string_build_get(call, item->length);
    if (build == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = string_build_go_on(call, build, string_build_copy, &source);
    if (result != STORE_OK)
        return result;
    return string_build_put(call, build, to, item->type, item->expire_ms);
}

static enum store_result copy_item(struct call *call, const struct store_item *item,
                                   const struct store_key *from, const struct store_key *to)
{
    const char *bytes;
    if (item->trees > 0)
        return copy_trees(call, from, item, to);
    if (item->length > STRING_SHORT)
        return copy_long(call, item, to);
    enum store_result result = store_load(call->txn, item, &bytes);
    if (result != STORE_OK)
        return result;
    result = store_put(call->txn, to, item->type, bytes, item->length, item->expire_ms);
    if (result == STORE_OK && item->wake_ms != STORE_NO_EXPIRY)
        store_set_wake(call->txn, to, item->wake_ms);
    return result;
}

enum store_result cmd_copy(struct call *call)
{
    const struct store_key *from = &call->keys[0], *to = &call->keys[1];
    int64_t db = call->session->db;
    bool replace = false, taken;
    if (!copy_options(call, &db, &replace))
        return STORE_OK;
    if (db == from->db && call_same_name(from, to)) {
        resp_error(call->reply, same_object);
        return STORE_OK;
    }
    struct store_item item;
    enum store_result result = call_find(call, from, &item);
    if (result == STORE_OK)
        result = key_exists(call, to, &taken);
    bool copies = result == STORE_OK && (replace || !taken);
    if (copies) {
        notify_moved(call, NULL, "copy_to");
        result = copy_item(call, &item, from, to);
    }
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    resp_integer(call->reply, copies);
    return STORE_OK;
}

enum store_result cmd_move(struct call *call)
{
    int64_t db;
    bool taken;
    if (!read_int(call, call->argv[2], NULL, &db) || !is_db(call, db))
        return STORE_OK;
    if (db == call->session->db) {
        resp_error(call->reply, same_object);
        return STORE_OK;
    }
    struct store_item item;
    const struct store_key *from = &call->keys[0], *to = &call->keys[1];
    enum store_result result = store_get(call->txn, from, &item);
    if (result == STORE_OK)
        result = key_exists(call, to, &taken);
    bool moves = result == STORE_OK && !taken;
    if (moves) {
        notify_moved(call, "move_from", "move_to");
        result = store_rename(call->txn, from, &item, to);
    }
    if (result != STORE_OK && result != STORE_ABSENT)
        return result;
    resp_integer(call->reply, moves);
    return STORE_OK;
}

/* ---- OBJECT ---- */

/* An absent key has a regular reply and causes no key-miss notification. */
static enum store_result object_find(struct call *call, struct store_item *item)
{
    enum store_result result = store_get(call->txn, &call->keys[0], item);
    call->hits += result == STORE_OK;
    call->misses += result == STORE_ABSENT;
    if (result != STORE_ABSENT)
        return result;
    resp_null(call->reply);
    return STORE_ANSWERED;
}

static const char *string_encoding(const struct store_item *item)
{
    int64_t number;
    if ((item->type & ITEM_RAW) != 0)
        return "raw";
    bool is_text = item->large || (item->type & ITEM_TEXT) != 0;
    if (!is_text && resp_read_int64(item->bytes, item->length, &number))
        return "int";
    return item->length <= EMBEDDED_MAX ? "embstr" : "raw";
}

const char *object_encoding(const struct store_item *item)
{
    bool is_big = (item->type & ITEM_BIG) != 0;
    switch (item_type(item)) {
    case TYPE_STRING:
        return string_encoding(item);
    case TYPE_LIST:
        return is_big ? "quicklist" : "listpack";
    case TYPE_SET:
        if ((item->type & ITEM_INTEGERS) != 0)
            return "intset";
        return is_big ? "hashtable" : "listpack";
    case TYPE_ZSET:
        return is_big ? "skiplist" : "listpack";
    case TYPE_HASH:
        if (!is_big && (item->type & ITEM_TIMED) != 0)
            return "listpackex";
        return is_big ? "hashtable" : "listpack";
    case TYPE_STREAM:
        return "stream";
    }
    return "unknown";
}

enum store_result cmd_object_encoding(struct call *call)
{
    struct store_item item;
    enum store_result result = object_find(call, &item);
    if (result == STORE_OK)
        resp_bulk_string(call->reply, object_encoding(&item));
    return result;
}

/* Values are not shared between keys. Redis shares small integers, unless eviction depends on their
 * access data, and reports INT_MAX as their reference count. */
int32_t object_references(struct server *server, const struct store_item *item)
{
    const struct config *config = &server->config;
    int64_t policy = config_number(config, CONFIG_MAXMEMORY_POLICY), number;
    bool goes_by_use = policy == CONFIG_POLICY_VOLATILE_LRU ||
                       policy == CONFIG_POLICY_VOLATILE_LFU ||
                       policy == CONFIG_POLICY_ALLKEYS_LRU || policy == CONFIG_POLICY_ALLKEYS_LFU;
    bool is_small = item_type(item) == TYPE_STRING && item->bytes != NULL &&
                    strcmp(object_encoding(item), "int") == 0 &&
                    resp_read_int64(item->bytes, item->length, &number) && number >= 0 &&
                    number < 10000;
    bool is_shared = is_small && (config_number(config, CONFIG_MAXMEMORY) == 0 || !goes_by_use);
    return is_shared ? INT32_MAX : 1;
}

enum store_result cmd_object_refcount(struct call *call)
{
    struct store_item item;
    enum store_result result = object_find(call, &item);
    if (result == STORE_OK)
        resp_integer(call->reply, object_references(call->server, &item));
    return result;
}

static bool uses_lfu(const struct call *call)
{
    int64_t policy = config_number(&call->server->config, CONFIG_MAXMEMORY_POLICY);
    return policy == CONFIG_POLICY_ALLKEYS_LFU || policy == CONFIG_POLICY_VOLATILE_LFU;
}

#define POLICY_NOTE                                                                                \
    " Please note that when switching between policies at runtime LRU and LFU data will take "     \
    "some time to adjust."

static enum store_result object_access(struct call *call, struct store_access *use)
{
    struct store_item item;
    enum store_result result = object_find(call, &item);
    if (result == STORE_OK)
        result = store_get_access(call->txn, call->keys, use);
    if (result != STORE_ABSENT)
        return result;
    *use = (struct store_access){.idle_ms = 0}; /* created by this transaction */
    return STORE_OK;
}

enum store_result cmd_object_idletime(struct call *call)
{
    struct store_access use;
    enum store_result result = object_access(call, &use);
    if (result != STORE_OK)
        return result;
    if (uses_lfu(call))
        resp_error(call->reply,
                   "ERR An LFU maxmemory policy is selected, idle time not tracked." POLICY_NOTE);
    else
        resp_integer(call->reply, use.idle_ms / 1000);
    return STORE_OK;
}

enum store_result cmd_object_freq(struct call *call)
{
    struct store_access use;
    enum store_result result = object_access(call, &use);
    if (result != STORE_OK)
        return result;
    if (uses_lfu(call))
        resp_integer(call->reply, use.frequency);
    else
        resp_error(call->reply, "ERR An LFU maxmemory policy is not selected, access frequency not "
                                "tracked." POLICY_NOTE);
    return STORE_OK;
}

enum store_result cmd_object_help(struct call *call)
{
    static const char *const lines[] = {
        "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "ENCODING <key>",
        "    The name of the form in which Redis would keep the value.",
        "FREQ <key>",
        "    How often the key is used, under an LFU policy.",
        "IDLETIME <key>",
        "    For how many seconds the key has not been used.",
        "REFCOUNT <key>",
        "    How many references there are to the value.",
        "HELP",
        "    These lines.",
    };
    resp_array(call->reply, sizeof(lines) / sizeof(lines[0]));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        resp_status(call->reply, lines[i]);
    return STORE_OK;
}

/* ---- whole databases ---- */

enum store_result cmd_dbsize(struct call *call)
{
    struct store_db_stats stats;
    enum store_result result = store_txn_db_stats(call->txn, call->session->db, &stats);
    if (result == STORE_OK)
        resp_integer(call->reply, (int64_t)stats.keys);
    return result;
}

/* ASYNC and SYNC are the same: a flush is a single record, and space is freed afterwards. */
static bool flush_options_ok(struct call *call)
{
    if (call->argc == 1 ||
        (call->argc == 2 && (slice_is(call->argv[1], "async") || slice_is(call->argv[1], "sync"))))
        return true;
    return call_syntax_error(call);
}

enum store_result cmd_flushdb(struct call *call)
{
    if (!flush_options_ok(call))
        return STORE_OK;
    store_flush_db(call->txn, call->session->db);
    resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_flushall(struct call *call)
{
    if (!flush_options_ok(call))
        return STORE_OK;
    store_flush_all(call->txn);
    resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_swapdb(struct call *call)
{
    int64_t a, b;
    if (!read_int(call, call->argv[1], "ERR invalid first DB index", &a) ||
        !read_int(call, call->argv[2], "ERR invalid second DB index", &b) || !is_db(call, a) ||
        !is_db(call, b))
        return STORE_OK;
    if (a != b) /* otherwise it changes nothing, for WATCH either */
        store_swap_db(call->txn, (uint32_t)a, (uint32_t)b);
    resp_ok(call->reply);
    return STORE_OK;
}
