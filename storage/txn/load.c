/*
 * Reading pages into the cache.
 *
 * Invariants
 * 1. A frame in state LOADING has exactly one read in flight, which holds a reference.
 * 2. Every waiter on a frame counts once in its transaction's `waits`, and holds a pin.
 * 3. Items are verified once, when their page arrives; a damaged one is marked in the frame, so
 * that it is never served.
 * 4. Of the reads that only a write needs, PATIENT_DEPTH at most are under way for each worker:
 * that many keep a device busy, and more of them would only let every GET wait longer. While some
 * are held back, some are under way, and each that completes lets one go.
 */
#include "storage/txn/load.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/array.h"
#include "storage/base/checks.h"
#include "storage/txn/txn_state.h"
#include "storage/txn/wait.h"
#include "storage/txn/verify.h"

#define PATIENT_DEPTH 64u
#define FRAME_WAIT_LIMIT 400u /* of the keeper's rounds, about a millisecond each */

struct load {
    struct disk_op op;
    struct space *space;
    struct store_worker *worker;
    struct load *next; /* held back */
    bool patient;
    struct store_txn *scout; /* that came upon the page, as it was then; or NULL */
    uint64_t scout_life;
    uint32_t page, count;
    uint32_t frames[SPACE_BATCH_PAGES];
    struct iovec vectors[SPACE_BATCH_PAGES];
};

/* By some thread: a mutex does not say which. */
static bool is_locked(struct space *space)
{
    if (pthread_mutex_trylock(&space->lock) != 0)
        return true;
    pthread_mutex_unlock(&space->lock);
    return false;
}

/* ---- pins ---- */

static bool pinned(const struct store_txn *txn, const struct space *space, uint32_t frame)
{
    for (uint32_t i = txn->pin_count; i > 0; i--)
        if (txn->pins[i - 1].space == space && txn->pins[i - 1].frame == frame)
            return true;
    return false;
}

static bool pin(struct store_txn *txn, struct space *space, uint32_t frame)
{
    if (!array_reserve(&txn->pins, &txn->pin_capacity, txn->pin_count + 1, sizeof *txn->pins))
        return false;
    assert(arena_frame(space->arena, frame)->state != FRAME_FREE);
    txn->pins[txn->pin_count++] = (struct pin){space, frame};
    space_ref(space, frame);
    return true;
}

void load_release_pins(struct store_txn *txn)
{
    for (uint32_t i = 0; i < txn->pin_count; i++) {
        struct space *space = txn->pins[i].space;
        bool held = space->id != FORMAT_EXTENT_SPACE && request_holds(txn, space->id);
        if (!held)
            pthread_mutex_lock(&space->lock);
        space_unref(space, txn->pins[i].frame);
        if (!held)
            pthread_mutex_unlock(&space->lock);
    }
    txn->pin_count = 0;
}

void load_release_extent_pins(struct store_txn *txn)
{
    struct space *space = &txn->store->extents;
    uint32_t kept = 0;
    pthread_mutex_lock(&space->lock);
    for (uint32_t i = 0; i < txn->pin_count; i++) {
        struct pin held = txn->pins[i];
        bool extents = held.space == space;
        if (extents && arena_frame(space->arena, held.frame)->state != FRAME_LOADING)
            space_unref(space, held.frame);
        else
            txn->pins[kept++] = held;
    }
    txn->pin_count = kept;
    pthread_mutex_unlock(&space->lock);
}

/* More pages than a run may hold: it goes on in place, which needs no pins. */
static void check_budget(struct store_txn *txn)
{
    uint32_t budget =
        atomic_load_explicit(&txn->store->cache.arena.limit, memory_order_relaxed) / 8;
    if (txn->pin_count > budget)
        txn->in_place = true;
}

/* ---- arrival ---- */

