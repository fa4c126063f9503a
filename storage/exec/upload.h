/* Uploads, see store.h. Private to storage/. */
#ifndef VELLUM_STORE_UPLOAD_H
#define VELLUM_STORE_UPLOAD_H

#include "storage/txn/engine.h"

/* The value's root; STORE_OK only after store_upload_finish has succeeded, else the reason why it
 * failed. */
STORE_MUST_CHECK enum store_result upload_root(const struct store_upload *upload,
                                               const struct format_root **root);
/* A value reader begins, or stops, to read it: until then it is not freed. */
void upload_hold(struct store_upload *upload);
void upload_release(struct store_upload *upload);
/* A commit has put it under a key: its runs belong to the value. */
void upload_hand_over(struct store_upload *upload);
/* Marks the runs of all open uploads as free, or as used again: a flush of everything frees all
 * runs in use, but not these. extents.lock is held from the first call to the second. */
void upload_set_apart(struct store *store, bool apart);

#endif
