/*
 * Invariants
 * 1. A file's `pages` are what a read sees: every completed write. `stable` pages are what is
 *    certainly on the medium; a page is in both, once, while nothing of it is unflushed.
 * 2. Each unflushed page write is a version, oldest first. A flush makes the versions stable that
 *    had completed when it was submitted; a durable write makes stable what it wrote alone.
 * 3. Operations complete in random order, a few whenever the queue is reaped; while any is under
 *    way the queue's eventfd stays readable. No time is involved.
 * 4. Once the power is cut nothing changes any more, and every operation fails.
 */
#include "fault_disk.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PAGE 4096u
#define SECTOR 512u
#define SEGMENT (1u << 20)
#define FILES 140u

/* An unflushed write of one page. */
struct version {
    struct version *next;
    uint64_t order; /* completed as this event */
    uint32_t page;
    char bytes[PAGE];
};

struct stored_file {
    char name[16];
    bool exists, in_directory; /* its entry is durable */
    uint64_t size;
    char **pages, **stable; /* NULL: zeros */
    uint64_t room;          /* pages in the arrays */
    struct version *versions, *versions_last;
};

struct fault {
    char file[16];
    uint32_t nth;
    int error;
    bool lasting;
};

struct medium {
    pthread_mutex_t lock;
    struct rng rng;
    struct stored_file files[FILES];
    uint64_t events, cut_at, room;
    bool cut;
    struct fault faults[FAULT_KINDS];
};

struct fault_disk {
    struct disk base;
    struct medium *medium;
};

struct disk_file {
    struct medium *medium;
    struct stored_file *stored;
};

struct flying {
    struct disk_op *op;
    uint64_t submitted; /* as this event */
};

struct fault_queue {
    struct disk_queue base;
    struct medium *medium;
    int fd;
    struct flying *flying;
    uint32_t depth;
};

/* ---- pages ---- */

static void make_room(struct stored_file *file, uint64_t pages)
{
    if (pages <= file->room)
        return;
    file->pages = realloc(file->pages, pages * sizeof *file->pages);
    file->stable = realloc(file->stable, pages * sizeof *file->stable);
    must(file->pages && file->stable, "out of memory");
    memset(file->pages + file->room, 0, (pages - file->room) * sizeof *file->pages);
    memset(file->stable + file->room, 0, (pages - file->room) * sizeof *file->stable);
    file->room = pages;
}

static char *page_of(char **pages, uint32_t page)
{
    if (!pages[page])
        pages[page] = calloc(1, PAGE);
    must(pages[page], "out of memory");
    return pages[page];
}

static struct version *new_version(uint32_t page, const char *bytes, uint64_t order)
{
    struct version *version = malloc(sizeof *version);
    must(version, "out of memory");
    *version = (struct version){.page = page, .order = order};
    memcpy(version->bytes, bytes, PAGE);
    return version;
}

static void add_version(struct stored_file *file, struct version *version)
{
    if (file->versions)
        file->versions_last->next = version;
    else
        file->versions = version;
    file->versions_last = version;
}

/* Takes out the versions up to `order`, of one page or (UINT32_MAX) of all, and makes them stable
 * if asked to. */
static void retire(struct stored_file *file, uint32_t page, uint64_t order, bool keep)
{
    struct version *versions = file->versions;
    file->versions = file->versions_last = NULL;
    while (versions) {
        struct version *version = versions;
        versions = version->next;
        version->next = NULL;
        if (version->order > order || (page != UINT32_MAX && version->page != page)) {
            add_version(file, version);
            continue;
        }
        if (keep)
            memcpy(page_of(file->stable, version->page), version->bytes, PAGE);
        free(version);
    }
}

/* ---- the power goes ---- */

/* Sectors of unflushed pages are each old or of any of the versions; often a page keeps together.
 */
