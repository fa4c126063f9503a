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
/* Frees what was allocated since the mark, to which nothing refers. */
void txn_memory_return(struct store_txn *txn, const struct store_mark *mark);
/* Frees all blocks but the first: a reused transaction rarely needs another. */
void txn_memory_release(struct store_txn *txn);
/* Whether there is memory to double the transaction's writes. */
bool txn_memory_for_writes(const struct store_txn *txn);
/* Counts what the transaction holds now. Changes are reported to the memory account when those of
 * all of the worker's transactions together are large. */
void txn_memory_note(struct store_txn *txn);

#endif
