/*
 * A disk layer that never writes to its files: recovery runs on it as at a start. Writes are kept
 * in memory, page by page, and override the content of the file.
 *
 * Operations are executed when they are submitted, and returned when they are reaped.
 */
#include "storage/recovery/disk_readonly.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/format/format.h"

struct readonly_disk {
    struct disk base;
    int directory_fd;
    int lock_fd; /* -1: no server has ever used the directory */
};

struct disk_file {
    int fd;
    uint64_t page_count;
    char **pages; /* written pages; NULL: as in the file */
};

struct readonly_queue {
    struct disk_queue base;
    STAILQ_HEAD(, disk_op) done;
};

static int file_open(struct disk *disk, const char *name, bool create, struct disk_file **file)
{
    if (create)
        return EROFS;
    int fd = openat(((struct readonly_disk *)disk)->directory_fd, name, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0)
        return errno;
    *file = calloc(1, sizeof **file);
    if (!*file || fstat(fd, &status) != 0) {
        free(*file);
        close(fd);
        return EIO;
    }
    (*file)->fd = fd;
    (*file)->page_count = (uint64_t)status.st_size / PAGE_SIZE;
    (*file)->pages = calloc((*file)->page_count + 1, sizeof(char *));
    if ((*file)->pages)
        return 0;
    free(*file);
    close(fd);
    return ENOMEM;
}

static void file_close(struct disk_file *file)
{
    for (uint64_t i = 0; i < file->page_count; i++)
        free(file->pages[i]);
    free(file->pages);
    close(file->fd);
    free(file);
}

static uint64_t file_size(struct disk_file *file)
{
    return file->page_count * PAGE_SIZE;
}

static int file_extend(struct disk_file *file, uint64_t to)
{
    return to > file_size(file) ? EROFS : 0;
}

static int file_sync_directory(struct disk *disk)
{
    (void)disk;
    return 0;
}

static int queue_create(struct disk *disk, uint32_t depth, struct disk_queue **queue)
{
    struct readonly_queue *q = calloc(1, sizeof *q);
    (void)depth;
    if (!q)
        return ENOMEM;
    disk_queue_init(&q->base, disk);
    STAILQ_INIT(&q->done);
    *queue = &q->base;
    return 0;
}

static void queue_free(struct disk_queue *queue)
{
    assert(queue->in_flight == 0 && queue->queued == 0);
    free(queue);
}

static int queue_fd(struct disk_queue *queue)
{
    (void)queue;
    return -1;
}

/* ---- operations ---- */

static int read_file(const struct disk_file *file, char *to, uint64_t len, uint64_t offset)
{
    while (len > 0) {
        ssize_t n = pread(file->fd, to, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        to += n;
        offset += (uint64_t)n;
        len -= (uint64_t)n;
    }
    return 0;
}

static int read_pages(struct disk_file *file, char *to, uint64_t len, uint64_t offset)
{
    int error = read_file(file, to, len, offset);
    for (uint64_t at = 0; at < len && !error; at += PAGE_SIZE) {
        const char *written = file->pages[(offset + at) / PAGE_SIZE];
        if (written)
            memcpy(to + at, written, PAGE_SIZE);
    }
    return error;
}

static int keep_pages(struct disk_file *file, const char *from, uint64_t len, uint64_t offset)
{
    for (uint64_t at = 0; at < len; at += PAGE_SIZE) {
        char **page = &file->pages[(offset + at) / PAGE_SIZE];
        if (!*page && !(*page = malloc(PAGE_SIZE)))
            return ENOMEM;
        memcpy(*page, from + at, PAGE_SIZE);
    }
    return 0;
}

static int carry_out(struct disk_op *op)
{
    uint64_t offset = op->offset;
    int error = 0;
    if (op->kind == DISK_FLUSH)
        return 0;
    for (int i = 0; i < op->vector_count && !error; i++) {
        char *bytes = op->vectors[i].iov_base;
        uint64_t len = op->vectors[i].iov_len;
        if (offset + len > file_size(op->file))
            return EIO;
        error = op->kind == DISK_READ ? read_pages(op->file, bytes, len, offset)
                                      : keep_pages(op->file, bytes, len, offset);
        offset += len;
    }
    return error;
}

static void submit(struct disk_queue *queue)
{
    struct readonly_queue *q = (struct readonly_queue *)queue;
    for (struct disk_op *op; (op = STAILQ_FIRST(&queue->pending)) != NULL;) {
        STAILQ_REMOVE_HEAD(&queue->pending, link);
        queue->queued--;
        queue->in_flight++;
        op->error = carry_out(op);
        STAILQ_INSERT_TAIL(&q->done, op, link);
    }
}

static void reap(struct disk_queue *queue, uint32_t least)
{
    struct readonly_queue *q = (struct readonly_queue *)queue;
    (void)least;
    for (struct disk_op *op; (op = STAILQ_FIRST(&q->done)) != NULL;) {
        STAILQ_REMOVE_HEAD(&q->done, link);
        queue->in_flight--;
        op->done(op);
    }
}

/* ---- the directory ---- */

static void disk_free(struct disk *disk)
{
    struct readonly_disk *d = (struct readonly_disk *)disk;
    if (d->directory_fd >= 0)
        close(d->directory_fd);
    if (d->lock_fd >= 0)
        close(d->lock_fd);
    free(d);
}

static bool is_direct(struct disk *disk)
{
    (void)disk;
    return false;
}

static const struct disk_ops readonly_ops = {
    .open = file_open,
    .close = file_close,
    .size = file_size,
    .extend = file_extend,
    .sync_directory = file_sync_directory,
    .queue_create = queue_create,
    .queue_free = queue_free,
    .queue_fd = queue_fd,
    .submit = submit,
    .reap = reap,
    .free = disk_free,
    .direct = is_direct,
};

/* The lock is held while the disk is open, so that no server starts meanwhile. */
static enum store_result open_directory(struct readonly_disk *d, const char *directory,
                                        char *message)
{
    d->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->directory_fd < 0 || faccessat(d->directory_fd, "superblock", R_OK, 0) != 0) {
        snprintf(message, STORE_MESSAGE_MAX, "Cannot read a data directory at %s: %s", directory,
                 strerror(errno));
        return errno == ENOENT ? STORE_ABSENT : STORE_IO;
    }
    d->lock_fd = openat(d->directory_fd, "lock", O_RDONLY | O_CLOEXEC);
    bool taken = flock(d->directory_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (taken || (d->lock_fd >= 0 && flock(d->lock_fd, LOCK_EX | LOCK_NB) != 0)) {
        snprintf(message, STORE_MESSAGE_MAX,
                 "The data directory %s is in use by a server: stop it first", directory);
        return STORE_LOCKED;
    }
    return STORE_OK;
}

enum store_result disk_open_readonly(const char *directory, struct disk **disk,
                                     char message[STORE_MESSAGE_MAX])
{
    struct readonly_disk *d = calloc(1, sizeof *d);
    if (!d) {
        snprintf(message, STORE_MESSAGE_MAX, "Out of memory");
        return STORE_NO_MEMORY;
    }
    *d = (struct readonly_disk){.base.ops = &readonly_ops, .lock_fd = -1};
    enum store_result result = open_directory(d, directory, message);
    if (result == STORE_OK)
        *disk = &d->base;
    else
        disk_free(&d->base);
    return result;
}
