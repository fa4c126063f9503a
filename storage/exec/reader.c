/*
 * Value readers: a large value is read extent by extent after its transaction is finished.
 *
 * Invariants
 * 1. From opening to closing, a reader is in store->readers, which keeps the runs of its version
 *    from being reused (free.c).
 * 2. Between two calls of store_reader_next the frames of one extent are referenced, or the piece
 *    is a private copy: the latter when readers pin too much of the cache, or the request has
 *    switched to blocking mode.
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

enum reader_state { READER_IDLE, READER_LOADING, READER_LOADED };

struct store_reader {
    struct store_request request; /* first member: run and done cast it back */
    struct store *store;
    struct store_worker *worker;
    struct store_txn *txn; /* the transaction whose run opened it, until that run is over */
    struct store_reader *next_of_txn;
    struct store_upload *upload; /* the upload that it reads; NULL: a key's value */
    struct run_reader reader;
    struct format_root *root;
    uint32_t next;       /* number of the next extent */
    uint32_t skip;       /* bytes of that extent to skip */
    uint64_t handed_out; /* offset in the value of the last piece that was */
    uint64_t end;        /* end of the requested part of the value */
    uint32_t extent_count;
    enum reader_state state;
    enum store_result result;
    bool closed; /* during a request: freed when that is done */
    void (*ready)(void *arg);
    void *ready_arg;

    uint32_t frames[FORMAT_EXTENT_PAGES];
    uint32_t frame_count;
    char *copy;
    struct iovec vectors[FORMAT_EXTENT_PAGES];
    int vector_count;
};

static const char zeros[PAGE_SIZE];

/* ---- opening and closing ---- */

static void end_at(struct store_reader *reader, uint64_t end)
{
    reader->end = end;
    reader->extent_count = (uint32_t)((end + FORMAT_EXTENT_BYTES - 1) / FORMAT_EXTENT_BYTES);
}

static uint64_t position(const struct store_reader *reader)
{
    return (uint64_t)reader->next * FORMAT_EXTENT_BYTES + reader->skip;
}

void store_reader_end_after(struct store_reader *reader, uint64_t length)
{
    uint64_t begin = position(reader);
    assert(reader->state == READER_IDLE && length > 0 && length <= reader->end - begin);
    end_at(reader, begin + length);
}

enum store_result reader_open_root(struct store_worker *worker, const char *root_bytes,
                                   uint32_t length, uint64_t seen, struct store_reader **reader)
{
    struct store_reader *s = calloc(1, sizeof *s);
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
    *reader = s;
    return STORE_OK;
}

static void join(struct store_txn *txn, struct store_reader *reader)
{
    reader->txn = txn;
    reader->next_of_txn = txn->readers;
    txn->readers = reader;
}

/* A value that this transaction has put and not changed further is final. */
bool store_needs_reader(const struct store_item *item)
{
    const struct large_write *own = item->version == 0 ? item->origin : NULL;
    return item->large && (!own || (own->base && !own->patches));
}

static enum store_result open_own(struct store_txn *txn, const struct large_write *own,
                                  struct store_reader **reader)
{
    const struct format_root *root = own->base;
    uint32_t length = (uint32_t)(sizeof *root + root->count * sizeof *root->extents);
    enum store_result result = reader_open_root(txn->worker, (const char *)root, length,
                                                atomic_load(&txn->store->journal.appended), reader);
    if (result == STORE_OK && own->upload) {
        (*reader)->upload = own->upload;
        upload_hold(own->upload);
    }
    return result;
}

static void begin_at(struct store_reader *reader, uint64_t offset)
{
    reader->next = (uint32_t)(offset / FORMAT_EXTENT_BYTES);
    reader->skip = (uint32_t)(offset % FORMAT_EXTENT_BYTES);
}

/* The partition's lock is held: the newest commit has not given up this version. */
enum store_result store_reader_open(struct store_txn *txn, const struct store_item *item,
                                    uint64_t offset, struct store_reader **reader)
{
    assert(store_needs_reader(item) && offset < item->length);
    const struct format_item *found = item->origin;
    enum store_result result =
        item->version == 0
            ? open_own(txn, item->origin, reader)
            : reader_open_root(txn->worker, format_payload(found), found->payload_len,
                               atomic_load(&txn->store->journal.appended), reader);
    if (result != STORE_OK)
        return result;
    begin_at(*reader, offset);
    join(txn, *reader);
    return STORE_OK;
}

