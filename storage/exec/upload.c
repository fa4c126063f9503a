/*
 * Uploads: a large value is written to its runs while it arrives, before any transaction knows of
 * it.
 *
 *     extent after extent:  reserve a run -> its memory is filled -> written, durably, while the
 *                           next ones fill; then the nodes, if there are any; then the root
 *
 * Invariants
 * 1. Every run in `extents` and `nodes` belongs to the upload alone, until a commit that names the
 *    root makes them part of a value. Without such a commit they are freed with the upload; after a
 *    crash nothing names them, and recovery frees them.
 * 2. `root` is set only when everything that it names is durable.
 * 3. A closed upload is freed once nothing of it is in flight and no value reader reads it.
 *
 * However slowly it is filled, an upload holds the memory of one extent, and of WINDOW extents on
 * their way to the device. Uploads may not hold more than a quarter of the cache's frames for long:
 * beyond that an upload gets memory of its own, for one extent at a time; and if there is much of
 * that already, for a part of an extent, which is written before the next part is filled.
 */
#include "storage/exec/upload.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/value/large_value.h"
#include "storage/txn/wait.h"
#include "storage/value/run_write.h"

#define WINDOW 4u

_Static_assert(STORE_UPLOAD_SHORTEST >= FORMAT_ITEM_MAX, "an item's value is shorter");

struct store_upload {
    struct store_request request; /* reserves a run; first member: run and done cast it back */
    struct store *store;
    struct store_worker *worker;
    LIST_ENTRY(store_upload) of_open; /* under extents.lock */
    uint64_t length, filled;
    uint32_t put_length, put_filled; /* of the piece being put; 0: none */
    uint32_t extent_count, node_count;
    struct extent_list extents, nodes; /* its runs; the lists change under extents.lock */
    struct run_write *piece;           /* being filled or partly written; NULL: none */
    uint32_t piece_filled;
    uint32_t in_flight;
    bool is_part_written; /* a part of the piece is being written: do not touch its memory */
    uint32_t readers;     /* value readers of it */
    struct format_root *root;
    enum store_result failure; /* STORE_OK: none */
    bool is_open;              /* its length is not known yet */
    bool is_reserving, is_awaited, is_handed_over, is_closed;
    void (*ready)(void *arg);
    void *ready_arg;
    struct iovec vectors[FORMAT_EXTENT_PAGES];
};

/* ---- opening and closing ---- */

static uint32_t divided(uint64_t value, uint32_t by)
{
    return (uint32_t)((value + by - 1) / by);
}

static void link_open(struct store_upload *upload)
{
    struct store *store = upload->store;
    pthread_mutex_lock(&store->extents.lock);
    LIST_INSERT_HEAD(&store->open_uploads, upload, of_open);
    pthread_mutex_unlock(&store->extents.lock);
}

static void free_memory(struct store_upload *upload)
{
    free(upload->extents.at);
    free(upload->nodes.at);
    free(upload->root);
    free(upload);
}

enum store_result store_upload_begin(struct store_worker *worker, uint64_t length,
                                     void (*ready)(void *arg), void *arg,
                                     struct store_upload **result)
{
    bool is_open = length == STORE_UPLOAD_OPEN;
    assert(length >= STORE_UPLOAD_SHORTEST);
    if (length > STORE_VALUE_MAX && !is_open)
        return STORE_TOO_LARGE;
    struct store_upload *upload = calloc(1, sizeof *upload);
    if (!upload)
        return STORE_NO_MEMORY;
    upload->store = worker->store;
    upload->worker = worker;
    upload->length = length;
    upload->ready = ready;
    upload->ready_arg = arg;
    upload->is_open = is_open;
    if (!is_open)
        upload->extent_count = divided(length, FORMAT_EXTENT_BYTES);
    if (upload->extent_count > FORMAT_ROOT_EXTENTS)
        upload->node_count = divided(upload->extent_count, FORMAT_NODE_FANOUT);
    link_open(upload);
    *result = upload;
    return STORE_OK;
}

