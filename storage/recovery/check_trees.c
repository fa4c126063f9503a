/*
 * Checks whole collections: from each item that is one down to every entry; and then whether any
 * node or overflow value is left that no entry leads to.
 */
#include "storage/recovery/check_trees.h"

#include <stdlib.h>
#include <string.h>

#include "storage/tree/key_tree.h"
#include "storage/tree/tree.h"

/* A walk over one tree. */
struct walk {
    struct check *check;
    const struct seen_owner *owner;
    uint64_t entries; /* so far */
    char last[NODE_ENTRY_MAX];
    uint32_t last_len;
    bool is_bad; /* reported once per tree */
};

static void say(struct walk *walk, uint32_t page, const char *what)
{
    if (!walk->is_bad)
        env_log(&walk->check->store->env, STORE_LOG_WARNING,
                "The collection in partition %u, page %u, slot %u is damaged: %s (page %u of "
                "partition %u)",
                walk->owner->partition, walk->owner->page, walk->owner->slot, what, page,
                walk->owner->home);
    walk->is_bad = true;
}

/* ---- what was found, by name ---- */

static int node_order(const void *a, const void *b)
{
    const struct seen_node *x = a, *y = b;
    if (x->partition != y->partition)
        return x->partition < y->partition ? -1 : 1;
    return (x->page > y->page) - (x->page < y->page);
}

static int overflow_order(const void *a, const void *b)
{
    const struct seen_overflow *x = a, *y = b;
    if (x->collection != y->collection)
        return x->collection < y->collection ? -1 : 1;
    return (x->element > y->element) - (x->element < y->element);
}

static int owner_order(const void *a, const void *b)
{
    uint64_t x = ((const struct seen_owner *)a)->collection;
    uint64_t y = ((const struct seen_owner *)b)->collection;
    return (x > y) - (x < y);
}

static void sort(struct found_list *list, size_t size, int (*order)(const void *, const void *))
{
    if (list->count)
        qsort(list->at, list->count, size, order);
}

static void *find(const struct found_list *list, const void *key, size_t size,
                  int (*order)(const void *, const void *))
{
    return list->count ? bsearch(key, list->at, list->count, size, order) : NULL;
}

/* ---- from the root down ---- */

static bool read_node(struct walk *walk, uint32_t page, uint32_t level, struct format_node *node)
{
    struct check *check = walk->check;
    struct seen_node key = {.partition = walk->owner->home, .page = page};
    struct seen_node *seen = find(&check->nodes, &key, sizeof key, node_order);
    if (!seen || seen->collection != walk->owner->collection) {
        say(walk, page, "a node is missing");
        return false;
    }
    if (seen->is_reached) {
        say(walk, page, "a node is in two places");
        return false;
    }
    seen->is_reached = true;
    if (disk_read(check->store->maintenance_queue,
                  check->store->partitions[key.partition].file.file, node, PAGE_SIZE,
                  (uint64_t)page * PAGE_SIZE) != 0) {
        check->result = STORE_IO;
        return false;
    }
    if (node->level != level)
        say(walk, page, "a node has the wrong level");
    return node->level == level;
}

static void reach_overflow(struct walk *walk, uint32_t page, const char *value)
{
    struct format_overflow name;
    memcpy(&name, value, sizeof name);
    struct seen_overflow key = {.collection = walk->owner->collection, .element = name.element};
    struct seen_overflow *seen = find(&walk->check->overflow, &key, sizeof key, overflow_order);
    if (!seen || seen->length != name.length)
        say(walk, page, "an element's value is missing");
    else
        seen->is_reached = true;
}

static void see_name(struct walk *walk, uint32_t page, const struct node_entry *entry)
{
    const struct store *store = walk->check->store;
    struct seen_names *names = walk->owner->names;
    uint32_t slot;
    if (entry->overflow ||
        !key_tree_slot(entry->key, entry->key_len, entry->value, entry->value_len, &slot) ||
        slot >> store->slot_shift != walk->owner->partition)
        say(walk, page, "an entry names no key of its partition");
    else
        check_add_hash(key_tree_hash(store, entry->key, entry->key_len), &names->names,
                       &names->name_sum);
}

