/* A transaction's own memory. Private to storage/. */
#ifndef VELLUM_STORE_TXN_MEMORY_H
#define VELLUM_STORE_TXN_MEMORY_H

#include "storage/txn/engine.h"

#define WRITE_CELLS 4u /* of the table of writes, for each */

/* What store_alloc gives from now on comes from `blocks`, NULL to begin with; returns those that it
 * came from before. For what is needed for a part of a run only: then it is freed by itself. */
struct memory_block *txn_memory_swap(struct store_txn *txn, struct memory_block *blocks);
void txn_memory_free(struct store_txn *txn, struct memory_block *blocks);
/* Keeps the first block: a transaction that is used again rarely needs another. */
void txn_memory_release(struct store_txn *txn);
/* Accounts for what has changed of the memory that the transaction takes, if it is much. */
void txn_memory_note(struct store_txn *txn);

#endif
