/*
 * Counted B+-trees: insertion and removal.
 *
 * A leaf without room is split: at the ends of the tree so that full nodes remain, elsewhere in
 * the middle. An empty node is freed. A node that is less than a third full is merged with a
 * neighbour if both fit into one node. Counts are changed before that; splits and merges only move
 * counts from cell to cell.
 */
#include "storage/tree/tree.h"

#include <assert.h>
#include <string.h>

#include "storage/tree/tree_overflow.h"
#include "storage/tree/tree_owner.h"
#include "storage/tree/tree_edit.h"

#define SMALL (NODE_ROOM / 3)
#define MERGED_MOST (NODE_ROOM * 5 / 6)

static enum store_result change_at(const struct store_cursor *cursor, uint32_t depth,
                                   struct format_node **node)
{
    return tree_change(cursor->tree, cursor->pages[depth], tree_level(cursor, depth), node);
}

/* Changes of the tree through another cursor invalidate this one; those of its height show. */
static bool is_current(const struct store_cursor *cursor)
{
    return cursor->depth == cursor->tree->root->height;
}

/* Finds the cursor's path again after nodes were created or freed. */
static enum store_result find_again(struct store_cursor *cursor)
{
    if (cursor->rank > cursor->tree->root->count)
        return STORE_DAMAGED; /* the root's count is too low */
    return store_tree_seek_rank(cursor->tree, cursor->rank, cursor);
}

/* Changes all counts on the cursor's path. */
static enum store_result count(struct store_cursor *cursor, int32_t change)
{
    for (uint32_t depth = 0; depth + 1 < cursor->depth; depth++) {
        enum store_result result =
            tree_add_count(cursor->tree, cursor->pages[depth], tree_level(cursor, depth),
                           cursor->places[depth], change);
        if (result != STORE_OK)
            return result;
    }
    cursor->tree->root->count += (uint64_t)(int64_t)change;
    return STORE_OK;
}

/* ---- splitting ---- */

/* A split: a node on the cursor's path and the one created next to it. */
struct parting {
    uint32_t depth;
    bool is_before;          /* the fresh node comes before the old one */
    struct node_child child; /* the fresh node */
    char separator[STORE_TREE_KEY_MAX];
};

static void set_separator(struct parting *parting, const struct node_child *from)
{
    memcpy(parting->separator, from->separator, from->separator_len);
    parting->child.separator = parting->separator;
    parting->child.separator_len = from->separator_len;
    parting->child.loose = from->loose;
}

static bool is_last(struct store_cursor *cursor, uint32_t depth)
{
    const struct format_node *node;
    while (depth-- > 0) {
        if (tree_fetch(cursor->tree, cursor->pages[depth], tree_level(cursor, depth), &node) !=
                STORE_OK ||
            cursor->places[depth] + 1u < node->count)
            return false;
    }
    return true;
}

/* The root was split: adds a level. */
static enum store_result grow(struct store_cursor *cursor, struct parting *parting)
{
    struct format_tree *root = cursor->tree->root;
    struct format_node *node;
    uint32_t page;
    assert(parting->depth == 0);
    if (root->height == STORE_TREE_HEIGHT_MAX)
        return STORE_TOO_LARGE;
    enum store_result result = tree_new_node(cursor->tree, root->height, &node, &page);
    if (result != STORE_OK)
        return result;
    uint32_t others = (uint32_t)root->count - parting->child.count;
    struct node_child old = {.page = root->root, .count = others};
    if (parting->is_before) {
        uint32_t fresh = parting->child.page;
        old = (struct node_child){.page = fresh, .count = parting->child.count};
        parting->child.page = root->root;
        parting->child.count = others;
    }
    inner_insert(node, 0, &old);
    inner_insert(node, 1, &parting->child);
    root->root = page;
    root->height++;
    return STORE_OK;
}

/* Moves the upper half of a full inner node into a fresh one. At the end of the tree it moves
 * nothing: the fresh node starts with the child to be added. */
