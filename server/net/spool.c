#include "server/net/spool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/net/client_memory.h"
#include "server/net/conn.h"
#include "server/config/log.h"
#include "server/net/transport.h"
#include "storage/base/array.h"
#include "storage/base/queue.h"

#define PIECE STORE_READER_PIECE
#define CHUNK_PIECES 64        /* of an upload */
#define TAIL_LEAST 4096        /* initial size */
#define TAIL_SHORT (16 * 1024) /* a tail written to the device when client memory is short */
#define PATIENCE_MS 5000       /* for a client that does not read, while the device is full */
#define CHUNK_COST 2048        /* of memory: about the store's state for it */

_Static_assert(TAIL_SHORT >= STORE_UPLOAD_SHORTEST, "a short tail is an upload");

struct chunk {
    STAILQ_ENTRY(chunk) link;
    struct store_upload *upload;
    struct store_reader *stream; /* reads the chunk; NULL: not open */
    uint64_t length, taken;      /* bytes it has; bytes read of them */
    uint64_t most;               /* its capacity */
    bool is_sealed;              /* no more is added */
};

struct spool {
    struct conn *conn;
    STAILQ_HEAD(, chunk) chunks;
    uint32_t chunk_count;
    uint64_t chunk_bytes; /* not read yet */
    const struct iovec
        *vectors; /* of the first chunk's piece, from byte vector_at of the first vector on */
    int vector_count;
    size_t vector_at;
    char *tail; /* bytes [tail_start, tail_end) of it */
    size_t tail_start, tail_end, tail_capacity;
    bool waits_to_write, waits_to_read, has_ended;
    enum store_result refusal; /* of the device; STORE_OK: none since the last read */
};

/* ---- life cycle ---- */

static void on_ready(void *arg)
{
    struct spool *spool = arg;
    spool->waits_to_write = spool->waits_to_read = false;
    conn_mark_ready(spool->conn);
}

struct spool *spool_new(struct conn *conn)
{
    struct spool *spool = calloc(1, sizeof *spool);
    if (spool == NULL)
        return NULL;
    spool->conn = conn;
    STAILQ_INIT(&spool->chunks);
    return spool;
}

static void count(struct spool *spool, uint64_t more)
{
    spool->chunk_bytes += more;
    atomic_fetch_add_explicit(&spool->conn->worker->server->spooled_bytes, more,
                              memory_order_relaxed);
}

static void drop_reader(struct spool *spool)
{
    struct chunk *chunk = STAILQ_FIRST(&spool->chunks);
    if (chunk->stream != NULL) {
        store_reader_close(chunk->stream);
        spool->waits_to_read = false; /* a closed reader does not call back */
    }
    chunk->stream = NULL;
    spool->vector_count = 0;
    spool->vector_at = 0;
}

static void drop_first(struct spool *spool)
{
    struct chunk *chunk = STAILQ_FIRST(&spool->chunks);
    drop_reader(spool);
    if (!chunk->is_sealed)
        spool->waits_to_write = false; /* nothing to wait for any more */
    store_upload_close(chunk->upload);
    count(spool, -(chunk->length - chunk->taken));
    STAILQ_REMOVE_HEAD(&spool->chunks, link);
    spool->chunk_count--;
    free(chunk);
}

void spool_free(struct spool *spool)
{
    if (spool == NULL)
        return;
    while (!STAILQ_EMPTY(&spool->chunks))
        drop_first(spool);
    assert(spool->chunk_bytes == 0 && spool->chunk_count == 0);
    free(spool->tail);
    free(spool);
}

static const char *reason_of(enum store_result result)
{
    return result == STORE_FULL        ? "the store is full"
           : result == STORE_NO_MEMORY ? "out of memory"
                                       : "the store has failed";
}

