/*
 * The runner: the queue of a connection's commands. If none is in flight, a command runs at once
 * and writes its reply directly to the connection's output; only commands that wait are queued:
 *
 *     runner_take --> executor_start --> finished: answer
 *          |            '-----> STORE_WAIT: queue, running  --done--> finished
 *          '-> may not start: queue, parked  --runner_advance--> start
 *
 * Invariants:
 * 1. conn->requests holds the commands not yet answered, in order of arrival; the parked ones come
 *    after all that have started.
 * 2. A command that starts while others run is a read beside reads, or follows pipeline.h's rule 2.
 * 3. conn->running counts the commands started and not finished; when it is 0, everything before
 *    the first parked request is finished.
 * 4. Replies are sent in queue order: a finished request after a running one keeps its reply.
 * 5. While requests are queued, no reply is written ahead of theirs.
 * 6. A request whose value is still being written to the device is parked, and so is one that a
 *    pause holds.
 */
#include "server/exec/runner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/net/client_memory.h"
#include "server/core/commandstats.h"
#include "server/config/log.h"
#include "server/exec/blocked.h"
#include "server/exec/executor.h"
#include "server/exec/nested.h"
#include "server/exec/pause.h"
#include "server/exec/pipeline.h"
#include "server/exec/reply_stream.h"
#include "server/exec/request_reply.h"
#include "server/exec/request.h"
#include "server/exec/batch.h"
#include "server/exec/runner_reply.h"
#include "server/exec/tracker.h"
#include "server/exec/upload.h"
#include "server/core/call.h"
#include "server/net/conn_output.h"
#include "storage/base/checks.h"
#include "storage/base/queue.h"

#define IN_FLIGHT_SHORT 2               /* per connection, when client memory is short */
#define LONG_REQUESTS_BYTES (16 * 1024) /* a request this long is then the only one in flight */
#define REQUEST_MEMORY 2048             /* approximately: a request and the store's state for it */
#define KEY_MEMORY 64                   /* approximately, of each key */
#define COPY_MAX (16 * 1024)            /* longer arguments are held in their shared block */
#define COPY_REPLY_MAX (16 * 1024) /* longer replies of queued requests are moved, not copied */

/* ---- answering ---- */

static void account(struct request *request)
{
    struct call *call = &request->call;
    struct worker *worker = request->conn->worker;
    size_t len = call->reply->len - request->reply_start;
    const char *reply = len > 0 ? call->reply->data + request->reply_start : NULL;
    bool is_error = len > 0 && reply[0] == '-';
    if (is_error && call->nested_calls != NULL && call->nested_calls->error_is_counted) {
        commandstats_add_failure(worker, call->command);
        is_error = false;
    }
    for (uint32_t left = is_error ? batch_length(call) : 0; left > 0; left--)
        commandstats_add_error(worker, request->meant, reply, len, request->rejected);
    if (call->command != NULL)
        commandstats_add_lookups(worker, call->hits, call->misses);
    if (call->nested_calls != NULL && request->result == STORE_OK)
        nested_calls_account(call->nested_calls, worker);
}

/* Outputs a reply with value readers: its bytes in pieces, the readers between them. */
static void put_out_readers(struct request *request)
{
    struct conn *conn = request->conn;
    struct resp_writer *output = &conn->worker->output;
    struct resp_writer *reply = request->call.reply;
    size_t at = request->reply_start;
    conn_output_settle(conn, reply == output ? at : output->len);
    for (uint32_t i = 0; i < request->reader_count; i++) {
        struct reply_stream *reader = &request->readers[i];
        conn_output_piece(conn, reply->data + at, reader->offset - at);
        conn_output_reader(conn, reader->reader, reader->length);
        at = reader->offset;
    }
    conn_output_piece(conn, reply->data + at, reply->len - at);
    request->reader_count = 0;
    resp_truncate(output, 0);
}

static void put_out(struct request *request)
{
    struct conn *conn = request->conn;
    struct resp_writer *output = &conn->worker->output;
    struct resp_writer *reply = request->call.reply;
    uint32_t count = request->is_streamed ? 0 : batch_length(&request->call);
    if (reply->len == request->reply_start)
        return;
    if (request->reader_count > 0) {
        put_out_readers(request);
    } else if (reply != output && reply->len > COPY_REPLY_MAX) {
        conn_output_take(conn, reply, count);
    } else {
        if (reply != output)
            resp_raw(output, reply->data, reply->len);
        conn_output_count(conn, count);
    }
}

