#include "storage/cache/page_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/cache/access_clock.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define ROOM_STEP 64u

bool page_file_init(struct page_file *file, struct page_cache *cache, uint8_t id)
{
    memset(file, 0, sizeof *file);
    pthread_mutex_init(&file->lock, NULL);
    file->cache = cache;
    file->arena = &cache->arena;
    file->id = id;
    return page_file_make_room(file, ROOM_STEP);
}

void page_file_free(struct page_file *file)
{
    free(file->table);
    free(file->free_slots);
    free(file->dirty);
    free(file->segment_class);
    free(file->segment_blank);
    free(file->segment_free);
    access_drop(file);
    free(file->uses);
    pthread_mutex_destroy(&file->lock);
}

static bool grow_array(void **array, size_t old_size, size_t new_size)
{
    char *grown = realloc(*array, new_size);
    if (!grown)
        return false;
    memset(grown + old_size, 0, new_size - old_size);
    *array = grown;
    return true;
}

bool page_file_make_room(struct page_file *file, uint32_t segment_count)
{
    if (segment_count <= file->segment_room)
        return true;
    uint32_t room = file->segment_room + file->segment_room / 8;
    room = (room > segment_count ? room : segment_count) + ROOM_STEP;
    size_t old_pages = (size_t)file->segment_room * SEGMENT_PAGES;
    size_t pages = (size_t)room * SEGMENT_PAGES;
    if (!grow_array((void **)&file->table, old_pages * 4, pages * 4) ||
        !grow_array((void **)&file->free_slots, old_pages * 8, pages * 8) ||
        !grow_array((void **)&file->dirty, old_pages / 8, pages / 8) ||
        !grow_array((void **)&file->segment_class, file->segment_room, room) ||
        !grow_array((void **)&file->segment_blank, file->segment_room, room) ||
        !grow_array((void **)&file->segment_free, (size_t)file->segment_room * 2,
                    (size_t)room * 2) ||
        !grow_array((void **)&file->uses, file->segment_room * sizeof *file->uses,
                    room * sizeof *file->uses))
        return false;
    file->segment_room = room;
    return true;
}

uint64_t page_file_table_bytes(const struct page_file *file)
{
    uint64_t per_segment = SEGMENT_PAGES * (sizeof *file->table + sizeof *file->free_slots) +
                           SEGMENT_PAGES / 8 + sizeof *file->segment_class +
                           sizeof *file->segment_blank + sizeof *file->segment_free +
                           sizeof *file->uses;
    return file->segment_room * per_segment + counter_read(&file->access_bytes);
}

/* ---- eviction queue ---- */

/* Holds clean frames only: with half of a cache dirty, the hand would pass over all of that
 * again and again. A page that was written back is added as new, after the pages that were read
 * last. */

static void queue_add(struct page_file *file, uint32_t number)
{
    struct frame *frame = arena_frame(file->arena, number);
    assert(!frame->dirty);
    frame->newer = 0;
    frame->older = file->newest;
    if (file->newest)
        arena_frame(file->arena, file->newest)->newer = number;
    else
        file->oldest = number;
    file->newest = number;
    file->queue_length++;
}

static void queue_remove(struct page_file *file, uint32_t number)
{
    struct frame *frame = arena_frame(file->arena, number);
    assert(file->queue_length > 0);
    if (file->hand == number)
        file->hand = frame->newer;
    if (frame->newer)
        arena_frame(file->arena, frame->newer)->older = frame->older;
    else
        file->newest = frame->older;
    if (frame->older)
        arena_frame(file->arena, frame->older)->newer = frame->newer;
    else
        file->oldest = frame->newer;
    file->queue_length--;
}

/* Takes the frame out of the page table. It lives on as an orphan while it is referenced. */
static void detach(struct page_file *file, uint32_t number)
{
    struct frame *frame = arena_frame(file->arena, number);
    assert(file->table[frame->page] == number && !frame->waiters);
    if (frame->dirty)
        page_file_mark_clean(file, number);
    file->table[frame->page] = 0;
    queue_remove(file, number);
    if (frame->refs > 0)
        frame->state = FRAME_ORPHAN;
    else
        arena_give(file->arena, number);
}

/* SIEVE: the hand moves from old to new and spares frames visited since its last pass. */
bool page_file_evict(struct page_file *file)
{
    uint32_t steps = 2 * file->queue_length;
    while (steps-- > 0) {
        uint32_t number = file->hand ? file->hand : file->oldest;
        if (!number)
            return false;
        struct frame *frame = arena_frame(file->arena, number);
        file->hand = frame->newer;
        if (frame->refs > 0 || frame->state != FRAME_VALID)
            continue;
        if (frame->visited) {
            frame->visited = false;
            continue;
        }
        detach(file, number);
        return true;
    }
    return false;
}