enum store_result store_upload_read(struct store_worker *worker, struct store_upload *upload,
                                    uint64_t offset, struct store_reader **reader)
{
    const struct format_root *root;
    enum store_result result = upload_root(upload, &root);
    if (result != STORE_OK)
        return result;
    assert(offset < root->length);
    uint32_t length = (uint32_t)(sizeof *root + root->count * sizeof *root->extents);
    /* its runs belong to the upload: no commit can give them up */
    result = reader_open_root(worker, (const char *)root, length, UINT64_MAX, reader);
    if (result != STORE_OK)
        return result;
    begin_at(*reader, offset);
    (*reader)->upload = upload;
    upload_hold(upload);
    return STORE_OK;
}

enum store_result store_reader_open_upload(struct store_txn *txn, struct store_upload *upload,
                                           struct store_reader **reader)
{
    enum store_result result = store_upload_read(txn->worker, upload, 0, reader);
    if (result == STORE_OK)
        join(txn, *reader);
    return result;
}

/* From now on the caller's, not the run's. */
static void leave(struct store_reader *reader)
{
    struct store_reader **at = &reader->txn->readers;
    while (*at != reader)
        at = &(*at)->next_of_txn;
    *at = reader->next_of_txn;
    reader->txn = NULL;
}

void stream_leave_all(struct store_txn *txn)
{
    while (txn->readers)
        leave(txn->readers);
}

void store_reader_keep(struct store_reader *reader)
{
    leave(reader);
}

void store_reader_on_ready(struct store_reader *reader, void (*ready)(void *arg), void *arg)
{
    reader->ready = ready;
    reader->ready_arg = arg;
}

static void release_piece(struct store_reader *reader)
{
    struct page_file *file = &reader->store->extents;
    if (reader->frame_count) {
        pthread_mutex_lock(&file->lock);
        for (uint32_t i = 0; i < reader->frame_count; i++)
            page_file_unref(file, reader->frames[i]);
        pthread_mutex_unlock(&file->lock);
        atomic_fetch_sub_explicit(&reader->store->reader_pages, reader->frame_count,
                                  memory_order_relaxed);
    }
    reader->frame_count = 0;
    free(reader->copy);
    reader->copy = NULL;
}

static void destroy(struct store_reader *reader)
{
    release_piece(reader);
    run_reader_end(reader->store, &reader->reader);
    if (reader->upload)
        upload_release(reader->upload);
    free(reader->root);
    free(reader);
}

void store_reader_close(struct store_reader *reader)
{
    if (reader->txn)
        leave(reader);
    if (reader->state == READER_LOADING)
        reader->closed = true;
    else
        destroy(reader);
}

void stream_close_all(struct store_txn *txn)
{
    while (txn->readers)
        store_reader_close(txn->readers);
}

/* ---- pieces ---- */

static uint32_t piece_length(const struct store_reader *reader)
{
    uint64_t left = reader->end - (uint64_t)reader->next * FORMAT_EXTENT_BYTES;
    return left < FORMAT_EXTENT_BYTES ? (uint32_t)left : FORMAT_EXTENT_BYTES;
}

static void add_vector(struct store_reader *reader, const char *data, uint32_t len)
{
    reader->vectors[reader->vector_count++] = (struct iovec){(void *)(uintptr_t)data, len};
}

/* Points straight at the frames, with zeros where the extent is shorter than the piece. */
static void point_at_frames(struct store_reader *reader, const struct format_extent *extent)
{
    struct page_file *file = &reader->store->extents;
    uint32_t piece = piece_length(reader);
    reader->vector_count = 0;
    for (uint32_t offset = 0; offset < piece; offset += PAGE_SIZE) {
        uint32_t len = piece - offset < PAGE_SIZE ? piece - offset : PAGE_SIZE;
        if (extent->page == 0 || offset >= extent->length) {
            add_vector(reader, zeros, len);
            continue;
        }
        uint32_t number = file->table[extent->page + offset / PAGE_SIZE];
        page_file_ref(file, number);
        reader->frames[reader->frame_count++] = number;
        add_vector(reader, arena_memory(file->arena, number),
                   len); /* a page is zero beyond its data */
    }
    atomic_fetch_add_explicit(&reader->store->reader_pages, reader->frame_count,
                              memory_order_relaxed);
}

