/*
 * Large collections made of elements that are all in memory, in steps: each commits a part to a
 * building that no key names yet, so that their pages need not be in memory together.
 *
 *     while bulk_store_go_on says anything but STORE_OK: pass it up; then bulk_store_put.
 *
 * Invariant: between runs the building has the elements up to `at`.
 */
#ifndef VELLUM_BULK_STORE_H
#define VELLUM_BULK_STORE_H

#include "server/core/command.h"

/* Of a hash fields and values in turn; no member twice. They live as long as the request. */
struct bulk_store_parts {
    enum item_type type;
    const struct resp_slice *slices;
    const double *scores; /* of a sorted set */
    size_t count;         /* of slices */
};

struct bulk_store {
    struct store_bulk_load *bulk_load; /* NULL: not begun */
    uint64_t steps;                    /* that are known to be committed */
    size_t at, filled_to;              /* slices; as the last run's planting has left it */
    uint8_t type, filled_type;         /* the item's */
};

/* Whether they are so many that they are not to be written in one run. */
bool bulk_store_is_large(const struct bulk_store_parts *parts);

/* STORE_OK: all parts are in the building. Near the key, which the request holds. */
STORE_MUST_CHECK enum store_result bulk_store_go_on(struct call *call,
                                                    struct bulk_store *bulk_store,
                                                    const struct store_key *key,
                                                    const struct bulk_store_parts *parts);

/* Then: gives it to the key, over what is there, and tells nobody. */
STORE_MUST_CHECK enum store_result bulk_store_put(struct call *call, struct bulk_store *bulk_store,
                                                  const struct store_key *key, enum item_type type);

/* With the command's progress. */
void bulk_store_free(struct bulk_store *bulk_store);

#endif