/* Only tries the other page file's lock: blocking here would break the lock order. */
static bool evict_elsewhere(struct page_file *file)
{
    const struct page_cache *cache = file->cache;
    for (uint32_t i = 0; i < cache->page_file_count; i++) {
        struct page_file *other = cache->page_files[i];
        if (other == file || pthread_mutex_trylock(&other->lock) != 0)
            continue;
        bool evicted = page_file_evict(other);
        pthread_mutex_unlock(&other->lock);
        if (evicted)
            return true;
    }
    return false;
}

static uint32_t take_frame(struct page_file *file, bool urgent)
{
    uint32_t number = arena_take(file->arena, ARENA_MORE);
    if (number)
        return number;
    if (page_file_evict(file) || evict_elsewhere(file))
        number = arena_take(file->arena, ARENA_INSTEAD);
    if (number && arena_is_over(file->arena) && page_file_evict(file))
        /* Shrinks also while a caller holds the locks for long. */
        arena_trim(file->arena);
    if (!number && urgent)
        number = arena_take(file->arena, ARENA_URGENT);
    return number;
}

static uint32_t enter(struct page_file *file, uint32_t page, uint32_t number)
{
    assert(file->table[page] == 0);
    if (!number)
        return 0;
    struct frame *frame = arena_frame(file->arena, number);
    *frame = (struct frame){.page = page, .file = file->id, .state = FRAME_LOADING};
    file->table[page] = number;
    queue_add(file, number);
    return number;
}

uint32_t page_file_add_frame(struct page_file *file, uint32_t page, bool urgent)
{
    return enter(file, page, take_frame(file, urgent));
}

uint32_t page_file_add_frame_beside(struct page_file *file, uint32_t page)
{
    uint32_t number = arena_take(file->arena, ARENA_MORE);
    if (!number && evict_elsewhere(file))
        number = arena_take(file->arena, ARENA_INSTEAD);
    return enter(file, page, number ? number : arena_take(file->arena, ARENA_URGENT));
}

void page_file_drop(struct page_file *file, uint32_t page)
{
    if (file->table[page])
        detach(file, file->table[page]);
}

void page_file_ref(struct page_file *file, uint32_t number)
{
    arena_frame(file->arena, number)->refs++;
}

void page_file_unref(struct page_file *file, uint32_t number)
{
    struct frame *frame = arena_frame(file->arena, number);
    assert(frame->refs > 0);
    if (--frame->refs == 0 && frame->state == FRAME_ORPHAN)
        arena_give(file->arena, number);
}

bool page_file_writable(struct page_file *file, uint32_t *number)
{
    struct frame *old = arena_frame(file->arena, *number);
    assert(old->state == FRAME_VALID);
    if (!old->writing)
        return true;
    uint32_t page = old->page;
    uint32_t copy = take_frame(file, true);
    if (!copy)
        return false;
    struct frame *frame = arena_frame(file->arena, copy);
    *frame = (struct frame){.page = page,
                            .file = file->id,
                            .state = FRAME_VALID,
                            .commit = old->commit,
                            .visited = true};
    memcpy(arena_memory(file->arena, copy), arena_memory(file->arena, *number), PAGE_SIZE);
    detach(file, *number);
    file->table[page] = copy;
    queue_add(file, copy);
    /* A clean copy could be evicted and read again before the old frame is written. */
    page_file_mark_dirty(file, copy, frame->commit);
    *number = copy;
    return true;
}

#ifdef VELLUM_WAIT
void page_file_move(struct page_file *file, uint32_t page)
{
    uint32_t number = file->table[page];
    struct frame *old = arena_frame(file->arena, number);
    if (!number || old->refs > 0 || old->state != FRAME_VALID)
        return;
    uint32_t other = arena_take(file->arena, ARENA_INSTEAD);
    if (!other)
        return;
    struct frame *frame = arena_frame(file->arena, other);
    bool dirty = old->dirty;
    *frame = *old;
    frame->dirty = false;
    memcpy(arena_memory(file->arena, other), arena_memory(file->arena, number), PAGE_SIZE);
    detach(file, number);
    file->table[page] = other;
    queue_add(file, other);
    if (dirty)
        page_file_mark_dirty(file, other, frame->commit);
}
#endif