/* CLIENT REPLY SKIP itself is not answered either. */
static bool is_silenced(struct request *request)
{
    struct session *session = request->call.session;
    const struct command *command = request->call.command;
    if (command != NULL && (command->flags & CMD_PUSHES) != 0 && !request->rejected)
        return false;
    if (session->reply_mode == SESSION_REPLY_SKIP_NEXT) {
        session->reply_mode = SESSION_REPLY_SKIP;
        return true;
    }
    /* CLIENT REPLY ON is answered even if it was to be skipped. */
    bool is_heard = session->reply_mode == SESSION_REPLY_ON && request->call.command != NULL &&
                    request->call.command->role == ROLE_CLIENT_REPLY;
    return (request->discard && !is_heard) || session->reply_mode == SESSION_REPLY_OFF;
}

/* A part of its reply has been sent, and the rest is missing. */
static bool is_cut_short(const struct request *request)
{
    if (!request->is_streamed || (request->result == STORE_OK && !request->is_withheld))
        return false;
    if (request->result != STORE_CANCELLED)
        log_line(&request->call.server->log, CONFIG_LOG_WARNING,
                 "Client %s closed: a collection could not be read while it was being sent",
                 conn_peer_name(request->conn));
    return true;
}

static void answer_failure(struct request *request)
{
    struct call *call = &request->call;
    request_drop_readers(request, request->result == STORE_OK);
    resp_truncate(call->reply, request->reply_start);
    if (request->result == STORE_CANCELLED)
        return; /* no error: its client is gone */
    for (uint32_t left = batch_length(call); left > 0; left--) {
        if (request->is_withheld)
            resp_error(call->reply, CONN_UNKEPT_TEXT);
        else
            reply_failure(call, request->result);
    }
}

/* The oldest request of its connection is finished: outputs its reply. */
static void answer(struct request *request)
{
    struct conn *conn = request->conn;
    struct call *call = &request->call;
    if (request->result == STORE_OK && conn_withholds(conn, request->store.shown))
        request->is_withheld = true;
    else if (request->store.shown > conn->shown)
        conn->shown = request->store.shown;
    if (request->result != STORE_OK || request->is_withheld)
        answer_failure(request);
    account(request);
    if (call->reply->failed || is_cut_short(request)) {
        conn_kill(conn);
        request_drop_readers(request, true);
    } else if (call->session->reply_mode != SESSION_REPLY_ON || request->discard) {
        if (is_silenced(request)) {
            request_drop_readers(request, true);
            resp_truncate(call->reply, request->reply_start);
        } else {
            put_out(request);
        }
    } else {
        put_out(request);
    }
    reply_stream_answered(request);
}

/* ---- the queue ---- */

static uint64_t argument_bytes(const struct request *request)
{
    size_t count = batch_length(&request->call) * request->call.argc;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += request->call.argv[i].len;
    return bytes;
}

/* Memory of a request, without its reply, collected results and the connection's own blocks. */
static uint64_t memory_of_request(const struct request *request)
{
    uint64_t bytes = REQUEST_MEMORY + request->stack_bytes +
                     request->argv_capacity * sizeof *request->argv +
                     request->key_capacity * (sizeof *request->keys + KEY_MEMORY);
    if (request->waiter != NULL)
        bytes += blocked_memory(request->waiter);
    const struct nested_calls *nested_calls = request->call.nested_calls;
    if (nested_calls != NULL && request->named->role == ROLE_EXEC) /* scripts count their own */
        bytes += nested_calls->bytes - nested_calls->block_bytes;
    if (request->block != NULL && !conn_owns(request->conn, request->block))
        bytes += argument_bytes(request);
    return bytes;
}

static void enqueue(struct conn *conn, struct request *request)
{
    request->known = NULL; /* their owners may change them now */
    request->source = NULL;
    batch_drop(&request->call);
    STAILQ_INSERT_TAIL(&conn->requests, request, of_conn);
    conn->request_count++;
    request->bytes = memory_of_request(request);
    conn->request_bytes += request->bytes;
    if (request->state == REQUEST_PARKED && conn->first_parked == NULL)
        conn->first_parked = request;
}

/* EXEC has the queued commands from its start on. */
static void recount(struct conn *conn, struct request *request)
{
    uint64_t now = memory_of_request(request);
    conn->request_bytes += now - request->bytes;
    request->bytes = now;
}

static struct request *dequeue(struct conn *conn)
{
    struct request *request = STAILQ_FIRST(&conn->requests);
    STAILQ_REMOVE_HEAD(&conn->requests, of_conn);
    conn->request_count--;
    conn->answered++;
    conn->request_bytes -= request->bytes;
    return request;
}

static void answer_finished(struct conn *conn)
{
    const struct request *first;
    while ((first = STAILQ_FIRST(&conn->requests)) != NULL && first->state == REQUEST_FINISHED) {
        struct request *request = dequeue(conn);
        conn->held_bytes -= request->reply.len;
        answer(request);
        request_free(request);
    }
}

static bool may_start(const struct conn *conn, const struct request *request)
{
    return !conn->is_held && upload_is_settled(request->call.upload) &&
           pipeline_may_start(conn, request);
}

