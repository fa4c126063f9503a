/* Snapshots, see store.h. Private to storage/. */
#ifndef VELLUM_STORE_SNAPSHOT_H
#define VELLUM_STORE_SNAPSHOT_H

#include "storage/txn/engine.h"

/* All open snapshots see the commits up to this number: runs that those gave up may be freed.
 * extents.lock is held. */
uint64_t snapshot_oldest(const struct store *store);

#endif
