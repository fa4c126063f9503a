/* The space of flushed databases. Private to storage/. */
#ifndef VELLUM_STORE_FLUSH_H
#define VELLUM_STORE_FLUSH_H

#include "storage/txn/engine.h"

/* Frees the space of the `dead` keys that this transaction flushed; all partitions' locks are
 * held. */
void databases_reclaim(struct store_txn *txn, uint64_t dead, uint64_t commit);

#endif
