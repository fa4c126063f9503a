/*
 * A space: one page file with its part of the page cache, its segments and the allocation of slots.
 * Each partition has one (slabs), and the large values have one together (extents).
 *
 * Invariants, checked by page_file_check()
 * 1. table[page] is 0 or the number of a frame with that page, in state LOADING or VALID.
 * 2. A page's dirty bit is set exactly when its frame is dirty. A dirty frame is VALID and
 * resident.
 * 3. A frame that is being written, or referenced by a reader, never changes: page_file_writable
 * gives a fresh copy in its place, and the old one lives on as an orphan until its last reference.
 * 4. In free_slots[page] a bit is set exactly when that slot (or, for runs, that run of the
 * segment) holds nothing and is reserved by no transaction. What the disk says is asked only at
 * recovery.
 * 5. segment_blank[segment] is set exactly when the segment has no class and is all zeros on disk
 *    (of extents: its header), so that any class may take it.
 *
 *              page_file_load                    page_file_evict
 *   (absent) -----------> LOADING -> VALID -------------> (absent)
 *        ^                   |         | page_file_writable, page_file_drop while referenced
 *        +-------------------+         +--> ORPHAN --> (freed with the last reference)
 *            load failed
 *
 * Threads: everything here is called with `lock` held.
 */
#ifndef VELLUM_STORE_PAGE_FILE_H
#define VELLUM_STORE_PAGE_FILE_H

#include <pthread.h>

#include "storage/cache/arena.h"
#include "storage/base/counter.h"
#include "storage/base/disk.h"
#include "storage/format/format.h"

#define PAGE_FILE_CLASS_MAX (FORMAT_RUN_CLASS + FORMAT_EXTENT_PAGES + 1)
#define PAGE_FILE_BATCH_PAGES 64u /* pages in one read or write */

struct store;

struct waiter {
    struct waiter *next;
    struct store_txn *txn;
};

/* Where a class takes its next slot from. */
struct page_file_class {
    uint32_t page;    /* page being filled; 0: none */
    uint32_t segment; /* where to look on for pages with free slots */
    uint64_t free_count;
};

enum access_kind { USE_IGNORED, USE_TIME, USE_FREQUENCY };

/* How uses of items are remembered (access_clock.h). */
struct access_clock {
    _Atomic uint32_t state; /* enum access_kind, and above two bits a number */
    _Atomic int64_t base_ms;
    _Atomic uint32_t log_factor, decay_minutes;
};

/* What the spaces of a store share. Its owner fills it in; the spaces are the owner's. */
struct page_cache {
    struct arena arena;
    uint64_t seed; /* the store's, in segment headers */
    struct page_file **spaces;
    uint32_t page_file_count;
    _Atomic uint32_t dirty_frames;
    struct access_clock uses;
};

struct page_file {
    pthread_mutex_t lock;
    struct page_cache *cache;
    struct arena *arena;  /* its */
    struct store *engine; /* for those that use the space: nothing in this room does */
    struct disk_file *file;
    uint8_t id; /* partition number or FORMAT_EXTENT_SPACE */

    uint32_t *table;      /* page -> frame number */
    uint64_t *free_slots; /* page -> mask; runs: 4 masks at the segment's start */
    uint64_t *dirty;      /* bit per page */
    uint8_t *segment_class;
    uint8_t *segment_blank;
    uint16_t *segment_free; /* free slots (runs) in each segment */
    uint32_t **uses; /* by segment, NULL until it is needed: a word per slot (access_clock.h) */
    counter access_bytes;
    uint32_t access_state;     /* the clock's as they were written */
    uint32_t segment_count;    /* in the file */
    uint32_t segment_assigned; /* behind the last that has a class */
    uint32_t blank_count;
    _Atomic uint32_t segment_room; /* what the arrays have room for */
    bool growing;                  /* the maintenance thread was asked for more segments */
    uint64_t asked[2];             /* and the classes for which it was */

    uint32_t newest, oldest, hand; /* eviction queue (SIEVE: Zhang et al., NSDI'24) */
    uint32_t queue_length, dirty_count;
    counter hits, misses; /* of pages that were asked for */

    struct page_file_class classes[PAGE_FILE_CLASS_MAX];
};

STORE_MUST_CHECK bool page_file_init(struct page_file *file, struct page_cache *cache, uint8_t id);
void page_file_free(struct page_file *file);
void page_file_check(const struct page_file *file);

/* Room in the arrays for so many segments. */
STORE_MUST_CHECK bool page_file_make_room(struct page_file *file, uint32_t segment_count);

uint64_t page_file_table_bytes(const struct page_file *file);

/* ---- page cache ---- */

/* Frame for `page`, which has none: state LOADING, not referenced, content undefined. 0: none to be
 * had now. Takes from the arena, then from the space's own clean frames, then from other spaces. */
uint32_t page_file_add_frame(struct page_file *file, uint32_t page, bool urgent);
/* The same, urgent, for a run that goes on: what it has seen of this space and others that it has
 * locked stays where it is. */
