/*
 * The output of a connection: a queue of segments, each a run of bytes or a value reader of the
 * store, followed by worker->output while the connection has its turn.
 *
 * Invariants:
 * 1. Bytes are sent in the order they were written; worker->output is empty between turns.
 * 2. Under appendfsync always a segment is sent only when all commits up to its `shown` are
 *    durable; a connection whose first segment must wait for that is on worker->undurable.
 * 3. When the first segment must wait for durability, the last one is sealed: later replies, which
 *    may show later commits, are not merged into it.
 * 4. At most one piece of one value reader per connection is in memory.
 * 5. A part of a piece that the transport sends from its place (is_placing) holds back all output
 *    after it, and the reader is kept until that is done, beyond the connection's end if necessary.
 * 6. While a reply is streamed, or the client's script is busy, pushes are in a second queue, held.
 * 7. output_bytes counts CONN_READER_COST for a reader, and its piece in memory. While memory is
 *    short and the client takes nothing, the piece is given back, to be loaded again.
 * 8. After a failed write to the journal, output that shows commits that will never be durable is
 *    replaced: each reply by an error, messages by nothing. Where single replies cannot be told
 *    apart (PIECES), the connection is closed.
 * 9. A connection that has_corked has one entry in worker->corked, which may be sent as it is, and
 *    nothing in its first queue. Between rounds there are no such entries.
 *
 * Short replies to sockets are sent together at the end of the round: to wake a sleeping client is
 * half the cost of sending, and the first reply does it for all.
 */
#include "server/net/conn_output.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "server/net/client_memory.h"
#include "server/core/commandstats.h"
#include "server/net/publication.h"
#include "server/config/log.h"
#include "server/net/transport.h"
#include "storage/base/checks.h"
#include "storage/base/queue.h"

#define SEGMENT_MIN (16 * 1024)
#define SHORT_SEGMENT_MIN 512 /* between readers; of messages, which may be in very many queues */
#define SHARED_MIN (4 * 1024) /* longer publications are not copied into queues */
#define LATE_MAX (16 * 1024)  /* longer replies are sent at once */
#define SEND_VECTORS 64
#define CHECKED_MOST 256              /* segments that conn_output_check() walks over */
#define SEND_MAX (1024 * 1024)        /* per system call */
#define PIECES UINT32_MAX             /* of replies: parts of them, or a reader */
#define PUSHES (UINT32_MAX - 1)       /* no replies: messages */
#define KEPT_OUTPUT_MAX (1024 * 1024) /* a larger shared buffer is freed after use */
#define UNCOUNTED_OUTPUT (16 * 1024)  /* fits the buffer that Redis does not count */
_Static_assert(LATE_MAX <= WORKER_LATE_BYTES, "a corked reply fits the worker's buffer");

struct segment {
    STAILQ_ENTRY(segment) link;
    uint64_t shown;
    bool is_sealed;
    uint32_t replies; /* number of whole replies; or PIECES, or PUSHES */

    char *data; /* bytes [sent, len) are unsent; NULL: a reader */
    size_t sent, len, capacity;
    struct publication *publication; /* the owner of `data`; NULL: the segment itself */

    struct store_reader *reader;
    const struct iovec *vectors; /* the piece in memory, `sent` bytes of it are sent */
    int vector_count;
    size_t piece_len, piece_cost;
    struct transport_place place; /* offset: of what is sent next */
    bool is_placing, is_dropped;  /* is_dropped: the end of placing frees it */
    struct conn *conn;
};

static uint64_t segment_cost(const struct segment *segment)
{
    if (segment->reader == NULL)
        return segment->len - segment->sent;
    return CONN_READER_COST + segment->piece_cost;
}

static void send_corked(struct conn *conn);

static void note_shared(struct conn *conn, uint64_t more)
{
    conn->shared_bytes += more;
    conn->worker->shared_bytes += more;
}

static void begin_sharing(struct conn *conn, struct publication *publication)
{
    note_shared(conn, publication->len);
    if (atomic_fetch_add(&publication->queued, 1) == 0)
        client_memory_note_published(conn->worker->server, (int64_t)publication->len);
}

