#include "storage/cache/page_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/cache/access_clock.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define ROOM_STEP 64u

bool space_init(struct space *space, struct page_cache *cache, uint8_t id)
{
    memset(space, 0, sizeof *space);
    pthread_mutex_init(&space->lock, NULL);
    space->cache = cache;
    space->arena = &cache->arena;
    space->id = id;
    return space_make_room(space, ROOM_STEP);
}

void space_free(struct space *space)
{
    free(space->table);
    free(space->free_slots);
    free(space->dirty);
    free(space->segment_class);
    free(space->segment_blank);
    free(space->segment_free);
    use_drop(space);
    free(space->uses);
    pthread_mutex_destroy(&space->lock);
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

bool space_make_room(struct space *space, uint32_t segment_count)
{
    if (segment_count <= space->segment_room)
        return true;
    uint32_t room = space->segment_room + space->segment_room / 8;
    room = (room > segment_count ? room : segment_count) + ROOM_STEP;
    size_t old_pages = (size_t)space->segment_room * SEGMENT_PAGES;
    size_t pages = (size_t)room * SEGMENT_PAGES;
    if (!grow_array((void **)&space->table, old_pages * 4, pages * 4) ||
        !grow_array((void **)&space->free_slots, old_pages * 8, pages * 8) ||
        !grow_array((void **)&space->dirty, old_pages / 8, pages / 8) ||
        !grow_array((void **)&space->segment_class, space->segment_room, room) ||
        !grow_array((void **)&space->segment_blank, space->segment_room, room) ||
        !grow_array((void **)&space->segment_free, (size_t)space->segment_room * 2,
                    (size_t)room * 2) ||
        !grow_array((void **)&space->uses, space->segment_room * sizeof *space->uses,
                    room * sizeof *space->uses))
        return false;
    space->segment_room = room;
    return true;
}

uint64_t space_table_bytes(const struct space *space)
{
    uint64_t per_segment = SEGMENT_PAGES * (sizeof *space->table + sizeof *space->free_slots) +
                           SEGMENT_PAGES / 8 + sizeof *space->segment_class +
                           sizeof *space->segment_blank + sizeof *space->segment_free +
                           sizeof *space->uses;
    return space->segment_room * per_segment + counter_read(&space->use_bytes);
}

/* ---- eviction queue ---- */

/* Of clean frames only: where half of a cache is dirty, the hand would pass over all of that again
 * and again. What has been written back begins anew, behind what was read last. */

static void queue_add(struct space *space, uint32_t number)
{
    struct frame *frame = arena_frame(space->arena, number);
    assert(!frame->dirty);
    frame->newer = 0;
    frame->older = space->newest;
    if (space->newest)
        arena_frame(space->arena, space->newest)->newer = number;
    else
        space->oldest = number;
    space->newest = number;
    space->queue_length++;
}

static void queue_remove(struct space *space, uint32_t number)
{
    struct frame *frame = arena_frame(space->arena, number);
    assert(space->queue_length > 0);
    if (space->hand == number)
        space->hand = frame->newer;
    if (frame->newer)
        arena_frame(space->arena, frame->newer)->older = frame->older;
    else
        space->newest = frame->older;
    if (frame->older)
        arena_frame(space->arena, frame->older)->newer = frame->newer;
    else
        space->oldest = frame->newer;
    space->queue_length--;
}

/* Takes the frame out of the page table. It lives on as an orphan while it is referenced. */
static void detach(struct space *space, uint32_t number)
{
    struct frame *frame = arena_frame(space->arena, number);
    assert(space->table[frame->page] == number && !frame->waiters);
    if (frame->dirty)
        space_mark_clean(space, number);
    space->table[frame->page] = 0;
    queue_remove(space, number);
    if (frame->refs > 0)
        frame->state = FRAME_ORPHAN;
    else
        arena_give(space->arena, number);
}

/* SIEVE: the hand goes from old to new, spares what was visited since it last came by. */
bool space_evict(struct space *space)
{
    uint32_t steps = 2 * space->queue_length;
    while (steps-- > 0) {
        uint32_t number = space->hand ? space->hand : space->oldest;
        if (!number)
            return false;
        struct frame *frame = arena_frame(space->arena, number);
        space->hand = frame->newer;
        if (frame->refs > 0 || frame->state != FRAME_VALID)
            continue;
        if (frame->visited) {
            frame->visited = false;
            continue;
        }
        detach(space, number);
        return true;
    }
    return false;
}

/* Another space's lock is only tried: spaces are otherwise locked in order. */
static bool evict_elsewhere(struct space *space)
{
    const struct page_cache *cache = space->cache;
    for (uint32_t i = 0; i < cache->space_count; i++) {
        struct space *other = cache->spaces[i];
        if (other == space || pthread_mutex_trylock(&other->lock) != 0)
            continue;
        bool evicted = space_evict(other);
        pthread_mutex_unlock(&other->lock);
        if (evicted)
            return true;
    }
    return false;
}

static uint32_t take_frame(struct space *space, bool urgent)
{
    uint32_t number = arena_take(space->arena, ARENA_MORE);
    if (number)
        return number;
    if (space_evict(space) || evict_elsewhere(space))
        number = arena_take(space->arena, ARENA_INSTEAD);
    if (number && arena_is_over(space->arena) && space_evict(space))
        arena_trim(space->arena); /* whoever has the locks for long is to come down, too */
    if (!number && urgent)
        number = arena_take(space->arena, ARENA_URGENT);
    return number;
}

static uint32_t enter(struct space *space, uint32_t page, uint32_t number)
{
    assert(space->table[page] == 0);
    if (!number)
        return 0;
    struct frame *frame = arena_frame(space->arena, number);
    *frame = (struct frame){.page = page, .space = space->id, .state = FRAME_LOADING};
    space->table[page] = number;
    queue_add(space, number);
    return number;
}

uint32_t space_add_frame(struct space *space, uint32_t page, bool urgent)
{
    return enter(space, page, take_frame(space, urgent));
}

uint32_t space_add_frame_beside(struct space *space, uint32_t page)
{
    uint32_t number = arena_take(space->arena, ARENA_MORE);
    if (!number && evict_elsewhere(space))
        number = arena_take(space->arena, ARENA_INSTEAD);
    return enter(space, page, number ? number : arena_take(space->arena, ARENA_URGENT));
}

void space_drop(struct space *space, uint32_t page)
{
    if (space->table[page])
        detach(space, space->table[page]);
}

void space_ref(struct space *space, uint32_t number)
{
    arena_frame(space->arena, number)->refs++;
}

void space_unref(struct space *space, uint32_t number)
{
    struct frame *frame = arena_frame(space->arena, number);
    assert(frame->refs > 0);
    if (--frame->refs == 0 && frame->state == FRAME_ORPHAN)
        arena_give(space->arena, number);
}

bool space_writable(struct space *space, uint32_t *number)
{
    struct frame *old = arena_frame(space->arena, *number);
    assert(old->state == FRAME_VALID);
    if (!old->writing)
        return true;
    uint32_t page = old->page;
    uint32_t copy = take_frame(space, true);
    if (!copy)
        return false;
    struct frame *frame = arena_frame(space->arena, copy);
    *frame = (struct frame){.page = page,
                            .space = space->id,
                            .state = FRAME_VALID,
                            .commit = old->commit,
                            .visited = true};
    memcpy(arena_memory(space->arena, copy), arena_memory(space->arena, *number), PAGE_SIZE);
    detach(space, *number);
    space->table[page] = copy;
    queue_add(space, copy);
    space_mark_dirty(space, copy, frame->commit); /* clean it could go, and be read before the
                                                     write of the old one has arrived */
    *number = copy;
    return true;
}

#ifdef VELLUM_WAIT
void space_move(struct space *space, uint32_t page)
{
    uint32_t number = space->table[page];
    struct frame *old = arena_frame(space->arena, number);
    if (!number || old->refs > 0 || old->state != FRAME_VALID)
        return;
    uint32_t other = arena_take(space->arena, ARENA_INSTEAD);
    if (!other)
        return;
    struct frame *frame = arena_frame(space->arena, other);
    bool dirty = old->dirty;
    *frame = *old;
    frame->dirty = false;
    memcpy(arena_memory(space->arena, other), arena_memory(space->arena, number), PAGE_SIZE);
    detach(space, number);
    space->table[page] = other;
    queue_add(space, other);
    if (dirty)
        space_mark_dirty(space, other, frame->commit);
}
#endif

void space_mark_dirty(struct space *space, uint32_t number, uint64_t commit)
{
    struct frame *frame = arena_frame(space->arena, number);
    frame->commit = commit;
    frame->visited = true;
    assert(!frame->writing && frame->state == FRAME_VALID);
    if (frame->dirty)
        return;
    queue_remove(space, number);
    frame->dirty = true;
    space->dirty[frame->page / 64] |= 1ull << (frame->page % 64);
    space->dirty_count++;
    atomic_fetch_add_explicit(&space->cache->dirty_frames, 1, memory_order_relaxed);
}

void space_mark_clean(struct space *space, uint32_t number)
{
    struct frame *frame = arena_frame(space->arena, number);
    assert(frame->dirty && space->dirty_count > 0);
    frame->dirty = false;
    frame->visited = false;
    queue_add(space, number);
    space->dirty[frame->page / 64] &= ~(1ull << (frame->page % 64));
    space->dirty_count--;
    atomic_fetch_sub_explicit(&space->cache->dirty_frames, 1, memory_order_relaxed);
}

/* ---- slots ---- */

static uint64_t all_slots(uint32_t size_class)
{
    uint32_t count = format_class_slots(size_class);
    return count == 64 ? ~0ull : (1ull << count) - 1;
}

static uint32_t runs_in_segment(uint32_t size_class)
{
    return (SEGMENT_PAGES - 1) / space_run_pages(size_class);
}

static void count_free(struct space *space, uint32_t segment, int32_t change)
{
    space->segment_free[segment] = (uint16_t)(space->segment_free[segment] + change);
    space->classes[space->segment_class[segment]].free_count += (uint64_t)(int64_t)change;
}

void space_add_blank(struct space *space, uint32_t segment)
{
    assert(segment < space->segment_count && space->segment_class[segment] == 0);
    assert(!space->segment_blank[segment]);
    space->segment_blank[segment] = 1;
    space->blank_count++;
}

bool space_take_blank(struct space *space, uint32_t *segment)
{
    if (space->blank_count == 0)
        return false;
    const uint8_t *found = memchr(space->segment_blank, 1, space->segment_count);
    assert(found && space->segment_class[found - space->segment_blank] == 0);
    *segment = (uint32_t)(found - space->segment_blank);
    space->segment_blank[*segment] = 0;
    space->blank_count--;
    return true;
}

/* Slots, or runs. */
static uint32_t places_in_segment(uint32_t size_class)
{
    return size_class < FORMAT_RUN_CLASS ? (SEGMENT_PAGES - 1) * format_class_slots(size_class)
                                         : runs_in_segment(size_class);
}

bool space_segment_is_free(const struct space *space, uint32_t segment)
{
    uint32_t size_class = space->segment_class[segment];
    return size_class != 0 && space->segment_free[segment] == places_in_segment(size_class);
}

void space_detach_segment(struct space *space, uint32_t segment)
{
    struct space_class *c = &space->classes[space->segment_class[segment]];
    assert(space_segment_is_free(space, segment));
    if (c->page / SEGMENT_PAGES == segment)
        c->page = 0;
    count_free(space, segment, -(int32_t)space->segment_free[segment]);
    space->segment_class[segment] = 0;
    memset(&space->free_slots[(size_t)segment * SEGMENT_PAGES], 0,
           SEGMENT_PAGES * sizeof *space->free_slots);
    while (space->segment_assigned > 0 && space->segment_class[space->segment_assigned - 1] == 0)
        space->segment_assigned--;
}

void space_assign(struct space *space, uint32_t segment, uint32_t size_class)
{
    assert(segment < space->segment_count && !space->segment_blank[segment]);
    space->segment_class[segment] = (uint8_t)size_class;
    if (segment >= space->segment_assigned)
        space->segment_assigned = segment + 1;
    uint64_t *masks = &space->free_slots[(size_t)segment * SEGMENT_PAGES];
    memset(masks, 0, SEGMENT_PAGES * sizeof *masks);
    if (size_class < FORMAT_RUN_CLASS) {
        for (uint32_t i = 1; i < SEGMENT_PAGES; i++)
            masks[i] = all_slots(size_class);
    } else {
        uint32_t runs = runs_in_segment(size_class);
        for (uint32_t i = 0; i < runs; i++)
            masks[i / 64] |= 1ull << (i % 64);
    }
    count_free(space, segment, (int32_t)places_in_segment(size_class));
}

bool space_class_exists(const struct space *space, uint32_t size_class)
{
    if (space->id != FORMAT_EXTENT_SPACE)
        return size_class >= 1 && size_class <= FORMAT_SLAB_CLASSES;
    return size_class > FORMAT_RUN_CLASS && size_class <= FORMAT_RUN_CLASS + FORMAT_EXTENT_PAGES;
}

bool space_load_segment(struct space *space, uint32_t segment, uint32_t size_class,
                        const uint64_t *free_slots, uint32_t words)
{
    if (!space_class_exists(space, size_class))
        return false;
    space_assign(space, segment, size_class);
    uint64_t *masks = &space->free_slots[(size_t)segment * SEGMENT_PAGES];
    int32_t taken = 0;
    for (uint32_t i = 0; i < words; i++) {
        if (free_slots[i] & ~masks[i])
            return false;
        taken += __builtin_popcountll(masks[i] & ~free_slots[i]);
        masks[i] = free_slots[i];
    }
    count_free(space, segment, -taken);
    return true;
}

/* The mask and bit of a slot. For a run its number within the segment takes the slot's part. */
static uint64_t *mask_of(struct space *space, uint32_t page, uint32_t slot, uint64_t *bit)
{
    uint32_t size_class = space_class_of(space, page);
    assert(size_class != 0);
    if (size_class < FORMAT_RUN_CLASS) {
        *bit = 1ull << slot;
        return &space->free_slots[page];
    }
    uint32_t run = (page % SEGMENT_PAGES - 1) / space_run_pages(size_class);
    *bit = 1ull << (run % 64);
    return &space->free_slots[page / SEGMENT_PAGES * SEGMENT_PAGES + run / 64];
}

void space_give_slot(struct space *space, uint32_t page, uint32_t slot)
{
    uint64_t bit, *mask = mask_of(space, page, slot, &bit);
    assert(!(*mask & bit));
    *mask |= bit;
    count_free(space, page / SEGMENT_PAGES, 1);
}

void space_keep_slot(struct space *space, uint32_t page, uint32_t slot)
{
    uint64_t bit, *mask = mask_of(space, page, slot, &bit);
    assert(*mask & bit);
    *mask &= ~bit;
    count_free(space, page / SEGMENT_PAGES, -1);
}

uint32_t space_class_at(const struct space *space, uint32_t page)
{
    return page / SEGMENT_PAGES < space->segment_count ? space_class_of(space, page) : 0;
}

/* Whether a run begins there and has room for so many bytes. */
static bool is_run(const struct space *space, const struct format_extent *run)
{
    uint32_t size_class = space_class_at(space, run->page);
    if (size_class <= FORMAT_RUN_CLASS || run->page % SEGMENT_PAGES == 0)
        return false;
    uint32_t pages = space_run_pages(size_class), before = run->page % SEGMENT_PAGES - 1;
    return before % pages == 0 && before / pages < runs_in_segment(size_class) &&
           run->length <= pages * PAGE_SIZE;
}

static bool run_is_free(const struct space *space, uint32_t page)
{
    uint32_t first = page - page % SEGMENT_PAGES;
    uint32_t run = (page - first - 1) / space_run_pages(space_class_of(space, page));
    return space->free_slots[first + run / 64] >> (run % 64) & 1;
}

bool space_has_run(const struct space *space, const struct format_extent *run)
{
    return is_run(space, run) && !run_is_free(space, run->page);
}

bool space_try_keep_run(struct space *space, const struct format_extent *run)
{
    if (!is_run(space, run) || !run_is_free(space, run->page))
        return false;
    space_keep_slot(space, run->page, 0);
    return true;
}

bool space_page_unused(const struct space *space, uint32_t page, uint32_t reserved_slot)
{
    uint64_t all = all_slots(space_class_of(space, page));
    return (space->free_slots[page] | 1ull << reserved_slot) == all;
}

/* First index in [from, SEGMENT_PAGES) of the segment whose mask is not empty. */
static uint32_t find_mask(const struct space *space, uint32_t segment, uint32_t from)
{
    const uint64_t *masks = &space->free_slots[(size_t)segment * SEGMENT_PAGES];
    while (from < SEGMENT_PAGES && masks[from] == 0)
        from++;
    return from;
}

/* Moves the class on to the next mask with a free slot, segment after segment, once around. */
static bool seek(struct space *space, uint32_t size_class)
{
    struct space_class *c = &space->classes[size_class];
    uint32_t from = c->page ? c->page % SEGMENT_PAGES : 0;
    if (c->page)
        c->segment = c->page / SEGMENT_PAGES;
    for (uint32_t i = 0; i <= space->segment_assigned; i++) {
        if (c->segment >= space->segment_assigned)
            c->segment = 0;
        if (space->segment_class[c->segment] == size_class && space->segment_free[c->segment] > 0) {
            uint32_t found = find_mask(space, c->segment, from);
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

bool space_take_slot(struct space *space, uint32_t size_class, uint32_t *page, uint32_t *slot)
{
    struct space_class *c = &space->classes[size_class];
    if (c->free_count == 0)
        return false;
    if ((!c->page || space->free_slots[c->page] == 0) && !seek(space, size_class))
        return false;
    uint64_t *mask = &space->free_slots[c->page];
    uint32_t bit = (uint32_t)__builtin_ctzll(*mask);
    *mask &= *mask - 1;
    count_free(space, c->page / SEGMENT_PAGES, -1);
    if (size_class < FORMAT_RUN_CLASS) {
        *page = c->page;
        *slot = bit;
    } else {
        uint32_t run = c->page % SEGMENT_PAGES * 64 + bit;
        *page = c->page / SEGMENT_PAGES * SEGMENT_PAGES + 1 + run * space_run_pages(size_class);
        *slot = 0;
    }
    return true;
}

uint32_t space_used_runs(const struct space *space, struct format_extent *runs)
{
    uint32_t used = 0;
    for (uint32_t segment = 0; segment < space->segment_assigned; segment++) {
        uint32_t size_class = space->segment_class[segment];
        for (uint32_t run = 0; size_class && run < runs_in_segment(size_class); run++) {
            uint32_t first = segment * SEGMENT_PAGES;
            if (space->free_slots[first + run / 64] >> (run % 64) & 1)
                continue;
            uint32_t pages = space_run_pages(size_class);
            if (runs)
                runs[used] = (struct format_extent){first + 1 + run * pages, pages * PAGE_SIZE, 0};
            used++;
        }
    }
    return used;
}

/* ---- segment headers ---- */

void space_segment_header(const struct space *space, uint32_t segment, char page[PAGE_SIZE])
{
    struct format_segment header = {.magic = FORMAT_SEGMENT_MAGIC,
                                    .seed = space->cache->seed,
                                    .segment = segment,
                                    .space = space->id,
                                    .size_class = space->segment_class[segment]};
    header.checksum = XXH3_64bits(&header, offsetof(struct format_segment, checksum));
    memset(page, 0, PAGE_SIZE);
    if (header.size_class == 0)
        return;
    memcpy(page, &header, sizeof header);
    memcpy(page + FORMAT_SEGMENT_COPY, &header, sizeof header);
}

static int class_in(const struct space *space, uint32_t segment, const char *at)
{
    struct format_segment header;
    memcpy(&header, at, sizeof header);
    static const struct format_segment blank;
    if (memcmp(&header, &blank, sizeof header) == 0)
        return 0;
    bool good =
        header.magic == FORMAT_SEGMENT_MAGIC && header.seed == space->cache->seed &&
        header.segment == segment && header.space == space->id &&
        header.checksum == XXH3_64bits(&header, offsetof(struct format_segment, checksum)) &&
        space_class_exists(space, header.size_class);
    return good ? header.size_class : -1;
}

int space_segment_class(const struct space *space, uint32_t segment, const char page[PAGE_SIZE],
                        bool *whole)
{
    int size_class = class_in(space, segment, page);
    int copy = class_in(space, segment, page + FORMAT_SEGMENT_COPY);
    *whole = size_class == copy;
    if (size_class > 0 || *whole)
        return size_class;
    return copy > 0 ? copy : -1;
}

void space_check(const struct space *space)
{
    uint32_t dirty = 0, clean = 0;
    for (uint32_t page = 0; page < space->segment_count * SEGMENT_PAGES; page++) {
        uint32_t number = space->table[page];
        bool bit = space->dirty[page / 64] >> (page % 64) & 1;
        dirty += bit;
        if (!number) {
            assert(!bit);
            continue;
        }
        const struct frame *frame = arena_frame(space->arena, number);
        clean += !bit;
        assert(frame->page == page && frame->space == space->id && frame->dirty == bit);
        assert(frame->state == FRAME_VALID || (frame->state == FRAME_LOADING && !bit));
    }
    assert(dirty == space->dirty_count && clean == space->queue_length);
}
