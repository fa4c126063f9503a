/*
 * Deleting items that are known by name alone: what has expired, what is evicted. Private to
 * storage/.
 */
#ifndef VELLUM_STORE_REMOVAL_H
#define VELLUM_STORE_REMOVAL_H

#include "storage/txn/engine.h"

/* A hint: the item is looked at again, under its key's claim, before it goes. */
struct removal_name {
    enum store_cause cause; /* BY_EXPIRY: if it has expired; BY_EVICTION: if it stands there */
    uint32_t slot, tag;
    uint32_t page, item_slot; /* BY_EVICTION */
    uint32_t size_class;      /* likewise: of runs, that its value must have one of; or 0 */
};

void removal_begin(struct store_worker *worker, const struct removal_name *name);
/* Whether the item's value, or its key, has a run of the class; its partition's lock is held. */
bool removal_gives_run(struct store *store, const struct format_item *item, uint32_t size_class);
uint32_t removal_count(const struct store_worker *worker, enum store_cause cause); /* under way */

#endif
