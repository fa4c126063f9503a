/*
 * Invariants
 * 1. Operations complete in random order, a few whenever the queue is reaped; while any is under
 *    way the queue's eventfd stays readable. No time is involved but that of a hold.
 * 2. Once the power is cut every operation fails. What was under way then may have reached the
 *    medium, but is not acknowledged.
 */
#include "tests/storage/fault_disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "tests/storage/medium.h"

#define LOOK_AGAIN_MS 5 /* a hold may end by the clock */

struct fault_disk {
    struct disk base;
    struct medium *medium;
};

struct flying {
    struct disk_op *op;
    uint64_t submitted; /* as this event; 0: without power */
};

struct fault_queue {
    struct disk_queue base;
    struct fault_queue *next; /* of the medium's */
    struct medium *medium;
    int fd;
    struct flying *flying;
    uint32_t depth;
};

/* ---- what is under way ---- */

static enum fault_kind kind_of(const struct disk_op *op)
{
    static const enum fault_kind kinds[] = {FAULT_READ, FAULT_WRITE, FAULT_FLUSH};
    return kinds[op->kind];
}

static bool is_held(struct medium *medium, const struct flying *flying)
{
    return medium_holds(medium, kind_of(flying->op), flying->op->file->stored);
}

static void leave_traces(struct stored_file *file, const struct disk_op *op, uint64_t order)
{
    uint32_t page = (uint32_t)(op->offset / PAGE);
    for (int i = 0; op->kind == DISK_WRITE && i < op->vector_count; i++)
        for (size_t at = 0; at < op->vectors[i].iov_len; at += PAGE, page++)
            medium_trace_page(file, page, (char *)op->vectors[i].iov_base + at, order);
}

static void leave_all_traces(struct medium *medium, struct medium *copy)
{
    for (const struct fault_queue *queue = medium->queues; queue; queue = queue->next)
        for (uint32_t i = 0; i < queue->base.in_flight; i++) {
            const struct flying *flying = &queue->flying[i];
            size_t number = (size_t)(flying->op->file->stored - medium->files);
            if (flying->submitted)
                leave_traces(&copy->files[number], flying->op, medium->events);
        }
}

/* An event that changes the medium: how it is before that is recorded. */
static bool change_event(struct medium *medium)
{
    if (medium->visit && !medium->cut) {
        struct medium *copy = medium_copy_locked(medium);
        leave_all_traces(medium, copy);
        copy->cut = true;
        medium->visit(medium->visit_arg, copy);
    }
    return medium_event(medium);
}

/* ---- operations ---- */

static int read_pages(const struct disk_op *op)
{
    struct stored_file *file = op->file->stored;
    uint64_t page = op->offset / PAGE;
    for (int i = 0; i < op->vector_count; i++)
        for (size_t at = 0; at < op->vectors[i].iov_len; at += PAGE, page++) {
            if ((page + 1) * PAGE > file->size)
                return EIO;
            char *to = (char *)op->vectors[i].iov_base + at;
            if (file->pages[page])
                memcpy(to, file->pages[page]->bytes, PAGE);
            else
                memset(to, 0, PAGE);
        }
    return 0;
}

static int write_pages(struct medium *medium, const struct disk_op *op)
{
    struct stored_file *file = op->file->stored;
    uint32_t page = (uint32_t)(op->offset / PAGE);
    for (int i = 0; i < op->vector_count; i++)
        for (size_t at = 0; at < op->vectors[i].iov_len; at += PAGE, page++) {
            must((uint64_t)(page + 1) * PAGE <= file->size, "a write behind the end of %s",
                 file->name);
            medium_store_page(file, page, (char *)op->vectors[i].iov_base + at, medium->events,
                              op->durable);
        }
    return 0;
}

static int perform(struct medium *medium, const struct flying *flying)
{
    const struct disk_op *op = flying->op;
    struct stored_file *file = op->file->stored;
    bool power = op->kind == DISK_READ ? medium_event(medium) : change_event(medium);
    if (!power) {
        if (flying->submitted)
            leave_traces(file, op, medium->events);
        return EIO;
    }
    int error = medium_fault(medium, kind_of(op), file);
    if (error)
        return error;
    if (op->kind == DISK_READ)
        return read_pages(op);
    if (op->kind == DISK_WRITE)
        return write_pages(medium, op);
    medium_flush(file, flying->submitted);
    return 0;
}

static void signal_queue(struct fault_queue *queue)
{
    uint64_t one = 1;
    if (write(queue->fd, &one, sizeof one) < 0)
        return; /* it is readable already */
}

static void fault_submit(struct disk_queue *base)
{
    struct fault_queue *queue = (struct fault_queue *)base;
    struct medium *medium = queue->medium;
    pthread_mutex_lock(&medium->lock);
    while (base->queued > 0 && base->in_flight < queue->depth) {
        struct disk_op *op = STAILQ_FIRST(&base->pending);
        STAILQ_REMOVE_HEAD(&base->pending, link);
        base->queued--;
        bool power = op->kind == DISK_WRITE ? change_event(medium) : medium_event(medium);
        queue->flying[base->in_flight++] = (struct flying){op, power ? medium->events : 0};
    }
    pthread_mutex_unlock(&medium->lock);
    if (base->in_flight)
        signal_queue(queue);
}

