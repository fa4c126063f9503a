/*
 * Stores large collections, whose elements are all in memory, in steps. Each step commits a part
 * to a bulk load that no key refers to yet, so that the pages need not all be in memory at once.
 *
 *     call bulk_store_go_on() until STORE_OK (pass up all other results); then bulk_store_put().
 *
 * Invariant: between runs the bulk load contains the elements up to `at`.
 */
#ifndef VELLUM_BULK_STORE_H
#define VELLUM_BULK_STORE_H

#include "server/core/command.h"

/* For a hash fields and values alternate. No member occurs twice. The slices must live as long as
 * the request. */
struct bulk_store_parts {
    enum item_type type;
    const struct resp_slice *slices;
    const double *scores;    /* sorted sets only */
    const int64_t *expiries; /* NULL, or of a hash: one for each field, or STORE_NO_EXPIRY */
    size_t count;            /* number of slices */
};

struct bulk_store {
    struct store_bulk_load *bulk_load; /* NULL: not begun */
    uint64_t steps;                    /* known to be committed */
    size_t at, filled_to;              /* slices: committed, and filled in by the last run */
    uint8_t type, filled_type;         /* the item's type byte: likewise */
};

/* Whether the collection is too large to be written in one run. */
bool bulk_store_is_large(const struct bulk_store_parts *parts);

/* STORE_OK: the bulk load is complete. It is placed near the key, which the request has locked. */
STORE_MUST_CHECK enum store_result bulk_store_go_on(struct call *call,
                                                    struct bulk_store *bulk_store,
                                                    const struct store_key *key,
                                                    const struct bulk_store_parts *parts);

/* Then stores it at the key, replacing any value, without keyspace notifications. */
STORE_MUST_CHECK enum store_result bulk_store_put(struct call *call, struct bulk_store *bulk_store,
                                                  const struct store_key *key,
                                                  const struct bulk_store_parts *parts);

/* Called when the command's progress is freed. */
void bulk_store_free(struct bulk_store *bulk_store);

#endif
