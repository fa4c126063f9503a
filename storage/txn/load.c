/*
 * Reading pages into the cache.
 *
 * Invariants
 * 1. A frame in state LOADING has exactly one read, in flight or held back, which holds a
 *    reference. Only load_blocking reads without one, while it holds the page file's lock.
 * 2. Every waiter on a frame counts once in its transaction's `waits`, and holds a pin.
 * 3. Items are verified once, when their page arrives; a damaged one is marked in the frame, so
 *    that it is never served.
 * 4. At most LOW_PRIORITY_READS_MAX low-priority reads, for writers and prefetch runs, are in
 *    flight per worker: that many keep a device busy, and more would only delay every GET. While
 *    some are held back, others are in flight, and each completion submits one.
 */
#include "storage/txn/load.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "storage/base/checks.h"
#include "storage/txn/memory.h"
#include "storage/txn/txn_state.h"
#include "storage/txn/wait.h"
#include "storage/txn/verify.h"

#define LOW_PRIORITY_READS_MAX 64u
#define OWN_FRAMES_WAIT_MS 100 /* if the transaction itself holds most frames */
#define OTHERS_SHARE 8u        /* all but this share of the limit are most frames */
#define FRAME_WAIT_LIMIT 400u  /* waits, and milliseconds */

/* A transaction that waits for a frame's load. */
struct waiter {
    struct waiter *next;
    struct store_txn *txn;
};

struct pin {
    struct page_file *file;
    uint32_t frame;
};

struct load {
    struct disk_op op;
    struct page_file *file;
    struct store_worker *worker;
    TAILQ_ENTRY(load) of_low_priority; /* the reads held back */
    bool low_priority;
    struct store_txn
        *prefetch_run; /* whose miss began the read, with its generation then; or NULL */
    uint64_t prefetch_run_generation;
    uint32_t page, count;
    uint32_t frames[PAGE_FILE_BATCH_PAGES];
    struct iovec vectors[PAGE_FILE_BATCH_PAGES];
};

/* ---- pins ---- */

static bool pinned(const struct store_txn *txn, const struct page_file *file, uint32_t frame)
{
    for (uint32_t i = txn->pin_count; i > 0; i--)
        if (txn->pins[i - 1].file == file && txn->pins[i - 1].frame == frame)
            return true;
    return false;
}

static bool pin(struct store_txn *txn, struct page_file *file, uint32_t frame)
{
    if (!array_reserve(&txn->pins, &txn->pin_capacity, txn->pin_count + 1, sizeof *txn->pins))
        return false;
    assert(arena_frame(file->arena, frame)->state != FRAME_FREE);
    txn->pins[txn->pin_count++] = (struct pin){file, frame};
    page_file_ref(file, frame);
    return true;
}

void load_release_pins(struct store_txn *txn)
{
    for (uint32_t i = 0; i < txn->pin_count; i++) {
        struct page_file *file = txn->pins[i].file;
        bool held = file->id != FORMAT_EXTENT_FILE && request_holds(txn, file->id);
        if (!held)
            pthread_mutex_lock(&file->lock);
        page_file_unref(file, txn->pins[i].frame);
        if (!held)
            pthread_mutex_unlock(&file->lock);
    }
    txn->pin_count = 0;
}

void load_release_extent_pins(struct store_txn *txn)
{
    struct page_file *file = &txn->store->extents;
    uint32_t kept = 0;
    pthread_mutex_lock(&file->lock);
    for (uint32_t i = 0; i < txn->pin_count; i++) {
        struct pin held = txn->pins[i];
        bool extents = held.file == file;
        if (extents && arena_frame(file->arena, held.frame)->state != FRAME_LOADING)
            page_file_unref(file, held.frame);
        else
            txn->pins[kept++] = held;
    }
    txn->pin_count = kept;
    pthread_mutex_unlock(&file->lock);
}

