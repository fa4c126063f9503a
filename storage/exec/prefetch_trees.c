/*
 * Prefetching paths down trees, to the entries that will be looked up, into the processor's cache:
 * for a batch of hints one node each, then the next node of each, so that the memory latencies
 * overlap. Pages that are not in memory are skipped: the transaction that needs one reads it in its
 * turn.
 *
 * Between two steps a partition may be unlocked, so each step checks its node anew.
 */
#include <string.h>

#include "storage/exec/prefetch.h"
#include "storage/tree/tree.h"

#define BATCH 32u
#define LINES 7u /* cache lines of a node that a search reads first */

enum stage {
    AT_START,
    TO_NODE,  /* the node's first lines are prefetched */
    TO_ENTRY, /* the entry's lines in the leaf are prefetched */
};

struct way {
    struct store_prefetch_hint hint;
    struct partition *partition;
    uint64_t collection;
    struct format_tree trees[STORE_TREES];
    uint32_t tree_count;
    uint32_t page, level;
    uint64_t rank, total; /* in the node at `page`, for a search by rank */
    enum stage stage;
};

/* The memory of the page's frame; NULL: not in memory. */
static const char *page_in_memory(const struct page_file *file, uint32_t page)
{
    uint32_t frame = page < file->segment_count * SEGMENT_PAGES ? file->table[page] : 0;
    if (!frame || arena_frame(file->arena, frame)->state != FRAME_VALID)
        return NULL;
    return arena_memory(file->arena, frame);
}

static bool approach(struct way *way, uint32_t page, uint32_t level)
{
    const struct page_file *file = &way->partition->file;
    uint32_t frame = page < file->segment_count * SEGMENT_PAGES ? file->table[page] : 0;
    if (!frame)
        return false;
    const char *memory = arena_memory(file->arena, frame);
    __builtin_prefetch(&arena_frame(file->arena, frame)->state);
    for (uint32_t line = 0; line < LINES; line++)
        __builtin_prefetch(memory + line * PREFETCH_LINE);
    way->page = page;
    way->level = level;
    way->stage = TO_NODE;
    return true;
}

/* Starts at the root of the hint's tree. */
static bool begin(struct way *way)
{
    uint32_t number = way->hint.tree == STORE_HINT_LAST ? way->tree_count - 1 : way->hint.tree;
    if (number >= way->tree_count)
        return false;
    const struct format_tree *tree = &way->trees[number];
    way->rank = way->hint.from_end ? tree->count - 1 - way->hint.rank : way->hint.rank;
    way->total = tree->count;
    return tree->height > 0 && tree->height <= STORE_TREE_HEIGHT_MAX &&
           (!way->hint.by_rank || way->rank < tree->count) &&
           approach(way, tree->root, tree->height - 1u);
}

/* The key's item, if it is in memory and has trees. */
static const struct format_item *find_item(const struct store *store, struct way *way)
{
    const struct store_key *key = way->hint.key;
    const struct index *index = &way->partition->index;
    uint32_t at =
        index_find(index, key->slot, engine_tag(key->hash, engine_database(store, key->db)));
    if (at == INDEX_NONE)
        return NULL;
    uint64_t entry = index_get(index, key->slot, at);
    const char *memory = page_in_memory(&way->partition->file, index_page(entry));
    if (!memory)
        return NULL;
    uint32_t size = format_class_size(page_file_class_of(&way->partition->file, index_page(entry)));
    const struct format_item *item = (const void *)(memory + index_item_slot(entry) * size);
    bool is_whole = item->database == engine_database(store, key->db);
    return is_whole && item->flags & FORMAT_TREES ? item : NULL;
}

/* From the item to the root. False: nothing to prefetch. */
static bool find_root(const struct store *store, struct way *way)
{
    struct format_trees head;
    const struct format_item *item = find_item(store, way);
    if (!item || item->payload_len < sizeof head)
        return false;
    memcpy(&head, format_payload(item), sizeof head);
    uint32_t length = head.count * (uint32_t)sizeof *way->trees;
    if (head.count > STORE_TREES || head.home != way->partition->file.id ||
        item->payload_len < sizeof head + length)
        return false;
    memcpy(way->trees, format_payload(item) + sizeof head, length);
    way->tree_count = head.count;
    way->collection = head.collection;
    return begin(way);
}

