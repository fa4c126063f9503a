#include "server/exec/reply_stream.h"

#include <assert.h>

#include "server/net/client_memory.h"
#include "server/exec/collector.h"
#include "server/net/conn_output.h"

#define PART_MIN (64 * 1024)
#define AHEAD_MAX (256 * 1024) /* output not yet read by the client */

/* ---- suspending ---- */

static void link_suspended(struct request *request)
{
    struct worker *worker = request->conn->worker;
    assert(!request->is_suspended);
    request->is_suspended = true;
    LIST_INSERT_HEAD(&worker->suspended, request, of_suspended);
}

static void unlink_suspended(struct request *request)
{
    if (!request->is_suspended)
        return;
    request->is_suspended = false;
    LIST_REMOVE(request, of_suspended);
}

void reply_stream_resume(struct request *request)
{
    if (!request->is_suspended)
        return;
    unlink_suspended(request);
    store_resume(&request->store);
}

void reply_stream_pulse(struct worker *worker)
{
    struct request *next = LIST_FIRST(&worker->suspended);
    for (struct request *request; (request = next) != NULL;) {
        next = LIST_NEXT(request, of_suspended);
        if (!store_has_waiters(&request->store))
            continue;
        request->awaited_ms += REPLY_STREAM_PULSE_MS;
        if (request->awaited_ms < REPLY_STREAM_PATIENCE_MS)
            continue;
        request->is_hurried = true;
        reply_stream_resume(request);
    }
}

/* ---- parts ---- */

static bool may_leave(struct call *call, const struct request *request)
{
    return call == &request->call && request->is_read && request->store.scope == STORE_SCOPE_KEYS &&
           !request->discard && call->session->reply_mode == SESSION_REPLY_ON &&
           request->reader_count == 0 && call->reply->len == request->reply_start;
}

static bool is_ahead(const struct conn *conn)
{
    return conn->output_bytes > (client_memory_is_short(conn->worker) ? 0 : AHEAD_MAX);
}

bool reply_stream_is_heard(const struct conn *conn)
{
    return conn->transport != NULL && !conn->kill;
}

static enum store_result pass_on(struct request *request, struct resp_writer *part)
{
    struct conn *conn = request->conn;
    uint64_t shown = store_shown(request->call.txn);
    assert(conn->worker->output.len == 0 && STAILQ_FIRST(&conn->requests) == request);
    request->is_withheld = conn_withholds(conn, shown);
    if (request->is_withheld)
        return STORE_REFUSED;
    if (shown > conn->shown)
        conn->shown = shown;
    request->is_streamed = conn->is_streaming = true;
    conn->streamed_bytes += part->len;
    conn_output_take(conn, part, 0);
    conn_mark_ready(conn);
    return STORE_OK;
}

enum store_result reply_stream_suspend(struct request *request)
{
    unlink_suspended(request);
    link_suspended(request);
    return store_suspend(request->call.txn);
}

bool reply_stream_holds_back(const struct request *request)
{
    const struct conn *conn = request->conn;
    return request->is_read && request->state == REQUEST_RUNNING && !request->is_hurried &&
           request->store.scope == STORE_SCOPE_KEYS && client_memory_is_short(conn->worker) &&
           reply_stream_is_heard(conn) &&
           (STAILQ_FIRST(&conn->requests) != request || is_ahead(conn));
}

enum store_result call_step(struct call *call, struct resp_writer *out)
{
    struct request *request = request_of_call(call);
    struct conn *conn = request->conn;
    unlink_suspended(request);
    if (out->failed)
        return STORE_NO_MEMORY;
    if (!may_leave(call, request) || request->state != REQUEST_RUNNING)
        return store_step(call->txn);
    if (!reply_stream_is_heard(conn))
        return STORE_CANCELLED;
    bool is_first = STAILQ_FIRST(&conn->requests) == request,
         is_short = client_memory_is_short(conn->worker);
    enum store_result result = STORE_OK;
    if (is_first && out->len >= (is_short ? COLLECT_SHORT_BYTES : PART_MIN))
        result = pass_on(request, out);
    if (result != STORE_OK)
        return result;
    bool is_enough =
        is_first ? request->is_streamed && is_ahead(conn) : out->len >= (is_short ? 1 : AHEAD_MAX);
    return is_enough && !request->is_hurried ? reply_stream_suspend(request)
                                             : store_step(call->txn);
}

enum store_result call_pass_on(struct call *call, struct resp_writer *out,
                               const struct store_item *item, uint64_t offset)
{
    struct request *request = request_of_call(call);
    struct conn *conn = request->conn;
    struct store_reader *reader;
    unlink_suspended(request);
    if (item->version == 0 || !may_leave(call, request))
        return STORE_ABSENT;
    if (request->state != REQUEST_RUNNING)
        return store_step(call->txn);
    if (!reply_stream_is_heard(conn))
        return STORE_CANCELLED;
    if (STAILQ_FIRST(&conn->requests) != request)
        return request->is_hurried ? STORE_ABSENT : reply_stream_suspend(request);
    enum store_result result = store_reader_open(call->txn, item, offset, &reader);
    if (result != STORE_OK)
        return result;
    resp_bulk_header(out, item->length - offset);
    if (out->failed)
        return STORE_NO_MEMORY;
    result = pass_on(request, out);
    if (result != STORE_OK)
        return result; /* the transaction closes the reader */
    store_reader_keep(reader);
    conn->streamed_bytes += item->length - offset;
    conn_output_reader(conn, reader, item->length - offset);
    resp_raw(out, "\r\n", 2);
    return STORE_OK;
}

bool call_is_in_vain(struct call *call)
{
    struct request *request = request_of_call(call);
    if (call != &request->call ||
        !atomic_load_explicit(&call->server->stopping, memory_order_relaxed))
        return false;
    if (reply_stream_is_heard(request->conn))
        conn_kill(request->conn);
    return true;
}

/* ---- the connection ---- */

bool reply_stream_is_stuck(const struct conn *conn)
{
    const struct request *first = STAILQ_FIRST(&conn->requests);
    return first != NULL && first->is_suspended;
}

void reply_stream_turn(struct conn *conn)
{
    if (reply_stream_is_stuck(conn) && !is_ahead(conn))
        reply_stream_resume(STAILQ_FIRST(&conn->requests));
}

void reply_stream_end(struct request *request)
{
    unlink_suspended(request);
}

void reply_stream_answered(struct request *request)
{
    struct conn *conn = request->conn;
    if (!request->is_streamed)
        return;
    conn->is_streaming = false;
    conn->streamed_bytes = 0;
    conn_output_release(conn);
}
