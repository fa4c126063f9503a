/*
 * What a check has found in a directory. Private to storage/.
 */
#ifndef VELLUM_STORE_CHECK_H
#define VELLUM_STORE_CHECK_H

#include "storage/collections.h"
#include "storage/recovery/recover_trees.h"

#define CHECK_NAME_MOST 64u

/* The keys of a database in a partition, and the names in its tree of keys: how many, and a sum
 * that does not depend on their order. */
struct seen_names {
    uint64_t keys, key_sum, names, name_sum;
};

/* An item that is a collection. */
struct seen_owner {
    uint64_t collection;
    uint32_t home, tree_count;
    struct format_tree trees[STORE_TREES];
    uint32_t partition, page, slot;
    struct seen_names *names; /* of a tree of keys; NULL: another collection */
};

struct seen_node {
    uint32_t partition, page;
    uint64_t collection;
    bool is_reached;
};

/* An overflow value. */
struct seen_overflow {
    uint64_t collection, element, length;
    bool is_reached;
};

struct check {
    struct store *store;
    struct store_check *found;
    struct found_list owners, nodes, overflow;
    struct found_list keys;             /* uint64_t: key hashes of one partition */
    struct seen_names *names;           /* by partition and logical database; NULL: not ordered */
    uint64_t key_trees;                 /* among the owners */
    char *extent;                       /* buffer for one extent */
    char long_key[CHECK_NAME_MOST + 1]; /* the start of the item's long key */
    enum store_result result;
    void (*log)(void *arg, enum store_log_level level, const char *line);
    void *log_arg;
};

/* Adds a key's or a name's hash to a sum. */
static inline void check_add_hash(uint64_t hash, uint64_t *count, uint64_t *sum)
{
    ++*count;
    hash *= 0x9e3779b97f4a7c15ull;
    *sum += (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9ull;
}

/* store_check of the files on a disk, which it frees. */
STORE_MUST_CHECK enum store_result
check_disk(struct disk *disk, void (*log)(void *arg, enum store_log_level level, const char *line),
           void *log_arg, struct store_check *found, char message[STORE_MESSAGE_MAX]);

#endif