static void verify_items(struct space *space, uint32_t page, char *memory)
{
    uint32_t size_class = space_class_of(space, page);
    if (page % SEGMENT_PAGES == 0 || size_class == 0 || size_class >= FORMAT_RUN_CLASS)
        return;
    uint32_t size = format_class_size(size_class), count = format_class_slots(size_class);
    for (uint32_t slot = 0; slot < count; slot++) {
        struct format_item *item = (struct format_item *)(memory + slot * size);
        bool empty = space->free_slots[page] >> slot & 1;
        if (empty || verify_slot(space, page, slot, item) != SLOT_DAMAGED)
            continue;
        if (item->database != FORMAT_DAMAGED) {
            env_log(&space->engine->env, STORE_LOG_WARNING,
                    "Damaged item in partition %u, page %u, slot %u: it is not served", space->id,
                    page, slot);
            atomic_fetch_add_explicit(&space->engine->damaged, 1, memory_order_relaxed);
        }
        item->database = FORMAT_DAMAGED;
    }
}

static void wake_waiters(struct frame *frame, struct space *space, bool failed,
                         struct store_worker *from)
{
    while (frame->waiters) {
        struct waiter *waiter = frame->waiters;
        frame->waiters = waiter->next;
        if (failed) {
            waiter->txn->failed_space = space;
            waiter->txn->failed_page = frame->page;
        }
        request_wake(waiter->txn, from);
        free(waiter);
    }
}

static void arrived(struct load *load, uint32_t i, bool failed)
{
    struct space *space = load->space;
    uint32_t number = load->frames[i];
    struct frame *frame = arena_frame(space->arena, number);
    assert(frame->refs > 0); /* that of the read */
    if (frame->state == FRAME_LOADING) {
        if (!failed) {
            verify_items(space, frame->page, arena_memory(space->arena, number));
            frame->state = FRAME_VALID;
        }
        wake_waiters(frame, space, failed, load->worker);
        if (failed)
            space_drop(space, frame->page);
    }
    space_unref(space, number);
}

/* Under the space's lock. */
static void mark_held(struct load *load, bool held)
{
    for (uint32_t i = 0; i < load->count; i++)
        arena_frame(load->space->arena, load->frames[i])->held = held;
}

static void hold_back(struct load *load)
{
    struct store_worker *worker = load->worker;
    assert(load->patient && worker->patient_reads == PATIENT_DEPTH);
    mark_held(load, true);
    if (worker->patient)
        worker->patient_last->next = load;
    else
        worker->patient = load;
    worker->patient_last = load;
}

static void let_one_go(struct store_worker *worker)
{
    struct load *load = worker->patient;
    assert(worker->patient_reads > 0);
    if (!load) {
        worker->patient_reads--;
        return;
    }
    worker->patient = load->next;
    pthread_mutex_lock(&load->space->lock);
    mark_held(load, false);
    pthread_mutex_unlock(&load->space->lock);
    disk_queue_op(worker->queue, &load->op);
}

/* Somebody who is not patient waits for the page too. What another worker holds back stays so. */
static void hurry(struct store_worker *worker, const struct space *space, uint32_t page)
{
    struct load *before = NULL, *load = worker->patient;
    while (load && (load->space != space || page - load->page >= load->count)) {
        before = load;
        load = load->next;
    }
    if (!load)
        return;
    *(before ? &before->next : &worker->patient) = load->next;
    if (worker->patient_last == load)
        worker->patient_last = before;
    mark_held(load, false);
    load->patient = false;
    disk_queue_op(worker->queue, &load->op);
}

static void loaded(struct disk_op *op)
{
    struct load *load = op->arg;
    struct space *space = load->space;
    struct store *store = space->engine;
    atomic_fetch_add_explicit(&store->pages_read, load->count, memory_order_relaxed);
    if (op->error) {
        atomic_fetch_add_explicit(&store->read_errors, 1, memory_order_relaxed);
        env_log(&store->env, STORE_LOG_WARNING, "Reading page %u of space %u failed: %s",
                load->page, space->id, strerror(op->error));
    }
    pthread_mutex_lock(&space->lock);
    for (uint32_t i = 0; i < load->count; i++)
        arrived(load, i, op->error != 0);
    pthread_mutex_unlock(&space->lock);
    if (load->patient)
        let_one_go(load->worker);
    if (load->scout && load->scout->life == load->scout_life && !op->error)
        store->hooks->page_arrived(load->scout);
    free(load);
}

/* ---- departure ---- */

