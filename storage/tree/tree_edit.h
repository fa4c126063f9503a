/*
 * Nodes as a transaction sees and changes them, and the part of the changes that is committed.
 */
#ifndef VELLUM_STORE_TREE_EDIT_H
#define VELLUM_STORE_TREE_EDIT_H

#include "storage/collections.h"
#include "storage/tree/tree.h"

/* Prefetches the page into the CPU cache, if it is in memory. */
void tree_prefetch(const struct store_tree *tree, uint32_t page);
/* The children from `place` on will be read: if the first one is not in memory, reads it and
 * some of the next. */
void tree_read_ahead(const struct store_tree *tree, const struct format_node *node, uint32_t place);
/* The node as this transaction sees it; valid until the next page is read. */
STORE_MUST_CHECK enum store_result tree_fetch(struct store_tree *tree, uint32_t page,
                                              uint32_t level, const struct format_node **node);
/* A node that may be changed; valid until the end of the run. */
STORE_MUST_CHECK enum store_result tree_change(struct store_tree *tree, uint32_t page,
                                               uint32_t level, struct format_node **node);
/* Applies the change that was planned for the node as fetched. */
STORE_MUST_CHECK enum store_result tree_apply(struct store_tree *tree, uint32_t page,
                                              const struct node_plan *plan);
/* Adds to the count of an inner node's child, as each insertion does on its way down. */
STORE_MUST_CHECK enum store_result tree_add_count(struct store_tree *tree, uint32_t page,
                                                  uint32_t level, uint32_t place, int32_t change);
STORE_MUST_CHECK enum store_result tree_new_node(struct store_tree *tree, uint32_t level,
                                                 struct format_node **node, uint32_t *page);
/* The node was changed or created by this transaction before. */
void tree_free_node(struct store_tree *tree, uint32_t page);

/* Takes back the edits made after `edits`, which was the newest one; they hold no frames. */
void tree_take_back(struct store_txn *txn, const struct tree_edit *edits);
void tree_settle_edits(struct store_txn *txn);
STORE_MUST_CHECK enum store_result tree_prepare(struct store_txn *txn);
uint64_t tree_record_length(const struct store_txn *txn, uint32_t *op_count);
char *tree_put_and_apply(struct store_txn *txn, char *at, uint64_t commit);
void tree_release(struct store_txn *txn); /* releases the frames of an attempt */
void tree_discard(struct store_txn *txn);
void tree_forget(struct store_txn *txn);

#endif