void page_file_mark_dirty(struct page_file *file, uint32_t number, uint64_t commit)
{
    struct frame *frame = arena_frame(file->arena, number);
    frame->commit = commit;
    frame->visited = true;
    assert(!frame->writing && frame->state == FRAME_VALID);
    if (frame->dirty)
        return;
    queue_remove(file, number);
    frame->dirty = true;
    file->dirty[frame->page / 64] |= 1ull << (frame->page % 64);
    file->dirty_count++;
    atomic_fetch_add_explicit(&file->cache->dirty_frames, 1, memory_order_relaxed);
}

void page_file_mark_clean(struct page_file *file, uint32_t number)
{
    struct frame *frame = arena_frame(file->arena, number);
    assert(frame->dirty && file->dirty_count > 0);
    frame->dirty = false;
    frame->visited = false;
    queue_add(file, number);
    file->dirty[frame->page / 64] &= ~(1ull << (frame->page % 64));
    file->dirty_count--;
    atomic_fetch_sub_explicit(&file->cache->dirty_frames, 1, memory_order_relaxed);
}

/* ---- slots ---- */

static uint64_t all_slots(uint32_t size_class)
{
    uint32_t count = format_class_slots(size_class);
    return count == 64 ? ~0ull : (1ull << count) - 1;
}

static uint32_t runs_in_segment(uint32_t size_class)
{
    return (SEGMENT_PAGES - 1) / page_file_run_pages(size_class);
}

static void count_free(struct page_file *file, uint32_t segment, int32_t change)
{
    file->segment_free[segment] = (uint16_t)(file->segment_free[segment] + change);
    file->classes[file->segment_class[segment]].free_count += (uint64_t)(int64_t)change;
}

void page_file_add_blank(struct page_file *file, uint32_t segment)
{
    assert(segment < file->segment_count && file->segment_class[segment] == 0);
    assert(!file->segment_blank[segment]);
    file->segment_blank[segment] = 1;
    file->blank_count++;
}

bool page_file_take_blank(struct page_file *file, uint32_t *segment)
{
    if (file->blank_count == 0)
        return false;
    const uint8_t *found = memchr(file->segment_blank, 1, file->segment_count);
    assert(found && file->segment_class[found - file->segment_blank] == 0);
    *segment = (uint32_t)(found - file->segment_blank);
    file->segment_blank[*segment] = 0;
    file->blank_count--;
    return true;
}

/* Number of slots, or of runs. */
static uint32_t places_in_segment(uint32_t size_class)
{
    return size_class < FORMAT_RUN_CLASS ? (SEGMENT_PAGES - 1) * format_class_slots(size_class)
                                         : runs_in_segment(size_class);
}

bool page_file_segment_is_free(const struct page_file *file, uint32_t segment)
{
    uint32_t size_class = file->segment_class[segment];
    return size_class != 0 && file->segment_free[segment] == places_in_segment(size_class);
}

void page_file_detach_segment(struct page_file *file, uint32_t segment)
{
    struct page_file_class *c = &file->classes[file->segment_class[segment]];
    assert(page_file_segment_is_free(file, segment));
    if (c->page / SEGMENT_PAGES == segment)
        c->page = 0;
    count_free(file, segment, -(int32_t)file->segment_free[segment]);
    file->segment_class[segment] = 0;
    memset(&file->free_slots[(size_t)segment * SEGMENT_PAGES], 0,
           SEGMENT_PAGES * sizeof *file->free_slots);
    while (file->segment_assigned > 0 && file->segment_class[file->segment_assigned - 1] == 0)
        file->segment_assigned--;
}

void page_file_assign(struct page_file *file, uint32_t segment, uint32_t size_class)
{
    assert(segment < file->segment_count && !file->segment_blank[segment]);
    file->segment_class[segment] = (uint8_t)size_class;
    if (segment >= file->segment_assigned)
        file->segment_assigned = segment + 1;
    uint64_t *masks = &file->free_slots[(size_t)segment * SEGMENT_PAGES];
    memset(masks, 0, SEGMENT_PAGES * sizeof *masks);
    if (size_class < FORMAT_RUN_CLASS) {
        for (uint32_t i = 1; i < SEGMENT_PAGES; i++)
            masks[i] = all_slots(size_class);
    } else {
        uint32_t runs = runs_in_segment(size_class);
        for (uint32_t i = 0; i < runs; i++)
            masks[i / 64] |= 1ull << (i % 64);
    }
    count_free(file, segment, (int32_t)places_in_segment(size_class));
}

bool page_file_class_exists(const struct page_file *file, uint32_t size_class)
{
    if (file->id != FORMAT_EXTENT_FILE)
        return size_class >= 1 && size_class <= FORMAT_SLAB_CLASSES;
    return size_class > FORMAT_RUN_CLASS && size_class <= FORMAT_RUN_CLASS + FORMAT_EXTENT_PAGES;
}

