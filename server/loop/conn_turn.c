/*
 * A connection's life cycle, its input and its turns.
 *
 *     conn_open -> open -> (kill, or the last reply sent) -> closed -> freed
 *
 * A connection gets a turn when its transport is ready or it is on worker->ready_conns. During its
 * turn it may use the state that its worker's connections share: the input block, the parser and
 * worker->output.
 *
 * Invariants:
 * 1. Between turns the shared parser is at the start of a command and worker->output is empty.
 * 2. A connection without unfinished input holds no input memory: bytes that could not be parsed or
 *    run yet are in its own block; it has a `parser` of its own only in the middle of a command.
 * 3. Bytes that a request holds are not moved: a block with other holders is only appended to.
 * 4. While conn->upload is set, the parser is in the middle of its command, which is in the
 *    connection's own block, with room for the CRLF after the value.
 * 5. While there is a spool, the transport is read only into it, and after the connection's own
 *    input only the spool is parsed.
 * 6. A closed connection has transport NULL, is not in worker->conns, and is freed when none of its
 *    requests is running and it is on no list.
 */
#include "server/loop/conn_turn.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/input_buffer.h"
#include "server/exec/blocked.h"
#include "server/net/client_memory.h"
#include "server/config/log.h"
#include "server/exec/read_ahead.h"
#include "server/exec/multi.h"
#include "server/exec/pause.h"
#include "server/exec/reply_stream.h"
#include "server/exec/runner.h"
#include "server/exec/tracking.h"
#include "server/net/spool.h"
#include "server/net/transport.h"
#include "server/exec/upload.h"
#include "server/pubsub/pubsub.h"
#include "server/net/conn_output.h"

#define READ_BLOCK (256 * 1024)   /* the shared block: several reads, parts of which may be held */
#define READ_MAX (64 * 1024)      /* one read into it */
#define AT_ONCE_MAX (1024 * 1024) /* room for a long command, before so much of it has come */
#define READ_SHORT (4 * 1024)     /* likewise, when client memory is short */
#define HEAD_MAX 1024             /* after a long value: likely the head of another such command */

/* Longer commands, if known to be, are read into the connection's own block. */
#define SHARED_WANTED_MAX (32 * 1024)

/* ---- life cycle ---- */

static void forget_client(struct worker *worker)
{
    atomic_fetch_sub_explicit(&worker->connection_count, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&worker->server->connected_clients, 1, memory_order_relaxed);
}

static void on_ready(void *arg, unsigned ready);

void conn_open(struct worker *worker, struct transport *transport)
{
    struct conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        transport->ops->close(transport);
        forget_client(worker);
        return;
    }
    struct server *server = worker->server;
    conn->worker = worker;
    conn->transport = transport;
    transport->ready = on_ready;
    transport->arg = conn;
    conn->session = (struct session){
        .id = atomic_fetch_add_explicit(&server->next_session_id, 1, memory_order_relaxed) + 1,
        .conn = conn,
        .resp_version = 2,
        .authenticated = !config_has_password(&server->config),
        .created_ms = worker_now(worker),
        .last_active_ms = worker_now(worker),
    };
    STAILQ_INIT(&conn->requests);
    STAILQ_INIT(&conn->output);
    STAILQ_INIT(&conn->held);
    LIST_INSERT_HEAD(&worker->conns, conn, of_worker);
    transport->ops->want(transport, TRANSPORT_READABLE);
}

/* Returns a parser between commands to the worker. */
static void give_back_parser(struct conn *conn)
{
    struct worker *worker = conn->worker;
    if (worker->spare_parser_count < WORKER_SPARE_PARSERS && conn->parser->args_capacity <= 1024) {
        worker->spare_parsers[worker->spare_parser_count++] = conn->parser;
    } else {
        resp_parser_free(conn->parser);
        free(conn->parser);
    }
    conn->parser = NULL;
}

static void drop_input(struct conn *conn)
{
    input_buffer_release(conn->input);
    conn->input = NULL;
    conn->input_start = conn->input_end = 0;
}