uint32_t page_file_add_frame_beside(struct page_file *file, uint32_t page);
void page_file_drop(struct page_file *file,
                    uint32_t page); /* forgets the page's frame, if it has one */
void page_file_ref(struct page_file *file, uint32_t number);
void page_file_unref(struct page_file *file, uint32_t number); /* frees an orphan with its last */

/* The page's frame in a state that may be changed; *number is replaced if that is another one. */
STORE_MUST_CHECK bool page_file_writable(struct page_file *file, uint32_t *number);
void page_file_mark_dirty(struct page_file *file, uint32_t number, uint64_t commit);
void page_file_mark_clean(struct page_file *file, uint32_t number);

/* Frees one clean, unreferenced frame. */
bool page_file_evict(struct page_file *file);

#ifdef VELLUM_WAIT
/* As if the page had been evicted and read again, unless it is referenced. */
void page_file_move(struct page_file *file, uint32_t page);
#endif

/* ---- slots ---- */

/* Reserves a free slot of the class: in the page being filled, or the next with room. false when
 * the class has none: a segment must be assigned first. Undone by page_file_give_slot. */
STORE_MUST_CHECK bool page_file_take_slot(struct page_file *file, uint32_t size_class,
                                          uint32_t *page, uint32_t *slot);
void page_file_give_slot(struct page_file *file, uint32_t page, uint32_t slot);
/* Recovery: the slot is in use. */
void page_file_keep_slot(struct page_file *file, uint32_t page, uint32_t slot);
/* All of a slab page's slots are free (one of them may be the caller's reservation). */
bool page_file_page_unused(const struct page_file *file, uint32_t page, uint32_t reserved_slot);
/* The same for a run that a root names; false if there is no such run, or it is in use already. */
STORE_MUST_CHECK bool page_file_try_keep_run(struct page_file *file,
                                             const struct format_extent *run);
/* Whether there is such a run, and in use. */
bool page_file_has_run(const struct page_file *file, const struct format_extent *run);
/* Whether the slot of a slab is free. */
static inline bool page_file_slot_is_free(const struct page_file *file, uint32_t page,
                                          uint32_t slot)
{
    return file->free_slots[page] >> slot & 1;
}
/* Whether segments of the space can have such a class. */
bool page_file_class_exists(const struct page_file *file, uint32_t size_class);
/* Class of the page's segment; 0: it has none, or the file no such page. */
uint32_t page_file_class_at(const struct page_file *file, uint32_t page);
/* A segment's way: blank, taken, assigned to a class; and when all its slots are free, detached
 * from it and, once it is zeroed, blank again. */
void page_file_add_blank(struct page_file *file, uint32_t segment);
STORE_MUST_CHECK bool page_file_take_blank(struct page_file *file,
                                           uint32_t *segment); /* the first */
bool page_file_segment_is_free(const struct page_file *file, uint32_t segment);
void page_file_detach_segment(struct page_file *file, uint32_t segment);
/* Gives a segment its class and marks all its slots free. */
void page_file_assign(struct page_file *file, uint32_t segment, uint32_t size_class);

/* The same with these free slots, from an index checkpoint; false if they cannot be right. */
STORE_MUST_CHECK bool page_file_load_segment(struct page_file *file, uint32_t segment,
                                             uint32_t size_class, const uint64_t *free_slots,
                                             uint32_t words);

_Static_assert(FORMAT_RUN_CLASS + FORMAT_EXTENT_PAGES < 128, "struct space: asked");
static inline void page_file_note_asked(struct page_file *file, uint32_t size_class)
{
    file->asked[size_class / 64] |= 1ull << (size_class % 64);
}
static inline bool page_file_was_asked(const struct page_file *file, uint32_t size_class)
{
    return file->asked[size_class / 64] >> (size_class % 64) & 1;
}
static inline void page_file_forget_asked(struct page_file *file)
{
    file->asked[0] = file->asked[1] = 0;
}
/* What was asked for is there. */
static inline void page_file_grown(struct page_file *file)
{
    file->growing = false;
    page_file_forget_asked(file);
}

static inline uint32_t page_file_class_of(const struct page_file *file, uint32_t page)
{
    return file->segment_class[page / SEGMENT_PAGES];
}

/* Fills a segment's header page; with zeros where it has no class. */
void page_file_segment_header(const struct page_file *file, uint32_t segment, char page[PAGE_SIZE]);
/* 0: never assigned; -1: damaged; otherwise the class. Whole: both copies say so. */
int page_file_segment_class(const struct page_file *file, uint32_t segment,
                            const char page[PAGE_SIZE], bool *whole);

/* Runs in use, listed in `runs` if that is not NULL; how many. */
uint32_t page_file_used_runs(const struct page_file *file, struct format_extent *runs);

/* Runs of pages, for extents. */
static inline uint32_t page_file_run_pages(uint32_t size_class)
{
    return size_class - FORMAT_RUN_CLASS;
}

#endif
