/*
 * Overflow values: values of entries that are too large for a node. Each is an item of its own,
 * in the collection's home partition under the database id FORMAT_HIDDEN; its key is the
 * collection's id and a number. It is written like any other item, so it may be as large. Only
 * the tree refers to it.
 */
#include "storage/tree/tree_overflow.h"

#include <assert.h>
#include <string.h>

#include "storage/tree/tree_owner.h"

void tree_overflow_key(const struct store *store, struct store_key *key,
                       const struct format_overflow_key *bytes)
{
    *key = (struct store_key){
        .data = (const char *)bytes,
        .len = sizeof *bytes,
        .slot = bytes->slot,
        .db = STORE_HIDDEN_DB,
        .mode = STORE_EXCLUSIVE,
        .hash = format_hash(&store->superblock.secret, (const char *)bytes, sizeof *bytes)};
}

/* False: the name is damaged, since it is of another partition than the tree's. */
static bool key_of(const struct store_tree *tree, const char *name, struct store_key *key,
                   struct format_overflow_key *bytes)
{
    struct format_overflow overflow;
    memcpy(&overflow, name, sizeof overflow);
    *bytes = (struct format_overflow_key){.collection = tree->collection->roots->collection,
                                          .element = overflow.element,
                                          .slot = overflow.slot};
    tree_overflow_key(tree->txn->store, key, bytes);
    return key->slot >> tree->txn->store->slot_shift == tree->collection->roots->home;
}

enum store_result tree_put_overflow(struct store_tree *tree, const char *value, size_t len,
                                    struct format_overflow *name)
{
    struct store_txn *txn = tree->txn;
    struct collection *collection = tree->collection;
    struct overflow_write *write = store_alloc(txn, sizeof *write);
    if (!write)
        return STORE_NO_MEMORY;
    uint64_t element = tree_next_id(txn->store);
    uint32_t slots = 1u << txn->store->slot_shift;
    uint32_t slot = collection->roots->home * slots + (uint32_t)element % slots;
    assert(slot < STORE_SLOT_COUNT && slot >> txn->store->slot_shift == collection->roots->home);
    *name = (struct format_overflow){element, len, (uint16_t)slot, {0}};
    write->bytes = (struct format_overflow_key){
        .collection = collection->roots->collection, .element = element, .slot = (uint16_t)slot};
    tree_overflow_key(txn->store, &write->key, &write->bytes);
    write->next = collection->overflow;
    collection->overflow = write;
    tree->root->has_overflow = 1;
    return store_put(txn, &write->key, 0, value, len, STORE_NO_EXPIRY);
}

enum store_result tree_get_overflow(struct store_tree *tree, const char *name,
                                    struct store_item *item)
{
    struct store_key key;
    struct format_overflow_key bytes;
    if (!key_of(tree, name, &key, &bytes))
        return STORE_DAMAGED;
    enum store_result result = store_get(tree->txn, &key, item);
    return result == STORE_ABSENT ? STORE_DAMAGED : result;
}

enum store_result tree_delete_overflow(struct store_tree *tree, const char *name)
{
    struct format_overflow_key *bytes = store_alloc(tree->txn, sizeof *bytes);
    struct store_key key;
    if (!bytes)
        return STORE_NO_MEMORY;
    return key_of(tree, name, &key, bytes) ? store_delete(tree->txn, &key) : STORE_DAMAGED;
}
