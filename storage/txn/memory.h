/* The memory account. Private to storage/. */
#ifndef VELLUM_STORE_MEMORY_H
#define VELLUM_STORE_MEMORY_H

#include "storage/txn/engine.h"

void engine_adjust_memory(struct store *store); /* measures, and sets the limit of frames */
/* The store itself has grown: frames make room before the next measurement. Takes no locks. */
void memory_note_growth(struct store *store, uint64_t bytes);
/* For threads that go on while the maintenance thread may be waiting for their locks: measures if
 * the last measurement is some time ago. Takes no locks. */
bool memory_measure_late(struct store *store);
/* Measures if it is due, and evicts frames beyond the limit. No page file's lock is held. */
void memory_keep(struct store *store);

#endif