static void close_conn(struct conn *conn)
{
    if (conn->transport == NULL)
        return;
    if (conn->has_corked)
        conn_output_uncork(conn->worker);
    struct transport *transport = conn->transport;
    conn_give_up_channel(conn);
    upload_abandon(conn->upload, transport);
    conn->upload = NULL;
    conn->transport = NULL;
    LIST_REMOVE(conn, of_worker);
    pubsub_leave(conn);
    tracking_leave(conn);
    pause_leave(conn);
    forget_client(conn->worker);
    if (conn->waiter != NULL)
        blocked_end(conn, BLOCKED_TIMEOUT);
    /* Close the socket last: a client that sees the close and then pushes must not lose the
     * element to this connection. */
    transport->ops->close(transport);
    conn_output_free(conn);
    drop_input(conn);
    spool_free(conn->spool);
    conn->spool = NULL;
    if (conn->parser != NULL) {
        resp_parser_free(conn->parser);
        free(conn->parser);
        conn->parser = NULL;
    }
    runner_abandon(conn);
    client_memory_note_leaving(conn);
    conn_mark_ready(conn);
}

static void free_closed(struct conn *conn)
{
    runner_abandon(conn);
    client_memory_note_leaving(conn);
    if (conn->running > 0 || conn->is_undurable || conn->is_put_off || conn->is_ready)
        return;
    assert(STAILQ_EMPTY(&conn->requests) && STAILQ_EMPTY(&conn->output) && conn->input == NULL);
    free(conn->refusal);
    multi_end(&conn->session);
    assert(conn->block_bytes == 0);
    client_memory_forget(conn);
    free(conn->session.name);
    free(conn->session.lib_name);
    free(conn->session.lib_ver);
    free(conn);
}

/* ---- input ---- */

static void set_limits(struct conn *conn, struct resp_parser *parser)
{
    const struct config *config = &conn->worker->server->config;
    uint64_t bulk_max = (uint64_t)config_number(config, CONFIG_PROTO_MAX_BULK_LEN);
    struct resp_limits limits = {
        .bulk_max = bulk_max < UINT32_MAX
                        ? bulk_max
                        : UINT32_MAX, /* keys at most as long as can be represented */
        .count_max = INT32_MAX,
        .unauthenticated = !conn->session.authenticated && config_has_password(config),
    };
    resp_parser_set_limits(parser, limits);
}

/* Takes commands from bytes [start, end); returns the start of the first one not taken. */
static size_t take_commands(struct conn *conn, struct input_buffer *block, size_t start, size_t end)
{
    struct resp_parser *parser = conn->parser != NULL ? conn->parser : conn->worker->parser;
    bool was_authenticated = conn->session.authenticated;
    enum resp_status status = conn->parser != NULL ? RESP_INCOMPLETE : RESP_COMPLETE;
    struct read_ahead look;
    read_ahead_begin(&look, conn->worker, &conn->session, conn->parser != NULL);
    set_limits(conn, parser);
    while (start < end && runner_may_take(conn)) {
        const struct ahead *next;
        status = read_ahead_next(&look, parser, block->data + start, end - start, &next);
        if (status != RESP_COMPLETE)
            break;
        bool is_inline = block->data[start] != '*';
        start += next->consumed;
        if (next->count > 0)
            start += read_ahead_skip(
                &look, runner_take(conn, is_inline ? NULL : block, next, read_ahead_left(&look)));
        if (conn->session.authenticated != was_authenticated) {
            was_authenticated = conn->session.authenticated;
            set_limits(conn, parser);
            read_ahead_forget(&look);
        }
    }
    if (status == RESP_INVALID) {
        runner_refuse(conn, parser->error);
        resp_parser_free(parser);
        resp_parser_init(parser, (struct resp_limits){0});
        start = end;
    }
    if (status == RESP_INCOMPLETE && conn->parser == NULL) {
        conn->parser = parser;
        conn->worker->parser = NULL;
    } else if (status != RESP_INCOMPLETE && conn->parser != NULL) {
        give_back_parser(conn);
    }
    return start;
}

static struct input_buffer *new_block(struct conn *conn, size_t capacity)
{
    return input_buffer_new(&conn->block_bytes, capacity);
}

/* Moves the unfinished bytes to a block of the connection's own, except for `taken` of them after
 * the first `head`. */
