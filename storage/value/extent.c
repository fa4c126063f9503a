/*
 * Reading large values: arrays of extents. An extent is verified as a whole whenever one of its
 * pages had to be read. Extents are written once, are durable before anything names them, and never
 * change: so the data on disk is always valid, and a reader that may not wait can bypass the cache.
 */
#include "storage/value/extent.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/value/patches.h"
#include "storage/txn/load.h"
#include "storage/value/free.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define COLLECT_EXTENTS 4u /* read ahead while a large value is read in sequence */

struct format_root *txn_copy_root(struct store_txn *txn, const struct store_item *item)
{
    const struct format_item *found = item->origin;
    assert(item->large && item->version != 0);
    struct format_root *root = store_alloc(txn, found->payload_len);
    return root ? memcpy(root, format_payload(found), found->payload_len) : NULL;
}

static uint32_t pages_of(const struct format_extent *extent)
{
    return (extent->length + PAGE_SIZE - 1) / PAGE_SIZE;
}

static const char *page_memory(struct page_file *file, uint32_t page)
{
    return arena_memory(file->arena, file->table[page]);
}

/* ---- one extent ---- */

enum store_result extent_damaged(struct store *store, const struct format_extent *extent)
{
    env_log(&store->env, STORE_LOG_WARNING,
            "Damaged extent at page %u of the large values: it is not served", extent->page);
    atomic_fetch_add_explicit(&store->damaged, 1, memory_order_relaxed);
    return STORE_DAMAGED;
}

static bool all_checked(const struct page_file *file, const struct format_extent *extent)
{
    for (uint32_t i = 0; i < pages_of(extent); i++)
        if (!arena_frame(file->arena, file->table[extent->page + i])->checked)
            return false;
    return true;
}

static enum store_result check(struct page_file *file, const struct format_extent *extent)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    uint32_t left = extent->length;
    for (uint32_t i = 0; left > 0; i++) {
        uint32_t len = left < PAGE_SIZE ? left : PAGE_SIZE;
        XXH3_64bits_update(&state, page_memory(file, extent->page + i), len);
        left -= len;
    }
    if (XXH3_64bits_digest(&state) != extent->checksum)
        return extent_damaged(file->engine, extent);
    for (uint32_t i = 0; i < pages_of(extent); i++)
        arena_frame(file->arena, file->table[extent->page + i])->checked = true;
    return STORE_OK;
}

/* extents.lock is held. */
static bool plausible(const struct store *store, const struct format_extent *extent)
{
    assert(lock_is_held(&store->extents.lock));
    return extent->page != 0 && format_extent_is_sound(extent) &&
           (uint64_t)extent->page + pages_of(extent) <=
               (uint64_t)store->extents.segment_count * SEGMENT_PAGES;
}

enum store_result extent_fetch(struct store_txn *txn, const struct format_extent *extent)
{
    struct page_file *file = &txn->store->extents;
    if (!plausible(txn->store, extent))
        return extent_damaged(txn->store, extent);
    enum store_result result = load_pages(txn, file, extent->page, pages_of(extent));
    if (result != STORE_OK || all_checked(file, extent))
        return result;
    return check(file, extent);
}

static enum store_result read_past_cache(struct store_txn *txn, const struct format_extent *extent,
                                         uint32_t offset, uint32_t len, char *to)
{
    struct store *store = txn->store;
    assert(offset < extent->length && len <= extent->length - offset);
    pthread_mutex_lock(&store->extents.lock); /* the file may be growing */
    bool good = plausible(store, extent);
    pthread_mutex_unlock(&store->extents.lock);
    if (!good)
        return extent_damaged(store, extent);
    char *buffer = disk_alloc(FORMAT_EXTENT_BYTES);
    if (!buffer)
        return STORE_NO_MEMORY;
    enum store_result result = STORE_OK;
    uint32_t pages = pages_of(extent);
    atomic_fetch_add_explicit(&store->pages_read, pages, memory_order_relaxed);
    if (disk_read(txn->worker->sync_queue, store->extents.file, buffer, pages * PAGE_SIZE,
                  (uint64_t)extent->page * PAGE_SIZE) != 0) {
        atomic_fetch_add_explicit(&store->read_errors, 1, memory_order_relaxed);
        result = STORE_IO;
    } else if (XXH3_64bits(buffer, extent->length) != extent->checksum) {
        result = extent_damaged(store, extent);
    } else {
        memcpy(to, buffer + offset, len);
    }
    free(buffer);
    return result;
}