static void give_back(struct page_file *file, const struct extent_list *runs)
{
    for (uint32_t i = 0; i < runs->count; i++)
        if (runs->at[i].page)
            run_give_back(file, &runs->at[i]);
}

static void destroy(struct store_upload *upload)
{
    assert(upload->is_closed && !upload->piece);
    struct page_file *file = &upload->store->extents;
    pthread_mutex_lock(&file->lock);
    LIST_REMOVE(upload, of_open);
    if (!upload->is_handed_over) {
        give_back(file, &upload->extents);
        give_back(file, &upload->nodes);
    }
    pthread_mutex_unlock(&file->lock);
    free_memory(upload);
}

/* Checks invariant 2, and the bounds of the upload's memory. */
static void check(const struct store_upload *upload)
{
    if (!storage_checks_enabled())
        return;
    assert(upload->in_flight <= WINDOW && upload->extents.count <= upload->extents.capacity);
    assert(upload->is_open || upload->filled <= upload->length);
    assert(!upload->root || (upload->in_flight == 0 && !upload->piece));
    assert(!upload->is_part_written || (upload->piece && upload->in_flight > 0));
}

static void uncount_pages(const struct store_upload *upload, const struct run_write *write)
{
    assert(write->apart || atomic_load_explicit(&upload->store->upload_pages,
                                                memory_order_relaxed) >= write->count);
    if (!write->apart)
        atomic_fetch_sub_explicit(&upload->store->upload_pages, write->count, memory_order_relaxed);
}

static void drop_piece(struct store_upload *upload)
{
    if (!upload->piece || upload->is_part_written)
        return;
    uncount_pages(upload, upload->piece);
    run_write_drop(upload->piece);
    upload->piece = NULL;
}

static void end_if_closed(struct store_upload *upload)
{
    if (upload->is_closed && !upload->is_reserving && upload->in_flight == 0 &&
        upload->readers == 0)
        destroy(upload);
}

void upload_hold(struct store_upload *upload)
{
    upload->readers++;
}

void upload_release(struct store_upload *upload)
{
    assert(upload->readers > 0);
    upload->readers--;
    end_if_closed(upload);
}

void store_upload_close(struct store_upload *upload)
{
    assert(!upload->is_closed);
    upload->is_closed = true;
    drop_piece(upload);
    end_if_closed(upload);
}

/* ---- reserving ---- */

static void wake(struct store_upload *upload)
{
    if (upload->is_closed)
        end_if_closed(upload);
    else
        upload->ready(upload->ready_arg);
}

static bool cache_is_tight(const struct store *store)
{
    return atomic_load_explicit(&store->upload_pages, memory_order_relaxed) >
           atomic_load_explicit(&store->cache.arena.limit, memory_order_relaxed) / 4;
}

/* The list grows with the data received, not with the length announced. */
static bool make_room(struct store_upload *upload, struct extent_list *runs)
{
    pthread_mutex_lock(&upload->store->extents.lock);
    bool has_room = extent_list_room(runs);
    pthread_mutex_unlock(&upload->store->extents.lock);
    return has_room;
}

