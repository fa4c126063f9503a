#include "server/types/copy_trees.h"

#include <assert.h>
#include <string.h>

#include "server/exec/collector.h"
#include "server/types/string_walk.h"

/* What is gathered: entries, each a head with its key and value behind it. */
struct entry_head {
    uint64_t which, key_len, value_len;
};

/* ---- reading ---- */

static enum store_result gather_entry(struct call *call, struct gather *gather,
                                      struct store_cursor *cursor)
{
    struct store_entry entry;
    const char *value;
    enum store_result result = store_tree_get(cursor, &entry);
    if (result != STORE_OK)
        return result;
    value = entry.value.bytes;
    if (entry.value.large && !gather_has_room(gather, entry.value.length))
        return STORE_NO_MEMORY;
    if (entry.value.large)
        result = string_view(call, &entry.value, 0, entry.value.length, &value);
    if (result != STORE_OK)
        return result;
    struct entry_head head = {gather->source, entry.key_len, entry.value.length};
    resp_raw(&gather->out, (const char *)&head, sizeof head);
    resp_raw(&gather->out, entry.key, entry.key_len);
    resp_raw(&gather->out, value, entry.value.length);
    return gather->out.failed ? STORE_NO_MEMORY : STORE_OK;
}

static enum store_result gather_tree(struct call *call, struct gather *gather,
                                     struct store_tree *tree)
{
    struct store_cursor cursor;
    uint64_t count = store_tree_count(tree);
    enum store_result result = store_tree_seek_rank(tree, gather->at, &cursor);
    while (result == STORE_OK && gather->at < count) {
        result = gather_entry(call, gather, &cursor);
        if (result != STORE_OK)
            break;
        gather->at++;
        if (gather_step_is_full(gather))
            return gather_step(call, gather);
        result = store_tree_next(&cursor);
    }
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

static enum store_result gather_trees(struct call *call, struct gather *gather,
                                      const struct store_key *from, const struct store_item *item)
{
    for (; gather->source < item->trees; gather->source++, gather->at = 0) {
        struct store_tree *tree;
        enum store_result result = store_tree_open(call->txn, from, item, gather->source, &tree);
        if (result == STORE_OK)
            result = gather_tree(call, gather, tree);
        if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

/* ---- writing ---- */

/* All that is gathered, at the ends of the trees. */
static enum store_result plant_in(struct store_tree *trees[STORE_TREES],
                                  const struct gather *gather)
{
    enum store_result result = STORE_OK;
    for (size_t at = 0; result == STORE_OK && at < gather->out.len;) {
        struct entry_head head;
        struct store_cursor cursor;
        memcpy(&head, gather->out.data + at, sizeof head);
        const char *key = gather->out.data + at + sizeof head;
        at += sizeof head + head.key_len + head.value_len;
        assert(at <= gather->out.len && head.which < STORE_TREES);
        struct store_tree *tree = trees[head.which];
        result = store_tree_seek_rank(tree, store_tree_count(tree), &cursor);
        if (result == STORE_OK)
            result =
                store_tree_insert(&cursor, key, head.key_len, key + head.key_len, head.value_len);
    }
    return result;
}

static enum store_result plant(struct call *call, struct gather *gather)
{
    struct store_tree *trees[STORE_TREES];
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < gather->build.trees && result == STORE_OK; i++)
        result = store_building_tree(call->txn, gather->build.building, i, &trees[i]);
    return result == STORE_OK ? plant_in(trees, gather) : result;
}

/* What is not much is written in the transaction itself. */
static enum store_result write_at_once(struct call *call, const struct gather *gather,
                                       const struct store_item *item, const struct store_key *to)
{
    struct store_item copy;
    struct store_tree *trees[STORE_TREES];
    enum store_result result =
        store_tree_create(call->txn, to, item->type, item->trees, item->expire_ms);
    if (result == STORE_OK)
        result = store_get(call->txn, to, &copy);
    for (uint32_t i = 0; i < item->trees && result == STORE_OK; i++)
        result = store_tree_open(call->txn, to, &copy, i, &trees[i]);
    return result == STORE_OK ? plant_in(trees, gather) : result;
}

enum store_result copy_trees(struct call *call, const struct store_key *from,
                             const struct store_item *item, const struct store_key *to)
{
    struct gather *gather = gather_get(call);
    if (gather == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = gather_build(call, gather, to, item->trees, false, plant);
    if (result == STORE_OK)
        result = gather_trees(call, gather, from, item);
    if (result == STORE_OK)
        result = gather_build(call, gather, to, item->trees, true, plant);
    if (result != STORE_OK)
        return result;
    if (gather->build.building == NULL)
        return write_at_once(call, gather, item, to);
    return store_put_building(call->txn, to, item->type, gather->build.building, item->expire_ms);
}
