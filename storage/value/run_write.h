/*
 * A run of the extents' file on its way: reserved, filled by its owner, written. Private to
 * storage/.
 *
 *     run_write_begin -> (its vectors are filled) -> run_write_start -> done -> run_write_end
 *                \--> run_write_drop
 *
 * Its pages are frames of the cache, which then has them already, or memory of its own where frames
 * are short. Where there is much of such memory, a run gets but a few pages of it, and is filled
 * and written part by part: after each but the last, run_write_next instead of run_write_end.
 */
#ifndef VELLUM_STORE_RUN_WRITE_H
#define VELLUM_STORE_RUN_WRITE_H

#include "storage/txn/engine.h"

struct run_write {
    struct disk_op op;
    struct store *store;
    uint32_t page, length; /* the run; bytes in it */
    uint32_t count;        /* pages */
    uint32_t window;       /* of them in memory at a time */
    uint32_t begin, end;   /* what of its bytes the vectors are for */
    char *apart;           /* NULL: in frames */
    void *sum;             /* of what was written before; NULL: it has but one part */
    uint32_t frames[FORMAT_EXTENT_PAGES];
    struct iovec vectors[FORMAT_EXTENT_PAGES];
};

/* A growing list of descriptors. */
struct extent_list {
    struct format_extent *at;
    uint32_t count;
    size_t capacity;
};

/* Makes sure of room for one more; false: out of memory. */
STORE_MUST_CHECK bool extent_list_room(struct extent_list *list);

enum run_write_frames {
    RUN_WRITE_WAITS,        /* for frames, if there are none */
    RUN_WRITE_URGENT,       /* as in page_file_add_frame */
    RUN_WRITE_MAY_BE_APART, /* if there are none */
    RUN_WRITE_APART,
};
/* Adds the run to its owner's list, which has room, under the lock under which it is taken.
 * STORE_WAIT: the transaction waits. */
STORE_MUST_CHECK enum store_result run_write_begin(struct store_txn *txn, uint32_t length,
                                                   enum run_write_frames frames,
                                                   struct extent_list *runs,
                                                   struct run_write **write);

static inline bool run_write_is_last(const struct run_write *write)
{
    return write->end == write->length;
}

/* All bytes up to `end` have been filled in. The write begins with the worker's next submit, and
 * `done` finds `arg` in op->arg; *extent describes the run, once this is its last part. */
void run_write_start(struct run_write *write, struct store_worker *worker,
                     void (*done)(struct disk_op *op), void *arg, struct format_extent *extent);

/* Of an operation that is done. */
struct run_write *run_write_of(struct disk_op *op);
/* Returns whether the run is durable; if not, the store has failed. */
bool run_write_end(struct run_write *write);
/* The same of a part: the next one may be filled. */
bool run_write_next(struct run_write *write);
/* Instead of starting it. The run stays its owner's. */
void run_write_drop(struct run_write *write);

/* Frees a run that nothing names; extents.lock is held. */
void run_give_back(struct page_file *file, const struct format_extent *run);

#endif