static enum store_result part_inner(struct store_cursor *cursor, uint32_t depth,
                                    struct format_node *node, uint32_t place,
                                    const struct node_child *child, struct parting *upper)
{
    struct format_node *fresh;
    enum store_result result = tree_new_node(cursor->tree, node->level, &fresh, &upper->child.page);
    if (result != STORE_OK)
        return result;
    upper->depth = depth;
    upper->is_before = false;
    if (place == node->count && is_last(cursor, depth)) {
        set_separator(upper, child);
        inner_insert(fresh, 0, child);
    } else {
        struct node_child first;
        uint32_t middle = inner_middle(node);
        inner_get(node, middle, &first);
        set_separator(upper, &first);
        inner_append(fresh, node, middle, node->count);
        node_truncate(node, middle);
        if (place <= middle)
            inner_insert(node, place, child);
        else
            inner_insert(fresh, place - middle, child);
    }
    upper->child.count = (uint32_t)inner_rank(fresh, fresh->count);
    return STORE_OK;
}

/* Adds a fresh node to the parent of the node it was split from, and so on upwards. */
static enum store_result enter(struct store_cursor *cursor, struct parting *parting)
{
    struct parting upper, *below = parting;
    while (below->depth > 0) {
        uint32_t depth = below->depth - 1, place = cursor->places[depth];
        struct format_node *node;
        enum store_result result = change_at(cursor, depth, &node);
        if (result != STORE_OK)
            return result;
        inner_add_count(node, place, -(int32_t)below->child.count);
        if (below->is_before) {
            struct node_child fresh = below->child;
            below->child.page = inner_page(node, place);
            below->child.count = inner_count(node, place);
            inner_set_page(node, place, fresh.page);
            inner_add_count(node, place, (int32_t)(fresh.count - below->child.count));
        }
        if (node_used(node) + inner_child_size(&below->child) <= NODE_ROOM) {
            inner_insert(node, place + 1, &below->child);
            return STORE_OK;
        }
        struct parting next;
        result = part_inner(cursor, depth, node, place + 1, &below->child, &next);
        if (result != STORE_OK)
            return result;
        upper = next;
        upper.child.separator = upper.separator;
        below = &upper;
    }
    return grow(cursor, below);
}

/* Distributes the entries of a full leaf and the new one between it and a fresh leaf. */
static enum store_result part_leaf(struct store_cursor *cursor, struct format_node *leaf,
                                   const struct node_entry *entry, struct parting *parting)
{
    struct format_node *fresh;
    enum store_result result = tree_new_node(cursor->tree, 0, &fresh, &parting->child.page);
    if (result != STORE_OK)
        return result;
    uint32_t place = cursor->places[cursor->depth - 1];
    parting->depth = cursor->depth - 1;
    parting->is_before = cursor->rank == 0;
    if (parting->is_before || (place == leaf->count && is_last(cursor, parting->depth))) {
        if (parting->is_before)
            leaf_grow_backwards(fresh, entry);
        leaf_insert(fresh, 0, entry);
        leaf_rehash(leaf);
    } else {
        bool is_left;
        uint32_t middle = leaf_middle(leaf, place, leaf_entry_size(entry), &is_left);
        leaf_append(fresh, leaf, middle, leaf->count);
        node_truncate(leaf, middle);
        leaf_rehash(leaf);
        if (is_left)
            leaf_insert(leaf, place, entry);
        else
            leaf_insert(fresh, place - middle, entry);
    }
    struct node_child divide;
    if (parting->is_before)
        leaf_divide(fresh, leaf, &divide);
    else
        leaf_divide(leaf, fresh, &divide);
    set_separator(parting, &divide);
    parting->child.count = fresh->count;
    return STORE_OK;
}

/* Puts the entry, which the counts already include, into the leaf at the cursor. */
static enum store_result place_entry(struct store_cursor *cursor, const struct node_entry *entry)
{
    const struct format_node *found;
    struct format_node *leaf;
    struct node_plan plan;
    uint32_t depth = cursor->depth - 1;
    enum store_result result = tree_fetch(cursor->tree, cursor->pages[depth], 0, &found);
    if (result != STORE_OK)
        return result;
    if (leaf_plan_insert(found, cursor->places[depth], entry, &plan))
        return tree_apply(cursor->tree, cursor->pages[depth], &plan);
    result = tree_rank(cursor);
    if (result == STORE_OK)
        result = change_at(cursor, depth, &leaf);
    if (result != STORE_OK)
        return result;
    if (node_used(leaf) + leaf_entry_size(entry) <= NODE_ROOM) {
        leaf_insert(leaf, cursor->places[depth], entry);
        return STORE_OK;
    }
    struct parting parting;
    result = part_leaf(cursor, leaf, entry, &parting);
    if (result == STORE_OK)
        result = enter(cursor, &parting);
    return result == STORE_OK ? find_again(cursor) : result;
}