/* `unsent` bytes of it were not sent. */
static void end_sharing(struct conn *conn, struct publication *publication, uint64_t unsent)
{
    assert(unsent <= conn->shared_bytes && unsent <= publication->len);
    note_shared(conn, -unsent);
    if (atomic_fetch_sub(&publication->queued, 1) == 1)
        client_memory_note_published(conn->worker->server, -(int64_t)publication->len);
}

static void append(struct conn *conn, struct segment *segment)
{
    if (conn->has_corked)
        send_corked(conn);
    segment->shown = conn->shown;
    STAILQ_INSERT_TAIL(&conn->output, segment, link);
    conn->output_bytes += segment_cost(segment);
    conn->segment_count++;
    if (segment->publication != NULL)
        begin_sharing(conn, segment->publication);
}

static void free_segment(struct segment *segment)
{
    if (segment->reader != NULL)
        store_reader_close(segment->reader);
    if (segment->publication != NULL)
        publication_release(segment->publication);
    else
        free(segment->data);
    free(segment);
}

/* Also a partly sent one: its unsent bytes are still counted. */
static void drop_first(struct conn *conn)
{
    struct segment *segment = STAILQ_FIRST(&conn->output);
    assert(conn->segment_count > 0 && conn->output_bytes >= segment_cost(segment));
    conn->output_bytes -= segment_cost(segment);
    if (segment->publication != NULL)
        end_sharing(conn, segment->publication, segment_cost(segment));
    conn->segment_count--;
    STAILQ_REMOVE_HEAD(&conn->output, link);
    segment->is_dropped = segment->is_placing;
    if (!segment->is_placing)
        free_segment(segment);
}

/* Swaps the queue to be sent and the one held back. */
static void exchange_queues(struct conn *conn)
{
    struct segments before = STAILQ_HEAD_INITIALIZER(before);
    STAILQ_CONCAT(&before, &conn->output);
    STAILQ_CONCAT(&conn->output, &conn->held);
    STAILQ_CONCAT(&conn->held, &before);
}

void conn_output_free(struct conn *conn)
{
    assert(!conn->has_corked);
    STAILQ_CONCAT(&conn->output, &conn->held);
    while (!STAILQ_EMPTY(&conn->output))
        drop_first(conn);
    assert(conn->output_bytes == 0 && conn->shared_bytes == 0 && conn->segment_count == 0);
}

static bool append_new(struct conn *conn, const char *data, size_t len, size_t room,
                       uint32_t replies)
{
    struct segment *segment = calloc(1, sizeof *segment);
    if (segment == NULL)
        return false;
    segment->capacity = len < room ? room : len;
    segment->data = malloc(segment->capacity);
    if (segment->data == NULL) {
        free(segment);
        return false;
    }
    memcpy(segment->data, data, len);
    segment->len = len;
    segment->replies = replies;
    append(conn, segment);
    return true;
}

static bool waits_for_journal(const struct conn *conn, uint64_t shown)
{
    struct server *server = conn->worker->server;
    return config_number(&server->config, CONFIG_APPENDFSYNC) == STORE_SYNC_ALWAYS &&
           shown > store_durable(server->store);
}

/* Never merge a reply that must wait for the journal into a segment that need not: it would hold
 * the earlier bytes back. */
static bool may_merge(const struct conn *conn, const struct segment *last, size_t len,
                      uint32_t replies)
{
    return !last->is_sealed && last->data != NULL && last->capacity - last->len >= len &&
           (last->replies == PUSHES) == (replies == PUSHES) &&
           (conn->shown <= last->shown || !waits_for_journal(conn, conn->shown));
}

/* `room`: capacity of a new segment, for later bytes. */
static void add_bytes(struct conn *conn, const char *data, size_t len, size_t room,
                      uint32_t replies)
{
    struct segment *last = STAILQ_LAST(&conn->output, segment, link);
    if (len == 0)
        return;
    if (last != NULL && may_merge(conn, last, len, replies)) {
        assert(last->publication == NULL); /* other queues have the same bytes */
        memcpy(last->data + last->len, data, len);
        last->len += len;
        if (last->replies == PIECES || replies == PIECES)
            last->replies = PIECES;
        else if (replies != PUSHES)
            last->replies += replies;
        if (conn->shown > last->shown)
            last->shown = conn->shown;
        conn->output_bytes += len;
    } else if (!append_new(conn, data, len, room, replies)) {
        conn_kill(conn);
    }
}

