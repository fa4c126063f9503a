/* Real files beneath a kernel that takes few operations at a time, is interrupted and transfers
 * less than it was asked for: libaio's two calls are wrapped by the linker. Nothing of that is seen
 * above storage/base/disk.h. And what is to outlive a power cut is asked of the kernel: no other
 * test here would miss it, since files outlive what only their writers lose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <libaio.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "storage/base/disk_file.h"
#include "tests/storage/workload.h"

#define PAGE 4096u
#define FILE_PAGES 256u
#define OPERATIONS 16u
#define ROUNDS 300u
#define CALLS 600u

int __real_io_setup(int depth, io_context_t *context);
int __wrap_io_setup(int depth, io_context_t *context);
int __real_io_submit(io_context_t context, long count, struct iocb *iocbs[]);
int __real_io_getevents(io_context_t context, long least, long most, struct io_event *events,
                        struct timespec *timeout);
int __wrap_io_submit(io_context_t context, long count, struct iocb *iocbs[]);
int __wrap_io_getevents(io_context_t context, long least, long most, struct io_event *events,
                        struct timespec *timeout);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
ssize_t __real_pwrite(int fd, const void *from, size_t len, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *from, size_t len, off_t offset);

/* The wrapped calls have no other way to know: which is what this test is about. */
static struct {
    pthread_mutex_t lock;
    struct rng rng;
    bool on;
    uint32_t setups; /* then one is refused; 0: none */
    bool full;       /* nothing more can be written */
    uint64_t refused, partial, interrupted, shorter;
    uint32_t writes, durable_writes, flushes, syncs; /* that were asked for */
} kernel = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool by_chance(uint32_t percent, uint64_t *count)
{
    pthread_mutex_lock(&kernel.lock);
    bool is = kernel.on && rng_chance(&kernel.rng, percent);
    *count += is;
    pthread_mutex_unlock(&kernel.lock);
    return is;
}

static uint64_t random_below(uint64_t bound)
{
    pthread_mutex_lock(&kernel.lock);
    uint64_t number = rng_next(&kernel.rng) % bound;
    pthread_mutex_unlock(&kernel.lock);
    return number;
}

static uint64_t bytes_of(const struct iocb *iocb)
{
    const struct iovec *vectors = iocb->u.c.buf;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < iocb->u.c.nbytes; i++)
        bytes += vectors[i].iov_len;
    return bytes;
}

/* The transfer's first pages alone. The vectors, which the kernel has copied when io_submit
 * returns. */
static struct iovec *shorten(struct iocb *iocb)
{
    uint64_t pages = bytes_of(iocb) / PAGE;
    uint64_t left = (1 + random_below(pages - 1)) * PAGE, count = 0;
    struct iovec *vectors = malloc(iocb->u.c.nbytes * sizeof *vectors);
    must(vectors, "out of memory");
    memcpy(vectors, iocb->u.c.buf, iocb->u.c.nbytes * sizeof *vectors);
    for (; left > 0; count++) {
        if (vectors[count].iov_len > left)
            vectors[count].iov_len = left;
        left -= vectors[count].iov_len;
    }
    iocb->u.c.buf = vectors;
    iocb->u.c.nbytes = count;
    return vectors;
}

static void note_request(const struct iocb *iocb)
{
    pthread_mutex_lock(&kernel.lock);
    kernel.writes += iocb->aio_lio_opcode == IO_CMD_PWRITEV;
    kernel.durable_writes +=
        iocb->aio_lio_opcode == IO_CMD_PWRITEV && iocb->aio_rw_flags == RWF_DSYNC;
    kernel.flushes += iocb->aio_lio_opcode == IO_CMD_FDSYNC;
    pthread_mutex_unlock(&kernel.lock);
}

int __wrap_fsync(int fd)
{
    pthread_mutex_lock(&kernel.lock);
    kernel.syncs++;
    pthread_mutex_unlock(&kernel.lock);
    return __real_fsync(fd);
}

int __wrap_io_setup(int depth, io_context_t *context)
{
    bool is_refused = kernel.setups > 0 && --kernel.setups == 0;
    return is_refused ? -EAGAIN : __real_io_setup(depth, context);
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t len, off_t offset)
{
    errno = ENOSPC;
    return kernel.full ? -1 : __real_pwrite(fd, from, len, offset);
}

