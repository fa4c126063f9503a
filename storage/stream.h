/* Streams, see store.h. Private to storage/. */
#ifndef VELLUM_STORE_STREAM_H
#define VELLUM_STORE_STREAM_H

#include "engine.h"

/* Commits up to this number are seen by all open streams: what they gave up may be freed.
 * extents.lock is held. */
uint64_t stream_oldest(const struct store *store);

#endif