void conn_output_piece(struct conn *conn, const char *data, size_t len)
{
    add_bytes(conn, data, len, SHORT_SEGMENT_MIN, PIECES);
}

static void add_shared(struct conn *conn, struct publication *publication)
{
    struct segment *segment = calloc(1, sizeof *segment);
    if (segment == NULL) {
        conn_kill(conn);
        return;
    }
    publication_hold(publication);
    segment->publication = publication;
    segment->data = (char *)publication->bytes;
    segment->len = segment->capacity = publication->len;
    segment->replies = PUSHES;
    const struct segment *head = STAILQ_LAST(&conn->output, segment, link);
    if (head != NULL && head->shown > conn->shown)
        conn->shown = head->shown; /* both are sent, or neither */
    append(conn, segment);
}

static void add_push(struct conn *conn, const struct resp_slice *head, int head_count,
                     struct publication *publication)
{
    for (int i = 0; i < head_count; i++)
        add_bytes(conn, head[i].data, head[i].len, SHORT_SEGMENT_MIN, PUSHES);
    if (publication != NULL && publication->len < SHARED_MIN)
        add_bytes(conn, publication->bytes, publication->len, SHORT_SEGMENT_MIN, PUSHES);
    else if (publication != NULL)
        add_shared(conn, publication);
}

static void on_reader_ready(void *conn)
{
    conn_mark_ready(conn);
}

static void on_placed(struct transport_place *place)
{
    struct segment *segment = (struct segment *)((char *)place - offsetof(struct segment, place));
    segment->is_placing = false;
    if (segment->is_dropped) {
        free_segment(segment);
        return;
    }
    segment->conn->send_blocked = false;
    conn_mark_ready(segment->conn);
}

void conn_output_reader(struct conn *conn, struct store_reader *reader, uint64_t length)
{
    struct segment *segment = calloc(1, sizeof *segment);
    if (segment == NULL) {
        store_reader_close(reader);
        conn_kill(conn);
        return;
    }
    segment->reader = reader;
    segment->replies = PIECES;
    segment->conn = conn;
    segment->place = (struct transport_place){.total = length, .done = on_placed};
    store_reader_on_ready(reader, on_reader_ready, conn);
    append(conn, segment);
}

static void empty_output(struct worker *worker)
{
    resp_truncate(&worker->output, 0);
    worker->output_replies = 0;
}

void conn_output_count(struct conn *conn, uint32_t count)
{
    uint32_t before = conn->worker->output_replies;
    conn->worker->output_replies = count == 0 || before == PIECES ? PIECES : before + count;
}

void conn_output_settle(struct conn *conn, size_t len)
{
    struct worker *worker = conn->worker;
    add_bytes(conn, worker->output.data, len, SEGMENT_MIN, worker->output_replies);
    worker->output_replies = 0;
}

static void hand_over(struct conn *conn, struct resp_writer *writer, uint32_t replies)
{
    struct segment *segment = calloc(1, sizeof *segment);
    if (segment == NULL) {
        conn_kill(conn);
        return;
    }
    segment->data = writer->data;
    segment->len = writer->len;
    segment->capacity = writer->capacity;
    segment->replies = replies;
    resp_writer_init(writer, writer->version);
    append(conn, segment);
}

/* Moves the shared buffer's contents to the queue; a large buffer becomes a segment itself. */
static void settle(struct conn *conn)
{
    struct worker *worker = conn->worker;
    if (worker->output.len > KEPT_OUTPUT_MAX)
        hand_over(conn, &worker->output, worker->output_replies);
    else
        conn_output_settle(conn, worker->output.len);
    empty_output(worker);
}

void conn_output_push(struct conn *conn, const struct resp_slice *head, int head_count,
                      struct publication *publication)
{
    uint64_t shown = publication != NULL ? publication->shown : 0;
    assert(conn->worker->output.len == 0);
    if (conn->kill || conn->transport == NULL || conn_withholds(conn, shown))
        return;
    conn->shown = shown > conn->shown ? shown : conn->shown;
    if (conn->has_corked)
        send_corked(conn);
    bool is_held = conn->is_streaming || conn->worker->apart == conn;
    uint64_t before = conn->output_bytes;
    if (is_held)
        exchange_queues(conn);
    add_push(conn, head, head_count, publication);
    if (is_held)
        exchange_queues(conn);
    conn->worker->pushed_bytes += conn->output_bytes - before;
    conn_mark_ready(conn);
}