static enum store_result copy_piece(struct store_txn *txn, struct store_reader *reader,
                                    const struct format_extent *extent)
{
    uint32_t piece = piece_length(reader);
    if (!reader->copy)
        reader->copy = malloc(piece);
    if (!reader->copy)
        return STORE_NO_MEMORY;
    enum store_result result = extent_copy(txn, extent, 0, piece, reader->copy);
    reader->vector_count = 0;
    add_vector(reader, reader->copy, piece);
    return result;
}

static bool cache_is_tight(const struct store *store)
{
    return atomic_load_explicit(&store->reader_pages, memory_order_relaxed) >
           atomic_load_explicit(&store->cache.arena.limit, memory_order_relaxed) / 4;
}

static enum store_result load_piece(struct store_txn *txn, struct store_request *request)
{
    struct store_reader *reader = (struct store_reader *)request;
    struct page_file *file = &reader->store->extents;
    struct format_extent extent;
    enum store_result result = extent_locate(txn, reader->root, reader->next, &extent);
    if (result != STORE_OK)
        return result;
    if (extent.page && (txn->blocking_io || cache_is_tight(reader->store)))
        return copy_piece(txn, reader, &extent);
    pthread_mutex_lock(&file->lock);
    if (extent.page)
        result = extent_fetch(txn, &extent);
    if (result == STORE_OK)
        point_at_frames(reader, &extent);
    pthread_mutex_unlock(&file->lock);
    return result;
}

static void piece_loaded(struct store_request *request, enum store_result result)
{
    struct store_reader *reader = (struct store_reader *)request;
    reader->state = READER_LOADED;
    reader->result = result;
    if (reader->closed)
        destroy(reader);
    else if (reader->ready)
        reader->ready(reader->ready_arg);
}

static enum store_result begin_piece(struct store_reader *reader)
{
    reader->request =
        (struct store_request){.run = load_piece, .done = piece_loaded, .scope = STORE_SCOPE_NONE};
    reader->state = READER_LOADING;
    enum store_result result = store_execute(reader->worker, &reader->request);
    if (result == STORE_WAIT)
        return STORE_WAIT;
    reader->state = READER_LOADED;
    reader->result = result;
    return STORE_OK;
}

/* The first piece begins at the reader's offset. */
static struct iovec *skip_head(struct store_reader *reader)
{
    struct iovec *first = reader->vectors;
    for (; reader->skip > 0 && reader->skip >= first->iov_len; first++)
        reader->skip -= (uint32_t)first->iov_len;
    first->iov_base = (char *)first->iov_base + reader->skip;
    first->iov_len -= reader->skip;
    reader->skip = 0;
    return first;
}

enum store_result store_reader_next(struct store_reader *reader, const struct iovec **vectors,
                                    int *count)
{
    if (reader->state == READER_IDLE) {
        release_piece(reader);
        if (reader->next == reader->extent_count)
            return STORE_ABSENT;
        if (begin_piece(reader) == STORE_WAIT)
            return STORE_WAIT;
    }
    if (reader->state == READER_LOADING)
        return STORE_WAIT;
    reader->state = READER_IDLE;
    reader->handed_out = position(reader);
    reader->next++;
    if (reader->result != STORE_OK)
        return reader->result;
    struct iovec *first = skip_head(reader);
    *vectors = first;
    *count = reader->vector_count - (int)(first - reader->vectors);
    return STORE_OK;
}

void store_reader_put_back(struct store_reader *reader, uint64_t taken)
{
    assert(reader->state == READER_IDLE && reader->handed_out + taken < reader->end);
    release_piece(reader);
    begin_at(reader, reader->handed_out + taken);
}

bool store_hold_pages(struct store *store, const void *address, void **start, size_t *size)
{
    return arena_hold_chunk(&store->cache.arena, address, start, size);
}
