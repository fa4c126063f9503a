/* Dropped trees: collections to be taken apart. Private to storage/. */
#ifndef VELLUM_STORE_TREE_DROP_H
#define VELLUM_STORE_TREE_DROP_H

#include "storage/tree/tree.h"

struct page_list {
    uint32_t *at;
    uint32_t count;
    size_t capacity;
};

/* A node to be looked at. */
struct purge_node {
    uint32_t page, level;
};

struct purge_list {
    struct purge_node *at;
    uint32_t count;
    size_t capacity;
};

struct dropped_tree {
    struct store_request request; /* first */
    struct dropped_tree *next;
    struct store_worker *worker;
    uint64_t generation;
    uint64_t collection;
    uint32_t home;
    bool has_overflow;
    bool is_running, is_done;
    struct store_key key; /* in the home partition: its lock, and a place behind barriers */
    struct format_overflow_key key_bytes;
    struct purge_list to_purge;
    struct page_list pages;
    struct format_overflow_key *overflow; /* of no node: found by recovery */
    uint32_t overflow_count;
    size_t overflow_capacity;
    /* of the transaction under way */
    uint32_t found[PAGE_SIZE / sizeof(struct format_child)];
    uint32_t found_count, found_level;
};

/* A node that is known by now; leaves need not be looked at unless they name values outside. */
STORE_MUST_CHECK bool dropped_tree_note_node(struct dropped_tree *dropped, uint32_t page,
                                             uint32_t level);
void dropped_tree_enqueue(struct store *store, struct dropped_tree *dropped);
struct dropped_tree *dropped_tree_take(struct store *store); /* NULL: there is none */
void dropped_tree_free(struct dropped_tree *dropped);

/* The collection is no longer named by any item; the home's lock need not be held. */
void tree_drop(struct store *store, const struct format_trees *roots);
/* One of an earlier generation, perhaps, of which nothing is left then. */
void tree_drop_of(struct store *store, const struct format_trees *roots, uint64_t generation);
void tree_drop_item(struct store *store, const struct format_item *item);
/* At recovery: a value that no node can name. */
STORE_MUST_CHECK bool tree_drop_overflow(struct store *store,
                                         const struct format_overflow_key *key);
void tree_forget_dropped(struct store *store);

#endif
