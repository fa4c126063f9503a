/* Size classes, their mappings, and the moving of blocks. Invariants: see the header. */
#include "storage/base/cell_pool.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define CAPACITY_BYTES_MIN (16 * PAGE) /* address space only: pages come with their first use */

/* Up to FINE_WORDS every even number is a size; above, STEPS sizes per doubling. */
#define FINE_WORDS 32u
#define STEPS 8u

void cell_pool_init(struct cell_pool *pool)
{
    *pool = (struct cell_pool){.limit = UINT64_MAX};
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* ---- sizes: one word more than the cells, for the owner ---- */

static uint32_t class_of(uint32_t words)
{
    uint32_t floor = FINE_WORDS, size_class = FINE_WORDS / 2;
    if (words <= floor) {
        return (words + 1) / 2;
    }
    while (words > 2 * floor) {
        floor *= 2;
        size_class += STEPS;
    }
    uint32_t step = floor / STEPS;
    return size_class + (words - floor + step - 1) / step;
}

static uint32_t class_words(uint32_t size_class)
{
    if (size_class <= FINE_WORDS / 2) {
        return 2 * size_class;
    }
    uint32_t above = size_class - FINE_WORDS / 2 - 1;
    uint32_t floor = FINE_WORDS << above / STEPS;
    return floor + floor / STEPS * (above % STEPS + 1);
}

uint32_t cell_pool_round(uint32_t cells)
{
    if (cells == 0) {
        return 0;
    }
    if (cells < CELL_CLASS_WORDS_MAX) {
        return class_words(class_of(cells + 1)) - 1;
    }
    return (uint32_t)(whole_pages((size_t)cells * sizeof(uint64_t)) / sizeof(uint64_t));
}

/* ---- blocks of a class ---- */

static uint64_t *block_at(const struct cell_class *size_class, uint32_t words, uint32_t number)
{
    return size_class->base + (size_t)words * number;
}

/* Updates the owner's pointer to a block that has moved. */
static void tell_owner(uint64_t *block)
{
    uint64_t **owner;
    memcpy(&owner, block, sizeof owner);
    *owner = block + 1;
}

static bool extend_mapping(struct cell_class *size_class, uint32_t words)
{
    size_t block_bytes = words * sizeof(uint64_t);
    size_t old_bytes = whole_pages(size_class->capacity * block_bytes);
    size_t more = old_bytes / 4 > CAPACITY_BYTES_MIN ? old_bytes / 4 : CAPACITY_BYTES_MIN;
    size_t bytes = whole_pages(old_bytes + (more > block_bytes ? more : block_bytes));
    void *base = size_class->base == NULL
                     ? mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                     : mremap(size_class->base, old_bytes, bytes, MREMAP_MAYMOVE);
    if (base == MAP_FAILED) {
        return false;
    }
    bool moved = base != size_class->base;
    size_class->base = base;
    size_class->capacity = (uint32_t)(bytes / block_bytes);
    for (uint32_t i = 0; moved && i < size_class->count; i++) {
        tell_owner(block_at(size_class, words, i));
    }
    return true;
}

static uint64_t *class_take(struct cell_pool *pool, uint32_t number, uint64_t **owner)
{
    struct cell_class *size_class = &pool->classes[number];
    uint32_t words = class_words(number);
    size_t bytes = whole_pages((size_class->count + (size_t)1) * words * sizeof(uint64_t));
    size_t more = bytes > size_class->touched ? bytes - size_class->touched : 0;
    if (more > pool->limit || pool->bytes > pool->limit - more ||
        (size_class->count == size_class->capacity && !extend_mapping(size_class, words))) {
        return NULL;
    }
    size_class->touched += more;
    counter_add(&pool->bytes, more);
    uint64_t *block = block_at(size_class, words, size_class->count++);
    memcpy(block, &owner, sizeof owner);
    return block + 1;
}

static void release_tail(struct cell_pool *pool, struct cell_class *size_class, uint32_t words)
{
    if (size_class->count == 0) {
        munmap(size_class->base, whole_pages(size_class->capacity * words * sizeof(uint64_t)));
        counter_add(&pool->bytes, -(uint64_t)(size_class->touched));
        *size_class = (struct cell_class){.base = NULL};
        return;
    }
    size_t used = whole_pages((size_t)size_class->count * words * sizeof(uint64_t));
    size_t unused = size_class->touched - used;
    if (unused > PAGE && unused > size_class->touched / 8 &&
        madvise((char *)size_class->base + used, unused, MADV_DONTNEED) == 0) {
        size_class->touched = used;
        counter_add(&pool->bytes, -(uint64_t)(unused));
    }
}

static void class_give(struct cell_pool *pool, uint32_t number, uint64_t *cells)
{
    struct cell_class *size_class = &pool->classes[number];
    uint32_t words = class_words(number);
    uint64_t *hole = cells - 1, *last = block_at(size_class, words, --size_class->count);
    if (hole != last) {
        memcpy(hole, last, words * sizeof *hole);
        tell_owner(hole);
    }
    release_tail(pool, size_class, words);
}

/* ---- blocks with their own mapping ---- */

static bool is_large(uint32_t cells)
{
    return cells >= CELL_CLASS_WORDS_MAX;
}

static bool resize_large(struct cell_pool *pool, uint64_t **owner, uint32_t old, uint32_t cells)
{
    size_t old_bytes = old * sizeof(uint64_t), bytes = cells * sizeof(uint64_t);
    if (bytes > old_bytes &&
        (bytes - old_bytes > pool->limit || pool->bytes > pool->limit - (bytes - old_bytes))) {
        return false;
    }
    void *base = mremap(*owner, old_bytes, bytes, MREMAP_MAYMOVE);
    if (base == MAP_FAILED) {
        return false;
    }
    *owner = base;
    counter_add(&pool->bytes, bytes - old_bytes);
    return true;
}

static uint64_t *take(struct cell_pool *pool, uint64_t **owner, uint32_t cells)
{
    if (!is_large(cells)) {
        return class_take(pool, class_of(cells + 1), owner);
    }
    size_t bytes = cells * sizeof(uint64_t);
    if (bytes > pool->limit || pool->bytes > pool->limit - bytes) {
        return NULL;
    }
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return NULL;
    }
    counter_add(&pool->bytes, bytes);
    return base;
}

