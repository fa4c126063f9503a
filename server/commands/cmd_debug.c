/*
 * DEBUG: for tests of the server. Permitted only by enable-debug-command.
 *
 * Subcommands that must read or stop everything (RELOAD, DIGEST, SLEEP) run with the exclusive
 * lock on the store.
 */
#include "server/commands/cmd_debug.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/commands/commands.h"
#include "server/commands/cmd_generic.h"
#include "server/commands/protection.h"
#include "server/net/conn.h"
#include "server/base/glob.h"
#include "server/config/config_directive.h"
#include "server/types/rdb.h"
#include "server/types/rdb_write.h"
#include "server/core/round_clock.h"
#include "server/core/server.h"
#include "server/core/session.h"
#include "server/pubsub/notify.h"
#include "server/core/call.h"

/* ---- permission ---- */

bool debug_is_allowed(struct call *call)
{
    if (protection_allows(call, CONFIG_ENABLE_DEBUG_COMMAND))
        return true;
    resp_error(call->reply,
               "ERR DEBUG command not allowed. If the enable-debug-command option is set to "
               "\"local\", you can run it from a local connection, otherwise you need to set this "
               "option in the configuration file, and then restart the server.");
    return false;
}

/* ---- RELOAD, LOADAOF ---- */

static enum store_result reload(struct call *call)
{
    char message[STORE_MESSAGE_MAX];
    enum store_result result = store_reload(call->txn, message);
    if (result == STORE_OK) {
        resp_ok(call->reply);
    } else if (result == STORE_LOCKED) {
        resp_errorf(call->reply, "ERR Nothing was reloaded: %s", message);
    } else {
        resp_errorf(call->reply, "ERR Error trying to reload, the server stops: %s", message);
        server_stop(call->server); /* the data in memory must not be served any more */
    }
    return STORE_OK;
}

/* Whatever the options say, the files already contain everything that was acknowledged, and nothing
 * else. */
