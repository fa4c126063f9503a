#include "storage/cache/arena.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void arena_init(struct arena *arena, uint32_t limit)
{
    memset(arena, 0, sizeof *arena);
    pthread_mutex_init(&arena->lock, NULL);
    arena->limit = limit;
}

void arena_free(struct arena *arena)
{
    for (uint32_t i = 0; i < arena->chunk_count; i++) {
        munmap(arena->memory[i], ARENA_CHUNK_BYTES);
        free(arena->frames[i]);
    }
    pthread_mutex_destroy(&arena->lock);
}

static void *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Aligned to its size, so that huge pages fit too. */
static void *map_chunk(void)
{
    char *memory = map(2 * ARENA_CHUNK_BYTES);
    if (!memory)
        return NULL;
    size_t before = -(uintptr_t)memory % ARENA_CHUNK_BYTES;
    if (before > 0)
        munmap(memory, before);
    munmap(memory + before + ARENA_CHUNK_BYTES, ARENA_CHUNK_BYTES - before);
    return memory + before;
}

static void enter_chunk(struct arena *arena, const void *memory)
{
    uint32_t window = (uint32_t)((uintptr_t)memory / ARENA_CHUNK_BYTES);
    uint32_t at = arena_cell(window);
    while (arena->chunk_cells[at] != 0)
        at = (at + 1) & (ARENA_CELLS - 1);
    arena->chunk_cells[at] = window;
}

/* Untouched memory costs nothing: a chunk is mapped whole and used from its start. It gets huge
 * pages if all of it may be used: then a page access hardly ever misses the TLB. */
static bool add_chunk(struct arena *arena)
{
    if (arena->chunk_count == ARENA_CHUNK_MAX)
        return false;
    size_t size = ARENA_CHUNK_BYTES;
    void *memory = map_chunk();
    if (!memory)
        return false;
    uint32_t limit = atomic_load_explicit(&arena->limit, memory_order_relaxed);
    bool huge = limit >> ARENA_CHUNK_SHIFT > arena->chunk_count;
    arena->is_huge[arena->chunk_count] = huge && madvise(memory, size, MADV_HUGEPAGE) == 0;
    struct frame *frames = calloc(ARENA_CHUNK_FRAMES, sizeof *frames);
    if (!frames) {
        munmap(memory, size);
        return false;
    }
    enter_chunk(arena, memory);
    arena->memory[arena->chunk_count] = memory;
    arena->frames[arena->chunk_count] = frames;
    arena->chunk_count++;
    arena->fresh = arena->chunk_count == 1 ? 1 : 0; /* number 0 is 'none' */
    return true;
}

static uint32_t take_locked(struct arena *arena)
{
    uint32_t *list = arena->free_list ? &arena->free_list : &arena->held_list;
    uint32_t number = *list;
    assert(!number || arena_frame(arena, number)->state == FRAME_FREE);
    if (number) {
        *list = arena_frame(arena, number)->older;
        return number;
    }
    atomic_fetch_add_explicit(&arena->resident, 1, memory_order_relaxed);
    if ((number = arena->gone_list)) {
        arena->gone_list = arena_frame(arena, number)->older;
        return number;
    }
    bool exhausted = arena->chunk_count == 0 || arena->fresh == ARENA_CHUNK_FRAMES;
    if (exhausted && !add_chunk(arena)) {
        atomic_fetch_sub_explicit(&arena->resident, 1, memory_order_relaxed);
        return 0;
    }
    return (arena->chunk_count - 1) << ARENA_CHUNK_SHIFT | arena->fresh++;
}

uint32_t arena_urgent_frames(uint32_t limit)
{
    return limit / 32 + SEGMENT_PAGES;
}

static bool is_allowed(const struct arena *arena, enum arena_need need)
{
    uint32_t limit = atomic_load_explicit(&arena->limit, memory_order_relaxed);
    if (need == ARENA_INSTEAD)
        return true;
    if (need == ARENA_URGENT)
        limit += arena_urgent_frames(limit);
    return atomic_load_explicit(&arena->used, memory_order_relaxed) < limit;
}

