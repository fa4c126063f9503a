/*
 * Memory for page frames, in chunks of 64 MB. Each chunk is mapped separately, so that it can be
 * registered with a NIC or freed alone, and aligned to its size, so that one look-up decides
 * whether an address lies in a chunk. Frames are numbered through all chunks; number 0 is 'none'.
 *
 * Invariants
 * 1. A frame is in one of the three lists, or belongs to exactly one page file, whose lock protects
 *    it.
 * 2. resident counts the frames whose memory the process holds. A free frame's memory is returned
 *    to the system under the arena's lock.
 * 3. used counts the frames that belong to page files. Beyond limit, only ARENA_URGENT raises it:
 *    ARENA_INSTEAD replaces a frame.
 *
 * Threads: arena_take, arena_give, arena_trim, arena_hold_chunk and arena_check lock inside; a leaf
 * lock. arena_has and the counters need no lock.
 */
#ifndef VELLUM_STORE_ARENA_H
#define VELLUM_STORE_ARENA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/format/format.h"

#define ARENA_CHUNK_SHIFT 14u /* frames in a chunk: 64 MB */
#define ARENA_CHUNK_FRAMES (1u << ARENA_CHUNK_SHIFT)
#define ARENA_CHUNK_MAX 4096u /* 256 GB */
#define ARENA_CHUNK_BYTES ((size_t)ARENA_CHUNK_FRAMES * PAGE_SIZE)
#define ARENA_CELLS (4u * ARENA_CHUNK_MAX)
#define ARENA_POISON 0xdb /* what free frames hold in the test build */

enum frame_state {
    FRAME_FREE,
    FRAME_LOADING, /* a read is in flight or held back; in the page table, content not valid */
    FRAME_VALID,   /* in the page table */
    FRAME_ORPHAN,  /* replaced or dropped while referenced: freed with its last reference */
};

struct waiter; /* txn/load.c */

struct frame {
    struct waiter *waiters; /* transactions that wait for the load */
    uint64_t commit;        /* newest commit applied to it: must be durable before the write-back */
    uint32_t page;
    uint32_t refs;         /* I/O in flight, transactions and value readers that pin it */
    uint32_t newer, older; /* eviction queue of its page file, while it is clean */
    uint8_t file;
    uint8_t state; /* enum frame_state */
    bool dirty;    /* differs from the file */
    bool writing;  /* being written: immutable, a change goes to a fresh frame */
    bool visited;  /* accessed since the eviction hand passed */
    bool held;     /* its read is held back (load.c) */
    bool checked;  /* a page of an extent that was verified with the rest of it since it was read */
};

struct arena {
    pthread_mutex_t lock;
    struct frame *frames[ARENA_CHUNK_MAX];
    char *memory[ARENA_CHUNK_MAX];
    _Atomic uint32_t chunk_cells[ARENA_CELLS]; /* a hash set of chunks, by address; 0: empty */
    bool is_held[ARENA_CHUNK_MAX];             /* a device may have registered its pages */
    bool is_huge[ARENA_CHUNK_MAX];             /* huge pages were requested */
    uint32_t chunk_count;
    uint32_t fresh;     /* frames of the last chunk from here on were never used */
    uint32_t free_list; /* linked by `older` */
    uint32_t held_list; /* likewise: free frames over the limit, whose memory cannot be freed */
    uint32_t gone_list; /* likewise: frames whose memory has been returned to the system */
    _Atomic uint32_t used;
    _Atomic uint32_t resident; /* used or free, with memory */
    _Atomic uint32_t limit;
};

void arena_init(struct arena *arena, uint32_t limit);
void arena_free(struct arena *arena);

/* How many frames beyond the limit ARENA_URGENT may take, for a commit that has begun. */
uint32_t arena_urgent_frames(uint32_t limit);

enum arena_need {
    ARENA_MORE,    /* one more, within the limit */
    ARENA_INSTEAD, /* replaces a frame that the caller has just freed: also above a lowered limit,
                      which the maintenance thread enforces */
    ARENA_URGENT,  /* for a commit that has begun */
};

static inline bool arena_is_over(const struct arena *arena)
{
    return atomic_load_explicit(&arena->used, memory_order_relaxed) >
           atomic_load_explicit(&arena->limit, memory_order_relaxed);
}

/* Returns 0 if there is no frame. */
uint32_t arena_take(struct arena *arena, enum arena_need need);
void arena_give(struct arena *arena, uint32_t number);
/* Returns the memory of free frames over the limit to the system. */
void arena_trim(struct arena *arena);

void arena_check(struct arena *arena); /* asserts that the lists and counters agree; slow */

/* The chunk that contains the address, to be registered with a device: its memory is never
 * freed from then on. False: no chunk contains it. */
bool arena_hold_chunk(struct arena *arena, const void *address, void **start, size_t *size);

static inline uint32_t arena_cell(uint32_t window)
{
    return window * 0x9e3779b1u >> 8 & (ARENA_CELLS - 1);
}

/* Whether the address is in a frame. */
static inline bool arena_has(const struct arena *arena, const void *address)
{
    uint32_t window = (uint32_t)((uintptr_t)address / ARENA_CHUNK_BYTES);
    for (uint32_t at = arena_cell(window);; at = (at + 1) & (ARENA_CELLS - 1)) {
        uint32_t cell = atomic_load_explicit(&arena->chunk_cells[at], memory_order_relaxed);
        if (cell == window || cell == 0)
            return cell != 0;
    }
}

static inline struct frame *arena_frame(struct arena *arena, uint32_t number)
{
    return &arena->frames[number >> ARENA_CHUNK_SHIFT][number & (ARENA_CHUNK_FRAMES - 1)];
}

static inline char *arena_memory(struct arena *arena, uint32_t number)
{
    return arena->memory[number >> ARENA_CHUNK_SHIFT] +
           (size_t)(number & (ARENA_CHUNK_FRAMES - 1)) * PAGE_SIZE;
}

#endif
