/*
 * The journal read back: which bytes belong into which slot. Private to storage/.
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

struct group_memory {
    struct group_memory *next;
    char *bytes;
};

/* What the journal holds from the last checkpoint's tail to where its history ends. */
struct redo_log {
    struct group_memory *groups;
    struct redo *redo;
    size_t redo_count, redo_capacity;
    uint64_t position, sequence, previous;        /* of the group that would come next */
    uint64_t order;                               /* of the next operation */
    uint64_t *assigned[FORMAT_PARTITION_MAX + 1]; /* per space and segment: behind which operation
                                                     its class was last given or taken; 0: never */
    uint64_t commit;                              /* first number that is not in it */
    uint64_t commits;                             /* how many there were */
};

/* Reads it, and applies what is not about slots: segments' classes, the map of databases. Then the
 * log is sorted by place, with the last operation of each, and patches behind it; what came before
 * a segment was emptied for another class is left out. STORE_IO,
 * STORE_NO_MEMORY; STORE_CORRUPT, perhaps with a message: there are groups behind a damaged one. */
STORE_MUST_CHECK enum store_result redo_read(struct store *store, struct redo_log *log,
                                             char *message);

/* Whether it tells which class the segment has, which may be none. */
bool redo_assigns(const struct store *store, const struct redo_log *log,
                  const struct page_file *file, uint32_t segment);

/* The first operation at or behind this page. */
const struct redo *redo_first(const struct redo_log *log, uint32_t file, uint32_t page);

void redo_free(struct redo_log *log);

#endif
