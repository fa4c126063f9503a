/*
 * What a scan finds of trees, to be settled after everything was read. Private to storage/.
 */
#ifndef VELLUM_STORE_RECOVER_TREES_H
#define VELLUM_STORE_RECOVER_TREES_H

#include "storage/txn/engine.h"

struct found_list {
    void *at;
    size_t count, capacity;
};

/* Appends an element of `size` bytes; NULL: no memory. */
void *found_add(struct found_list *list, size_t size);

/* The findings of one thread. */
struct found_trees {
    struct found_list owners;   /* uint64_t: collections that an item names */
    struct found_list nodes;    /* struct found_nodes */
    struct found_list overflow; /* struct format_overflow_key */
};

STORE_MUST_CHECK bool found_owner(struct found_trees *found, const struct format_item *item);
STORE_MUST_CHECK bool found_node(struct found_trees *found, uint32_t partition, uint32_t page,
                                 const struct format_item *item);
STORE_MUST_CHECK bool found_overflow(struct found_trees *found, const struct format_item *item);
void found_free(struct found_trees *found);

/* Merges the findings of all threads into the first one's, and settles them: nodes of
 * collections that an item names are kept; overflow values that no node can name any more are
 * dropped. */
STORE_MUST_CHECK bool found_merge(struct found_trees *found, struct found_trees *other);
STORE_MUST_CHECK bool found_settle(struct store *store, struct found_trees *found);

#endif
