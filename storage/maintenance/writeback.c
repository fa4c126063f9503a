/*
 * Write-behind and checkpoints, by the maintenance thread.
 *
 * A checkpoint notes the position of the journal (its mark), then goes once over every page file
 * in page order and writes dirty pages, neighbours in one operation, flushes the files and moves
 * the journal's tail to the mark. Meanwhile pages may become dirty again; every page that was
 * dirty at the mark is written.
 *
 * Invariants
 * 1. A page is written only when the newest commit in its frame is durable in the journal.
 * 2. While its write is in flight, the frame is referenced and marked `writing`, so it never
 *    changes.
 * 3. The tail moves only after all of that is flushed and the superblock with the new tail is
 *    durable.
 */
#include "storage/maintenance/writeback.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/value/long_record.h"
#include "storage/maintenance/maintenance.h"

#define BATCH_WRITES 32u
#define SYNC_AGE_MS 900 /* everysec: the maintenance thread looks every 100 ms */
#define NO_SYNC_AGE_MS 30000

struct page_write {
    struct disk_op op;
    uint32_t page, count;
    uint32_t frames[PAGE_FILE_BATCH_PAGES];
    struct iovec vectors[PAGE_FILE_BATCH_PAGES];
};

struct batch {
    uint32_t count;
    uint64_t newest; /* newest commit in any of its frames */
    struct page_write writes[BATCH_WRITES];
};

struct batch *writeback_batch(void)
{
    return malloc(sizeof(struct batch));
}

/* ---- collecting ---- */

/* The first dirty page from `page` on; UINT32_MAX: none. */
static uint32_t next_dirty(const struct page_file *file, uint32_t page)
{
    uint32_t end = file->segment_count * SEGMENT_PAGES;
    while (page < end) {
        uint64_t word = file->dirty[page / 64] >> (page % 64);
        if (word)
            return page + (uint32_t)__builtin_ctzll(word);
        page = (page / 64 + 1) * 64;
    }
    return UINT32_MAX;
}

static void add_page(struct page_file *file, struct batch *batch, uint32_t page)
{
    struct page_write *write = batch->count ? &batch->writes[batch->count - 1] : NULL;
    if (!write || write->page + write->count != page || write->count == PAGE_FILE_BATCH_PAGES) {
        assert(batch->count < BATCH_WRITES);
        write = &batch->writes[batch->count++];
        write->page = page;
        write->count = 0;
    }
    uint32_t number = file->table[page];
    struct frame *frame = arena_frame(file->arena, number);
    assert(number && frame->dirty && !frame->writing && frame->state == FRAME_VALID);
    if (frame->commit > batch->newest)
        batch->newest = frame->commit;
    page_file_mark_clean(file, number);
    page_file_ref(file, number);
    frame->writing = true;
    write->frames[write->count] = number;
    write->vectors[write->count++] = (struct iovec){arena_memory(file->arena, number), PAGE_SIZE};
}

/* A frame that an earlier batch is still writing cannot be dirty: a change has replaced it. */
static void gather(struct page_file *file, struct batch *batch, uint32_t *cursor)
{
    assert(lock_is_held(&file->lock));
    batch->count = 0;
    batch->newest = 0;
    uint32_t page;
    while ((page = next_dirty(file, *cursor)) != UINT32_MAX) {
        const struct page_write *last = batch->count ? &batch->writes[batch->count - 1] : NULL;
        bool extends =
            last && last->page + last->count == page && last->count < PAGE_FILE_BATCH_PAGES;
        if (batch->count == BATCH_WRITES && !extends)
            break;
        add_page(file, batch, page);
        *cursor = page + 1;
    }
}

/* ---- writing ---- */

static void counted(struct disk_op *op)
{
    --*(uint32_t *)op->arg;
}

