/*
 * The collections that a transaction knows, and the items that own them.
 */
#ifndef VELLUM_STORE_TREE_OWNER_H
#define VELLUM_STORE_TREE_OWNER_H

#include "storage/tree/tree.h"

/* The key's item is to be this collection. */
STORE_MUST_CHECK enum store_result txn_put_trees(struct store_txn *txn, const struct store_key *key,
                                                 struct collection *collection, uint8_t type,
                                                 int64_t expire_ms);
/* The collection of this id, if the transaction knows it. */
struct collection *tree_known(const struct store_txn *txn, uint64_t id);
/* One more, with a copy of its roots; NULL: no memory. */
struct collection *tree_add_known(struct store_txn *txn, const struct format_trees *roots,
                                  uint32_t length);

/* The item of the tree's key is to be written by this transaction. */
STORE_MUST_CHECK enum store_result tree_touch(struct store_tree *tree);

uint64_t tree_next_id(struct store *store); /* never given out twice, over restarts either */
/* The collection that the item is; its partition's lock is held then. */
STORE_MUST_CHECK enum store_result tree_find(struct store_txn *txn, const struct store_key *key,
                                             const struct store_item *item,
                                             struct collection **collection);
/* Before a commit: finds out which collections the transaction gives up. */
STORE_MUST_CHECK enum store_result tree_settle(struct store_txn *txn);
/* Whether a write of the transaction names this collection. */
bool tree_is_kept(const struct store_txn *txn, uint64_t collection);

#endif