/* From the entry to an entry of another tree, as hint->follow says. */
static bool follow(const struct store *store, struct way *way, const struct format_node *leaf)
{
    struct store_prefetch_hint *hint = &way->hint;
    struct node_entry found;
    bool (*lead)(const struct store *, const struct store_entry *, struct store_prefetch_hint *) =
        hint->follow;
    uint32_t place =
        hint->by_rank ? (uint32_t)way->rank : leaf_seek(leaf, hint->bytes, sizeof hint->bytes);
    if (place >= leaf->count)
        return false;
    leaf_get(leaf, place, &found);
    if (found.overflow)
        return false;
    struct store_entry entry = {.key = found.key,
                                .key_len = found.key_len,
                                .value = {.bytes = found.value, .length = found.value_len}};
    hint->follow = NULL;
    return lead(store, &entry, hint) && begin(way);
}

static bool go_down(struct way *way, const struct format_node *node)
{
    const struct store_prefetch_hint *hint = &way->hint;
    uint32_t place = hint->by_rank ? inner_seek_rank(node, way->total, &way->rank)
                                   : inner_seek(node, hint->bytes, sizeof hint->bytes);
    way->total = inner_count(node, place);
    return approach(way, inner_page(node, place), node->level - 1u);
}

/* One step further, from a node that has been fetched. False: this was the last step. */
static bool go_on(const struct store *store, struct way *way)
{
    const struct store_prefetch_hint *hint = &way->hint;
    const struct format_node *node = (const void *)page_in_memory(&way->partition->file, way->page);
    if (!node || node->item.database != FORMAT_HIDDEN || !(node->item.flags & FORMAT_NODE) ||
        node->collection != way->collection || node->level != way->level || node->count == 0)
        return false;
    if (node->level > 0)
        return go_down(way, node);
    if (way->stage == TO_ENTRY)
        return follow(store, way, node);
    uint32_t place =
        hint->by_rank ? (uint32_t)way->rank : leaf_guess(node, hint->bytes, sizeof hint->bytes);
    if (place >= node->count)
        return false;
    leaf_prefetch(node, place);
    way->stage = TO_ENTRY;
    return hint->follow != NULL;
}

static bool take_step(const struct prefetch_locks *locks, struct way *way)
{
    prefetch_enter(locks, way->partition);
    bool goes_on = way->stage == AT_START ? find_root(locks->store, way) : go_on(locks->store, way);
    prefetch_leave(locks, way->partition);
    return goes_on;
}

static void prefetch_batch(struct store *store, const struct store_prefetch_hint *prefetch_hints,
                           uint32_t count)
{
    struct way ways[BATCH], *under_way[BATCH];
    struct prefetch_locks locks = {.store = store, .is_alone = store->worker_count == 1};
    for (uint32_t i = 0; i < count; i++) {
        struct way *way = under_way[i] = &ways[i];
        way->hint = prefetch_hints[i];
        way->partition = engine_partition(store, prefetch_hints[i].key->slot);
        way->stage = AT_START;
        prefetch_locks_add(&locks, way->partition);
    }
    prefetch_locks_each(&locks, pthread_mutex_lock);
    while (count > 0) {
        uint32_t left = 0;
        for (uint32_t i = 0; i < count; i++)
            if (take_step(&locks, under_way[i]))
                under_way[left++] = under_way[i];
        count = left;
    }
    prefetch_locks_each(&locks, pthread_mutex_unlock);
}

void store_prefetch_trees(struct store_worker *worker,
                          const struct store_prefetch_hint *prefetch_hints, uint32_t count)
{
    for (uint32_t done = 0; done < count; done += BATCH)
        prefetch_batch(worker->store, prefetch_hints + done,
                       count - done < BATCH ? count - done : BATCH);
}
