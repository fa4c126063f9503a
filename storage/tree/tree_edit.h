/*
 * Nodes as a transaction sees and changes them, and what of it is committed.
 */
#ifndef VELLUM_STORE_TREE_EDIT_H
#define VELLUM_STORE_TREE_EDIT_H

#include "storage/tree/tree.h"

/* A node that the transaction changes, makes or frees. Small changes are kept as such, so that it
 * need not be compared with its page; most nodes see no more than one, and are not copied either.
 */
struct tree_edit {
    struct tree_edit *next, *next_in_bucket;
    struct collection *collection;
    struct format_node *copy; /* NULL: there is only the plan */
    char *plans;              /* room for several; or NULL */
    uint32_t page;
    bool is_fresh; /* its slot is this transaction's reservation */
    bool is_freed;
    bool is_idle;    /* nothing of it is to be committed */
    bool is_planned; /* `patch` are the plans that were made, and all there is */
    /* found by tree_prepare, anew at each attempt */
    uint32_t frame;
    /* what differs from the page beside its header, as ranges of a PATCH: the plans, or found by
     * comparing with it */
    uint32_t patch_length;
    const char *patch;
};

/* Into the processor's cache, if it is in memory. */
void tree_prefetch(const struct store_tree *tree, uint32_t page);
/* The children from `place` on are going to be asked for: if the first is not in memory, it and
 * some more are read. */
void tree_read_ahead(const struct store_tree *tree, const struct format_node *node, uint32_t place);
/* The node as this transaction sees it, until the next page is asked for. */
STORE_MUST_CHECK enum store_result tree_fetch(struct store_tree *tree, uint32_t page,
                                              uint32_t level, const struct format_node **node);
/* A node that may be changed, until the end of the run. */
STORE_MUST_CHECK enum store_result tree_change(struct store_tree *tree, uint32_t page,
                                               uint32_t level, struct format_node **node);
/* The change that was planned for the node as fetched. */
STORE_MUST_CHECK enum store_result tree_apply(struct store_tree *tree, uint32_t page,
                                              const struct node_plan *plan);
/* Adds to the count of an inner node's child: what each insert does all the way down. */
STORE_MUST_CHECK enum store_result tree_add_count(struct store_tree *tree, uint32_t page,
                                                  uint32_t level, uint32_t place, int32_t change);
STORE_MUST_CHECK enum store_result tree_new_node(struct store_tree *tree, uint32_t level,
                                                 struct format_node **node, uint32_t *page);
/* The node has been changed before, or made. */
void tree_free_node(struct store_tree *tree, uint32_t page);

void tree_settle_edits(struct store_txn *txn);
STORE_MUST_CHECK enum store_result tree_prepare(struct store_txn *txn);
uint64_t tree_record_length(const struct store_txn *txn, uint32_t *op_count);
char *tree_put_and_apply(struct store_txn *txn, char *at, uint64_t commit);
void tree_release(struct store_txn *txn); /* frames of an attempt */
void tree_discard(struct store_txn *txn);
void tree_forget(struct store_txn *txn);

#endif
