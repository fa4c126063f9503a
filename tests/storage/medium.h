/*
 * The medium beneath the fault disk: its files, page by page. Private to fault_disk.c and medium.c;
 * everything here is called with the medium's lock held.
 */
#ifndef VELLUM_TEST_STORAGE_MEDIUM_H
#define VELLUM_TEST_STORAGE_MEDIUM_H

#include <pthread.h>

#include "tests/storage/fault_disk.h"

#define PAGE 4096u
#define SECTOR 512u
#define SEGMENT (1u << 20)
#define FILES 140u

/* Never changed while it is shared, so that copies of a medium cost little. */
struct stored_page {
    _Atomic uint32_t refs;
    uint64_t digest; /* of the bytes; 0: not known yet */
    char bytes[PAGE];
};

/* An unflushed write of one page. */
struct version {
    struct version *next;
    uint64_t order; /* completed as this event */
    uint32_t page;
    struct stored_page *bytes;
};

struct stored_file {
    char name[16];
    bool exists, in_directory; /* its entry is durable */
    uint64_t size;
    struct stored_page **pages, **stable; /* NULL: zeros */
    uint64_t room;                        /* pages in the arrays */
    struct version *versions, *versions_last;
};

struct fault {
    char file[16];
    uint32_t nth;
    int error;
    bool lasting;
};

struct hold {
    bool holds;
    enum fault_kind kind;
    char file[16];
    int64_t until_ms; /* monotonic; 0: without end */
};

struct fault_queue;

struct medium {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something held back may go on */
    struct rng rng;
    struct stored_file files[FILES];
    uint64_t events, cut_at, room;
    bool cut;
    enum fate fate;
    struct fault faults[FAULT_KINDS];
    struct hold hold;
    struct fault_queue *queues;
    medium_visitor *visit;
    void *visit_arg;
};

struct disk_file {
    struct medium *medium;
    struct stored_file *stored;
};

/* Counts an event; false: there is no power any more. */
bool medium_event(struct medium *medium);
/* The error that the next operation of the kind is to end with, or 0. */
int medium_fault(struct medium *medium, enum fault_kind kind, const struct stored_file *file);
bool medium_holds(struct medium *medium, enum fault_kind kind, const struct stored_file *file);

struct stored_file *medium_find_file(struct medium *medium, const char *name);
uint64_t medium_used(const struct medium *medium);
void medium_lengthen(struct stored_file *file, uint64_t to);

/* A read sees it from now on; it is stable at once, or a version more. */
void medium_store_page(struct stored_file *file, uint32_t page, const char *from, uint64_t order,
                       bool stable);
/* Half done: it may have reached the medium or not, no read sees it. */
void medium_trace_page(struct stored_file *file, uint32_t page, const char *from, uint64_t order);
/* What had completed up to this event is stable. */
void medium_flush(struct stored_file *file, uint64_t order);
/* The power is back: what was unflushed has met its fate. */
void medium_settle(struct medium *medium);
struct medium *medium_copy_locked(const struct medium *medium);

#endif