void conn_output_take(struct conn *conn, struct resp_writer *writer, uint32_t count)
{
    settle(conn);
    hand_over(conn, writer, count == 0 ? PIECES : count);
}

void conn_output_release(struct conn *conn)
{
    if (STAILQ_EMPTY(&conn->held))
        return;
    settle(conn);
    if (conn->has_corked)
        send_corked(conn);
    STAILQ_CONCAT(&conn->output, &conn->held);
}

/* ---- sending ---- */

bool conn_withholds(const struct conn *conn, uint64_t shown)
{
    return store_has_failed(conn->worker->server->store) && waits_for_journal(conn, shown);
}

static void exchange_bytes(struct conn *conn, struct segment *segment, struct resp_writer *bytes)
{
    assert(segment->reader == NULL && segment->publication == NULL && segment->sent == 0);
    conn->output_bytes -= segment_cost(segment);
    free(segment->data);
    segment->data = bytes->data;
    segment->len = bytes->len;
    segment->capacity = bytes->capacity;
    segment->shown = 0;
    conn->output_bytes += segment_cost(segment);
}

/* Replaces or drops the first segment, which shows commits that will never be durable. */
static void withhold(struct conn *conn)
{
    struct worker *worker = conn->worker;
    struct segment *segment = STAILQ_FIRST(&conn->output);
    if (segment->replies == PIECES || segment->sent > 0) {
        conn_kill(conn);
        return;
    }
    if (segment->replies == PUSHES) {
        drop_first(conn);
        return;
    }
    struct resp_writer errors;
    resp_writer_init(&errors, 2);
    for (uint32_t i = 0; i < segment->replies; i++) {
        size_t start = errors.len;
        resp_error(&errors, CONN_UNKEPT_TEXT);
        if (!errors.failed)
            commandstats_add_error(worker, NULL, errors.data + start, errors.len - start, false);
    }
    if (errors.failed) {
        resp_writer_free(&errors);
        conn_kill(conn);
        return;
    }
    exchange_bytes(conn, segment, &errors);
}

/* Registers the connection: its first segment must wait until its commits are durable. */
static void wait_for_journal(struct conn *conn)
{
    struct worker *worker = conn->worker;
    STAILQ_LAST(&conn->output, segment, link)->is_sealed = true;
    if (conn->is_undurable)
        return;
    conn->is_undurable = true;
    conn->undurable_next = worker->undurable;
    worker->undurable = conn;
}

static ssize_t send_vectors(struct conn *conn, const struct iovec *vectors, int count)
{
    ssize_t sent = conn->transport->ops->write(conn->transport, vectors, count);
    counter_add(&conn->worker->counters.writes, 1);
    if (sent > 0) {
        counter_add(&conn->worker->counters.output_bytes, (uint64_t)sent);
        return sent;
    }
    if (sent == TRANSPORT_CLOSED)
        conn_kill(conn);
    conn->send_blocked = true;
    return 0;
}

/* Sends bytes when the queue is empty; the unsent rest is queued. */
static void send_at_once(struct conn *conn, char *data, size_t len)
{
    struct iovec vector = {.iov_base = data, .iov_len = len};
    assert(STAILQ_EMPTY(&conn->output)); /* or these bytes would overtake the queue */
    size_t sent = (size_t)send_vectors(conn, &vector, 1);
    if (sent == len)
        return;
    conn->send_blocked = true;
    conn_output_piece(conn, data + sent, len - sent);
}

static void send_entry(struct worker *worker, struct corked_reply *corked)
{
    struct conn *conn = corked->conn;
    assert(conn->has_corked);
    conn->has_corked = false;
    corked->conn = NULL;
    send_at_once(conn, worker->corked_bytes + corked->at, corked->len);
    if (!STAILQ_EMPTY(&conn->output))
        conn_mark_ready(conn); /* the events it wants have changed */
}

