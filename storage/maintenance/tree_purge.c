/*
 * Taking collections apart that nobody names any more: deleted, overwritten, expired, flushed.
 *
 * Nothing is written for it but the deletion of values outside of nodes: at recovery a node is free
 * if no item names its collection. So a grave is in memory only, and a store that stops halfway has
 * lost nothing but the work.
 *
 * A grave is dug by a worker, one node per transaction: the nodes above the leaves are read, and
 * the leaves themselves only where values lie outside. The pages become free when all are found.
 *
 * Invariants
 * 1. A grave belongs to the list, or to the one worker that works on it.
 * 2. What a transaction of it finds is remembered when that has committed (`dug`), not before: it
 * may run several times.
 * 3. A grave of another generation is void: all pages were freed, or found anew by recovery.
 *    `generation` changes under all partitions' locks.
 * 4. A page is given back without a trace on disk, where it is as before: a dirty frame stays,
 * since what was in the slot before the node may be on disk still.
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

#define NODES_AT_ONCE 16u /* transactions of a round */
#define PAGES_AT_ONCE 1024u
#define OUTSIDE_AT_ONCE 32u

/* ---- digging: one transaction ---- */

static enum store_result delete_outside(struct store_txn *txn,
                                        const struct format_outside_key *from)
{
    struct format_outside_key *bytes = store_alloc(txn, sizeof *bytes);
    struct store_key key;
    if (!bytes)
        return STORE_NO_MEMORY;
    *bytes = *from;
    tree_outside_key(txn->store, &key, bytes);
    return store_delete(txn, &key);
}

/* The values outside that a leaf names. */
static enum store_result empty_leaf(struct store_txn *txn, const struct grave *grave,
                                    const struct format_node *leaf)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < leaf->count && result == STORE_OK; i++) {
        struct node_entry entry;
        struct format_outside outside;
        leaf_get(leaf, i, &entry);
        if (!entry.outside)
            continue;
        memcpy(&outside, entry.value, sizeof outside);
        struct format_outside_key key = {
            .collection = grave->collection, .element = outside.element, .slot = outside.slot};
        uint32_t partition = (uint32_t)key.slot >> txn->store->slot_shift;
        if (partition == grave->home)
            result = delete_outside(txn, &key);
    }
    return result;
}

/* Whether a node can be there. */
static bool is_node_page(const struct space *space, uint32_t page)
{
    return space_class_at(space, page) == TREE_CLASS && page % SEGMENT_PAGES != 0;
}

static void report_damage(struct store *store, const struct grave *grave, uint32_t page)
{
    atomic_store(&store->scan_wanted, true);
    atomic_fetch_add_explicit(&store->damaged, 1, memory_order_relaxed);
    env_log(&store->env, STORE_LOG_WARNING,
            "A deleted collection names page %u of partition %u, which is not its own: damaged, "
            "the page stays in use",
            page, grave->home);
}

static bool is_of(const struct grave *grave, const struct format_node *node)
{
    return node->item.database == FORMAT_HIDDEN && node->collection == grave->collection;
}

static enum store_result dig_node(struct store_txn *txn, struct grave *grave)
{
    struct dig dig = grave->digs.at[grave->digs.count - 1];
    struct space *space = &txn->store->partitions[grave->home].space;
    uint32_t frame;
    grave->found_count = 0;
    if (!is_node_page(space, dig.page)) /* told where the pages are given back */
        return STORE_OK;
    enum store_result result = load_page(txn, space, dig.page, &frame);
    if (result == STORE_WAIT)
        return result;
    if (result != STORE_OK) { /* below it nothing is found */
        atomic_store(&txn->store->scan_wanted, true);
        return STORE_OK;
    }
    const struct format_node *node = (const void *)arena_memory(space->arena, frame);
    if (!is_of(grave, node) || node->level != dig.level)
        return STORE_OK;
    if (dig.level == 0)
        return empty_leaf(txn, grave, node);
    for (uint32_t i = 0; i < node->count; i++)
        grave->found[i] = inner_page(node, i);
    grave->found_count = node->count;
    grave->found_level = dig.level - 1;
    return STORE_OK;
}

static enum store_result dig_outside(struct store_txn *txn, const struct grave *grave)
{
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < OUTSIDE_AT_ONCE && i < grave->outside_count && result == STORE_OK; i++)
        result = delete_outside(txn, &grave->outside[grave->outside_count - 1 - i]);
    return result;
}

