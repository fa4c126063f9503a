/*
 * Writing large values: before the commit that names them, the extents that a transaction changes
 * are written anew, whole, to free runs, and are durable when extent_stage returns STORE_OK. The
 * commit then carries only the new root.
 *
 * A value of many extents is staged a few at a time, so that memory stays bounded; the extents and
 * nodes that no patch touches are shared with the value's former version.
 *
 * Invariants
 * 1. Every run in `fresh` belongs to this transaction alone: given back by extent_abandon, or
 * handed over to the value by the commit.
 * 2. What is in `replaced` belongs to the old version: freed after the commit, by the keeper.
 * 3. What an upload has written is the base of a value like any other, until the commit its own.
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

#define WINDOW 4u /* extents of a value being written at once */

struct node {
    struct format_extent *extents; /* FORMAT_NODE_FANOUT of them; NULL: as it was */
    struct format_extent written;
};

struct staging {
    struct store_txn *txn;
    const struct large_write *large;
    uint32_t extent_count, node_count, depth;
    uint32_t next;      /* extent to look at next */
    uint32_t next_node; /* then: node to write next */
    uint32_t in_flight;
    struct node *nodes; /* depth 0 has one, that becomes the root itself */
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

static struct staging *begin(struct store_txn *txn, struct large_write *large)
{
    struct staging *staging = calloc(1, sizeof *staging);
    if (!staging)
        return NULL;
    staging->txn = txn;
    staging->large = large;
    staging->extent_count = divided(large->length, FORMAT_EXTENT_BYTES);
    staging->depth =
        staging->extent_count > FORMAT_ROOT_EXTENTS || (large->base && large->base->depth == 1);
    staging->node_count = divided(staging->extent_count, FORMAT_NODE_FANOUT);
    staging->nodes = calloc(staging->node_count, sizeof *staging->nodes);
    if (!staging->nodes) {
        free(staging);
        return NULL;
    }
    return staging;
}

static void end(struct large_write *large)
{
    struct staging *staging = large->staging;
    for (uint32_t i = 0; i < staging->node_count; i++)
        free(staging->nodes[i].extents);
    free(staging->nodes);
    free(staging->fresh.at);
    free(staging->replaced.at);
    free(staging);
    large->staging = NULL;
}

static void abandon(struct space *space, struct large_write *large)
{
    assert(large->staging->in_flight == 0);
    pthread_mutex_lock(&space->lock);
    for (uint32_t i = 0; i < large->staging->fresh.count; i++)
        run_give_back(space, &large->staging->fresh.at[i]);
    pthread_mutex_unlock(&space->lock);
    end(large);
}

void extent_abandon(struct store_txn *txn)
{
    struct space *space = &txn->store->extents;
    for (uint32_t i = 0; i < txn->write_count; i++) {
        const struct write *write = &txn->writes[i];
        if (write->large && write->large->staging)
            abandon(space, write->large);
        if (write->long_key && write->long_key->bytes.staging)
            abandon(space, &write->long_key->bytes);
    }
}

void extent_free_patched(struct store_txn *txn, uint64_t commit)
{
    for (uint32_t i = 0; i < txn->write_count; i++) {
        struct large_write *large = txn->writes[i].large;
        if (txn->writes[i].long_key)
            end(&txn->writes[i].long_key->bytes);
        if (!large || !large->staging)
            continue;
        extent_free_list(txn->store, large->staging->replaced.at, large->staging->replaced.count, 0,
                         commit);
        if (large->upload)
            txn->store->hooks->upload_handed_over(large->upload);
        end(large);
    }
}

/* ---- descriptors ---- */

/* A length that cannot be true is not for a buffer. */
static enum store_result check_descriptors(const struct staging *staging,
                                           const struct format_extent *extents)
{
    for (uint32_t i = 0; i < FORMAT_NODE_FANOUT; i++)
        if (!format_extent_is_sound(&extents[i]))
            return extent_damaged(staging->txn->store, &extents[i]);
    return STORE_OK;
}

/* The node that describes extent i, with its descriptors in memory. */
static enum store_result open_node(struct staging *staging, uint32_t i, struct node **result)
{
    struct node *node = &staging->nodes[i / FORMAT_NODE_FANOUT];
    const struct format_root *base = staging->large->base;
    uint32_t number = i / FORMAT_NODE_FANOUT;
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
        copied =
            extent_copy_node(staging->txn, &base->extents[number], 0, FORMAT_NODE_BYTES, extents);
    if (copied == STORE_OK)
        copied = check_descriptors(staging, extents);
    bool replaces = base && base->depth == 1 && number < base->count && base->extents[number].page;
    if (copied == STORE_OK && replaces && !list_add(&staging->replaced, base->extents[number]))
        copied = STORE_NO_MEMORY;
    if (copied != STORE_OK) {
        free(extents);
        return copied;
    }
    node->extents = extents;
    return STORE_OK;
}

/* The first extent from i on that a patch touches; extent_count: none. */
static uint32_t next_touched(const struct staging *staging, uint32_t i)
{
    uint64_t start = (uint64_t)i * FORMAT_EXTENT_BYTES;
    const struct patch *patch = patches_behind(staging->large->patches, start);
    if (!patch)
        return staging->extent_count;
    return patch->offset > start ? (uint32_t)(patch->offset / FORMAT_EXTENT_BYTES) : i;
}

/* How long extent i becomes: up to the last patched byte, or as long as it was. */
static uint32_t new_length(const struct staging *staging, uint32_t i, uint32_t old_length)
{
    uint64_t start = (uint64_t)i * FORMAT_EXTENT_BYTES;
    uint64_t end = patches_end_before(staging->large->patches, start + FORMAT_EXTENT_BYTES);
    uint64_t length = end > start ? end - start : 0;
    if (length > FORMAT_EXTENT_BYTES)
        length = FORMAT_EXTENT_BYTES;
    return length > old_length ? (uint32_t)length : old_length;
}

/* ---- writing ---- */

static void written(struct disk_op *op)
{
    struct staging *staging = op->arg;
    struct store_txn *txn = staging->txn;
    run_write_end(run_write_of(op));
    staging->in_flight--;
    request_wake(txn, txn->worker);
}

/* Writes `length` bytes, which fill(arg, offset, len, to) gives page by page, to a new run. */
static enum store_result write_run(struct staging *staging, uint32_t length,
                                   void (*fill)(void *arg, uint32_t offset, uint32_t len, char *to),
                                   void *arg, struct format_extent *extent)
{
    struct store_txn *txn = staging->txn;
    struct run_write *write;
    if (!extent_list_room(&staging->fresh))
        return STORE_NO_MEMORY;
    enum store_result result = run_write_begin(
        txn, length, txn->in_place ? RUN_WRITE_URGENT : RUN_WRITE_WAITS, &staging->fresh, &write);
    if (result != STORE_OK)
        return result;
    for (uint32_t i = 0; i < write->count; i++) {
        uint32_t left = length - i * PAGE_SIZE;
        fill(arg, i * PAGE_SIZE, left < PAGE_SIZE ? left : PAGE_SIZE, write->vectors[i].iov_base);
    }
    staging->in_flight++;
    request_wait(txn);
    run_write_start(write, txn->worker, written, staging, extent);
    return STORE_OK;
}

/* ---- extents ---- */

struct filling {
    const struct staging *staging;
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
    patches_overlay(filling->staging->large->patches, filling->start + offset, len, to);
}

static enum store_result stage_extent(struct staging *staging, uint32_t i)
{
    struct node *node;
    enum store_result result = open_node(staging, i, &node);
    if (result != STORE_OK)
        return result;
    struct format_extent *extent = &node->extents[i % FORMAT_NODE_FANOUT], old = *extent;
    struct filling filling = {staging, (uint64_t)i * FORMAT_EXTENT_BYTES, NULL};
    uint32_t length = new_length(staging, i, old.length);
    char *bytes = NULL;
    if (old.page && !patches_cover(staging->large->patches, filling.start, length)) {
        bytes = malloc(length);
        if (!bytes)
            return STORE_NO_MEMORY;
        result = extent_copy(staging->txn, &old, 0, length, bytes);
        filling.old = bytes;
    }
    if (result == STORE_OK)
        result = write_run(staging, length, fill_extent, &filling, extent);
    if (result == STORE_OK && old.page && !list_add(&staging->replaced, old))
        result = STORE_NO_MEMORY;
    free(bytes);
    return result;
}

/* ---- nodes and root ---- */

static void fill_node(void *arg, uint32_t offset, uint32_t len, char *to)
{
    memcpy(to, (const char *)arg + offset, len);
}

static enum store_result stage_nodes(struct staging *staging)
{
    for (; staging->next_node < staging->node_count; staging->next_node++) {
        struct node *node = &staging->nodes[staging->next_node];
        if (!node->extents)
            continue;
        if (staging->in_flight >= WINDOW)
            return STORE_WAIT;
        enum store_result result =
            write_run(staging, FORMAT_NODE_BYTES, fill_node, node->extents, &node->written);
        if (result != STORE_OK)
            return result;
    }
    return staging->in_flight ? STORE_WAIT : STORE_OK;
}

static enum store_result build_root(struct store_txn *txn, struct large_write *large)
{
    struct staging *staging = large->staging;
    const struct format_root *base = large->base;
    uint32_t count = staging->depth ? staging->node_count : staging->extent_count;
    large->root_bytes = (uint32_t)(sizeof *large->root + count * sizeof(struct format_extent));
    large->root = store_alloc(txn, large->root_bytes);
    if (!large->root)
        return STORE_NO_MEMORY;
    *large->root =
        (struct format_root){.length = large->length, .count = count, .depth = staging->depth};
    memset(large->root->extents, 0, count * sizeof(struct format_extent));
    for (uint32_t i = 0; i < count; i++) {
        const struct node *node = &staging->nodes[staging->depth ? i : i / FORMAT_NODE_FANOUT];
        if (node->extents)
            large->root->extents[i] = staging->depth ? node->written : node->extents[i];
        else if (base && base->depth == staging->depth && i < base->count)
            large->root->extents[i] = base->extents[i]; /* else a node would be an extent */
    }
    return STORE_OK;
}

static enum store_result stage(struct store_txn *txn, struct large_write *large)
{
    if (large->root)
        return STORE_OK;
    if (!large->staging && !(large->staging = begin(txn, large)))
        return STORE_NO_MEMORY;
    struct staging *staging = large->staging;
    while ((staging->next = next_touched(staging, staging->next)) < staging->extent_count) {
        if (staging->in_flight >= WINDOW)
            return STORE_WAIT;
        enum store_result result = stage_extent(staging, staging->next);
        if (result != STORE_OK)
            return result;
        staging->next++;
    }
    struct node *first;
    bool deepens = staging->depth == 1 && large->base && large->base->depth == 0;
    enum store_result result = deepens ? open_node(staging, 0, &first) : STORE_OK;
    if (result == STORE_OK && staging->depth)
        result = stage_nodes(staging);
    if (result == STORE_OK && staging->in_flight)
        result = STORE_WAIT;
    return result == STORE_OK ? build_root(txn, large) : result;
}

/* An error while writes are in flight has to wait for them: they refer to the transaction. */
static enum store_result stage_or_wait(struct store_txn *txn, struct large_write *large)
{
    enum store_result result =
        txn->stage_error ? (enum store_result)txn->stage_error : stage(txn, large);
    if (result != STORE_OK && result != STORE_WAIT && large->staging && large->staging->in_flight) {
        txn->stage_error = (int)result;
        return STORE_WAIT;
    }
    if (result == STORE_WAIT)
        load_release_extent_pins(txn);
    return result;
}

static enum store_result stage_long_key(struct store_txn *txn, struct write *write)
{
    enum store_result result = write->long_key ? STORE_OK : long_key_begin(txn, write);
    return result == STORE_OK ? stage_or_wait(txn, &write->long_key->bytes) : result;
}

enum store_result extent_stage(struct store_txn *txn)
{
    enum store_result result = STORE_OK;
    while (txn->staged_count < txn->write_count && result == STORE_OK) {
        struct write *write = &txn->writes[txn->staged_count];
        if (write->kind == WRITE_PUT && write->key.len > FORMAT_KEY_INLINE)
            result = stage_long_key(txn, write);
        if (result == STORE_OK && write->large)
            result = stage_or_wait(txn, write->large);
        txn->staged_count += result == STORE_OK;
    }
    return result;
}