/* Frames for up to `count` absent pages from `page` on; how many there were to be had. */
static uint32_t gather(struct load *load, uint32_t count)
{
    struct space *space = load->space;
    while (load->count < count && load->count < SPACE_BATCH_PAGES) {
        uint32_t page = load->page + load->count;
        if (space->table[page])
            break;
        uint32_t number = space_add_frame(space, page, false);
        if (!number)
            break;
        space_ref(space, number);
        load->frames[load->count] = number;
        load->vectors[load->count] = (struct iovec){arena_memory(space->arena, number), PAGE_SIZE};
        load->count++;
    }
    return load->count;
}

/* Queues one read of absent pages from `page` on. How many it covers; 0: no frame or no memory. A
 * patient one may wait for others first. scout: who goes on when it has come; or NULL. */
static uint32_t start(struct store_worker *worker, struct space *space, uint32_t page,
                      uint32_t count, bool patient, struct store_txn *scout)
{
    struct load *load = malloc(sizeof *load);
    if (!load)
        return 0;
    load->space = space;
    load->worker = worker;
    load->page = page;
    load->count = 0;
    load->next = NULL;
    load->patient = patient;
    load->scout = scout;
    load->scout_life = scout ? scout->life : 0;
    uint32_t covered = gather(load, count);
    if (covered == 0) {
        free(load);
        return 0;
    }
    load->op = (struct disk_op){.kind = DISK_READ,
                                .file = space->file,
                                .vectors = load->vectors,
                                .vector_count = (int)covered,
                                .offset = (uint64_t)page * PAGE_SIZE,
                                .done = loaded,
                                .arg = load};
    if (patient && worker->patient_reads == PATIENT_DEPTH) {
        hold_back(load);
        return covered;
    }
    worker->patient_reads += patient;
    disk_queue_op(worker->queue, &load->op);
    return covered;
}

/* Nobody waits for the page yet, and nobody holds it: it counts as used already, or the hand of the
 * eviction, where it has come to the newest, would take each such page before its turn. */
static void start_ahead(struct store_worker *worker, struct space *space, uint32_t page,
                        struct store_txn *scout)
{
    if (start(worker, space, page, 1, scout != NULL, scout) > 0)
        arena_frame(space->arena, space->table[page])->visited = true;
}

static enum store_result wait_for(struct store_txn *txn, struct space *space, uint32_t number)
{
    struct frame *frame = arena_frame(space->arena, number);
    struct waiter *waiter = malloc(sizeof *waiter);
    assert(frame->state == FRAME_LOADING && txn_state(txn) == TXN_RUNNING);
    if (!waiter || !pin(txn, space, number)) {
        free(waiter);
        return STORE_NO_MEMORY;
    }
    *waiter = (struct waiter){frame->waiters, txn};
    frame->waiters = waiter;
    if (frame->held && txn->write_count == 0)
        hurry(txn->worker, space, frame->page);
    request_wait(txn);
    check_budget(txn);
    return STORE_WAIT;
}

/* Reads one page while everybody waits: only transactions that could not get on otherwise do. */
static enum store_result load_in_place(struct store_txn *txn, struct space *space, uint32_t page,
                                       uint32_t *number)
{
    assert(txn->in_place && txn->scout != SCOUT_RUNNING);
    *number = space_add_frame(space, page, true);
    if (!*number)
        return STORE_NO_MEMORY;
    struct store *store = space->engine;
    struct frame *frame = arena_frame(space->arena, *number);
    char *memory = arena_memory(space->arena, *number);
    int error = disk_read(txn->worker->sync_queue, space->file, memory, PAGE_SIZE,
                          (uint64_t)page * PAGE_SIZE);
    atomic_fetch_add_explicit(&store->pages_read, 1, memory_order_relaxed);
    if (error) {
        atomic_fetch_add_explicit(&store->read_errors, 1, memory_order_relaxed);
        space_drop(space, page);
        return STORE_IO;
    }
    verify_items(space, page, memory);
    frame->state = FRAME_VALID;
    return STORE_OK;
}

