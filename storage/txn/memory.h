/* The account of memory. Private to storage/. */
#ifndef VELLUM_STORE_MEMORY_H
#define VELLUM_STORE_MEMORY_H

#include "storage/txn/engine.h"

void engine_adjust_memory(struct store *store); /* what frames may use, after all else */
/* The store itself has grown: frames make room before the next measurement. Takes no locks. */
void memory_note_growth(struct store *store, uint64_t bytes);
/* Measures now and then; frames beyond the limit go. No space's lock is held. */
void memory_keep(struct store *store);

#endif
