/* Snapshots, see store.h. Private to storage/. */
#ifndef VELLUM_STORE_SNAPSHOT_H
#define VELLUM_STORE_SNAPSHOT_H

#include "storage/txn/engine.h"

/* Commits up to this number are seen by all open snapshots: what they gave up may be freed.
 * extents.lock is held. */
uint64_t snapshot_oldest(const struct store *store);

#endif