/* ---- inserting ---- */

/* The nearest separator on the path: after the cursor's leaf, or before it. */
static enum store_result find_separator(struct store_cursor *cursor, bool behind,
                                        struct node_child *child)
{
    for (uint32_t depth = cursor->depth - 1; depth-- > 0;) {
        const struct format_node *node;
        enum store_result result =
            tree_fetch(cursor->tree, cursor->pages[depth], tree_level(cursor, depth), &node);
        if (result != STORE_OK)
            return result;
        uint32_t place = cursor->places[depth];
        if (behind ? place + 1 >= node->count : place == 0)
            continue;
        inner_get(node, behind ? place + 1 : place, child);
        return STORE_OK;
    }
    return STORE_ABSENT;
}

/* Between two leaves, the separator decides which one the entry belongs to. */
static enum store_result choose_leaf(struct store_cursor *cursor, const char *key, size_t len)
{
    const struct format_node *leaf;
    struct node_child child;
    uint32_t depth = cursor->depth - 1;
    enum store_result result = tree_fetch(cursor->tree, cursor->pages[depth], 0, &leaf);
    if (result != STORE_OK)
        return result;
    bool at_end = cursor->places[depth] == leaf->count, at_start = cursor->places[depth] == 0;
    if (!at_end && !at_start)
        return STORE_OK;
    result = find_separator(cursor, at_end, &child);
    if (result != STORE_OK)
        return result == STORE_ABSENT ? STORE_OK : result;
    int order = node_compare(key, len, child.separator, child.separator_len);
    if (at_end && (order > 0 || (order == 0 && !child.loose)))
        return tree_next_leaf(cursor);
    return at_start && order < 0 ? tree_previous_leaf(cursor) : STORE_OK;
}

/* The entry holds the value, or the reference to an overflow value. */
static enum store_result make_entry(struct store_tree *tree, struct node_entry *entry,
                                    struct format_overflow *name, const char *value, size_t len)
{
    if (len > STORE_VALUE_MAX)
        return STORE_TOO_LARGE;
    entry->value = value;
    entry->value_len = len < PAGE_SIZE ? (uint32_t)len : PAGE_SIZE;
    entry->overflow = leaf_entry_size(entry) > NODE_ENTRY_MAX;
    if (!entry->overflow)
        return STORE_OK;
    entry->value = (const char *)name;
    entry->value_len = sizeof *name;
    return tree_put_overflow(tree, value, len, name);
}

static enum store_result plant(struct store_cursor *cursor)
{
    struct format_tree *root = cursor->tree->root;
    struct format_node *leaf;
    assert(root->height == 0 && root->root == 0);
    enum store_result result = tree_new_node(cursor->tree, 0, &leaf, &root->root);
    root->height = 1;
    return result == STORE_OK ? find_again(cursor) : result;
}

/* Adds an entry that the transaction's memory, or an overflow value, holds. */
static enum store_result insert_entry(struct store_cursor *cursor, const struct node_entry *entry)
{
    enum store_result result = cursor->tree->root->height
                                   ? choose_leaf(cursor, entry->key, entry->key_len)
                                   : plant(cursor);
    if (result == STORE_OK)
        result = count(cursor, 1);
    return result == STORE_OK ? place_entry(cursor, entry) : result;
}

