/*
 * Streams: a large value read out extent by extent after its transaction is over.
 *
 * Invariants
 * 1. From opening to closing a stream is one of store->readers, which keeps the runs of its
 * version from being reused (free.c).
 * 2. Between two calls of store_stream_next the frames of one extent are referenced, or the piece
 * is a private copy: that when streams pin too much of the cache, or the extent was read past it.
 *
 *     IDLE --next: request--> LOADING --done--> LOADED --next--> handed out, IDLE ...
 *                                          (a request that needs no wait goes straight through)
 */
#include "storage/exec/reader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/exec/upload.h"
#include "storage/value/extent.h"
#include "storage/value/free.h"

enum stream_state { STREAM_IDLE, STREAM_LOADING, STREAM_LOADED };

struct store_stream {
    struct store_request request; /* first: run and done get it back */
    struct store *store;
    struct store_worker *worker;
    struct store_txn *txn; /* the run that opened it, until that is over */
    struct store_stream *next_of_txn;
    struct store_upload *upload; /* that it reads; NULL: a key's value */
    struct run_reader reader;
    struct format_root *root;
    uint32_t next; /* extent */
    uint32_t skip; /* of its bytes */
    uint64_t end;  /* of what is wanted of the value */
    uint32_t extent_count;
    enum stream_state state;
    enum store_result result;
    bool closed; /* while its request was under way: freed when that is done */
    void (*ready)(void *arg);
    void *ready_arg;

    uint32_t frames[FORMAT_EXTENT_PAGES];
    uint32_t frame_count;
    char *copy;
    struct iovec vectors[FORMAT_EXTENT_PAGES];
    int vector_count;
};

static const char zeros[PAGE_SIZE];

/* ---- life ---- */

static void end_at(struct store_stream *stream, uint64_t end)
{
    stream->end = end;
    stream->extent_count = (uint32_t)((end + FORMAT_EXTENT_BYTES - 1) / FORMAT_EXTENT_BYTES);
}

void store_stream_end_after(struct store_stream *stream, uint64_t length)
{
    uint64_t begin = (uint64_t)stream->next * FORMAT_EXTENT_BYTES + stream->skip;
    assert(stream->state == STREAM_IDLE && length > 0 && length <= stream->end - begin);
    end_at(stream, begin + length);
}

enum store_result stream_open_root(struct store_worker *worker, const char *root_bytes,
                                   uint32_t length, uint64_t seen, struct store_stream **stream)
{
    struct store_stream *s = calloc(1, sizeof *s);
    struct format_root *root = malloc(length);
    if (!s || !root) {
        free(s);
        free(root);
        return STORE_NO_MEMORY;
    }
    memcpy(root, root_bytes, length);
    s->store = worker->store;
    s->worker = worker;
    s->root = root;
    end_at(s, root->length);
    run_reader_begin(s->store, &s->reader, seen);
    *stream = s;
    return STORE_OK;
}

static void join(struct store_txn *txn, struct store_stream *stream)
{
    stream->txn = txn;
    stream->next_of_txn = txn->streams;
    txn->streams = stream;
}

/* What this transaction has put, as long as it has only put it, is as it will be. */
bool store_streams(const struct store_item *item)
{
    const struct large_write *own = item->version == 0 ? item->origin : NULL;
    return item->large && (!own || (own->base && !own->patches));
}

static enum store_result open_own(struct store_txn *txn, const struct large_write *own,
                                  struct store_stream **stream)
{
    const struct format_root *root = own->base;
    uint32_t length = (uint32_t)(sizeof *root + root->count * sizeof *root->extents);
    enum store_result result = stream_open_root(txn->worker, (const char *)root, length,
                                                atomic_load(&txn->store->journal.appended), stream);
    if (result == STORE_OK && own->upload) {
        (*stream)->upload = own->upload;
        upload_hold(own->upload);
    }
    return result;
}

static void begin_at(struct store_stream *stream, uint64_t offset)
{
    stream->next = (uint32_t)(offset / FORMAT_EXTENT_BYTES);
    stream->skip = (uint32_t)(offset % FORMAT_EXTENT_BYTES);
}