static enum store_result reserve(struct store_txn *txn, struct store_request *request)
{
    struct store_upload *upload = (struct store_upload *)request;
    uint64_t left = upload->length - upload->filled;
    uint32_t length = left < FORMAT_EXTENT_BYTES ? (uint32_t)left : FORMAT_EXTENT_BYTES;
    if (upload->put_length > 0)
        length = upload->put_length;
    if (env_failed(&txn->store->env))
        return STORE_REFUSED;
    if (upload->is_closed)
        return STORE_ABSENT;
    if (atomic_load(&upload->store->reloading)) {
        maintenance_throttle(txn);
        return STORE_WAIT;
    }
    enum run_write_frames frames =
        cache_is_tight(txn->store) ? RUN_WRITE_APART : RUN_WRITE_MAY_BE_APART;
    struct extent_list *runs = left > 0 ? &upload->extents : &upload->nodes;
    if (!make_room(upload, runs))
        return STORE_NO_MEMORY;
    enum store_result result =
        run_write_begin(txn, left > 0 ? length : FORMAT_NODE_BYTES, frames, runs, &upload->piece);
    if (result != STORE_OK)
        return result;
    upload->piece_filled = 0;
    if (!upload->piece->apart)
        atomic_fetch_add_explicit(&upload->store->upload_pages, upload->piece->count,
                                  memory_order_relaxed);
    return STORE_OK;
}

static void reserved(struct store_request *request, enum store_result result)
{
    struct store_upload *upload = (struct store_upload *)request;
    assert(upload->is_reserving);
    upload->is_reserving = false;
    if (result != STORE_OK)
        upload->failure = result;
    if (upload->is_closed)
        drop_piece(upload);
    wake(upload);
}

/* STORE_OK: there is a piece to be filled. */
static enum store_result begin_piece(struct store_upload *upload)
{
    if (upload->failure)
        return upload->failure;
    if (upload->piece && !upload->is_part_written)
        return STORE_OK;
    if (upload->is_reserving)
        return STORE_WAIT;
    if (upload->piece || upload->in_flight >= (cache_is_tight(upload->store) ? 1 : WINDOW)) {
        upload->is_awaited = true;
        return STORE_WAIT;
    }
    upload->request =
        (struct store_request){.run = reserve, .done = reserved, .scope = STORE_SCOPE_NONE};
    enum store_result result = store_execute(upload->worker, &upload->request);
    upload->is_reserving = result == STORE_WAIT;
    if (result != STORE_OK && result != STORE_WAIT)
        upload->failure = result;
    return result;
}

/* ---- filling and writing ---- */

/* Continues with the next part of the piece, unless the upload was closed. */
static bool end_part(struct store_upload *upload)
{
    bool durable = run_write_next(upload->piece);
    upload->is_part_written = false;
    if (upload->is_closed)
        drop_piece(upload);
    return durable;
}

static bool end_piece(struct store_upload *upload, struct run_write *write)
{
    uncount_pages(upload, write);
    return run_write_end(write);
}

static void written(struct disk_op *op)
{
    struct store_upload *upload = op->arg;
    struct run_write *write = run_write_of(op);
    assert(upload->in_flight > 0);
    upload->in_flight--;
    if (!(run_write_is_last(write) ? end_piece(upload, write) : end_part(upload)))
        upload->failure = STORE_REFUSED;
    check(upload);
    if (upload->is_awaited || upload->is_closed) {
        upload->is_awaited = false;
        wake(upload);
    }
}

/* Writes the piece, or the part of it that is filled. The run is the newest in the list. */
static void write_piece(struct store_upload *upload, struct extent_list *runs)
{
    struct format_extent extent;
    assert(upload->piece && !upload->is_part_written && !upload->root);
    upload->in_flight++;
    check(upload);
    upload->is_part_written = !run_write_is_last(upload->piece);
    run_write_start(upload->piece, upload->worker, written, upload, &extent);
    if (upload->is_part_written)
        return;
    runs->at[runs->count - 1].checksum =
        extent.checksum; /* without extents.lock: other threads read only `page` */
    upload->piece = NULL;
}

