/*
 * Large collections made of elements that are all in memory, in steps: each commits a part to a
 * building that no key names yet, so that their pages need not be in memory together.
 *
 *     while assembly_go_on says anything but STORE_OK: pass it up; then assembly_put.
 *
 * Invariant: between runs the building has the elements up to `at`.
 */
#ifndef VELLUM_BULK_STORE_H
#define VELLUM_BULK_STORE_H

#include "server/core/command.h"

/* Of a hash fields and values in turn; no member twice. They live as long as the request. */
struct assembly_parts {
    enum item_type type;
    const struct resp_slice *slices;
    const double *scores; /* of a sorted set */
    size_t count;         /* of slices */
};

struct assembly {
    struct store_building *building; /* NULL: not begun */
    uint64_t steps;                  /* that are known to be committed */
    size_t at, planted_to;           /* slices; as the last run's planting has left it */
    uint8_t type, planted_type;      /* the item's */
};

/* Whether they are so many that they are not to be written in one run. */
bool assembly_is_large(const struct assembly_parts *parts);

/* STORE_OK: all parts are in the building. Near the key, which the request holds. */
STORE_MUST_CHECK enum store_result assembly_go_on(struct call *call, struct assembly *assembly,
                                                  const struct store_key *key,
                                                  const struct assembly_parts *parts);

/* Then: gives it to the key, over what is there, and tells nobody. */
STORE_MUST_CHECK enum store_result assembly_put(struct call *call, struct assembly *assembly,
                                                const struct store_key *key, enum item_type type);

/* With the command's progress. */
void assembly_free(struct assembly *assembly);

#endif