uint32_t arena_take(struct arena *arena, enum arena_need need)
{
    if (!is_allowed(arena, need))
        return 0;
    pthread_mutex_lock(&arena->lock);
    uint32_t number = take_locked(arena);
    if (number)
        atomic_fetch_add_explicit(&arena->used, 1, memory_order_relaxed);
    pthread_mutex_unlock(&arena->lock);
    return number;
}

/* In the test build, code that still reads a freed page finds poison. */
static void poison(char *memory)
{
#ifdef VELLUM_WAIT
    memset(memory, ARENA_POISON, PAGE_SIZE);
#else
    (void)memory;
#endif
}

void arena_give(struct arena *arena, uint32_t number)
{
    struct frame *frame = arena_frame(arena, number);
    assert(number && frame->refs == 0 && !frame->waiters);
    assert(!frame->dirty && !frame->writing);
    poison(arena_memory(arena, number));
    pthread_mutex_lock(&arena->lock);
    *frame = (struct frame){.older = arena->free_list};
    arena->free_list = number;
    atomic_fetch_sub_explicit(&arena->used, 1, memory_order_relaxed);
    pthread_mutex_unlock(&arena->lock);
}

/* Called before part of a chunk is freed: stops the kernel from refilling the gaps with huge
 * pages. */
static void part_huge_pages(struct arena *arena, uint32_t chunk)
{
    if (arena->is_huge[chunk])
        madvise(arena->memory[chunk], ARENA_CHUNK_BYTES, MADV_NOHUGEPAGE);
    arena->is_huge[chunk] = false;
}

/* Frees the memory of one free frame. Holds the lock, so that no thread registers its chunk
 * meanwhile: a device would keep the page that was returned to the system. */
static bool trim_one(struct arena *arena)
{
    uint32_t number = arena->free_list;
    if (!number || atomic_load(&arena->resident) <= atomic_load(&arena->limit))
        return false;
    struct frame *frame = arena_frame(arena, number);
    uint32_t *list = &arena->held_list;
    if (!arena->is_held[number >> ARENA_CHUNK_SHIFT]) {
        part_huge_pages(arena, number >> ARENA_CHUNK_SHIFT);
        if (madvise(arena_memory(arena, number), PAGE_SIZE, MADV_DONTNEED) != 0)
            return false;
        atomic_fetch_sub_explicit(&arena->resident, 1, memory_order_relaxed);
        list = &arena->gone_list;
    }
    arena->free_list = frame->older;
    frame->older = *list;
    *list = number;
    return true;
}

void arena_trim(struct arena *arena)
{
    for (bool more = true; more;) {
        pthread_mutex_lock(&arena->lock);
        more = trim_one(arena);
        pthread_mutex_unlock(&arena->lock);
    }
}

bool arena_hold_chunk(struct arena *arena, const void *address, void **start, size_t *size)
{
    *size = ARENA_CHUNK_BYTES;
    *start = NULL;
    pthread_mutex_lock(&arena->lock);
    for (uint32_t i = 0; i < arena->chunk_count && *start == NULL; i++)
        if ((uintptr_t)address - (uintptr_t)arena->memory[i] < *size) {
            arena->is_held[i] = true;
            *start = arena->memory[i];
        }
    pthread_mutex_unlock(&arena->lock);
    return *start != NULL;
}

static uint32_t list_length(struct arena *arena, uint32_t first)
{
    uint32_t length = 0;
    for (uint32_t number = first; number; number = arena_frame(arena, number)->older) {
        const struct frame *frame = arena_frame(arena, number);
        assert(frame->state == FRAME_FREE && frame->refs == 0 && !frame->waiters);
        length++;
    }
    return length;
}

void arena_check(struct arena *arena)
{
    pthread_mutex_lock(&arena->lock);
    uint32_t ready = list_length(arena, arena->free_list) + list_length(arena, arena->held_list);
    uint32_t gone = list_length(arena, arena->gone_list);
    uint32_t resident = atomic_load(&arena->resident);
    assert(resident == atomic_load(&arena->used) + ready);
    uint32_t begun =
        arena->chunk_count ? (arena->chunk_count - 1) * ARENA_CHUNK_FRAMES + arena->fresh - 1 : 0;
    assert(resident + gone == begun); /* number 0 is 'none' */
    pthread_mutex_unlock(&arena->lock);
}
