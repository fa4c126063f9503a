/*
 * The executor: runs one request, from its checks to the effects of its end. executor_start is the
 * coordinator; each of its stages may end the request early:
 *
 *     find_command     unknown command or wrong arguments: answered
 *     check_command    NOAUTH, only pub/sub allowed, OOM, BUSY: answered
 *     multi_takes      queued by MULTI
 *     stamp_request    clock and random seed, the same in all runs
 *     measure_run      counts; dispatch_command: run_without_store, or submit_to_store
 *     note_running     STORE_WAIT: the request ends later, by finish_request
 *     publish_outcome  otherwise: messages, MONITOR, SLOWLOG
 *
 * The store calls back: long_run_in_store for each run of the command, on_store_leave while the
 * request still holds its key locks, on_store_done when a request that waited has ended.
 * complete_run does what follows a transaction: a run on all keys, deferred calls, blocking.
 *
 * Invariants:
 * 1. The effects of a run are sent once, after its commit. Those of a run that fails or is repeated
 *    are dropped.
 * 2. A request to be broadcast to all workers is held before it is sent: they access it from then
 *    on.
 */
#include "server/exec/executor.h"

#include <assert.h>

#include "server/core/call.h"
#include "server/core/commandstats.h"
#include "server/core/latency.h"
#include "server/exec/blocked.h"
#include "server/exec/long_run.h"
#include "server/exec/monitor.h"
#include "server/exec/multi.h"
#include "server/exec/nested.h"
#include "server/exec/pipeline.h"
#include "server/exec/reply_stream.h"
#include "server/exec/batch.h"
#include "server/exec/runner_reply.h"
#include "server/exec/slowlog.h"
#include "server/exec/tracking.h"
#include "server/net/conn_output.h"

/* ---- checks before the run ---- */

static bool is_allowed(const struct request *request, const struct command *command)
{
    const struct call *call = &request->call;
    return call->session->authenticated || (command->flags & CMD_NO_AUTH) != 0 ||
           !config_has_password(&call->server->config);
}

/* A script is busy: on this worker, which serves other connections from inside it, or on a
 * worker that the command would have to visit. */
static bool is_held_up(const struct request *request, const struct command *command)
{
    const struct worker *worker = request->conn->worker;
    if ((command->flags & CMD_ALLOW_BUSY) != 0)
        return false;
    return worker->apart != NULL ||
           ((command->flags & CMD_ALL_WORKERS) != 0 && worker_any_script_is_busy(worker->server));
}

/* The error that keeps the command from running now; or NULL. */
static const char *refusal_of(const struct request *request, const struct command *command)
{
    if ((command->flags & CMD_DENYOOM) != 0 && store_is_over_memory(request->call.server->store))
        return "OOM command not allowed when used memory > 'maxmemory'.";
    if (!is_held_up(request, command))
        return NULL;
    const struct worker *worker = request->conn->worker;
    if (worker->apart == NULL)
        return reply_busy_text(worker->server);
    bool is_function = atomic_load_explicit(&worker->script.is_function, memory_order_relaxed);
    return is_function ? FUNCTION_BUSY_TEXT : SCRIPT_BUSY_TEXT;
}

bool executor_declare_keys(struct request *request, const struct command *command)
{
    struct call *call = &request->call;
    uint32_t count = 0;
    if (command_has_keys(command)) {
        if (!request_reserve_keys(request, call_most_keys(command, call->argc)))
            return false;
        count =
            call_table_keys(call->server->store, command, call->argc, call->argv, call->session->db,
                            request_known_key(request, command), request->keys);
    }
    call->keys = request->store.keys = request->keys;
    call->key_count = request->store.key_count = count;
    return true;
}

/* ---- running ---- */

/* The newest commit that the connection's messages may reveal. A withheld reply reveals nothing. */
static uint64_t known_with(const struct conn *conn, uint64_t shown)
{
    uint64_t known = conn->newest_shown;
    if (conn_withholds(conn, known))
        known = store_durable(conn->worker->server->store);
    return shown > known ? shown : known;
}