int __wrap_io_submit(io_context_t context, long count, struct iocb *iocbs[])
{
    struct iovec *shortened[256];
    long short_count = 0;
    if (by_chance(10, &kernel.refused))
        return -EAGAIN;
    if (by_chance(5, &kernel.interrupted))
        return -EINTR;
    if (count > 1 && by_chance(30, &kernel.partial))
        count = 1 + (long)random_below((uint64_t)count - 1);
    for (long i = 0; i < count; i++)
        note_request(iocbs[i]);
    for (long i = 0; i < count && short_count < 256; i++) {
        bool transfers =
            iocbs[i]->aio_lio_opcode == IO_CMD_PREADV || iocbs[i]->aio_lio_opcode == IO_CMD_PWRITEV;
        if (transfers && bytes_of(iocbs[i]) > PAGE && by_chance(40, &kernel.shorter))
            shortened[short_count++] = shorten(iocbs[i]);
    }
    int result = __real_io_submit(context, count, iocbs);
    for (long i = 0; i < short_count; i++)
        free(shortened[i]);
    return result;
}

/* An operation that was interrupted is done again as a whole, whatever it has done. */
int __wrap_io_getevents(io_context_t context, long least, long most, struct io_event *events,
                        struct timespec *timeout)
{
    if (by_chance(5, &kernel.interrupted))
        return -EINTR;
    int count = __real_io_getevents(context, least, most, events, timeout);
    for (int i = 0; i < count; i++)
        if (by_chance(3, &kernel.interrupted))
            events[i].res = (unsigned long)(random_below(2) ? -EINTR : -EAGAIN);
    return count;
}

static void disturb(uint64_t seed)
{
    kernel.rng.state = seed;
    kernel.on = true;
    kernel.refused = kernel.partial = kernel.interrupted = kernel.shorter = 0;
}

static void was_disturbed(void)
{
    kernel.on = false;
    must(kernel.refused && kernel.partial && kernel.interrupted && kernel.shorter,
         "the test's own assumption: %llu %llu %llu %llu", (unsigned long long)kernel.refused,
         (unsigned long long)kernel.partial, (unsigned long long)kernel.interrupted,
         (unsigned long long)kernel.shorter);
}

/* ---- operations of many vectors, many at once ---- */

struct transfer {
    struct disk_op op;
    struct iovec vectors[8];
    char *memory;
    uint32_t pages, done;
};

static void finished(struct disk_op *op)
{
    ((struct transfer *)op->arg)->done++;
}

/* A part of the file, in up to eight vectors. */
static void queue_transfer(struct disk_queue *queue, struct transfer *transfer, struct rng *rng,
                           struct disk_file *file, enum disk_kind kind, uint32_t first)
{
    char *at = transfer->memory;
    uint32_t left = transfer->pages, count = 0;
    for (; left > 0; count++) {
        uint32_t pages = count == 7 ? left : 1 + rng_below(rng, left);
        transfer->vectors[count] = (struct iovec){at, (size_t)pages * PAGE};
        at += (size_t)pages * PAGE;
        left -= pages;
    }
    transfer->done = 0;
    transfer->op = (struct disk_op){.kind = kind,
                                    .durable = kind == DISK_WRITE && rng_chance(rng, 30),
                                    .file = file,
                                    .vectors = transfer->vectors,
                                    .vector_count = (int)count,
                                    .offset = (uint64_t)first * PAGE,
                                    .done = finished,
                                    .arg = transfer};
    disk_queue_op(queue, &transfer->op);
}

static void await_all(struct disk_queue *queue, const struct transfer *transfers)
{
    while (queue->queued || queue->in_flight) {
        queue->disk->ops->submit(queue);
        queue->disk->ops->reap(queue, queue->in_flight ? 1 : 0);
    }
    for (uint32_t i = 0; i < OPERATIONS; i++)
        must(transfers[i].done == 1 && transfers[i].op.error == 0, "done %u times, error %d",
             transfers[i].done, transfers[i].op.error);
}

