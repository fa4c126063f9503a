/*
 * Reclaims segments from the classes that have emptied them. Private to storage/.
 */
#ifndef VELLUM_STORE_RECLAIM_H
#define VELLUM_STORE_RECLAIM_H

#include "storage/txn/engine.h"

/* For the maintenance thread: makes empty segments of this page file blank, so that any class
 * may take them. Returns how many; 0 also if it cannot be done now. */
uint32_t reclaim_segments(struct store *store, struct page_file *file);

#endif