static void send_messages(struct request *request)
{
    const uint32_t writers = CMD_WRITE | CMD_CACHES_RESULT | CMD_NESTS;
    struct conn *conn = request->conn;
    uint64_t shown = request->store.shown;
    if (shown > conn->newest_shown && !conn_withholds(conn, shown))
        conn->newest_shown = shown;
    if (shown > conn->newest_written && (request->call.command->flags & writers) != 0)
        conn->newest_written = shown;
    if (STAILQ_EMPTY(&request->effects.messages))
        return;
    conn->has_published = true;
    pubsub_send(conn->worker, &request->effects, known_with(conn, shown));
    if (pubsub_is_subscriber(&conn->session.pubsub))
        conn_put_off(conn); /* what it tells itself comes before the replies of its next commands */
}

static void settle_variables(const struct request *request, enum store_result result)
{
    struct unsettled *unsettled = &request->conn->worker->unsettled;
    unsettled->request = NULL;
    unsettled->is_lost |= result != STORE_OK || request->wants_all;
}

/* The transaction ends, and the request still holds its key locks: its messages are therefore
 * sent before those of later writers of the keys. A command with nested commands is shown to
 * monitors later, after its deferred ones. */
static void on_store_leave(struct store_request *store_request, enum store_result result)
{
    struct request *request = (struct request *)store_request;
    if (request->may_block)
        blocked_leave(request, result);
    if (request->library_commit > request->store.shown)
        request->store.shown = request->library_commit;
    if (request->conn->worker->unsettled.request == request)
        settle_variables(request, result);
    if (result != STORE_OK || request->wants_all)
        return;
    if (request->effects.libraries.is_set)
        server_show_libraries(request->call.server, &request->effects.libraries,
                              request->store.shown);
    if (request->call.nested_calls == NULL)
        monitor_tell(request);
    if (!invalidation_is_empty(&request->reread))
        tracking_note_reread(request);
    send_messages(request);
}

/* The effects of the request's end, whether its connection is still open or not: its writes are
 * committed, or it has failed. */
static void publish_outcome(struct request *request, enum store_result result)
{
    if (result != STORE_OK) {
        if (effects_any(&request->effects))
            effects_drop(&request->effects);
        nested_calls_undo(&request->call);
    }
    monitor_tell(request);
    if (!STAILQ_EMPTY(&request->effects.lines))
        effects_write_lines(&request->effects, &request->call.server->log);
    send_messages(request);
    slowlog_note(request);
}

static void finish_request(struct request *request, enum store_result result)
{
    struct conn *conn = request->conn;
    long_run_drop(request);
    if (request->timed_from != 0)
        command_times_add(conn->worker, request->call.command,
                          commandstats_clock() - request->timed_from, request->timed_calls);
    request->timed_from = 0;
    publish_outcome(request, result);
    reply_stream_end(request);
    request->state = REQUEST_FINISHED;
    request->result = result;
    conn->held_bytes += request->reply.len;
    pipeline_note_end(conn, request);
    conn_mark_ready(conn);
}

static void complete_waiting(struct request *request, enum store_result result);

void executor_finish(struct call *call, enum store_result result)
{
    finish_request(request_of_call(call), result);
}

/* One stop of a broadcast; the message goes on to the next worker, and to the home worker last. */
static void run_broadcast_stop(struct worker *worker, struct worker_message *message)
{
    struct request *request =
        (struct request *)((char *)message - offsetof(struct request, message));
    struct call *call = request->broadcasting;
    struct worker *home = request->conn->worker;
    call->worker = worker;
    call->broadcast_last = worker == home;
    enum store_result result = call_run(call);
    if (worker == home) {
        request->broadcasting = NULL;
        if (call->outer == NULL) {
            finish_request(request, result);
            return;
        }
        nested_calls_finish_deferred(call, result);
        complete_waiting(request, STORE_OK);
        return;
    }
    assert(result == STORE_OK);
    uint32_t next = worker->index + 1;
    if (next == home->index)
        next++;
    call->broadcast_index++;
    struct server *server = call->server;
    worker_post(next < server->worker_count ? server->workers[next] : home, message);
}

void executor_send_broadcast(struct request *request)
{
    struct call *call = &request->call;
    if (request->broadcasting == NULL)
        return;
    uint32_t first = request->conn->worker->index == 0 ? 1 : 0;
    request->message.visit = run_broadcast_stop;
    worker_post(call->server->workers[first], &request->message);
}

