/* Looking keys up. Private to storage/. */
#ifndef VELLUM_STORE_LOOKUP_H
#define VELLUM_STORE_LOOKUP_H

#include "storage/txn/engine.h"

struct found {
    const struct format_item *item; /* NULL: absent */
    uint32_t page, slot, frame;
};
/* Looks the key up in the committed database of this id and verifies it on the page. Expired items
 * are found too. */
STORE_MUST_CHECK enum store_result txn_find(struct store_txn *txn, const struct store_key *key,
                                            uint32_t database, struct found *found);
/* The value that the transaction itself has put; NULL: deleted or expired. */
const struct store_item *txn_describe_write(const struct store_txn *txn, const struct write *write,
                                            struct store_item *item);
/* A committed item, as run functions and observers see it; valid as long as `found`. */
void txn_describe(const struct format_item *found, struct store_item *item);

#endif