enum store_result store_upload_space(struct store_upload *upload, const struct iovec **vectors,
                                     int *count)
{
    assert(upload->filled < upload->length);
    enum store_result result = begin_piece(upload);
    if (result != STORE_OK)
        return result;
    const struct run_write *piece = upload->piece;
    *vectors = upload->vectors;
    *count = 0;
    for (uint32_t at = upload->piece_filled; at < piece->end;) {
        uint32_t within = at % PAGE_SIZE, step = PAGE_SIZE - within;
        if (step > piece->end - at)
            step = piece->end - at;
        uint32_t i = (at - piece->begin) / PAGE_SIZE;
        char *memory = (char *)piece->vectors[i].iov_base + within;
        struct iovec *last = *count ? &upload->vectors[*count - 1] : NULL;
        if (last && (char *)last->iov_base + last->iov_len == memory)
            last->iov_len += step;
        else
            upload->vectors[(*count)++] = (struct iovec){memory, step};
        at += step;
    }
    return STORE_OK;
}

void store_upload_filled(struct store_upload *upload, size_t len)
{
    assert(upload->piece && len <= upload->piece->end - upload->piece_filled);
    upload->piece_filled += (uint32_t)len;
    upload->filled += len;
    if (upload->piece_filled == upload->piece->end)
        write_piece(upload, &upload->extents);
}

/* ---- whole pieces ---- */

static enum store_result add_hole(struct store_upload *upload, struct extent_list *runs)
{
    if (upload->failure)
        return upload->failure;
    pthread_mutex_lock(&upload->store->extents.lock);
    bool has_room = extent_list_room(runs);
    if (has_room)
        runs->at[runs->count++] = (struct format_extent){0};
    pthread_mutex_unlock(&upload->store->extents.lock);
    return has_room ? STORE_OK : STORE_NO_MEMORY;
}

static enum store_result fill_piece(struct store_upload *upload, const char *bytes)
{
    while (upload->put_filled < upload->put_length) {
        const struct iovec *vectors;
        int count;
        enum store_result result = store_upload_space(upload, &vectors, &count);
        if (result != STORE_OK)
            return result;
        uint32_t len = 0;
        for (int i = 0; i < count; i++) {
            memcpy(vectors[i].iov_base, bytes + upload->put_filled + len, vectors[i].iov_len);
            len += (uint32_t)vectors[i].iov_len;
        }
        upload->put_filled += len;
        store_upload_filled(upload, len);
    }
    return STORE_OK;
}

enum store_result store_upload_put(struct store_upload *upload, const char *bytes, size_t len)
{
    uint64_t begin = upload->filled - upload->put_filled, left = upload->length - begin;
    uint64_t whole = left < FORMAT_EXTENT_BYTES ? left : FORMAT_EXTENT_BYTES;
    assert(begin % FORMAT_EXTENT_BYTES == 0 && len <= whole && !upload->is_open);
    upload->put_length = (uint32_t)len;
    enum store_result result =
        len > 0 ? fill_piece(upload, bytes) : add_hole(upload, &upload->extents);
    if (result != STORE_OK)
        return result;
    upload->filled = begin + whole;
    upload->put_length = upload->put_filled = 0;
    return STORE_OK;
}

/* ---- the end ---- */

/* Writes the descriptors of node number i; the rest of its page is zero. */
static void fill_node(const struct store_upload *upload, uint32_t i, char *page)
{
    const struct extent_list *extents = &upload->extents;
    uint32_t first = i * FORMAT_NODE_FANOUT, count = extents->count - first;
    if (count > FORMAT_NODE_FANOUT)
        count = FORMAT_NODE_FANOUT;
    memset(page, 0, PAGE_SIZE);
    memcpy(page, &extents->at[first], count * sizeof *extents->at);
}

/* Whether all extents that node number i would describe are holes. */
static bool is_empty_node(const struct store_upload *upload, uint32_t i)
{
    uint32_t end = (i + 1) * FORMAT_NODE_FANOUT;
    for (i *= FORMAT_NODE_FANOUT; i < end && i < upload->extents.count; i++)
        if (upload->extents.at[i].page)
            return false;
    return true;
}

