/*
 * Disk operations on real files: libaio, O_DIRECT where the file system supports it.
 *
 * Invariants
 * 1. An op is in exactly one place: the queue's pending list, the kernel, or returned to its
 *    owner.
 * 2. in_flight counts the ops in the kernel; it never exceeds the depth of the io context.
 * 3. A released queue is kept by the disk for reuse, because the kernel takes some 30 ms to
 *    destroy an io context. At the end all of them are destroyed at once.
 */
#include "storage/base/disk_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAP_BATCH 128
#define EXTEND_STEP (4u << 20)
#define FILE_MODE 0600 /* whoever can open a file can read the data, and lock the server out */
#define DIRECTORY_MODE 0700

struct file_disk {
    struct disk base;
    int directory_fd;
    int lock_fd;
    bool direct;
    pthread_mutex_t lock; /* protects the following members */
    struct file_queue *resting;
};

struct disk_file {
    struct file_disk *disk;
    int fd;
};

struct file_queue {
    struct disk_queue base;
    struct file_queue *next; /* in the list of suspended queues */
    pthread_t ender;
    io_context_t context;
    uint32_t depth;
    int fd;
};

/* Tolerates other errors: if the file system has no locks, or none for directories, the lock
 * file must suffice. */
static bool is_locked_elsewhere(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* Each file is locked as well: it may also have a name in another directory. */
static int file_open(struct disk *disk, const char *name, bool create, struct disk_file **file)
{
    struct file_disk *d = (struct file_disk *)disk;
    int flags = O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0) | (d->direct ? O_DIRECT : 0);
    int fd = openat(d->directory_fd, name, flags, FILE_MODE);
    if (fd < 0)
        return errno;
    if (is_locked_elsewhere(fd)) {
        close(fd);
        return EBUSY;
    }
    *file = malloc(sizeof **file);
    if (!*file) {
        close(fd);
        return ENOMEM;
    }
    **file = (struct disk_file){d, fd};
    return 0;
}

static void file_close(struct disk_file *file)
{
    close(file->fd);
    free(file);
}

