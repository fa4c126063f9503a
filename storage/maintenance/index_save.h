/*
 * Writing the index checkpoint: see index_stream.h.
 */
#ifndef VELLUM_STORE_INDEX_SAVE_H
#define VELLUM_STORE_INDEX_SAVE_H

struct store;

/* Called at shutdown, when everything is durable and nothing runs any more. A failure is
 * logged, and makes the next start scan the slabs. */
void index_save(struct store *store);

#endif
