/*
 * DEBUG: for tests of the server, and only where enable-debug-command allows it.
 *
 * Those that must see or stop everything (RELOAD, DIGEST, SLEEP) run alone on the whole store.
 */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conn.h"
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

/* False: refused, and answered. */
static bool is_allowed(struct call *call)
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
    if (!is_allowed(call))
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
    return is_allowed(call) ? reload(call) : STORE_OK;
}

/* ---- SLEEP, SET-ACTIVE-EXPIRE ---- */

/* Nobody reads or writes a key meanwhile. */
enum store_result cmd_debug_sleep(struct call *call)
{
    double seconds;
    if (!is_allowed(call))
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
    if (!is_allowed(call) || !call_int64(call, call->argv[2], &active))
        return STORE_OK;
    store_set_active_expiry(call->server->store, active != 0);
    resp_ok(call->reply);
    return STORE_OK;
}

/* ---- OBJECT ---- */

/* Values have no address and no age of their own: those fields are 0. */
enum store_result cmd_debug_object(struct call *call)
{
    struct store_item item;
    if (!is_allowed(call))
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

/* ---- DIGEST, DIGEST-VALUE ---- */

#define DIGEST_LANES 3 /* 160 bits are shown */
#define DIGEST_PIECE (64 * 1024)
#define DIGEST_STEP 128 /* index entries */

struct digest {
    uint64_t lanes[DIGEST_LANES];
};

static void absorb_word(struct digest *digest, uint64_t word)
{
    static const uint64_t factors[DIGEST_LANES] = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f,
                                                   0xd6e8feb86659fd93};
    for (int i = 0; i < DIGEST_LANES; i++) {
        uint64_t lane = (digest->lanes[i] ^ word) * factors[i];
        digest->lanes[i] = lane ^ (lane >> 29);
    }
}

/* In words; only the last piece of a text may have a length that is not a multiple of 8. */
static void absorb(struct digest *digest, const char *bytes, size_t len)
{
    for (size_t at = 0; at < len; at += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, len - at < 8 ? len - at : 8);
        absorb_word(digest, word);
    }
}

static struct digest digest_begin(uint64_t purpose)
{
    struct digest digest = {{1, 2, 3}};
    absorb_word(&digest, purpose);
    return digest;
}

/* The order of keys is nobody's business: what is found of each is added up. */
static void add(struct digest *sum, const struct digest *digest)
{
    for (int i = 0; i < DIGEST_LANES; i++)
        sum->lanes[i] += digest->lanes[i];
}

/* Of a value, and of whether it will expire. */
static enum store_result digest_value(struct store_txn *txn, const struct store_item *item,
                                      struct digest *digest)
{
    *digest = digest_begin(item_type(item));
    absorb_word(digest, item->expire_ms != STORE_NO_EXPIRY);
    absorb_word(digest, item->length);
    if (!item->large) {
        absorb(digest, item->bytes, item->length);
        return STORE_OK;
    }
    char *piece = malloc(DIGEST_PIECE);
    enum store_result result = piece == NULL ? STORE_NO_MEMORY : STORE_OK;
    for (uint64_t at = 0; at < item->length && result == STORE_OK; at += DIGEST_PIECE) {
        uint64_t left = item->length - at;
        size_t len = left < DIGEST_PIECE ? left : DIGEST_PIECE;
        result = store_read(txn, item, at, len, piece);
        if (result == STORE_OK)
            absorb(digest, piece, len);
    }
    free(piece);
    return result;
}

static void reply_digest(struct call *call, const struct digest *digest)
{
    char text[41];
    snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64 "%08" PRIx32, digest->lanes[0],
             digest->lanes[1], (uint32_t)(digest->lanes[2] >> 32));
    resp_status(call->reply, text);
}

/* Kept over reruns, and changed only by whole steps. */
struct digest_walk {
    uint32_t db;
    uint64_t cursor;
    struct digest sum;
};

struct digest_step {
    struct store_txn *txn;
    uint32_t db;
    struct digest sum;
    enum store_result result;
};

static void visit_key(void *arg, const char *key, uint32_t key_len, const struct store_item *item)
{
    struct digest_step *step = arg;
    struct digest value, digest = digest_begin(step->db);
    if (step->result != STORE_OK)
        return;
    step->result = digest_value(step->txn, item, &value);
    absorb_word(&digest, key_len);
    absorb(&digest, key, key_len);
    for (int i = 0; i < DIGEST_LANES; i++)
        absorb_word(&digest, value.lanes[i]);
    add(&step->sum, &digest);
}

static enum store_result digest_step(struct call *call, struct digest_walk *walk)
{
    uint64_t cursor = walk->cursor;
    struct digest_step step = {.txn = call->txn, .db = walk->db};
    enum store_result result =
        store_scan(call->txn, walk->db, &cursor, DIGEST_STEP, visit_key, &step);
    if (result == STORE_OK)
        result = step.result;
    if (result != STORE_OK)
        return result;
    add(&walk->sum, &step.sum);
    walk->cursor = cursor;
    walk->db += cursor == 0;
    return STORE_OK;
}

enum store_result cmd_debug_digest(struct call *call)
{
    if (!is_allowed(call))
        return STORE_OK;
    if (call->progress == NULL) {
        call->progress = calloc(1, sizeof(struct digest_walk));
        call->progress_free = free;
    }
    struct digest_walk *walk = call->progress;
    if (walk == NULL)
        return STORE_NO_MEMORY;
    while (walk->db < STORE_DB_COUNT) {
        enum store_result result = digest_step(call, walk);
        if (result != STORE_OK)
            return result;
    }
    reply_digest(call, &walk->sum);
    return STORE_OK;
}

enum store_result cmd_debug_digest_value(struct call *call)
{
    if (!is_allowed(call))
        return STORE_OK;
    resp_array(call->reply, call->key_count);
    for (uint32_t i = 0; i < call->key_count; i++) {
        struct store_item item;
        struct digest digest = {{0}};
        enum store_result result = store_get(call->txn, &call->keys[i], &item);
        if (result == STORE_OK)
            result = digest_value(call->txn, &item, &digest);
        if (result != STORE_OK && result != STORE_ABSENT)
            return result;
        reply_digest(call, &digest);
    }
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
    if (!is_allowed(call))
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
        "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
        "    Forget what is in memory and recover everything from the files.",
        "SET-ACTIVE-EXPIRE <0|1>",
        "    Whether expired keys are looked for in the background.",
        "SLEEP <seconds>",
        "    Let all keys wait for so long.",
        NULL,
    };
    if (is_allowed(call))
        call_help(call, lines);
    return STORE_OK;
}
