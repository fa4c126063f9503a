/*
 * The thin layer beneath the engine through which all I/O is done: files of one directory, and
 * queues of asynchronous operations on them. One implementation uses real files (libaio, O_DIRECT
 * where the file system supports it); one in the tests injects faults and power cuts.
 *
 * Rules: offsets, lengths and addresses are multiples of 4096. An operation is complete when all
 * its bytes are transferred: short transfers are continued, and EINTR and EAGAIN retried, beneath
 * this interface. Any other failure is reported in `error` once and never retried.
 *
 * Threads: a queue belongs to one thread; files may be used by several queues.
 */
#ifndef VELLUM_STORE_DISK_H
#define VELLUM_STORE_DISK_H

#include <libaio.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "storage/store.h"

struct disk;
struct disk_file;
struct disk_queue;

enum disk_kind { DISK_READ, DISK_WRITE, DISK_FLUSH };

/* Owned by the caller until done is called. done may queue further operations, including this
 * one. */
struct disk_op {
    enum disk_kind kind;
    /* A write that is on the medium when it completes (RWF_DSYNC); covers this write alone. */
    bool durable;
    struct disk_file *file;
    struct iovec *vectors; /* changed when a transfer was short */
    int vector_count;
    uint64_t offset;
    int error; /* 0, or an errno value */
    void (*done)(struct disk_op *op);
    void *arg;

    STAILQ_ENTRY(disk_op) link; /* private from here on */
    uint64_t remaining;
    struct iocb iocb;
};

struct disk_ops {
    /* 0 or an errno value. With `create` the file is created, and it is an error if it exists. */
    int (*open)(struct disk *disk, const char *name, bool create, struct disk_file **file);
    void (*close)(struct disk_file *file);
    uint64_t (*size)(struct disk_file *file);
    /* Extends the file with zeros that are really written, and flushes it; blocks. ENOSPC leaves it
     * unchanged, or longer by whole segments. EIO: earlier writes may be lost, as with any flush.
     */
    int (*extend)(struct disk_file *file, uint64_t to);
    int (*sync_directory)(struct disk *disk);
    int (*queue_create)(struct disk *disk, uint32_t depth, struct disk_queue **queue);
    void (*queue_free)(struct disk_queue *queue);
    int (*queue_fd)(struct disk_queue *queue); /* eventfd, readable after completions */
    void (*submit)(struct disk_queue *queue);  /* passes the queued operations to the device */
    /* Calls done for completed operations; waits for at least `least` of those in flight. */
    void (*reap)(struct disk_queue *queue, uint32_t least);
    void (*free)(struct disk *disk);
    bool (*direct)(struct disk *disk); /* O_DIRECT works here */
};

/* Every implementation's structs begin with these. */
struct disk {
    const struct disk_ops *ops;
};
struct disk_queue {
    struct disk *disk;
    STAILQ_HEAD(, disk_op) pending; /* queued, not yet submitted */
    uint32_t queued, in_flight;
};

/* Of an implementation's queue_create. */
void disk_queue_init(struct disk_queue *queue, struct disk *disk);
/* Why queue_create failed, and the remedy. */
const char *disk_queue_refused(int error);

/* Queues op; it starts only at the next submit. */
void disk_queue_op(struct disk_queue *queue, struct disk_op *op);

/* Blocking forms for recovery, checkpoints and startup: queue, submit, and reap until the
 * operation is done. Other operations of the queue may complete meanwhile. Return 0 or an errno
 * value. */
int disk_run(struct disk_queue *queue, struct disk_op *op);
int disk_read(struct disk_queue *queue, struct disk_file *file, void *to, uint64_t len,
              uint64_t offset);
int disk_write(struct disk_queue *queue, struct disk_file *file, const void *from, uint64_t len,
               uint64_t offset, bool durable);
int disk_flush(struct disk_queue *queue, struct disk_file *file);

/* Memory aligned for transfers, or NULL; release with free(). */
void *disk_alloc(uint64_t len);

/* Whether bytes that were read are all zeros, as those never written are; len > 0. */
bool disk_is_blank(const char *bytes, uint64_t len);

#endif