bool page_file_load_segment(struct page_file *file, uint32_t segment, uint32_t size_class,
                            const uint64_t *free_slots, uint32_t words)
{
    if (!page_file_class_exists(file, size_class))
        return false;
    page_file_assign(file, segment, size_class);
    uint64_t *masks = &file->free_slots[(size_t)segment * SEGMENT_PAGES];
    int32_t taken = 0;
    for (uint32_t i = 0; i < words; i++) {
        if (free_slots[i] & ~masks[i])
            return false;
        taken += __builtin_popcountll(masks[i] & ~free_slots[i]);
        masks[i] = free_slots[i];
    }
    count_free(file, segment, -taken);
    return true;
}

/* The mask and bit of a slot. For a run, its number within the segment serves as the slot. */
static uint64_t *mask_of(struct page_file *file, uint32_t page, uint32_t slot, uint64_t *bit)
{
    uint32_t size_class = page_file_class_of(file, page);
    assert(size_class != 0);
    if (size_class < FORMAT_RUN_CLASS) {
        *bit = 1ull << slot;
        return &file->free_slots[page];
    }
    uint32_t run = (page % SEGMENT_PAGES - 1) / page_file_run_pages(size_class);
    *bit = 1ull << (run % 64);
    return &file->free_slots[page / SEGMENT_PAGES * SEGMENT_PAGES + run / 64];
}

void page_file_give_slot(struct page_file *file, uint32_t page, uint32_t slot)
{
    uint64_t bit, *mask = mask_of(file, page, slot, &bit);
    assert(!(*mask & bit));
    *mask |= bit;
    count_free(file, page / SEGMENT_PAGES, 1);
}

void page_file_keep_slot(struct page_file *file, uint32_t page, uint32_t slot)
{
    uint64_t bit, *mask = mask_of(file, page, slot, &bit);
    assert(*mask & bit);
    *mask &= ~bit;
    count_free(file, page / SEGMENT_PAGES, -1);
}

uint32_t page_file_class_at(const struct page_file *file, uint32_t page)
{
    return page / SEGMENT_PAGES < file->segment_count ? page_file_class_of(file, page) : 0;
}

/* Whether a run of at least so many bytes begins there. */
static bool is_run(const struct page_file *file, const struct format_extent *run)
{
    uint32_t size_class = page_file_class_at(file, run->page);
    if (size_class <= FORMAT_RUN_CLASS || run->page % SEGMENT_PAGES == 0)
        return false;
    uint32_t pages = page_file_run_pages(size_class), before = run->page % SEGMENT_PAGES - 1;
    return before % pages == 0 && before / pages < runs_in_segment(size_class) &&
           run->length <= pages * PAGE_SIZE;
}

static bool run_is_free(const struct page_file *file, uint32_t page)
{
    uint32_t first = page - page % SEGMENT_PAGES;
    uint32_t run = (page - first - 1) / page_file_run_pages(page_file_class_of(file, page));
    return file->free_slots[first + run / 64] >> (run % 64) & 1;
}

bool page_file_has_run(const struct page_file *file, const struct format_extent *run)
{
    return is_run(file, run) && !run_is_free(file, run->page);
}

bool page_file_try_keep_run(struct page_file *file, const struct format_extent *run)
{
    if (!is_run(file, run) || !run_is_free(file, run->page))
        return false;
    page_file_keep_slot(file, run->page, 0);
    return true;
}

bool page_file_page_unused(const struct page_file *file, uint32_t page, uint32_t reserved_slot)
{
    uint64_t all = all_slots(page_file_class_of(file, page));
    return (file->free_slots[page] | 1ull << reserved_slot) == all;
}

/* First index in [from, SEGMENT_PAGES) of the segment whose mask is not empty. */
static uint32_t find_mask(const struct page_file *file, uint32_t segment, uint32_t from)
{
    const uint64_t *masks = &file->free_slots[(size_t)segment * SEGMENT_PAGES];
    while (from < SEGMENT_PAGES && masks[from] == 0)
        from++;
    return from;
}

/* Moves the class to the next mask with a free slot, segment after segment, at most once
 * around. */
