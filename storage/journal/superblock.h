/*
 * The superblock: who a directory is, and where redo begins. Private to storage/.
 *
 * Threads: none of its own. The maintenance thread writes it; the start and a reload do while the
 * maintenance thread rests.
 */
#ifndef VELLUM_STORE_SUPERBLOCK_H
#define VELLUM_STORE_SUPERBLOCK_H

#include "storage/base/disk.h"
#include "storage/base/env.h"
#include "storage/format/format.h"

struct superblock {
    /* What the owner sets before the first use: */
    struct disk *disk;
    struct disk_queue *queue; /* for reading and writing it */
    struct env *env;
    char *page; /* PAGE_SIZE bytes, as disk_alloc gives them */

    struct disk_file *file; /* NULL: not open; the owner closes it */
    struct format_superblock latest;
    struct format_secret secret; /* made of it */
    bool is_damaged;             /* one of its copies was, when it was read */
    bool is_in_turn;             /* its copies were the last two that were written */
};

STORE_MUST_CHECK enum store_result
superblock_create(struct superblock *block, const struct store_options *options, char *message);
/* STORE_ABSENT: the directory was never finished, and holds nothing. */
STORE_MUST_CHECK enum store_result superblock_read(struct superblock *block, char *message);
/* The same where there is no such file; otherwise it was lost, which the message says. */
STORE_MUST_CHECK enum store_result superblock_missing(struct superblock *block, char *message);
STORE_MUST_CHECK int superblock_write(struct superblock *block); /* an errno */

#endif