static void move_input(struct conn *conn, const char *data, size_t head, size_t taken, size_t len)
{
    struct input_buffer *block = NULL;
    if (len > taken && (block = new_block(conn, len - taken + UPLOAD_TAIL)) == NULL)
        conn_kill(conn);
    if (block != NULL) {
        memcpy(block->data, data, head);
        memcpy(block->data + head, data + head + taken, len - head - taken);
    }
    drop_input(conn);
    conn->input = block;
    conn->input_end = block != NULL ? len - taken : 0;
}

/* If a long value is missing that may be uploaded to the store, starts the upload. */
static bool begin_upload(struct conn *conn, const char *data, size_t len)
{
    if (!upload_start(conn, data, len))
        return false;
    size_t head = conn->upload->head;
    move_input(conn, data, head, upload_take(conn->upload, data + head, len - head), len);
    return true;
}

/* Keeps unfinished bytes of the shared block. */
static void keep_input(struct conn *conn, const char *data, size_t len)
{
    if (len == 0 && conn->input == NULL)
        return;
    if (!begin_upload(conn, data, len))
        move_input(conn, data, len, 0, len);
}

static bool ensure_parser(struct worker *worker)
{
    if (worker->parser != NULL)
        return true;
    if (worker->spare_parser_count > 0) {
        worker->parser = worker->spare_parsers[--worker->spare_parser_count];
        return true;
    }
    worker->parser = malloc(sizeof *worker->parser);
    if (worker->parser != NULL)
        resp_parser_init(worker->parser, (struct resp_limits){0});
    return worker->parser != NULL;
}

/* Takes the commands in the connection's own block. */
static void take_own(struct conn *conn)
{
    if (!ensure_parser(conn->worker)) {
        conn_kill(conn);
        return;
    }
    conn->input_start = take_commands(conn, conn->input, conn->input_start, conn->input_end);
    if (conn->input_start == conn->input_end)
        drop_input(conn);
    else
        begin_upload(conn, conn->input->data + conn->input_start,
                     conn->input_end - conn->input_start);
}

/* Room for one read in the shared block, after the bytes that requests hold. */
static struct input_buffer *shared_block(struct worker *worker)
{
    struct input_buffer *block = worker->input;
    if (block != NULL && block->holders == 1)
        block->used = 0;
    if (block != NULL && block->capacity - block->used >= READ_MAX)
        return block;
    input_buffer_release(block);
    worker->input = input_buffer_new(&worker->input_bytes, READ_BLOCK);
    return worker->input;
}

/* False: nothing was read. */
static bool note_read(struct conn *conn, ssize_t count)
{
    if (count == TRANSPORT_AGAIN)
        return false;
    if (count == TRANSPORT_CLOSED) {
        conn->input_ended = true;
        return false;
    }
    conn->session.last_active_ms = worker_now(conn->worker);
    return true;
}

/* Reads to the end of the unfinished bytes, which are copied to the shared block: they are few. */
static void read_shared(struct conn *conn)
{
    struct input_buffer *block = shared_block(conn->worker);
    if (block == NULL) {
        conn_kill(conn);
        return;
    }
    size_t start = block->used, kept = conn->input_end - conn->input_start;
    assert(kept < READ_MAX);
    size_t most = READ_MAX - kept;
    if (conn->expects_long && most > HEAD_MAX)
        most = HEAD_MAX;
    if (client_memory_is_short(conn->worker) && most > READ_SHORT)
        most = READ_SHORT;
    ssize_t count = conn_read(conn, block->data + start + kept, most);
    if (!note_read(conn, count))
        return;
    conn->expects_long = false;
    if (kept > 0)
        memcpy(block->data + start, conn->input->data + conn->input_start, kept);
    size_t end = start + kept + (size_t)count;
    size_t rest = take_commands(conn, block, start, end);
    keep_input(conn, block->data + rest, end - rest);
    if (block->holders > 1)
        block->used = end;
}

/* Twice what has arrived: a client that announces much may not send it. */
static size_t next_capacity(size_t len, size_t wanted)
{
    size_t more = len / 2 > READ_MAX ? len / 2 : READ_MAX;
    if (wanted <= len + more)
        return len + more;
    size_t most = len > AT_ONCE_MAX ? 2 * len : len + AT_ONCE_MAX;
    return wanted < most ? wanted : most;
}