/* Sends this connection's entry ahead of the others. */
static void send_corked(struct conn *conn)
{
    struct worker *worker = conn->worker;
    uint32_t i = 0;
    while (worker->corked[i].conn != conn)
        i++;
    assert(i < worker->corked_count);
    send_entry(worker, &worker->corked[i]);
}

void conn_output_uncork_all(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->corked_count; i++)
        if (worker->corked[i].conn != NULL)
            send_entry(worker, &worker->corked[i]);
    worker->corked_count = worker->corked_used = 0;
}

/* Not for a connection that may be closed soon; and replies to unauthenticated clients are counted
 * at once. */
static bool may_be_late(const struct conn *conn, size_t len)
{
    return len <= LATE_MAX && conn->transport->ops->wakes && conn->session.authenticated &&
           !conn->session.close_after_reply && !conn->input_ended;
}

static void keep_corked(struct conn *conn, const char *data, size_t len)
{
    struct worker *worker = conn->worker;
    if (worker->corked_count == WORKER_LATE_REPLIES ||
        worker->corked_used + len > WORKER_LATE_BYTES)
        conn_output_uncork(worker);
    assert(!conn->has_corked); /* one entry per connection: send_corked() looks for no more */
    memcpy(worker->corked_bytes + worker->corked_used, data, len);
    worker->corked[worker->corked_count++] =
        (struct corked_reply){conn, worker->corked_used, (uint32_t)len};
    worker->corked_used += (uint32_t)len;
    conn->has_corked = true;
}

/* The usual case: the queue is empty, and everything is sent from the shared buffer. */
static void send_directly(struct conn *conn)
{
    struct resp_writer *output = &conn->worker->output;
    if (conn->has_corked)
        send_corked(conn);
    if (!STAILQ_EMPTY(&conn->output) || conn->kill)
        return;
    if (may_be_late(conn, output->len))
        keep_corked(conn, output->data, output->len);
    else
        send_at_once(conn, output->data, output->len);
    empty_output(conn->worker);
}

static void send_bytes(struct conn *conn)
{
    struct iovec vectors[SEND_VECTORS];
    int count = 0;
    size_t total = 0;
    for (struct segment *segment = STAILQ_FIRST(&conn->output);
         segment != NULL && segment->data != NULL && count < SEND_VECTORS && total < SEND_MAX &&
         !waits_for_journal(conn, segment->shown);
         segment = STAILQ_NEXT(segment, link)) {
        vectors[count].iov_base = segment->data + segment->sent;
        vectors[count].iov_len = segment->len - segment->sent;
        total += vectors[count++].iov_len;
    }
    size_t sent = (size_t)send_vectors(conn, vectors, count);
    conn->send_blocked = sent < total;
    assert(sent <= total); /* only segments that were sent are dropped */
    while (sent > 0) {
        struct segment *segment = STAILQ_FIRST(&conn->output);
        size_t part = segment->len - segment->sent;
        if (part > sent) {
            segment->sent += sent;
            conn->output_bytes -= sent;
            if (segment->publication != NULL)
                note_shared(conn, -(uint64_t)sent);
            return;
        }
        drop_first(conn);
        sent -= part;
    }
}

static int remaining_vectors(const struct segment *segment, struct iovec vectors[SEND_VECTORS])
{
    size_t skip = segment->sent;
    int count = 0;
    for (int i = 0; i < segment->vector_count && count < SEND_VECTORS; i++) {
        struct iovec vector = segment->vectors[i];
        if (skip >= vector.iov_len) {
            skip -= vector.iov_len;
            continue;
        }
        vectors[count].iov_base = (char *)vector.iov_base + skip;
        vectors[count++].iov_len = vector.iov_len - skip;
        skip = 0;
    }
    return count;
}

static void set_piece(struct conn *conn, size_t len, size_t cost)
{
    struct segment *segment = STAILQ_FIRST(&conn->output);
    conn->output_bytes += cost - segment->piece_cost;
    segment->piece_cost = cost;
    segment->piece_len = len;
    segment->sent = 0;
}

/* Loads the next piece of the first segment's reader; false: none is ready, or the reader has
 * ended. */
