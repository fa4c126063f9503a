/* Large values within a transaction. Private to storage/. */
#ifndef VELLUM_STORE_LARGE_VALUE_H
#define VELLUM_STORE_LARGE_VALUE_H

#include "storage/txn/engine.h"

/* A new, empty large write of the key; NULL: out of memory. */
struct large_write *large_value_put(struct store_txn *txn, const struct store_key *key,
                                    uint8_t type, int64_t expire_ms);
/* A large write that starts with the value of `item`, for a new name, a new expiry or patches;
 * NULL: out of memory. */
struct large_write *large_value_put_again(struct store_txn *txn, const struct store_key *key,
                                          const struct store_item *item, int64_t expire_ms);

#endif