enum store_result store_tree_insert(struct store_cursor *cursor, const char *key, size_t key_len,
                                    const char *value, size_t value_len)
{
    struct store_tree *tree = cursor->tree;
    struct node_entry entry = {.key = key, .key_len = (uint32_t)key_len};
    struct format_overflow name;
    assert(is_current(cursor));
    if (key_len > STORE_TREE_KEY_MAX || tree->root->count == UINT32_MAX)
        return STORE_TOO_LARGE;
    enum store_result result = tree_touch(tree);
    if (result == STORE_OK)
        result = make_entry(tree, &entry, &name, value, value_len);
    return result == STORE_OK ? insert_entry(cursor, &entry) : result;
}

/* ---- replacing ---- */

/* Deletes the value of the entry at the cursor, if it is an overflow value. */
static enum store_result drop_value(struct store_cursor *cursor, const struct node_entry *entry)
{
    return entry->overflow ? tree_delete_overflow(cursor->tree, entry->value) : STORE_OK;
}

enum store_result store_tree_replace(struct store_cursor *cursor, const char *value,
                                     size_t value_len)
{
    const struct format_node *found;
    assert(is_current(cursor));
    enum store_result result = tree_touch(cursor->tree);
    if (result == STORE_OK)
        result = tree_find_entry(cursor, &found);
    if (result != STORE_OK)
        return result;
    uint32_t depth = cursor->depth - 1, place = cursor->places[depth];
    struct node_entry old, entry;
    struct format_overflow name;
    char key[STORE_TREE_KEY_MAX];
    leaf_get(found, place, &old);
    memcpy(key, old.key, old.key_len);
    entry = (struct node_entry){.key = key, .key_len = old.key_len};
    bool same = !old.overflow && old.value_len == value_len;
    if (same) {
        struct node_plan plan;
        leaf_plan_overwrite(found, place, value, &plan);
        return tree_apply(cursor->tree, cursor->pages[depth], &plan);
    }
    result = drop_value(cursor, &old);
    if (result == STORE_OK)
        result = make_entry(cursor->tree, &entry, &name, value, value_len);
    struct format_node *leaf;
    if (result == STORE_OK)
        result = change_at(cursor, depth, &leaf);
    if (result != STORE_OK)
        return result;
    leaf_remove(leaf, place);
    return place_entry(cursor, &entry);
}

/* ---- removing ---- */

/* Replaces the root by its only child. */
static enum store_result collapse(struct store_cursor *cursor)
{
    struct format_tree *root = cursor->tree->root;
    while (root->height > 1) {
        struct format_node *node;
        enum store_result result = tree_change(cursor->tree, root->root, root->height - 1u, &node);
        if (result != STORE_OK)
            return result;
        if (node->count > 1)
            return STORE_OK;
        tree_free_node(cursor->tree, root->root);
        root->root = inner_page(node, 0);
        root->height--;
    }
    return STORE_OK;
}

/* Frees the empty node at `depth`, and the nodes above it that had no other child. */
static enum store_result remove_node(struct store_cursor *cursor, uint32_t depth)
{
    tree_free_node(cursor->tree, cursor->pages[depth]);
    while (depth-- > 0) {
        struct format_node *node;
        enum store_result result = change_at(cursor, depth, &node);
        if (result != STORE_OK)
            return result;
        inner_remove(node, cursor->places[depth]);
        if (node->count > 0)
            return STORE_OK;
        tree_free_node(cursor->tree, cursor->pages[depth]);
    }
    if (cursor->tree->root->count != 0) /* the nodes held fewer entries than the root counts */
        return STORE_DAMAGED;
    cursor->tree->root->root = 0;
    cursor->tree->root->height = 0;
    return STORE_OK;
}

/* Whether the neighbour seems to have room for the whole node. A guess, because reading it
 * costs a page. */
static bool may_fit(const struct format_node *node, const struct format_node *parent,
                    uint32_t neighbour)
{
    if (node->level > 0)
        return true;
    uint64_t used = node_used(node);
    return used + used / node->count * inner_count(parent, neighbour) <= MERGED_MOST;
}

/* Moves all of `right` after `left`; both are children of `parent`, at `place` and `place` + 1. */
static void merge(struct format_node *parent, uint32_t place, struct format_node *left,
                  const struct format_node *right)
{
    struct node_child child;
    inner_get(parent, place + 1, &child);
    if (left->level == 0) {
        leaf_append(left, right, 0, right->count);
    } else {
        struct node_child first;
        inner_get(right, 0, &first);
        first.separator = child.separator;
        first.separator_len = child.separator_len;
        first.loose = child.loose;
        inner_insert(left, left->count, &first);
        inner_append(left, right, 1, right->count);
    }
    inner_add_count(parent, place, (int32_t)child.count);
    inner_remove(parent, place + 1);
}

