/* The changes that a transaction has buffered. Private to storage/. */
#ifndef VELLUM_STORE_WRITE_SET_H
#define VELLUM_STORE_WRITE_SET_H

#include "storage/txn/engine.h"

/* The transaction's own change of the key, or NULL. */
struct write *txn_find_write(struct store_txn *txn, const struct store_key *key);

/* The key's write, emptied if it existed; NULL: out of memory. */
struct write *write_set_add(struct store_txn *txn, const struct store_key *key,
                            enum write_kind kind);
/* At the commit: one more write, of no key, to be filled by the caller. NULL: out of memory. */
struct write *write_set_append(struct store_txn *txn);
/* Buffers a small value. */
STORE_MUST_CHECK enum store_result write_set_put(struct store_txn *txn, const struct store_key *key,
                                                 uint8_t type, const char *bytes, size_t len,
                                                 int64_t expire_ms);
/* Whether the value fits into its item. */
bool write_set_fits(const struct store_key *key, uint64_t len, int64_t expire_ms);
/* Copies the data that a write refers to if it may have been read from a page, which may be evicted
 * before the commit. False: out of memory. */
STORE_MUST_CHECK bool write_set_outlives_pages(struct store_txn *txn, const char **bytes,
                                               size_t len);

#endif