static enum store_result write_nodes(struct store_upload *upload)
{
    struct extent_list *nodes = &upload->nodes;
    while (upload->piece || nodes->count < upload->node_count) {
        bool is_hole =
            !upload->piece && !upload->is_reserving && is_empty_node(upload, nodes->count);
        enum store_result result = is_hole ? add_hole(upload, nodes) : begin_piece(upload);
        if (is_hole && result == STORE_OK)
            continue;
        if (result != STORE_OK)
            return result;
        fill_node(upload, nodes->count - 1, upload->piece->vectors[0].iov_base);
        write_piece(upload, nodes);
    }
    return STORE_OK;
}

static enum store_result build_root(struct store_upload *upload)
{
    uint32_t depth = upload->node_count > 0;
    uint32_t count = depth ? upload->node_count : upload->extent_count;
    struct format_root *root = malloc(sizeof *root + count * sizeof *root->extents);
    if (!root)
        return STORE_NO_MEMORY;
    *root = (struct format_root){.length = upload->length, .count = count, .depth = depth};
    memcpy(root->extents, depth ? upload->nodes.at : upload->extents.at,
           count * sizeof *root->extents);
    upload->root = root;
    return STORE_OK;
}

/* Ends an upload of open length. Only the root in memory names it, so it needs no nodes. */
static void end_open(struct store_upload *upload)
{
    assert(upload->filled % FORMAT_EXTENT_BYTES == 0 || upload->failure);
    upload->is_open = false;
    upload->length = upload->filled;
    upload->extent_count = (uint32_t)(upload->filled / FORMAT_EXTENT_BYTES);
    drop_piece(upload); /* its run stays in the list, and is freed with it */
    if (upload->failure == STORE_FULL || upload->failure == STORE_NO_MEMORY)
        upload->failure = STORE_OK;
}

enum store_result store_upload_finish(struct store_upload *upload)
{
    if (upload->is_open && upload->is_reserving)
        return STORE_WAIT;
    if (upload->is_open)
        end_open(upload);
    if (upload->root || upload->failure)
        return upload->failure;
    assert(upload->filled == upload->length);
    enum store_result result = write_nodes(upload);
    if (result != STORE_OK)
        return result;
    if (upload->in_flight > 0) {
        upload->is_awaited = true;
        return STORE_WAIT;
    }
    return upload->failure = build_root(upload);
}

enum store_result upload_root(const struct store_upload *upload, const struct format_root **root)
{
    assert(upload->root || upload->failure);
    *root = upload->root;
    return upload->failure;
}

enum store_result store_put_upload(struct store_txn *txn, const struct store_key *key, uint8_t type,
                                   struct store_upload *upload, int64_t expire_ms)
{
    const struct format_root *root;
    enum store_result result = upload_root(upload, &root);
    if (result != STORE_OK)
        return result;
    if (key->len > STORE_KEY_MAX)
        return STORE_TOO_LARGE;
    struct large_write *large = large_value_put(txn, key, type, expire_ms);
    if (!large)
        return STORE_NO_MEMORY;
    large->base = root;
    large->length = root->length;
    large->upload = upload;
    return STORE_OK;
}

void upload_hand_over(struct store_upload *upload)
{
    pthread_mutex_lock(&upload->store->extents.lock);
    upload->is_handed_over = true;
    pthread_mutex_unlock(&upload->store->extents.lock);
}

/* ---- a flush of everything ---- */

static void set_apart(struct page_file *file, const struct extent_list *runs, bool apart)
{
    for (uint32_t i = 0; i < runs->count; i++) {
        if (!runs->at[i].page)
            continue;
        if (apart)
            page_file_give_slot(file, runs->at[i].page, 0);
        else
            page_file_keep_slot(file, runs->at[i].page, 0);
    }
}

void upload_set_apart(struct store *store, bool apart)
{
    struct store_upload *u;
    LIST_FOREACH (u, &store->open_uploads, of_open) {
        if (u->is_handed_over)
            continue;
        set_apart(&store->extents, &u->extents, apart);
        set_apart(&store->extents, &u->nodes, apart);
    }
}
