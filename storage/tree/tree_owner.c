/*
 * Items that have trees, within a transaction: opening and creating them, writing them again when
 * their roots have changed, renaming them and changing their expiry.
 *
 * Invariants
 * 1. There is one struct collection per collection id. The transaction reads and changes the
 *    collection through its `roots`, and every write of its item refers to them as the bytes to
 *    write.
 * 2. The lock of the collection's home partition is held from its opening on. If it was not held,
 *    the run is discarded and repeated with that lock among its own.
 */
#include "storage/tree/tree_owner.h"

#include <assert.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/tree/tree_edit.h"
#include "storage/tree/tree_overflow.h"
#include "storage/txn/wait.h"
#include "storage/value/write_set.h"

#define EPOCH_SHIFT 40

uint64_t tree_next_id(struct store *store)
{
    uint64_t number = atomic_fetch_add_explicit(&store->tree_ids, 1, memory_order_relaxed);
    return store->superblock.latest.epoch << EPOCH_SHIFT | number;
}

/* A counter separate from the ids. If an epoch uses up its range, the numbers run into those of the
 * next: entries of a later start are then mixed with these, which does no harm. */
uint64_t store_next_sequence(struct store *store)
{
    uint64_t number = atomic_fetch_add_explicit(&store->sequences, 1, memory_order_relaxed);
    return (store->superblock.latest.epoch << EPOCH_SHIFT) + number;
}

struct collection *tree_known(const struct store_txn *txn, uint64_t id)
{
    struct collection *collection = txn->trees.collections;
    while (collection && collection->roots->collection != id)
        collection = collection->next;
    return collection;
}

static struct collection *add(struct store_txn *txn, const struct store_key *key, uint32_t length)
{
    struct collection *collection = store_alloc(txn, sizeof *collection);
    struct format_trees *roots = store_alloc(txn, length);
    if (!collection || !roots)
        return NULL;
    *collection = (struct collection){
        .roots = roots, .length = length, .key = *key, .wake_ms = STORE_NO_EXPIRY};
    for (uint32_t i = 0; i < STORE_TREES; i++)
        collection->trees[i] =
            (struct store_tree){.txn = txn, .collection = collection, .root = &roots->trees[i]};
    collection->next = txn->trees.collections;
    txn->trees.collections = collection;
    return collection;
}

struct collection *tree_add_known(struct store_txn *txn, const struct format_trees *roots,
                                  uint32_t length)
{
    static const struct store_key no_key;
    assert(!tree_known(txn, roots->collection));
    struct collection *collection = add(txn, &no_key, length);
    if (collection)
        memcpy(collection->roots, roots, length);
    return collection;
}

enum store_result txn_put_trees(struct store_txn *txn, const struct store_key *key,
                                struct collection *collection, uint8_t type, int64_t expire_ms)
{
    const char *roots = (const char *)collection->roots;
    enum store_result result = write_set_put(txn, key, type, roots, collection->length, expire_ms);
    if (result != STORE_OK)
        return result;
    struct write *write = txn_find_write(txn, key);
    assert(write && write->bytes == roots);
    write->trees = collection;
    write->wake_ms = collection->wake_ms;
    collection->key = *key;
    collection->is_written = true;
    return STORE_OK;
}

void store_set_wake(struct store_txn *txn, const struct store_key *key, int64_t wake_ms)
{
    struct write *write = txn_find_write(txn, key);
    assert(write && write->kind == WRITE_PUT && !write->large);
    write->wake_ms = wake_ms;
    if (write->trees)
        write->trees->wake_ms = wake_ms;
}

enum store_result store_tree_create(struct store_txn *txn, const struct store_key *key,
                                    uint8_t type, uint32_t count, int64_t expire_ms)
{
    assert(count > 0 && count <= STORE_TREES);
    uint32_t length = (uint32_t)(sizeof(struct format_trees) + count * sizeof(struct format_tree));
    struct collection *collection = add(txn, key, length);
    if (!collection)
        return STORE_NO_MEMORY;
    memset(collection->roots, 0, length);
    collection->roots->collection = tree_next_id(txn->store);
    collection->roots->home = engine_partition(txn->store, key->slot)->file.id;
    collection->roots->count = (uint8_t)count;
    return txn_put_trees(txn, key, collection, type, expire_ms);
}