/* The partition's lock is held: the newest commit there is has not given up this version. */
enum store_result store_stream_open(struct store_txn *txn, const struct store_item *item,
                                    uint64_t offset, struct store_stream **stream)
{
    assert(store_streams(item) && offset < item->length);
    const struct format_item *found = item->origin;
    enum store_result result =
        item->version == 0
            ? open_own(txn, item->origin, stream)
            : stream_open_root(txn->worker, format_payload(found), found->payload_len,
                               atomic_load(&txn->store->journal.appended), stream);
    if (result != STORE_OK)
        return result;
    begin_at(*stream, offset);
    join(txn, *stream);
    return STORE_OK;
}

enum store_result store_upload_read(struct store_worker *worker, struct store_upload *upload,
                                    uint64_t offset, struct store_stream **stream)
{
    const struct format_root *root;
    enum store_result result = upload_root(upload, &root);
    if (result != STORE_OK)
        return result;
    assert(offset < root->length);
    uint32_t length = (uint32_t)(sizeof *root + root->count * sizeof *root->extents);
    /* its runs are the upload's: no commit can give them up */
    result = stream_open_root(worker, (const char *)root, length, UINT64_MAX, stream);
    if (result != STORE_OK)
        return result;
    begin_at(*stream, offset);
    (*stream)->upload = upload;
    upload_hold(upload);
    return STORE_OK;
}

enum store_result store_stream_open_upload(struct store_txn *txn, struct store_upload *upload,
                                           struct store_stream **stream)
{
    enum store_result result = store_upload_read(txn->worker, upload, 0, stream);
    if (result == STORE_OK)
        join(txn, *stream);
    return result;
}

/* No longer the run's, but the caller's. */
static void leave(struct store_stream *stream)
{
    struct store_stream **at = &stream->txn->streams;
    while (*at != stream)
        at = &(*at)->next_of_txn;
    *at = stream->next_of_txn;
    stream->txn = NULL;
}

void stream_leave_all(struct store_txn *txn)
{
    while (txn->streams)
        leave(txn->streams);
}

void store_stream_keep(struct store_stream *stream)
{
    leave(stream);
}

void store_stream_on_ready(struct store_stream *stream, void (*ready)(void *arg), void *arg)
{
    stream->ready = ready;
    stream->ready_arg = arg;
}

static void release_piece(struct store_stream *stream)
{
    struct space *space = &stream->store->extents;
    if (stream->frame_count) {
        pthread_mutex_lock(&space->lock);
        for (uint32_t i = 0; i < stream->frame_count; i++)
            space_unref(space, stream->frames[i]);
        pthread_mutex_unlock(&space->lock);
        atomic_fetch_sub_explicit(&stream->store->stream_pages, stream->frame_count,
                                  memory_order_relaxed);
    }
    stream->frame_count = 0;
    free(stream->copy);
    stream->copy = NULL;
}

static void destroy(struct store_stream *stream)
{
    release_piece(stream);
    run_reader_end(stream->store, &stream->reader);
    if (stream->upload)
        upload_release(stream->upload);
    free(stream->root);
    free(stream);
}

void store_stream_close(struct store_stream *stream)
{
    if (stream->txn)
        leave(stream);
    if (stream->state == STREAM_LOADING)
        stream->closed = true;
    else
        destroy(stream);
}

void stream_close_all(struct store_txn *txn)
{
    while (txn->streams)
        store_stream_close(txn->streams);
}

/* ---- pieces ---- */

static uint32_t piece_length(const struct store_stream *stream)
{
    uint64_t left = stream->end - (uint64_t)stream->next * FORMAT_EXTENT_BYTES;
    return left < FORMAT_EXTENT_BYTES ? (uint32_t)left : FORMAT_EXTENT_BYTES;
}

static void add_vector(struct store_stream *stream, const char *data, uint32_t len)
{
    stream->vectors[stream->vector_count++] = (struct iovec){(void *)(uintptr_t)data, len};
}

