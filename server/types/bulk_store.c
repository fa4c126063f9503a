#include "server/types/bulk_store.h"

#include <assert.h>

#include "server/types/hash.h"
#include "server/types/list.h"
#include "server/types/members_expiry.h"
#include "server/types/set.h"
#include "server/types/zset.h"

#define STEP_BYTES (256 * 1024) /* smaller collections are written at once */
#define SPREAD                                                                                     \
    512 /* elements per step: each may change a page of its own, and all those must fit in the     \
           cache */

/* The end of the step that begins at `at`. */
static size_t step_end(const struct bulk_store_parts *parts, size_t at)
{
    size_t width = parts->type == TYPE_HASH ? 2 : 1;
    size_t beside = parts->type == TYPE_LIST ? sizeof *parts->slices : STEP_BYTES / SPREAD;
    for (size_t bytes = 0; at < parts->count && bytes < STEP_BYTES; at += width, bytes += beside)
        for (size_t i = 0; i < width; i++)
            bytes += parts->slices[at + i].len;
    return at;
}

bool bulk_store_is_large(const struct bulk_store_parts *parts)
{
    return step_end(parts, 0) < parts->count;
}

/* ---- filling in the slices from `at` to `end` ---- */

static enum store_result tree_of(struct call *call, struct bulk_store *bulk_store, uint32_t which,
                                 struct store_tree **tree)
{
    return store_bulk_load_tree(call->txn, bulk_store->bulk_load, which, tree);
}

static enum store_result fill_list(struct call *call, struct bulk_store *bulk_store,
                                   const struct bulk_store_parts *parts, size_t end)
{
    struct store_tree *tree;
    struct store_cursor cursor;
    enum store_result result = tree_of(call, bulk_store, 0, &tree);
    if (result == STORE_OK)
        result = store_tree_seek_rank(tree, store_tree_count(tree), &cursor);
    for (size_t i = bulk_store->at; i < end && result == STORE_OK; i++) {
        result = store_tree_insert(&cursor, "", 0, parts->slices[i].data, parts->slices[i].len);
        if (result == STORE_OK)
            result = store_tree_next(&cursor);
    }
    return result;
}

static enum store_result fill_members(struct call *call, struct bulk_store *bulk_store,
                                      const struct bulk_store_parts *parts, size_t end,
                                      const struct store_key *key)
{
    const struct resp_slice *slices = parts->slices;
    bool is_hash = parts->type == TYPE_HASH, added = true;
    struct members members;
    members_new(&members, key, parts->type);
    if (bulk_store->at > 0)
        members.type = bulk_store->type;
    else if (is_hash)
        hash_expect(call, &members, slices, parts->count);
    else
        set_expect(call, &members, slices[0], parts->count);
    enum store_result result = tree_of(call, bulk_store, 0, &members.tree);
    if (result == STORE_OK && parts->expiries != NULL) {
        members.type |= ITEM_TIMED;
        result = tree_of(call, bulk_store, 1, &members.order);
    }
    for (size_t i = bulk_store->at; i < end && result == STORE_OK; i += is_hash ? 2 : 1) {
        result = is_hash ? hash_set(call, &members, slices[i], slices[i + 1], &added)
                         : set_add(call, &members, slices[i], &added);
        assert(result != STORE_OK || added);
        if (result == STORE_OK && parts->expiries != NULL &&
            parts->expiries[i / 2] != STORE_NO_EXPIRY)
            result = members_set_expiry(call, &members, slices[i], parts->expiries[i / 2]);
    }
    bulk_store->filled_type = members.type;
    return result;
}

