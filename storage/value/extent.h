/* Reading large values. Private to storage/. */
#ifndef VELLUM_STORE_EXTENT_H
#define VELLUM_STORE_EXTENT_H

#include "storage/txn/engine.h"

/* An aligned copy of a committed large item's root, which outlives its page; or NULL. */
struct format_root *txn_copy_root(struct store_txn *txn, const struct store_item *item);
STORE_MUST_CHECK enum store_result extent_read(struct store_txn *txn,
                                               const struct format_root *root, uint64_t offset,
                                               uint64_t len, char *to);
void extent_drop_loads(struct store_txn *txn);
/* The descriptor of the value's extent number i; a hole's descriptor where there is none. */
STORE_MUST_CHECK enum store_result extent_locate(struct store_txn *txn,
                                                 const struct format_root *root, uint32_t i,
                                                 struct format_extent *extent);
/* Makes the extent's pages resident, verified and pinned; extents.lock is held. */
STORE_MUST_CHECK enum store_result extent_fetch(struct store_txn *txn,
                                                const struct format_extent *extent);
/* Copies bytes of one extent; zeros where it is a hole or shorter. */
STORE_MUST_CHECK enum store_result extent_copy(struct store_txn *txn,
                                               const struct format_extent *extent, uint32_t offset,
                                               uint32_t len, char *to);
/* Copies descriptors of a node, whose length is checked. */
STORE_MUST_CHECK enum store_result extent_copy_node(struct store_txn *txn,
                                                    const struct format_extent *node,
                                                    uint32_t offset, uint32_t len,
                                                    struct format_extent *to);
/* Logs and counts a damaged extent. */
enum store_result extent_damaged(struct store *store, const struct format_extent *extent);
/* As store_load_within, for a committed large item. */
STORE_MUST_CHECK enum store_result extent_load(struct store_txn *txn, const struct store_item *item,
                                               uint64_t most, const char **bytes);
/* The bytes of the long key of a committed item whose partition's lock is held. The key's lock need
 * not be held. */
STORE_MUST_CHECK enum store_result
extent_load_key(struct store_txn *txn, const struct format_item *item, const char **bytes);
void extent_drop_keys(struct store_txn *txn); /* frees the keys loaded by extent_load_key */
/* Such bytes belong to the caller now, who must free them. */
char *extent_take_key(struct store_txn *txn, const char *bytes);

#endif