static void give(struct cell_pool *pool, uint64_t *block, uint32_t cells)
{
    if (!is_large(cells)) {
        class_give(pool, class_of(cells + 1), block);
        return;
    }
    munmap(block, cells * sizeof(uint64_t));
    counter_add(&pool->bytes, -(uint64_t)(cells * sizeof(uint64_t)));
}

bool cell_pool_resize(struct cell_pool *pool, uint64_t **owner, uint32_t old, uint32_t cells)
{
    assert(old == cell_pool_round(old) && cells == cell_pool_round(cells));
    if (old == cells) {
        return true;
    }
    if (cells > 0 && is_large(old) && is_large(cells)) {
        return resize_large(pool, owner, old, cells);
    }
    uint64_t *block = NULL;
    if (cells > 0) {
        block = take(pool, owner, cells);
        if (block == NULL) {
            return false;
        }
        uint32_t kept = old < cells ? old : cells;
        if (kept > 0) {
            memcpy(block, *owner, kept * sizeof *block);
        }
        memset(block + kept, 0, (cells - kept) * sizeof *block);
    }
    uint64_t *released = *owner;
    *owner = block;
    if (old > 0) {
        give(pool, released, old);
    }
    return true;
}

void cell_pool_check(const struct cell_pool *pool)
{
    uint64_t bytes = 0;
    for (uint32_t c = 0; c < CELL_CLASS_COUNT; c++) {
        const struct cell_class *size_class = &pool->classes[c];
        uint32_t words = class_words(c);
        assert(size_class->count <= size_class->capacity);
        assert((size_class->base == NULL) == (size_class->count == 0));
        assert(size_class->touched >= (size_t)size_class->count * words * sizeof(uint64_t));
        for (uint32_t i = 0; i < size_class->count; i++) {
            const uint64_t *block = block_at(size_class, words, i);
            uint64_t **owner;
            memcpy(&owner, block, sizeof owner);
            assert(*owner == block + 1);
        }
        bytes += size_class->touched;
    }
    assert(bytes <= pool->bytes); /* the rest are large blocks */
}