static enum store_result fill_zset(struct call *call, struct bulk_store *bulk_store,
                                   const struct bulk_store_parts *parts, size_t end,
                                   const struct store_key *key)
{
    struct zset zset = zset_new(call, key, STORE_NO_EXPIRY);
    if (bulk_store->at > 0)
        zset.type = bulk_store->type;
    else
        zset_expect(&zset, parts->count, parts->slices[0].len);
    enum store_result result = tree_of(call, bulk_store, 0, &zset.order);
    if (result == STORE_OK)
        result = tree_of(call, bulk_store, 1, &zset.by_member);
    for (size_t i = bulk_store->at; i < end && result == STORE_OK; i++) {
        struct zset_pair pair = {parts->slices[i], parts->scores[i]};
        result = zset_add(&zset, &pair);
    }
    bulk_store->filled_type = zset.type;
    return result;
}

static enum store_result fill(struct call *call, struct bulk_store *bulk_store,
                              const struct bulk_store_parts *parts, const struct store_key *key)
{
    size_t end = step_end(parts, bulk_store->at);
    bulk_store->filled_to = end;
    if (parts->type == TYPE_LIST)
        return fill_list(call, bulk_store, parts, end);
    if (parts->type == TYPE_ZSET)
        return fill_zset(call, bulk_store, parts, end, key);
    return fill_members(call, bulk_store, parts, end, key);
}

/* ---- steps ---- */

static uint32_t tree_count(const struct bulk_store_parts *parts)
{
    return parts->type == TYPE_ZSET || parts->expiries != NULL ? 2 : 1;
}

static int64_t earliest(const struct bulk_store_parts *parts)
{
    int64_t found = STORE_NO_EXPIRY;
    for (size_t i = 0; parts->expiries != NULL && i < parts->count / 2; i++)
        if (parts->expiries[i] != STORE_NO_EXPIRY &&
            (found == STORE_NO_EXPIRY || parts->expiries[i] < found))
            found = parts->expiries[i];
    return found;
}

/* If the previous run's step has been committed, continues after it. */
static void note_steps(struct bulk_store *bulk_store)
{
    if (store_bulk_load_steps(bulk_store->bulk_load) == bulk_store->steps)
        return;
    bulk_store->steps = store_bulk_load_steps(bulk_store->bulk_load);
    bulk_store->at = bulk_store->filled_to;
    bulk_store->type = bulk_store->filled_type;
}

enum store_result bulk_store_go_on(struct call *call, struct bulk_store *bulk_store,
                                   const struct store_key *key,
                                   const struct bulk_store_parts *parts)
{
    enum store_result result = STORE_OK;
    if (bulk_store->bulk_load == NULL)
        result = store_bulk_load_begin(call->txn, key, tree_count(parts), &bulk_store->bulk_load);
    if (result != STORE_OK)
        return result;
    note_steps(bulk_store);
    call->progress_lasts = bulk_store->at == parts->count;
    if (call->progress_lasts)
        return STORE_OK;
    result = fill(call, bulk_store, parts, key);
    return result == STORE_OK ? store_bulk_load_step(call->txn, bulk_store->bulk_load) : result;
}

enum store_result bulk_store_put(struct call *call, struct bulk_store *bulk_store,
                                 const struct store_key *key, const struct bulk_store_parts *parts)
{
    enum item_type type = parts->type;
    int64_t wake_ms = earliest(parts);
    uint8_t written = type == TYPE_LIST ? (uint8_t)type : bulk_store->type;
    struct list list;
    enum store_result result =
        store_put_bulk_load(call->txn, key, written, bulk_store->bulk_load, STORE_NO_EXPIRY);
    if (result == STORE_OK && wake_ms != STORE_NO_EXPIRY)
        store_set_wake(call->txn, key, wake_ms);
    if (result != STORE_OK || type != TYPE_LIST)
        return result;
    result = list_find(call, key, &list);
    return result == STORE_OK ? list_save(&list) : result; /* this chooses its encoding */
}

void bulk_store_free(struct bulk_store *bulk_store)
{
    if (bulk_store->bulk_load != NULL)
        store_bulk_load_end(bulk_store->bulk_load);
    bulk_store->bulk_load = NULL;
}
