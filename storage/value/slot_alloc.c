/*
 * Slots: reserving one of a class, with a fresh segment where there is none, and the frame of its
 * page.
 *
 * Invariant: a slot that was taken is nobody else's until it is given back (space_give_slot) or
 * committed. A segment is assigned by a record of its own, whatever becomes of the transaction.
 */
#include "storage/value/slot_alloc.h"

#include <string.h>

#include "storage/journal/record.h"
#include "storage/txn/room_wanted.h"
#include "storage/txn/wait.h"
#include "storage/txn/load.h"
#include "storage/value/free.h"

#define ROOM_WAIT_MS 2000 /* then a full disk is full */
#define FREE_LEAST 16u    /* slots or runs of a class */

/* Blank segments: with no more of them than a sixteenth of all, between these two, the keeper is
 * asked for others. All partitions fill up at the same time, and it makes one file longer after the
 * other. */
#define BLANKS_LEAST 2u
#define BLANKS_MOST 8u

/* What is full may soon have room again: when keys are evicted, what was given up is free, and
 * collections are taken apart. */
static enum store_result wait_for_room(struct store_txn *txn, struct space *space,
                                       uint32_t size_class)
{
    struct store *store = txn->store;
    bool extents = space->id == FORMAT_EXTENT_SPACE;
    int64_t now = env_clock_ms();
    if (!atomic_load(&store->full) || now >= atomic_load(&store->grow_retry_ms))
        return STORE_WAIT; /* the keeper is about to look */
    bool hope = evict_for(txn->worker, space, size_class);
    hope |= extents ? extent_free_is_near(store) : atomic_load(&store->grave_count) > 0;
    if (txn->room_since_ms == 0)
        txn->room_since_ms = now;
    if (!hope || now - txn->room_since_ms > ROOM_WAIT_MS)
        return STORE_FULL;
    atomic_store(&store->room_wanted, true);
    return STORE_WAIT;
}

static bool lacks_blanks(const struct space *space)
{
    uint32_t least = space->segment_count / 16;
    least = least < BLANKS_LEAST ? BLANKS_LEAST : least > BLANKS_MOST ? BLANKS_MOST : least;
    return space->blank_count <= least;
}

/* A fresh segment for the class, journaled. STORE_WAIT: the keeper is asked for room. */
static enum store_result assign_segment(struct store_txn *txn, struct space *space,
                                        uint32_t size_class)
{
    struct store *store = txn->store;
    bool lacks = lacks_blanks(space);
    if (lacks)
        space_note_asked(space, size_class);
    if (lacks && !space->growing) {
        space->growing = true;
        keeper_ask(store);
    }
    uint32_t segment;
    if (!space_take_blank(space, &segment))
        return wait_for_room(txn, space, size_class);
    uint32_t page = segment * SEGMENT_PAGES;
    uint32_t frame = space_add_frame_beside(space, page);
    if (!frame) {
        space_add_blank(space, segment);
        return STORE_WAIT;
    }
    char *record;
    uint64_t commit_number;
    uint64_t length = sizeof(struct format_record) + sizeof(struct format_operation);
    enum store_result result = journal_begin(&store->journal, length, &record, &commit_number);
    if (result != STORE_OK) {
        space_drop(space, page);
        space_add_blank(space, segment);
        return result;
    }
    *(struct format_record *)record = (struct format_record){(uint32_t)length, 1};
    *(struct format_operation *)(record + sizeof(struct format_record)) = (struct format_operation){
        .kind = FORMAT_ASSIGN, .space = space->id, .page = page, .slot = (uint8_t)size_class};
    journal_end(&store->journal, NULL);
    space_assign(space, segment, size_class);
    space_segment_header(space, segment, arena_memory(&store->cache.arena, frame));
    arena_frame(&store->cache.arena, frame)->state = FRAME_VALID;
    space_mark_dirty(space, frame, commit_number);
    return STORE_OK;
}

/* Where all is full, some slots are kept free, so that writers need not wait for evictions. */
static void keep_some(struct store_txn *txn, struct space *space, uint32_t size_class)
{
    if (atomic_load_explicit(&txn->store->full, memory_order_relaxed) &&
        space->classes[size_class].free_count < FREE_LEAST && space->blank_count == 0)
        evict_for(txn->worker, space, size_class);
}

/* Rather than none, a slot that is larger than needed. */
static bool take_larger(struct store_txn *txn, struct space *space, uint32_t size_class,
                        uint32_t *page, uint32_t *slot)
{
    uint32_t last = size_class > FORMAT_RUN_CLASS ? FORMAT_RUN_CLASS + FORMAT_EXTENT_PAGES
                                                  : FORMAT_SLAB_CLASSES;
    bool taken = false;
    if (!atomic_load(&txn->store->full) || space->blank_count > 0)
        return false;
    while (!taken && ++size_class <= last)
        taken = space_take_slot(space, size_class, page, slot);
    return taken;
}

enum store_result commit_take_slot(struct store_txn *txn, struct space *space, uint32_t size_class,
                                   uint32_t *page, uint32_t *slot)
{
    while (!space_take_slot(space, size_class, page, slot) &&
           !take_larger(txn, space, size_class, page, slot)) {
        enum store_result result = assign_segment(txn, space, size_class);
        if (result == STORE_WAIT)
            keeper_throttle(txn);
        if (result != STORE_OK)
            return result;
    }
    keep_some(txn, space, size_class);
    return STORE_OK;
}

enum store_result commit_slot_frame(struct store_txn *txn, struct space *space, uint32_t page,
                                    uint32_t slot, uint32_t *frame)
{
    if (space->table[page] == 0 && space_page_unused(space, page, slot)) {
        uint32_t number = space_add_frame(space, page, true);
        if (!number)
            return load_no_frame(txn);
        memset(arena_memory(&txn->store->cache.arena, number), 0, PAGE_SIZE);
        arena_frame(&txn->store->cache.arena, number)->state = FRAME_VALID;
    }
    return load_page(txn, space, page, frame);
}

enum store_result commit_hold(struct store_txn *txn, struct space *space, uint32_t *frame)
{
    if (!space_writable(space, frame)) {
        *frame = 0;
        return load_no_frame(txn);
    }
    space_ref(space, *frame);
    return STORE_OK;
}
