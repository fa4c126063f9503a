/* Collections that are being made, see store.h and bulk_load.c. Private to storage/. */
#ifndef VELLUM_STORE_BULK_LOAD_H
#define VELLUM_STORE_BULK_LOAD_H

#include "storage/txn/engine.h"

/* The run has ended with a step of txn->building: leaves nothing to commit but that. */
void bulk_load_settle(struct store_txn *txn);
/* It is committed: the building is what the run has made of it. */
void bulk_load_committed(struct store_txn *txn);
/* A transaction is committed: those that keys name by it are theirs. */
void bulk_load_hand_over(struct store_txn *txn);

#endif
