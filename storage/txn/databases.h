/* Logical databases. Private to storage/. */
#ifndef VELLUM_STORE_DATABASES_H
#define VELLUM_STORE_DATABASES_H

#include "storage/txn/engine.h"

/* What one key adds to the sum of expiry times at most: 278 years, so that the sum over many keys
 * does not overflow. */
#define DATABASES_EXPIRY_UNITS_MOST (1ull << 36)

/* Count one key more or less; the partition's lock is held. */
void databases_count_key(struct partition *partition, uint32_t db, int64_t expire_ms);
void databases_uncount_key(struct partition *partition, uint32_t db, int64_t expire_ms);
static inline uint32_t databases_place(const struct store_txn *txn, uint32_t db)
{
    return txn->arrangement.changed && db < STORE_DB_COUNT ? txn->arrangement.places[db] : db;
}
/* The id under which a place's items are committed; 0: it has none. */
static inline uint32_t databases_committed(const struct store_txn *txn, uint32_t place)
{
    return place <= STORE_META_DB ? engine_database(txn->store, place) : 0;
}
/* At the end of the run: brings writes, flushes and swaps into an order in which they can be
 * applied: the doomed writes, then the new map, then the other writes. STORE_FULL: no id is left
 * for a flush. */
STORE_MUST_CHECK enum store_result databases_settle(struct store_txn *txn);
/* Applies the new map; all partitions' locks are held. Returns how many keys are dead now. */
uint64_t databases_change(struct store_txn *txn, uint64_t commit);
/* An id that no logical database has any more: its items are garbage. */
bool databases_is_dead(const struct store *store, uint32_t id);
/* An id that was in use once, or 0. The page of such an item may be reused and overwritten: after a
 * power failure in between, the item may be torn. */
bool databases_is_past(const struct store *store, uint32_t id);
/* Logical database of an id, or -1. */
int databases_logical(const struct store *store, uint32_t id);

#endif