/* Starts a held request; its reply stays in its own buffer until its turn. */
static void start_held(struct request *request)
{
    struct call *call = &request->call;
    call->reply = &request->reply;
    call->reply->version = call->session->resp_version;
    enum store_result result = executor_start(request);
    conn_note_command(request->conn, request->named);
    if (result == STORE_WAIT) {
        executor_send_broadcast(request);
        return;
    }
    request->state = REQUEST_FINISHED;
    request->result = result;
    request->conn->held_bytes += request->reply.len;
    worker_visit_woken(request->conn->worker);
}

static bool is_stranger(const struct conn *conn)
{
    return !conn->session.authenticated && config_has_password(&conn->worker->server->config);
}

static bool output_is_full(const struct conn *conn)
{
    uint64_t unsent = conn->output_bytes + conn->held_bytes + conn->worker->output.len;
    if (unsent <= CONN_STRANGER_OUTPUT_BOUND)
        return false;
    return unsent > CONN_OUTPUT_BOUND || client_memory_is_short(conn->worker) || is_stranger(conn);
}

static bool is_ending(const struct conn *conn)
{
    return conn->transport == NULL || conn->kill || conn->session.close_after_reply ||
           atomic_load_explicit(&conn->worker->server->stopping, memory_order_relaxed);
}

/* Of its requests, and of a block that they share with input not taken yet. */
static uint64_t bytes_in_flight(const struct conn *conn)
{
    bool is_apart = conn->input != NULL && conn->input->holders == 1;
    uint64_t input = is_apart ? conn->input->capacity : 0;
    return conn->request_bytes + conn->block_bytes - input;
}

bool runner_may_take(const struct conn *conn)
{
    uint32_t most = !client_memory_is_short(conn->worker)         ? RUNNER_IN_FLIGHT_MAX
                    : bytes_in_flight(conn) < LONG_REQUESTS_BYTES ? IN_FLIGHT_SHORT
                                                                  : 1;
    return conn->request_count < most && !conn->is_held &&
           conn->unsettled_uploads < RUNNER_UPLOADS_MAX * UPLOAD_WEIGHT && !output_is_full(conn) &&
           !conn->refused && !is_ending(conn) && !client_memory_holds(conn->worker) &&
           !(conn->has_published && pubsub_throttles(conn->worker));
}

bool runner_is_stuck(const struct conn *conn)
{
    return !conn->refused && !is_ending(conn) && !is_stranger(conn) &&
           (conn->waiter != NULL || output_is_full(conn) || reply_stream_is_stuck(conn));
}

/* Parks a request, or starts it beside the running ones. */
static void take_behind(struct conn *conn, struct request *request)
{
    struct call *call = &request->call;
    call->reply = &request->reply;
    const struct command *command = reply_unless_found(&request->call, request->named);
    resp_truncate(call->reply, 0); /* errors are found again when it starts */
    bool declared =
        command != NULL && command_has_keys(command) && executor_declare_keys(request, command);
    request->is_read = command == NULL || pipeline_is_read(command);
    request->line = declared ? pipeline_ordering_key(request, command) : 0;
    if (conn->first_parked == NULL && may_start(conn, request) && !pause_takes(request)) {
        start_held(request);
    } else if (declared && !client_memory_is_short(conn->worker)) {
        store_prefetch(conn->worker->store, request->keys, call->key_count);
    }
    enqueue(conn, request);
}

/* A request that waits gets a reply buffer of its own, with the bytes written so far: if only the
 * commit waits, the command is not run again. */
static void take_reply_along(struct request *request)
{
    struct call *call = &request->call;
    struct resp_writer *shared = call->reply;
    size_t start = request->reply_start;
    if (shared == &request->reply)
        return;
    call->reply = &request->reply;
    call->reply->version = shared->version;
    if (shared->len > start)
        resp_raw(call->reply, shared->data + start, shared->len - start);
    resp_truncate(shared, start);
    for (uint32_t i = 0; i < request->reader_count; i++)
        request->readers[i].offset -= start;
    request->reply_start = 0;
}

/* No command is in flight: the reply is written directly to the output. Returns the number of
 * commands taken: a batch. */
static uint32_t take_first(struct conn *conn, struct request *request, struct input_buffer *block)
{
    struct call *call = &request->call;
    struct resp_writer *output = &conn->worker->output;
    call->reply = output;
    output->version = conn->session.resp_version;
    request->reply_start = output->len;
    enum store_result result = executor_start(request);
    uint32_t taken = batch_length(call);
    conn_note_command(conn, request->named);
    if (result != STORE_WAIT) {
        request->result = result;
        answer(request);
        request_free(request);
        worker_visit_woken(conn->worker);
        return taken;
    }
    take_reply_along(request);
    if (request->block == NULL)
        request_hold(request, block);
    enqueue(conn, request);
    executor_send_broadcast(request);
    return taken;
}

