/*
 * Lists of dropped trees: collections that no item names any more. Their pages are freed in the
 * background (tree_purge.c).
 */
#include "storage/tree/tree_drop.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"

/* ---- lists ---- */

static bool add_page(struct page_list *list, uint32_t page)
{
    if (!array_reserve(&list->at, &list->capacity, list->count + 1, sizeof *list->at))
        return false;
    list->at[list->count++] = page;
    return true;
}

static bool add_purge(struct purge_list *list, uint32_t page, uint32_t level)
{
    if (!array_reserve(&list->at, &list->capacity, list->count + 1, sizeof *list->at))
        return false;
    list->at[list->count++] = (struct purge_node){page, level};
    return true;
}

void dropped_tree_free(struct dropped_tree *dropped)
{
    assert(!dropped->is_running);
    free(dropped->to_purge.at);
    free(dropped->pages.at);
    free(dropped->overflow);
    free(dropped);
}

bool dropped_tree_note_node(struct dropped_tree *dropped, uint32_t page, uint32_t level)
{
    if (!add_page(&dropped->pages, page))
        return false;
    return (level == 0 && !dropped->has_overflow) || add_purge(&dropped->to_purge, page, level);
}

/* ---- dropping ---- */

void dropped_tree_enqueue(struct store *store, struct dropped_tree *dropped)
{
    assert(!dropped->is_running && !dropped->is_done);
    pthread_mutex_lock(&store->dropped_trees_lock);
    dropped->next = store->dropped_trees;
    store->dropped_trees = dropped;
    atomic_fetch_add_explicit(&store->dropped_tree_count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&store->dropped_trees_lock);
}

struct dropped_tree *dropped_tree_take(struct store *store)
{
    pthread_mutex_lock(&store->dropped_trees_lock);
    struct dropped_tree *dropped = store->dropped_trees;
    if (dropped)
        store->dropped_trees = dropped->next;
    pthread_mutex_unlock(&store->dropped_trees_lock);
    return dropped;
}

static struct dropped_tree *new_dropped_tree(struct store *store, uint64_t collection,
                                             uint32_t home)
{
    struct dropped_tree *dropped = calloc(1, sizeof *dropped);
    if (!dropped)
        return NULL;
    dropped->generation = store->generation;
    dropped->collection = collection;
    dropped->home = home;
    dropped->key_bytes = (struct format_overflow_key){
        .collection = collection, .slot = (uint16_t)(home << store->slot_shift)};
    dropped->key = (struct store_key){.data = (const char *)&dropped->key_bytes,
                                      .len = sizeof dropped->key_bytes,
                                      .slot = dropped->key_bytes.slot,
                                      .db = STORE_HIDDEN_DB,
                                      .mode = STORE_EXCLUSIVE,
                                      .hash = format_hash(&store->superblock.secret,
                                                          (const char *)&dropped->key_bytes,
                                                          sizeof dropped->key_bytes)};
    return dropped;
}

void tree_drop(struct store *store, const struct format_trees *roots)
{
    tree_drop_of(store, roots, store->generation);
}

void tree_drop_of(struct store *store, const struct format_trees *roots, uint64_t generation)
{
    if (number_list_has(&store->disputed_collections, roots->collection)) {
        atomic_store(&store->scan_wanted, true); /* for the other item's collection, too */
        return;
    }
    struct dropped_tree *dropped = new_dropped_tree(store, roots->collection, roots->home);
    bool noted = dropped != NULL;
    if (dropped)
        dropped->generation = generation;
    for (uint32_t i = 0; noted && i < roots->count; i++)
        dropped->has_overflow |= roots->trees[i].has_overflow != 0;
    for (uint32_t i = 0; noted && i < roots->count; i++)
        if (roots->trees[i].height)
            noted =
                dropped_tree_note_node(dropped, roots->trees[i].root, roots->trees[i].height - 1u);
    if (noted && dropped->pages.count) {
        dropped_tree_enqueue(store, dropped);
        return;
    }
    if (!noted)
        atomic_store(&store->scan_wanted, true);
    if (!noted)
        env_log(&store->env, STORE_LOG_WARNING,
                "Out of memory: the space of a deleted collection is recovered at the next start");
    if (dropped)
        dropped_tree_free(dropped);
}

/* Drops the trees of an item in its page. */
void tree_drop_item(struct store *store, const struct format_item *item)
{
    struct format_trees *roots = malloc(item->payload_len);
    if (!roots) {
        atomic_store(&store->scan_wanted, true);
        return;
    }
    memcpy(roots, format_payload(item), item->payload_len);
    tree_drop(store, roots);
    free(roots);
}

bool tree_drop_overflow(struct store *store, const struct format_overflow_key *key)
{
    uint32_t home = key->slot >> store->slot_shift;
    struct dropped_tree *dropped = store->dropped_trees;
    if (!dropped || !dropped->overflow || dropped->home != home) {
        dropped = new_dropped_tree(store, key->collection, home);
        if (!dropped)
            return false;
        dropped_tree_enqueue(store, dropped);
    }
    if (!array_reserve(&dropped->overflow, &dropped->overflow_capacity, dropped->overflow_count + 1,
                       sizeof *dropped->overflow))
        return false;
    dropped->overflow[dropped->overflow_count++] = *key;
    return true;
}

void tree_forget_dropped(struct store *store)
{
    struct dropped_tree *dropped;
    while ((dropped = dropped_tree_take(store))) {
        atomic_fetch_sub_explicit(&store->dropped_tree_count, 1, memory_order_relaxed);
        dropped_tree_free(dropped);
    }
}
