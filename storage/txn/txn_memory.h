/* A transaction's own memory. Private to storage/. */
#ifndef VELLUM_STORE_TXN_MEMORY_H
#define VELLUM_STORE_TXN_MEMORY_H

#include "storage/txn/engine.h"

#define WRITE_CELLS 4u /* cells of the table of writes per write */

/* From now on store_alloc takes memory from `blocks`, NULL to begin with; returns the blocks that
 * it used before. For memory that only a part of a run needs, so that it can be freed on its
 * own. */
struct memory_block *txn_memory_swap(struct store_txn *txn, struct memory_block *blocks);
void txn_memory_free(struct store_txn *txn, struct memory_block *blocks);
/* Keeps the first block: a reused transaction rarely needs another. */
void txn_memory_release(struct store_txn *txn);
/* Reports the change of the transaction's memory to the memory account, if it is large. */
void txn_memory_note(struct store_txn *txn);

#endif
