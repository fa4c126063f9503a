/*
 * A page file with its part of the page cache, its segments and its slot allocator. Each partition
 * has one page file for slabs; all large values share one for extents.
 *
 * Invariants, checked by page_file_check()
 * 1. table[page] is 0 or the number of a frame with that page, in state LOADING or VALID.
 * 2. A page's dirty bit is set exactly when its frame is dirty. A dirty frame is VALID and
 *    resident.
 * 3. A frame that is being written never changes: page_file_writable replaces it by a fresh copy,
 *    and the old frame is an orphan until its last reference is gone. Frames of extents never
 *    change once they are filled.
 * 4. In free_slots[page] a bit is set exactly when that slot (or, for runs, that run of the
 *    segment) is empty and not reserved by a transaction. The disk is consulted only at recovery.
 * 5. segment_blank[segment] is set exactly when the segment has no class and is all zeros on disk
 *    (in the extent file: its header is), so that any class may take it.
 *
 *           page_file_add_frame               page_file_evict
 *   (absent) -----------> LOADING -> VALID -------------> (absent)
 *        ^                   |         | page_file_writable, page_file_drop while referenced
 *        +-------------------+         +--> ORPHAN --> (freed with the last reference)
 *            load failed
 *
 * Threads: everything here is called with `lock` held, except page_file_table_bytes, and at the
 * start and the end, when only one thread uses the file.
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

/* Where a class allocates its next slot. */
struct page_file_class {
    uint32_t page;    /* being filled; for runs, segment's start + index of a mask; 0: none */
    uint32_t segment; /* where the search for pages with free slots continues */
    uint64_t free_count;
};

enum access_kind { USE_IGNORED, USE_TIME, USE_FREQUENCY };

/* How accesses to items are tracked (access_clock.h). */
struct access_clock {
    _Atomic uint32_t state; /* enum access_kind, with a generation above its two bits */
    _Atomic int64_t base_ms;
    _Atomic uint32_t log_factor, decay_minutes;
};

/* State shared by the page files of a store. The owner fills it in and owns the page files. */
struct page_cache {
    struct arena arena;
    uint64_t seed; /* the store's, for segment headers */
    struct page_file **page_files;
    uint32_t page_file_count;
    _Atomic uint32_t dirty_frames;
    struct access_clock uses;
};

struct page_file {
    pthread_mutex_t lock;
    struct page_cache *cache;
    struct arena *arena;  /* of the owner */
    struct store *engine; /* for users of the page file; this room never reads it */
    struct disk_file *file;
    uint8_t id; /* partition number or FORMAT_EXTENT_FILE */

    uint32_t *table;      /* page -> frame number */
    uint64_t *free_slots; /* page -> mask; runs: 4 masks at the segment's start */
    uint64_t *dirty;      /* bit per page */
    uint8_t *segment_class;
    uint8_t *segment_blank;
    uint16_t *segment_free; /* free slots (runs) in each segment */
    uint32_t **uses;        /* by segment, NULL until needed: a word per slot (access_clock.h) */
    counter access_bytes;
    uint32_t access_state;     /* the clock's state for which they were written */
    uint32_t segment_count;    /* in the file */
    uint32_t segment_assigned; /* one past the last segment that has a class */
    uint32_t blank_count;
    _Atomic uint32_t segment_room; /* capacity of the arrays */
    bool growing;                  /* the maintenance thread was asked for more segments */
    uint64_t asked[2];             /* the classes for which it was asked */

    uint32_t newest, oldest, hand; /* eviction queue (SIEVE: Zhang et al., NSDI'24) */
    uint32_t queue_length, dirty_count;
    counter hits, misses; /* of requested pages */

    struct page_file_class classes[PAGE_FILE_CLASS_MAX];
};

STORE_MUST_CHECK bool page_file_init(struct page_file *file, struct page_cache *cache, uint8_t id);
void page_file_free(struct page_file *file);
void page_file_check(const struct page_file *file);

/* Grows the arrays to hold so many segments. */
STORE_MUST_CHECK bool page_file_make_room(struct page_file *file, uint32_t segment_count);

uint64_t page_file_table_bytes(const struct page_file *file);

/* ---- page cache ---- */

/* Adds a frame for `page`, which has none: state LOADING, not referenced, content undefined.
 * Returns 0 if no frame is available now. Takes it from the arena, then from the file's own
 * clean frames, then from other page files. */
uint32_t page_file_add_frame(struct page_file *file, uint32_t page, bool urgent);
/* The same, urgent, for a run in progress: frames that it has read, of this page file and of
 * others that it has locked, are not evicted. */
