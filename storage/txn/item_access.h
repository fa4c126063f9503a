/* Records a transaction's reads and writes as accesses of items, see access_clock.h. Private to
 * storage/. */
#ifndef VELLUM_STORE_ITEM_ACCESS_H
#define VELLUM_STORE_ITEM_ACCESS_H

#include "storage/txn/engine.h"

/* The transaction has read this item: one access, however often it reads it. */
void item_use_touch(struct store_txn *txn, struct page_file *file, uint32_t page, uint32_t slot);
/* The transaction writes an item at new_page, replacing the one at old_page (0: none). */
void item_use_write(struct store_txn *txn, struct page_file *file, const struct write *write);

#endif
