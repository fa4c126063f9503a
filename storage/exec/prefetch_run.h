/* Prefetch runs. Private to storage/. */
#ifndef VELLUM_STORE_PREFETCH_RUN_H
#define VELLUM_STORE_PREFETCH_RUN_H

#include "storage/txn/engine.h"

/* Makes a prefetch run of a queued transaction, now or later. Its partitions' locks are held. */
void prefetch_run_begin(struct store_txn *txn);
void prefetch_run_end(struct store_txn *txn); /* its real run begins */
void prefetch_run_more(
    struct store_worker *worker); /* begins listed ones, up to the limit; no lock is held */
/* A page that its prefetch run missed has arrived; called by its worker, without locks. */
void prefetch_run_resume(struct store_txn *txn);

#endif