/* The spooled input is lost. */
static void fail(struct spool *spool, enum store_result result)
{
    struct conn *conn = spool->conn;
    log_line(&conn->worker->server->log, CONFIG_LOG_WARNING,
             "Client %s closed: its spooled commands could not be read: %s", conn_peer_name(conn),
             reason_of(result));
    conn_kill(conn);
}

void spool_tick(struct spool *spool, int64_t idle_ms)
{
    struct conn *conn = spool->conn;
    if (spool->refusal == STORE_OK || idle_ms <= PATIENCE_MS)
        return;
    log_line(&conn->worker->server->log, CONFIG_LOG_WARNING,
             "Client %s closed: it does not read its replies, and its further commands cannot be "
             "spooled: %s",
             conn_peer_name(conn), reason_of(spool->refusal));
    conn_kill(conn);
}

/* ---- writing ---- */

static bool is_partly_filled(const struct spool *spool)
{
    const struct chunk *last = STAILQ_LAST(&spool->chunks, chunk, link);
    return last != NULL && !last->is_sealed && last->length % PIECE != 0;
}

static size_t tail_length(const struct spool *spool)
{
    return spool->tail_end - spool->tail_start;
}

/* The last chunk is empty, with room for the tail as it is now. */
static bool is_begun(const struct spool *spool)
{
    const struct chunk *last = STAILQ_LAST(&spool->chunks, chunk, link);
    return last != NULL && !last->is_sealed && last->length == 0;
}

/* Each short tail becomes a chunk. When these take as much memory as a piece, whole pieces are
 * cheaper. */
static size_t tail_most(const struct spool *spool)
{
    bool is_short = client_memory_is_short(spool->conn->worker);
    return is_short && spool->chunk_count < PIECE / CHUNK_COST ? TAIL_SHORT : PIECE;
}

static bool tail_is_due(const struct spool *spool)
{
    return tail_length(spool) >= tail_most(spool) || is_partly_filled(spool) || is_begun(spool);
}

bool spool_has_room(const struct spool *spool)
{
    return !spool->has_ended && !spool->waits_to_write && !tail_is_due(spool);
}

bool spool_is_open(const struct spool *spool)
{
    bool is_refused = spool->refusal != STORE_OK && tail_is_due(spool);
    return !spool->has_ended && !spool->waits_to_write && !is_refused;
}

static void move_to_front(struct spool *spool)
{
    if (spool->tail_start == 0)
        return;
    memmove(spool->tail, spool->tail + spool->tail_start, tail_length(spool));
    spool->tail_end -= spool->tail_start;
    spool->tail_start = 0;
}

char *spool_room(struct spool *spool, size_t *size)
{
    if (spool->tail_end == spool->tail_capacity)
        move_to_front(spool);
    if (spool->tail_end == spool->tail_capacity) {
        size_t capacity = spool->tail_capacity > 0 ? 2 * spool->tail_capacity : TAIL_LEAST;
        if (!array_reserve(&spool->tail, &spool->tail_capacity, capacity, 1))
            return NULL;
    }
    *size = spool->tail_capacity - spool->tail_end;
    return spool->tail + spool->tail_end;
}

void spool_received(struct spool *spool, size_t len)
{
    spool->tail_end += len;
    assert(spool->tail_end <= spool->tail_capacity && spool->tail_capacity <= PIECE);
}

void spool_end(struct spool *spool)
{
    spool->has_ended = true;
}

bool spool_has_ended(const struct spool *spool)
{
    return spool->has_ended;
}

/* Adds a chunk for whole pieces, or for `len` bytes. */
static enum store_result add_chunk(struct spool *spool, size_t len)
{
    struct chunk *chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL)
        return STORE_NO_MEMORY;
    bool is_open = len == PIECE;
    chunk->most = is_open ? CHUNK_PIECES * PIECE : len;
    enum store_result result =
        store_upload_begin(spool->conn->worker->store, is_open ? STORE_UPLOAD_OPEN : len, on_ready,
                           spool, &chunk->upload);
    if (result != STORE_OK) {
        free(chunk);
        return result;
    }
    STAILQ_INSERT_TAIL(&spool->chunks, chunk, link);
    spool->chunk_count++;
    return STORE_OK;
}

