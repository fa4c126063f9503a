/*
 * Reclaims segments from the classes that have emptied them. Private to storage/.
 */
#ifndef VELLUM_STORE_RECLAIM_H
#define VELLUM_STORE_RECLAIM_H

#include "storage/txn/engine.h"

/* For the maintenance thread: makes empty segments of this page file blank, so that any class
 * may take them. Returns how many. *later: there may be some, but journal or memory has no room
 * now. */
uint32_t reclaim_segments(struct store *store, struct page_file *file, bool *later);

#endif
