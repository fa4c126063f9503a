/*
 * The heap: malloc, tuned so that maxmemory can bound the whole process. Large blocks are mapped on
 * their own: they leave no gaps, are given back when freed, and grow without being copied.
 *
 * Threads: any.
 */
#ifndef VELLUM_HEAP_H
#define VELLUM_HEAP_H

#include <stdint.h>

struct heap_usage {
    uint64_t allocated; /* bytes in blocks, whether they have been written to or not */
    uint64_t unused;    /* bytes between blocks, whether they have been purged or not */
};

/* Before any thread is started. */
void heap_tune(void);
/* Takes a time in proportion to the number of gaps between blocks: microseconds, or milliseconds.
 * In the sanitizers' builds all is zero. */
void heap_measure(struct heap_usage *usage);
/* Returns unused pages to the system. Takes some milliseconds, while others cannot allocate. */
void heap_purge(void);

#endif