static bool seek(struct page_file *file, uint32_t size_class)
{
    struct page_file_class *c = &file->classes[size_class];
    uint32_t from = c->page ? c->page % SEGMENT_PAGES : 0;
    if (c->page)
        c->segment = c->page / SEGMENT_PAGES;
    for (uint32_t i = 0; i <= file->segment_assigned; i++) {
        if (c->segment >= file->segment_assigned)
            c->segment = 0;
        if (file->segment_class[c->segment] == size_class && file->segment_free[c->segment] > 0) {
            uint32_t found = find_mask(file, c->segment, from);
            if (found < SEGMENT_PAGES) {
                c->page = c->segment * SEGMENT_PAGES + found;
                return true;
            }
        }
        from = 0;
        c->segment++;
    }
    return false;
}

bool page_file_take_slot(struct page_file *file, uint32_t size_class, uint32_t *page,
                         uint32_t *slot)
{
    struct page_file_class *c = &file->classes[size_class];
    if (c->free_count == 0)
        return false;
    if ((!c->page || file->free_slots[c->page] == 0) && !seek(file, size_class))
        return false;
    uint64_t *mask = &file->free_slots[c->page];
    uint32_t bit = (uint32_t)__builtin_ctzll(*mask);
    *mask &= *mask - 1;
    count_free(file, c->page / SEGMENT_PAGES, -1);
    if (size_class < FORMAT_RUN_CLASS) {
        *page = c->page;
        *slot = bit;
    } else {
        uint32_t run = c->page % SEGMENT_PAGES * 64 + bit;
        *page = c->page / SEGMENT_PAGES * SEGMENT_PAGES + 1 + run * page_file_run_pages(size_class);
        *slot = 0;
    }
    return true;
}

uint32_t page_file_used_runs(const struct page_file *file, struct format_extent *runs)
{
    uint32_t used = 0;
    for (uint32_t segment = 0; segment < file->segment_assigned; segment++) {
        uint32_t size_class = file->segment_class[segment];
        for (uint32_t run = 0; size_class && run < runs_in_segment(size_class); run++) {
            uint32_t first = segment * SEGMENT_PAGES;
            if (file->free_slots[first + run / 64] >> (run % 64) & 1)
                continue;
            uint32_t pages = page_file_run_pages(size_class);
            if (runs)
                runs[used] = (struct format_extent){first + 1 + run * pages, pages * PAGE_SIZE, 0};
            used++;
        }
    }
    return used;
}

/* ---- segment headers ---- */

void page_file_segment_header(const struct page_file *file, uint32_t segment, char page[PAGE_SIZE])
{
    struct format_segment header = {.magic = FORMAT_SEGMENT_MAGIC,
                                    .seed = file->cache->seed,
                                    .segment = segment,
                                    .file = file->id,
                                    .size_class = file->segment_class[segment]};
    header.checksum = XXH3_64bits(&header, offsetof(struct format_segment, checksum));
    memset(page, 0, PAGE_SIZE);
    if (header.size_class == 0)
        return;
    memcpy(page, &header, sizeof header);
    memcpy(page + FORMAT_SEGMENT_COPY, &header, sizeof header);
}

static int class_in(const struct page_file *file, uint32_t segment, const char *at)
{
    struct format_segment header;
    memcpy(&header, at, sizeof header);
    static const struct format_segment blank;
    if (memcmp(&header, &blank, sizeof header) == 0)
        return 0;
    bool good =
        header.magic == FORMAT_SEGMENT_MAGIC && header.seed == file->cache->seed &&
        header.segment == segment && header.file == file->id &&
        header.checksum == XXH3_64bits(&header, offsetof(struct format_segment, checksum)) &&
        page_file_class_exists(file, header.size_class);
    return good ? header.size_class : -1;
}

int page_file_segment_class(const struct page_file *file, uint32_t segment,
                            const char page[PAGE_SIZE], bool *whole)
{
    int size_class = class_in(file, segment, page);
    int copy = class_in(file, segment, page + FORMAT_SEGMENT_COPY);
    *whole = size_class == copy;
    if (size_class > 0 || *whole)
        return size_class;
    return copy > 0 ? copy : -1;
}

void page_file_check(const struct page_file *file)
{
    uint32_t dirty = 0, clean = 0;
    for (uint32_t page = 0; page < file->segment_count * SEGMENT_PAGES; page++) {
        uint32_t number = file->table[page];
        bool bit = file->dirty[page / 64] >> (page % 64) & 1;
        dirty += bit;
        if (!number) {
            assert(!bit);
            continue;
        }
        const struct frame *frame = arena_frame(file->arena, number);
        clean += !bit;
        assert(frame->page == page && frame->file == file->id && frame->dirty == bit);
        assert(frame->state == FRAME_VALID || (frame->state == FRAME_LOADING && !bit));
    }
    assert(dirty == file->dirty_count && clean == file->queue_length);
}
