/*
 * Finds a key among the declared keys of a request: the commands of a script may use no others. A
 * few keys are compared one by one; many are found by a hash table, built at the first search.
 *
 * Invariants:
 * 1. `places` has a power of two of cells, at least twice as many as there are keys. A cell is the
 *    index of a declared key plus one, or 0: empty. Collisions are resolved by linear probing.
 * 2. Of equal keys only one has a cell: the first of those with the strongest mode.
 *
 * Threads: belongs to the request's thread.
 */
#ifndef VELLUM_DECLARED_KEYS_H
#define VELLUM_DECLARED_KEYS_H

#include <stddef.h>

#include "server/core/collected.h"
#include "storage/store.h"

struct declared_keys {
    uint32_t *places; /* NULL: not built */
    uint32_t count;   /* of keys */
    size_t mask;      /* the number of cells minus one */
    struct collected collected;
};

/* Whether the request has declared the key, for this mode or a stronger one. */
bool declared_keys_include(struct declared_keys *declared_keys, struct server *server,
                           const struct store_request *request, const struct store_key *key);

void declared_keys_free(struct declared_keys *declared_keys);

#endif