static bool load_piece(struct conn *conn)
{
    struct segment *segment = STAILQ_FIRST(&conn->output);
    if (segment->sent < segment->piece_len)
        return true;
    enum store_result result =
        store_reader_next(segment->reader, &segment->vectors, &segment->vector_count);
    size_t len = 0;
    for (int i = 0; result == STORE_OK && i < segment->vector_count; i++)
        len += segment->vectors[i].iov_len;
    set_piece(conn, len, result == STORE_WAIT ? STORE_READER_PIECE : len);
    if (result == STORE_OK || result == STORE_WAIT)
        return len > 0;
    if (result != STORE_ABSENT) {
        log_line(&conn->worker->server->log, CONFIG_LOG_WARNING,
                 "Client %s closed: a stored value could not be read while it was being sent",
                 conn_peer_name(conn));
        conn_kill(conn);
        return false;
    }
    drop_first(conn);
    return false;
}

/* A piece is much, and very many clients may be slow at the same time. */
static void give_back_piece(struct conn *conn)
{
    struct segment *segment = STAILQ_FIRST(&conn->output);
    if (segment->reader == NULL || segment->is_placing || segment->sent == segment->piece_len ||
        !client_memory_is_short(conn->worker))
        return;
    store_reader_put_back(segment->reader, segment->sent);
    set_piece(conn, 0, 0);
}

static void note_sent(struct conn *conn, size_t sent)
{
    struct segment *segment = STAILQ_FIRST(&conn->output);
    segment->sent += sent;
    segment->place.offset += sent;
    assert(segment->sent <= segment->piece_len);
}

/* Lets the transport send a part from its place, without a copy. False: it must be written. */
static bool place_piece(struct conn *conn, const struct iovec *vectors, int count)
{
    struct transport *transport = conn->transport;
    struct segment *segment = STAILQ_FIRST(&conn->output);
    if (transport->ops->place == NULL)
        return false;
    ssize_t placed = transport->ops->place(transport, vectors, count, &segment->place);
    if (placed > 0) {
        segment->is_placing = true;
        note_sent(conn, (size_t)placed);
        counter_add(&conn->worker->counters.output_bytes, (uint64_t)placed);
    } else if (placed == TRANSPORT_AGAIN) {
        conn->send_blocked = true;
    } else if (placed == TRANSPORT_CLOSED) {
        conn_kill(conn);
    }
    return placed != 0;
}

/* False: the reader has nothing to send now. */
static bool send_piece(struct conn *conn)
{
    const struct segment *first = STAILQ_FIRST(&conn->output);
    if (first->is_placing) {
        conn->send_blocked = true;
        if (conn->transport->ops->place(conn->transport, NULL, 0, NULL) == TRANSPORT_CLOSED)
            conn_kill(conn);
        return false;
    }
    if (!load_piece(conn))
        return STAILQ_FIRST(&conn->output) != first && !conn->kill;
    struct iovec vectors[SEND_VECTORS];
    int count = remaining_vectors(first, vectors);
    if (place_piece(conn, vectors, count))
        return true;
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += vectors[i].iov_len;
    size_t sent = (size_t)send_vectors(conn, vectors, count);
    note_sent(conn, sent);
    conn->send_blocked = sent < total;
    return true;
}

/* After SEND_MAX bytes other connections get their turn; the transport, still writable, calls
 * again. */
static void send_queue(struct conn *conn)
{
    uint64_t before =
        atomic_load_explicit(&conn->worker->counters.output_bytes, memory_order_relaxed);
    const struct segment *first;
    while ((first = STAILQ_FIRST(&conn->output)) != NULL && !conn->send_blocked &&
           !conn->send_yielded && !conn->kill) {
        if (conn_withholds(conn, first->shown)) {
            withhold(conn);
            continue;
        }
        if (waits_for_journal(conn, first->shown)) {
            wait_for_journal(conn);
            return;
        }
        if (first->data != NULL)
            send_bytes(conn);
        else if (!send_piece(conn))
            return;
        uint64_t now =
            atomic_load_explicit(&conn->worker->counters.output_bytes, memory_order_relaxed);
        if (now > before)
            conn->session.last_active_ms = worker_now(conn->worker); /* the client reads */
        conn->send_yielded = now - before >= SEND_MAX && !STAILQ_EMPTY(&conn->output);
    }
    if (conn->send_blocked && !STAILQ_EMPTY(&conn->output))
        give_back_piece(conn);
}