/* A run with too many pins continues in blocking mode, which needs no pins. */
static void check_budget(struct store_txn *txn)
{
    uint32_t budget =
        atomic_load_explicit(&txn->store->cache.arena.limit, memory_order_relaxed) / 8;
    if (txn->pin_count > budget)
        txn->blocking_io = true;
}

/* ---- arrival ---- */

static void verify_items(struct page_file *file, uint32_t page, char *memory)
{
    uint32_t size_class = page_file_class_of(file, page);
    if (page % SEGMENT_PAGES == 0 || size_class == 0 || size_class >= FORMAT_RUN_CLASS)
        return;
    uint32_t size = format_class_size(size_class), count = format_class_slots(size_class);
    for (uint32_t slot = 0; slot < count; slot++) {
        struct format_item *item = (struct format_item *)(memory + slot * size);
        bool empty = file->free_slots[page] >> slot & 1;
        if (empty || (verify_slot(file, page, slot, item) != SLOT_DAMAGED &&
                      item->version <= atomic_load(&file->engine->journal.appended)))
            continue;
        if (item->database != FORMAT_DAMAGED) {
            env_log(&file->engine->env, STORE_LOG_WARNING,
                    "Damaged item in partition %u, page %u, slot %u: it is not served", file->id,
                    page, slot);
            atomic_fetch_add_explicit(&file->engine->damaged, 1, memory_order_relaxed);
        }
        item->database = FORMAT_DAMAGED;
    }
}

static void wake_waiters(struct frame *frame, struct page_file *file, bool failed,
                         struct store_worker *from)
{
    while (frame->waiters) {
        struct waiter *waiter = frame->waiters;
        frame->waiters = waiter->next;
        if (failed) {
            waiter->txn->failed_file = file;
            waiter->txn->failed_page = frame->page;
        }
        request_wake(waiter->txn, from);
        free(waiter);
    }
}

static void arrived(struct load *load, uint32_t i, bool failed)
{
    struct page_file *file = load->file;
    uint32_t number = load->frames[i];
    struct frame *frame = arena_frame(file->arena, number);
    assert(frame->refs > 0); /* the read's reference */
    if (frame->state == FRAME_LOADING) {
        if (!failed) {
            verify_items(file, frame->page, arena_memory(file->arena, number));
            frame->state = FRAME_VALID;
        }
        wake_waiters(frame, file, failed, load->worker);
        if (failed)
            page_file_drop(file, frame->page);
    }
    page_file_unref(file, number);
}

/* The page file's lock is held. */
static void mark_held(struct load *load, bool held)
{
    for (uint32_t i = 0; i < load->count; i++)
        arena_frame(load->file->arena, load->frames[i])->held = held;
}

static void hold_back(struct load *load)
{
    struct store_worker *worker = load->worker;
    assert(load->low_priority && worker->low_priority_reads == LOW_PRIORITY_READS_MAX);
    mark_held(load, true);
    TAILQ_INSERT_TAIL(&worker->low_priority, load, of_low_priority);
}

static void let_one_go(struct store_worker *worker)
{
    struct load *load = TAILQ_FIRST(&worker->low_priority);
    assert(worker->low_priority_reads > 0);
    if (!load) {
        worker->low_priority_reads--;
        return;
    }
    TAILQ_REMOVE(&worker->low_priority, load, of_low_priority);
    pthread_mutex_lock(&load->file->lock);
    mark_held(load, false);
    pthread_mutex_unlock(&load->file->lock);
    disk_queue_op(worker->queue, &load->op);
}

/* A transaction of normal priority waits for the page too: submit the read. A read that another
 * worker holds back stays held back. */
static void hurry(struct store_worker *worker, const struct page_file *file, uint32_t page)
{
    struct load *load;
    TAILQ_FOREACH (load, &worker->low_priority, of_low_priority)
        if (load->file == file && page - load->page < load->count)
            break;
    if (!load)
        return;
    TAILQ_REMOVE(&worker->low_priority, load, of_low_priority);
    mark_held(load, false);
    load->low_priority = false;
    disk_queue_op(worker->queue, &load->op);
}

