/*
 * Counted B+-trees: searching.
 *
 * A cursor is a path from the root to a leaf: the page of each node and the place in it. At the
 * end of a leaf it may stand after the last entry. A caller that needs the entry there moves on
 * to the next leaf; an insertion need not.
 *
 * Invariants
 * 1. A child's count is the number of entries under it; a tree's count is the number of all.
 * 2. Keys under child i of an inner node are >= its separator and <= that of the next child. They
 *    may be equal to the next one's only if that is `loose`.
 * 3. All leaves have the same depth. Only a fresh tree has an empty node.
 * 4. A pointer to a node's bytes is valid only until the next node is read.
 */
#include "storage/tree/tree.h"

#include <assert.h>
#include <string.h>

#include "storage/tree/tree_edit.h"
#include "storage/tree/tree_overflow.h"

uint64_t store_tree_count(const struct store_tree *tree)
{
    return tree->root->count;
}

static enum store_result fetch_at(const struct store_cursor *cursor, uint32_t depth,
                                  const struct format_node **node)
{
    return tree_fetch(cursor->tree, cursor->pages[depth], tree_level(cursor, depth), node);
}

static bool begin(struct store_tree *tree, struct store_cursor *cursor)
{
    cursor->tree = tree;
    cursor->rank = 0;
    cursor->depth = tree->root->height;
    cursor->pages[0] = tree->root->root;
    return tree->root->height <= STORE_TREE_HEIGHT_MAX;
}

/* `ranked`: sums up all children before the path, which requires reading whole nodes. */
static enum store_result seek(struct store_tree *tree, const char *key, size_t len, bool ranked,
                              struct store_cursor *cursor)
{
    if (!begin(tree, cursor))
        return STORE_DAMAGED;
    for (uint32_t depth = 0; depth < cursor->depth; depth++) {
        const struct format_node *node;
        enum store_result result = fetch_at(cursor, depth, &node);
        if (result != STORE_OK)
            return result;
        bool is_leaf = node->level == 0;
        uint32_t place = is_leaf ? leaf_seek(node, key, len) : inner_seek(node, key, len);
        cursor->places[depth] = (uint16_t)place;
        if (!is_leaf) {
            cursor->pages[depth + 1] = inner_page(node, place);
            tree_prefetch(tree, cursor->pages[depth + 1]); /* overlaps with summing up the rank */
        }
        if (ranked)
            cursor->rank += is_leaf ? place : inner_rank(node, place);
    }
    if (!ranked && tree->root->count > 0)
        cursor->rank = STORE_RANK_UNKNOWN;
    return STORE_OK;
}

enum store_result store_tree_seek(struct store_tree *tree, const char *key, size_t len,
                                  struct store_cursor *cursor)
{
    return seek(tree, key, len, true, cursor);
}

enum store_result store_tree_find(struct store_tree *tree, const char *key, size_t len,
                                  struct store_cursor *cursor)
{
    return seek(tree, key, len, false, cursor);
}

enum store_result tree_rank(struct store_cursor *cursor)
{
    if (cursor->rank != STORE_RANK_UNKNOWN)
        return STORE_OK;
    assert(cursor->depth > 0);
    uint64_t rank = cursor->places[cursor->depth - 1];
    for (uint32_t depth = 0; depth + 1 < cursor->depth; depth++) {
        const struct format_node *node;
        enum store_result result = fetch_at(cursor, depth, &node);
        if (result != STORE_OK)
            return result;
        rank += inner_rank(node, cursor->places[depth]);
    }
    cursor->rank = rank;
    return STORE_OK;
}

enum store_result store_tree_seek_rank(struct store_tree *tree, uint64_t rank,
                                       struct store_cursor *cursor)
{
    assert(rank <= tree->root->count);
    if (!begin(tree, cursor))
        return STORE_DAMAGED;
    cursor->rank = rank;
    uint64_t total = tree->root->count;
    for (uint32_t depth = 0; depth < cursor->depth; depth++) {
        const struct format_node *node;
        enum store_result result = fetch_at(cursor, depth, &node);
        if (result != STORE_OK)
            return result;
        if (node->level == 0) {
            cursor->places[depth] = (uint16_t)rank;
            return rank <= node->count ? STORE_OK : STORE_DAMAGED;
        }
        uint32_t place = inner_seek_rank(node, total, &rank);
        total = inner_count(node, place);
        cursor->places[depth] = (uint16_t)place;
        cursor->pages[depth + 1] = inner_page(node, place);
        tree_prefetch(tree, cursor->pages[depth + 1]);
    }
    return STORE_OK;
}

/* ---- from leaf to leaf ---- */

/* From the child at `depth` down along the first or last children; afterwards the cursor is at
 * the first entry, or after the last. */
static enum store_result go_down(struct store_cursor *cursor, uint32_t depth, bool last)
{
    for (; depth < cursor->depth; depth++) {
        const struct format_node *node;
        enum store_result result = fetch_at(cursor, depth, &node);
        if (result != STORE_OK)
            return result;
        bool is_leaf = node->level == 0;
        cursor->places[depth] = (uint16_t)(!last ? 0 : is_leaf ? node->count : node->count - 1);
        if (!is_leaf)
            cursor->pages[depth + 1] = inner_page(node, cursor->places[depth]);
    }
    return STORE_OK;
}