static void copy_from_frames(struct page_file *file, const struct format_extent *extent,
                             uint32_t offset, uint32_t len, char *to)
{
    assert(offset < extent->length && len <= extent->length - offset);
    while (len > 0) {
        uint32_t within = offset % PAGE_SIZE;
        uint32_t step = PAGE_SIZE - within < len ? PAGE_SIZE - within : len;
        memcpy(to, page_memory(file, extent->page + offset / PAGE_SIZE) + within, step);
        to += step;
        offset += step;
        len -= step;
    }
}

enum store_result extent_copy(struct store_txn *txn, const struct format_extent *extent,
                              uint32_t offset, uint32_t len, char *to)
{
    uint32_t there = extent->page && offset < extent->length ? extent->length - offset : 0;
    if (there > len)
        there = len;
    memset(to + there, 0, len - there);
    if (there == 0)
        return STORE_OK;
    if (txn->blocking_io)
        return read_past_cache(txn, extent, offset, there, to);
    struct page_file *file = &txn->store->extents;
    pthread_mutex_lock(&file->lock);
    enum store_result result = extent_fetch(txn, extent);
    if (result == STORE_OK)
        copy_from_frames(file, extent, offset, there, to);
    pthread_mutex_unlock(&file->lock);
    return result;
}

/* ---- the array ---- */

enum store_result extent_copy_node(struct store_txn *txn, const struct format_extent *node,
                                   uint32_t offset, uint32_t len, struct format_extent *to)
{
    if (node->page && node->length != FORMAT_NODE_BYTES)
        return extent_damaged(txn->store, node);
    return extent_copy(txn, node, offset, len, (char *)to);
}

enum store_result extent_locate(struct store_txn *txn, const struct format_root *root, uint32_t i,
                                struct format_extent *extent)
{
    *extent = (struct format_extent){0};
    if (root->depth == 0) {
        if (i < root->count)
            *extent = root->extents[i];
        return STORE_OK;
    }
    if (i / FORMAT_NODE_FANOUT >= root->count)
        return STORE_OK;
    enum store_result result =
        extent_copy_node(txn, &root->extents[i / FORMAT_NODE_FANOUT],
                         i % FORMAT_NODE_FANOUT * (uint32_t)sizeof *extent, sizeof *extent, extent);
    if (result == STORE_OK && !format_extent_is_sound(extent))
        result = extent_damaged(txn->store, extent);
    return result;
}

enum store_result extent_read(struct store_txn *txn, const struct format_root *root,
                              uint64_t offset, uint64_t len, char *to)
{
    while (len > 0) {
        uint32_t within = (uint32_t)(offset % FORMAT_EXTENT_BYTES);
        uint64_t step = FORMAT_EXTENT_BYTES - within < len ? FORMAT_EXTENT_BYTES - within : len;
        struct format_extent extent;
        enum store_result result =
            extent_locate(txn, root, (uint32_t)(offset / FORMAT_EXTENT_BYTES), &extent);
        if (result == STORE_OK)
            result = extent_copy(txn, &extent, within, (uint32_t)step, to);
        if (result != STORE_OK)
            return result;
        to += step;
        offset += step;
        len -= step;
    }
    return STORE_OK;
}

/* ---- whole values ---- */

/* A value that is collected in memory over several attempts. Its pages are unpinned once copied. */
struct whole {
    struct whole *next;
    struct format_root *root;
    char *bytes;
    uint64_t gathered;
    bool is_key; /* of a long key, whose key lock need not be held */
    struct run_reader reader;
};

static void count_whole(struct store *store, int64_t length)
{
    uint64_t before =
        atomic_fetch_add_explicit(&store->loaded_bytes, (uint64_t)length, memory_order_relaxed);
    assert(length >= 0 || before >= (uint64_t)-length);
    (void)before;
    store_note_memory(store, length);
}

static void free_whole(struct store *store, struct whole *whole)
{
    count_whole(store, -(int64_t)whole->root->length);
    if (whole->is_key)
        run_reader_end(store, &whole->reader);
    free(whole->root);
    free(whole->bytes);
    free(whole);
}

void extent_drop_loads(struct store_txn *txn)
{
    while (txn->wholes) {
        struct whole *whole = txn->wholes;
        txn->wholes = whole->next;
        free_whole(txn->store, whole);
    }
}