/* Gives the connection a block of its own with room for its unfinished command. False: there is
 * none, or none yet. */
static bool grow_own(struct conn *conn)
{
    struct input_buffer *block = conn->input;
    size_t len = conn->input_end - conn->input_start;
    size_t wanted = conn->parser->wanted;
    size_t left = block->capacity - conn->input_end;
    if (left >= READ_MAX || (conn->input_start + wanted <= block->capacity && left > 0))
        return true;
    size_t capacity = next_capacity(len, wanted);
    if (!client_memory_allows(conn, wanted)) {
        conn_kill(conn);
        return false;
    }
    bool may_move = block->holders == 1 && conn->input_start == 0;
    if (client_memory_defers(conn, may_move ? capacity - block->capacity : capacity))
        return false;
    if (may_move) {
        block = input_buffer_resize(block, capacity);
    } else {
        block = new_block(conn, capacity);
        if (block != NULL) {
            memcpy(block->data, conn->input->data + conn->input_start, len);
            input_buffer_release(conn->input);
        }
    }
    if (block == NULL) {
        conn_kill(conn);
        return false;
    }
    conn->input = block;
    conn->input_start = 0;
    conn->input_end = len;
    client_memory_note(conn); /* one read may fill it */
    return true;
}

static void read_own(struct conn *conn)
{
    if (!grow_own(conn))
        return;
    struct input_buffer *block = conn->input;
    size_t most = block->capacity - conn->input_end;
    if (client_memory_is_short(conn->worker) && most > READ_SHORT)
        most = READ_SHORT;
    ssize_t count = conn_read(conn, block->data + conn->input_end, most);
    if (!note_read(conn, count))
        return;
    conn->input_end += (size_t)count;
    take_own(conn);
}

/* Passes on bytes of the value that had arrived when the store had to catch up. */
static void feed_upload(struct conn *conn)
{
    struct upload *upload = conn->upload;
    if (upload->waits || upload_is_whole(upload) || conn->input == NULL)
        return;
    size_t at = conn->input_start + upload->head;
    char *rest = conn->input->data + at;
    size_t len = conn->input_end - at, taken = upload_take(upload, rest, len);
    memmove(rest, rest + taken, len - taken);
    conn->input_end -= taken;
}

static void read_upload(struct conn *conn)
{
    size_t tailed;
    feed_upload(conn);
    if (conn->upload->waits)
        return;
    assert(conn->input->capacity - conn->input_end >= UPLOAD_TAIL);
    char *tail = conn->input->data + conn->input_end;
    if (!note_read(conn, upload_read(conn->upload, tail, &tailed)))
        return;
    conn->input_end += tailed;
    if (tailed > 0)
        take_own(conn);
}

static void check_query_limit(struct conn *conn)
{
    struct worker *worker = conn->worker;
    int64_t limit = config_number(&worker->server->config, CONFIG_CLIENT_QUERY_BUFFER_LIMIT);
    uint64_t bytes = conn->input_end - conn->input_start + conn->session.queued_bytes;
    if (limit <= 0 || bytes <= (uint64_t)limit)
        return;
    counter_add(&worker->counters.query_buffer_closed, 1);
    log_line(&worker->server->log, CONFIG_LOG_WARNING,
             "Client %s closed: its commands are over client-query-buffer-limit",
             conn_peer_name(conn));
    conn_kill(conn);
}

static void read_input(struct conn *conn)
{
    if (!ensure_parser(conn->worker)) {
        conn_kill(conn);
        return;
    }
    size_t kept = conn->input_end - conn->input_start;
    if (kept > 0 && conn->upload == NULL &&
        upload_is_referred_to(conn)) /* the reference had not arrived yet */
        begin_upload(conn, conn->input->data + conn->input_start, kept);
    bool is_long = conn->parser != NULL && conn->parser->wanted > SHARED_WANTED_MAX;
    if (conn->upload != NULL && !upload_is_whole(conn->upload))
        read_upload(conn);
    else if (is_long || kept > SHARED_WANTED_MAX)
        read_own(conn);
    else
        read_shared(conn);
    check_query_limit(conn);
}

