/* Reading pages into the cache. Private to storage/. */
#ifndef VELLUM_STORE_LOAD_H
#define VELLUM_STORE_LOAD_H

#include "storage/txn/engine.h"

/* Finds the page's valid frame. STORE_WAIT: it is being read, and txn waits for it, except as a
 * prefetch run. STORE_IO; STORE_NO_MEMORY. The page file's lock is held. A transaction that waited
 * for the frame keeps it pinned; otherwise adding another frame may evict it. */
STORE_MUST_CHECK enum store_result load_page(struct store_txn *txn, struct page_file *file,
                                             uint32_t page, uint32_t *frame);
/* Makes the pages in [page, page + count) valid and pinned. STORE_WAIT: txn waits for the absent
 * ones, which are being read. The page file's lock is held. */
STORE_MUST_CHECK enum store_result load_pages(struct store_txn *txn, struct page_file *file,
                                              uint32_t page, uint32_t count);
/* Starts reading the page if it is absent and a frame is available; no transaction waits for it. */
void load_prefetch(struct store_worker *worker, struct page_file *file, uint32_t page);
/* No frame is available: STORE_WAIT for the maintenance thread, or in the end STORE_NO_MEMORY. */
STORE_MUST_CHECK enum store_result load_no_frame(struct store_txn *txn);
/* From here on, pages that the run has seen may be evicted. The test build moves them to other
 * frames. */
void load_leave_pages(struct store_txn *txn);
void load_release_pins(struct store_txn *txn);
void load_release_extent_pins(struct store_txn *txn); /* of pages that have arrived */

#endif
