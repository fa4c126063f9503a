/* Checking the bytes of a slot. Private to storage/. */
#ifndef VELLUM_STORE_VERIFY_H
#define VELLUM_STORE_VERIFY_H

#include "storage/txn/engine.h"

enum slot_state {
    SLOT_BLANK,
    SLOT_ITEM,
    SLOT_REMAINS, /* of a dropped database: possibly torn, which is no damage */
    SLOT_DAMAGED,
};
enum slot_state verify_slot(const struct page_file *file, uint32_t page, uint32_t slot,
                            const struct format_item *item);

#endif