#ifdef VELLUM_WAIT
/* In the test build a page that is there is as good as absent, now and then, on first touch. */
static bool pretend_absent(struct store_txn *txn, struct space *space, uint32_t number)
{
    if (txn->in_place || txn->scout == SCOUT_RUNNING || pinned(txn, space, number))
        return false;
    txn->random = txn->random * 6364136223846793005ull + 1442695040888963407ull;
    return txn->random >> 62 == 0 && pin(txn, space, number);
}

static void note_touched(struct store_txn *txn, struct space *space, uint32_t page)
{
    txn->touched[txn->touched_count++ % TOUCHED_MOST] = (struct touched){space, page};
}

static void move_touched(struct store_txn *txn)
{
    for (uint32_t i = 0; i < txn->touched_count && i < TOUCHED_MOST; i++)
        if (request_holds(txn, txn->touched[i].space->id))
            space_move(txn->touched[i].space, txn->touched[i].page);
    txn->touched_count = 0;
}
#else
static bool pretend_absent(struct store_txn *txn, struct space *space, uint32_t number)
{
    (void)txn;
    (void)space;
    (void)number;
    return false;
}

static void note_touched(struct store_txn *txn, struct space *space, uint32_t page)
{
    (void)txn;
    (void)space;
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

/* Frames come free as pages are written and others finish; but a transaction may itself hold what
 * it waits for. */
enum store_result load_no_frame(struct store_txn *txn)
{
    txn->starved = true;
    if (++txn->frame_waits > FRAME_WAIT_LIMIT)
        return STORE_NO_MEMORY;
    if (txn->frame_waits > FRAME_WAIT_LIMIT / 2)
        txn->in_place = true;
    keeper_throttle(txn);
    return STORE_WAIT;
}

static enum store_result load_absent(struct store_txn *txn, struct space *space, uint32_t page,
                                     uint32_t *number)
{
    if (txn->failed_space == space && txn->failed_page == page)
        return STORE_IO;
    counter_add(&space->misses, 1);
    if (txn->scout == SCOUT_RUNNING) {
        txn->found_absent = true;
        start_ahead(txn->worker, space, page, txn);
        return STORE_WAIT;
    }
    if (txn->in_place)
        return load_in_place(txn, space, page, number);
    if (start(txn->worker, space, page, 1, txn->write_count > 0, NULL) == 0)
        return load_no_frame(txn);
    return wait_for(txn, space, space->table[page]);
}

enum store_result load_page(struct store_txn *txn, struct space *space, uint32_t page,
                            uint32_t *number)
{
    assert(!storage_checks_enabled() || is_locked(space));
    *number = space->table[page];
    if (!*number)
        return load_absent(txn, space, page, number);
    struct frame *frame = arena_frame(space->arena, *number);
    if (frame->state == FRAME_LOADING)
        return txn->scout == SCOUT_RUNNING || pinned(txn, space, *number)
                   ? STORE_WAIT
                   : wait_for(txn, space, *number);
    if (!frame->visited)
        frame->visited = true;
    counter_add(&space->hits, 1);
    note_touched(txn, space, page);
    return pretend_absent(txn, space, *number) ? STORE_WAIT : STORE_OK;
}

enum store_result load_pages(struct store_txn *txn, struct space *space, uint32_t page,
                             uint32_t count)
{
    enum store_result result = STORE_OK;
    if (txn->failed_space == space && txn->failed_page - page < count)
        return STORE_IO;
    if (txn->scout == SCOUT_RUNNING) /* large values are read when they are needed */
        return STORE_WAIT;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = space->table[page + i];
        if (!number && start(txn->worker, space, page + i, count - i, false, NULL) == 0)
            return load_no_frame(txn);
        number = space->table[page + i];
        if (arena_frame(space->arena, number)->state == FRAME_VALID) {
            if (!pinned(txn, space, number) && !pin(txn, space, number))
                return STORE_NO_MEMORY;
            continue;
        }
        enum store_result waited =
            pinned(txn, space, number) ? STORE_WAIT : wait_for(txn, space, number);
        if (waited != STORE_WAIT)
            return waited;
        result = STORE_WAIT;
    }
    return result;
}

void load_prefetch(struct store_worker *worker, struct space *space, uint32_t page)
{
    if (!space->table[page])
        start_ahead(worker, space, page, NULL);
}