/* The node's bytes may stay where they are. What is no page of the collection is not given back:
 * of a leaf that is not in memory only the page's class tells. */
static void give_page(struct space *space, const struct grave *grave, uint32_t page)
{
    uint32_t frame = is_node_page(space, page) ? space->table[page] : 0;
    bool is_here = frame && arena_frame(space->arena, frame)->state == FRAME_VALID;
    if (!is_node_page(space, page) || space_slot_is_free(space, page, 0) ||
        (is_here && !is_of(grave, (const void *)arena_memory(space->arena, frame)))) {
        report_damage(space->engine, grave, page);
        return;
    }
    if (is_here && !arena_frame(space->arena, frame)->dirty)
        space_drop(space, page);
    space_give_slot(space, page, 0);
}

static void give_pages(struct space *space, struct grave *grave)
{
    for (uint32_t i = 0; i < PAGES_AT_ONCE && grave->pages.count; i++)
        give_page(space, grave, grave->pages.at[--grave->pages.count]);
}

static enum store_result dig(struct store_txn *txn, struct store_request *request)
{
    struct grave *grave = (struct grave *)request;
    if (grave->generation != txn->store->generation) {
        grave->is_done = true;
        return STORE_OK;
    }
    if (grave->outside_count)
        return dig_outside(txn, grave);
    if (grave->digs.count)
        return dig_node(txn, grave);
    give_pages(&txn->store->partitions[grave->home].space, grave);
    grave->is_done = grave->pages.count == 0;
    return STORE_OK;
}

/* ---- digging: one after the other ---- */

/* The rest comes back with the next start. */
static void give_up(struct grave *grave)
{
    grave->is_done = true;
    atomic_store(&grave->worker->store->scan_wanted, true);
}

static void remember(struct grave *grave)
{
    const struct space *space = &grave->worker->store->partitions[grave->home].space;
    bool noted = true;
    if (grave->outside_count) {
        grave->outside_count -=
            grave->outside_count < OUTSIDE_AT_ONCE ? grave->outside_count : OUTSIDE_AT_ONCE;
        grave->is_done = grave->outside_count == 0;
        return;
    }
    if (grave->digs.count == 0)
        return;
    grave->digs.count--;
    for (uint32_t i = 0; noted && i < grave->found_count; i++)
        noted = grave_note_node(grave, grave->found[i], grave->found_level);
    grave->found_count = 0;
    if (grave->pages.count > (uint64_t)space->segment_count * SEGMENT_PAGES) {
        report_damage(grave->worker->store, grave, grave->pages.at[0]);
        noted = false;
    }
    if (!noted)
        give_up(grave);
}

static void dug(struct grave *grave, enum store_result result)
{
    struct store_worker *worker = grave->worker;
    grave->is_running = false;
    if (result != STORE_OK)
        give_up(grave);
    else if (!grave->is_done)
        remember(grave);
    if (grave->is_done) {
        worker->grave = NULL;
        atomic_fetch_sub_explicit(&worker->store->grave_count, 1, memory_order_relaxed);
        grave_free(grave);
    }
}

static void on_done(struct store_request *request, enum store_result result)
{
    struct grave *grave = (struct grave *)request;
    request_notify(grave->worker);
    dug(grave, result);
}

void tree_dig(struct store_worker *worker)
{
    struct store *store = worker->store;
    for (uint32_t i = 0; i < NODES_AT_ONCE && !worker->stopping; i++) {
        struct grave *grave = worker->grave;
        if (!grave)
            grave = worker->grave = grave_take(store);
        if (!grave || grave->is_running)
            return;
        grave->worker = worker;
        grave->is_running = true;
        grave->request = (struct store_request){
            .run = dig, .done = on_done, .keys = &grave->key, .key_count = 1};
        enum store_result result = store_execute(worker, &grave->request);
        if (result == STORE_WAIT)
            return;
        dug(grave, result);
    }
    if (worker->grave)
        request_notify(worker);
}

void tree_leave_grave(struct store_worker *worker)
{
    struct grave *grave = worker->grave;
    worker->grave = NULL;
    if (!grave)
        return;
    assert(!grave->is_running);
    atomic_fetch_sub_explicit(&worker->store->grave_count, 1, memory_order_relaxed);
    grave_enlist(worker->store, grave);
}