static void loaded(struct disk_op *op)
{
    struct load *load = op->arg;
    struct page_file *file = load->file;
    struct store *store = file->engine;
    atomic_fetch_add_explicit(&store->pages_read, load->count, memory_order_relaxed);
    if (op->error) {
        atomic_fetch_add_explicit(&store->read_errors, 1, memory_order_relaxed);
        env_log(&store->env, STORE_LOG_WARNING, "Reading page %u of page file %u failed: %s",
                load->page, file->id, strerror(op->error));
    }
    pthread_mutex_lock(&file->lock);
    for (uint32_t i = 0; i < load->count; i++)
        arrived(load, i, op->error != 0);
    pthread_mutex_unlock(&file->lock);
    if (load->low_priority)
        let_one_go(load->worker);
    if (load->prefetch_run && load->prefetch_run->generation == load->prefetch_run_generation &&
        !op->error)
        store->hooks->page_arrived(load->prefetch_run);
    free(load);
}

/* ---- starting reads ---- */

/* Allocates frames for up to `count` absent pages from `page` on; returns how many were
 * available. */
static uint32_t gather(struct load *load, uint32_t count)
{
    struct page_file *file = load->file;
    while (load->count < count && load->count < PAGE_FILE_BATCH_PAGES) {
        uint32_t page = load->page + load->count;
        if (file->table[page])
            break;
        uint32_t number = page_file_add_frame(file, page, false);
        if (!number)
            break;
        page_file_ref(file, number);
        load->frames[load->count] = number;
        load->vectors[load->count] = (struct iovec){arena_memory(file->arena, number), PAGE_SIZE};
        load->count++;
    }
    return load->count;
}

/* Queues one read of absent pages from `page` on. Returns how many it covers; 0: no frame or no
 * memory. A low-priority read may be held back. prefetch_run: the transaction to resume when the
 * page has arrived; or NULL. */
static uint32_t start(struct store_worker *worker, struct page_file *file, uint32_t page,
                      uint32_t count, bool low_priority, struct store_txn *prefetch_run)
{
    struct load *load = malloc(sizeof *load);
    if (!load)
        return 0;
    load->file = file;
    load->worker = worker;
    load->page = page;
    load->count = 0;
    load->low_priority = low_priority;
    load->prefetch_run = prefetch_run;
    load->prefetch_run_generation = prefetch_run ? prefetch_run->generation : 0;
    uint32_t covered = gather(load, count);
    if (covered == 0) {
        free(load);
        return 0;
    }
    load->op = (struct disk_op){.kind = DISK_READ,
                                .file = file->file,
                                .vectors = load->vectors,
                                .vector_count = (int)covered,
                                .offset = (uint64_t)page * PAGE_SIZE,
                                .done = loaded,
                                .arg = load};
    if (low_priority && worker->low_priority_reads == LOW_PRIORITY_READS_MAX) {
        hold_back(load);
        return covered;
    }
    worker->low_priority_reads += low_priority;
    disk_queue_op(worker->queue, &load->op);
    return covered;
}

/* No transaction waits for the page or pins it yet. Mark it visited: otherwise the eviction hand,
 * once it reaches the newest pages, would evict each prefetched page before its use. */
static void start_ahead(struct store_worker *worker, struct page_file *file, uint32_t page,
                        struct store_txn *prefetch_run)
{
    if (start(worker, file, page, 1, prefetch_run != NULL, prefetch_run) > 0)
        arena_frame(file->arena, file->table[page])->visited = true;
}

