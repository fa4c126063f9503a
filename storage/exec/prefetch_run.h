/* Prefetch runs. Private to storage/. */
#ifndef VELLUM_STORE_PREFETCH_RUN_H
#define VELLUM_STORE_PREFETCH_RUN_H

#include "storage/txn/engine.h"

/* It was queued behind others, and its partitions' locks are held: runs it ahead, now or later. */
void prefetch_run_begin(struct store_txn *txn);
void prefetch_run_end(struct store_txn *txn);        /* its own run begins */
void prefetch_run_more(struct store_worker *worker); /* those that had no room, without locks */
/* A page that it came upon as a prefetch run is there; by its worker, without locks. */
void prefetch_run_resume(struct store_txn *txn);

#endif
