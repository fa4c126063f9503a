#include "server/exec/multi.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "server/exec/nested.h"
#include "server/exec/runner_reply.h"
#include "server/exec/watch.h"
#include "server/net/conn.h"

void multi_end(struct session *session)
{
    nested_calls_free(session->multi);
    session->multi = NULL;
    watch_free(session->watch);
    session->watch = NULL;
    multi_note_memory(session);
}

int multi_count(const struct session *session)
{
    return session->multi == NULL ? -1 : (int)session->multi->count;
}

void multi_note_memory(struct session *session)
{
    session->queued_bytes = session->multi == NULL ? 0 : session->multi->bytes;
    session->queued_block_bytes = session->multi == NULL ? 0 : session->multi->block_bytes;
    session->watched_bytes = watch_bytes(session->watch);
}

/* Puts EXEC's error in place of the one that the reply ends with. */
static void tell_why(struct resp_writer *reply, size_t start)
{
    char why[128];
    assert(start < reply->len && reply->data[start] == '-');
    const char *error = reply->data + start + 1;
    size_t len = reply->len - start - 1, code = strlen("ERR ");
    if (strncmp(error, "ERR ", code) != 0)
        code = 0;
    snprintf(why, sizeof why, "%.*s", (int)(len - code), error + code);
    resp_truncate(reply, start);
    resp_errorf(reply, "EXECABORT Transaction discarded because of: %s", why);
}

void multi_refused(struct request *request)
{
    struct call *call = &request->call;
    struct session *session = call->session;
    if (session->multi != NULL)
        session->multi->is_aborted = true;
    if (request->named == NULL || request->named->role != ROLE_EXEC)
        return;
    if (!call->reply->failed)
        tell_why(call->reply, request->reply_start);
    multi_end(session);
}

bool multi_takes(struct request *request, const struct command *command)
{
    struct call *call = &request->call;
    struct session *session = call->session;
    struct nested_calls *nested_calls = session->multi;
    if ((command->flags & CMD_NOT_QUEUED) != 0)
        return false;
    session->last_command = command->name;
    if ((command->flags & CMD_NO_MULTI) != 0) {
        nested_calls->is_aborted = true;
        resp_error(call->reply, "ERR Command not allowed inside a transaction");
        return true;
    }
    struct input_buffer *block = request->block != NULL ? request->block : request->source;
    struct nested *nested = NULL;
    if (!nested_calls->is_aborted) {
        nested = nested_calls_add(nested_calls, command, call->argc, call->argv, block);
        if (nested != NULL && nested->block != NULL && conn_owns(session->conn, nested->block))
            nested_calls->block_bytes += nested_argument_bytes(nested);
        nested_calls->is_aborted = nested == NULL;
        if (nested == NULL) {
            reply_failure(call, STORE_NO_MEMORY);
            return true;
        }
        nested_calls_take_upload(nested_calls, nested, call);
        multi_note_memory(session);
    }
    resp_status(call->reply, "QUEUED");
    return true;
}
