/*
 * Writing large values: before the commit that names them, the extents that a transaction changes
 * are rewritten as a whole to free runs; they are durable when extent_write_all returns STORE_OK.
 * The commit then carries only the new root.
 *
 * A value of many extents is written a few at a time, so that memory stays bounded; the extents and
 * nodes that no patch touches are shared with the value's former version.
 *
 * Invariants
 * 1. Every run in `fresh` belongs to this transaction alone: given back by extent_abandon, or made
 *    part of the value by the commit.
 * 2. The runs in `replaced` belong to the old version: the maintenance thread frees them after the
 *    commit.
 * 3. The runs that an upload has written are the base of a value like any other; until the commit
 *    they belong to the upload.
 */
#include "storage/value/extent_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/value/long_key.h"
#include "storage/value/run_write.h"
#include "storage/txn/wait.h"
#include "storage/value/patches.h"
#include "storage/txn/load.h"
#include "storage/value/extent.h"
#include "storage/value/free.h"

#define WINDOW 4u /* extents of one value in flight at a time */

struct node {
    struct format_extent *extents; /* FORMAT_NODE_FANOUT of them; NULL: unchanged */
    struct format_extent written;
};

struct extent_write {
    struct store_txn *txn;
    const struct large_write *large;
    uint32_t extent_count, node_count, depth;
    uint32_t next;      /* next extent to examine */
    uint32_t next_node; /* then: next node to write */
    uint32_t in_flight;
    struct node *nodes; /* with depth 0 a single one, which becomes the root itself */
    struct extent_list fresh, replaced;
};

static bool list_add(struct extent_list *list, struct format_extent extent)
{
    if (!extent_list_room(list))
        return false;
    list->at[list->count++] = extent;
    return true;
}

/* ---- begin and end ---- */

static uint32_t divided(uint64_t value, uint32_t by)
{
    return (uint32_t)((value + by - 1) / by);
}

static struct extent_write *begin(struct store_txn *txn, struct large_write *large)
{
    assert(!large->extent_write && !large->root);
    struct extent_write *extent_write = calloc(1, sizeof *extent_write);
    if (!extent_write)
        return NULL;
    extent_write->txn = txn;
    extent_write->large = large;
    extent_write->extent_count = divided(large->length, FORMAT_EXTENT_BYTES);
    extent_write->depth = extent_write->extent_count > FORMAT_ROOT_EXTENTS ||
                          (large->base && large->base->depth == 1);
    extent_write->node_count = divided(extent_write->extent_count, FORMAT_NODE_FANOUT);
    extent_write->nodes = calloc(extent_write->node_count, sizeof *extent_write->nodes);
    if (!extent_write->nodes) {
        free(extent_write);
        return NULL;
    }
    return extent_write;
}

static void end(struct large_write *large)
{
    struct extent_write *extent_write = large->extent_write;
    assert(extent_write && extent_write->in_flight == 0);
    for (uint32_t i = 0; i < extent_write->node_count; i++)
        free(extent_write->nodes[i].extents);
    free(extent_write->nodes);
    free(extent_write->fresh.at);
    free(extent_write->replaced.at);
    free(extent_write);
    large->extent_write = NULL;
}

static void abandon(struct page_file *file, struct large_write *large)
{
    pthread_mutex_lock(&file->lock);
    for (uint32_t i = 0; i < large->extent_write->fresh.count; i++)
        run_give_back(file, &large->extent_write->fresh.at[i]);
    pthread_mutex_unlock(&file->lock);
    end(large);
}

void extent_abandon(struct store_txn *txn)
{
    struct page_file *file = &txn->store->extents;
    for (uint32_t i = 0; i < txn->write_count; i++) {
        const struct write *write = &txn->writes[i];
        if (write->large && write->large->extent_write)
            abandon(file, write->large);
        if (write->long_key && write->long_key->bytes.extent_write)
            abandon(file, &write->long_key->bytes);
    }
}

void extent_free_patched(struct store_txn *txn, uint64_t commit)
{
    for (uint32_t i = 0; i < txn->write_count; i++) {
        struct large_write *large = txn->writes[i].large;
        if (txn->writes[i].long_key)
            end(&txn->writes[i].long_key->bytes);
        if (!large || !large->extent_write)
            continue;
        extent_free_list(txn->store, large->extent_write->replaced.at,
                         large->extent_write->replaced.count, 0, commit);
        if (large->upload)
            txn->store->hooks->upload_handed_over(large->upload);
        end(large);
    }
}

/* ---- descriptors ---- */

/* An impossible length must not reach a buffer. */
static enum store_result check_descriptors(const struct extent_write *extent_write,
                                           const struct format_extent *extents)
{
    for (uint32_t i = 0; i < FORMAT_NODE_FANOUT; i++)
        if (!format_extent_is_sound(&extents[i]))
            return extent_damaged(extent_write->txn->store, &extents[i]);
    return STORE_OK;
}