/* Each transfer has its own part of the file: written, then read back. */
static void one_round(struct disk_queue *queue, struct disk_file *file, struct transfer *transfers,
                      struct rng *rng)
{
    static const uint32_t share = FILE_PAGES / OPERATIONS;
    char *written = malloc((size_t)FILE_PAGES * PAGE);
    must(written, "out of memory");
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        struct blob *bytes = blob_random(rng, (uint64_t)share * PAGE);
        transfers[i].pages = 1 + rng_below(rng, share);
        memcpy(transfers[i].memory, bytes->bytes, (size_t)share * PAGE);
        memcpy(written + (size_t)i * share * PAGE, bytes->bytes, (size_t)share * PAGE);
        blob_unref(bytes);
        queue_transfer(queue, &transfers[i], rng, file, DISK_WRITE, i * share);
    }
    await_all(queue, transfers);
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        memset(transfers[i].memory, 0xaa, (size_t)share * PAGE);
        queue_transfer(queue, &transfers[i], rng, file, DISK_READ, i * share);
    }
    await_all(queue, transfers);
    for (uint32_t i = 0; i < OPERATIONS; i++)
        must(memcmp(transfers[i].memory, written + (size_t)i * share * PAGE,
                    (size_t)transfers[i].pages * PAGE) == 0,
             "what is read is not what was written");
    free(written);
}

static void transfers_are_whole(void **state)
{
    (void)state;
    struct rng rng = {rng_seed("transfers")};
    struct transfer transfers[OPERATIONS] = {0};
    char directory[256], message[STORE_MESSAGE_MAX];
    struct disk *disk;
    struct disk_file *file;
    struct disk_queue *queue;
    scratch_make(directory);
    must(disk_open_directory(directory, &disk, message) == STORE_OK, "%s", message);
    must(disk->ops->open(disk, "file", true, &file) == 0 &&
             disk->ops->extend(file, (uint64_t)FILE_PAGES * PAGE) == 0 &&
             disk->ops->queue_create(disk, 8, &queue) == 0,
         "making a file");
    for (uint32_t i = 0; i < OPERATIONS; i++)
        must(transfers[i].memory = disk_alloc((uint64_t)FILE_PAGES * PAGE), "out of memory");
    disturb(rng_next(&rng));
    for (uint32_t round = 0; round < ROUNDS; round++)
        one_round(queue, file, transfers, &rng);
    was_disturbed();
    for (uint32_t i = 0; i < OPERATIONS; i++)
        free(transfers[i].memory);
    disk->ops->queue_free(queue);
    disk->ops->close(file);
    disk->ops->free(disk);
    scratch_remove(directory);
}

/* ---- durability ---- */

static void asked_for(uint32_t writes, uint32_t durable, uint32_t flushes, uint32_t syncs)
{
    must(kernel.writes == writes && kernel.durable_writes == durable && kernel.flushes == flushes &&
             kernel.syncs == syncs,
         "%u writes, %u durable ones, %u flushes, %u syncs", kernel.writes, kernel.durable_writes,
         kernel.flushes, kernel.syncs);
    kernel.writes = kernel.durable_writes = kernel.flushes = kernel.syncs = 0;
}

static void what_is_to_last_is_asked_for(void **state)
{
    (void)state;
    char directory[256], message[STORE_MESSAGE_MAX], *page = disk_alloc(PAGE);
    struct disk *disk;
    struct disk_file *file;
    struct disk_queue *queue;
    must(page, "out of memory");
    memset(page, 1, PAGE);
    scratch_make(directory);
    must(disk_open_directory(directory, &disk, message) == STORE_OK, "%s", message);
    must(disk->ops->open(disk, "file", true, &file) == 0, "making a file");
    must(disk->ops->queue_create(disk, 8, &queue) == 0, "making a queue");
    kernel.writes = kernel.durable_writes = kernel.flushes = kernel.syncs = 0;
    must(disk->ops->extend(file, 2 * PAGE) == 0, "extending");
    asked_for(0, 0, 0, 1); /* the file's size, too */
    must(disk->ops->sync_directory(disk) == 0, "the directory");
    asked_for(0, 0, 0, 1);
    must(disk_write(queue, file, page, PAGE, 0, false) == 0, "writing");
    asked_for(1, 0, 0, 0);
    must(disk_write(queue, file, page, PAGE, PAGE, true) == 0, "writing");
    asked_for(1, 1, 0, 0);
    must(disk_flush(queue, file) == 0, "flushing");
    asked_for(0, 0, 1, 0);
    disk->ops->queue_free(queue);
    disk->ops->close(file);
    disk->ops->free(disk);
    scratch_remove(directory);
    free(page);
}

/* ---- O_DIRECT ---- */

static bool is_direct(const char *directory)
{
    char message[STORE_MESSAGE_MAX];
    struct disk *disk;
    must(disk_open_directory(directory, &disk, message) == STORE_OK, "%s", message);
    bool is = disk->ops->direct(disk);
    disk->ops->free(disk);
    return is;
}

