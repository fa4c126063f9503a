/*
 * Purges dropped trees: frees the pages of collections that were deleted, overwritten, expired or
 * flushed, so that no item names them any more.
 *
 * Only the deletion of overflow values is written to disk: at recovery a node is free if no item
 * names its collection. So a dropped tree exists in memory only, and a store that stops halfway
 * through has lost nothing but the work.
 *
 * A worker purges a dropped tree one node per transaction. It reads the nodes above the leaves,
 * and the leaves themselves only if they name overflow values. The pages are freed once all of
 * them are known.
 *
 * Invariants
 * 1. A dropped tree belongs to the list, or to the one worker that works on it.
 * 2. What a transaction finds is recorded only after its commit (`purged`), not before: it may run
 *    several times.
 * 3. A dropped tree of another generation is void: all its pages were freed, or found again by
 *    recovery. `generation` changes under all partitions' locks.
 * 4. Freeing a page writes nothing to disk, where it stays as it is. A dirty frame therefore
 *    stays, since the disk may still hold what was in the slot before the node.
 */
#include "storage/maintenance/tree_purge.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/tree/tree_drop.h"
#include "storage/txn/wait.h"
#include "storage/txn/load.h"
#include "storage/tree/tree.h"
#include "storage/tree/tree_overflow.h"

#define NODES_AT_ONCE 16u /* transactions per round */
#define PAGES_AT_ONCE 1024u
#define OVERFLOW_AT_ONCE 32u

/* ---- purging: one transaction ---- */

static enum store_result delete_overflow(struct store_txn *txn,
                                         const struct format_overflow_key *from)
{
    struct format_overflow_key *bytes = store_alloc(txn, sizeof *bytes);
    struct store_key key;
    if (!bytes)
        return STORE_NO_MEMORY;
    *bytes = *from;
    tree_overflow_key(txn->store, &key, bytes);
    return store_delete(txn, &key);
}

/* Deletes the overflow values that a leaf names. */
static enum store_result empty_leaf(struct store_txn *txn, const struct dropped_tree *dropped,
                                    const struct format_node *leaf)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < leaf->count && result == STORE_OK; i++) {
        struct node_entry entry;
        struct format_overflow overflow;
        leaf_get(leaf, i, &entry);
        if (!entry.overflow)
            continue;
        memcpy(&overflow, entry.value, sizeof overflow);
        struct format_overflow_key key = {
            .collection = dropped->collection, .element = overflow.element, .slot = overflow.slot};
        uint32_t partition = (uint32_t)key.slot >> txn->store->slot_shift;
        if (partition == dropped->home)
            result = delete_overflow(txn, &key);
    }
    return result;
}

/* Whether the page can hold a node. */
static bool is_node_page(const struct page_file *file, uint32_t page)
{
    return page_file_class_at(file, page) == TREE_CLASS && page % SEGMENT_PAGES != 0;
}

static void report_damage(struct store *store, const struct dropped_tree *dropped, uint32_t page)
{
    atomic_store(&store->scan_wanted, true);
    atomic_fetch_add_explicit(&store->damaged, 1, memory_order_relaxed);
    env_log(&store->env, STORE_LOG_WARNING,
            "A deleted collection refers to page %u of partition %u, which does not belong to it: "
            "it is damaged, and the page remains allocated",
            page, dropped->home);
}

static bool is_of(const struct dropped_tree *dropped, const struct format_node *node)
{
    return node->item.database == FORMAT_HIDDEN && node->collection == dropped->collection;
}

/* A damaged page does not tell its owner: the collection's reference decides. */
static bool is_of_another(const struct dropped_tree *dropped, const struct format_node *node)
{
    return node->item.database != FORMAT_DAMAGED && !is_of(dropped, node);
}

static enum store_result purge_node(struct store_txn *txn, struct dropped_tree *dropped)
{
    assert(dropped->to_purge.count > 0);
    struct purge_node purge = dropped->to_purge.at[dropped->to_purge.count - 1];
    struct page_file *file = &txn->store->partitions[dropped->home].file;
    uint32_t frame;
    dropped->found_count = 0;
    if (!is_node_page(file, purge.page)) /* reported where the pages are freed */
        return STORE_OK;
    enum store_result result = load_page(txn, file, purge.page, &frame);
    if (result == STORE_WAIT)
        return result;
    if (result != STORE_OK) { /* nothing below it can be found */
        atomic_store(&txn->store->scan_wanted, true);
        return STORE_OK;
    }
    const struct format_node *node = (const void *)arena_memory(file->arena, frame);
    if (!is_of(dropped, node) || node->level != purge.level)
        return STORE_OK;
    if (purge.level == 0)
        return empty_leaf(txn, dropped, node);
    for (uint32_t i = 0; i < node->count; i++)
        dropped->found[i] = inner_page(node, i);
    dropped->found_count = node->count;
    dropped->found_level = purge.level - 1;
    return STORE_OK;
}