static void settle_version(struct medium *medium, struct stored_file *file,
                           const struct version *version)
{
    uint32_t fate = rng_below(&medium->rng, 4);
    char *to = page_of(file->stable, version->page);
    for (uint32_t i = 0; i < PAGE / SECTOR; i++)
        if (fate == 0 || (fate == 1 && rng_chance(&medium->rng, 50)))
            memcpy(to + i * SECTOR, version->bytes + i * SECTOR, SECTOR);
}

static void settle_file(struct medium *medium, struct stored_file *file)
{
    for (const struct version *v = file->versions; v; v = v->next)
        settle_version(medium, file, v);
    retire(file, UINT32_MAX, UINT64_MAX, false);
    bool lost = file->exists && !file->in_directory && rng_chance(&medium->rng, 50);
    if (lost) {
        file->exists = false;
        file->size = 0;
    }
    for (uint64_t i = 0; i < file->room; i++) {
        if (file->stable[i] && lost)
            memset(file->stable[i], 0, PAGE);
        if (file->stable[i])
            memcpy(page_of(file->pages, (uint32_t)i), file->stable[i], PAGE);
        else if (file->pages[i])
            memset(file->pages[i], 0, PAGE);
    }
}

/* Counts an event; false: there is no power any more. */
static bool event(struct medium *medium)
{
    medium->events++;
    if (!medium->cut && medium->cut_at && medium->events >= medium->cut_at)
        medium->cut = true;
    return !medium->cut;
}

static int fault_of(struct medium *medium, enum fault_kind kind, const struct stored_file *file)
{
    struct fault *fault = &medium->faults[kind];
    if (fault->nth == 0 || strncmp(file->name, fault->file, strlen(fault->file)) != 0)
        return 0;
    if (fault->nth > 1) {
        fault->nth--;
        return 0;
    }
    fault->nth = fault->lasting;
    return fault->error;
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
                memcpy(to, file->pages[page], PAGE);
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
            const char *from = (const char *)op->vectors[i].iov_base + at;
            must((uint64_t)(page + 1) * PAGE <= file->size, "a write behind the end of %s",
                 file->name);
            memcpy(page_of(file->pages, page), from, PAGE);
            add_version(file, new_version(page, from, medium->events));
            if (op->durable)
                retire(file, page, UINT64_MAX, true);
        }
    return 0;
}

/* What is under way when the power goes may be in any state, but is not acknowledged. */
static void leave_traces(struct medium *medium, const struct disk_op *op)
{
    struct stored_file *file = op->file->stored;
    uint32_t page = (uint32_t)(op->offset / PAGE);
    for (int i = 0; op->kind == DISK_WRITE && i < op->vector_count; i++)
        for (size_t at = 0; at < op->vectors[i].iov_len; at += PAGE, page++)
            add_version(file,
                        new_version(page, (char *)op->vectors[i].iov_base + at, medium->events));
}

static int perform(struct medium *medium, const struct flying *flying)
{
    static const enum fault_kind kinds[] = {FAULT_READ, FAULT_WRITE, FAULT_FLUSH};
    const struct disk_op *op = flying->op;
    if (!event(medium)) {
        if (flying->submitted)
            leave_traces(medium, op);
        return EIO;
    }
    int error = fault_of(medium, kinds[op->kind], op->file->stored);
    if (error)
        return error;
    if (op->kind == DISK_READ)
        return read_pages(op);
    if (op->kind == DISK_WRITE)
        return write_pages(medium, op);
    retire(op->file->stored, UINT32_MAX, flying->submitted, true);
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
    pthread_mutex_lock(&queue->medium->lock);
    while (base->first && base->in_flight < queue->depth) {
        struct disk_op *op = base->first;
        base->first = op->next;
        base->queued--;
        bool power = event(queue->medium);
        queue->flying[base->in_flight++] = (struct flying){op, power ? queue->medium->events : 0};
    }
    if (!base->first)
        base->last = NULL;
    pthread_mutex_unlock(&queue->medium->lock);
    if (base->in_flight)
        signal_queue(queue);
}

