/*
 * Writing the index checkpoint: see index_stream.h.
 */
#ifndef VELLUM_STORE_INDEX_SAVE_H
#define VELLUM_STORE_INDEX_SAVE_H

struct store;

/* At a stop, when everything is durable and nothing runs any more. A failure leaves the next start
 * a scan, and is told to the log. */
void index_save(struct store *store);

#endif
