/*
 * What a transaction knows about the trees it has opened and the nodes it changes. Private to
 * storage/.
 */
#ifndef VELLUM_STORE_TREE_H
#define VELLUM_STORE_TREE_H

#include <assert.h>

#include "storage/collections.h"
#include "storage/txn/engine.h"
#include "storage/format/tree_node.h"

#define TREE_CLASS FORMAT_SLAB_CLASSES /* a node fills a page */

struct store_tree {
    struct store_txn *txn;
    struct collection *collection;
    struct format_tree *root;
    char *buffer; /* the last entry returned, where its page may be evicted meanwhile */
    /* The node last read of each level: its page stays in memory as long as the run holds its
     * locks and does not release its pages (load_leave_pages). */
    struct {
        const struct format_node *node;
        uint32_t page, leavings;
    } seen[STORE_TREE_HEIGHT_MAX];
};

/* An item that has trees, in one transaction. `roots` is what its item contains, or will
 * contain. */
struct collection {
    struct collection *next;
    struct format_trees *roots;
    uint32_t length; /* of roots */
    struct store_key key;
    int64_t expire_ms, wake_ms;
    uint8_t type;
    bool is_written; /* the transaction writes its item, under `key` */
    bool is_given_up;
    struct store_bulk_load *bulk_load; /* the bulk load that it belongs, or belonged, to */
    struct overflow_write *overflow;
    struct store_tree trees[STORE_TREES];
};

static inline struct page_file *tree_page_file(const struct store_txn *txn,
                                               const struct collection *collection)
{
    return &txn->store->partitions[collection->roots->home].file;
}

/* ---- tree.c ---- */

static inline uint32_t tree_level(const struct store_cursor *cursor, uint32_t depth)
{
    assert(depth < cursor->depth);
    return cursor->depth - 1 - depth;
}

/* The leaf with the entry at the cursor; a cursor at the end of a leaf moves to the next one. */
STORE_MUST_CHECK enum store_result tree_find_entry(struct store_cursor *cursor,
                                                   const struct format_node **leaf);
/* Computes the cursor's rank if it is unknown; the nodes on its path must not have changed. */
STORE_MUST_CHECK enum store_result tree_rank(struct store_cursor *cursor);
/* To the start of the next leaf, or to the end of the previous one; the rank stays.
 * STORE_ABSENT: there is no such leaf. */
STORE_MUST_CHECK enum store_result tree_next_leaf(struct store_cursor *cursor);
STORE_MUST_CHECK enum store_result tree_previous_leaf(struct store_cursor *cursor);

#endif