/* A random one of those under way; the error it ends with in its op. */
static struct disk_op *complete_one(struct fault_queue *queue)
{
    pthread_mutex_lock(&queue->medium->lock);
    uint32_t chosen = rng_below(&queue->medium->rng, queue->base.in_flight);
    struct flying flying = queue->flying[chosen];
    flying.op->error = perform(queue->medium, &flying);
    queue->flying[chosen] = queue->flying[--queue->base.in_flight];
    pthread_mutex_unlock(&queue->medium->lock);
    return flying.op;
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
        struct disk_op *op = complete_one(queue);
        op->done(op);
    }
    if (base->in_flight)
        signal_queue(queue);
}

static int fault_queue_create(struct disk *disk, uint32_t depth, struct disk_queue **queue)
{
    struct fault_queue *q = calloc(1, sizeof *q);
    must(q, "out of memory");
    q->base.disk = disk;
    q->medium = ((struct fault_disk *)disk)->medium;
    q->depth = depth;
    q->flying = calloc(depth, sizeof *q->flying);
    q->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    must(q->flying && q->fd >= 0, "out of memory or files");
    *queue = &q->base;
    return 0;
}

static void fault_queue_free(struct disk_queue *base)
{
    struct fault_queue *queue = (struct fault_queue *)base;
    must(base->in_flight == 0 && base->queued == 0, "a queue is freed with operations in it");
    close(queue->fd);
    free(queue->flying);
    free(queue);
}

static int fault_queue_fd(struct disk_queue *queue)
{
    return ((struct fault_queue *)queue)->fd;
}

/* ---- files ---- */

static struct stored_file *find_file(struct medium *medium, const char *name)
{
    for (uint32_t i = 0; i < FILES; i++)
        if (medium->files[i].exists && strcmp(medium->files[i].name, name) == 0)
            return &medium->files[i];
    return NULL;
}

static int open_locked(struct medium *medium, const char *name, bool create,
                       struct stored_file **file)
{
    if (!event(medium))
        return EIO;
    *file = find_file(medium, name);
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

static uint64_t used_bytes(const struct medium *medium)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < FILES; i++)
        bytes += medium->files[i].size;
    return bytes;
}

static void lengthen(struct stored_file *file, uint64_t to)
{
    if (to <= file->size)
        return;
    make_room(file, to / PAGE);
    file->size = to;
}

static int extend_locked(struct medium *medium, struct stored_file *file, uint64_t to)
{
    bool was_cut = medium->cut;
    uint64_t grows = to > file->size ? to - file->size : 0;
    if (!event(medium)) {
        if (!was_cut && grows) /* some of it may have been done */
            lengthen(file, file->size +
                               rng_below(&medium->rng, (uint32_t)(grows / PAGE)) * (uint64_t)PAGE);
        return EIO;
    }
    int error = fault_of(medium, FAULT_EXTEND, file);
    uint64_t used = used_bytes(medium), left = medium->room > used ? medium->room - used : 0;
    if (!error && medium->room && grows > left) {
        error = ENOSPC;
        lengthen(file, file->size + left / SEGMENT * SEGMENT);
    }
    if (!error)
        lengthen(file, to);
    return error;
}

static int fault_extend(struct disk_file *file, uint64_t to)
{
    pthread_mutex_lock(&file->medium->lock);
    int error = extend_locked(file->medium, file->stored, to);
    pthread_mutex_unlock(&file->medium->lock);
    return error;
}

static int fault_sync_directory(struct disk *disk)
{
    struct medium *medium = ((struct fault_disk *)disk)->medium;
    pthread_mutex_lock(&medium->lock);
    bool power = event(medium);
    for (uint32_t i = 0; i < FILES && power; i++)
        medium->files[i].in_directory = medium->files[i].exists;
    pthread_mutex_unlock(&medium->lock);
    return power ? 0 : EIO;
}

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

/* ---- the medium ---- */

struct medium *medium_new(uint64_t seed)
{
    struct medium *medium = calloc(1, sizeof *medium);
    must(medium, "out of memory");
    pthread_mutex_init(&medium->lock, NULL);
    medium->rng.state = seed;
    return medium;
}

