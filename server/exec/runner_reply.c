#include "server/exec/runner_reply.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "server/net/conn.h"
#include "server/config/log.h"
#include "server/core/session.h"
#include "server/core/worker.h"
#include "server/core/call.h"

#define SHOWN_MAX 128 /* of the client's input that an error repeats */

static int shown_len(struct resp_slice slice, size_t max)
{
    return (int)(slice.len < max ? slice.len : max);
}

/* A web page can make a browser send its form here (cross-protocol scripting): the first line of
 * HTTP, or its Host line, is never a command of ours. */
static bool is_browser_request(struct resp_slice name)
{
    return slice_is(name, "post") || slice_is(name, "host:");
}

#define BROWSER_LOG_MS 60000

static void repel_browser(struct call *call)
{
    struct worker *worker = call->worker;
    struct conn *conn = call->session->conn;
    int64_t now_ms = worker_now(worker);
    if (now_ms - worker->browser_logged_ms >= BROWSER_LOG_MS) {
        worker->browser_logged_ms = now_ms;
        log_line(&worker->server->log, CONFIG_LOG_WARNING,
                 "Possible SECURITY ATTACK detected: %s sent HTTP, as a browser does that was made "
                 "to talk to this server. Connection closed.",
                 conn_peer_name(conn));
    }
    conn_kill(conn);
}

static void reply_unknown_command(struct call *call)
{
    if (is_browser_request(call->argv[0]))
        repel_browser(call);
    char args[SHOWN_MAX + 8] = "";
    size_t len = 0;
    for (size_t i = 1; i < call->argc && len < SHOWN_MAX; i++) {
        snprintf(args + len, sizeof args - len, "'%.*s' ",
                 shown_len(call->argv[i], SHOWN_MAX - len), call->argv[i].data);
        len += strlen(args + len);
    }
    resp_errorf(call->reply, "ERR unknown command '%.*s', with args beginning with: %s",
                shown_len(call->argv[0], SHOWN_MAX), call->argv[0].data, args);
}

static void reply_unknown_subcommand(struct call *call, const struct command *container)
{
    char name[COMMAND_NAME_MAX + 1];
    size_t len = 0;
    for (; container->name[len] != '\0' && len < COMMAND_NAME_MAX; len++) {
        char c = container->name[len];
        name[len] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    name[len] = '\0';
    resp_errorf(call->reply, "ERR unknown subcommand '%.*s'. Try %s HELP.",
                shown_len(call->argv[1], SHOWN_MAX), call->argv[1].data, name);
}

static void reply_wrong_arity(struct call *call, const struct command *command)
{
    resp_errorf(call->reply, "ERR wrong number of arguments for '%s' command", command->name);
}

const struct command *command_meant(const struct call *call, const struct command *command)
{
    return command != NULL && command_is_container(command) && call->argc > 1
               ? command_find_sub(command, call->argv[1])
               : command;
}

const struct command *reply_unless_found(struct call *call, const struct command *command)
{
    if (command == NULL) {
        reply_unknown_command(call);
        return NULL;
    }
    if (command_is_container(command) && call->argc > 1) {
        const struct command *sub = command_find_sub(command, call->argv[1]);
        if (sub == NULL) {
            reply_unknown_subcommand(call, command);
            return NULL;
        }
        command = sub;
    }
    if (!command_arity_ok(command, call->argc) || command->run == NULL) {
        reply_wrong_arity(call, command);
        return NULL;
    }
    return command;
}

bool reply_if_bound(struct call *call, const struct command *command)
{
    const struct session *session = call->session;
    if (pubsub_is_subscriber(&session->pubsub) && session->resp_version == 2 &&
        (command->flags & CMD_SUBSCRIBED) == 0) {
        resp_errorf(call->reply,
                    "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT "
                    "/ RESET are allowed in this context",
                    command->name);
        return true;
    }
    if (session->pubsub.count[PUBSUB_MONITOR] == 0 ||
        (command->flags & (CMD_READONLY | CMD_WRITE)) == 0)
        return false;
    resp_error(call->reply, "ERR Replica can't interact with the keyspace");
    return true;
}

static bool has_long_argument(const struct call *call)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < call->argc; i++)
        bytes += call->argv[i].len;
    return bytes > STORE_VALUE_MAX;
}

/* Commands check the length of a value before they create a long one. Here, therefore, an argument
 * is too large, or the sum of all writes. */
static const char *too_large(const struct call *call)
{
    if ((call->command->flags & CMD_NESTS) != 0)
        return "ERR the transaction's writes are too large";
    if (has_long_argument(call))
        return "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    return "ERR the command's writes are too large";
}

const char *reply_busy_text(const struct server *server)
{
    bool is_function = worker_any_busy_is(server, true) && !worker_any_busy_is(server, false);
    return is_function ? FUNCTION_BUSY_TEXT : SCRIPT_BUSY_TEXT;
}

static const char *failure_text(const struct call *call, enum store_result result)
{
    switch (result) {
    case STORE_FULL:
        return "OOM No room left on disk (maxstore or the file system): this write was not done. "
               "Reading, deleting and expiry go on.";
    case STORE_REFUSED:
        if (!store_has_failed(call->server->store)) /* a script that is ended by a stop */
            return "ERR The server is being stopped: this command was not done.";
        return "MISCONF Errors writing to the journal: this write was not done, and no other will "
               "be until the server is started again. See the log.";
    case STORE_DAMAGED:
        return "ERR the stored value is damaged (checksum mismatch)";
    case STORE_IO:
        return "ERR the storage device failed to read the value";
    case STORE_NO_MEMORY:
        return "OOM command not allowed when used memory > 'maxmemory'.";
    case STORE_TOO_LARGE:
        return too_large(call);
    case STORE_BUSY:
        return reply_busy_text(call->server);
    default:
        assert(!"a command returned what is no final result");
        return NULL;
    }
}

void reply_failure(struct call *call, enum store_result result)
{
    const char *text = failure_text(call, result);
    if (call->command->role == ROLE_EXEC)
        resp_errorf(call->reply, "EXECABORT Transaction discarded because of: %s", text);
    else
        resp_error(call->reply, text);
}
