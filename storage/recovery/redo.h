/*
 * The journal as read at startup: which bytes belong into which slot. Private to storage/.
 */
#ifndef VELLUM_STORE_REDO_H
#define VELLUM_STORE_REDO_H

#include "storage/txn/engine.h"

/* An operation on a slot. */
struct redo {
    uint32_t page;
    uint8_t file, slot;
    const struct format_operation *operation;
    uint64_t order;
};

/* The content of the journal from the tail of the last checkpoint to the end of its history. */
struct redo_log {
    struct group_memory *groups;
    struct redo *redo;
    size_t redo_count, redo_capacity;
    uint64_t position, sequence, previous; /* of the next expected group */
    uint64_t order;                        /* of the next operation */
    /* Per page file and segment: the operation that last assigned or removed its class; 0: none. */
    uint64_t *assigned[FORMAT_PARTITION_MAX + 1];
    uint64_t commit;  /* the first commit number that is not in it */
    uint64_t commits; /* the number of commits */
};

/* Reads the journal, and applies operations that do not concern slots: segments' classes, the
 * map of databases. Then the log is sorted by place, and holds for each place the last full
 * operation and the patches after it; operations from before a segment was emptied for another
 * class are dropped. STORE_IO, STORE_NO_MEMORY; STORE_CORRUPT, possibly with a message: there
 * are groups after a damaged one. */
STORE_MUST_CHECK enum store_result redo_read(struct store *store, struct redo_log *log,
                                             char *message);

/* Whether the log determines the class of the segment, which may be none. */
bool redo_assigns(const struct store *store, const struct redo_log *log,
                  const struct page_file *file, uint32_t segment);

/* The first operation at or after this page. */
const struct redo *redo_first(const struct redo_log *log, uint32_t file, uint32_t page);

void redo_free(struct redo_log *log);

#endif
