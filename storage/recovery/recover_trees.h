/*
 * What a scan finds of trees, to be judged when everything was seen. Private to storage/.
 */
#ifndef VELLUM_STORE_RECOVER_TREES_H
#define VELLUM_STORE_RECOVER_TREES_H

#include "storage/txn/engine.h"

/* Consecutive pages with nodes of one collection. */
struct found_nodes {
    uint64_t collection;
    uint32_t page;
    uint16_t partition, count;
};

struct found_list {
    void *at;
    size_t count, capacity;
};

/* A new element of `size` bytes, or NULL. */
void *found_add(struct found_list *list, size_t size);

/* One thread's. */
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

/* The others' findings go into the first one's, and are judged: nodes of collections that somebody
 * names are kept; values outside of nodes that nobody can name any more are buried. */
STORE_MUST_CHECK bool found_merge(struct found_trees *found, struct found_trees *other);
STORE_MUST_CHECK bool found_settle(struct store *store, struct found_trees *found);

#endif
