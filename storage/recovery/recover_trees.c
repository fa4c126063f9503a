/*
 * Trees at recovery. A node does not tell whether it is used: it is if an item names its
 * collection, and that item may come much later in the scan, or have come long before. So nodes
 * are collected as runs of pages, and settled at the end. Collections that were dropped but not
 * yet purged when the store stopped vanish here without further work.
 */
#include "storage/recovery/recover_trees.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "storage/tree/tree_drop.h"

/* Consecutive pages with nodes of one collection. */
struct found_nodes {
    uint64_t collection;
    uint32_t page;
    uint16_t partition, count;
};

void *found_add(struct found_list *list, size_t size)
{
    if (!array_reserve(&list->at, &list->capacity, list->count + 1, size))
        return NULL;
    assert(list->count < list->capacity);
    return (char *)list->at + list->count++ * size;
}

bool found_owner(struct found_trees *found, const struct format_item *item)
{
    uint64_t *id = found_add(&found->owners, sizeof *id);
    if (id)
        memcpy(id, format_payload(item), sizeof *id);
    return id != NULL;
}

bool found_node(struct found_trees *found, uint32_t partition, uint32_t page,
                const struct format_item *item)
{
    uint64_t id = ((const struct format_node *)item)->collection;
    struct found_nodes *last = found->nodes.at;
    last = found->nodes.count ? last + found->nodes.count - 1 : NULL;
    if (last && last->collection == id && last->partition == partition &&
        last->page + last->count == page && last->count < UINT16_MAX) {
        last->count++;
        return true;
    }
    struct found_nodes *run = found_add(&found->nodes, sizeof *run);
    if (run)
        *run = (struct found_nodes){id, page, (uint16_t)partition, 1};
    return run != NULL;
}

bool found_overflow(struct found_trees *found, const struct format_item *item)
{
    struct format_overflow_key *key = found_add(&found->overflow, sizeof *key);
    if (key)
        memcpy(key, format_key(item), sizeof *key);
    return key != NULL;
}

void found_free(struct found_trees *found)
{
    free(found->owners.at);
    free(found->nodes.at);
    free(found->overflow.at);
    *found = (struct found_trees){0};
}

static bool append(struct found_list *to, const struct found_list *from, size_t size)
{
    for (uint64_t i = 0; i < from->count; i++) {
        void *place = found_add(to, size);
        if (!place)
            return false;
        memcpy(place, (const char *)from->at + i * size, size);
    }
    return true;
}

bool found_merge(struct found_trees *found, struct found_trees *other)
{
    bool done = append(&found->owners, &other->owners, sizeof(uint64_t)) &&
                append(&found->nodes, &other->nodes, sizeof(struct found_nodes)) &&
                append(&found->overflow, &other->overflow, sizeof(struct format_overflow_key));
    found_free(other);
    return done;
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_named(const struct found_trees *found, uint64_t id)
{
    return found->owners.count &&
           bsearch(&id, found->owners.at, found->owners.count, sizeof id, by_id) != NULL;
}

/* Two items name one collection: when one of them is deleted, the nodes must stay. */
static bool note_disputed(struct store *store, const struct found_trees *found)
{
    const uint64_t *ids = found->owners.at;
    for (uint64_t i = 1; i < found->owners.count; i++) {
        if (ids[i] != ids[i - 1])
            continue;
        env_log(&store->env, STORE_LOG_WARNING, "Two items are one collection (%llx): damaged",
                (unsigned long long)ids[i]);
        atomic_fetch_add(&store->damaged, 1);
        if (!number_list_append(&store->disputed_collections, ids[i]))
            return false;
    }
    return true;
}

bool found_settle(struct store *store, struct found_trees *found)
{
    const struct found_nodes *nodes = found->nodes.at;
    const struct format_overflow_key *overflow = found->overflow.at;
    if (found->owners.count)
        qsort(found->owners.at, found->owners.count, sizeof(uint64_t), by_id);
    if (!note_disputed(store, found))
        return false;
    for (uint64_t i = 0; i < found->nodes.count; i++) {
        struct page_file *file = &store->partitions[nodes[i].partition].file;
        bool keeps = is_named(found, nodes[i].collection);
        for (uint32_t j = 0; keeps && j < nodes[i].count; j++)
            page_file_keep_slot(file, nodes[i].page + j, 0);
    }
    for (uint64_t i = 0; i < found->overflow.count; i++)
        if (!is_named(found, overflow[i].collection) && !tree_drop_overflow(store, &overflow[i]))
            return false;
    return true;
}
