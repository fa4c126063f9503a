/*
 * Deleting expired and evicted items, which are known only by their index entry (slot and tag).
 * Private to storage/.
 */
#ifndef VELLUM_STORE_REMOVAL_H
#define VELLUM_STORE_REMOVAL_H

#include "storage/txn/engine.h"

/* A hint: the item is checked again, under its key's lock, before it is deleted. */
struct removal_name {
    enum store_cause cause; /* BY_EXPIRY: deleted if expired; BY_EVICTION: if still in this slot */
    uint32_t slot, tag;
    uint32_t page, item_slot; /* BY_EVICTION */
    uint32_t size_class;      /* likewise: the class of a run that its value must have; or 0 */
};

void removal_begin(struct store_worker *worker, const struct removal_name *name);
/* Whether the item's value, or its key, has a run of this size class; its partition's lock is
 * held. */
bool removal_gives_run(struct store *store, const struct format_item *item, uint32_t size_class);
/* Continues with a key of which more parts are due. False: there is none. */
bool removal_go_on(struct store_worker *worker);
uint32_t removal_count(const struct store_worker *worker, enum store_cause cause); /* in progress */

#endif
