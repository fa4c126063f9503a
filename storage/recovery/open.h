/* Opening a store on a given disk. Private to storage/. */
#ifndef VELLUM_STORE_OPEN_H
#define VELLUM_STORE_OPEN_H

#include "storage/txn/engine.h"

/* Opens and recovers the store on this disk, with no thread running yet. Frees the disk on
 * failure. */
STORE_MUST_CHECK enum store_result engine_recover_on(struct disk *disk,
                                                     const struct store_options *options,
                                                     struct store **store,
                                                     char message[STORE_MESSAGE_MAX]);
void engine_destroy(struct store *store);

/* store_open on any disk; tests have one with faults. The store frees the disk when it is closed or
 * cannot be opened. */
STORE_MUST_CHECK enum store_result store_open_on(struct disk *disk,
                                                 const struct store_options *options,
                                                 struct store **store,
                                                 char message[STORE_MESSAGE_MAX]);

#endif
