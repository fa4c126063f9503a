#include "storage/base/disk.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void disk_queue_init(struct disk_queue *queue, struct disk *disk)
{
    *queue = (struct disk_queue){.disk = disk};
    STAILQ_INIT(&queue->pending);
}

const char *disk_queue_refused(int error)
{
    return error == EAGAIN ? "Too few AIO slots: raise /proc/sys/fs/aio-max-nr (sysctl -w "
                             "fs.aio-max-nr=1048576)"
                           : "Cannot set up asynchronous I/O";
}

void disk_queue_op(struct disk_queue *queue, struct disk_op *op)
{
    op->error = 0;
    op->remaining = 0;
    for (int i = 0; i < op->vector_count; i++)
        op->remaining += op->vectors[i].iov_len;
    STAILQ_INSERT_TAIL(&queue->pending, op, link);
    queue->queued++;
}

static void set_flag(struct disk_op *op)
{
    *(bool *)op->arg = true;
}

int disk_run(struct disk_queue *queue, struct disk_op *op)
{
    bool done = false;
    op->done = set_flag;
    op->arg = &done;
    disk_queue_op(queue, op);
    while (!done) {
        queue->disk->ops->submit(queue);
        queue->disk->ops->reap(queue, 1);
    }
    return op->error;
}

static int run_simple(struct disk_queue *queue, enum disk_kind kind, struct disk_file *file,
                      void *data, uint64_t len, uint64_t offset, bool durable)
{
    struct iovec vector = {data, len};
    struct disk_op op = {.kind = kind,
                         .durable = durable,
                         .file = file,
                         .vectors = &vector,
                         .vector_count = kind == DISK_FLUSH ? 0 : 1,
                         .offset = offset};
    return disk_run(queue, &op);
}

int disk_read(struct disk_queue *queue, struct disk_file *file, void *to, uint64_t len,
              uint64_t offset)
{
    return run_simple(queue, DISK_READ, file, to, len, offset, false);
}

int disk_write(struct disk_queue *queue, struct disk_file *file, const void *from, uint64_t len,
               uint64_t offset, bool durable)
{
    return run_simple(queue, DISK_WRITE, file, (void *)(uintptr_t)from, len, offset, durable);
}

int disk_flush(struct disk_queue *queue, struct disk_file *file)
{
    return run_simple(queue, DISK_FLUSH, file, NULL, 0, 0, false);
}

void *disk_alloc(uint64_t len)
{
    void *memory;
    return posix_memalign(&memory, 4096, len) == 0 ? memory : NULL;
}

bool disk_is_blank(const char *bytes, uint64_t len)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}
