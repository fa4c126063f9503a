/*
 * Reclaims segments from the classes that have emptied them. Private to storage/.
 */
#ifndef VELLUM_STORE_RECLAIM_H
#define VELLUM_STORE_RECLAIM_H

#include "storage/txn/engine.h"

/* For the maintenance thread: makes empty segments of this page file blank, so that any class
 * may take them. Returns how many. only_spare: each class keeps room for its next items, so that a
 * class whose items come and go does not ask for the same segment again and again. *later: there
 * may be some, but journal or memory has no room now. */
uint32_t reclaim_segments(struct store *store, struct page_file *file, bool only_spare,
                          bool *later);

#endif