/* Many such requests could hold as many shared blocks, each with a few bytes in it. */
static bool may_stay(const struct request *request, bool is_first)
{
    bool blocks = request->named != NULL && (request->named->flags & CMD_BLOCKING) != 0;
    return (blocks || !is_first) && argument_bytes(request) < COPY_MAX;
}

uint32_t runner_take(struct conn *conn, struct input_buffer *block, const struct ahead *ahead,
                     uint32_t more)
{
    if (conn->session.tracker != NULL)
        tracker_turn(conn->session.tracker);
    struct request *request = request_new(conn);
    if (request == NULL) {
        conn_kill(conn);
        return 0;
    }
    request->call.argc = ahead->count;
    request->call.argv = ahead->args;
    request->named = ahead->command;
    request->known = ahead->key;
    request->source = block;
    request->call.upload = upload_pass_on(conn);
    bool is_first = conn->request_count == 0 && upload_is_settled(request->call.upload) &&
                    !pause_takes(request);
    bool is_own = request_reserve_arguments(request, ahead->count);
    if (is_own && (block == NULL || (!conn_owns(conn, block) && may_stay(request, is_first))))
        is_own = request_hold_copy(request);
    if (is_own && is_first && request->block == NULL)
        is_own = request_offer_row(request, ahead + 1, more);
    if (!is_own) {
        request_free(request);
        conn_kill(conn);
        return 0;
    }
    if (is_first)
        return take_first(conn, request, block) - 1;
    if (request->block == NULL)
        request_hold(request, block);
    take_behind(conn, request);
    return 0;
}

static void write_refusal(struct conn *conn, const char *text)
{
    conn->worker->output.version = conn->session.resp_version;
    resp_errorf(&conn->worker->output, "ERR Protocol error: %s", text);
    conn_output_count(conn, 1);
    conn->session.close_after_reply = true;
}

void runner_refuse(struct conn *conn, const char *text)
{
    counter_add(&conn->worker->counters.protocol_errors, 1);
    counter_add(&conn->worker->counters.error_replies, 1);
    conn->refused = true;
    if (conn->request_count == 0) {
        write_refusal(conn, text);
        return;
    }
    conn->refusal = strdup(text);
    if (conn->refusal == NULL)
        conn_kill(conn);
}

bool runner_can_advance(const struct conn *conn)
{
    return conn->first_parked != NULL && !output_is_full(conn) && !is_ending(conn) &&
           may_start(conn, conn->first_parked);
}

/* Asserts invariants 1 and 3, and that no finished request is first. */
static void runner_check(const struct conn *conn)
{
    const struct request *request = STAILQ_FIRST(&conn->requests), *last = NULL;
    uint32_t count = 0, running = 0;
    bool is_parked = false;
    assert(request == NULL || request->state != REQUEST_FINISHED);
    STAILQ_FOREACH (request, &conn->requests, of_conn) {
        is_parked = is_parked || request == conn->first_parked;
        assert((request->state == REQUEST_PARKED) == is_parked && request->conn == conn);
        running += request->state == REQUEST_RUNNING;
        count++;
        last = request;
    }
    assert(STAILQ_LAST(&conn->requests, request, of_conn) == last);
    assert(conn->request_count == count);
    assert(conn->running == running && is_parked == (conn->first_parked != NULL));
}

void runner_advance(struct conn *conn)
{
    answer_finished(conn);
    while (runner_can_advance(conn) && !pause_takes(conn->first_parked)) {
        struct request *request = conn->first_parked;
        conn->first_parked = STAILQ_NEXT(request, of_conn);
        start_held(request);
        recount(conn, request);
        answer_finished(conn);
    }
    if (conn->refusal != NULL && conn->request_count == 0) {
        write_refusal(conn, conn->refusal);
        free(conn->refusal);
        conn->refusal = NULL;
    }
    if (storage_checks_enabled())
        runner_check(conn);
}

void runner_abandon(struct conn *conn)
{
    struct requests abandoned = STAILQ_HEAD_INITIALIZER(abandoned);
    STAILQ_CONCAT(&abandoned, &conn->requests);
    conn->first_parked = NULL;
    conn->request_count = 0;
    conn->request_bytes = conn->held_bytes = 0;
    for (struct request *request; (request = STAILQ_FIRST(&abandoned)) != NULL;) {
        STAILQ_REMOVE_HEAD(&abandoned, of_conn);
        if (request->state == REQUEST_RUNNING) {
            enqueue(conn, request);
            reply_stream_resume(request);
            continue;
        }
        request_drop_readers(request,
                             request->state == REQUEST_FINISHED && request->result == STORE_OK);
        request_free(request);
    }
}