/* The node at `depth` has become small. *merged: it was merged into a neighbour, or the
 * neighbour into it. */
static enum store_result try_merge(struct store_cursor *cursor, uint32_t depth, bool *merged)
{
    struct format_node *node, *parent, *other;
    assert(depth > 0);
    enum store_result result = change_at(cursor, depth, &node);
    if (result == STORE_OK)
        result = change_at(cursor, depth - 1, &parent);
    if (result != STORE_OK)
        return result;
    uint32_t place = cursor->places[depth - 1], level = node->level;
    uint32_t neighbour = place + 1 < parent->count ? place + 1 : place - 1;
    *merged = false;
    if (parent->count < 2 || !may_fit(node, parent, neighbour))
        return STORE_OK;
    const struct format_node *look;
    uint32_t page = inner_page(parent, neighbour);
    if (page == cursor->pages[depth])
        return STORE_DAMAGED; /* its parent names it twice */
    result = tree_fetch(cursor->tree, page, level, &look);
    if (result != STORE_OK)
        return result;
    struct node_child child; /* its separator moves down into a merged inner node */
    inner_get(parent, neighbour > place ? neighbour : place, &child);
    if (node_used(node) + node_used(look) + (level ? child.separator_len : 0) > MERGED_MOST)
        return STORE_OK;
    result = tree_change(cursor->tree, page, level, &other);
    if (result != STORE_OK)
        return result;
    if (neighbour > place)
        merge(parent, place, node, other);
    else
        merge(parent, neighbour, other, node);
    tree_free_node(cursor->tree, neighbour > place ? page : cursor->pages[depth]);
    *merged = true;
    return STORE_OK;
}

/* Rebalances after the leaf at the cursor lost an entry; its counts are already correct. */
static enum store_result shrink(struct store_cursor *cursor)
{
    uint32_t depth = cursor->depth - 1;
    struct format_node *node;
    bool any = false;
    enum store_result result = change_at(cursor, depth, &node);
    if (result == STORE_OK && node->count == 0) {
        any = true;
        result = remove_node(cursor, depth);
    }
    for (bool merged = !any; result == STORE_OK && merged && depth > 0; depth--) {
        result = change_at(cursor, depth, &node);
        if (result != STORE_OK || node_used(node) >= SMALL)
            break;
        result = try_merge(cursor, depth, &merged);
        any |= merged;
    }
    if (result == STORE_OK && any)
        result = collapse(cursor);
    return result == STORE_OK && any ? find_again(cursor) : result;
}

/* Whether the leaf at the cursor is the first or last one of the tree. */
static bool is_end(struct store_cursor *cursor)
{
    uint32_t depth = 0;
    while (depth + 1 < cursor->depth && cursor->places[depth] == 0)
        depth++;
    return depth + 1 == cursor->depth || is_last(cursor, cursor->depth - 1);
}

/* Removes the entry from the leaf. *stays: nothing else is to do, because the leaf is still
 * large enough; or because it is at an end, where it will soon be filled again or emptied. */
static enum store_result take_out(struct store_cursor *cursor, const struct format_node *found,
                                  bool *stays)
{
    uint32_t depth = cursor->depth - 1, place = cursor->places[depth];
    bool is_alone = found->count == 1;
    bool is_large = !is_alone && node_used(found) - leaf_size_at(found, place) >= SMALL;
    enum store_result result = STORE_OK;
    *stays = is_large || (!is_alone && is_end(cursor));
    if (*stays && !is_large) /* is_end() may have read other nodes */
        result = tree_fetch(cursor->tree, cursor->pages[depth], 0, &found);
    if (result != STORE_OK)
        return result;
    if (*stays) {
        struct node_plan plan;
        leaf_plan_remove(found, place, &plan);
        return tree_apply(cursor->tree, cursor->pages[depth], &plan);
    }
    struct format_node *leaf;
    result = change_at(cursor, depth, &leaf);
    if (result == STORE_OK)
        leaf_remove(leaf, place);
    return result;
}