void medium_free(struct medium *medium)
{
    for (uint32_t i = 0; i < FILES; i++) {
        struct stored_file *file = &medium->files[i];
        retire(file, UINT32_MAX, UINT64_MAX, false);
        for (uint64_t page = 0; page < file->room; page++) {
            free(file->pages[page]);
            free(file->stable[page]);
        }
        free(file->pages);
        free(file->stable);
    }
    pthread_mutex_destroy(&medium->lock);
    free(medium);
}

struct disk *medium_disk(struct medium *medium)
{
    struct fault_disk *disk = calloc(1, sizeof *disk);
    must(disk, "out of memory");
    disk->base.ops = &fault_ops;
    disk->medium = medium;
    for (uint32_t i = 0; i < FILES && medium->cut; i++)
        settle_file(medium, &medium->files[i]);
    if (medium->cut)
        medium->cut_at = 0;
    medium->cut = false;
    return &disk->base;
}

void medium_cut_after(struct medium *medium, uint64_t events)
{
    pthread_mutex_lock(&medium->lock);
    medium->cut_at = events ? medium->events + events : 0;
    pthread_mutex_unlock(&medium->lock);
}

void medium_cut_now(struct medium *medium)
{
    pthread_mutex_lock(&medium->lock);
    medium->cut = true;
    pthread_mutex_unlock(&medium->lock);
}

bool medium_is_cut(struct medium *medium)
{
    pthread_mutex_lock(&medium->lock);
    bool is_cut = medium->cut;
    pthread_mutex_unlock(&medium->lock);
    return is_cut;
}

uint64_t medium_events(struct medium *medium)
{
    pthread_mutex_lock(&medium->lock);
    uint64_t events = medium->events;
    pthread_mutex_unlock(&medium->lock);
    return events;
}

void medium_fail(struct medium *medium, enum fault_kind kind, const char *file, uint32_t nth,
                 int error, bool lasting)
{
    pthread_mutex_lock(&medium->lock);
    struct fault *fault = &medium->faults[kind];
    *fault = (struct fault){.nth = nth, .error = error, .lasting = lasting};
    snprintf(fault->file, sizeof fault->file, "%s", file ? file : "");
    pthread_mutex_unlock(&medium->lock);
}

void medium_set_room(struct medium *medium, uint64_t bytes)
{
    pthread_mutex_lock(&medium->lock);
    medium->room = bytes;
    pthread_mutex_unlock(&medium->lock);
}

uint64_t medium_bytes(struct medium *medium)
{
    pthread_mutex_lock(&medium->lock);
    uint64_t bytes = used_bytes(medium);
    pthread_mutex_unlock(&medium->lock);
    return bytes;
}

/* ---- direct access ---- */

static struct stored_file *existing(struct medium *medium, const char *name)
{
    struct stored_file *file = find_file(medium, name);
    must(file, "there is no file %s", name);
    return file;
}

uint64_t medium_size(struct medium *medium, const char *file)
{
    return existing(medium, file)->size;
}

void medium_peek(struct medium *medium, const char *name, uint64_t offset, void *to, size_t len)
{
    struct stored_file *file = existing(medium, name);
    for (size_t i = 0; i < len; i++, offset++) {
        const char *page = file->pages[offset / PAGE];
        ((char *)to)[i] = page ? page[offset % PAGE] : 0;
    }
}

void medium_poke(struct medium *medium, const char *name, uint64_t offset, const void *from,
                 size_t len)
{
    struct stored_file *file = existing(medium, name);
    retire(file, UINT32_MAX, UINT64_MAX, true);
    for (size_t i = 0; i < len; i++, offset++) {
        uint32_t page = (uint32_t)(offset / PAGE);
        page_of(file->pages, page)[offset % PAGE] = ((const char *)from)[i];
        page_of(file->stable, page)[offset % PAGE] = ((const char *)from)[i];
    }
}