enum store_result tree_next_leaf(struct store_cursor *cursor)
{
    for (uint32_t depth = cursor->depth - 1; depth-- > 0;) {
        const struct format_node *node;
        enum store_result result = fetch_at(cursor, depth, &node);
        if (result != STORE_OK)
            return result;
        if (cursor->places[depth] + 1u >= node->count)
            continue;
        cursor->pages[depth + 1] = inner_page(node, ++cursor->places[depth]);
        if (node->level == 1)
            tree_read_ahead(cursor->tree, node, cursor->places[depth]);
        return go_down(cursor, depth + 1, false);
    }
    return STORE_ABSENT;
}

enum store_result tree_previous_leaf(struct store_cursor *cursor)
{
    for (uint32_t depth = cursor->depth - 1; depth-- > 0;) {
        const struct format_node *node;
        enum store_result result = fetch_at(cursor, depth, &node);
        if (result != STORE_OK)
            return result;
        if (cursor->places[depth] == 0)
            continue;
        cursor->pages[depth + 1] = inner_page(node, --cursor->places[depth]);
        return go_down(cursor, depth + 1, true);
    }
    return STORE_ABSENT;
}

enum store_result tree_find_entry(struct store_cursor *cursor, const struct format_node **leaf)
{
    bool is_ranked = cursor->rank != STORE_RANK_UNKNOWN;
    if (is_ranked && cursor->rank >= cursor->tree->root->count)
        return STORE_ABSENT;
    enum store_result result = fetch_at(cursor, cursor->depth - 1, leaf);
    if (result != STORE_OK || cursor->places[cursor->depth - 1] < (*leaf)->count)
        return result;
    result = tree_next_leaf(cursor);
    if (result == STORE_ABSENT && is_ranked)
        return STORE_DAMAGED; /* the counts above promise more entries */
    return result == STORE_OK ? fetch_at(cursor, cursor->depth - 1, leaf) : result;
}

/* ---- entries ---- */

/* Copies the entry where the next page read may evict this one while the caller reads it. */
static enum store_result keep(struct store_tree *tree, struct node_entry *entry)
{
    if (!tree->txn->blocking_io)
        return STORE_OK;
    if (!tree->buffer) {
        tree->buffer = store_alloc(tree->txn, NODE_ENTRY_MAX);
        if (!tree->buffer)
            return STORE_NO_MEMORY;
        tree->txn->trees.buffers++;
    }
    memcpy(tree->buffer, entry->key, entry->key_len + entry->value_len);
    entry->key = tree->buffer;
    entry->value = tree->buffer + entry->key_len;
    return STORE_OK;
}

static void show(const struct node_entry *found, struct store_entry *entry)
{
    entry->key = found->key;
    entry->key_len = found->key_len;
    entry->value = (struct store_item){
        .bytes = found->value, .length = found->value_len, .expire_ms = STORE_NO_EXPIRY};
}

enum store_result store_tree_get(struct store_cursor *cursor, struct store_entry *entry)
{
    const struct format_node *leaf;
    enum store_result result = tree_find_entry(cursor, &leaf);
    if (result != STORE_OK)
        return result;
    struct node_entry found;
    leaf_get(leaf, cursor->places[cursor->depth - 1], &found);
    result = keep(cursor->tree, &found);
    if (result != STORE_OK)
        return result;
    show(&found, entry);
    return found.overflow ? tree_get_overflow(cursor->tree, found.value, &entry->value) : STORE_OK;
}

static void move_on(struct store_cursor *cursor, uint32_t count)
{
    cursor->places[cursor->depth - 1] = (uint16_t)(cursor->places[cursor->depth - 1] + count);
    if (cursor->rank != STORE_RANK_UNKNOWN)
        cursor->rank += count;
}

/* An entry with an overflow value, and in blocking mode any entry, is returned alone. */
enum store_result store_tree_read(struct store_cursor *cursor, struct store_entry *entries,
                                  uint32_t most, uint32_t *count)
{
    const struct format_node *leaf;
    enum store_result result = tree_find_entry(cursor, &leaf);
    if (result != STORE_OK)
        return result;
    uint32_t place = cursor->places[cursor->depth - 1], end = leaf->count;
    assert(most > 0 && place < end);
    if (cursor->tree->txn->blocking_io)
        end = place;
    else if (end - place > most)
        end = place + most;
    for (*count = 0; place < end; place++) {
        struct node_entry found;
        leaf_get(leaf, place, &found);
        if (found.overflow)
            break;
        show(&found, &entries[(*count)++]);
    }
    if (*count == 0) {
        result = store_tree_get(cursor, entries);
        *count = 1;
    }
    if (result == STORE_OK)
        move_on(cursor, *count);
    return result;
}

enum store_result store_tree_next(struct store_cursor *cursor)
{
    const struct format_node *leaf;
    enum store_result result = tree_find_entry(cursor, &leaf);
    if (result == STORE_OK)
        move_on(cursor, 1);
    return result;
}

enum store_result store_tree_prev(struct store_cursor *cursor)
{
    bool is_ranked = cursor->rank != STORE_RANK_UNKNOWN;
    if (cursor->rank == 0)
        return STORE_ABSENT;
    if (cursor->places[cursor->depth - 1] == 0) {
        enum store_result result = tree_previous_leaf(cursor);
        if (result != STORE_OK)
            return result == STORE_ABSENT && is_ranked ? STORE_DAMAGED : result;
    }
    assert(cursor->places[cursor->depth - 1] > 0);
    cursor->places[cursor->depth - 1]--;
    cursor->rank -= is_ranked;
    return STORE_OK;
}
