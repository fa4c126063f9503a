/* Uploads, see store.h. Private to storage/. */
#ifndef VELLUM_STORE_UPLOAD_H
#define VELLUM_STORE_UPLOAD_H

#include "storage/txn/engine.h"

/* The value's root; STORE_OK only when store_upload_finish has said so, or else why it failed. */
STORE_MUST_CHECK enum store_result upload_root(const struct store_upload *upload,
                                               const struct format_root **root);
/* A stream reads it, or does no more: until then it lives. */
void upload_hold(struct store_upload *upload);
void upload_release(struct store_upload *upload);
/* A commit has put it under a key: its runs are the value's. */
void upload_hand_over(struct store_upload *upload);
/* Shows the runs of all open uploads as free, or as used again: a flush of everything, which frees
 * all runs in use, is not to free these. extents.lock is held from the one to the other. */
void upload_set_apart(struct store *store, bool apart);

#endif
