/* The keeper. Private to storage/. */
#ifndef VELLUM_STORE_MAINTENANCE_H
#define VELLUM_STORE_MAINTENANCE_H

#include "storage/txn/engine.h"

STORE_MUST_CHECK int keeper_start(struct store *store);
void keeper_finish(struct store *store);          /* final checkpoint, then the thread ends */
void keeper_halt(struct store *store);            /* the thread ends as it is */
void keeper_nap(struct store *store, int64_t ms); /* the keeper's thread; asking ends it */

#endif
