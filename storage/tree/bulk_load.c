/*
 * Bulk load: collections under construction. No key names one before it is complete, so each step
 * of the work may be a commit of its own, and the collection may be larger than memory.
 *
 *     begin -> (tree, insert ..., step)* -> put -> end
 *         \------------ end, at any time: what was built is dropped
 *
 * Nothing on disk marks it as incomplete: at recovery a node whose collection no item names is
 * free, like a node of a dropped collection (tree_drop.c).
 *
 * Invariants
 * 1. `roots` is what the last step has committed. Additions of a run are kept in that run's
 *    struct collection, and are discarded with it unless the run ends with a step.
 * 2. A step commits the changes of its bulk load alone. All other writes of the run are
 *    discarded, as with any wait, and repeated by a later run.
 * 3. The collection belongs to a key once a transaction has put it there and has committed. Then
 *    the end of the bulk load leaves it alone.
 */
#include "storage/tree/bulk_load.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/tree/tree.h"
#include "storage/tree/tree_owner.h"
#include "storage/tree/tree_edit.h"
#include "storage/txn/wait.h"
#include "storage/tree/tree_drop.h"

struct store_bulk_load {
    struct store *store;
    /* The store's when it began. If the store's has changed, the collection no longer exists. */
    uint64_t generation;
    uint64_t steps;
    bool is_handed_over;
    uint32_t length; /* of roots */
    struct format_trees *roots;
};

enum store_result store_bulk_load_begin(struct store_txn *txn, const struct store_key *key,
                                        uint32_t count, struct store_bulk_load **bulk_load)
{
    assert(count > 0 && count <= STORE_TREES);
    uint32_t length = (uint32_t)(sizeof(struct format_trees) + count * sizeof(struct format_tree));
    struct store_bulk_load *b = calloc(1, sizeof *b);
    struct format_trees *roots = calloc(1, length);
    if (!b || !roots) {
        free(b);
        free(roots);
        return STORE_NO_MEMORY;
    }
    *b = (struct store_bulk_load){.store = txn->store,
                                  .generation = txn->store->generation,
                                  .length = length,
                                  .roots = roots};
    roots->collection = tree_next_id(txn->store);
    roots->home = engine_partition(txn->store, key->slot)->file.id;
    roots->count = (uint8_t)count;
    *bulk_load = b;
    return STORE_OK;
}

uint64_t store_bulk_load_steps(const struct store_bulk_load *bulk_load)
{
    return bulk_load->steps;
}

/* The collection as this run sees it. */
static enum store_result open_building(struct store_txn *txn, struct store_bulk_load *bulk_load,
                                       struct collection **collection)
{
    assert(bulk_load->store == txn->store);
    struct collection *c = tree_known(txn, bulk_load->roots->collection);
    if (!c && !(c = tree_add_known(txn, bulk_load->roots, bulk_load->length)))
        return STORE_NO_MEMORY;
    c->bulk_load = bulk_load;
    c->is_written = true; /* no item names it, so tree_touch has nothing to write */
    *collection = c;
    return request_lock_too(txn, bulk_load->roots->home);
}

enum store_result store_bulk_load_tree(struct store_txn *txn, struct store_bulk_load *bulk_load,
                                       uint32_t which, struct store_tree **tree)
{
    struct collection *collection;
    assert(which < bulk_load->roots->count && !bulk_load->is_handed_over);
    enum store_result result = open_building(txn, bulk_load, &collection);
    if (result == STORE_OK)
        *tree = &collection->trees[which];
    return result;
}

enum store_result store_bulk_load_step(struct store_txn *txn, struct store_bulk_load *bulk_load)
{
    assert(!txn->bulk_load && !bulk_load->is_handed_over);
    txn->bulk_load = bulk_load;
    return store_step(txn);
}

enum store_result store_put_bulk_load(struct store_txn *txn, const struct store_key *key,
                                      uint8_t type, struct store_bulk_load *bulk_load,
                                      int64_t expire_ms)
{
    struct collection *collection;
    enum store_result result = open_building(txn, bulk_load, &collection);
    return result == STORE_OK ? txn_put_trees(txn, key, collection, type, expire_ms) : result;
}

void store_bulk_load_end(struct store_bulk_load *bulk_load)
{
    if (!bulk_load->is_handed_over) {
        tree_drop_of(bulk_load->store, bulk_load->roots, bulk_load->generation);
        engine_wake_workers(bulk_load->store);
    }
    free(bulk_load->roots);
    free(bulk_load);
}

/* ---- the step's commit ---- */

/* Whether the write is an overflow value of this collection. */
static bool is_beside(const struct write *write, uint64_t id)
{
    if (write->key.db != STORE_HIDDEN_DB)
        return false;
    const struct format_overflow_key *key = (const void *)write->key.data;
    return key->collection == id;
}

void bulk_load_settle(struct store_txn *txn)
{
    uint64_t id = txn->bulk_load->roots->collection;
    assert(txn->phase == TXN_RUN && !txn->trees.is_settled);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < txn->write_count; i++)
        if (is_beside(&txn->writes[i], id))
            txn->writes[kept++] = txn->writes[i];
    txn->write_count = kept;
    txn->write_table_size = 0;
    txn->arrangement.changed = false;
    for (struct collection *c = txn->trees.collections; c; c = c->next)
        c->is_given_up = c->bulk_load != txn->bulk_load;
    tree_settle_edits(txn);
    txn->trees.is_settled = true;
}

void bulk_load_committed(struct store_txn *txn)
{
    struct store_bulk_load *bulk_load = txn->bulk_load;
    assert(txn->phase == TXN_BUILD && !bulk_load->is_handed_over);
    const struct collection *c = tree_known(txn, bulk_load->roots->collection);
    if (c)
        memcpy(bulk_load->roots, c->roots, bulk_load->length);
    bulk_load->steps++;
    txn->bulk_load = NULL;
}

void bulk_load_hand_over(struct store_txn *txn)
{
    for (struct collection *c = txn->trees.collections; c; c = c->next)
        if (c->bulk_load && !c->is_given_up)
            c->bulk_load->is_handed_over = true;
}