/* A random one of those under way that are not held back; UINT32_MAX: there is none. */
static uint32_t choose(struct fault_queue *queue)
{
    uint32_t count = queue->base.in_flight, first = rng_below(&queue->medium->rng, count);
    for (uint32_t i = 0; i < count; i++)
        if (!is_held(queue->medium, &queue->flying[(first + i) % count]))
            return (first + i) % count;
    return UINT32_MAX;
}

static void wait_for_change(struct medium *medium)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_AGAIN_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&medium->changed, &medium->lock, &until);
}

/* One operation completes, the error it ends with in its op. NULL: all are held back, and there is
 * no need to wait. */
static struct disk_op *complete_one(struct fault_queue *queue, bool needed)
{
    struct medium *medium = queue->medium;
    struct disk_op *op = NULL;
    uint32_t chosen;
    pthread_mutex_lock(&medium->lock);
    while ((chosen = choose(queue)) == UINT32_MAX && needed)
        wait_for_change(medium);
    if (chosen != UINT32_MAX) {
        struct flying flying = queue->flying[chosen];
        flying.op->error = perform(medium, &flying);
        queue->flying[chosen] = queue->flying[--queue->base.in_flight];
        op = flying.op;
    }
    pthread_mutex_unlock(&medium->lock);
    return op;
}

static bool goes_on(struct fault_queue *queue)
{
    pthread_mutex_lock(&queue->medium->lock);
    bool more = rng_chance(&queue->medium->rng, 60);
    pthread_mutex_unlock(&queue->medium->lock);
    return more;
}

static void fault_reap(struct disk_queue *base, uint32_t least)
{
    struct fault_queue *queue = (struct fault_queue *)base;
    uint32_t bound = base->in_flight;
    for (uint32_t done = 0; base->in_flight && (done < least || (done < bound && goes_on(queue)));
         done++) {
        struct disk_op *op = complete_one(queue, done < least);
        if (!op)
            break;
        op->done(op);
    }
    if (base->in_flight)
        signal_queue(queue);
}

uint32_t medium_held(struct medium *medium)
{
    uint32_t held = 0;
    pthread_mutex_lock(&medium->lock);
    for (const struct fault_queue *queue = medium->queues; queue; queue = queue->next)
        for (uint32_t i = 0; i < queue->base.in_flight; i++)
            held += is_held(medium, &queue->flying[i]);
    pthread_mutex_unlock(&medium->lock);
    return held;
}

/* ---- queues ---- */

static int fault_queue_create(struct disk *disk, uint32_t depth, struct disk_queue **queue)
{
    struct fault_queue *q = calloc(1, sizeof *q);
    must(q, "out of memory");
    disk_queue_init(&q->base, disk);
    q->medium = ((struct fault_disk *)disk)->medium;
    q->depth = depth;
    q->flying = calloc(depth, sizeof *q->flying);
    q->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    must(q->flying && q->fd >= 0, "out of memory or files");
    pthread_mutex_lock(&q->medium->lock);
    q->next = q->medium->queues;
    q->medium->queues = q;
    pthread_mutex_unlock(&q->medium->lock);
    *queue = &q->base;
    return 0;
}

static void fault_queue_free(struct disk_queue *base)
{
    struct fault_queue *queue = (struct fault_queue *)base;
    must(base->in_flight == 0 && base->queued == 0, "a queue is freed with operations in it");
    pthread_mutex_lock(&queue->medium->lock);
    struct fault_queue **at = &queue->medium->queues;
    while (*at != queue)
        at = &(*at)->next;
    *at = queue->next;
    pthread_mutex_unlock(&queue->medium->lock);
    close(queue->fd);
    free(queue->flying);
    free(queue);
}

static int fault_queue_fd(struct disk_queue *queue)
{
    return ((struct fault_queue *)queue)->fd;
}

/* ---- files ---- */

static int open_locked(struct medium *medium, const char *name, bool create,
                       struct stored_file **file)
{
    if (!(create ? change_event(medium) : medium_event(medium)))
        return EIO;
    *file = medium_find_file(medium, name);
    if (!create)
        return *file ? 0 : ENOENT;
    if (*file)
        return EEXIST;
    for (uint32_t i = 0; i < FILES && !*file; i++)
        if (!medium->files[i].exists)
            *file = &medium->files[i];
    must(*file, "too many files");
    (*file)->exists = true;
    (*file)->in_directory = false;
    snprintf((*file)->name, sizeof(*file)->name, "%s", name);
    return 0;
}

static int fault_open(struct disk *disk, const char *name, bool create, struct disk_file **file)
{
    struct medium *medium = ((struct fault_disk *)disk)->medium;
    struct stored_file *stored;
    pthread_mutex_lock(&medium->lock);
    int error = open_locked(medium, name, create, &stored);
    pthread_mutex_unlock(&medium->lock);
    if (error)
        return error;
    *file = malloc(sizeof **file);
    must(*file, "out of memory");
    **file = (struct disk_file){medium, stored};
    return 0;
}

