/*
 * Long keys. Two keys count as equal when both keyed hashes, the length and the hash slot are
 * equal: 128 bits that cannot be predicted without the store's secret. Replies and their timing
 * depend on the secret only through these hashes. Comparing bytes would read the whole key for each
 * access.
 *
 * Invariant: each item with FORMAT_LONG_KEY has runs of its own for its key. A write that replaces
 * an item under the same key takes them over; any other end of the item gives them up.
 */
#include "storage/value/long_key.h"

#include <assert.h>

#include "storage/value/lookup.h"
#include "storage/value/patches.h"
#include "storage/txn/databases.h"
#include "storage/value/extent.h"

static uint32_t divided(uint32_t value, uint32_t by)
{
    return (value + by - 1) / by;
}

/* The root that extent_write makes of bytes written at once. */
uint32_t long_key_room(uint32_t len)
{
    assert(len > FORMAT_KEY_INLINE);
    uint32_t count = divided(len, FORMAT_EXTENT_BYTES);
    if (count > FORMAT_ROOT_EXTENTS)
        count = divided(count, FORMAT_NODE_FANOUT);
    return (uint32_t)(sizeof(struct format_long_key) + sizeof(struct format_root) +
                      count * sizeof(struct format_extent));
}

uint64_t long_key_length(const struct format_item *item)
{
    uint64_t length = item->key_len;
    if (item->flags & FORMAT_LONG_KEY)
        memcpy(&length, format_key_root(item), sizeof length);
    return length;
}

bool long_key_matches(const struct store *store, const struct format_item *item,
                      const struct store_key *key)
{
    struct format_long_key head;
    if (item->flags & FORMAT_KEY_TREE)
        return false;
    assert(item->flags & FORMAT_LONG_KEY);
    memcpy(&head, format_key(item), sizeof head);
    return long_key_length(item) == key->len && head.hashes[0] == key->hash &&
           head.slot == key->slot &&
           head.hashes[1] == format_second_hash(&store->superblock.secret, key->data, key->len);
}

/* ---- writing ---- */

static enum store_result find_bytes(struct store_txn *txn, const struct write *write,
                                    struct large_write *bytes)
{
    uint32_t database = databases_committed(txn, write->place);
    struct found found = {0};
    enum store_result result = STORE_OK;
    if (database)
        result = txn_find(txn, &write->key, database, &found);
    if (result == STORE_DAMAGED) /* the damaged item stays where it is, with its bytes */
        return STORE_OK;
    if (result != STORE_OK || !found.item)
        return result;
    uint32_t length = format_key_root_length(found.item);
    struct format_root *root = store_alloc(txn, length);
    if (!root)
        return STORE_NO_MEMORY;
    bytes->base = memcpy(root, format_key_root(found.item), length);
    return STORE_OK;
}

enum store_result long_key_begin(struct store_txn *txn, struct write *write)
{
    const struct store_key *key = &write->key;
    assert(!write->long_key && key->len > FORMAT_KEY_INLINE);
    struct long_key *long_key = store_alloc(txn, sizeof *long_key);
    if (!long_key)
        return STORE_NO_MEMORY;
    *long_key = (struct long_key){.bytes = {.length = key->len}};
    enum store_result result = find_bytes(txn, write, &long_key->bytes);
    if (result != STORE_OK)
        return result;
    long_key->head = (struct format_long_key){
        .hashes = {key->hash,
                   format_second_hash(&txn->store->superblock.secret, key->data, key->len)},
        .slot = key->slot};
    if (!long_key->bytes.base &&
        !patches_lay(txn, &long_key->bytes.patches, 0, key->data, key->len))
        return STORE_NO_MEMORY;
    write->long_key = long_key;
    return STORE_OK;
}

char *long_key_put(char *to, const struct write *write)
{
    const struct long_key *long_key = write->long_key;
    const struct large_write *bytes = &long_key->bytes;
    assert(sizeof long_key->head + bytes->root_bytes == long_key_room(write->key.len));
    memcpy(to, &long_key->head, sizeof long_key->head);
    memcpy(to + sizeof long_key->head, bytes->root, bytes->root_bytes);
    return to + sizeof long_key->head + bytes->root_bytes;
}

/* ---- reading ---- */

enum store_result long_key_get(struct store_txn *txn, const struct format_item *item,
                               const char **data, uint32_t *len)
{
    *data = format_key(item);
    *len = (uint32_t)long_key_length(item);
    return item->flags & FORMAT_LONG_KEY ? extent_load_key(txn, item, data) : STORE_OK;
}
