/*
 * A run of the extents' file on its way: reserved, filled by its owner, written. Private to
 * storage/.
 *
 *     run_write_begin -> (its vectors are filled) -> run_write_start -> done -> run_write_end
 *                \--> run_write_drop
 *
 * Its pages are frames of the cache, which then has them already, or memory of its own where frames
 * are short.
 */
#ifndef VELLUM_STORE_RUN_WRITE_H
#define VELLUM_STORE_RUN_WRITE_H

#include "engine.h"

struct run_write {
    struct disk_op op;
    struct store *store;
    uint32_t page, length; /* the run; bytes in it */
    uint32_t count;        /* pages */
    char *apart;           /* NULL: in frames */
    uint32_t frames[FORMAT_EXTENT_PAGES];
    struct iovec vectors[FORMAT_EXTENT_PAGES];
};

/* A growing list of descriptors. */
struct extent_list {
    struct format_extent *at;
    uint32_t count, capacity;
};

/* Makes sure of room for one more; false: out of memory. */
STORE_MUST_CHECK bool extent_list_room(struct extent_list *list);

enum run_write_frames {
    RUN_WRITE_WAITS,        /* for frames, if there are none */
    RUN_WRITE_URGENT,       /* as in space_add_frame */
    RUN_WRITE_MAY_BE_APART, /* if there are none */
    RUN_WRITE_APART,
};
/* Adds the run to its owner's list, which has room, under the lock under which it is taken.
 * STORE_WAIT: the transaction waits. */
STORE_MUST_CHECK enum store_result run_write_begin(struct store_txn *txn, uint32_t length,
                                                   enum run_write_frames frames,
                                                   struct extent_list *runs,
                                                   struct run_write **write);

/* All bytes have been filled in. The write begins with the worker's next submit, and `done` finds
 * `arg` in op->arg; *extent describes the run. */
void run_write_start(struct run_write *write, struct store_worker *worker,
                     void (*done)(struct disk_op *op), void *arg, struct format_extent *extent);

/* Of an operation that is done. */
struct run_write *run_write_of(struct disk_op *op);
/* Returns whether the run is durable; if not, the store has failed. */
bool run_write_end(struct run_write *write);
/* Instead of starting it. The run stays its owner's. */
void run_write_drop(struct run_write *write);

/* Frees a run that nothing names; extents.lock is held. */
void run_give_back(struct space *space, const struct format_extent *run);

#endif
