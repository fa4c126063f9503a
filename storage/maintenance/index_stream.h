/*
 * The index checkpoint: the file `index`, written at a clean shutdown so that the next start need
 * not read the slabs. Private to storage/. format.h has its layout.
 *
 *            (absent or stale) --index_save, after the superblock says `clean`--> of this stop
 *                    ^                                                              |
 *                    +------- recover.c:begin_epoch, before the first write --------+
 *
 * Invariants
 * 1. It is trusted only by a start that finds the superblock of the very shutdown that wrote it:
 *    `clean`, with both copies whole and in sequence. The superblock of the next epoch, which is
 *    durable before anything else is written, makes it stale.
 * 2. Every block's checksum covers the identity of its shutdown. So the order in which blocks
 *    reach the disk does not matter, nor what a crash leaves of an older file: if one block is in
 *    doubt, everything loaded is discarded and the slabs are scanned.
 * 3. It is written only if it agrees with what a scan would find: not while there is damage that
 *    a scan reports, or space that only a scan recovers.
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
    uint32_t at;                      /* offset of the next byte in the block */
    int error;                        /* of a write */
};

/* False: no memory. */
STORE_MUST_CHECK bool index_stream_open(struct index_stream *stream, struct store *store,
                                        struct disk_file *file,
                                        const struct format_index_head *head);
void index_stream_close(struct index_stream *stream);
/* False: `error` is set. */
STORE_MUST_CHECK bool index_stream_put(struct index_stream *stream, const void *from, size_t len);
STORE_MUST_CHECK bool index_stream_end(struct index_stream *stream); /* the last block */
/* False: the block is in doubt. */
STORE_MUST_CHECK bool index_stream_get(struct index_stream *stream, void *to, size_t len);

/* The head of the checkpoint that belongs to this superblock. */
struct format_index_head index_head(const struct format_superblock *super);

#endif
