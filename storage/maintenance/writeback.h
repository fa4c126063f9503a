/* Write-behind and checkpoints, by the maintenance thread. Private to storage/. */
#ifndef VELLUM_STORE_WRITEBACK_H
#define VELLUM_STORE_WRITEBACK_H

#include "storage/txn/engine.h"

struct batch;
struct batch *writeback_batch(void); /* NULL: no memory; release with free() */

/* Writes the next dirty pages of the file from *cursor on. False: there are none, or the write
 * failed. */
bool writeback_step(struct store *store, struct page_file *file, struct batch *batch,
                    uint32_t *cursor);

/* Waits until the commit is durable; false: the store has failed. */
bool writeback_sync(struct store *store, uint64_t commit);

/* Makes durable what has waited for its second, under everysec. */
void writeback_sync_by_age(struct store *store);

/* Everything that was dirty at the mark is written: flushes, and moves the journal's tail. 0 or
 * an errno value. */
int writeback_finish(struct store *store, const struct journal_mark *mark, bool clean);

#endif