static void walk_leaf(struct walk *walk, uint32_t page, const struct format_node *leaf)
{
    for (uint32_t i = 0; i < leaf->count; i++) {
        struct node_entry entry;
        leaf_get(leaf, i, &entry);
        if (walk->entries++ &&
            node_compare(walk->last, walk->last_len, entry.key, entry.key_len) > 0)
            say(walk, page, "entries are not in order");
        walk->last_len = entry.key_len < NODE_ENTRY_MAX ? entry.key_len : NODE_ENTRY_MAX;
        memcpy(walk->last, entry.key, walk->last_len);
        if (walk->owner->names)
            see_name(walk, page, &entry);
        else if (entry.overflow)
            reach_overflow(walk, page, entry.value);
    }
}

static void walk_node(struct walk *walk, uint32_t page, uint32_t level)
{
    struct format_node *node = disk_alloc(PAGE_SIZE);
    if (!node)
        walk->check->result = STORE_NO_MEMORY;
    if (node && read_node(walk, page, level, node)) {
        if (level == 0)
            walk_leaf(walk, page, node);
        for (uint32_t i = 0; level > 0 && i < node->count; i++) {
            uint64_t before = walk->entries;
            walk_node(walk, inner_page(node, i), level - 1);
            if (walk->entries - before != inner_count(node, i))
                say(walk, page, "a node has a wrong count of entries");
        }
    }
    free(node);
}

static void walk_tree(struct check *check, const struct seen_owner *owner,
                      const struct format_tree *tree)
{
    struct walk walk = {.check = check, .owner = owner};
    if (tree->height > 0)
        walk_node(&walk, tree->root, tree->height - 1u);
    if (walk.entries != tree->count)
        say(&walk, tree->root, "its count of entries is wrong");
}

/* ---- nodes and values without an owner ---- */

static bool is_owned(const struct check *check, uint64_t collection)
{
    struct seen_owner key = {.collection = collection};
    return find(&check->owners, &key, sizeof key, owner_order) != NULL;
}

static void find_left_over(struct check *check)
{
    const struct seen_node *nodes = check->nodes.at;
    const struct seen_overflow *overflow = check->overflow.at;
    for (uint64_t i = 0; i < check->nodes.count; i++)
        if (!nodes[i].is_reached && is_owned(check, nodes[i].collection))
            env_log(&check->store->env, STORE_LOG_WARNING,
                    "Page %u of partition %u is a node that its collection does not reach",
                    nodes[i].page, nodes[i].partition);
    for (uint64_t i = 0; i < check->overflow.count; i++)
        if (!overflow[i].is_reached && is_owned(check, overflow[i].collection))
            env_log(&check->store->env, STORE_LOG_WARNING,
                    "A value of collection %llx (element %llx) has no entry",
                    (unsigned long long)overflow[i].collection,
                    (unsigned long long)overflow[i].element);
}

/* ---- trees of keys ---- */

static void compare_names(const struct check *check)
{
    for (uint32_t i = 0; i < check->store->partition_count * STORE_DB_COUNT; i++) {
        const struct seen_names *seen = &check->names[i];
        if (seen->keys != seen->names || seen->key_sum != seen->name_sum)
            env_log(
                &check->store->env, STORE_LOG_WARNING,
                "The tree of keys of database %u in partition %u is wrong: %llu names, %llu keys",
                i % STORE_DB_COUNT, i / STORE_DB_COUNT, (unsigned long long)seen->names,
                (unsigned long long)seen->keys);
    }
}

void check_trees(struct check *check)
{
    sort(&check->owners, sizeof(struct seen_owner), owner_order);
    sort(&check->nodes, sizeof(struct seen_node), node_order);
    sort(&check->overflow, sizeof(struct seen_overflow), overflow_order);
    const struct seen_owner *owners = check->owners.at;
    for (uint64_t i = 0; i < check->owners.count; i++) {
        if (i > 0 && owners[i - 1].collection == owners[i].collection)
            env_log(&check->store->env, STORE_LOG_WARNING, "Two items are one collection (%llx)",
                    (unsigned long long)owners[i].collection);
        for (uint32_t j = 0; j < owners[i].tree_count; j++)
            walk_tree(check, &owners[i], &owners[i].trees[j]);
    }
    find_left_over(check);
    if (check->names)
        compare_names(check);
}
