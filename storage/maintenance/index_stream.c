/*
 * The index checkpoint as a stream of bytes: blocks, their checksums, and the shutdown they
 * belong to.
 */
#include "storage/maintenance/index_stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define ROOM (FORMAT_INDEX_BLOCK - (uint32_t)sizeof(struct format_index_block))

struct format_index_head index_head(const struct format_superblock *super)
{
    struct format_index_head head = {.magic = FORMAT_INDEX_MAGIC,
                                     .epoch = super->epoch,
                                     .commit = super->tail_commit,
                                     .previous = super->tail_previous,
                                     .super_sequence = super->sequence,
                                     .version = super->version,
                                     .partition_count = super->partition_count};
    memcpy(head.store_id, super->store_id, sizeof head.store_id);
    return head;
}

bool index_stream_open(struct index_stream *stream, struct store *store, struct disk_file *file,
                       const struct format_index_head *head)
{
    *stream = (struct index_stream){.queue = store->maintenance_queue,
                                    .file = file,
                                    .block = disk_alloc(FORMAT_INDEX_BLOCK),
                                    .size = store->disk->ops->size(file)};
    stream->identity = XXH3_64bits_withSeed(head, sizeof *head, store->superblock.latest.seed);
    if (stream->block)
        memset(stream->block, 0, FORMAT_INDEX_BLOCK);
    return stream->block != NULL;
}

void index_stream_close(struct index_stream *stream)
{
    free(stream->block);
}

static uint64_t checksum_of(const struct index_stream *stream)
{
    const char *from = (const char *)stream->block + sizeof stream->block->checksum;
    size_t len = sizeof *stream->block - sizeof stream->block->checksum + stream->block->length;
    return XXH3_64bits_withSeed(from, len, stream->identity);
}

static char *bytes_of(const struct index_stream *stream)
{
    return (char *)(stream->block + 1);
}

static uint64_t offset_of(const struct index_stream *stream)
{
    return (uint64_t)stream->number * FORMAT_INDEX_BLOCK;
}

/* ---- writing ---- */

static bool write_block(struct index_stream *stream)
{
    assert(stream->at > 0 && stream->at <= ROOM);
    uint64_t used = sizeof *stream->block + stream->at;
    uint64_t padded = (used + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
    memset((char *)stream->block + used, 0, padded - used);
    stream->block->number = stream->number;
    stream->block->length = stream->at;
    stream->block->checksum = checksum_of(stream);
    if (offset_of(stream) + padded > stream->size)
        stream->error = ENOSPC;
    else
        stream->error = disk_write(stream->queue, stream->file, stream->block, padded,
                                   offset_of(stream), false);
    stream->number++;
    stream->at = 0;
    return stream->error == 0;
}

bool index_stream_put(struct index_stream *stream, const void *from, size_t len)
{
    while (len > 0) {
        assert(stream->at < ROOM);
        size_t step = len < ROOM - stream->at ? len : ROOM - stream->at;
        memcpy(bytes_of(stream) + stream->at, from, step);
        stream->at += (uint32_t)step;
        from = (const char *)from + step;
        len -= step;
        if (stream->at == ROOM && !write_block(stream))
            return false;
    }
    return true;
}

bool index_stream_end(struct index_stream *stream)
{
    return stream->at == 0 || write_block(stream);
}

/* ---- reading ---- */

static bool read_block(struct index_stream *stream)
{
    uint64_t offset = offset_of(stream);
    uint64_t left = offset < stream->size ? stream->size - offset : 0;
    uint64_t len = left < FORMAT_INDEX_BLOCK ? left / PAGE_SIZE * PAGE_SIZE : FORMAT_INDEX_BLOCK;
    if (len == 0 || disk_read(stream->queue, stream->file, stream->block, len, offset) != 0)
        return false;
    stream->at = 0;
    return stream->block->number == stream->number++ && stream->block->length > 0 &&
           stream->block->length <= len - sizeof *stream->block &&
           stream->block->checksum == checksum_of(stream);
}

bool index_stream_get(struct index_stream *stream, void *to, size_t len)
{
    while (len > 0) {
        if (stream->at == stream->block->length && !read_block(stream))
            return false;
        size_t left = stream->block->length - stream->at, step = len < left ? len : left;
        memcpy(to, bytes_of(stream) + stream->at, step);
        stream->at += (uint32_t)step;
        to = (char *)to + step;
        len -= step;
    }
    return true;
}
