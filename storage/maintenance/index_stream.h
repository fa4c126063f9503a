/*
 * The index checkpoint: the file `index`, written when the store stops in order, so that the next
 * start need not read the slabs. Private to storage/. Its bytes stand in format.h.
 *
 *            (absent or stale) --index_save, after the superblock says `clean`--> of this stop
 *                    ^                                                              |
 *                    +------- recover.c:begin_epoch, before the first write --------+
 *
 * Invariants
 * 1. It is believed only by a start that finds the superblock of just the stop that wrote it:
 *    `clean`, with both copies whole and in sequence. The superblock of the next epoch, which is
 *    durable before anything else is written, makes it history.
 * 2. Every block's checksum covers which stop it belongs to. So it does not matter in which order
 *    blocks reach the disk, nor what a cut leaves of an older file: one block in doubt, and all
 *    that was loaded is forgotten and the slabs are scanned.
 * 3. It is written only if it says what a scan would find: not while there is damage that a scan
 *    reports, nor space that only a scan gives back.
 */
#ifndef VELLUM_STORE_INDEX_STREAM_H
#define VELLUM_STORE_INDEX_STREAM_H

#include "storage/txn/engine.h"

/* ---- the stream in blocks (index_stream.c) ---- */

struct index_stream {
    struct disk_queue *queue;
    struct disk_file *file;
    struct format_index_block *block; /* FORMAT_INDEX_BLOCK bytes */
    uint64_t identity;                /* seed of its checksums */
    uint64_t size;                    /* of the file */
    uint32_t number;                  /* of the block */
    uint32_t at;                      /* in its bytes, the next one */
    int error;                        /* of a write */
};

/* False: no memory. */
STORE_MUST_CHECK bool index_stream_open(struct index_stream *stream, struct store *store,
                                        struct disk_file *file,
                                        const struct format_index_head *head);
void index_stream_close(struct index_stream *stream);
/* False: `error` tells why. */
STORE_MUST_CHECK bool index_stream_put(struct index_stream *stream, const void *from, size_t len);
STORE_MUST_CHECK bool index_stream_end(struct index_stream *stream); /* the last block */
/* False: it is in doubt. */
STORE_MUST_CHECK bool index_stream_get(struct index_stream *stream, void *to, size_t len);

/* The head of a checkpoint that belongs to this superblock. */
struct format_index_head index_head(const struct format_superblock *super);

#endif