/* Straight from the frames, with zeros where the extent is shorter than the piece. */
static void point_at_frames(struct store_stream *stream, const struct format_extent *extent)
{
    struct space *space = &stream->store->extents;
    uint32_t piece = piece_length(stream);
    stream->vector_count = 0;
    for (uint32_t offset = 0; offset < piece; offset += PAGE_SIZE) {
        uint32_t len = piece - offset < PAGE_SIZE ? piece - offset : PAGE_SIZE;
        if (extent->page == 0 || offset >= extent->length) {
            add_vector(stream, zeros, len);
            continue;
        }
        uint32_t number = space->table[extent->page + offset / PAGE_SIZE];
        space_ref(space, number);
        stream->frames[stream->frame_count++] = number;
        add_vector(stream, arena_memory(space->arena, number), len); /* pages end in zeros */
    }
    atomic_fetch_add_explicit(&stream->store->stream_pages, stream->frame_count,
                              memory_order_relaxed);
}

static enum store_result copy_piece(struct store_txn *txn, struct store_stream *stream,
                                    const struct format_extent *extent)
{
    uint32_t piece = piece_length(stream);
    if (!stream->copy)
        stream->copy = malloc(piece);
    if (!stream->copy)
        return STORE_NO_MEMORY;
    enum store_result result = extent_copy(txn, extent, 0, piece, stream->copy);
    stream->vector_count = 0;
    add_vector(stream, stream->copy, piece);
    return result;
}

static bool cache_is_tight(const struct store *store)
{
    return atomic_load_explicit(&store->stream_pages, memory_order_relaxed) >
           atomic_load_explicit(&store->cache.arena.limit, memory_order_relaxed) / 4;
}

static enum store_result load_piece(struct store_txn *txn, struct store_request *request)
{
    struct store_stream *stream = (struct store_stream *)request;
    struct space *space = &stream->store->extents;
    struct format_extent extent;
    enum store_result result = extent_locate(txn, stream->root, stream->next, &extent);
    if (result != STORE_OK)
        return result;
    if (extent.page && (txn->in_place || cache_is_tight(stream->store)))
        return copy_piece(txn, stream, &extent);
    pthread_mutex_lock(&space->lock);
    if (extent.page)
        result = extent_fetch(txn, &extent);
    if (result == STORE_OK)
        point_at_frames(stream, &extent);
    pthread_mutex_unlock(&space->lock);
    return result;
}

static void piece_loaded(struct store_request *request, enum store_result result)
{
    struct store_stream *stream = (struct store_stream *)request;
    stream->state = STREAM_LOADED;
    stream->result = result;
    if (stream->closed)
        destroy(stream);
    else if (stream->ready)
        stream->ready(stream->ready_arg);
}

static enum store_result begin_piece(struct store_stream *stream)
{
    stream->request =
        (struct store_request){.run = load_piece, .done = piece_loaded, .scope = STORE_SCOPE_NONE};
    stream->state = STREAM_LOADING;
    enum store_result result = store_execute(stream->worker, &stream->request);
    if (result == STORE_WAIT)
        return STORE_WAIT;
    stream->state = STREAM_LOADED;
    stream->result = result;
    return STORE_OK;
}

/* The first piece begins where the stream does. */
static struct iovec *skip_head(struct store_stream *stream)
{
    struct iovec *first = stream->vectors;
    for (; stream->skip > 0 && stream->skip >= first->iov_len; first++)
        stream->skip -= (uint32_t)first->iov_len;
    first->iov_base = (char *)first->iov_base + stream->skip;
    first->iov_len -= stream->skip;
    stream->skip = 0;
    return first;
}

enum store_result store_stream_next(struct store_stream *stream, const struct iovec **vectors,
                                    int *count)
{
    if (stream->state == STREAM_IDLE) {
        release_piece(stream);
        if (stream->next == stream->extent_count)
            return STORE_ABSENT;
        if (begin_piece(stream) == STORE_WAIT)
            return STORE_WAIT;
    }
    if (stream->state == STREAM_LOADING)
        return STORE_WAIT;
    stream->state = STREAM_IDLE;
    stream->next++;
    if (stream->result != STORE_OK)
        return stream->result;
    struct iovec *first = skip_head(stream);
    *vectors = first;
    *count = stream->vector_count - (int)(first - stream->vectors);
    return STORE_OK;
}

bool store_hold_pages(struct store *store, const void *address, void **start, size_t *size)
{
    return arena_hold_chunk(&store->cache.arena, address, start, size);
}
