/*
 * A segment keeps its class while it contains anything. When another class needs room and a
 * segment is all free, the maintenance thread makes it blank before it extends the file:
 *
 *     all free --detach--> no class --journal durable, zeros written--> blank --> any class
 *
 * Invariants
 * 1. The record that removes the class (ASSIGN of class 0) is durable before the zeros are
 *    written; then so are the deletions that emptied the segment. Redo skips everything before
 *    that record, and zeroes the segment if no class follows (redo.c, recover.c).
 * 2. A segment becomes blank, and available, only when the zeros are durable. No checkpoint drops
 *    the record before that: the maintenance thread does both, one after the other.
 * 3. A segment is not taken while any of its pages is being read or written, or is referenced.
 * 4. A class that has asked for room since the last round loses no segment. A waiting transaction
 *    has released its reservations; if they could be taken, it might fail to find them on every
 *    retry, forever.
 *
 * In the extent file only the header need be zeroed: the content of runs is read only where a
 * root names it.
 */
#include "storage/maintenance/reclaim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/cache/access_clock.h"
#include "storage/maintenance/writeback.h"

#define AT_ONCE 16u /* segments: one commit, then as many megabytes of zeros */

/* ---- removing the class ---- */

static bool is_in_use(const struct page_file *file, uint32_t segment)
{
    for (uint32_t page = segment * SEGMENT_PAGES; page < (segment + 1) * SEGMENT_PAGES; page++) {
        const struct frame *frame =
            file->table[page] ? arena_frame(file->arena, file->table[page]) : NULL;
        if (frame && (frame->state != FRAME_VALID || frame->refs > 0 || frame->writing))
            return true;
    }
    return false;
}

static uint32_t find_empty(const struct page_file *file, bool only_spare,
                           uint32_t segments[AT_ONCE])
{
    uint64_t taken[PAGE_FILE_CLASS_MAX] = {0}; /* slots of each class */
    uint32_t count = 0;
    assert(lock_is_held(&file->lock));
    for (uint32_t i = 0; i < file->segment_assigned && count < AT_ONCE; i++) {
        uint32_t size_class = file->segment_class[i];
        if (!page_file_segment_is_free(file, i) || page_file_was_asked(file, size_class) ||
            is_in_use(file, i))
            continue;
        uint64_t left = file->classes[size_class].free_count - taken[size_class];
        if (only_spare && left == file->segment_free[i])
            continue;
        taken[size_class] += file->segment_free[i];
        segments[count++] = i;
    }
    return count;
}

static bool journal_them(struct store *store, const struct page_file *file,
                         const uint32_t *segments, uint32_t count, uint64_t *commit)
{
    char *record;
    assert(count > 0 && count <= AT_ONCE);
    uint64_t length =
        sizeof(struct format_record) + count * (uint64_t)sizeof(struct format_operation);
    if (journal_begin(&store->journal, length, &record, commit) != STORE_OK)
        return false;
    *(struct format_record *)record = (struct format_record){(uint32_t)length, count};
    struct format_operation *operation = (void *)(record + sizeof(struct format_record));
    for (uint32_t i = 0; i < count; i++)
        operation[i] = (struct format_operation){
            .kind = FORMAT_ASSIGN, .file = file->id, .page = segments[i] * SEGMENT_PAGES};
    journal_end(&store->journal, NULL);
    return true;
}

static uint32_t detach(struct store *store, struct page_file *file, bool only_spare,
                       uint32_t segments[AT_ONCE], uint64_t *commit, bool *later)
{
    pthread_mutex_lock(&file->lock);
    uint32_t count = find_empty(file, only_spare, segments);
    *later = count > 0 && !journal_them(store, file, segments, count, commit);
    if (*later)
        count = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t page = 0; page < SEGMENT_PAGES; page++)
            page_file_drop(file, segments[i] * SEGMENT_PAGES + page);
        access_drop_segment(file, segments[i]);
        page_file_detach_segment(file, segments[i]);
    }
    pthread_mutex_unlock(&file->lock);
    return count;
}

/* ---- making it blank ---- */

static int write_zeros(struct store *store, struct page_file *file, const uint32_t *segments,
                       uint32_t count, char *zeros)
{
    uint64_t length = file->id == FORMAT_EXTENT_FILE ? PAGE_SIZE : SEGMENT_BYTES;
    int error = 0;
    memset(zeros, 0, length);
    for (uint32_t i = 0; i < count && !error; i++)
        error = disk_write(store->maintenance_queue, file->file, zeros, length,
                           (uint64_t)segments[i] * SEGMENT_BYTES, false);
    return error ? error : disk_flush(store->maintenance_queue, file->file);
}

uint32_t reclaim_segments(struct store *store, struct page_file *file, bool only_spare, bool *later)
{
    uint32_t segments[AT_ONCE];
    uint64_t commit;
    char *zeros = disk_alloc(SEGMENT_BYTES);
    *later = !zeros;
    uint32_t count = zeros ? detach(store, file, only_spare, segments, &commit, later) : 0;
    if (count > 0 && !writeback_sync(store, commit))
        count = 0;
    assert(count == 0 || commit <= journal_durable(&store->journal));
    int error = count > 0 ? write_zeros(store, file, segments, count, zeros) : 0;
    free(zeros);
    if (error) {
        env_fail(&store->env, "emptying segments", error);
        return 0;
    }
    pthread_mutex_lock(&file->lock);
    for (uint32_t i = 0; i < count; i++)
        page_file_add_blank(file, segments[i]);
    pthread_mutex_unlock(&file->lock);
    atomic_fetch_add(&store->segments_reclaimed, count);
    return count;
}
