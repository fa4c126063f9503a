/*
 * Looking at keys, and deleting them, as commands do: counted, and told of.
 */
#ifndef VELLUM_KEYSPACE_H
#define VELLUM_KEYSPACE_H

#include "server/core/command.h"

/* Deletes what is at a key, if there is anything, and tells of it. */
enum store_result call_delete(struct call *call, const struct store_key *key);

/* store_get; counts a keyspace hit or miss if the command is CMD_READONLY (others do it by hand).
 */
enum store_result call_find(struct call *call, const struct store_key *key,
                            struct store_item *item);

/* call_find and a check of the type: another one than `type` is STORE_ANSWERED, with WRONGTYPE. */
enum store_result call_get(struct call *call, const struct store_key *key, enum item_type type,
                           struct store_item *item);

#endif