static void drop(struct store_txn *txn, bool keys)
{
    struct whole **at = &txn->wholes;
    while (*at) {
        struct whole *whole = *at;
        if (whole->is_key == keys) {
            *at = whole->next;
            free_whole(txn->store, whole);
        } else {
            at = &whole->next;
        }
    }
}

void extent_drop_keys(struct store_txn *txn)
{
    drop(txn, true);
}

void store_drop_loaded(struct store_txn *txn)
{
    drop(txn, false);
}

char *extent_take_key(struct store_txn *txn, const char *bytes)
{
    struct whole **at = &txn->wholes;
    while (*at && (*at)->bytes != bytes)
        at = &(*at)->next;
    assert(*at && (*at)->is_key);
    struct whole *whole = *at;
    char *taken = whole->bytes;
    *at = whole->next;
    whole->bytes = NULL;
    free_whole(txn->store, whole);
    return taken;
}

/* The partition's lock is held: the newest commit has not given up this version. */
static struct whole *find_whole(struct store_txn *txn, const char *root, uint32_t root_bytes,
                                bool is_key, uint64_t most)
{
    for (struct whole *whole = txn->wholes; whole; whole = whole->next) {
        uint64_t bytes = sizeof *whole->root + whole->root->count * sizeof(struct format_extent);
        if (bytes == root_bytes && memcmp(whole->root, root, root_bytes) == 0)
            return whole;
    }
    uint64_t length, loaded = atomic_load_explicit(&txn->store->loaded_bytes, memory_order_relaxed);
    memcpy(&length, root, sizeof length);
    bool may_be = loaded + length <= most && store_has_memory(txn->store, length);
    if (!may_be && !is_key) /* a key is read whatever its length */
        return NULL;
    struct whole *whole = calloc(1, sizeof *whole);
    if (!whole)
        return NULL;
    whole->root = malloc(root_bytes);
    whole->bytes = malloc(length);
    if (!whole->root || !whole->bytes) {
        free(whole->root);
        free(whole->bytes);
        free(whole);
        return NULL;
    }
    memcpy(whole->root, root, root_bytes);
    whole->is_key = is_key;
    count_whole(txn->store, (int64_t)length);
    if (is_key)
        run_reader_begin(txn->store, &whole->reader, atomic_load(&txn->store->journal.appended));
    whole->next = txn->wholes;
    return txn->wholes = whole;
}

/* Starts reading the extents from `first` on, after the one that the caller waits for. Their errors
 * are reported when their turn comes. */
static void read_ahead(struct store_txn *txn, const struct format_root *root, uint32_t first)
{
    for (uint32_t i = first; i < first + COLLECT_EXTENTS; i++) {
        struct format_extent extent;
        char byte;
        if ((uint64_t)i * FORMAT_EXTENT_BYTES >= root->length ||
            extent_locate(txn, root, i, &extent) != STORE_OK ||
            extent_copy(txn, &extent, 0, 1, &byte) == STORE_NO_MEMORY)
            return;
    }
}

/* Whether progress resets the count of reruns. Not for the keys loaded by an exclusive request: it
 * may load the same keys in each run, and has to switch to blocking mode in the end. */
static bool may_start_over(const struct store_txn *txn, const struct whole *whole)
{
    return !whole->is_key || txn->request->scope != STORE_SCOPE_ALL;
}

static enum store_result gather(struct store_txn *txn, struct whole *whole, const char **bytes)
{
    if (!whole)
        return STORE_NO_MEMORY;
    while (whole->gathered < whole->root->length) {
        uint64_t left = whole->root->length - whole->gathered;
        uint64_t step = left < FORMAT_EXTENT_BYTES ? left : FORMAT_EXTENT_BYTES;
        enum store_result result =
            extent_read(txn, whole->root, whole->gathered, step, whole->bytes + whole->gathered);
        if (result == STORE_WAIT && !txn->blocking_io)
            read_ahead(txn, whole->root, (uint32_t)(whole->gathered / FORMAT_EXTENT_BYTES) + 1);
        if (result != STORE_OK)
            return result;
        whole->gathered += step;
        if (may_start_over(txn, whole))
            txn->reruns = 0; /* it progresses: no need for blocking mode */
        load_release_extent_pins(txn);
    }
    assert(whole->gathered == whole->root->length);
    *bytes = whole->bytes;
    return STORE_OK;
}

