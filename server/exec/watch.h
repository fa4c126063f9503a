/*
 * WATCH: records which keys have changed since a client began to watch them. All watched keys of
 * the server are in one registry, which observes the changes of the store as long as there are any.
 *
 * Threads: a watch belongs to its session's worker; the registry is shared by all workers.
 */
#ifndef VELLUM_WATCH_H
#define VELLUM_WATCH_H

#include "server/core/command.h"

struct watch_registry;
struct watch; /* the keys that one session watches */

struct watch_registry *watch_registry_new(struct store *store); /* NULL: out of memory */
void watch_registry_free(struct watch_registry *registry);      /* no watch is left */

/* In a run function, under the key's lock. False: the key is not watched; true may be by chance. */
bool watch_registry_has(struct watch_registry *registry, const struct store_key *key);

/* Stops observing the store when no watch is left. Not from within a run function. */
void watch_registry_rest(struct watch_registry *registry);

/* Not from within a run function. NULL: out of memory, or the store has too many observers. */
struct watch *watch_new(struct watch_registry *registry);
void watch_free(struct watch *watch); /* may be NULL */

/* Whether a key is known to have changed; watch_check is exact. */
bool watch_is_dirty(const struct watch *watch);
uint32_t watch_count(const struct watch *watch); /* keys; 0 for NULL */
uint64_t watch_bytes(const struct watch *watch); /* of memory; likewise */

/* In a run function, under the key's lock: watches the key from now on. `item` is its value; NULL:
 * none. False: out of memory. */
bool watch_add(struct watch *watch, const struct store_key *key, const struct store_item *item);

/* Fills in the watched keys, to be declared by a request that checks them. */
void watch_keys(const struct watch *watch, struct store_key *keys);

/* In a run function that has declared them: whether any key has changed or expired since it was
 * added. Exact: a key not changed now cannot change before the transaction is committed. */
STORE_MUST_CHECK enum store_result watch_check(const struct watch *watch, struct store_txn *txn,
                                               bool *has_changed);

#endif
