/* The life of a transaction. Private to storage/. */
#ifndef VELLUM_STORE_TXN_H
#define VELLUM_STORE_TXN_H

#include "storage/txn/engine.h"

void txn_begin(struct store_txn *txn, struct store_request *request);
void txn_discard(struct store_txn *txn); /* drops writes, memory, value readers: before a rerun */
void txn_reset(struct store_txn *txn);   /* when it is finished: returns it to the free list */
void txn_free(struct store_txn *txn);

#endif
