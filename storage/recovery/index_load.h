/*
 * Loading the index checkpoint: see index_stream.h.
 */
#ifndef VELLUM_STORE_INDEX_LOAD_H
#define VELLUM_STORE_INDEX_LOAD_H

#include "storage/txn/engine.h"

/* Loads the state in memory as of the shutdown that `super` describes. STORE_ABSENT: there is
 * no checkpoint of this shutdown, or it is in doubt; nothing was loaded. STORE_CORRUPT: another
 * file is shorter than it was, as the message says. STORE_NO_MEMORY. */
STORE_MUST_CHECK enum store_result index_load(struct store *store,
                                              const struct format_superblock *super, char *message);

#endif
