/* The maintenance thread. Private to storage/. */
#ifndef VELLUM_STORE_MAINTENANCE_H
#define VELLUM_STORE_MAINTENANCE_H

#include "storage/txn/engine.h"

STORE_MUST_CHECK int maintenance_start(struct store *store);
/* Ends the thread, makes the final checkpoint and saves the index. */
void maintenance_finish(struct store *store);
void maintenance_halt(struct store *store); /* only ends the thread */
/* The maintenance thread sleeps; only maintenance_halt wakes it early. */
void maintenance_nap(struct store *store, int64_t ms);

#endif
