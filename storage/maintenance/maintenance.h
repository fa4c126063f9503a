/* The maintenance thread. Private to storage/. */
#ifndef VELLUM_STORE_MAINTENANCE_H
#define VELLUM_STORE_MAINTENANCE_H

#include "storage/txn/engine.h"

STORE_MUST_CHECK int maintenance_start(struct store *store);
void maintenance_finish(struct store *store); /* final checkpoint; then the thread ends */
void maintenance_halt(struct store *store);   /* the thread ends without one */
/* The maintenance thread sleeps; a request wakes it. */
void maintenance_nap(struct store *store, int64_t ms);

#endif