static enum store_result begin_broadcast(struct request *request, struct call *call)
{
    call->broadcast_index = 0;
    call->broadcast_last = call->server->worker_count == 1;
    if (call->broadcast_last)
        return call_run(call);
    request->broadcasting = call;
    return STORE_WAIT;
}

/* Runs a call that needs no transaction. */
static enum store_result run_without_store(struct request *request, struct call *call)
{
    call->txn = NULL;
    call->keys = NULL;
    call->key_count = 0;
    bool broadcasts = (call->command->flags & CMD_ALL_WORKERS) != 0;
    return broadcasts ? begin_broadcast(request, call) : call_run(call);
}

/* The nested calls that were deferred until after the transaction. */
static enum store_result run_deferred_calls(struct request *request)
{
    struct nested_calls *nested_calls = request->call.nested_calls;
    for (struct call *call; (call = nested_calls_next_deferred(nested_calls)) != NULL;) {
        enum store_result result = run_without_store(request, call);
        if (result == STORE_WAIT)
            return result;
        nested_calls_finish_deferred(call, result);
    }
    return STORE_OK;
}

static enum store_result execute_anew(struct request *request)
{
    if (request->call.nested_calls != NULL)
        nested_calls_begin_anew(request->call.nested_calls);
    return store_execute(request->conn->worker->store, &request->store);
}

/* The transaction has ended. */
static enum store_result complete_run(struct request *request, enum store_result result)
{
    if (request->wants_libraries && result != STORE_WAIT) {
        request->wants_libraries = false;
        request->store.key_count++;
        result = execute_anew(request);
    }
    if (request->wants_all && result != STORE_WAIT) {
        request->wants_all = false;
        request->store.scope = STORE_SCOPE_ALL;
        result = execute_anew(request);
    }
    if (result == STORE_OK && request->call.nested_calls != NULL)
        result = run_deferred_calls(request);
    return request->may_block ? blocked_settle(request, result) : result;
}

static void complete_waiting(struct request *request, enum store_result result)
{
    result = complete_run(request, result);
    if (result == STORE_WAIT)
        executor_send_broadcast(request);
    else
        finish_request(request, result);
}

static void on_store_done(struct store_request *store_request, enum store_result result)
{
    struct worker *worker = ((struct request *)store_request)->conn->worker;
    complete_waiting((struct request *)store_request, result);
    worker_visit_woken(worker);
}

static enum store_result submit_to_store(struct request *request, const struct command *command)
{
    struct store_request *store = &request->store;
    store->scope = command_scope(command);
    if (command->declare != NULL ? !command->declare(&request->call)
                                 : !executor_declare_keys(request, command))
        return STORE_NO_MEMORY;
    store->run = long_run_in_store;
    store->done = on_store_done;
    store->leave = on_store_leave;
    store->is_wanted = request->may_block ? long_run_is_wanted : NULL;
    store->now_ms = request->call.now_ms;
    store->may_be_refused = (command->flags & CMD_ALLOW_BUSY) == 0;
    store->may_prefetch = pipeline_may_prefetch(command);
    return complete_run(request, store_execute(request->conn->worker->store, store));
}

static enum store_result dispatch_command(struct request *request, const struct command *command)
{
    if ((command->flags & CMD_BLOCKING) != 0) {
        enum store_result result = blocked_prepare(request);
        if (result != STORE_OK)
            return blocked_settle(request, result);
    }
    if ((command->flags & (CMD_ALL_WORKERS | CMD_LOCAL)) != 0) {
        enum store_result result = run_without_store(request, &request->call);
        return request->may_block ? blocked_settle(request, result) : result;
    }
    return submit_to_store(request, command);
}

/* The distribution of a command's times includes its waits, but not while it blocks: it is added to
 * at the end. */
static void add_times(struct request *request, const struct command *command, uint64_t before,
                      uint64_t began, bool is_waiting)
{
    uint32_t count = batch_length(&request->call);
    uint64_t stands_for = before < COMMAND_SAMPLE ? count : commandstats_stands_for(before);
    if (!is_waiting) {
        command_times_add(request->conn->worker, command, (commandstats_clock() - began) / count,
                          stands_for);
        return;
    }
    request->timed_from = began;
    request->timed_calls = stands_for;
}