static struct collection *add_found(struct store_txn *txn, const struct store_key *key,
                                    const struct store_item *item)
{
    const struct format_item *found = item->origin;
    assert(item->trees > 0 && item->version != 0);
    struct collection *collection = add(txn, key, found->payload_len);
    if (!collection)
        return NULL;
    memcpy(collection->roots, format_payload(found), found->payload_len);
    collection->type = item->type;
    collection->expire_ms = item->expire_ms;
    collection->wake_ms = item->wake_ms;
    return collection;
}

enum store_result tree_find(struct store_txn *txn, const struct store_key *key,
                            const struct store_item *item, struct collection **result)
{
    struct collection *collection;
    if (item->version == 0) {
        collection = (struct collection *)item->origin;
        assert(collection->is_written);
    } else {
        const struct format_item *found = item->origin;
        struct format_trees roots;
        memcpy(&roots, format_payload(found), sizeof roots);
        if (roots.home >= txn->store->partition_count || roots.count > STORE_TREES)
            return STORE_DAMAGED;
        collection = tree_known(txn, roots.collection);
        if (!collection)
            collection = add_found(txn, key, item);
        if (!collection)
            return STORE_NO_MEMORY;
    }
    *result = collection;
    return request_lock_too(txn, collection->roots->home);
}

enum store_result store_tree_open(struct store_txn *txn, const struct store_key *key,
                                  const struct store_item *item, uint32_t which,
                                  struct store_tree **tree)
{
    struct collection *collection;
    if (which >= item->trees) /* the item is another kind of collection than its type says */
        return STORE_DAMAGED;
    enum store_result result = tree_find(txn, key, item, &collection);
    if (result == STORE_OK)
        *tree = &collection->trees[which];
    return result;
}

enum store_result store_tree_add(struct store_txn *txn, const struct store_key *key,
                                 const struct store_item *item)
{
    struct collection *collection;
    enum store_result result = tree_find(txn, key, item, &collection);
    if (result != STORE_OK)
        return result;
    uint32_t length = collection->length + (uint32_t)sizeof(struct format_tree);
    struct format_trees *roots = store_alloc(txn, length);
    if (!roots)
        return STORE_NO_MEMORY;
    assert(collection->roots->count < STORE_TREES && !collection->bulk_load);
    memcpy(roots, collection->roots, collection->length);
    memset(&roots->trees[roots->count++], 0, sizeof *roots->trees);
    collection->roots = roots;
    collection->length = length;
    for (uint32_t i = 0; i < STORE_TREES; i++)
        collection->trees[i].root = &roots->trees[i];
    return txn_put_trees(txn, key, collection, item->type, item->expire_ms);
}

enum store_result store_tree_set_type(struct store_txn *txn, const struct store_key *key,
                                      const struct store_item *item, uint8_t type)
{
    struct collection *collection;
    enum store_result result = tree_find(txn, key, item, &collection);
    return result == STORE_OK ? txn_put_trees(txn, key, collection, type, item->expire_ms) : result;
}

enum store_result tree_touch(struct store_tree *tree)
{
    struct collection *collection = tree->collection;
    if (collection->is_written)
        return STORE_OK;
    return txn_put_trees(tree->txn, &collection->key, collection, collection->type,
                         collection->expire_ms);
}

/* Drops each collection that no write of the transaction names: nothing of it needs to be
 * committed. */
enum store_result tree_settle(struct store_txn *txn)
{
    if (txn->trees.is_settled)
        return STORE_OK;
    for (struct collection *c = txn->trees.collections; c; c = c->next)
        c->is_given_up = true;
    for (uint32_t i = 0; i < txn->write_count; i++)
        if (txn->writes[i].kind == WRITE_PUT && txn->writes[i].trees)
            txn->writes[i].trees->is_given_up = false;
    enum store_result result = STORE_OK;
    for (struct collection *c = txn->trees.collections; c && result == STORE_OK; c = c->next)
        for (struct overflow_write *o = c->is_given_up ? c->overflow : NULL; o; o = o->next)
            if (store_delete(txn, &o->key) != STORE_OK)
                result = STORE_NO_MEMORY;
    tree_settle_edits(txn);
    txn->trees.is_settled = true;
    return result;
}

bool tree_is_kept(const struct store_txn *txn, uint64_t collection)
{
    const struct collection *found = tree_known(txn, collection);
    return found && !found->is_given_up;
}
