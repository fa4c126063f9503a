/* Streams, see store.h. Private to storage/. */
#ifndef VELLUM_STORE_READER_H
#define VELLUM_STORE_READER_H

#include "storage/txn/engine.h"

/* A stream of the value with this root (a copy is made) that no run owns. Something else already
 * keeps what commits after `seen` gave up. */
STORE_MUST_CHECK enum store_result reader_open_root(struct store_worker *worker,
                                                    const char *root_bytes, uint32_t length,
                                                    uint64_t seen, struct store_reader **reader);

/* The run that opened them is forgotten; or finished, and they are whose request it was. */
void stream_close_all(struct store_txn *txn);
void stream_leave_all(struct store_txn *txn);

#endif
