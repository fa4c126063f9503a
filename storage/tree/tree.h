/*
 * What a transaction knows of the trees it has opened and of the nodes it changes. Private to
 * storage/.
 */
#ifndef VELLUM_STORE_TREE_H
#define VELLUM_STORE_TREE_H

#include "storage/txn/engine.h"
#include "storage/format/tree_node.h"

#define TREE_CLASS FORMAT_SLAB_CLASSES /* a node fills a page */

struct store_tree {
    struct store_txn *txn;
    struct collection *collection;
    struct format_tree *root;
    char *buffer; /* the entry given out last, where pages may go under the caller's hands */
    /* The node last read of each level: it stays where it is as long as the run holds its locks,
     * and does not leave its pages (load_leave_pages). */
    struct {
        const struct format_node *node;
        uint32_t page, leavings;
    } seen[STORE_TREE_HEIGHT_MAX];
};

/* A value outside of its node that this transaction writes. */
struct outside_write {
    struct outside_write *next;
    struct store_key key;
    struct format_outside_key bytes;
};

/* An item that has trees, in one transaction. `roots` is what its item says, or will say. */
struct collection {
    struct collection *next;
    struct format_trees *roots;
    uint32_t length; /* of roots */
    struct store_key key;
    int64_t expire_ms;
    uint8_t type;
    bool is_written; /* the transaction writes its item, as `key` */
    bool is_given_up;
    struct store_building *building; /* that it is, or was */
    struct outside_write *outside;
    struct store_tree trees[STORE_TREES];
};

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

static inline struct space *tree_space(const struct store_txn *txn,
                                       const struct collection *collection)
{
    return &txn->store->partitions[collection->roots->home].space;
}

/* ---- tree_edit.c ---- */

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

/* ---- tree.c ---- */

static inline uint32_t tree_level(const struct store_cursor *cursor, uint32_t depth)
{
    return cursor->depth - 1 - depth;
}

/* The leaf with the entry at the cursor, which goes on to it if it stands at another's end. */
STORE_MUST_CHECK enum store_result tree_find_entry(struct store_cursor *cursor,
                                                   const struct format_node **leaf);
/* Has the cursor know its rank; while its way is still as it was found. */
STORE_MUST_CHECK enum store_result tree_rank(struct store_cursor *cursor);
/* To the begin of the next leaf, or the end of the one before; the rank stays. STORE_ABSENT. */
STORE_MUST_CHECK enum store_result tree_next_leaf(struct store_cursor *cursor);
STORE_MUST_CHECK enum store_result tree_previous_leaf(struct store_cursor *cursor);

/* ---- tree_owner.c ---- */

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

/* ---- tree_outside.c ---- */

STORE_MUST_CHECK enum store_result tree_put_outside(struct store_tree *tree, const char *value,
                                                    size_t len, struct format_outside *name);
STORE_MUST_CHECK enum store_result tree_get_outside(struct store_tree *tree, const char *name,
                                                    struct store_item *item);
STORE_MUST_CHECK enum store_result tree_delete_outside(struct store_tree *tree, const char *name);

uint64_t tree_next_id(struct store *store); /* never given out twice, over restarts either */
/* The collection that the item is; its partition's lock is held then. */
STORE_MUST_CHECK enum store_result tree_find(struct store_txn *txn, const struct store_key *key,
                                             const struct store_item *item,
                                             struct collection **collection);
/* Before a commit: finds out which collections the transaction gives up. */
STORE_MUST_CHECK enum store_result tree_settle(struct store_txn *txn);
/* Whether a write of the transaction names this collection. */
bool tree_is_kept(const struct store_txn *txn, uint64_t collection);
void tree_outside_key(const struct store *store, struct store_key *key,
                      const struct format_outside_key *bytes);
void tree_settle_edits(struct store_txn *txn);
STORE_MUST_CHECK enum store_result tree_prepare(struct store_txn *txn);
uint64_t tree_record_length(const struct store_txn *txn, uint32_t *op_count);
char *tree_put_and_apply(struct store_txn *txn, char *at, uint64_t commit);
void tree_release(struct store_txn *txn); /* frames of an attempt */
void tree_discard(struct store_txn *txn);
void tree_forget(struct store_txn *txn);

#endif
