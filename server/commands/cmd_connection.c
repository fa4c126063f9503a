/*
 * Commands about the client's own connection.
 */
#include "server/commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include "server/commands/cmd_client.h"
#include "server/net/conn.h"
#include "server/exec/tracking.h"
#include "server/exec/multi.h"
#include "server/core/server.h"
#include "server/core/session.h"
#include "server/net/rdma.h"
#include "server/core/call.h"

#define BAD_NAME "ERR Client names cannot contain spaces, newlines or special characters."
#define HELLO_FIRST                                                                                \
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "      \
    "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "     \
    "RESP protocol version at the same time"
#define NO_PASSWORD                                                                                \
    "ERR AUTH <password> called without any password configured for the default user. Are you "    \
    "sure your configuration is correct?"

static bool slice_equals(struct resp_slice slice, const char *text)
{
    return slice.len == strlen(text) && memcmp(slice.data, text, slice.len) == 0;
}

/* There is one user, "default", whose password is requirepass. If that is empty, any password is
 * accepted. */
static bool authenticate(struct call *call, struct resp_slice user, struct resp_slice password)
{
    struct config *config = &call->server->config;
    bool good = !config_has_password(config) ||
                config_password_matches(config, password.data, password.len);
    if (!good || !slice_equals(user, "default")) {
        atomic_fetch_add_explicit(&call->server->denied_auths, 1, memory_order_relaxed);
        resp_error(call->reply, "WRONGPASS invalid username-password pair or user is disabled.");
        return false;
    }
    call->session->authenticated = true;
    return true;
}

enum store_result cmd_auth(struct call *call)
{
    const struct resp_slice *argv = call->argv;
    struct resp_slice user = {.data = "default", .len = 7};
    if (call->argc > 3) {
        call_syntax_error(call);
    } else if (call->argc == 2 && !config_has_password(&call->server->config)) {
        resp_error(call->reply, NO_PASSWORD);
    } else {
        if (call->argc == 3)
            user = argv[1];
        if (authenticate(call, user, argv[call->argc - 1]))
            resp_ok(call->reply);
    }
    return STORE_OK;
}

/* ---- HELLO ---- */

struct hello {
    uint8_t version;
    const struct resp_slice *user; /* the password is the argument after it; NULL: no AUTH */
    const struct resp_slice *name;
};

static bool parse_hello(struct call *call, struct hello *hello)
{
    const struct resp_slice *argv = call->argv;
    int64_t version = call->session->resp_version;
    if (call->argc > 1 && !resp_read_int64(argv[1].data, argv[1].len, &version)) {
        resp_error(call->reply, "ERR Protocol version is not an integer or out of range");
        return false;
    }
    if (version != 2 && version != 3) {
        resp_error(call->reply, "NOPROTO unsupported protocol version");
        return false;
    }
    hello->version = (uint8_t)version;
    for (size_t i = 2; i < call->argc; i++) {
        size_t more = call->argc - i - 1;
        if (slice_is(argv[i], "auth") && more >= 2) {
            hello->user = &argv[i + 1];
            i += 2;
        } else if (slice_is(argv[i], "setname") && more >= 1) {
            hello->name = &argv[++i];
            if (!client_name_good(*hello->name)) {
                resp_error(call->reply, BAD_NAME);
                return false;
            }
        } else {
            resp_errorf(call->reply, "ERR Syntax error in HELLO option '%.*s'",
                        argv[i].len < 128 ? (int)argv[i].len : 128, argv[i].data);
            return false;
        }
    }
    return true;
}

static void reply_hello(struct call *call)
{
    struct resp_writer *reply = call->reply;
    resp_map(reply, 7);
    resp_bulk_string(reply, "server");
    resp_bulk_string(reply, "redis");
    resp_bulk_string(reply, "version");
    resp_bulk_string(reply, VELLUM_REDIS_VERSION);
    resp_bulk_string(reply, "proto");
    resp_integer(reply, call->session->resp_version);
    resp_bulk_string(reply, "id");
    resp_integer(reply, (int64_t)call->session->id);
    resp_bulk_string(reply, "mode");
    resp_bulk_string(reply, "standalone");
    resp_bulk_string(reply, "role");
    resp_bulk_string(reply, "master");
    resp_bulk_string(reply, "modules");
    resp_array(reply, 0);
}

enum store_result cmd_hello(struct call *call)
{
    struct session *session = call->session;
    struct hello hello = {.user = NULL};
    if (!parse_hello(call, &hello))
        return STORE_OK;
    if (hello.user != NULL && !authenticate(call, hello.user[0], hello.user[1]))
        return STORE_OK;
    if (!session->authenticated && config_has_password(&call->server->config)) {
        resp_error(call->reply, HELLO_FIRST);
        return STORE_OK;
    }
    if (hello.name != NULL && !client_set_text(session, &session->name, *hello.name))
        return STORE_NO_MEMORY;
    session->resp_version = hello.version;
    call->reply->version = hello.version;
    reply_hello(call);
    return STORE_OK;
}

/* ---- the rest ---- */

enum store_result cmd_ping(struct call *call)
{
    struct resp_writer *reply = call->reply;
    struct resp_slice text = call->argc == 2 ? call->argv[1] : (struct resp_slice){"", 0};
    if (call->argc > 2) {
        resp_error(reply, "ERR wrong number of arguments for 'ping' command");
    } else if (call->session->resp_version == 2 && pubsub_is_subscriber(&call->session->pubsub)) {
        resp_array(reply, 2);
        resp_bulk_string(reply, "pong");
        resp_bulk(reply, text.data, text.len);
    } else if (call->argc == 2) {
        resp_bulk(reply, text.data, text.len);
    } else {
        resp_status(reply, "PONG");
    }
    return STORE_OK;
}

enum store_result cmd_echo(struct call *call)
{
    resp_bulk(call->reply, call->argv[1].data, call->argv[1].len);
    return STORE_OK;
}

enum store_result cmd_select(struct call *call)
{
    int64_t db;
    if (!call_int64_between(call, call->argv[1], INT32_MIN, INT32_MAX, &db))
        return STORE_OK;
    if (db < 0 || db >= STORE_DB_COUNT) {
        resp_error(call->reply, "ERR DB index is out of range");
        return STORE_OK;
    }
    call->session->db = (uint32_t)db;
    resp_ok(call->reply);
    return STORE_OK;
}

enum store_result cmd_quit(struct call *call)
{
    call->session->close_after_reply = true;
    resp_ok(call->reply);
    return STORE_OK;
}

/* An unauthenticated client gets no channel, and loses the one it has when its authentication ends.
 */
static bool is_stranger_with_channel(const struct call *call)
{
    const struct session *session = call->session;
    struct rdma_stats stats;
    return !session->authenticated && call->server->rdma != NULL &&
           call->server->rdma_ops->stats(session->conn->transport, &stats);
}

enum store_result cmd_reset(struct call *call)
{
    struct session *session = call->session;
    multi_end(session);
    pubsub_leave(session->conn);
    if (session->tracker != NULL)
        tracking_end(session->conn);
    session->db = 0;
    session->resp_version = 2;
    session->authenticated = !config_has_password(&call->server->config);
    session->reply_mode = SESSION_REPLY_ON;
    session->no_evict = session->no_touch = false;
    (void)client_set_text(session, &session->name, (struct resp_slice){NULL, 0});
    call->reply->version = 2;
    resp_status(call->reply, "RESET");
    session->close_after_reply = session->close_after_reply || is_stranger_with_channel(call);
    return STORE_OK;
}
