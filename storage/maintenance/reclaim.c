/*
 * A segment keeps its class while there is anything in it. When another class needs room and one is
 * all free, the keeper makes it blank before it makes the file longer:
 *
 *     of a class, all free --detach--> of none --journal durable, zeros written--> blank --> any
 * class
 *
 * Invariants
 * 1. The record that takes the class away (ASSIGN of class 0) is durable before the zeros are
 *    written: then so are the deletions that emptied the segment. Redo leaves out what came before
 *    that record, and zeroes the segment if no class follows (redo.c, recover.c).
 * 2. It is blank, and may be taken, only when the zeros are durable. So is the checkpoint that
 *    forgets the record: the keeper makes both, one after the other.
 * 3. Nobody has a page of it under way: a frame that is being read, written or is referenced keeps
 *    the segment from being taken.
 * 4. No class that has asked for room since the last time loses any: a transaction that waits for
 *    more has given back what it had, and would find it gone when it runs again, for ever.
 *
 * Of extents only the header need go: what runs hold is read only where a root names it.
 */
#include "storage/maintenance/reclaim.h"

#include <stdlib.h>
#include <string.h>

#include "storage/cache/access_clock.h"
#include "storage/maintenance/writeback.h"

#define AT_ONCE 16u /* segments: one commit, then as many megabytes of zeros */

/* ---- taking the class away ---- */

static bool is_in_use(const struct space *space, uint32_t segment)
{
    for (uint32_t page = segment * SEGMENT_PAGES; page < (segment + 1) * SEGMENT_PAGES; page++) {
        const struct frame *frame =
            space->table[page] ? arena_frame(space->arena, space->table[page]) : NULL;
        if (frame && (frame->state != FRAME_VALID || frame->refs > 0 || frame->writing))
            return true;
    }
    return false;
}

static uint32_t find_empty(const struct space *space, uint32_t segments[AT_ONCE])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < space->segment_assigned && count < AT_ONCE; i++)
        if (space_segment_is_free(space, i) && !space_was_asked(space, space->segment_class[i]) &&
            !is_in_use(space, i))
            segments[count++] = i;
    return count;
}

static bool journal_them(struct store *store, const struct space *space, const uint32_t *segments,
                         uint32_t count, uint64_t *commit)
{
    char *record;
    uint64_t length =
        sizeof(struct format_record) + count * (uint64_t)sizeof(struct format_operation);
    if (journal_begin(&store->journal, length, &record, commit) != STORE_OK)
        return false;
    *(struct format_record *)record = (struct format_record){(uint32_t)length, count};
    struct format_operation *operation = (void *)(record + sizeof(struct format_record));
    for (uint32_t i = 0; i < count; i++)
        operation[i] = (struct format_operation){
            .kind = FORMAT_ASSIGN, .space = space->id, .page = segments[i] * SEGMENT_PAGES};
    journal_end(&store->journal, NULL);
    return true;
}

static uint32_t detach(struct store *store, struct space *space, uint32_t segments[AT_ONCE],
                       uint64_t *commit)
{
    pthread_mutex_lock(&space->lock);
    uint32_t count = find_empty(space, segments);
    if (count > 0 && !journal_them(store, space, segments, count, commit))
        count = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t page = 0; page < SEGMENT_PAGES; page++)
            space_drop(space, segments[i] * SEGMENT_PAGES + page);
        use_drop_segment(space, segments[i]);
        space_detach_segment(space, segments[i]);
    }
    pthread_mutex_unlock(&space->lock);
    return count;
}

/* ---- making it blank ---- */

static int write_zeros(struct store *store, struct space *space, const uint32_t *segments,
                       uint32_t count, char *zeros)
{
    uint64_t length = space->id == FORMAT_EXTENT_SPACE ? PAGE_SIZE : SEGMENT_BYTES;
    int error = 0;
    memset(zeros, 0, length);
    for (uint32_t i = 0; i < count && !error; i++)
        error = disk_write(store->keeper_queue, space->file, zeros, length,
                           (uint64_t)segments[i] * SEGMENT_BYTES, false);
    return error ? error : disk_flush(store->keeper_queue, space->file);
}

uint32_t reclaim_segments(struct store *store, struct space *space)
{
    uint32_t segments[AT_ONCE];
    uint64_t commit;
    char *zeros = disk_alloc(SEGMENT_BYTES);
    uint32_t count = zeros ? detach(store, space, segments, &commit) : 0;
    if (count > 0 && !writeback_sync(store, commit))
        count = 0;
    int error = count > 0 ? write_zeros(store, space, segments, count, zeros) : 0;
    free(zeros);
    if (error) {
        env_fail(&store->env, "emptying segments", error);
        return 0;
    }
    pthread_mutex_lock(&space->lock);
    for (uint32_t i = 0; i < count; i++)
        space_add_blank(space, segments[i]);
    pthread_mutex_unlock(&space->lock);
    atomic_fetch_add(&store->segments_reclaimed, count);
    return count;
}
