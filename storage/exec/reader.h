/* Value readers, see store.h. Private to storage/. */
#ifndef VELLUM_STORE_READER_H
#define VELLUM_STORE_READER_H

#include "storage/txn/engine.h"

/* Opens a reader, owned by no run, of the value with this root, which is copied. From then on the
 * runs that commits after `seen` give up stay allocated; the caller ensures that none was freed. */
STORE_MUST_CHECK enum store_result reader_open_root(struct store_worker *worker,
                                                    const char *root_bytes, uint32_t length,
                                                    uint64_t seen, struct store_reader **reader);

/* stream_close_all: the run that opened them is discarded. stream_leave_all: it is finished, and
 * the readers belong to the caller. */
void stream_close_all(struct store_txn *txn);
void stream_leave_all(struct store_txn *txn);

#endif