static uint64_t file_size(struct disk_file *file)
{
    struct stat status;
    return fstat(file->fd, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static int allocate(struct disk_file *file, uint64_t from, uint64_t to)
{
    int error = 0;
    do
        error = posix_fallocate(file->fd, (off_t)from, (off_t)(to - from));
    while (error == EINTR);
    return error;
}

/* Zeros are written, not only allocated: then a later write in place does not change the file
 * system's metadata, and a flush of it costs no more than the device's flush. */
static int file_extend(struct disk_file *file, uint64_t to)
{
    const uint64_t before = file_size(file);
    uint64_t from = before;
    char *zeros = disk_alloc(EXTEND_STEP);
    if (!zeros)
        return ENOMEM;
    memset(zeros, 0, EXTEND_STEP);
    int error = from < to ? allocate(file, from, to) : 0;
    while (!error && from < to) {
        size_t len = to - from < EXTEND_STEP ? to - from : EXTEND_STEP;
        ssize_t n = pwrite(file->fd, zeros, len, (off_t)from);
        if (n > 0)
            from += (uint64_t)n;
        else if (n == 0 || errno != EINTR)
            error = n == 0 ? EIO : errno;
    }
    if (error && ftruncate(file->fd, (off_t)before) != 0)
        error = EIO; /* the part without durable zeros must not be used */
    if (!error && fsync(file->fd) != 0)
        error = EIO; /* whatever the reason: no lack of room is an excuse for it */
    free(zeros);
    return error;
}

static int file_sync_directory(struct disk *disk)
{
    return fsync(((struct file_disk *)disk)->directory_fd) == 0 ? 0 : errno;
}

/* A suspended queue that is deep enough, or NULL. */
static struct file_queue *take_suspended(struct file_disk *d, uint32_t depth)
{
    pthread_mutex_lock(&d->lock);
    struct file_queue **at = &d->resting;
    while (*at && (*at)->depth < depth)
        at = &(*at)->next;
    struct file_queue *found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&d->lock);
    return found;
}

static int file_queue_create(struct disk *disk, uint32_t depth, struct disk_queue **queue)
{
    struct file_queue *q = take_suspended((struct file_disk *)disk, depth);
    if (q) {
        *queue = &q->base;
        return 0;
    }
    q = calloc(1, sizeof *q);
    if (!q)
        return ENOMEM;
    disk_queue_init(&q->base, disk);
    q->depth = depth;
    q->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int error = q->fd < 0 ? errno : -io_setup((int)depth, &q->context);
    if (error) {
        if (q->fd >= 0)
            close(q->fd);
        free(q);
        return error;
    }
    *queue = &q->base;
    return 0;
}

static void file_queue_free(struct disk_queue *queue)
{
    struct file_queue *q = (struct file_queue *)queue;
    struct file_disk *d = (struct file_disk *)queue->disk;
    assert(queue->in_flight == 0 && queue->queued == 0);
    pthread_mutex_lock(&d->lock);
    q->next = d->resting;
    d->resting = q;
    pthread_mutex_unlock(&d->lock);
}

static void *end_context(void *arg)
{
    struct file_queue *q = arg;
    io_destroy(q->context);
    return NULL;
}

static void end_queues(struct file_queue *queues)
{
    for (struct file_queue *q = queues; q; q = q->next)
        if (pthread_create(&q->ender, NULL, end_context, q) != 0) {
            end_context(q);
            q->ender = pthread_self();
        }
    while (queues) {
        struct file_queue *q = queues;
        queues = q->next;
        if (!pthread_equal(q->ender, pthread_self()))
            pthread_join(q->ender, NULL);
        close(q->fd);
        free(q);
    }
}

static int file_queue_fd(struct disk_queue *queue)
{
    return ((struct file_queue *)queue)->fd;
}

static void prepare(struct file_queue *q, struct disk_op *op)
{
    if (op->kind == DISK_FLUSH)
        io_prep_fdsync(&op->iocb, op->file->fd);
    else if (op->kind == DISK_READ)
        io_prep_preadv(&op->iocb, op->file->fd, op->vectors, op->vector_count,
                       (long long)op->offset);
    else
        io_prep_pwritev(&op->iocb, op->file->fd, op->vectors, op->vector_count,
                        (long long)op->offset);
    if (op->kind == DISK_WRITE && op->durable)
        op->iocb.aio_rw_flags = RWF_DSYNC;
    io_set_eventfd(&op->iocb, q->fd);
    op->iocb.data = op;
}

static void finish(struct disk_op *op, int error)
{
    op->error = error;
    op->done(op);
}

/* A rejected op (bad file, no memory in the kernel) fails alone; after EAGAIN it stays pending
 * until one of our operations has completed. */
static void file_submit(struct disk_queue *queue)
{
    struct file_queue *q = (struct file_queue *)queue;
    while (queue->queued > 0 && queue->in_flight < q->depth) {
        struct iocb *batch[REAP_BATCH];
        long count = 0;
        for (struct disk_op *op = STAILQ_FIRST(&queue->pending);
             op && count < REAP_BATCH && queue->in_flight + count < q->depth;
             op = STAILQ_NEXT(op, link)) {
            prepare(q, op);
            batch[count++] = &op->iocb;
        }
        int taken = io_submit(q->context, count, batch);
        if (taken == -EINTR)
            continue;
        if (taken == -EAGAIN && queue->in_flight > 0)
            return;
        if (taken == -EAGAIN) {
            usleep(100);
            continue;
        }
        struct disk_op *refused = taken < 0 ? STAILQ_FIRST(&queue->pending) : NULL;
        int drop = taken < 0 ? 1 : taken;
        for (int i = 0; i < drop; i++) {
            STAILQ_REMOVE_HEAD(&queue->pending, link);
            queue->queued--;
        }
        if (refused)
            finish(refused, -taken);
        else
            queue->in_flight += (uint32_t)taken;
    }
}

/* Skips the transferred part of an op and queues the rest of it again. */
static void go_on(struct disk_queue *queue, struct disk_op *op, uint64_t transferred)
{
    op->offset += transferred;
    while (transferred > 0) {
        struct iovec *v = op->vectors;
        uint64_t step = transferred < v->iov_len ? transferred : v->iov_len;
        v->iov_base = (char *)v->iov_base + step;
        v->iov_len -= step;
        transferred -= step;
        if (v->iov_len == 0) {
            op->vectors++;
            op->vector_count--;
        }
    }
    disk_queue_op(queue, op);
}

static void complete(struct disk_queue *queue, struct disk_op *op, long result)
{
    queue->in_flight--;
    if (result == -EINTR || result == -EAGAIN)
        disk_queue_op(queue, op);
    else if (result < 0)
        finish(op, (int)-result);
    else if (op->kind == DISK_FLUSH || (uint64_t)result == op->remaining)
        finish(op, 0);
    else if (result == 0) /* end of file where data must be, or a write of nothing */
        finish(op, EIO);
    else
        go_on(queue, op, (uint64_t)result);
}

static void file_reap(struct disk_queue *queue, uint32_t least)
{
    struct file_queue *q = (struct file_queue *)queue;
    struct io_event events[REAP_BATCH];
    struct timespec none = {0, 0};
    int count;
    do {
        if (queue->in_flight == 0)
            return;
        long wanted = least < queue->in_flight ? (long)least : (long)queue->in_flight;
        if (wanted > REAP_BATCH)
            wanted = REAP_BATCH;
        count = io_getevents(q->context, wanted, REAP_BATCH, events, wanted ? NULL : &none);
        for (int i = 0; i < count; i++)
            complete(queue, events[i].data, (long)events[i].res);
        least = count > 0 && (uint32_t)count < least ? least - (uint32_t)count : 0;
    } while (count == REAP_BATCH || count == -EINTR || least > 0);
}

static void file_free(struct disk *disk)
{
    struct file_disk *d = (struct file_disk *)disk;
    end_queues(d->resting);
    close(d->directory_fd);
    close(d->lock_fd);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static bool file_direct(struct disk *disk)
{
    return ((struct file_disk *)disk)->direct;
}

static const struct disk_ops file_ops = {
    .open = file_open,
    .close = file_close,
    .size = file_size,
    .extend = file_extend,
    .sync_directory = file_sync_directory,
    .queue_create = file_queue_create,
    .queue_free = file_queue_free,
    .queue_fd = file_queue_fd,
    .submit = file_submit,
    .reap = file_reap,
    .free = file_free,
    .direct = file_direct,
};

/* Of a directory without room for a probe: by a file that is there. */
static bool reads_direct(int directory_fd)
{
    int fd = openat(directory_fd, "superblock", O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    void *page = disk_alloc(4096);
    bool works = page && pread(fd, page, 4096, 0) >= 0;
    free(page);
    close(fd);
    return works;
}

static bool is_lack_of_room(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

/* Whether O_DIRECT reads and writes work on this file system. Tries them, since a successful
 * open proves nothing. */
static bool hint_direct(int directory_fd)
{
    int fd = openat(directory_fd, ".probe", O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0)
        return is_lack_of_room(errno) && reads_direct(directory_fd);
    void *page = disk_alloc(4096);
    bool works = page != NULL;
    if (works) {
        memset(page, 0, 4096);
        ssize_t written = pwrite(fd, page, 4096, 0);
        works = written < 0 ? is_lack_of_room(errno) && reads_direct(directory_fd)
                            : written == 4096 && pread(fd, page, 4096, 0) == 4096;
    }
    free(page);
    close(fd);
    unlinkat(directory_fd, ".probe", 0);
    return works;
}

/* The directory itself is locked as well: the lock file could be deleted, and created again by
 * a second server. */
static enum store_result lock_directory(struct file_disk *d, const char *directory, char *message)
{
    d->lock_fd = openat(d->directory_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (d->lock_fd < 0) {
        snprintf(message, STORE_MESSAGE_MAX, "Cannot create a lock file in %s: %s", directory,
                 strerror(errno));
        return STORE_IO;
    }
    struct stat status;
    if (fstat(d->lock_fd, &status) == 0 && (status.st_mode & 0777 & ~FILE_MODE) != 0)
        (void)fchmod(d->lock_fd, FILE_MODE); /* another owner's must do as it is */
    if (is_locked_elsewhere(d->directory_fd) || flock(d->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        snprintf(message, STORE_MESSAGE_MAX,
                 "The data directory %s is in use by another server: stop that one, or choose "
                 "another directory with --dir",
                 directory);
        return STORE_LOCKED;
    }
    return STORE_OK;
}

enum store_result disk_open_directory(const char *directory, struct disk **disk,
                                      char message[STORE_MESSAGE_MAX])
{
    struct file_disk *d = calloc(1, sizeof *d);
    if (!d) {
        snprintf(message, STORE_MESSAGE_MAX, "Out of memory");
        return STORE_NO_MEMORY;
    }
    d->base.ops = &file_ops;
    d->lock_fd = -1;
    if (mkdir(directory, DIRECTORY_MODE) != 0 && errno != EEXIST) {
        snprintf(message, STORE_MESSAGE_MAX, "Cannot create the data directory %s: %s", directory,
                 strerror(errno));
        free(d);
        return STORE_IO;
    }
    d->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->directory_fd < 0) {
        snprintf(message, STORE_MESSAGE_MAX, "Cannot open the data directory %s: %s", directory,
                 strerror(errno));
        free(d);
        return STORE_IO;
    }
    enum store_result result = lock_directory(d, directory, message);
    if (result != STORE_OK) {
        if (d->lock_fd >= 0)
            close(d->lock_fd);
        close(d->directory_fd);
        free(d);
        return result;
    }
    d->direct = hint_direct(d->directory_fd);
    pthread_mutex_init(&d->lock, NULL);
    *disk = &d->base;
    return STORE_OK;
}
