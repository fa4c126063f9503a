/*
 * Hashes: fields with values, stored as members.h describes. The item's type byte records the
 * encoding that Redis's thresholds would choose (listpack, hashtable).
 */
#ifndef VELLUM_HASH_H
#define VELLUM_HASH_H

#include "server/types/members.h"

static inline enum store_result hash_find(struct call *call, const struct store_key *key,
                                          struct members *hash)
{
    return members_find(call, key, TYPE_HASH, hash);
}

/* Sets a field. *added: the field is new. */
STORE_MUST_CHECK enum store_result hash_set(struct call *call, struct members *hash,
                                            struct resp_slice field, struct resp_slice value,
                                            bool *added);

/* As in Redis, checks the arguments before they are set: if one of them will exceed a threshold,
 * the encoding changes at once. */
void hash_expect(struct call *call, struct members *hash, const struct resp_slice *pairs,
                 size_t count);

/* The store's waker (store_on_wake): removes fields that have expired, earliest first. `server` is
 * the struct server. Keyspace events follow from the change (keyspace_events.c). */
#define HASH_EXPIRES_MOST 64 /* fields of a tree, at a time */
STORE_MUST_CHECK enum store_result hash_wake(void *server, struct store_txn *txn,
                                             const struct store_key *key, uint32_t *removed);

#endif
