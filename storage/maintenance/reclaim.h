/*
 * Segments back from the classes that have emptied them. Private to storage/.
 */
#ifndef VELLUM_STORE_RECLAIM_H
#define VELLUM_STORE_RECLAIM_H

#include "storage/txn/engine.h"

/* The maintenance thread's: makes segments of this space blank again that hold nothing, so that any
 * class may take them. How many; 0 also if that cannot be done now. */
uint32_t reclaim_segments(struct store *store, struct page_file *file);

#endif
