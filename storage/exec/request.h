/* Executing requests. Private to storage/. */
#ifndef VELLUM_STORE_REQUEST_H
#define VELLUM_STORE_REQUEST_H

#include "storage/txn/engine.h"

void request_run_ready(struct store_worker *worker);
struct store_txn *request_new_txn(struct store_worker *worker); /* NULL: out of memory */
void request_run_again(struct store_txn *txn);
/* An exclusive request takes the store lock, which it keeps when it releases the partitions'
 * locks. */
void request_hold_store_lock(struct store_txn *txn);

#endif