/* Otherwise the kernel would keep all that is read, until the next start. */
static void a_full_disk_is_as_direct_as_before(void **state)
{
    (void)state;
    struct rig rig;
    char directory[256];
    scratch_make(directory);
    rig_defaults(&rig);
    rig.options.directory = directory;
    must(rig_open(&rig, NULL) == STORE_OK, "open: %s", rig.message);
    rig_close_well(&rig);
    bool before = is_direct(directory);
    kernel.full = true;
    bool now = is_direct(directory);
    kernel.full = false;
    must(now == before, "direct: %d with room, %d without", before, now);
    scratch_remove(directory);
}

/* ---- locks ---- */

/* A second one does not get in when the lock file is gone, nor by another name of the files. */
static void nobody_else_opens_it(void **state)
{
    (void)state;
    char directory[256], path[300], other[300], message[STORE_MESSAGE_MAX];
    struct disk *disk, *second;
    struct disk_file *file, *again;
    scratch_make(directory);
    snprintf(path, sizeof path, "%s/one", directory);
    snprintf(other, sizeof other, "%s/two", directory);
    must(disk_open_directory(path, &disk, message) == STORE_OK, "%s", message);
    must(disk->ops->open(disk, "file", true, &file) == 0, "making a file");
    must(disk_open_directory(path, &second, message) == STORE_LOCKED, "it is not locked");
    snprintf(path, sizeof path, "%s/one/lock", directory);
    must(unlink(path) == 0, "deleting the lock file");
    snprintf(path, sizeof path, "%s/one", directory);
    must(disk_open_directory(path, &second, message) == STORE_LOCKED, "it is not locked");
    must(strstr(message, "another server"), "the message is: %s", message);
    must(disk_open_directory(other, &second, message) == STORE_OK, "%s", message);
    snprintf(path, sizeof path, "%s/one/file", directory);
    snprintf(other, sizeof other, "%s/two/file", directory);
    must(link(path, other) == 0, "linking");
    must(second->ops->open(second, "file", false, &again) == EBUSY, "the file is not locked");
    disk->ops->close(file);
    must(second->ops->open(second, "file", false, &again) == 0, "the file stays locked");
    second->ops->close(again);
    second->ops->free(second);
    disk->ops->free(disk);
    scratch_remove(directory);
}

/* ---- the engine on it ---- */

static void a_store_notices_nothing(void **state)
{
    (void)state;
    struct rig rig;
    struct workload load;
    char directory[256];
    uint64_t seed = rng_seed("disturbed");
    scratch_make(directory);
    rig_defaults(&rig);
    rig.options.directory = directory;
    workload_init(&load, &rig, seed);
    disturb(seed);
    for (uint32_t session = 0; session < 2; session++) {
        rig.options.worker_count = 1 + session;
        must(rig_open(&rig, NULL) == STORE_OK, "open: %s", rig.message);
        oracle_compare(load.now, &rig);
        for (uint32_t i = 0; i < CALLS; i++)
            workload_step(&load);
        workload_drain(&load);
        must(rig_close(&rig) == STORE_OK && rig.warnings == 0, "close: %s", rig.last_warning);
        workload_settle(&load);
    }
    was_disturbed();
    workload_free(&load);
    scratch_remove(directory);
}

/* A scan that gets no queue is done without; the last of them says what to do. */
static void few_slots_are_enough_for_a_scan(void **state)
{
    (void)state;
    struct rig rig;
    char directory[256];
    scratch_make(directory);
    rig_defaults(&rig);
    rig.options.directory = directory;
    rig.options.scans = true;
    rig.options.scan_threads = 3;
    must(rig_open(&rig, NULL) == STORE_OK, "open: %s", rig.message);
    must(do_set(&rig, "key", "value") == STORE_OK, "set");
    rig_close_well(&rig);
    kernel.setups = 2; /* the maintenance thread's, the first scan's */
    must(rig_open(&rig, NULL) == STORE_IO && strstr(rig.message, "aio-max-nr"), "%s", rig.message);
    kernel.setups = 3;
    must(rig_open(&rig, NULL) == STORE_OK && kernel.setups == 0, "open: %s", rig.message);
    must(has_value(&rig, "key", "value"), "the key");
    rig_close_well(&rig);
    scratch_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transfers_are_whole),
        cmocka_unit_test(what_is_to_last_is_asked_for),
        cmocka_unit_test(a_full_disk_is_as_direct_as_before),
        cmocka_unit_test(few_slots_are_enough_for_a_scan),
        cmocka_unit_test(nobody_else_opens_it),
        cmocka_unit_test(a_store_notices_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
