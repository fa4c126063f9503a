/*
 * Trees of keys: in a directory with ordered keys each partition has, for each database, a tree of
 * the names of its keys. Private to storage/.
 *
 * Invariant: when a commit has been applied, the tree of a partition and database has an entry for
 * each of their keys and no other, except for keys whose items are damaged; and it has a root if
 * and only if it has entries. So a flush or a swap, which changes only the map of databases, is
 * right for the trees, too.
 */
#ifndef VELLUM_STORE_KEY_TREE_H
#define VELLUM_STORE_KEY_TREE_H

#include "storage/collections.h"
#include "storage/tree/tree.h"
#include "storage/value/lookup.h"

/* What a commit calls of these is kept out of it: other directories do not pay for the registers.
 */
#define KEY_TREE_APART __attribute__((noinline))

/* ---- names ---- */

/* A key as it stands in the tree: its name, or what replaces a long one (format.h: KEY TREE). */
struct key_tree_name {
    char bytes[STORE_TREE_KEY_MAX];
    uint32_t len;
};
void key_tree_name(const char *data, uint32_t len, uint64_t hash, struct key_tree_name *name);
static inline bool key_tree_is_cut(uint32_t name_len)
{
    return name_len > FORMAT_NAME_WHOLE;
}
uint64_t key_tree_hash(const struct store *store, const char *name, uint32_t len);
/* The hash slot of the key that an entry names; false: the entry is none of a tree of keys. */
STORE_MUST_CHECK bool key_tree_slot(const char *name, uint32_t len, const char *value,
                                    uint64_t value_len, uint32_t *slot);

/* ---- trees ---- */

/* The root in a partition, of the database with this id; found->item is NULL if there is none. The
 * partition's lock is held. */
KEY_TREE_APART STORE_MUST_CHECK enum store_result
key_tree_find(struct store_txn *txn, uint32_t partition, uint32_t database, struct found *found);
/* Opens the tree for this attempt or step; NULL: there is none. */
STORE_MUST_CHECK enum store_result key_tree_open(struct store_txn *txn, uint32_t partition,
                                                 uint32_t database, struct store_tree **tree);

/* ---- the commit ---- */

/* What a commit had before it began to change the trees. */
struct key_trees_mark {
    struct tree_edit *edits;
    struct collection *collections;
    uint32_t buffers, write_count;
};
struct key_trees_mark key_trees_mark(const struct store_txn *txn);
/* Once the transaction's writes are prepared: changes the trees as they add and remove keys, and
 * appends a write of each changed root. After anything but STORE_OK, and where the commit has to
 * wait, all of it must be undone. */
KEY_TREE_APART STORE_MUST_CHECK enum store_result key_trees_change(struct store_txn *txn);
/* The appended writes hold no slots and frames any more. */
KEY_TREE_APART void key_trees_undo(struct store_txn *txn, const struct key_trees_mark *mark);
void key_trees_check(const struct store_txn *txn); /* asserts the invariant after a commit */

#endif