enum store_result cmd_debug_reload(struct call *call)
{
    if (!debug_is_allowed(call))
        return STORE_OK;
    for (size_t i = 2; i < call->argc; i++) {
        struct resp_slice option = call->argv[i];
        if (!slice_is(option, "merge") && !slice_is(option, "noflush") &&
            !slice_is(option, "nosave")) {
            resp_error(call->reply,
                       "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
            return STORE_OK;
        }
    }
    return reload(call);
}

enum store_result cmd_debug_loadaof(struct call *call)
{
    return debug_is_allowed(call) ? reload(call) : STORE_OK;
}

/* ---- QUICKLIST-PACKED-THRESHOLD ---- */

/* Validated, but without effect: where elements are stored depends only on their length and their
 * page. */
enum store_result cmd_debug_quicklist_packed_threshold(struct call *call)
{
    static const int64_t most = ((int64_t)1 << 32) - ((int64_t)1 << 20); /* Redis's */
    struct resp_slice arg = call->argv[2];
    char text[64];
    int64_t bytes;
    if (!debug_is_allowed(call))
        return STORE_OK;
    snprintf(text, sizeof text, "%.*s", arg.len < sizeof text ? (int)arg.len : 0, arg.data);
    if (!config_read_memory(text, &bytes) || bytes > most)
        resp_error(call->reply,
                   "ERR argument must be a memory value bigger than 1 and smaller than 4gb");
    else
        resp_ok(call->reply);
    return STORE_OK;
}

/* ---- LOOP-GAP ---- */

enum store_result cmd_debug_loop_gap(struct call *call)
{
    if (debug_is_allowed(call))
        resp_integer(call->reply, (int64_t)(round_clock_longest(call->server) / 1000));
    return STORE_OK;
}

/* ---- SLEEP, SET-ACTIVE-EXPIRE, SET-DISABLE-DENY-SCRIPTS, SET-SKIP-CHECKSUM-VALIDATION ---- */

/* Like strtod(): text after the number is ignored, and text without a number is 0. */
static double read_seconds(struct resp_slice arg)
{
    char text[64];
    size_t len = arg.len < sizeof text ? arg.len : sizeof text - 1;
    memcpy(text, arg.data, len);
    text[len] = '\0';
    double seconds = strtod(text, NULL);
    return seconds > 0 && seconds < 1e9 ? seconds : seconds >= 1e9 ? 1e9 : 0;
}

/* No other request reads or writes a key meanwhile. */
enum store_result cmd_debug_sleep(struct call *call)
{
    if (!debug_is_allowed(call))
        return STORE_OK;
    double seconds = read_seconds(call->argv[2]);
    if (seconds > 0) {
        time_t whole = (time_t)seconds;
        struct timespec time = {whole, (long)((seconds - (double)whole) * 1e9)};
        nanosleep(&time, NULL);
    }
    resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_debug_set_active_expire(struct call *call)
{
    int64_t active;
    if (!debug_is_allowed(call) || !call_int64(call, call->argv[2], &active))
        return STORE_OK;
    store_set_active_expiry(call->server->store, active != 0);
    resp_ok(call->reply);
    return STORE_OK;
}

static enum store_result set_flag(struct call *call, _Atomic bool *flag)
{
    int64_t value;
    if (!debug_is_allowed(call) || !call_int64(call, call->argv[2], &value))
        return STORE_OK;
    atomic_store(flag, value != 0);
    resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_debug_set_disable_deny_scripts(struct call *call)
{
    return set_flag(call, &call->server->scripts_may_all);
}

enum store_result cmd_debug_set_skip_checksum_validation(struct call *call)
{
    return set_flag(call, &call->server->skips_checksums);
}

/* ---- ERROR, LOG, SEGFAULT ---- */

/* Replies with the text unchanged, except that it must be a single line. */
enum store_result cmd_debug_error(struct call *call)
{
    struct resp_slice text = call->argv[2];
    if (!debug_is_allowed(call))
        return STORE_OK;
    char *room = resp_reserve(call->reply, text.len + 3);
    if (room == NULL)
        return STORE_NO_MEMORY;
    room[0] = '-';
    for (size_t i = 0; i < text.len; i++)
        room[i + 1] = text.data[i] == '\r' || text.data[i] == '\n' ? ' ' : text.data[i];
    memcpy(room + 1 + text.len, "\r\n", 2);
    call->reply->len += text.len + 3;
    return STORE_OK;
}

enum store_result cmd_debug_log(struct call *call)
{
    struct resp_slice text = call->argv[2];
    if (!debug_is_allowed(call))
        return STORE_OK;
    int len = text.len < LOG_LINE_MAX ? (int)text.len : LOG_LINE_MAX;
    log_line(&call->server->log, CONFIG_LOG_WARNING, "DEBUG LOG: %.*s", len, text.data);
    resp_ok(call->reply);
    return STORE_OK;
}

/* Ends the way a crash would: without any cleanup. */
enum store_result cmd_debug_segfault(struct call *call)
{
    if (debug_is_allowed(call))
        raise(SIGSEGV);
    return STORE_OK;
}

/* ---- POPULATE ---- */

#define POPULATE_KEY_MAX 127 /* longer names are truncated to this, as in Redis */

struct populating {
    struct resp_slice prefix;
    int64_t count, size; /* size 0: the length of the text */
};

static bool parse_populate(struct call *call, struct populating *what)
{
    const struct resp_slice *argv = call->argv;
    *what = (struct populating){.prefix = {"key", 3}};
    if (call->argc > 5)
        return call_wrong_subcommand(call);
    if (call->argc > 3)
        what->prefix = argv[3];
    return call_count(call, argv[2], &what->count) &&
           (call->argc < 5 || call_int64_between(call, argv[4], 0, STORE_VALUE_MAX, &what->size));
}

/* The text, truncated or padded with zeros. */
static struct resp_slice numbered_value(struct call *call, int64_t number, int64_t size)
{
    char text[32];
    size_t len = (size_t)snprintf(text, sizeof text, "value:%" PRId64, number);
    size_t wanted = size == 0 ? len : (size_t)size;
    char *room = store_alloc(call->txn, wanted);
    if (room == NULL)
        return (struct resp_slice){NULL, 0};
    memset(room, 0, wanted);
    memcpy(room, text, len < wanted ? len : wanted);
    return (struct resp_slice){room, wanted};
}

/* A key that exists already is left unchanged. */
static enum store_result populate_one(struct call *call, const struct populating *what,
                                      int64_t number)
{
    struct store_item item;
    struct store_key key;
    char *name = store_alloc(call->txn, POPULATE_KEY_MAX + 1);
    if (name == NULL)
        return STORE_NO_MEMORY;
    int prefix_len = what->prefix.len < POPULATE_KEY_MAX ? (int)what->prefix.len : POPULATE_KEY_MAX;
    snprintf(name, POPULATE_KEY_MAX + 1, "%.*s:%" PRId64, prefix_len, what->prefix.data, number);
    store_key(call->server->store, &key, call->session->db, name, strlen(name), STORE_EXCLUSIVE);
    enum store_result result = store_get(call->txn, &key, &item);
    if (result != STORE_ABSENT)
        return result;
    struct resp_slice value = numbered_value(call, number, what->size);
    if (value.data == NULL)
        return STORE_NO_MEMORY;
    call_notify(call, NOTIFY_NEW, "new", &key);
    return store_put(call->txn, &key, TYPE_STRING, value.data, value.len, STORE_NO_EXPIRY);
}

enum store_result cmd_debug_populate(struct call *call)
{
    struct populating what;
    enum store_result result = STORE_OK;
    if (!debug_is_allowed(call) || !parse_populate(call, &what))
        return STORE_OK;
    uint64_t most = atomic_load_explicit(&call->server->memory_bound, memory_order_relaxed) / 4;
    for (int64_t i = 0; i < what.count && result == STORE_OK; i++) {
        store_make_room(call->txn);
        result = store_memory(call->txn) > most ? STORE_NO_MEMORY : populate_one(call, &what, i);
    }
    if (result == STORE_OK)
        resp_ok(call->reply);
    return result;
}

/* ---- STRINGMATCH-LEN ---- */

/* Matches a pattern against a text of that many letters, to measure how long a match can take. */
enum store_result cmd_debug_stringmatch_len(struct call *call)
{
    static const int64_t most = 64 * 1024 * 1024;
    int64_t len;
    if (!debug_is_allowed(call) || !call_int64_between(call, call->argv[2], 0, most, &len))
        return STORE_OK;
    char *text = malloc((size_t)len + 1);
    if (text == NULL)
        return STORE_NO_MEMORY;
    memset(text, 'x', (size_t)len);
    struct resp_slice pattern = call->argv[3];
    resp_integer(call->reply, glob_match(pattern.data, pattern.len, text, (size_t)len, false));
    free(text);
    return STORE_OK;
}

/* ---- OBJECT ---- */

#define MEASURED_MAX (1024 * 1024) /* longer strings are not compressed for this */

/* The length of a string in DUMP's encoding, without its frame. For a collection, the size of its
 * items. */
static enum store_result saved_length(struct call *call, const struct store_item *item,
                                      uint64_t *length)
{
    const char *bytes;
    *length = item->length;
    if (item_type(item) != TYPE_STRING || item->length > MEASURED_MAX)
        return STORE_OK;
    enum store_result result = store_load(call->txn, item, &bytes);
    if (result != STORE_OK)
        return result;
    struct resp_writer saved;
    resp_writer_init(&saved, 2);
    rdb_put_string(&saved, (struct resp_slice){bytes, item->length});
    *length = saved.len;
    result = saved.failed ? STORE_NO_MEMORY : STORE_OK;
    resp_writer_free(&saved);
    return result;
}

/* Values have neither an address nor an age of their own, so those fields are 0. */
enum store_result cmd_debug_object(struct call *call)
{
    struct store_item item;
    if (!debug_is_allowed(call))
        return STORE_OK;
    enum store_result result = store_get(call->txn, &call->keys[0], &item);
    if (result == STORE_ABSENT) {
        resp_error(call->reply, "ERR no such key");
        return STORE_OK;
    }
    uint64_t length = 0;
    if (result == STORE_OK)
        result = saved_length(call, &item, &length);
    if (result != STORE_OK)
        return result;
    char line[160];
    snprintf(line, sizeof line,
             "Value at:0x0 refcount:%" PRId32 " encoding:%s serializedlength:%" PRIu64
             " lru:0 lru_seconds_idle:0",
             object_references(call->server, &item), object_encoding(&item), length);
    resp_status(call->reply, line);
    return STORE_OK;
}

/* ---- PROTOCOL ---- */

static void reply_elements(struct resp_writer *reply, const char *type)
{
    bool is_map = strcmp(type, "map") == 0;
    if (is_map)
        resp_map(reply, 3);
    else if (strcmp(type, "set") == 0)
        resp_set(reply, 3);
    else
        resp_array(reply, 3);
    for (int i = 0; i < 3; i++) {
        resp_integer(reply, i);
        if (is_map)
            resp_boolean(reply, i == 1);
    }
}

static void reply_attribute(struct resp_writer *reply)
{
    if (reply->version >= 3) {
        resp_raw(reply, "|1\r\n", 4);
        resp_bulk_string(reply, "key-popularity");
        resp_array(reply, 2);
        resp_bulk_string(reply, "key:123");
        resp_integer(reply, 90);
    }
    resp_bulk_string(reply, "Some real reply following the attribute");
}

static void reply_push(struct resp_writer *reply)
{
    if (reply->version < 3) {
        resp_error(reply, "ERR RESP2 is not supported by this command");
        return;
    }
    resp_push(reply, 2);
    resp_bulk_string(reply, "server-cpu-usage");
    resp_integer(reply, 42);
    resp_bulk_string(reply, "Some real reply following the push reply");
}

static void reply_big_number(struct resp_writer *reply)
{
    static const char digits[] = "1234567999999999999999999999999999999";
    if (reply->version < 3) {
        resp_bulk_string(reply, digits);
        return;
    }
    resp_raw(reply, "(", 1);
    resp_raw(reply, digits, sizeof digits - 1);
    resp_raw(reply, "\r\n", 2);
}

enum store_result cmd_debug_protocol(struct call *call)
{
    static const char text[] = "This is a verbatim\nstring";
    struct resp_slice type = call->argv[2];
    struct resp_writer *reply = call->reply;
    if (!debug_is_allowed(call))
        return STORE_OK;
    if (slice_is(type, "string"))
        resp_bulk_string(reply, "Hello World");
    else if (slice_is(type, "integer"))
        resp_integer(reply, 12345);
    else if (slice_is(type, "double"))
        resp_double(reply, 3.141);
    else if (slice_is(type, "bignum"))
        reply_big_number(reply);
    else if (slice_is(type, "null"))
        resp_null(reply);
    else if (slice_is(type, "array"))
        reply_elements(reply, "array");
    else if (slice_is(type, "set"))
        reply_elements(reply, "set");
    else if (slice_is(type, "map"))
        reply_elements(reply, "map");
    else if (slice_is(type, "attrib"))
        reply_attribute(reply);
    else if (slice_is(type, "push"))
        reply_push(reply);
    else if (slice_is(type, "true") || slice_is(type, "false"))
        resp_boolean(reply, slice_is(type, "true"));
    else if (slice_is(type, "verbatim"))
        resp_verbatim(reply, "txt", text, sizeof text - 1);
    else
        resp_error(reply, "ERR Wrong protocol type name. Please use one of the following: "
                          "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|"
                          "true|false");
    return STORE_OK;
}

/* ---- HELP ---- */

enum store_result cmd_debug_help(struct call *call)
{
    static const char *const lines[] = {
        "DIGEST",
        "    A digest of all keys and values of all databases.",
        "DIGEST-VALUE <key> [<key> ...]",
        "    A digest of each value.",
        "ERROR <string>",
        "    This text as an error.",
        "LOADAOF",
        "    The same as RELOAD.",
        "LOG <message>",
        "    A line in the log.",
        "LOOP-GAP",
        "    The longest time between two looks of a worker at its clients since the last call, in",
        "    microseconds of its processor time. The first call begins to measure.",
        "OBJECT <key>",
        "    How a value is kept.",
        "POPULATE <count> [<prefix>] [<size>]",
        "    Make so many keys <prefix>:<number>, unless they are there.",
        "PROTOCOL <type>",
        "    A reply of this type of the protocol.",
        "QUICKLIST-PACKED-THRESHOLD <size>",
        "    Nothing: lists have no nodes of two kinds.",
        "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
        "    Forget what is in memory and recover everything from the files.",
        "SEGFAULT",
        "    End as by a bug.",
        "SET-ACTIVE-EXPIRE <0|1>",
        "    Whether expired keys are looked for in the background.",
        "SET-DISABLE-DENY-SCRIPTS <0|1>",
        "    Whether scripts may run what they are denied otherwise, if it can be run again.",
        "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
        "    Whether RESTORE believes a payload whatever its checksum.",
        "SLEEP <seconds>",
        "    Let all keys wait for so long.",
        "STRINGMATCH-LEN <length> <pattern>",
        "    Match a pattern against so many letters x.",
        NULL,
    };
    if (debug_is_allowed(call))
        call_help(call, lines);
    return STORE_OK;
}