/* Makes sure that the last chunk can take a tail of this length. */
static enum store_result find_chunk(struct spool *spool, size_t len)
{
    struct chunk *last = STAILQ_LAST(&spool->chunks, chunk, link);
    if (is_partly_filled(spool))
        return STORE_OK;
    if (last != NULL && !last->is_sealed) {
        if (last->most == (len == PIECE ? CHUNK_PIECES * PIECE : len))
            return STORE_OK;
        last->is_sealed = true;
    }
    return add_chunk(spool, len);
}

static size_t fill(const struct iovec *vectors, int vector_count, const char *from, size_t len)
{
    size_t filled = 0;
    for (int i = 0; i < vector_count && filled < len; i++) {
        size_t part = vectors[i].iov_len < len - filled ? vectors[i].iov_len : len - filled;
        memcpy(vectors[i].iov_base, from + filled, part);
        filled += part;
    }
    return filled;
}

static enum store_result write_tail(struct spool *spool)
{
    enum store_result result = find_chunk(spool, tail_length(spool));
    if (result != STORE_OK)
        return result;
    struct chunk *chunk = STAILQ_LAST(&spool->chunks, chunk, link);
    while (tail_length(spool) > 0) {
        const struct iovec *vectors;
        int vector_count;
        result = store_upload_space(chunk->upload, &vectors, &vector_count);
        if (result != STORE_OK)
            return result;
        size_t len =
            fill(vectors, vector_count, spool->tail + spool->tail_start, tail_length(spool));
        store_upload_filled(chunk->upload, len);
        spool->tail_start += len;
        chunk->length += len;
        count(spool, len);
    }
    spool->tail_start = spool->tail_end = 0;
    assert(chunk->length <= chunk->most); /* find_chunk() has chosen one with room for the tail */
    chunk->is_sealed = chunk->length == chunk->most;
    return STORE_OK;
}

/* The device takes no more. Whole pieces written so far stay readable; a partly filled one is lost,
 * and with it the connection. */
static void refuse(struct spool *spool, enum store_result result)
{
    struct chunk *last = STAILQ_LAST(&spool->chunks, chunk, link);
    if (is_partly_filled(spool)) {
        fail(spool, result);
        return;
    }
    spool->refusal = result;
    if (last != NULL)
        last->is_sealed = true;
}

void spool_settle(struct spool *spool, bool is_read)
{
    bool is_short = client_memory_is_short(spool->conn->worker);
    if (tail_is_due(spool) && spool->refusal == STORE_OK) {
        enum store_result result = write_tail(spool);
        spool->waits_to_write = result == STORE_WAIT;
        if (result != STORE_OK && result != STORE_WAIT)
            refuse(spool, result);
    }
    if (is_short && !is_read && !STAILQ_EMPTY(&spool->chunks))
        drop_reader(spool);
    if (is_short && tail_length(spool) == 0) {
        free(spool->tail);
        spool->tail = NULL;
        spool->tail_start = spool->tail_end = spool->tail_capacity = 0;
    }
}

/* ---- reading ---- */

/* Opens the reader of the first chunk that is not completely read. */
static enum store_result open_first(struct spool *spool)
{
    struct chunk *chunk = STAILQ_FIRST(&spool->chunks);
    if (chunk->stream != NULL)
        return STORE_OK;
    if (!chunk->is_sealed)
        spool->waits_to_write = false;
    chunk->is_sealed = true;
    enum store_result result = store_upload_finish(chunk->upload);
    if (result == STORE_OK)
        result = store_upload_read(spool->conn->worker->store, chunk->upload, chunk->taken,
                                   &chunk->stream);
    if (result == STORE_OK)
        store_reader_on_ready(chunk->stream, on_ready, spool);
    return result;
}

