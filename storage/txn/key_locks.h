/* Key locks: the order of transactions per key. Private to storage/. */
#ifndef VELLUM_STORE_KEY_LOCKS_H
#define VELLUM_STORE_KEY_LOCKS_H

#include "storage/txn/engine.h"

bool key_locks_conflicts(const struct partition *partition, uint64_t hash, bool exclusive);
/* Whether a transaction waits for one of this transaction's keys. No lock is held. */
bool key_locks_have_waiters(const struct store_txn *txn);
/* Whether a transaction in the key's queue refuses others. */
bool key_locks_refuses(const struct partition *partition, uint64_t hash);
/* Refuses the waiters on the transaction's keys that may be refused. */
void key_locks_refuse_waiting(struct store_txn *txn);
/* Memory for key locks ran out: it counts as active without them until it has failed. */
void key_locks_hold_none(struct store_txn *txn);
/* Reserves memory for its key locks, of which it has none yet; false: no memory. */
STORE_MUST_CHECK bool key_locks_reserve(struct store_txn *txn);
STORE_MUST_CHECK bool
key_locks_request(struct store_txn *txn); /* queues all keys; false: no memory */
void key_locks_release(struct store_txn *txn, struct store_worker *from);
/* Makes the transaction the next holder of this key; the partition's lock is held. */
void key_locks_hand_off(struct store_txn *txn, const struct store_key *key,
                        struct store_worker *from);
/* Likewise for its key with this index. key_locks_reserve was called before. */
void key_locks_keep(struct store_txn *txn, uint32_t index, struct store_worker *from);
/* After a hand-off: requests the locks of its other keys, ahead of all transactions that do not run
 * yet. */
void key_locks_request_ahead(struct store_txn *txn, struct store_worker *from);

#endif