static void fault_close(struct disk_file *file)
{
    free(file);
}

static uint64_t fault_size(struct disk_file *file)
{
    pthread_mutex_lock(&file->medium->lock);
    uint64_t size = file->stored->size;
    pthread_mutex_unlock(&file->medium->lock);
    return size;
}

static int extend_locked(struct medium *medium, struct stored_file *file, uint64_t to)
{
    bool was_cut = medium->cut;
    uint64_t grows = to > file->size ? to - file->size : 0;
    if (!change_event(medium)) {
        if (!was_cut && grows) /* some of it may have been done */
            medium_lengthen(file, file->size + rng_below(&medium->rng, (uint32_t)(grows / PAGE)) *
                                                   (uint64_t)PAGE);
        return EIO;
    }
    int error = medium_fault(medium, FAULT_EXTEND, file);
    uint64_t used = medium_used(medium), left = medium->room > used ? medium->room - used : 0;
    if (!error && medium->room && grows > left) {
        error = ENOSPC;
        medium_lengthen(file, file->size + left / SEGMENT * SEGMENT);
    }
    if (!error || error == EIO) /* which its last step meets, the flush */
        medium_lengthen(file, to);
    return error;
}

static int fault_extend(struct disk_file *file, uint64_t to)
{
    pthread_mutex_lock(&file->medium->lock);
    while (medium_holds(file->medium, FAULT_EXTEND, file->stored))
        pthread_cond_wait(&file->medium->changed, &file->medium->lock);
    int error = extend_locked(file->medium, file->stored, to);
    pthread_mutex_unlock(&file->medium->lock);
    return error;
}

static int fault_sync_directory(struct disk *disk)
{
    struct medium *medium = ((struct fault_disk *)disk)->medium;
    pthread_mutex_lock(&medium->lock);
    bool power = change_event(medium);
    for (uint32_t i = 0; i < FILES && power; i++)
        medium->files[i].in_directory = medium->files[i].exists;
    pthread_mutex_unlock(&medium->lock);
    return power ? 0 : EIO;
}

/* ---- the disk ---- */

static void fault_free(struct disk *disk)
{
    free(disk);
}

static bool fault_direct(struct disk *disk)
{
    (void)disk;
    return true;
}

static const struct disk_ops fault_ops = {
    .open = fault_open,
    .close = fault_close,
    .size = fault_size,
    .extend = fault_extend,
    .sync_directory = fault_sync_directory,
    .queue_create = fault_queue_create,
    .queue_free = fault_queue_free,
    .queue_fd = fault_queue_fd,
    .submit = fault_submit,
    .reap = fault_reap,
    .free = fault_free,
    .direct = fault_direct,
};

struct disk *medium_disk(struct medium *medium)
{
    struct fault_disk *disk = calloc(1, sizeof *disk);
    must(disk, "out of memory");
    disk->base.ops = &fault_ops;
    disk->medium = medium;
    if (medium->cut)
        medium_settle(medium);
    return &disk->base;
}

/* ---- stores on it ---- */

struct medium *rig_begin(struct rig *rig, uint64_t seed)
{
    rig_defaults(rig);
    return medium_new(seed);
}

void rig_end(struct rig *rig, struct medium *medium)
{
    rig_close_well(rig);
    medium_free(medium);
}

struct medium *rig_begin_scanned(struct rig *rig)
{
    struct medium *medium = medium_new(1);
    rig_defaults(rig);
    rig->options.partition_count = 1;
    rig->options.scans = true; /* what is rotten shows at the start */
    rig_open_on(rig, medium);
    return medium;
}

void rig_crash(struct rig *rig, struct medium *medium)
{
    medium_set_fate(medium, FATE_KEPT);
    medium_cut_now(medium);
    must(rig_close(rig) != STORE_OK, "closing without power");
}

uint64_t rig_damaged(const struct rig *rig)
{
    struct store_stats stats;
    store_stats(rig->store, &stats);
    return stats.damaged_items;
}

void rig_open_on(struct rig *rig, struct medium *medium)
{
    must(rig_open(rig, medium_disk(medium)) == STORE_OK, "open: %s", rig->message);
}

void rig_reopen(struct rig *rig, struct medium *medium)
{
    rig_close_well(rig);
    rig_open_on(rig, medium);
}

bool rig_try_open(struct rig *rig, struct medium *medium, uint64_t cut_after)
{
    struct disk *disk = medium_disk(medium);
    medium_cut_after(medium, cut_after);
    enum store_result result = rig_open(rig, disk);
    medium_cut_after(medium, 0);
    bool cut = medium_is_cut(medium);
    must(result == STORE_OK || cut, "opening fails: %s", rig->message);
    if (result == STORE_OK && cut)
        must(rig_close(rig) != STORE_LOCKED, "closing");
    return result == STORE_OK && !cut;
}