uint32_t page_file_add_frame_beside(struct page_file *file, uint32_t page);
/* Drops the page's frame, if it has one. */
void page_file_drop(struct page_file *file, uint32_t page);
void page_file_ref(struct page_file *file, uint32_t number);
/* Frees an orphan with its last reference. */
void page_file_unref(struct page_file *file, uint32_t number);

/* Makes the page's frame changeable; *number is replaced if that takes another frame. */
STORE_MUST_CHECK bool page_file_writable(struct page_file *file, uint32_t *number);
void page_file_mark_dirty(struct page_file *file, uint32_t number, uint64_t commit);
void page_file_mark_clean(struct page_file *file, uint32_t number);

/* Frees one clean, unreferenced frame. */
bool page_file_evict(struct page_file *file);

#ifdef VELLUM_WAIT
/* Moves the page to a new frame, as if it had been evicted and read again, unless it is
 * referenced. */
void page_file_move(struct page_file *file, uint32_t page);
#endif

/* ---- slots ---- */

/* Reserves a free slot of the class: in the page being filled, or in the next page with room.
 * False: the class has none, and a segment must be assigned first. Undone by
 * page_file_give_slot. */
STORE_MUST_CHECK bool page_file_take_slot(struct page_file *file, uint32_t size_class,
                                          uint32_t *page, uint32_t *slot);
void page_file_give_slot(struct page_file *file, uint32_t page, uint32_t slot);
/* Marks a free slot as used: in recovery, and after a flush of everything has listed the runs. */
void page_file_keep_slot(struct page_file *file, uint32_t page, uint32_t slot);
/* Whether all slots of a slab page are free (one of them may be the caller's reservation). */
bool page_file_page_unused(const struct page_file *file, uint32_t page, uint32_t reserved_slot);
/* Recovery: marks a run that a root names as used. False: no such run exists, or it is used
 * already. */
STORE_MUST_CHECK bool page_file_try_keep_run(struct page_file *file,
                                             const struct format_extent *run);
/* Whether the run exists and is used. */
bool page_file_has_run(const struct page_file *file, const struct format_extent *run);
/* Whether the slab slot is free. */
static inline bool page_file_slot_is_free(const struct page_file *file, uint32_t page,
                                          uint32_t slot)
{
    return file->free_slots[page] >> slot & 1;
}
/* Whether segments of this page file can have the class. */
bool page_file_class_exists(const struct page_file *file, uint32_t size_class);
/* Class of the page's segment; 0: the segment has none, or the file has no such page. */
uint32_t page_file_class_at(const struct page_file *file, uint32_t page);
/* Life of a segment: blank, taken, assigned to a class; once all its slots are free, detached
 * from the class; once it is zeroed, blank again. */
void page_file_add_blank(struct page_file *file, uint32_t segment);
/* Takes the first blank segment. */
STORE_MUST_CHECK bool page_file_take_blank(struct page_file *file, uint32_t *segment);
bool page_file_segment_is_free(const struct page_file *file, uint32_t segment);
void page_file_detach_segment(struct page_file *file, uint32_t segment);
/* Gives a segment its class and marks all its slots free. */
void page_file_assign(struct page_file *file, uint32_t segment, uint32_t size_class);

/* The same with these free slots, from an index checkpoint; false if they cannot be right. */
STORE_MUST_CHECK bool page_file_load_segment(struct page_file *file, uint32_t segment,
                                             uint32_t size_class, const uint64_t *free_slots,
                                             uint32_t words);

_Static_assert(FORMAT_RUN_CLASS + FORMAT_EXTENT_PAGES < 128, "struct page_file: asked");
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
/* The requested growth is done. */
static inline void page_file_grown(struct page_file *file)
{
    file->growing = false;
    page_file_forget_asked(file);
}

static inline uint32_t page_file_class_of(const struct page_file *file, uint32_t page)
{
    return file->segment_class[page / SEGMENT_PAGES];
}

/* Fills a segment's header page; with zeros if it has no class. */
void page_file_segment_header(const struct page_file *file, uint32_t segment, char page[PAGE_SIZE]);
/* 0: no class; -1: damaged; otherwise the class. *whole: both copies agree. */
int page_file_segment_class(const struct page_file *file, uint32_t segment,
                            const char page[PAGE_SIZE], bool *whole);

/* Lists the used runs in `runs`, if that is not NULL; returns their number. */
uint32_t page_file_used_runs(const struct page_file *file, struct format_extent *runs);

/* Page runs, for extents. */
static inline uint32_t page_file_run_pages(uint32_t size_class)
{
    return size_class - FORMAT_RUN_CLASS;
}

#endif
