/*
 * Calls from lower rooms into higher ones. exec/hooks.c names the functions. Private to storage/.
 */
#ifndef VELLUM_STORE_HOOKS_H
#define VELLUM_STORE_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

struct store;
struct store_txn;
struct store_upload;

struct hooks {
    /* load.c: a page that the transaction's prefetch run missed has arrived; no lock is held. */
    void (*page_arrived)(struct store_txn *txn);
    /* exec/txn.c, for a transaction with open value readers: its run is discarded, or it is
     * finished. */
    void (*run_discarded)(struct store_txn *txn);
    void (*run_finished)(struct store_txn *txn);
    /* free.c, with extents.lock held: all open snapshots see the commits up to this number. */
    uint64_t (*oldest_snapshot)(const struct store *store);
    /* free.c, likewise: marks the runs of all open uploads as free (apart), or as used again. */
    void (*set_uploads_apart)(struct store *store, bool apart);
    /* extent_write.c: a commit has put the upload under a key. */
    void (*upload_handed_over)(struct store_upload *upload);
};

#endif
