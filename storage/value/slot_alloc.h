/* Reserving slots and their frames. Private to storage/. */
#ifndef VELLUM_STORE_SLOT_ALLOC_H
#define VELLUM_STORE_SLOT_ALLOC_H

#include "storage/txn/engine.h"

/* Reserves a slot of the class. STORE_WAIT: the transaction waits for the maintenance thread. */
STORE_MUST_CHECK enum store_result commit_take_slot(struct store_txn *txn, struct page_file *file,
                                                    uint32_t size_class, uint32_t *page,
                                                    uint32_t *slot);
/* The frame of a reserved slot's page; a page without other items need not be read. */
STORE_MUST_CHECK enum store_result commit_slot_frame(struct store_txn *txn, struct page_file *file,
                                                     uint32_t page, uint32_t slot, uint32_t *frame);
/* Makes the frame writable, which may change its number, and takes a reference. */
STORE_MUST_CHECK enum store_result commit_hold(struct store_txn *txn, struct page_file *file,
                                               uint32_t *frame);

#endif
