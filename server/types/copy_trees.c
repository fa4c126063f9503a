#include "server/types/copy_trees.h"

#include <assert.h>
#include <string.h>

#include "server/exec/collector.h"
#include "server/types/string_walk.h"
#include "storage/collections.h"

/* The collected data: entries, each a header followed by its key and value. */
struct entry_head {
    uint64_t which, key_len, value_len;
};

/* ---- reading ---- */

static enum store_result collector_entry(struct call *call, struct collector *collector,
                                         struct store_cursor *cursor)
{
    struct store_entry entry;
    const char *value;
    enum store_result result = store_tree_get(cursor, &entry);
    if (result != STORE_OK)
        return result;
    value = entry.value.bytes;
    if (entry.value.large && !collector_has_room(collector, entry.value.length))
        return STORE_NO_MEMORY;
    if (entry.value.large)
        result = string_view(call, &entry.value, 0, entry.value.length, &value);
    if (result != STORE_OK)
        return result;
    struct entry_head head = {collector->source, entry.key_len, entry.value.length};
    resp_raw(&collector->out, (const char *)&head, sizeof head);
    resp_raw(&collector->out, entry.key, entry.key_len);
    resp_raw(&collector->out, value, entry.value.length);
    return collector->out.failed ? STORE_NO_MEMORY : STORE_OK;
}

/* Ranks in the first tree. */
struct range {
    uint64_t first, end;
};

static const struct range whole = {0, UINT64_MAX};

static enum store_result collector_tree(struct call *call, struct collector *collector,
                                        struct store_tree *tree, struct range range)
{
    struct store_cursor cursor;
    uint64_t count = store_tree_count(tree), end = count < range.end ? count : range.end;
    if (collector->at < range.first)
        collector->at = range.first;
    enum store_result result = store_tree_seek_rank(tree, collector->at, &cursor);
    while (result == STORE_OK && collector->at < end) {
        result = collector_entry(call, collector, &cursor);
        if (result != STORE_OK)
            break;
        collector->at++;
        if (collector_step_is_full(collector))
            return collector_step(call, collector);
        result = store_tree_next(&cursor);
    }
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

static enum store_result collector_trees(struct call *call, struct collector *collector,
                                         const struct store_key *from,
                                         const struct store_item *item, struct range range)
{
    for (; collector->source < item->trees; collector->source++, collector->at = 0) {
        struct store_tree *tree;
        enum store_result result = store_tree_open(call->txn, from, item, collector->source, &tree);
        if (result == STORE_OK)
            result = collector_tree(call, collector, tree, collector->source == 0 ? range : whole);
        if (result != STORE_OK)
            return result;
    }
    return STORE_OK;
}

/* ---- writing ---- */

/* Appends all collected entries to the ends of the trees. */
static enum store_result plant_in(struct store_tree *trees[STORE_TREES],
                                  const struct collector *collector)
{
    enum store_result result = STORE_OK;
    for (size_t at = 0; result == STORE_OK && at < collector->out.len;) {
        struct entry_head head;
        struct store_cursor cursor;
        memcpy(&head, collector->out.data + at, sizeof head);
        const char *key = collector->out.data + at + sizeof head;
        at += sizeof head + head.key_len + head.value_len;
        assert(at <= collector->out.len && head.which < STORE_TREES);
        struct store_tree *tree = trees[head.which];
        result = store_tree_seek_rank(tree, store_tree_count(tree), &cursor);
        if (result == STORE_OK)
            result =
                store_tree_insert(&cursor, key, head.key_len, key + head.key_len, head.value_len);
    }
    return result;
}

static enum store_result fill(struct call *call, struct collector *collector)
{
    struct store_tree *trees[STORE_TREES];
    enum store_result result = STORE_OK;
    for (uint32_t i = 0; i < collector->build.trees && result == STORE_OK; i++)
        result = store_bulk_load_tree(call->txn, collector->build.bulk_load, i, &trees[i]);
    return result == STORE_OK ? plant_in(trees, collector) : result;
}

/* Small collections are written in one transaction, without a bulk load. */
static enum store_result write_at_once(struct call *call, const struct collector *collector,
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
    return result == STORE_OK ? plant_in(trees, collector) : result;
}

static enum store_result copy_range(struct call *call, const struct store_key *from,
                                    const struct store_item *item, struct range range,
                                    const struct store_key *to)
{
    struct collector *collector = collector_get(call);
    if (collector == NULL)
        return STORE_NO_MEMORY;
    enum store_result result = collector_build(call, collector, to, item->trees, false, fill);
    if (result == STORE_OK)
        result = collector_trees(call, collector, from, item, range);
    if (result == STORE_OK)
        result = collector_build(call, collector, to, item->trees, true, fill);
    if (result != STORE_OK)
        return result;
    if (collector->build.bulk_load == NULL)
        result = write_at_once(call, collector, item, to);
    else
        result = store_put_bulk_load(call->txn, to, item->type, collector->build.bulk_load,
                                     item->expire_ms);
    if (result == STORE_OK && item->wake_ms != STORE_NO_EXPIRY)
        store_set_wake(call->txn, to, item->wake_ms);
    return result;
}

enum store_result copy_trees(struct call *call, const struct store_key *from,
                             const struct store_item *item, const struct store_key *to)
{
    return copy_range(call, from, item, whole, to);
}

enum store_result copy_trees_keep(struct call *call, const struct store_key *key, uint64_t first,
                                  uint64_t count, struct store_item *item)
{
    struct range range = {first, first + count};
    enum store_result result = store_get(call->txn, key, item);
    if (result == STORE_OK)
        result = copy_range(call, key, item, range, key);
    return result == STORE_OK ? store_get(call->txn, key, item) : result;
}