static enum store_result wait_for(struct store_txn *txn, struct page_file *file, uint32_t number)
{
    struct frame *frame = arena_frame(file->arena, number);
    struct waiter *waiter = malloc(sizeof *waiter);
    assert(frame->state == FRAME_LOADING && txn_state(txn) == TXN_RUNNING);
    if (!waiter || !pin(txn, file, number)) {
        free(waiter);
        return STORE_NO_MEMORY;
    }
    *waiter = (struct waiter){frame->waiters, txn};
    frame->waiters = waiter;
    if (frame->held && txn->write_count == 0)
        hurry(txn->worker, file, frame->page);
    request_wait(txn);
    check_budget(txn);
    return STORE_WAIT;
}

/* Reads one page while the partition stays locked: only for transactions that could not progress
 * otherwise. */
static enum store_result load_blocking(struct store_txn *txn, struct page_file *file, uint32_t page,
                                       uint32_t *number)
{
    assert(txn->blocking_io && txn->prefetch_run != PREFETCH_RUN_ACTIVE);
    memory_measure_late(txn->store);
    *number = page_file_add_frame(file, page, true);
    if (!*number)
        return STORE_NO_MEMORY;
    struct store *store = file->engine;
    struct frame *frame = arena_frame(file->arena, *number);
    char *memory = arena_memory(file->arena, *number);
    int error = disk_read(txn->worker->sync_queue, file->file, memory, PAGE_SIZE,
                          (uint64_t)page * PAGE_SIZE);
    atomic_fetch_add_explicit(&store->pages_read, 1, memory_order_relaxed);
    if (error) {
        atomic_fetch_add_explicit(&store->read_errors, 1, memory_order_relaxed);
        page_file_drop(file, page);
        return STORE_IO;
    }
    verify_items(file, page, memory);
    frame->state = FRAME_VALID;
    return STORE_OK;
}

#ifdef VELLUM_WAIT
/* In the test build, a resident page is sometimes treated as absent on first access. */
static bool pretend_absent(struct store_txn *txn, struct page_file *file, uint32_t number)
{
    if (txn->blocking_io || txn->prefetch_run == PREFETCH_RUN_ACTIVE || pinned(txn, file, number))
        return false;
    txn->random = txn->random * 6364136223846793005ull + 1442695040888963407ull;
    return txn->random >> 62 == 0 && pin(txn, file, number);
}

static void note_touched(struct store_txn *txn, struct page_file *file, uint32_t page)
{
    txn->touched[txn->touched_count++ % TOUCHED_MOST] = (struct touched){file, page};
}

/* In blocking mode each look-up may evict any page of the file that is not held. */
static void pretend_evicted(struct store_txn *txn, struct page_file *file)
{
    if (!txn->blocking_io)
        return;
    for (uint32_t i = 0; i < txn->touched_count && i < TOUCHED_MOST; i++)
        if (txn->touched[i].file == file)
            page_file_move(file, txn->touched[i].page);
}

static void move_touched(struct store_txn *txn)
{
    for (uint32_t i = 0; i < txn->touched_count && i < TOUCHED_MOST; i++)
        if (request_holds(txn, txn->touched[i].file->id))
            page_file_move(txn->touched[i].file, txn->touched[i].page);
    txn->touched_count = 0;
}
#else
static void pretend_evicted(struct store_txn *txn, struct page_file *file)
{
    (void)txn;
    (void)file;
}

static bool pretend_absent(struct store_txn *txn, struct page_file *file, uint32_t number)
{
    (void)txn;
    (void)file;
    (void)number;
    return false;
}

static void note_touched(struct store_txn *txn, struct page_file *file, uint32_t page)
{
    (void)txn;
    (void)file;
    (void)page;
}

static void move_touched(struct store_txn *txn)
{
    (void)txn;
}
#endif

void load_leave_pages(struct store_txn *txn)
{
    txn->leavings++;
    move_touched(txn);
}

