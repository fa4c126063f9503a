/* Dropped trees: collections whose pages are to be freed. Private to storage/. */
#ifndef VELLUM_STORE_TREE_DROP_H
#define VELLUM_STORE_TREE_DROP_H

#include "storage/tree/tree.h"

struct page_list {
    uint32_t *at;
    uint32_t count;
    size_t capacity;
};

/* A node to be visited. */
struct purge_node {
    uint32_t page, level;
};

struct purge_list {
    struct purge_node *at;
    uint32_t count;
    size_t capacity;
};

struct dropped_tree {
    struct store_request request; /* first member: run and done cast it back */
    struct dropped_tree *next;
    struct store_worker *worker;
    uint64_t generation;
    uint64_t collection;
    uint32_t home;
    bool has_overflow;
    bool is_running, is_done;
    /* A key in the home partition: the purge takes that partition's lock, and queues for the store
     * lock. */
    struct store_key key;
    struct format_overflow_key key_bytes;
    struct purge_list to_purge;
    struct page_list pages;
    struct format_overflow_key *overflow; /* values that no node names, found by recovery */
    uint32_t overflow_count;
    size_t overflow_capacity;
    /* found by the transaction in progress */
    uint32_t found[PAGE_SIZE / sizeof(struct format_child)];
    uint32_t found_count, found_level;
};

/* Records a node of the tree. Leaves need not be visited unless they name overflow values. */
STORE_MUST_CHECK bool dropped_tree_note_node(struct dropped_tree *dropped, uint32_t page,
                                             uint32_t level);
void dropped_tree_enqueue(struct store *store, struct dropped_tree *dropped);
struct dropped_tree *dropped_tree_take(struct store *store); /* NULL: there is none */
void dropped_tree_free(struct dropped_tree *dropped);

/* No item names the collection any more. The home partition's lock need not be held. */
void tree_drop(struct store *store, const struct format_trees *roots);
/* The same for a tree that may be of an earlier generation: then there is nothing left to drop. */
void tree_drop_of(struct store *store, const struct format_trees *roots, uint64_t generation);
void tree_drop_item(struct store *store, const struct format_item *item);
/* At recovery: drops a value that no node can name. */
STORE_MUST_CHECK bool tree_drop_overflow(struct store *store,
                                         const struct format_overflow_key *key);
void tree_forget_dropped(struct store *store);

#endif
