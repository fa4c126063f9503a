/*
 * Keys too long to be stored in their items. Private to storage/.
 *
 * Such an item has a struct format_long_key instead, and the key's bytes are in extents like those
 * of a large value: written, durably, before the commit that names them, and freed with the item.
 */
#ifndef VELLUM_STORE_LONG_KEY_H
#define VELLUM_STORE_LONG_KEY_H

#include <string.h>

#include "storage/txn/engine.h"

/* The data that a write puts into its item for a long key. */
struct long_key {
    struct format_long_key head;
    struct large_write bytes; /* `base` set: they are on disk already */
};

/* How many bytes a key of this length takes in its item. */
uint32_t long_key_room(uint32_t len);

static inline uint32_t long_key_in_item(const struct store_key *key)
{
    return key->len > FORMAT_KEY_INLINE ? long_key_room(key->len) : key->len;
}

/* Whether this is the key of the item, which is of the key's database, and has a long key, or is
 * the root of a tree of keys, which has none. */
bool long_key_matches(const struct store *store, const struct format_item *item,
                      const struct store_key *key);

static inline bool long_key_is_of(const struct store *store, const struct format_item *item,
                                  const struct store_key *key)
{
    if (__builtin_expect(item->flags & (FORMAT_LONG_KEY | FORMAT_KEY_TREE), 0))
        return long_key_matches(store, item, key);
    return item->key_len == key->len && memcmp(format_key(item), key->data, key->len) == 0;
}

/* Before the write's extents are written: finds out whether its key's bytes are on disk already. */
STORE_MUST_CHECK enum store_result long_key_begin(struct store_txn *txn, struct write *write);
/* Writes the key as it stands in the item, once its extents are written; returns the end. */
char *long_key_put(char *to, const struct write *write);

/* The key of an item found, long or not. STORE_WAIT: its bytes are being read. They are valid as
 * long as the item; those of a long key until extent_drop_keys or the end of the request. The
 * item's partition's lock is held. */
STORE_MUST_CHECK enum store_result long_key_get(struct store_txn *txn,
                                                const struct format_item *item, const char **data,
                                                uint32_t *len);

/* Length of the item's key. */
uint64_t long_key_length(const struct format_item *item);

#endif
