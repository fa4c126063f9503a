#include "outflow.h"

#include <assert.h>

#include "client_memory.h"

#define PART_MIN (64 * 1024)
#define AHEAD_MAX (256 * 1024) /* of the client's reading */

/* ---- resting ---- */

static void link_resting(struct request *request)
{
    struct worker *worker = request->conn->worker;
    request->rests = true;
    request->previous_resting = NULL;
    request->next_resting = worker->resting;
    if (worker->resting != NULL)
        worker->resting->previous_resting = request;
    worker->resting = request;
}

static void unlink_resting(struct request *request)
{
    if (!request->rests)
        return;
    request->rests = false;
    if (request->next_resting != NULL)
        request->next_resting->previous_resting = request->previous_resting;
    if (request->previous_resting != NULL)
        request->previous_resting->next_resting = request->next_resting;
    else
        request->conn->worker->resting = request->next_resting;
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
    struct request *next = worker->resting;
    for (struct request *request; (request = next) != NULL;) {
        next = request->next_resting;
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
    return call == &request->call && request->state == REQUEST_RUNNING && request->is_read &&
           request->store.scope == STORE_SCOPE_KEYS && !request->discard &&
           call->session->reply_mode == SESSION_REPLY_ON && request->stream_count == 0 &&
           call->reply->len == request->reply_start;
}

static bool is_ahead(const struct conn *conn)
{
    return conn->output_bytes > (client_memory_is_short(conn->worker) ? 0 : AHEAD_MAX);
}

static void pass_on(struct request *request, struct resp_writer *part)
{
    struct conn *conn = request->conn;
    uint64_t shown = store_shown(request->call.txn);
    assert(conn->worker->output.len == 0);
    if (shown > conn->shown)
        conn->shown = shown;
    request->flows = conn->is_flowing = true;
    conn_output_take(conn, part);
    conn_attend(conn);
}

enum store_result call_step(struct call *call, struct resp_writer *said)
{
    struct request *request = request_of_call(call);
    struct conn *conn = request->conn;
    unlink_resting(request);
    if (said->failed)
        return STORE_NO_MEMORY;
    if (said->len < PART_MIN || !may_leave(call, request))
        return store_step(call->txn);
    if (conn->transport == NULL || conn->kill)
        return STORE_NO_MEMORY; /* nobody hears of it */
    bool is_first = conn->requests == request;
    bool is_enough = !is_first && said->len >= AHEAD_MAX;
    if (is_first)
        pass_on(request, said);
    if (request->is_hurried || !(is_enough || is_ahead(conn)))
        return store_step(call->txn);
    link_resting(request);
    return store_rest(call->txn);
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
    conn_output_release(conn);
}
