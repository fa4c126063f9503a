/* Scouts. Private to storage/. */
#ifndef VELLUM_STORE_PREFETCH_RUN_H
#define VELLUM_STORE_PREFETCH_RUN_H

#include "storage/txn/engine.h"

/* It was queued behind others, and its partitions' locks are held: runs it ahead, now or later. */
void scout_begin(struct store_txn *txn);
void scout_end(struct store_txn *txn);        /* its own run begins */
void scout_more(struct store_worker *worker); /* those that had no room, without locks */
/* A page that it came upon as a scout is there; by its worker, without locks. */
void scout_on(struct store_txn *txn);

#endif
