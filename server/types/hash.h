/*
 * Hashes: fields with values, kept as members.h says. The item's type byte follows what Redis's
 * thresholds make of a hash (listpack, hashtable).
 */
#ifndef VELLUM_HASH_H
#define VELLUM_HASH_H

#include "server/types/members.h"

static inline enum store_result hash_find(struct call *call, const struct store_key *key,
                                          struct members *hash)
{
    return members_find(call, key, TYPE_HASH, hash);
}

/* Sets a field; *added if there was none. */
STORE_MUST_CHECK enum store_result hash_set(struct call *call, struct members *hash,
                                            struct resp_slice field, struct resp_slice value,
                                            bool *added);

/* What Redis does before it sets these fields and values: what they will surely outgrow, they have
 * outgrown already. */
void hash_expect(struct call *call, struct members *hash, const struct resp_slice *pairs,
                 size_t count);

#endif