/* ---- limits ---- */

static struct config_output_limit output_limit(const struct conn *conn)
{
    bool is_subscriber = pubsub_is_subscriber(&conn->session.pubsub);
    return config_output_limit(&conn->worker->server->config,
                               is_subscriber ? CONFIG_CLIENT_PUBSUB : CONFIG_CLIENT_NORMAL);
}

static void close_over_limit(struct conn *conn)
{
    counter_add(&conn->worker->counters.output_buffer_closed, 1);
    log_line(&conn->worker->server->log, CONFIG_LOG_WARNING,
             "Client %s closed: its unread output, or a single reply, exceeds the output buffer "
             "limit",
             conn_peer_name(conn));
    conn_kill(conn);
}

/* The output of a turn counts before any of it is sent, however fast the client reads. */
static void check_turn(struct conn *conn)
{
    uint64_t bytes = conn->output_bytes + conn->worker->output.len;
    if (bytes <= UNCOUNTED_OUTPUT || conn->kill)
        return;
    struct config_output_limit limit = output_limit(conn);
    if (limit.hard_bytes != 0 && bytes > limit.hard_bytes)
        close_over_limit(conn);
}

static void check_limit(struct conn *conn)
{
    struct config_output_limit limit = output_limit(conn);
    uint64_t bytes = conn->output_bytes + conn->session.invalidation_bytes;
    bool is_over_soft = limit.soft_bytes != 0 && bytes > limit.soft_bytes;
    int64_t now_ms = worker_now(conn->worker);
    if (!is_over_soft)
        conn->soft_limit_since_ms = 0;
    else if (conn->soft_limit_since_ms == 0)
        conn->soft_limit_since_ms = now_ms;
    bool is_corked =
        is_over_soft && now_ms - conn->soft_limit_since_ms > (int64_t)limit.soft_seconds * 1000;
    /* A streamed reply counts as a whole: without streaming, all of it would be buffered by now. */
    uint64_t most = bytes > conn->streamed_bytes ? bytes : conn->streamed_bytes;
    if (!conn->kill && (is_corked || (limit.hard_bytes != 0 && most > limit.hard_bytes)))
        close_over_limit(conn);
}

static uint64_t cost_of(const struct segments *queue, uint32_t *count)
{
    const struct segment *segment;
    uint64_t cost = 0;
    STAILQ_FOREACH (segment, queue, link) {
        cost += segment_cost(segment);
        ++*count;
    }
    return cost;
}

/* Asserts that the counters match both queues, unless these are too long for a walk. */
static void conn_output_check(const struct conn *conn)
{
    uint32_t count = 0;
    if (conn->segment_count > CHECKED_MOST)
        return;
    uint64_t cost = cost_of(&conn->output, &count) + cost_of(&conn->held, &count);
    assert(conn->output_bytes == cost && conn->segment_count == count);
    assert(!conn->has_corked || STAILQ_EMPTY(&conn->output));
}

void conn_output_flush(struct conn *conn)
{
    struct resp_writer *output = &conn->worker->output;
    if (output->failed)
        conn_kill(conn);
    check_turn(conn);
    if (conn->kill || conn->transport == NULL) {
        empty_output(conn->worker);
    } else {
        if (conn->has_corked && !may_be_late(conn, 0))
            send_corked(conn);
        if (STAILQ_EMPTY(&conn->output) && output->len > 0 && output->len <= KEPT_OUTPUT_MAX &&
            !waits_for_journal(conn, conn->shown))
            send_directly(conn);
        settle(conn);
        if (!STAILQ_EMPTY(&conn->held) && !conn->is_streaming)
            conn_output_release(conn);
        send_queue(conn);
    }
    if (!STAILQ_EMPTY(&conn->output) || conn->is_streaming || conn->session.invalidation_bytes > 0)
        check_limit(conn);
    else
        conn->soft_limit_since_ms = 0;
    conn->shown = 0;
    if (output->capacity > KEPT_OUTPUT_MAX || output->failed) {
        resp_writer_free(output);
        resp_writer_init(output, 2);
    }
    if (storage_checks_enabled())
        conn_output_check(conn);
}