/* ---- turns ---- */

/* The parser can continue with the connection's own block. This may be so in the middle of a
 * command, too: if memory became short after the bytes were requested, also by other workers'
 * clients, they have arrived but were not parsed. */
static bool has_unparsed(const struct conn *conn)
{
    if (conn->input == NULL || (conn->upload != NULL && !upload_is_whole(conn->upload)))
        return false;
    return conn->parser == NULL || conn->input_end - conn->input_start >= conn->parser->wanted;
}

static bool can_go_on(const struct conn *conn)
{
    return has_unparsed(conn) && runner_may_take(conn);
}

/* The transport is not read while earlier input is not taken. */
static bool can_read(const struct conn *conn)
{
    return !conn->input_ended && (conn->input == NULL || conn->parser != NULL) &&
           !conn->awaits_memory && (conn->upload == NULL || !conn->upload->waits) &&
           runner_may_take(conn);
}

/* Spooled input may be taken now. */
static bool can_go_back(const struct conn *conn)
{
    return conn->spool != NULL && can_read(conn) && spool_is_ready(conn->spool);
}

/* The transport is read for the parser, not for the spool. */
static bool can_receive(const struct conn *conn)
{
    return conn->spool == NULL && can_read(conn);
}

/* A value is received by reference, directly to its place in the store. */
static bool is_filling(const struct conn *conn)
{
    const struct transport_ops *ops = conn->transport->ops;
    return conn->upload != NULL && ops->fills != NULL && ops->fills(conn->transport);
}

/* Such a value is received to its end, also if its command cannot be taken yet. */
static bool can_fill(const struct conn *conn)
{
    return is_filling(conn) && !conn->upload->waits && !conn->input_ended;
}

static bool can_begin_spool(const struct conn *conn)
{
    return !conn->input_ended && !can_read(conn) && !is_filling(conn) && runner_is_stuck(conn);
}

static bool can_set_aside(const struct conn *conn)
{
    return conn->spool != NULL ? spool_has_room(conn->spool) : can_begin_spool(conn);
}

static bool awaits_input(const struct conn *conn)
{
    if (conn->spool != NULL)
        return spool_is_open(conn->spool);
    return can_receive(conn) || can_fill(conn) || can_begin_spool(conn);
}

static void set_aside(struct conn *conn)
{
    size_t room;
    if (conn->spool == NULL)
        conn->spool = spool_new(conn);
    char *to = conn->spool != NULL ? spool_room(conn->spool, &room) : NULL;
    if (to == NULL) {
        conn_kill(conn);
        return;
    }
    ssize_t count = conn_receive(conn, to, room);
    if (count == TRANSPORT_CLOSED)
        spool_end(conn->spool);
    else if (note_read(conn, count))
        spool_received(conn->spool, (size_t)count);
}

static void settle_spool(struct conn *conn)
{
    if (conn->spool == NULL)
        return;
    if (!spool_is_empty(conn->spool) || (spool_has_ended(conn->spool) && !conn->input_ended)) {
        spool_settle(conn->spool, can_read(conn));
        return;
    }
    spool_free(conn->spool);
    conn->spool = NULL;
}

/* The client sends no more, whether all its input was taken or not. */
static bool has_ended(const struct conn *conn)
{
    return conn->input_ended || conn->peer_has_gone ||
           (conn->spool != NULL && spool_has_ended(conn->spool));
}

/* Its next command ends its wait, or begins, when other clients or the time say so. */
static bool waits_for_others(const struct conn *conn)
{
    return conn->waiter != NULL || conn->is_paused;
}

/* All replies have been sent, or cannot be. A client that has closed its sending side and does not
 * read is not waited for. */
static bool is_over(const struct conn *conn)
{
    if (conn->kill || (has_ended(conn) && waits_for_others(conn)))
        return true;
    if (reply_stream_is_stuck(conn) && conn->input_ended && conn->send_blocked)
        return true;
    if (conn->running > 0 || (!conn->session.close_after_reply && !conn->input_ended))
        return false;
    if (!STAILQ_EMPTY(&conn->output))
        return conn->send_blocked && conn->input_ended;
    return conn->session.close_after_reply ||
           (STAILQ_EMPTY(&conn->requests) && !has_unparsed(conn));
}