/* The next bytes to be read are not completely written yet. */
static bool awaits_writer(const struct spool *spool)
{
    const struct chunk *first = STAILQ_FIRST(&spool->chunks);
    return first == STAILQ_LAST(&spool->chunks, chunk, link) && is_partly_filled(spool);
}

static enum store_result load_piece(struct spool *spool)
{
    if (spool->vector_count > 0)
        return STORE_OK;
    if (awaits_writer(spool))
        return STORE_WAIT;
    enum store_result result = open_first(spool);
    if (result == STORE_OK)
        result = store_reader_next(STAILQ_FIRST(&spool->chunks)->stream, &spool->vectors,
                                   &spool->vector_count);
    if (result != STORE_OK)
        spool->vector_count = 0;
    spool->vector_at = 0;
    return result;
}

static size_t take_piece(struct spool *spool, char *to, size_t size)
{
    struct chunk *chunk = STAILQ_FIRST(&spool->chunks);
    size_t taken = 0;
    while (taken < size && spool->vector_count > 0) {
        const struct iovec *vector = spool->vectors;
        size_t left = vector->iov_len - spool->vector_at;
        size_t part = left < size - taken ? left : size - taken;
        memcpy(to + taken, (const char *)vector->iov_base + spool->vector_at, part);
        taken += part;
        spool->vector_at += part;
        if (part == left) {
            spool->vectors++;
            spool->vector_count--;
            spool->vector_at = 0;
        }
    }
    chunk->taken += taken;
    assert(chunk->taken <= chunk->length);
    count(spool, -(uint64_t)taken);
    return taken;
}

static size_t take_tail(struct spool *spool, char *to, size_t size)
{
    size_t len = tail_length(spool) < size ? tail_length(spool) : size;
    if (len > 0)
        memcpy(to, spool->tail + spool->tail_start, len);
    spool->tail_start += len;
    if (spool->tail_start == spool->tail_end)
        spool->tail_start = spool->tail_end = 0;
    return len;
}

ssize_t spool_read(struct spool *spool, void *to, size_t size)
{
    size_t taken = 0;
    const struct chunk *first;
    while (taken < size && (first = STAILQ_FIRST(&spool->chunks)) != NULL) {
        if (first->taken == first->length) {
            drop_first(spool);
            continue;
        }
        enum store_result result = load_piece(spool);
        spool->waits_to_read = result == STORE_WAIT && !awaits_writer(spool);
        if (result != STORE_OK && result != STORE_WAIT)
            fail(spool, result);
        if (result != STORE_OK)
            break;
        taken += take_piece(spool, (char *)to + taken, size - taken);
    }
    if (STAILQ_EMPTY(&spool->chunks))
        taken += take_tail(spool, (char *)to + taken, size - taken);
    if (taken > 0) {
        spool->refusal = STORE_OK;
        return (ssize_t)taken;
    }
    return spool_is_empty(spool) && spool->has_ended ? TRANSPORT_CLOSED : TRANSPORT_AGAIN;
}

bool spool_is_ready(const struct spool *spool)
{
    return !spool->waits_to_read && !awaits_writer(spool) &&
           (spool->has_ended || !spool_is_empty(spool));
}

bool spool_is_empty(const struct spool *spool)
{
    return spool->chunk_bytes == 0 && tail_length(spool) == 0;
}

/* ---- sizes ---- */

uint64_t spool_bytes(const struct spool *spool)
{
    return spool->chunk_bytes + tail_length(spool);
}

uint64_t spool_memory(const struct spool *spool)
{
    const struct chunk *first = STAILQ_FIRST(&spool->chunks);
    uint64_t memory = sizeof *spool + spool->tail_capacity + spool->chunk_count * CHUNK_COST;
    if (first != NULL && first->stream != NULL)
        memory += first->length < PIECE ? first->length : PIECE;
    return memory;
}
