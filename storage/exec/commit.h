/* Committing a transaction. Private to storage/. */
#ifndef VELLUM_STORE_COMMIT_H
#define VELLUM_STORE_COMMIT_H

#include "storage/txn/engine.h"

/* STORE_OK: committed and applied. STORE_WAIT: call it again when the waits are over. */
STORE_MUST_CHECK enum store_result commit(struct store_txn *txn);
void commit_abandon(struct store_txn *txn); /* gives back slots, extents and the long record */

#endif
