/*
 * DEBUG: for tests of the server, and only where enable-debug-command allows it.
 *
 * Those that must see or stop everything (RELOAD, DIGEST, SLEEP) run alone on the whole store.
 */
#include "cmd_debug.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "conn.h"
#include "glob.h"
#include "server.h"
#include "session.h"
#include "transport.h"

/* ---- who may ---- */

static bool is_local(const struct conn *conn)
{
    const char *peer = conn_peer_name(conn);
    return (conn->transport != NULL && conn->transport->is_unix) || strncmp(peer, "127.", 4) == 0 ||
           strncmp(peer, "[::1]:", 6) == 0;
}

bool debug_is_allowed(struct call *call)
{
    int64_t protection = config_number(&call->server->config, CONFIG_ENABLE_DEBUG_COMMAND);
    if (protection == CONFIG_PROTECT_YES ||
        (protection == CONFIG_PROTECT_LOCAL && is_local(call->session->conn)))
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
        server_stop(call->server); /* what it has in memory is not to be served */
    }
    return STORE_OK;
}

/* Whatever the options say, everything acknowledged is in the files already, and nothing else. */
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

/* Where elements stand goes by their length and their page alone. */
enum store_result cmd_debug_quicklist_packed_threshold(struct call *call)
{
    if (debug_is_allowed(call))
        resp_ok(call->reply);
    return STORE_OK;
}

/* ---- SLEEP, SET-ACTIVE-EXPIRE, SET-DISABLE-DENY-SCRIPTS ---- */

/* Nobody reads or writes a key meanwhile. */
enum store_result cmd_debug_sleep(struct call *call)
{
    double seconds;
    if (!debug_is_allowed(call))
        return STORE_OK;
    if (!resp_read_double(call->argv[2].data, call->argv[2].len, &seconds) || seconds > 1e9) {
        resp_error(call->reply, "ERR value is not a valid float");
        return STORE_OK;
    }
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

enum store_result cmd_debug_set_disable_deny_scripts(struct call *call)
{
    int64_t all;
    if (!debug_is_allowed(call) || !call_int64(call, call->argv[2], &all))
        return STORE_OK;
    atomic_store(&call->server->scripts_may_all, all != 0);
    resp_ok(call->reply);
    return STORE_OK;
}

/* ---- STRINGMATCH-LEN ---- */

/* A pattern against so many letters: how long a match can take. */
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

/* Values have no address and no age of their own: those fields are 0. */
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
    if (result != STORE_OK)
        return result;
    char line[160];
    snprintf(line, sizeof line,
             "Value at:0x0 refcount:1 encoding:%s serializedlength:%" PRIu64
             " lru:0 lru_seconds_idle:0",
             object_encoding(&item), item.length);
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
        "LOADAOF",
        "    The same as RELOAD.",
        "OBJECT <key>",
        "    How a value is kept.",
        "PROTOCOL <type>",
        "    A reply of this type of the protocol.",
        "QUICKLIST-PACKED-THRESHOLD <size>",
        "    Nothing: lists have no nodes of two kinds.",
        "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
        "    Forget what is in memory and recover everything from the files.",
        "SET-ACTIVE-EXPIRE <0|1>",
        "    Whether expired keys are looked for in the background.",
        "SET-DISABLE-DENY-SCRIPTS <0|1>",
        "    Whether scripts may run what they are denied otherwise, if it can be run again.",
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