static enum store_result purge_overflow(struct store_txn *txn, const struct dropped_tree *dropped)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < OVERFLOW_AT_ONCE && i < dropped->overflow_count && result == STORE_OK;
         i++)
        result = delete_overflow(txn, &dropped->overflow[dropped->overflow_count - 1 - i]);
    return result;
}

/* Frees the page; the node's bytes may stay where they are. A page that does not belong to the
 * collection is not freed. If a leaf is not in memory, only the page's class shows that. */
static void give_page(struct page_file *file, const struct dropped_tree *dropped, uint32_t page)
{
    uint32_t frame = is_node_page(file, page) ? file->table[page] : 0;
    bool is_here = frame && arena_frame(file->arena, frame)->state == FRAME_VALID;
    if (!is_node_page(file, page) || page_file_slot_is_free(file, page, 0) ||
        (is_here && is_of_another(dropped, (const void *)arena_memory(file->arena, frame)))) {
        report_damage(file->engine, dropped, page);
        return;
    }
    if (is_here && !arena_frame(file->arena, frame)->dirty)
        page_file_drop(file, page);
    page_file_give_slot(file, page, 0);
}

static void give_pages(struct page_file *file, struct dropped_tree *dropped)
{
    for (uint32_t i = 0; i < PAGES_AT_ONCE && dropped->pages.count; i++)
        give_page(file, dropped, dropped->pages.at[--dropped->pages.count]);
}

static enum store_result purge(struct store_txn *txn, struct store_request *request)
{
    struct dropped_tree *dropped = (struct dropped_tree *)request;
    assert(dropped->is_running && !dropped->is_done);
    if (dropped->generation != txn->store->generation) {
        dropped->is_done = true;
        return STORE_OK;
    }
    if (dropped->overflow_count)
        return purge_overflow(txn, dropped);
    if (dropped->to_purge.count)
        return purge_node(txn, dropped);
    give_pages(&txn->store->partitions[dropped->home].file, dropped);
    dropped->is_done = dropped->pages.count == 0;
    return STORE_OK;
}

/* ---- purging: the sequence ---- */

/* The rest is recovered at the next start. */
static void give_up(struct dropped_tree *dropped)
{
    dropped->is_done = true;
    atomic_store(&dropped->worker->store->scan_wanted, true);
}

static void remember(struct dropped_tree *dropped)
{
    const struct page_file *file = &dropped->worker->store->partitions[dropped->home].file;
    assert(!dropped->is_running);
    bool noted = true;
    if (dropped->overflow_count) {
        dropped->overflow_count -=
            dropped->overflow_count < OVERFLOW_AT_ONCE ? dropped->overflow_count : OVERFLOW_AT_ONCE;
        dropped->is_done = dropped->overflow_count == 0;
        return;
    }
    if (dropped->to_purge.count == 0)
        return;
    dropped->to_purge.count--;
    for (uint32_t i = 0; noted && i < dropped->found_count; i++)
        noted = dropped_tree_note_node(dropped, dropped->found[i], dropped->found_level);
    dropped->found_count = 0;
    if (dropped->pages.count > (uint64_t)file->segment_count * SEGMENT_PAGES) {
        report_damage(dropped->worker->store, dropped, dropped->pages.at[0]);
        noted = false;
    }
    if (!noted)
        give_up(dropped);
}

static void purged(struct dropped_tree *dropped, enum store_result result)
{
    struct store_worker *worker = dropped->worker;
    assert(worker->dropped == dropped && dropped->is_running);
    dropped->is_running = false;
    if (result != STORE_OK)
        give_up(dropped);
    else if (!dropped->is_done)
        remember(dropped);
    if (dropped->is_done) {
        worker->dropped = NULL;
        atomic_fetch_sub_explicit(&worker->store->dropped_tree_count, 1, memory_order_relaxed);
        dropped_tree_free(dropped);
    }
}

static void on_done(struct store_request *request, enum store_result result)
{
    struct dropped_tree *dropped = (struct dropped_tree *)request;
    request_notify(dropped->worker);
    purged(dropped, result);
}

void tree_purge(struct store_worker *worker)
{
    struct store *store = worker->store;
    for (uint32_t i = 0; i < NODES_AT_ONCE && !worker->stopping; i++) {
        struct dropped_tree *dropped = worker->dropped;
        if (!dropped)
            dropped = worker->dropped = dropped_tree_take(store);
        if (!dropped || dropped->is_running)
            return;
        dropped->worker = worker;
        dropped->is_running = true;
        dropped->request = (struct store_request){
            .run = purge, .done = on_done, .keys = &dropped->key, .key_count = 1};
        enum store_result result = store_execute(worker, &dropped->request);
        if (result == STORE_WAIT)
            return;
        purged(dropped, result);
    }
    if (worker->dropped)
        request_notify(worker);
}

void tree_leave_dropped(struct store_worker *worker)
{
    struct dropped_tree *dropped = worker->dropped;
    worker->dropped = NULL;
    if (!dropped)
        return;
    assert(!dropped->is_running);
    atomic_fetch_sub_explicit(&worker->store->dropped_tree_count, 1, memory_order_relaxed);
    dropped_tree_enqueue(worker->store, dropped);
}
