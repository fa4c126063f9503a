/*
 * Collections that nobody names any more are noted here, to be taken apart by and by
 * (tree_purge.c).
 */
#include "storage/tree/tree_drop.h"

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

static bool add_dig(struct dig_list *list, uint32_t page, uint32_t level)
{
    if (!array_reserve(&list->at, &list->capacity, list->count + 1, sizeof *list->at))
        return false;
    list->at[list->count++] = (struct dig){page, level};
    return true;
}

void grave_free(struct grave *grave)
{
    free(grave->digs.at);
    free(grave->pages.at);
    free(grave->outside);
    free(grave);
}

bool grave_note_node(struct grave *grave, uint32_t page, uint32_t level)
{
    if (!add_page(&grave->pages, page))
        return false;
    return (level == 0 && !grave->has_outside) || add_dig(&grave->digs, page, level);
}

/* ---- burying ---- */

void grave_enlist(struct store *store, struct grave *grave)
{
    pthread_mutex_lock(&store->graves_lock);
    grave->next = store->graves;
    store->graves = grave;
    atomic_fetch_add_explicit(&store->grave_count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&store->graves_lock);
}

struct grave *grave_take(struct store *store)
{
    pthread_mutex_lock(&store->graves_lock);
    struct grave *grave = store->graves;
    if (grave)
        store->graves = grave->next;
    pthread_mutex_unlock(&store->graves_lock);
    return grave;
}

static struct grave *new_grave(struct store *store, uint64_t collection, uint32_t home)
{
    struct grave *grave = calloc(1, sizeof *grave);
    if (!grave)
        return NULL;
    grave->generation = store->generation;
    grave->collection = collection;
    grave->home = home;
    grave->key_bytes = (struct format_outside_key){.collection = collection,
                                                   .slot = (uint16_t)(home << store->slot_shift)};
    grave->key = (struct store_key){.data = (const char *)&grave->key_bytes,
                                    .len = sizeof grave->key_bytes,
                                    .slot = grave->key_bytes.slot,
                                    .db = STORE_HIDDEN_DB,
                                    .mode = STORE_EXCLUSIVE,
                                    .hash = format_hash(&store->superblock.secret,
                                                        (const char *)&grave->key_bytes,
                                                        sizeof grave->key_bytes)};
    return grave;
}

void tree_bury(struct store *store, const struct format_trees *roots)
{
    tree_bury_of(store, roots, store->generation);
}

void tree_bury_of(struct store *store, const struct format_trees *roots, uint64_t generation)
{
    if (number_list_has(&store->disputed_collections, roots->collection)) {
        atomic_store(&store->scan_wanted, true); /* the other item's, too */
        return;
    }
    struct grave *grave = new_grave(store, roots->collection, roots->home);
    bool noted = grave != NULL;
    if (grave)
        grave->generation = generation;
    for (uint32_t i = 0; noted && i < roots->count; i++)
        grave->has_outside |= roots->trees[i].has_outside != 0;
    for (uint32_t i = 0; noted && i < roots->count; i++)
        if (roots->trees[i].height)
            noted = grave_note_node(grave, roots->trees[i].root, roots->trees[i].height - 1u);
    if (noted && grave->pages.count) {
        grave_enlist(store, grave);
        return;
    }
    if (!noted)
        atomic_store(&store->scan_wanted, true);
    if (!noted)
        env_log(&store->env, STORE_LOG_WARNING,
                "Out of memory: the space of a deleted collection comes back with the next "
                "start");
    if (grave)
        grave_free(grave);
}

/* From an item in its page. */
void tree_bury_item(struct store *store, const struct format_item *item)
{
    struct format_trees *roots = malloc(item->payload_len);
    if (!roots) {
        atomic_store(&store->scan_wanted, true);
        return;
    }
    memcpy(roots, format_payload(item), item->payload_len);
    tree_bury(store, roots);
    free(roots);
}

bool tree_bury_outside(struct store *store, const struct format_outside_key *key)
{
    uint32_t home = key->slot >> store->slot_shift;
    struct grave *grave = store->graves;
    if (!grave || !grave->outside || grave->home != home) {
        grave = new_grave(store, key->collection, home);
        if (!grave)
            return false;
        grave_enlist(store, grave);
    }
    if (!array_reserve(&grave->outside, &grave->outside_capacity, grave->outside_count + 1,
                       sizeof *grave->outside))
        return false;
    grave->outside[grave->outside_count++] = *key;
    return true;
}

void tree_forget_graves(struct store *store)
{
    struct grave *grave;
    while ((grave = grave_take(store))) {
        atomic_fetch_sub_explicit(&store->grave_count, 1, memory_order_relaxed);
        grave_free(grave);
    }
}
