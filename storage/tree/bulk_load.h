/* Collections under construction: see store.h and bulk_load.c. Private to storage/. */
#ifndef VELLUM_STORE_BULK_LOAD_H
#define VELLUM_STORE_BULK_LOAD_H

#include "storage/txn/engine.h"

/* The run has ended with a step of its bulk load: leaves only that step to commit. */
void bulk_load_settle(struct store_txn *txn);
/* The step is committed: the bulk load takes over the roots that the run has made. */
void bulk_load_committed(struct store_txn *txn);
/* A transaction is committed: the bulk loads that its keys now name belong to those keys. */
void bulk_load_hand_over(struct store_txn *txn);

#endif
