/* Reporting changes to observers, see store.h. Private to storage/. */
#ifndef VELLUM_STORE_CHANGE_H
#define VELLUM_STORE_CHANGE_H

#include "storage/txn/engine.h"

static inline bool change_is_observed(const struct store *store)
{
    return __builtin_expect(store->observer_count > 0, 0);
}

/* Called before the change is applied. old, fresh: NULL where the key is absent. */
void change_report_key(const struct store_txn *txn, const struct store_key *key,
                       const struct format_item *old, const struct format_item *fresh,
                       uint64_t commit);
/* Reports the net effect of the transaction's flushes and swaps: the swaps, then one flush of all
 * databases that are emptied. */
void change_report_databases(const struct store_txn *txn, uint64_t commit);

/* Locks all partitions, in their order; no transaction is half applied while these locks are
 * held. */
void change_lock_all(struct store *store);
void change_unlock_all(struct store *store);

/* All partitions' locks are held; false: the list is full. */
STORE_MUST_CHECK bool change_add_observer(struct store *store, store_observer *observer, void *arg);
void change_remove_observer(struct store *store, store_observer *observer, void *arg);

#endif
