/*
 * Overflow values: values stored outside of their trees' nodes.
 */
#ifndef VELLUM_STORE_TREE_OVERFLOW_H
#define VELLUM_STORE_TREE_OVERFLOW_H

#include "storage/collections.h"
#include "storage/tree/tree.h"

/* An overflow value that this transaction writes. */
struct overflow_write {
    struct overflow_write *next;
    struct store_key key;
    struct format_overflow_key bytes;
};

STORE_MUST_CHECK enum store_result tree_put_overflow(struct store_tree *tree, const char *value,
                                                     size_t len, struct format_overflow *name);
STORE_MUST_CHECK enum store_result tree_get_overflow(struct store_tree *tree, const char *name,
                                                     struct store_item *item);
STORE_MUST_CHECK enum store_result tree_delete_overflow(struct store_tree *tree, const char *name);

void tree_overflow_key(const struct store *store, struct store_key *key,
                       const struct format_overflow_key *bytes);

#endif