/* Reads the descriptors of the node that describes extent i. */
static enum store_result open_node(struct extent_write *extent_write, uint32_t i,
                                   struct node **result)
{
    struct node *node = &extent_write->nodes[i / FORMAT_NODE_FANOUT];
    const struct format_root *base = extent_write->large->base;
    uint32_t number = i / FORMAT_NODE_FANOUT;
    assert(number < extent_write->node_count);
    *result = node;
    if (node->extents)
        return STORE_OK;
    struct format_extent *extents = calloc(FORMAT_NODE_FANOUT, sizeof *extents);
    if (!extents)
        return STORE_NO_MEMORY;
    enum store_result copied = STORE_OK;
    if (base && base->depth == 0 && number == 0)
        memcpy(extents, base->extents, base->count * sizeof *extents);
    else if (base && base->depth == 1 && number < base->count)
        copied = extent_copy_node(extent_write->txn, &base->extents[number], 0, FORMAT_NODE_BYTES,
                                  extents);
    if (copied == STORE_OK)
        copied = check_descriptors(extent_write, extents);
    bool replaces = base && base->depth == 1 && number < base->count && base->extents[number].page;
    if (copied == STORE_OK && replaces && !list_add(&extent_write->replaced, base->extents[number]))
        copied = STORE_NO_MEMORY;
    if (copied != STORE_OK) {
        free(extents);
        return copied;
    }
    node->extents = extents;
    return STORE_OK;
}

/* The first extent from i on that a patch touches; extent_count: none. */
static uint32_t next_touched(const struct extent_write *extent_write, uint32_t i)
{
    uint64_t start = (uint64_t)i * FORMAT_EXTENT_BYTES;
    const struct patch *patch = patches_behind(extent_write->large->patches, start);
    if (!patch)
        return extent_write->extent_count;
    return patch->offset > start ? (uint32_t)(patch->offset / FORMAT_EXTENT_BYTES) : i;
}

/* The new length of extent i: up to the last patched byte, or unchanged. */
static uint32_t new_length(const struct extent_write *extent_write, uint32_t i, uint32_t old_length)
{
    uint64_t start = (uint64_t)i * FORMAT_EXTENT_BYTES;
    uint64_t end = patches_end_before(extent_write->large->patches, start + FORMAT_EXTENT_BYTES);
    uint64_t length = end > start ? end - start : 0;
    if (length > FORMAT_EXTENT_BYTES)
        length = FORMAT_EXTENT_BYTES;
    return length > old_length ? (uint32_t)length : old_length;
}

/* ---- writing ---- */

static void written(struct disk_op *op)
{
    struct extent_write *extent_write = op->arg;
    struct store_txn *txn = extent_write->txn;
    run_write_end(run_write_of(op));
    assert(extent_write->in_flight > 0);
    extent_write->in_flight--;
    request_wake(txn, txn->worker);
}

/* Writes `length` bytes, which fill(arg, offset, len, to) produces page by page, to a new run. */
static enum store_result write_run(struct extent_write *extent_write, uint32_t length,
                                   void (*fill)(void *arg, uint32_t offset, uint32_t len, char *to),
                                   void *arg, struct format_extent *extent)
{
    struct store_txn *txn = extent_write->txn;
    struct run_write *write;
    assert(extent_write->in_flight < WINDOW);
    if (!extent_list_room(&extent_write->fresh))
        return STORE_NO_MEMORY;
    enum store_result result =
        run_write_begin(txn, length, txn->blocking_io ? RUN_WRITE_URGENT : RUN_WRITE_WAITS,
                        &extent_write->fresh, &write);
    if (result != STORE_OK)
        return result;
    for (uint32_t i = 0; i < write->count; i++) {
        uint32_t left = length - i * PAGE_SIZE;
        fill(arg, i * PAGE_SIZE, left < PAGE_SIZE ? left : PAGE_SIZE, write->vectors[i].iov_base);
    }
    extent_write->in_flight++;
    request_wait(txn);
    run_write_start(write, txn->worker, written, extent_write, extent);
    return STORE_OK;
}

/* ---- extents ---- */

struct filling {
    const struct extent_write *extent_write;
    uint64_t start; /* of the extent within the value */
    const char *old;
};

static void fill_extent(void *arg, uint32_t offset, uint32_t len, char *to)
{
    const struct filling *filling = arg;
    if (filling->old)
        memcpy(to, filling->old + offset, len);
    else
        memset(to, 0, len);
    patches_overlay(filling->extent_write->large->patches, filling->start + offset, len, to);
}

static enum store_result write_extent(struct extent_write *extent_write, uint32_t i)
{
    struct node *node;
    enum store_result result = open_node(extent_write, i, &node);
    if (result != STORE_OK)
        return result;
    struct format_extent *extent = &node->extents[i % FORMAT_NODE_FANOUT], old = *extent;
    struct filling filling = {extent_write, (uint64_t)i * FORMAT_EXTENT_BYTES, NULL};
    uint32_t length = new_length(extent_write, i, old.length);
    char *bytes = NULL;
    if (old.page && !patches_cover(extent_write->large->patches, filling.start, length)) {
        bytes = malloc(length);
        if (!bytes)
            return STORE_NO_MEMORY;
        result = extent_copy(extent_write->txn, &old, 0, length, bytes);
        filling.old = bytes;
    }
    if (result == STORE_OK)
        result = write_run(extent_write, length, fill_extent, &filling, extent);
    if (result == STORE_OK && old.page && !list_add(&extent_write->replaced, old))
        result = STORE_NO_MEMORY;
    free(bytes);
    return result;
}

