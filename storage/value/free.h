/* Runs given up by a commit: freed once it is durable and no reader sees them. Private to
 * storage/. */
#ifndef VELLUM_STORE_FREE_H
#define VELLUM_STORE_FREE_H

#include "storage/txn/engine.h"

void extent_free_root(struct store *store, const struct format_root *root, uint64_t commit);
void extent_free_list(struct store *store, const struct format_extent *extents, uint32_t count,
                      uint32_t depth, uint64_t commit);
/* Defers all runs of an item in its page, until the newest commit so far is durable. */
void extent_free_item(struct store *store, const struct format_item *item);
/* Recovery: another value names the run, too; extents.lock is held. False: out of memory. */
STORE_MUST_CHECK bool extent_note_disputed(struct store *store, uint32_t page);
/* Once all of them are noted, before any run is freed. */
void extent_settle_disputed(struct store *store);
void extent_forget_deferred(struct store *store);
bool extent_free_due(struct store *store); /* on the maintenance thread; may read from disk; returns
                                              whether it freed any */
/* Whether the oldest deferred runs wait only for the journal; extents.lock is held. */
bool extent_free_is_near(const struct store *store);
void extent_free_all(struct store *store, uint64_t commit);
void run_reader_begin(struct store *store, struct run_reader *reader, uint64_t seen);
void run_reader_end(struct store *store, struct run_reader *reader);

#endif