enum store_result extent_load(struct store_txn *txn, const struct store_item *item, uint64_t most,
                              const char **bytes)
{
    const struct format_item *found = item->origin;
    const char *root = format_payload(found);
    assert(item->large && item->version != 0);
    return gather(txn, find_whole(txn, root, found->payload_len, false, most), bytes);
}

enum store_result extent_load_key(struct store_txn *txn, const struct format_item *item,
                                  const char **bytes)
{
    const char *root = format_key_root(item);
    struct whole *whole = find_whole(txn, root, format_key_root_length(item), true, UINT64_MAX);
    return gather(txn, whole, bytes);
}

/* ---- piece by piece ---- */

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The length of the hole at `offset`, which is within the value. The search ends with the node that
 * describes the hole's first extent. */
static enum store_result hole_at(struct store_txn *txn, const struct format_root *root,
                                 uint64_t offset, uint64_t *length)
{
    assert(offset < root->length);
    uint32_t i = (uint32_t)(offset / FORMAT_EXTENT_BYTES);
    uint32_t node_end = (i / FORMAT_NODE_FANOUT + 1) * FORMAT_NODE_FANOUT;
    uint64_t end = offset;
    for (; i < node_end && end < root->length; i++) {
        struct format_extent extent;
        enum store_result result = extent_locate(txn, root, i, &extent);
        if (result != STORE_OK)
            return result;
        if (extent.page)
            break;
        end = lesser((i + 1ull) * FORMAT_EXTENT_BYTES, root->length);
    }
    *length = end - offset;
    return STORE_OK;
}

/* The start of the first extent that patches touch after `offset`, but not before `offset`. */
static uint64_t patched_from(const struct patches *patches, uint64_t offset, uint64_t length)
{
    const struct patch *patch = patches_behind(patches, offset);
    uint64_t first = patch ? patch->offset / FORMAT_EXTENT_BYTES * FORMAT_EXTENT_BYTES : length;
    return first > offset ? first : offset;
}

/* The number of bytes from `offset` on known to be zero; 0: the extent has to be read. */
static enum store_result zeros_at(struct store_txn *txn, const struct large_write *value,
                                  uint64_t offset, uint64_t *length)
{
    uint64_t end = patched_from(value->patches, offset, value->length);
    enum store_result result = STORE_OK;
    *length = value->length - offset;
    if (value->base && offset < value->base->length)
        result = hole_at(txn, value->base, offset, length);
    if (value->base && offset + *length == value->base->length)
        *length = value->length - offset;
    if (*length > end - offset)
        *length = end - offset;
    return result;
}

static enum store_result read_piece(struct store_txn *txn, const struct large_write *value,
                                    uint64_t offset, char *room, uint64_t *length)
{
    uint32_t i = (uint32_t)(offset / FORMAT_EXTENT_BYTES);
    uint64_t end = lesser((i + 1ull) * FORMAT_EXTENT_BYTES, value->length);
    const struct format_root *base = value->base;
    uint64_t based = base && offset < base->length ? lesser(base->length, end) - offset : 0;
    *length = end - offset;
    memset(room + based, 0, *length - based);
    enum store_result result = based > 0 ? extent_read(txn, base, offset, based, room) : STORE_OK;
    if (result == STORE_WAIT && !txn->blocking_io)
        read_ahead(txn, base, i + 1);
    patches_overlay(value->patches, offset, *length, room);
    return result;
}

enum store_result store_read_piece(struct store_txn *txn, const struct store_item *item,
                                   uint64_t offset, char *room, struct store_piece *piece)
{
    assert(offset < item->length);
    *piece = (struct store_piece){item->bytes + offset, item->length - offset};
    if (!item->large)
        return STORE_OK;
    struct large_write value = {.length = item->length};
    if (item->version == 0)
        value = *(const struct large_write *)item->origin;
    else if (!(value.base = txn_copy_root(txn, item)))
        return STORE_NO_MEMORY;
    piece->bytes = NULL;
    enum store_result result = zeros_at(txn, &value, offset, &piece->length);
    if (result == STORE_OK && piece->length == 0) {
        piece->bytes = room;
        result = read_piece(txn, &value, offset, room, &piece->length);
    }
    if (result != STORE_OK)
        return result;
    txn->reruns = 0; /* it progresses: no need for blocking mode */
    load_release_extent_pins(txn);
    return STORE_OK;
}
