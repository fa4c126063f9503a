/*
 * What a check has seen of a directory. Private to storage/.
 */
#ifndef VELLUM_STORE_CHECK_H
#define VELLUM_STORE_CHECK_H

#include "storage/recovery/recover_trees.h"

#define CHECK_NAME_MOST 64u

/* An item that is a collection. */
struct seen_owner {
    uint64_t collection;
    uint32_t home, tree_count;
    struct format_tree trees[STORE_TREES];
    uint32_t partition, page, slot;
};

struct seen_node {
    uint32_t partition, page;
    uint64_t collection;
    bool is_reached;
};

/* A value beside its node. */
struct seen_overflow {
    uint64_t collection, element, length;
    bool is_reached;
};

struct check {
    struct store *store;
    struct store_check *found;
    struct found_list owners, nodes, overflow;
    struct found_list keys;             /* uint64_t: hashes of one partition's keys */
    char *extent;                       /* memory for one */
    char long_key[CHECK_NAME_MOST + 1]; /* the beginning of the item's */
    enum store_result result;
    void (*log)(void *arg, enum store_log_level level, const char *line);
    void *log_arg;
};

/* Walks all collections when all slabs have been seen. */
void check_trees(struct check *check);

#endif