/* Runs the command; reads the clock only for calls that are sampled. */
static enum store_result measure_run(struct request *request, const struct command *command)
{
    struct worker *worker = request->conn->worker;
    const struct call *call = &request->call;
    uint64_t before = commandstats_calls(worker, command);
    bool is_timed = commandstats_is_due(before, 1 + call->batch_left);
    uint64_t began = is_timed ? commandstats_clock() : 0;
    commandstats_add_calls(worker, command, 1);
    enum store_result result = dispatch_command(request, command);
    if (call->batch_taken > 0) {
        commandstats_add_calls(worker, command, call->batch_taken);
        call->session->command_count += call->batch_taken;
    }
    if (is_timed)
        commandstats_add_run(worker, command, before, batch_length(call),
                             commandstats_clock() - began);
    if (is_timed && (before < COMMAND_SAMPLE || commandstats_is_due(before, batch_length(call))))
        add_times(request, command, before, began, result == STORE_WAIT);
    return result;
}

/* ---- the stages ---- */

/* CLIENT REPLY SKIP silences the one command after it. */
static void take_skip(struct request *request)
{
    struct session *session = request->call.session;
    if (session->reply_mode == SESSION_REPLY_SKIP) {
        session->reply_mode = SESSION_REPLY_ON;
        request->discard = true;
    }
}

/* NULL: the request has been answered with an error. */
static const struct command *find_command(struct request *request)
{
    struct call *call = &request->call;
    const struct command *command = reply_unless_found(call, request->named);
    if (call->session->reply_mode != SESSION_REPLY_ON)
        take_skip(request);
    request->rejected = true;
    request->meant = command != NULL ? command : command_meant(call, request->named);
    request->is_withheld = false;
    call->command = command;
    call->hits = call->misses = 0;
    request->store.shown = 0;
    return command;
}

/* False: the command must not run; the error has been written. */
static bool check_command(struct request *request, const struct command *command)
{
    struct call *call = &request->call;
    if (!is_allowed(request, command)) {
        resp_error(call->reply, "NOAUTH Authentication required.");
        return false;
    }
    if (pubsub_is_bound(&call->session->pubsub) && reply_if_bound(call, command))
        return false;
    const char *refusal = refusal_of(request, command);
    if (refusal != NULL)
        resp_error(call->reply, refusal);
    return refusal == NULL;
}

const struct command *executor_look(struct request *request)
{
    struct call *call = &request->call;
    const struct command *command = reply_unless_found(call, request->named);
    bool runs = command != NULL && check_command(request, command);
    resp_truncate(call->reply, 0);
    return runs ? command : NULL;
}

/* Values that stay the same through all runs. */
static void stamp_request(struct request *request, const struct command *command)
{
    struct call *call = &request->call;
    request->rejected = false;
    request->is_read = pipeline_is_read(command);
    call->now_ms = worker_now(call->worker);
    call->random_seed = worker_random(call->worker);
    request->began_ns = slowlog_clock(call->server);
    request->caches_first = call->session->caching;
    call->session->last_command = command->name;
    call->session->command_count++;
}

static void note_running(struct request *request)
{
    request->state = REQUEST_RUNNING;
    request->line = pipeline_ordering_key(request, request->call.command);
    pipeline_note_start(request->conn, request);
    if (request->waiter != NULL) { /* monitors see it when it starts to wait */
        monitor_tell(request);
        send_messages(request);
    }
}

enum store_result executor_start(struct request *request)
{
    const struct command *command = find_command(request);
    if (command == NULL || !check_command(request, command)) {
        multi_refused(request);
        if (request->call.session->caching)
            tracking_forget_caching(request);
        return STORE_OK;
    }
    if (request->call.session->multi != NULL && multi_takes(request, command))
        return STORE_OK;
    stamp_request(request, command);
    enum store_result result = measure_run(request, command);
    if (request->call.session->caching)
        tracking_forget_caching(request);
    if (result == STORE_WAIT)
        note_running(request);
    else
        publish_outcome(request, result);
    return result;
}
