/*
 * The collections that a transaction has opened, and the items that own them.
 */
#ifndef VELLUM_STORE_TREE_OWNER_H
#define VELLUM_STORE_TREE_OWNER_H

#include "storage/collections.h"
#include "storage/tree/tree.h"

/* Makes the key's item this collection. */
STORE_MUST_CHECK enum store_result txn_put_trees(struct store_txn *txn, const struct store_key *key,
                                                 struct collection *collection, uint8_t type,
                                                 int64_t expire_ms);
/* The collection with this id, if the transaction has opened it; or NULL. */
struct collection *tree_known(const struct store_txn *txn, uint64_t id);
/* Adds a collection with a copy of its roots; NULL: no memory. */
struct collection *tree_add_known(struct store_txn *txn, const struct format_trees *roots,
                                  uint32_t length);

/* Makes this transaction write the item of the tree's key. */
STORE_MUST_CHECK enum store_result tree_touch(struct store_tree *tree);

uint64_t tree_next_id(struct store *store); /* never returns an id twice, even after a restart */
/* Opens the collection that the item holds; its home partition's lock is held from then on. */
STORE_MUST_CHECK enum store_result tree_find(struct store_txn *txn, const struct store_key *key,
                                             const struct store_item *item,
                                             struct collection **collection);
/* Before a commit: determines which collections the transaction drops. */
STORE_MUST_CHECK enum store_result tree_settle(struct store_txn *txn);
/* Whether a write of the transaction names this collection. */
bool tree_is_kept(const struct store_txn *txn, uint64_t collection);

#endif