/* A commit holds all of its frames at once. Frames may be few for a moment only. */
static bool holds_most_frames(struct store_txn *txn)
{
    if (env_clock_ms() - txn->frames_since_ms < OWN_FRAMES_WAIT_MS)
        return false;
    memory_measure_late(txn->store);
    uint32_t limit = atomic_load(&txn->store->cache.arena.limit);
    return txn->held_frames + txn->pin_count >= limit - limit / OTHERS_SHARE;
}

/* So many times and milliseconds: it is woken by each group of the journal, too. */
static bool waited_for_frames(const struct store_txn *txn, uint32_t limit)
{
    return txn->frame_waits > limit && env_clock_ms() - txn->frames_since_ms > limit;
}

/* Frames become free as pages are written and other transactions finish; but a transaction may
 * itself hold the frames it waits for. */
enum store_result load_no_frame(struct store_txn *txn)
{
    txn->starved = true;
    if (++txn->frame_waits == 1)
        txn->frames_since_ms = env_clock_ms();
    if (waited_for_frames(txn, FRAME_WAIT_LIMIT) || holds_most_frames(txn))
        return STORE_NO_MEMORY;
    if (waited_for_frames(txn, FRAME_WAIT_LIMIT / 2))
        txn->blocking_io = true;
    maintenance_throttle(txn);
    return STORE_WAIT;
}

static enum store_result load_absent(struct store_txn *txn, struct page_file *file, uint32_t page,
                                     uint32_t *number)
{
    if (txn->failed_file == file && txn->failed_page == page)
        return STORE_IO;
    counter_add(&file->misses, 1);
    if (txn->prefetch_run == PREFETCH_RUN_ACTIVE) {
        txn->found_absent = true;
        start_ahead(txn->worker, file, page, txn);
        return STORE_WAIT;
    }
    if (txn->blocking_io)
        return load_blocking(txn, file, page, number);
    if (start(txn->worker, file, page, 1, txn->write_count > 0, NULL) == 0)
        return load_no_frame(txn);
    return wait_for(txn, file, file->table[page]);
}

enum store_result load_page(struct store_txn *txn, struct page_file *file, uint32_t page,
                            uint32_t *number)
{
    assert(lock_is_held(&file->lock));
    pretend_evicted(txn, file);
    *number = file->table[page];
    if (!*number)
        return load_absent(txn, file, page, number);
    struct frame *frame = arena_frame(file->arena, *number);
    if (frame->state == FRAME_LOADING)
        return txn->prefetch_run == PREFETCH_RUN_ACTIVE || pinned(txn, file, *number)
                   ? STORE_WAIT
                   : wait_for(txn, file, *number);
    if (!frame->visited)
        frame->visited = true;
    counter_add(&file->hits, 1);
    note_touched(txn, file, page);
    return pretend_absent(txn, file, *number) ? STORE_WAIT : STORE_OK;
}

enum store_result load_pages(struct store_txn *txn, struct page_file *file, uint32_t page,
                             uint32_t count)
{
    enum store_result result = STORE_OK;
    if (txn->failed_file == file && txn->failed_page - page < count)
        return STORE_IO;
    if (txn->prefetch_run == PREFETCH_RUN_ACTIVE) /* large values are read only when needed */
        return STORE_WAIT;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = file->table[page + i];
        if (!number && start(txn->worker, file, page + i, count - i, false, NULL) == 0)
            return load_no_frame(txn);
        number = file->table[page + i];
        if (arena_frame(file->arena, number)->state == FRAME_VALID) {
            if (!pinned(txn, file, number) && !pin(txn, file, number))
                return STORE_NO_MEMORY;
            continue;
        }
        enum store_result waited =
            pinned(txn, file, number) ? STORE_WAIT : wait_for(txn, file, number);
        if (waited != STORE_WAIT)
            return waited;
        result = STORE_WAIT;
    }
    return result;
}

void load_prefetch(struct store_worker *worker, struct page_file *file, uint32_t page)
{
    if (!file->table[page])
        start_ahead(worker, file, page, NULL);
}
