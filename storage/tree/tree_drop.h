/* Graves: collections to be taken apart. Private to storage/. */
#ifndef VELLUM_STORE_TREE_DROP_H
#define VELLUM_STORE_TREE_DROP_H

#include "storage/tree/tree.h"

struct page_list {
    uint32_t *at;
    uint32_t count;
    size_t capacity;
};

/* A node to be looked at. */
struct dig {
    uint32_t page, level;
};

struct dig_list {
    struct dig *at;
    uint32_t count;
    size_t capacity;
};

struct grave {
    struct store_request request; /* first */
    struct grave *next;
    struct store_worker *worker;
    uint64_t generation;
    uint64_t collection;
    uint32_t home;
    bool has_outside;
    bool is_running, is_done;
    struct store_key key; /* in the home partition: its lock, and a place behind barriers */
    struct format_outside_key key_bytes;
    struct dig_list digs;
    struct page_list pages;
    struct format_outside_key *outside; /* of no node: found by recovery */
    uint32_t outside_count;
    size_t outside_capacity;
    /* of the transaction under way */
    uint32_t found[PAGE_SIZE / sizeof(struct format_child)];
    uint32_t found_count, found_level;
};

/* A node that is known by now; leaves need not be looked at unless they name values outside. */
STORE_MUST_CHECK bool grave_note_node(struct grave *grave, uint32_t page, uint32_t level);
void grave_enlist(struct store *store, struct grave *grave);
struct grave *grave_take(struct store *store); /* NULL: there is none */
void grave_free(struct grave *grave);

/* The collection is no longer named by any item; the home's lock need not be held. */
void tree_bury(struct store *store, const struct format_trees *roots);
/* One of an earlier generation, perhaps, of which nothing is left then. */
void tree_bury_of(struct store *store, const struct format_trees *roots, uint64_t generation);
void tree_bury_item(struct store *store, const struct format_item *item);
/* At recovery: a value that no node can name. */
STORE_MUST_CHECK bool tree_bury_outside(struct store *store, const struct format_outside_key *key);
void tree_forget_graves(struct store *store);

#endif
