/* Writing large values. Private to storage/. */
#ifndef VELLUM_STORE_EXTENT_WRITE_H
#define VELLUM_STORE_EXTENT_WRITE_H

#include "storage/txn/engine.h"

/* Continues to write the large values of the transaction; STORE_OK when all are durable. */
STORE_MUST_CHECK enum store_result extent_write_all(struct store_txn *txn);
void extent_abandon(struct store_txn *txn);
/* Frees the extents and nodes that patches replaced. */
void extent_free_patched(struct store_txn *txn, uint64_t commit);

#endif
