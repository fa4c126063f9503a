/* The order of transactions per key. Private to storage/. */
#ifndef VELLUM_STORE_KEY_LOCKS_H
#define VELLUM_STORE_KEY_LOCKS_H

#include "storage/txn/engine.h"

bool admission_conflicts(const struct partition *partition, uint64_t hash, bool exclusive);
/* Whether somebody in the key's queue refuses others. */
bool admission_is_awaited(const struct store_txn *txn); /* no lock is held */
bool admission_refuses(const struct partition *partition, uint64_t hash);
/* Those that wait in the queues of the transaction's keys and may be refused, are. */
void admission_refuse_waiting(struct store_txn *txn);
/* Room for its claims, of which it has none yet; false: no memory. */
STORE_MUST_CHECK bool admission_reserve(struct store_txn *txn);
STORE_MUST_CHECK bool
admission_claim(struct store_txn *txn); /* queues all keys; false: no memory */
void admission_release(struct store_txn *txn, struct store_worker *from);
/* It is to be the next on this key, whose partition's lock is held. */
void admission_summon(struct store_txn *txn, const struct store_key *key,
                      struct store_worker *from);
/* And on that of its keys, likewise. Its room was reserved. */
void admission_keep(struct store_txn *txn, uint32_t index, struct store_worker *from);
/* Then claims its other keys, ahead of whoever does not run yet. */
void admission_claim_ahead(struct store_txn *txn, struct store_worker *from);

#endif
