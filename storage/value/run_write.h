/*
 * Writing a run of the extents' file: it is reserved, filled by its owner, written. Private to
 * storage/.
 *
 *     run_write_begin -> (its vectors are filled) -> run_write_start -> done -> run_write_end
 *                \--> run_write_drop
 *
 * Its pages are frames of the cache, which then already holds them, or memory of its own where
 * frames are short. Where there is much of such memory, a run gets only a few pages of it, and is
 * filled and written part by part: after each part but the last, run_write_next is called instead
 * of run_write_end.
 */
#ifndef VELLUM_STORE_RUN_WRITE_H
#define VELLUM_STORE_RUN_WRITE_H

#include "storage/txn/engine.h"

struct run_write {
    struct disk_op op;
    struct store *store;
    uint32_t page, length; /* the run, and its bytes */
    uint32_t count;        /* pages */
    uint32_t window;       /* pages in memory at a time */
    uint32_t begin, end;   /* the range of its bytes that the vectors cover */
    char *apart;           /* memory of its own; NULL: in frames */
    void *sum;             /* checksum state of the parts already written; NULL: a single part */
    uint32_t frames[FORMAT_EXTENT_PAGES];
    struct iovec vectors[FORMAT_EXTENT_PAGES];
};

/* A growing list of descriptors. */
struct extent_list {
    struct format_extent *at;
    uint32_t count;
    size_t capacity;
};

/* Reserves room for one more; false: out of memory. */
STORE_MUST_CHECK bool extent_list_room(struct extent_list *list);

enum run_write_frames {
    RUN_WRITE_WAITS,        /* waits for frames, if there are none */
    RUN_WRITE_URGENT,       /* as in page_file_add_frame */
    RUN_WRITE_MAY_BE_APART, /* uses memory of its own, if there are none */
    RUN_WRITE_APART,        /* uses memory of its own */
};
/* Reserves a run and memory for it. Adds the run to its owner's list, which has room, before
 * extents.lock is released. STORE_WAIT: the transaction waits. */
STORE_MUST_CHECK enum store_result run_write_begin(struct store_txn *txn, uint32_t length,
                                                   enum run_write_frames frames,
                                                   struct extent_list *runs,
                                                   struct run_write **write);

static inline bool run_write_is_last(const struct run_write *write)
{
    return write->end == write->length;
}

/* All bytes up to `end` have been filled in. The write begins with the worker's next submit, and
 * `done` finds `arg` in op->arg; with the last part, *extent is set to describe the run. */
void run_write_start(struct run_write *write, struct store_worker *worker,
                     void (*done)(struct disk_op *op), void *arg, struct format_extent *extent);

/* The write of a completed operation. */
struct run_write *run_write_of(struct disk_op *op);
/* Returns whether the run is durable; if not, the store has failed. */
bool run_write_end(struct run_write *write);
/* The same for a part: the next part may be filled. */
bool run_write_next(struct run_write *write);
/* Instead of run_write_start. The run stays its owner's. */
void run_write_drop(struct run_write *write);

/* Frees a run that nothing names; extents.lock is held. */
void run_give_back(struct page_file *file, const struct format_extent *run);

#endif
