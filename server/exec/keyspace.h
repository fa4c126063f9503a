/*
 * Keys: their equality; look-up and deletion for commands, with hit counts and notifications.
 */
#ifndef VELLUM_KEYSPACE_H
#define VELLUM_KEYSPACE_H

#include <string.h>

#include "server/core/command.h"

/* Whether both name the same key, whatever it is used for. */
static inline bool key_equals(const struct store_key *a, const struct store_key *b)
{
    return a->hash == b->hash && a->db == b->db && a->len == b->len &&
           memcmp(a->data, b->data, a->len) == 0;
}

/* Deletes the value of a key, if it has one, and notifies of it. */
enum store_result call_delete(struct call *call, const struct store_key *key);

/* Counts the look-up of a key that is read: as a keyspace hit, or as a miss, which is notified. */
void call_count_lookup(struct call *call, const struct store_key *key, enum store_result result);

/* store_get for one of the declared keys, call->keys; counted if the command only reads it. A
 * command that replies with the value of a key that it also writes counts by itself. */
enum store_result call_find(struct call *call, const struct store_key *key,
                            struct store_item *item);

/* call_find with a type check: another type than `type` is STORE_ANSWERED, with WRONGTYPE. */
enum store_result call_get(struct call *call, const struct store_key *key, enum item_type type,
                           struct store_item *item);

#endif
