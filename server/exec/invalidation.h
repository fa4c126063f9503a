/*
 * An invalidation: names of keys that a client must drop from its cache, each once, in the order in
 * which they changed; or all keys, and then those that have changed since.
 */
#ifndef VELLUM_INVALIDATION_H
#define VELLUM_INVALIDATION_H

#include "protocol/resp.h"
#include "storage/store.h"

struct invalidated;

/* Empty if it is all zeros. */
struct invalidation {
    bool all;
    uint32_t count, size; /* of the names, of the buckets */
    uint64_t bytes;       /* of memory */
    struct invalidated *first, *last;
    struct invalidated **buckets;
};

static inline bool invalidation_is_empty(const struct invalidation *invalidation)
{
    return !invalidation->all && invalidation->count == 0;
}

/* The database does not count. `group`: see invalidation_write. If memory runs out, it becomes all
 * keys. */
void invalidation_add(struct invalidation *invalidation, const struct store_key *key,
                      uint32_t group);
/* Calls `visit` for each name; of the key only name and hash are set. */
void invalidation_each(const struct invalidation *invalidation,
                       void (*visit)(void *arg, const struct store_key *key), void *arg);
void invalidation_add_all(struct invalidation *invalidation);
void invalidation_clear(struct invalidation *invalidation);

/*
 * Writes it as messages: of RESP3's kind, or in RESP2 as messages of Redis's channel for them.
 * There is one message per name, or, if `is_grouped`, per group of names.
 */
void invalidation_write(const struct invalidation *invalidation, bool is_grouped,
                        struct resp_writer *to);

#endif
