/*
 * Waiting and waking, the locks of a transaction's partitions, and notifying the maintenance
 * thread. Private to storage/.
 */
#ifndef VELLUM_STORE_WAIT_H
#define VELLUM_STORE_WAIT_H

#include "storage/txn/engine.h"

void request_wait(struct store_txn *txn); /* one more thing to wait for */
/* One thing less to wait for. from: this thread's worker, or NULL. */
void request_wake(struct store_txn *txn, struct store_worker *from);
void request_notify(struct store_worker *worker); /* makes its eventfd readable */
void engine_wake_workers(struct store *store);
/* Notifies all workers, except the one whose completions (of queue `here`, or NULL) this thread is
 * processing inside store_poll: it is awake. */
void wait_wake_workers(struct store *store, const struct disk_queue *here);

void request_lock(struct store_txn *txn);
void request_unlock(struct store_txn *txn);
bool request_holds(const struct store_txn *txn, uint32_t partition);
/* STORE_WAIT: the run must end; its next run begins with this lock too. */
STORE_MUST_CHECK enum store_result request_lock_too(struct store_txn *txn, uint32_t partition);

void maintenance_ask(struct store *store); /* requests a round of the maintenance thread */
void sweep_ask(struct store *store);       /* dead items are in the index */
/* The transaction waits until the maintenance thread has finished a round. */
void maintenance_throttle(struct store_txn *txn);
void maintenance_release(struct store *store); /* wakes all throttled transactions to try again */

#endif
