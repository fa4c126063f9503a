/*
 * Slots: reserves a slot of a class, in a fresh segment if none is free, and the frame of its page.
 *
 * Invariant: a reserved slot belongs to its transaction alone until it is given back
 * (page_file_give_slot) or committed. A segment is assigned by a commit of its own, and stays
 * assigned if the transaction fails.
 */
#include "storage/value/slot_alloc.h"

#include <assert.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/journal/record.h"
#include "storage/txn/room_wanted.h"
#include "storage/txn/wait.h"
#include "storage/txn/load.h"
#include "storage/value/free.h"

#define ROOM_WAIT_MS 2000        /* after that a full disk is reported as full */
#define CHECKPOINT_WAIT_MS 60000 /* the same, while checkpoints may make room */
#define CHECKPOINTS 2u /* the first one may begin too early, or flush what the second one frees */
#define FREE_LEAST 16u /* slots or runs of a class to keep free */
#define SEARCH_AGAIN_MS 100 /* between searches to keep these free, if none succeeds */

/* Blank segments: when at most a sixteenth of all is left, bounded by these two, the maintenance
 * thread is asked for more. All partitions fill up at the same time, and it extends one file after
 * the other. */
#define BLANKS_LEAST 2u
#define BLANKS_MOST 8u

/* A checkpoint gives the runs of long records back. */
static bool checkpoint_makes_room(const struct page_file *file, struct store *store)
{
    return file->id == FORMAT_EXTENT_FILE && journal_long_record_bytes(&store->journal) > 0;
}

static bool is_too_long(const struct store_txn *txn, int64_t waited_ms, bool checkpoint_helps)
{
    uint64_t done = atomic_load(&txn->store->checkpoints) - txn->room_checkpoints;
    return waited_ms > (checkpoint_helps && done < CHECKPOINTS ? CHECKPOINT_WAIT_MS : ROOM_WAIT_MS);
}

/* A full class may soon have room again: when a checkpoint gives back the runs of long records,
 * keys are evicted, deferred runs become free, and dropped collections are purged. No key is
 * evicted before there has been time for a short checkpoint. Evictions and purges wait for a
 * transaction that holds the store lock, so it must not wait for them. */
static enum store_result wait_for_room(struct store_txn *txn, struct page_file *file,
                                       uint32_t size_class)
{
    struct store *store = txn->store;
    bool extents = file->id == FORMAT_EXTENT_FILE;
    int64_t now = env_clock_ms();
    if (!atomic_load(&store->full) || now >= atomic_load(&store->grow_retry_ms))
        return STORE_WAIT; /* the maintenance thread is about to check */
    if (txn->room_since_ms == 0) {
        txn->room_since_ms = now;
        txn->room_checkpoints = atomic_load(&store->checkpoints);
    }
    int64_t waited_ms = now - txn->room_since_ms;
    bool is_alone = txn->hold == HOLDS_STORE, evicts = false;
    bool checkpoint_helps = checkpoint_makes_room(file, store);
    if (!checkpoint_helps || waited_ms > SEARCH_AGAIN_MS)
        evicts = evict_for(txn->worker, file, size_class, txn->room_since_ms);
    if (!extents)
        evicts |= atomic_load(&store->dropped_tree_count) > 0;
    bool hope =
        checkpoint_helps || (evicts && !is_alone) || (extents && extent_free_is_near(store));
    if (!hope || is_too_long(txn, waited_ms, checkpoint_helps))
        return STORE_FULL;
    atomic_store(&store->room_wanted, true);
    return STORE_WAIT;
}

static bool lacks_blanks(const struct page_file *file)
{
    uint32_t least = file->segment_count / 16;
    least = least < BLANKS_LEAST ? BLANKS_LEAST : least > BLANKS_MOST ? BLANKS_MOST : least;
    return file->blank_count <= least;
}

/* Assigns a fresh segment to the class, journaled. STORE_WAIT: the maintenance thread is asked for
 * room. */
