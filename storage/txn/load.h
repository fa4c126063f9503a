/* Reading pages into the cache. Private to storage/. */
#ifndef VELLUM_STORE_LOAD_H
#define VELLUM_STORE_LOAD_H

#include "storage/txn/engine.h"

/* Returns the page's valid frame: STORE_OK; STORE_WAIT after starting to read it, with txn waiting
 * for it; STORE_IO. The page file's lock is held. The frame stays while the lock is held, and if
 * the transaction waits, until it is finished. */
STORE_MUST_CHECK enum store_result load_page(struct store_txn *txn, struct page_file *file,
                                             uint32_t page, uint32_t *frame);
/* Starts reading the absent pages in [page, page + count); txn may be NULL (prefetch). */
STORE_MUST_CHECK enum store_result load_pages(struct store_txn *txn, struct page_file *file,
                                              uint32_t page, uint32_t count);
void load_prefetch(struct store_worker *worker, struct page_file *file, uint32_t page);
/* No frame is available: STORE_WAIT for the maintenance thread, or in the end STORE_NO_MEMORY. */
STORE_MUST_CHECK enum store_result load_no_frame(struct store_txn *txn);
/* From here on, page contents that the run has seen may be gone. The test build makes sure they
 * are. */
void load_leave_pages(struct store_txn *txn);
void load_release_pins(struct store_txn *txn);
void load_release_extent_pins(struct store_txn *txn); /* of pages that have arrived */

#endif
