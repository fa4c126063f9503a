#include "server/exec/reply_stream.h"

#include <assert.h>

#include "server/net/client_memory.h"
#include "server/exec/collector.h"

#define PART_MIN (64 * 1024)
#define AHEAD_MAX (256 * 1024) /* of the client's reading */

/* ---- resting ---- */

static void link_resting(struct request *request)
{
    struct worker *worker = request->conn->worker;
    request->rests = true;
    LIST_INSERT_HEAD(&worker->resting, request, of_resting);
}

static void unlink_resting(struct request *request)
{
    if (!request->rests)
        return;
    request->rests = false;
    LIST_REMOVE(request, of_resting);
}

void outflow_rouse(struct request *request)
{
    if (!request->rests)
        return;
    unlink_resting(request);
    store_rouse(&request->store);
}

void outflow_pulse(struct worker *worker)
{
    struct request *next = LIST_FIRST(&worker->resting);
    for (struct request *request; (request = next) != NULL;) {
        next = LIST_NEXT(request, of_resting);
        if (!store_is_awaited(&request->store))
            continue;
        request->awaited_ms += OUTFLOW_PULSE_MS;
        if (request->awaited_ms < OUTFLOW_PATIENCE_MS)
            continue;
        request->is_hurried = true;
        outflow_rouse(request);
    }
}

/* ---- parts ---- */

static bool may_leave(struct call *call, const struct request *request)
{
    return call == &request->call && request->is_read && request->store.scope == STORE_SCOPE_KEYS &&
           !request->discard && call->session->reply_mode == SESSION_REPLY_ON &&
           request->stream_count == 0 && call->reply->len == request->reply_start;
}

static bool is_ahead(const struct conn *conn)
{
    return conn->output_bytes > (client_memory_is_short(conn->worker) ? 0 : AHEAD_MAX);
}

bool outflow_is_heard(const struct conn *conn)
{
    return conn->transport != NULL && !conn->kill;
}

static enum store_result pass_on(struct request *request, struct resp_writer *part)
{
    struct conn *conn = request->conn;
    uint64_t shown = store_shown(request->call.txn);
    assert(conn->worker->output.len == 0);
    request->is_unkept = conn_never_shows(conn, shown);
    if (request->is_unkept)
        return STORE_REFUSED;
    if (shown > conn->shown)
        conn->shown = shown;
    request->flows = conn->is_flowing = true;
    conn->flowed_bytes += part->len;
    conn_output_take(conn, part);
    conn_attend(conn);
    return STORE_OK;
}

enum store_result outflow_rest(struct request *request)
{
    unlink_resting(request);
    link_resting(request);
    return store_rest(request->call.txn);
}

bool outflow_holds_back(const struct request *request)
{
    const struct conn *conn = request->conn;
    return request->is_read && request->state == REQUEST_RUNNING && !request->is_hurried &&
           request->store.scope == STORE_SCOPE_KEYS && client_memory_is_short(conn->worker) &&
           outflow_is_heard(conn) && (conn->requests != request || is_ahead(conn));
}

enum store_result call_step(struct call *call, struct resp_writer *said)
{
    struct request *request = request_of_call(call);
    struct conn *conn = request->conn;
    unlink_resting(request);
    if (said->failed)
        return STORE_NO_MEMORY;
    if (!may_leave(call, request) || request->state != REQUEST_RUNNING)
        return store_step(call->txn);
    if (!outflow_is_heard(conn))
        return STORE_CANCELLED;
    bool is_first = conn->requests == request, is_short = client_memory_is_short(conn->worker);
    enum store_result result = STORE_OK;
    if (is_first && said->len >= (is_short ? GATHER_SHORT_BYTES : PART_MIN))
        result = pass_on(request, said);
    if (result != STORE_OK)
        return result;
    bool is_enough =
        is_first ? request->flows && is_ahead(conn) : said->len >= (is_short ? 1 : AHEAD_MAX);
    return is_enough && !request->is_hurried ? outflow_rest(request) : store_step(call->txn);
}

enum store_result call_pass_on(struct call *call, struct resp_writer *said,
                               const struct store_item *item, uint64_t offset)
{
    struct request *request = request_of_call(call);
    struct conn *conn = request->conn;
    struct store_stream *stream;
    unlink_resting(request);
    if (item->version == 0 || !may_leave(call, request))
        return STORE_ABSENT;
    if (request->state != REQUEST_RUNNING)
        return store_step(call->txn);
    if (!outflow_is_heard(conn))
        return STORE_CANCELLED;
    if (conn->requests != request)
        return request->is_hurried ? STORE_ABSENT : outflow_rest(request);
    enum store_result result = store_stream_open(call->txn, item, offset, &stream);
    if (result != STORE_OK)
        return result;
    resp_bulk_header(said, item->length - offset);
    if (said->failed)
        return STORE_NO_MEMORY;
    result = pass_on(request, said);
    if (result != STORE_OK)
        return result; /* the transaction closes the stream */
    store_stream_keep(stream);
    conn->flowed_bytes += item->length - offset;
    conn_output_stream(conn, stream, item->length - offset);
    resp_raw(said, "\r\n", 2);
    return STORE_OK;
}

bool call_is_in_vain(struct call *call)
{
    struct request *request = request_of_call(call);
    if (call != &request->call ||
        !atomic_load_explicit(&call->server->stopping, memory_order_relaxed))
        return false;
    if (outflow_is_heard(request->conn))
        conn_kill(request->conn);
    return true;
}

/* ---- the connection ---- */

bool outflow_is_stuck(const struct conn *conn)
{
    return conn->requests != NULL && conn->requests->rests;
}

void outflow_turn(struct conn *conn)
{
    if (outflow_is_stuck(conn) && !is_ahead(conn))
        outflow_rouse(conn->requests);
}

void outflow_end(struct request *request)
{
    unlink_resting(request);
}

void outflow_answered(struct request *request)
{
    struct conn *conn = request->conn;
    if (!request->flows)
        return;
    conn->is_flowing = false;
    conn->flowed_bytes = 0;
    conn_output_release(conn);
}