/* ---- nodes and root ---- */

static void fill_node(void *arg, uint32_t offset, uint32_t len, char *to)
{
    memcpy(to, (const char *)arg + offset, len);
}

static enum store_result write_nodes(struct extent_write *extent_write)
{
    for (; extent_write->next_node < extent_write->node_count; extent_write->next_node++) {
        struct node *node = &extent_write->nodes[extent_write->next_node];
        if (!node->extents)
            continue;
        if (extent_write->in_flight >= WINDOW)
            return STORE_WAIT;
        enum store_result result =
            write_run(extent_write, FORMAT_NODE_BYTES, fill_node, node->extents, &node->written);
        if (result != STORE_OK)
            return result;
    }
    return extent_write->in_flight ? STORE_WAIT : STORE_OK;
}

static enum store_result build_root(struct store_txn *txn, struct large_write *large)
{
    struct extent_write *extent_write = large->extent_write;
    const struct format_root *base = large->base;
    assert(extent_write->in_flight == 0);
    uint32_t count = extent_write->depth ? extent_write->node_count : extent_write->extent_count;
    large->root_bytes = (uint32_t)(sizeof *large->root + count * sizeof(struct format_extent));
    large->root = store_alloc(txn, large->root_bytes);
    if (!large->root)
        return STORE_NO_MEMORY;
    *large->root =
        (struct format_root){.length = large->length, .count = count, .depth = extent_write->depth};
    memset(large->root->extents, 0, count * sizeof(struct format_extent));
    for (uint32_t i = 0; i < count; i++) {
        const struct node *node =
            &extent_write->nodes[extent_write->depth ? i : i / FORMAT_NODE_FANOUT];
        if (node->extents)
            large->root->extents[i] = extent_write->depth ? node->written : node->extents[i];
        else if (base && base->depth == extent_write->depth && i < base->count)
            large->root->extents[i] =
                base->extents[i]; /* otherwise a node would be taken for an extent */
    }
    return STORE_OK;
}

static enum store_result write_value(struct store_txn *txn, struct large_write *large)
{
    if (large->root)
        return STORE_OK;
    if (!large->extent_write && !(large->extent_write = begin(txn, large)))
        return STORE_NO_MEMORY;
    struct extent_write *extent_write = large->extent_write;
    while ((extent_write->next = next_touched(extent_write, extent_write->next)) <
           extent_write->extent_count) {
        if (extent_write->in_flight >= WINDOW)
            return STORE_WAIT;
        enum store_result result = write_extent(extent_write, extent_write->next);
        if (result != STORE_OK)
            return result;
        extent_write->next++;
    }
    struct node *first;
    bool deepens = extent_write->depth == 1 && large->base && large->base->depth == 0;
    enum store_result result = deepens ? open_node(extent_write, 0, &first) : STORE_OK;
    if (result == STORE_OK && extent_write->depth)
        result = write_nodes(extent_write);
    if (result == STORE_OK && extent_write->in_flight)
        result = STORE_WAIT;
    return result == STORE_OK ? build_root(txn, large) : result;
}

/* After an error it waits for the writes in flight: they refer to the transaction. */
static enum store_result write_or_wait(struct store_txn *txn, struct large_write *large)
{
    enum store_result result = txn->extent_write_error ? (enum store_result)txn->extent_write_error
                                                       : write_value(txn, large);
    if (result != STORE_OK && result != STORE_WAIT && large->extent_write &&
        large->extent_write->in_flight) {
        txn->extent_write_error = (int)result;
        return STORE_WAIT;
    }
    if (result == STORE_WAIT)
        load_release_extent_pins(txn);
    return result;
}

static enum store_result write_long_key(struct store_txn *txn, struct write *write)
{
    enum store_result result = write->long_key ? STORE_OK : long_key_begin(txn, write);
    return result == STORE_OK ? write_or_wait(txn, &write->long_key->bytes) : result;
}

enum store_result extent_write_all(struct store_txn *txn)
{
    enum store_result result = STORE_OK;
    assert(txn->written_count <= txn->write_count);
    while (txn->written_count < txn->write_count && result == STORE_OK) {
        struct write *write = &txn->writes[txn->written_count];
        if (write->kind == WRITE_PUT && write->key.len > FORMAT_KEY_INLINE)
            result = write_long_key(txn, write);
        if (result == STORE_OK && write->large)
            result = write_or_wait(txn, write->large);
        txn->written_count += result == STORE_OK;
    }
    return result;
}