/* Removes the entry at the cursor; drops: with its value. */
static enum store_result remove_entry(struct store_cursor *cursor, bool drops)
{
    const struct format_node *found;
    assert(is_current(cursor));
    enum store_result result = tree_touch(cursor->tree);
    if (result == STORE_OK)
        result = tree_find_entry(cursor, &found);
    if (result != STORE_OK)
        return result;
    struct node_entry old;
    bool stays = false;
    leaf_get(found, cursor->places[cursor->depth - 1], &old);
    if (drops)
        result = drop_value(cursor, &old);
    if (result == STORE_OK)
        result = take_out(cursor, found, &stays);
    if (result == STORE_OK)
        result = count(cursor, -1);
    if (result == STORE_OK && !stays)
        result = tree_rank(cursor);
    return result == STORE_OK && !stays ? shrink(cursor) : result;
}

enum store_result store_tree_remove(struct store_cursor *cursor)
{
    return remove_entry(cursor, true);
}

/* ---- another key ---- */

/* The entry as before, but under this key, which may have made it too long for a node. */
static enum store_result under_key(struct store_tree *tree, const struct node_entry *old,
                                   struct format_overflow *name, struct node_entry *entry)
{
    char *value = store_alloc(tree->txn, old->value_len + 1u);
    if (!value)
        return STORE_NO_MEMORY;
    memcpy(value, old->value, old->value_len);
    if (!old->overflow)
        return make_entry(tree, entry, name, value, old->value_len);
    entry->value = value;
    entry->value_len = old->value_len;
    entry->overflow = true;
    return STORE_OK;
}

/* Whether a search for this key leads to the leaf at the cursor, of which it is to replace a key:
 * as choose_leaf() decides. Between two keys of the leaf it does. */
static enum store_result leads_here(struct store_cursor *cursor, const char *key, size_t len,
                                    uint32_t entries, bool *leads)
{
    struct node_child child;
    uint32_t place = cursor->places[cursor->depth - 1];
    enum store_result result = STORE_OK;
    *leads = true;
    if (place == 0)
        result = find_separator(cursor, false, &child);
    if (place == 0 && result == STORE_OK)
        *leads = node_compare(key, len, child.separator, child.separator_len) >= 0;
    if ((result != STORE_OK && result != STORE_ABSENT) || !*leads || place + 1 < entries)
        return result == STORE_ABSENT ? STORE_OK : result;
    result = find_separator(cursor, true, &child);
    if (result != STORE_OK)
        return result == STORE_ABSENT ? STORE_OK : result;
    int order = node_compare(key, len, child.separator, child.separator_len);
    *leads = order < 0 || (order == 0 && child.loose);
    return STORE_OK;
}

enum store_result store_tree_rekey(struct store_cursor *cursor, const char *key, size_t key_len)
{
    const struct format_node *found;
    struct format_node *leaf;
    struct node_entry old, entry = {.key = key, .key_len = (uint32_t)key_len};
    struct format_overflow name;
    bool leads = false;
    assert(is_current(cursor));
    if (key_len > STORE_TREE_KEY_MAX)
        return STORE_TOO_LARGE;
    enum store_result result = tree_touch(cursor->tree);
    if (result == STORE_OK)
        result = tree_find_entry(cursor, &found);
    if (result != STORE_OK)
        return result;
    uint32_t depth = cursor->depth - 1, place = cursor->places[depth], entries = found->count;
    leaf_get(found, place, &old);
    result = under_key(cursor->tree, &old, &name, &entry);
    if (result == STORE_OK)
        result = leads_here(cursor, key, key_len, entries, &leads);
    if (result == STORE_OK && !leads) {
        result = remove_entry(cursor, false);
        return result == STORE_OK ? insert_entry(cursor, &entry) : result;
    }
    if (result == STORE_OK)
        result = change_at(cursor, depth, &leaf);
    if (result != STORE_OK)
        return result;
    leaf_remove(leaf, place);
    return place_entry(cursor, &entry);
}
