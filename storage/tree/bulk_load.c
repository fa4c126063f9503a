/*
 * Collections that are being made: no key names one before it is finished, so each step of the work
 * may be a commit of its own, and the whole be larger than memory.
 *
 *     begin -> (tree, insert ..., step)* -> put -> end
 *         \------------ end, at any time: what is there is taken apart
 *
 * Nothing on disk says that it is unfinished: a node whose collection no item names is free at
 * recovery, as one of a collection that was given up (tree_drop.c).
 *
 * Invariants
 * 1. `roots` is what the last step has committed. What a run adds to them is in that run's struct
 *    collection, and forgotten with it, unless the run ends with a step.
 * 2. A step commits the changes of its building alone; whatever else the run has written is
 *    forgotten, as with any wait, and made again by a later run.
 * 3. It is a key's once a transaction has put it and has committed: then its end leaves it alone.
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

struct store_building {
    struct store *store;
    uint64_t generation; /* of what is in memory: of another one it is gone */
    uint64_t steps;
    bool is_handed_over;
    uint32_t length; /* of roots */
    struct format_trees *roots;
};

enum store_result store_building_begin(struct store_txn *txn, const struct store_key *key,
                                       uint32_t count, struct store_building **building)
{
    assert(count > 0 && count <= STORE_TREES);
    uint32_t length = (uint32_t)(sizeof(struct format_trees) + count * sizeof(struct format_tree));
    struct store_building *b = calloc(1, sizeof *b);
    struct format_trees *roots = calloc(1, length);
    if (!b || !roots) {
        free(b);
        free(roots);
        return STORE_NO_MEMORY;
    }
    *b = (struct store_building){.store = txn->store,
                                 .generation = txn->store->generation,
                                 .length = length,
                                 .roots = roots};
    roots->collection = tree_next_id(txn->store);
    roots->home = engine_partition(txn->store, key->slot)->space.id;
    roots->count = (uint8_t)count;
    *building = b;
    return STORE_OK;
}

uint64_t store_building_steps(const struct store_building *building)
{
    return building->steps;
}

/* As this run sees it. */
static enum store_result open_building(struct store_txn *txn, struct store_building *building,
                                       struct collection **collection)
{
    struct collection *c = tree_known(txn, building->roots->collection);
    if (!c && !(c = tree_add_known(txn, building->roots, building->length)))
        return STORE_NO_MEMORY;
    c->building = building;
    c->is_written = true; /* no key's item changes with it */
    *collection = c;
    return request_lock_too(txn, building->roots->home);
}

enum store_result store_building_tree(struct store_txn *txn, struct store_building *building,
                                      uint32_t which, struct store_tree **tree)
{
    struct collection *collection;
    assert(which < building->roots->count && !building->is_handed_over);
    enum store_result result = open_building(txn, building, &collection);
    if (result == STORE_OK)
        *tree = &collection->trees[which];
    return result;
}

enum store_result store_building_step(struct store_txn *txn, struct store_building *building)
{
    txn->building = building;
    return store_step(txn);
}

enum store_result store_put_building(struct store_txn *txn, const struct store_key *key,
                                     uint8_t type, struct store_building *building,
                                     int64_t expire_ms)
{
    struct collection *collection;
    enum store_result result = open_building(txn, building, &collection);
    return result == STORE_OK ? txn_put_trees(txn, key, collection, type, expire_ms) : result;
}

void store_building_end(struct store_building *building)
{
    if (!building->is_handed_over) {
        tree_bury_of(building->store, building->roots, building->generation);
        engine_wake_workers(building->store);
    }
    free(building->roots);
    free(building);
}

/* ---- the step's commit ---- */

/* A value beside the nodes of this collection. */
static bool is_beside(const struct write *write, uint64_t id)
{
    if (write->key.db != STORE_HIDDEN_DB)
        return false;
    const struct format_outside_key *key = (const void *)write->key.data;
    return key->collection == id;
}

void building_settle(struct store_txn *txn)
{
    uint64_t id = txn->building->roots->collection;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < txn->write_count; i++)
        if (is_beside(&txn->writes[i], id))
            txn->writes[kept++] = txn->writes[i];
    txn->write_count = kept;
    txn->write_table_size = 0;
    txn->arrangement.changed = false;
    for (struct collection *c = txn->trees.collections; c; c = c->next)
        c->is_given_up = c->building != txn->building;
    tree_settle_edits(txn);
    txn->trees.is_settled = true;
}

void building_committed(struct store_txn *txn)
{
    struct store_building *building = txn->building;
    const struct collection *c = tree_known(txn, building->roots->collection);
    if (c)
        memcpy(building->roots, c->roots, building->length);
    building->steps++;
    txn->building = NULL;
}

void building_hand_over(struct store_txn *txn)
{
    for (struct collection *c = txn->trees.collections; c; c = c->next)
        if (c->building && !c->is_given_up)
            c->building->is_handed_over = true;
}