unsigned conn_wants(const struct conn *conn)
{
    unsigned wanted = awaits_input(conn) ? TRANSPORT_READABLE : 0;
    if (conn->send_blocked || conn->send_yielded || can_go_back(conn))
        wanted |= TRANSPORT_WRITABLE;
    return wanted;
}

/* After a part of the spooled input other connections get their turn; then the transport, still
 * writable, calls again. */
static void end_turn(struct conn *conn)
{
    bool has_gone_back = false;
    if (conn->upload != NULL)
        feed_upload(conn);
    for (;;) {
        runner_advance(conn);
        if (can_go_on(conn)) {
            take_own(conn);
        } else if (!has_gone_back && can_go_back(conn)) {
            read_input(conn);
            has_gone_back = true;
        }
        if (conn->session.tracker != NULL)
            tracker_turn(conn->session.tracker);
        conn_output_flush(conn);
        if (conn->kill || (!can_go_on(conn) && !runner_can_advance(conn) &&
                           (has_gone_back || !can_go_back(conn))))
            break;
    }
    settle_spool(conn);
    if (is_over(conn)) {
        close_conn(conn);
        return;
    }
    reply_stream_turn(conn);
    bool has_changed = client_memory_note(conn);
    conn->transport->ops->want(conn->transport, conn_wants(conn));
    if (has_changed)
        client_memory_keep_bound(conn->worker);
}

static void on_ready(void *arg, unsigned ready)
{
    struct conn *conn = arg;
    conn->peer_has_gone |= (ready & TRANSPORT_ENDED) != 0;
    if ((ready & TRANSPORT_WRITABLE) != 0)
        conn->send_blocked = conn->send_yielded = false;
    if ((ready & TRANSPORT_READABLE) != 0 && !STAILQ_EMPTY(&conn->requests))
        runner_advance(conn); /* CLIENT REPLY, if read now, does not concern what has ended */
    if ((ready & TRANSPORT_READABLE) != 0 && !conn->kill) {
        if (can_receive(conn) || can_fill(conn))
            read_input(conn);
        else if (can_set_aside(conn))
            set_aside(conn);
    }
    end_turn(conn);
}

void conn_turn(struct conn *conn)
{
    if (conn->transport != NULL)
        end_turn(conn);
    else
        free_closed(conn);
}

/* The client waits for a reply or for messages. */
static bool is_waiting(const struct conn *conn)
{
    const struct pubsub_session *pubsub = &conn->session.pubsub;
    return conn->request_count > 0 || pubsub_is_subscriber(pubsub) ||
           pubsub->count[PUBSUB_MONITOR] > 0;
}

/* If a waiting client has sent more than is read, the end of its input would go unnoticed. */
static void look_after_waiter(struct conn *conn)
{
    const struct transport_ops *ops = conn->transport->ops;
    if (!waits_for_others(conn) || can_read(conn) || ops->has_ended == NULL)
        return;
    conn->peer_has_gone |= ops->has_ended(conn->transport);
    if (conn->peer_has_gone)
        conn_mark_ready(conn);
}

void conn_tick(struct conn *conn)
{
    struct worker *worker = conn->worker;
    int64_t timeout = config_number(&worker->server->config, CONFIG_TIMEOUT);
    int64_t idle_ms = worker_now(worker) - conn->session.last_active_ms;
    if (timeout > 0 && idle_ms > timeout * 1000 && !is_waiting(conn)) {
        log_line(&worker->server->log, CONFIG_LOG_VERBOSE, "Closing idle client %s",
                 conn_peer_name(conn));
        conn_kill(conn);
    } else if (conn->soft_limit_since_ms != 0) {
        conn_mark_ready(conn);
    }
    if (conn->spool != NULL && !conn->kill)
        spool_tick(conn->spool, idle_ms);
    look_after_waiter(conn);
    if (conn->session.invalidation_bytes > 0)
        conn_mark_ready(conn); /* its memory is counted, and its output limit is checked */
}

bool conn_settled(const struct conn *conn)
{
    return (conn->running == 0 || conn->waiter != NULL || reply_stream_is_stuck(conn)) &&
           !conn->is_undurable;
}
