#include "copy_trees.h"

#include <assert.h>
#include <string.h>

#include "gather.h"

/* What is gathered: for each tree its entries, each a head with its key and value behind it. */
struct entry_head {
    uint64_t key_len, value_len;
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
    if (entry.value.large)
        result = store_load(call->txn, &entry.value, &value);
    if (result != STORE_OK)
        return result;
    struct entry_head head = {entry.key_len, entry.value.length};
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
        resp_raw(&gather->out, (const char *)&(struct entry_head){UINT64_MAX, 0},
                 sizeof(struct entry_head)); /* the end of this tree */
    }
    return gather->out.failed ? STORE_NO_MEMORY : STORE_OK;
}

/* ---- writing ---- */

/* All entries up to the tree's end; *at moves behind it. */
static enum store_result plant_tree(struct store_tree *tree, const struct gather *gather,
                                    size_t *at)
{
    struct entry_head head;
    enum store_result result = STORE_OK;
    while (result == STORE_OK) {
        struct store_cursor cursor;
        memcpy(&head, gather->out.data + *at, sizeof head);
        *at += sizeof head;
        if (head.key_len == UINT64_MAX)
            break;
        const char *key = gather->out.data + *at;
        *at += head.key_len + head.value_len;
        assert(*at <= gather->out.len);
        result = store_tree_seek_rank(tree, store_tree_count(tree), &cursor);
        if (result == STORE_OK)
            result =
                store_tree_insert(&cursor, key, head.key_len, key + head.key_len, head.value_len);
    }
    return result;
}

enum store_result copy_trees(struct call *call, const struct store_key *from,
                             const struct store_item *item, const struct store_key *to)
{
    struct gather *gather = gather_get(call);
    size_t at = 0;
    if (gather == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = gather_trees(call, gather, from, item);
    if (result == STORE_OK)
        result = store_tree_create(call->txn, to, item->type, item->trees, item->expire_ms);
    for (uint32_t which = 0; which < item->trees && result == STORE_OK; which++) {
        struct store_item copy;
        struct store_tree *tree;
        result = store_get(call->txn, to, &copy);
        if (result == STORE_OK)
            result = store_tree_open(call->txn, to, &copy, which, &tree);
        if (result == STORE_OK)
            result = plant_tree(tree, gather, &at);
    }
    return result;
}
