/*
 * The bytes of a tree's node (format.h has the layout): entries of a leaf, children of an inner
 * node. Independent of transactions and of the cache. Private to storage/.
 */
#ifndef VELLUM_STORE_TREE_NODE_H
#define VELLUM_STORE_TREE_NODE_H

#include <stdbool.h>

#include "storage/collections.h"
#include "storage/format/format.h"

#define NODE_BEGIN 44u /* start of the cells */

/* Any node has room for four entries of the largest size. */
#define NODE_ROOM SIZES_TREE_ROOM
#define NODE_ENTRY_MAX (NODE_ROOM / 4)
static_assert(NODE_ROOM <= PAGE_SIZE - NODE_BEGIN, "a node is a page");
static_assert(8 + STORE_TREE_KEY_MAX + sizeof(struct format_overflow) <= NODE_ENTRY_MAX &&
                  sizeof(struct format_child) + STORE_TREE_KEY_MAX <= NODE_ENTRY_MAX,
              "the longest key stands in its node");

/* An entry of a leaf. With `overflow` the value is a struct format_overflow. */
struct node_entry {
    const char *key, *value;
    uint32_t key_len, value_len;
    bool overflow;
};

/* A small change: new bytes and their places, as ranges of a PATCH. Applies only to the node it
 * was made for. */
#define NODE_PLAN_BYTES 3072u
struct node_plan {
    uint32_t length;
    char bytes[NODE_PLAN_BYTES];
};

/* A child of an inner node: keys from `separator` on are in it and after it. With `loose` the
 * previous child may end with keys equal to the separator. The first child's separator has no
 * meaning. */
struct node_child {
    uint32_t page, count;
    const char *separator;
    uint32_t separator_len;
    bool loose;
};

void node_init(struct format_node *node, uint64_t collection, uint32_t level);
/* Whether every cell's bytes lie in the heap, and all lengths are consistent. The other
 * functions rely on it. */
bool node_is_sound(const struct format_node *node);
/* Bytes used, out of NODE_ROOM. */
uint32_t node_used(const struct format_node *node);
/* Drops the entries (children) from `first` on. */
void node_truncate(struct format_node *node, uint32_t first);
/* <0, 0, >0 */
int node_compare(const char *a, size_t a_len, const char *b, size_t b_len);

/* Applies the ranges to the node. */
void node_patch(struct format_node *node, const char *ranges, uint32_t length);

/* ---- leaves ---- */

void leaf_get(const struct format_node *node, uint32_t place, struct node_entry *entry);
uint32_t leaf_entry_size(const struct node_entry *entry); /* bytes it takes of NODE_ROOM */
uint32_t leaf_size_at(const struct format_node *node, uint32_t place);
/* The first entry whose key is not less. */
uint32_t leaf_seek(const struct format_node *node, const char *key, size_t len);
/* The same judged by the hints alone; at the end, the last entry. */
uint32_t leaf_guess(const struct format_node *node, const char *key, size_t len);
/* Prefetches the entry, and the place where the next one will be written, into the CPU cache. */
void leaf_prefetch(const struct format_node *node, uint32_t place);
/* The caller has checked that there is room. The entry's bytes lie outside of the node. */
void leaf_insert(struct format_node *node, uint32_t place, const struct node_entry *entry);
void leaf_remove(struct format_node *node, uint32_t place);
/* The same changes as plans. leaf_plan_insert: false if the node must be compacted first.
 * leaf_plan_overwrite: the new value has the length of the old one. */
bool leaf_plan_insert(const struct format_node *node, uint32_t place,
                      const struct node_entry *entry, struct node_plan *plan);
void leaf_plan_remove(const struct format_node *node, uint32_t place, struct node_plan *plan);
void leaf_plan_overwrite(const struct format_node *node, uint32_t place, const char *value,
                         struct node_plan *plan);
/* For an empty leaf that will get entries like this one at its beginning. */
void leaf_grow_backwards(struct format_node *node, const struct node_entry *entry);
/* Makes searches use the prefix that the keys share now; worth it when the leaf changes anyway. */
void leaf_rehash(struct format_node *node);
/* Appends entries [first, end) of `from` to those of `to`. */
void leaf_append(struct format_node *to, const struct format_node *from, uint32_t first,
                 uint32_t end);
/* Where to split a full leaf that is to get an entry of `size` bytes at `place`: returns the first
 * entry of the right half; *is_left tells whether the new one belongs to the left half. Each half
 * has room, because no entry takes more than a quarter of a node. */
uint32_t leaf_middle(const struct format_node *node, uint32_t place, uint32_t size, bool *is_left);
/* The shortest key that separates the end of `left` from the beginning of `right`; it lies in
 * `right`. */
void leaf_divide(const struct format_node *left, const struct format_node *right,
                 struct node_child *child);

/* ---- inner nodes ---- */

void inner_get(const struct format_node *node, uint32_t place, struct node_child *child);
uint32_t inner_page(const struct format_node *node, uint32_t place);
uint32_t inner_count(const struct format_node *node, uint32_t place);
void inner_add_count(struct format_node *node, uint32_t place, int32_t change);
/* The same as ranges of a PATCH. */
#define NODE_COUNT_PATCH 8u
void inner_patch_count(const struct format_node *node, uint32_t place, int32_t change,
                       char patch[NODE_COUNT_PATCH]);
void inner_set_page(struct format_node *node, uint32_t place, uint32_t page);
uint32_t inner_child_size(const struct node_child *child);
/* The last child that can hold the first entry not less than the key. */
uint32_t inner_seek(const struct format_node *node, const char *key, size_t len);
/* Entries before the child. */
uint64_t inner_rank(const struct format_node *node, uint32_t place);
/* The child with entry number *rank of `total`; *rank becomes the rank within the child. The
 * last child for a rank at the end. Counts from the nearer end. */
uint32_t inner_seek_rank(const struct format_node *node, uint64_t total, uint64_t *rank);
/* The caller has checked that there is room. The separator lies outside of the node. */
void inner_insert(struct format_node *node, uint32_t place, const struct node_child *child);
void inner_remove(struct format_node *node, uint32_t place);
void inner_append(struct format_node *to, const struct format_node *from, uint32_t first,
                  uint32_t end);
uint32_t inner_middle(const struct format_node *node);

#endif