static int write_batch(struct store *store, struct page_file *file, struct batch *batch)
{
    uint32_t left = batch->count;
    int error = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct page_write *write = &batch->writes[i];
        write->op = (struct disk_op){.kind = DISK_WRITE,
                                     .file = file->file,
                                     .vectors = write->vectors,
                                     .vector_count = (int)write->count,
                                     .offset = (uint64_t)write->page * PAGE_SIZE,
                                     .done = counted,
                                     .arg = &left};
        disk_queue_op(store->maintenance_queue, &write->op);
    }
    while (left > 0) {
        store->disk->ops->submit(store->maintenance_queue);
        store->disk->ops->reap(store->maintenance_queue, left);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        atomic_fetch_add_explicit(&store->pages_written, batch->writes[i].count,
                                  memory_order_relaxed);
        if (batch->writes[i].op.error)
            error = batch->writes[i].op.error;
    }
    return error;
}

/* After a failed write the frames are marked dirty again, so that their content is not evicted. */
static void release(struct page_file *file, struct batch *batch, bool failed)
{
    pthread_mutex_lock(&file->lock);
    for (uint32_t i = 0; i < batch->count; i++)
        for (uint32_t j = 0; j < batch->writes[i].count; j++) {
            uint32_t number = batch->writes[i].frames[j];
            struct frame *frame = arena_frame(file->arena, number);
            assert(frame->writing && frame->refs > 0);
            frame->writing = false;
            if (failed && frame->state == FRAME_VALID)
                page_file_mark_dirty(file, number, frame->commit);
            page_file_unref(file, number);
        }
    pthread_mutex_unlock(&file->lock);
}

bool writeback_step(struct store *store, struct page_file *file, struct batch *batch,
                    uint32_t *cursor)
{
    pthread_mutex_lock(&file->lock);
    gather(file, batch, cursor);
    pthread_mutex_unlock(&file->lock);
    if (batch->count == 0)
        return false;
    bool durable =
        batch->newest <= journal_durable(&store->journal) || writeback_sync(store, batch->newest);
    assert(!durable || batch->newest <= journal_durable(&store->journal));
    int error = durable ? write_batch(store, file, batch) : 0;
    if (error)
        env_fail(&store->env, "writing pages", error);
    release(file, batch, error || !durable);
    return !env_failed(&store->env);
}

/* ---- the journal ---- */

bool writeback_sync(struct store *store, uint64_t commit)
{
    while (journal_durable(&store->journal) < commit && !env_failed(&store->env)) {
        long_record_write(store);
        journal_kick(&store->journal, store->maintenance_queue, 0);
        store->disk->ops->submit(store->maintenance_queue);
        if (store->maintenance_queue->in_flight)
            store->disk->ops->reap(store->maintenance_queue, 1);
        else
            maintenance_nap(store, 1); /* a worker's group is in flight */
    }
    return !env_failed(&store->env);
}

void writeback_sync_by_age(struct store *store)
{
    int sync = atomic_load(&store->journal.sync);
    int64_t limit = sync == STORE_SYNC_NO ? NO_SYNC_AGE_MS : SYNC_AGE_MS;
    if (journal_age(&store->journal, env_clock_ms()) >= limit)
        writeback_sync(store, atomic_load(&store->journal.appended));
}

/* ---- checkpoints ---- */

static int flush_files(struct store *store)
{
    int error = 0;
    for (uint32_t i = 0; i < store->partition_count && !error; i++) {
        error = disk_flush(store->maintenance_queue, store->partitions[i].file.file);
        writeback_sync_by_age(store);
    }
    return error ? error : disk_flush(store->maintenance_queue, store->extents.file);
}

int writeback_finish(struct store *store, const struct journal_mark *mark, bool clean)
{
    int error = flush_files(store);
    struct format_superblock *super = &store->superblock.latest;
    assert(mark->commit >= super->tail_commit && mark->sequence >= super->tail_sequence);
    super->tail_position = mark->position;
    super->tail_sequence = mark->sequence;
    super->tail_previous = mark->previous;
    super->tail_commit = mark->commit;
    super->databases = mark->databases;
    super->clean = clean;
    super->clock_ms = (uint64_t)env_now_ms(&store->env);
    if (!error)
        error = superblock_write(&store->superblock);
    if (error) {
        env_fail(&store->env, "a checkpoint", error);
        return error;
    }
    journal_release(&store->journal, mark);
    long_record_release(store, mark->commit);
    atomic_fetch_add_explicit(&store->checkpoints, 1, memory_order_relaxed);
    return 0;
}