static enum store_result assign_segment(struct store_txn *txn, struct page_file *file,
                                        uint32_t size_class)
{
    struct store *store = txn->store;
    if (env_failed(&store->env)) /* no file grows any more */
        return STORE_REFUSED;
    bool lacks = lacks_blanks(file);
    if (lacks)
        page_file_note_asked(file, size_class);
    if (lacks && !file->growing) {
        file->growing = true;
        maintenance_ask(store);
    }
    uint32_t segment;
    if (!page_file_take_blank(file, &segment))
        return wait_for_room(txn, file, size_class);
    uint32_t page = segment * SEGMENT_PAGES;
    uint32_t frame = page_file_add_frame_beside(file, page);
    if (!frame) {
        page_file_add_blank(file, segment);
        return STORE_WAIT;
    }
    char *record;
    uint64_t commit_number;
    uint64_t length = sizeof(struct format_record) + sizeof(struct format_operation);
    enum store_result result = journal_begin(&store->journal, length, &record, &commit_number);
    if (result != STORE_OK) {
        page_file_drop(file, page);
        page_file_add_blank(file, segment);
        return result;
    }
    *(struct format_record *)record = (struct format_record){(uint32_t)length, 1};
    *(struct format_operation *)(record + sizeof(struct format_record)) = (struct format_operation){
        .kind = FORMAT_ASSIGN, .file = file->id, .page = page, .slot = (uint8_t)size_class};
    journal_end(&store->journal, NULL);
    page_file_assign(file, segment, size_class);
    page_file_segment_header(file, segment, arena_memory(&store->cache.arena, frame));
    arena_frame(&store->cache.arena, frame)->state = FRAME_VALID;
    page_file_mark_dirty(file, frame, commit_number);
    return STORE_OK;
}

/* When the disk is full, keeps some slots free, so that writers need not wait for evictions. */
static void keep_some(struct store_txn *txn, struct page_file *file, uint32_t size_class)
{
    if (atomic_load_explicit(&txn->store->full, memory_order_relaxed) &&
        file->classes[size_class].free_count < FREE_LEAST && file->blank_count == 0 &&
        !checkpoint_makes_room(file, txn->store))
        evict_for(txn->worker, file, size_class, env_clock_ms() - SEARCH_AGAIN_MS);
}

/* Takes a slot that is larger than needed rather than none. */
static bool take_larger(struct store_txn *txn, struct page_file *file, uint32_t size_class,
                        uint32_t *page, uint32_t *slot)
{
    uint32_t last = size_class > FORMAT_RUN_CLASS ? FORMAT_RUN_CLASS + FORMAT_EXTENT_PAGES
                                                  : FORMAT_SLAB_CLASSES;
    bool taken = false;
    if (!atomic_load(&txn->store->full) || file->blank_count > 0)
        return false;
    while (!taken && ++size_class <= last)
        taken = page_file_take_slot(file, size_class, page, slot);
    return taken;
}

enum store_result commit_take_slot(struct store_txn *txn, struct page_file *file,
                                   uint32_t size_class, uint32_t *page, uint32_t *slot)
{
    assert(size_class > 0 && size_class < PAGE_FILE_CLASS_MAX && lock_is_held(&file->lock));
    while (!page_file_take_slot(file, size_class, page, slot) &&
           !take_larger(txn, file, size_class, page, slot)) {
        if (txn->prefetch_run == PREFETCH_RUN_ACTIVE) /* which keeps nothing, and must not wait */
            return STORE_WAIT;
        enum store_result result = assign_segment(txn, file, size_class);
        if (result == STORE_WAIT)
            maintenance_throttle(txn);
        if (result != STORE_OK)
            return result;
    }
    keep_some(txn, file, size_class);
    return STORE_OK;
}

enum store_result commit_slot_frame(struct store_txn *txn, struct page_file *file, uint32_t page,
                                    uint32_t slot, uint32_t *frame)
{
    assert(lock_is_held(&file->lock));
    if (file->table[page] == 0 && page_file_page_unused(file, page, slot)) {
        uint32_t number = page_file_add_frame(file, page, true);
        if (!number)
            return load_no_frame(txn);
        memset(arena_memory(&txn->store->cache.arena, number), 0, PAGE_SIZE);
        arena_frame(&txn->store->cache.arena, number)->state = FRAME_VALID;
    }
    return load_page(txn, file, page, frame);
}

enum store_result commit_hold(struct store_txn *txn, struct page_file *file, uint32_t *frame)
{
    assert(*frame != 0 && lock_is_held(&file->lock));
    if (!page_file_writable(file, frame)) {
        *frame = 0;
        return load_no_frame(txn);
    }
    txn->held_frames += arena_frame(file->arena, *frame)->refs == 0;
    page_file_ref(file, *frame);
    return STORE_OK;
}
