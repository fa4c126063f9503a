/*
 * The tracking table: which clients may have which keys in their caches. Keys count by their names
 * alone, whatever their database, as in Redis.
 *
 * Threads: any, also observers of the store: its locks are leaves but for those of trackers.
 */
#ifndef VELLUM_TRACKING_TABLE_H
#define VELLUM_TRACKING_TABLE_H

#include "storage/store.h"

struct tracker;
struct tracking_table;
struct worker;

struct tracking_table *tracking_table_new(void); /* NULL: out of memory */
void tracking_table_free(struct tracking_table *table);

/* False: out of memory. */
bool tracking_table_add(struct tracking_table *table, const struct store_key *key,
                        struct tracker *tracker);

/* Those keys will be looked for: brings what each search reads into the processor's caches. */
void tracking_table_prefetch(struct tracking_table *table, const struct store_key *keys,
                             uint32_t count);

/* The key has changed: takes it out, and notes that for its clients, but not for `except` (which
 * may be NULL). `self`: see tracker_note. */
void tracking_table_take(struct tracking_table *table, const struct store_key *key,
                         const struct tracker *except, struct worker *self);

/* Takes out any key, as if it had changed; false: there is none. */
bool tracking_table_evict(struct tracking_table *table, uint64_t random, struct worker *self);

/* Takes out all keys, and notes nothing. Their memory is freed by tracking_table_rest, at most
 * `most` keys' at a time. */
void tracking_table_clear(struct tracking_table *table);
void tracking_table_rest(struct tracking_table *table, uint32_t most);

uint64_t tracking_table_keys(const struct tracking_table *table);
uint64_t tracking_table_items(const struct tracking_table *table); /* clients, over all keys */
uint64_t tracking_table_bytes(const struct tracking_table *table); /* of memory */

#endif
