/*
 * The superblock: the identity of a directory, and where redo begins. Private to storage/.
 *
 * Threads: not thread-safe. The maintenance thread writes it; startup, a reload and shutdown do so
 * while that thread does not run. Other threads read only fields that do not change meanwhile, such
 * as the seed and the epoch.
 */
#ifndef VELLUM_STORE_SUPERBLOCK_H
#define VELLUM_STORE_SUPERBLOCK_H

#include "storage/base/disk.h"
#include "storage/base/env.h"
#include "storage/format/format.h"

struct superblock {
    /* Set by the owner before the first use: */
    struct disk *disk;
    struct disk_queue *queue; /* for reading and writing it */
    struct env *env;
    char *page; /* PAGE_SIZE bytes, from disk_alloc */

    struct disk_file *file; /* NULL: not open; the owner closes it */
    struct format_superblock latest;
    struct format_secret secret; /* derived from `latest` */
    bool is_damaged;             /* one of its copies was damaged when it was read */
    bool is_in_turn;             /* both copies are valid, and the last two that were written */
};

STORE_MUST_CHECK enum store_result
superblock_create(struct superblock *block, const struct store_options *options, char *message);
/* STORE_ABSENT: the directory was never completed, and is empty. */
STORE_MUST_CHECK enum store_result superblock_read(struct superblock *block, char *message);
/* For a directory without a superblock. STORE_ABSENT: nothing was ever committed in it.
 * STORE_CORRUPT: the superblock was lost. */
STORE_MUST_CHECK enum store_result superblock_missing(struct superblock *block, char *message);
STORE_MUST_CHECK int superblock_write(struct superblock *block); /* 0 or an errno value */

#endif
