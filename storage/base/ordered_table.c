/* Insertion, removal and resizing of ordered tables. The header states the invariants; find,
 * grow and shrink rely on them, and otable_check asserts them. */
#include "storage/base/ordered_table.h"

#include <assert.h>
#include <string.h>

/* Above this load (11/12) a table grows: a search then passes 5.5 cells on average. Below half
 * of the load after growth it shrinks. */
#define SLACK 12

/* A table grows to the pool's next size, which is at most an eighth larger; beyond the pool's
 * sizes it grows by an eighth itself, so that a step is worth its pass. */
#define GROWTH 8

#define SIZE_MAX_CELLS (UINT32_MAX / 2)

void otable_memory_init(struct otable_memory *memory, uint32_t key_bits)
{
    assert(key_bits > 0 && key_bits <= 32);
    cell_pool_init(&memory->pool);
    memory->key_bits = key_bits;
}

/* The highest count for so many homes; a tiny table may be full. */
static uint32_t load_limit(uint32_t homes)
{
    return homes - homes / SLACK;
}

/* Gives the block room for at least `size` cells, the new ones empty. */
static bool resize_block(struct otable *table, struct otable_memory *memory, uint32_t size)
{
    uint32_t rounded = cell_pool_round(size);
    if (!cell_pool_resize(&memory->pool, &table->cells, table->size, rounded)) {
        return false;
    }
    table->size = rounded;
    return true;
}

static void free_block(struct otable *table, struct otable_memory *memory)
{
    (void)resize_block(table, memory, 0); /* shrinking to nothing cannot fail */
    *table = (struct otable){.cells = NULL};
}

/* Where the used part would end with `homes` home positions. */
static uint32_t planned_end(const struct otable *table, uint32_t homes, uint32_t key_bits)
{
    const struct otable planned = {.homes = homes};
    uint32_t end = 0;
    for (uint32_t i = 0; i < table->size; i++) {
        if (table->cells[i] != 0) {
            uint32_t home = otable_home(&planned, table->cells[i], key_bits);
            end = (home > end ? home : end) + 1;
        }
    }
    return end;
}

/* Moves every entry to its place for `homes` home positions. First all entries are packed at
 * the end of the block. Since the new arrangement fits the block, writing from the left then
 * never overtakes reading. */
static void rearrange(struct otable *table, uint32_t homes, uint32_t key_bits)
{
    uint64_t *cells = table->cells;
    uint32_t read = table->size;
    for (uint32_t i = table->size; i > 0; i--) {
        if (cells[i - 1] != 0) {
            cells[--read] = cells[i - 1];
        }
    }
    table->homes = homes;
    uint32_t end = 0;
    for (; read < table->size; read++) {
        uint64_t cell = cells[read];
        uint32_t home = otable_home(table, cell, key_bits);
        while (end < home) {
            cells[end++] = 0;
        }
        assert(end <= read);
        cells[end++] = cell;
    }
    memset(cells + end, 0, (table->size - end) * sizeof *cells);
}

/* Changes the number of homes, and the block size to what that needs plus `spare` free cells. */
static bool rebuild(struct otable *table, struct otable_memory *memory, uint32_t homes,
                    uint32_t spare)
{
    uint32_t end = planned_end(table, homes, memory->key_bits);
    uint64_t size = (uint64_t)(end > homes ? end : homes) + spare + 1;
    if (size > SIZE_MAX_CELLS) {
        return false;
    }
    /* If the block is larger than requested, the surplus becomes homes: each moves the end by
     * at most one. */
    homes += cell_pool_round((uint32_t)size) - (uint32_t)size;
    if (size > table->size && !resize_block(table, memory, (uint32_t)size)) {
        return false;
    }
    rearrange(table, homes, memory->key_bits);
    if (size < table->size) {
        /* A smaller block may be unavailable; then the larger one serves as well. */
        (void)resize_block(table, memory, (uint32_t)size);
    }
    return true;
}

/* Grows by a step, or by more if `wanted` entries need more. */
static bool grow(struct otable *table, struct otable_memory *memory, uint64_t wanted)
{
    uint32_t step = table->size < CELL_CLASS_WORDS_MAX - 1 ? 1 : table->homes / GROWTH;
    uint64_t homes = (uint64_t)table->homes + step;
    uint64_t least = wanted + wanted / (SLACK - 1) + 1;
    if (load_limit((uint32_t)homes) < wanted) {
        homes = least;
    }
    if (homes > SIZE_MAX_CELLS) {
        return false;
    }
    return rebuild(table, memory, (uint32_t)homes, table->reserved > 0 ? table->reserved : 1);
}

/* Widens the margin, so that the end of the used part can move by `cells`. It grows by halves,
 * so that even a cluster of equal keys at the end is rarely moved. */
static bool widen(struct otable *table, struct otable_memory *memory, uint32_t cells)
{
    uint64_t margin = table->size - table->homes;
    uint64_t size = table->size + cells + margin / 2;
    return size <= SIZE_MAX_CELLS && resize_block(table, memory, (uint32_t)size);
}

bool otable_insert(struct otable *table, struct otable_memory *memory, uint64_t cell)
{
    assert(cell != 0);
    /* Without memory, insertion continues above the load limit while there are free cells. */
    if (table->count >= load_limit(table->homes) &&
        !grow(table, memory, (uint64_t)table->count + 1) && table->cells == NULL) {
        return false;
    }
    uint64_t key = cell >> (64 - memory->key_bits) << (64 - memory->key_bits);
    uint32_t position = otable_probe(table, key, memory->key_bits);
    uint32_t hole = position;
    while (table->cells[hole] != 0) {
        hole++;
    }
    assert(hole < table->size - 1 || table->reserved == 0);
    if (hole == table->size - 1 && !widen(table, memory, 1)) {
        return false;
    }
    memmove(&table->cells[position + 1], &table->cells[position],
            (hole - position) * sizeof *table->cells);
    table->cells[position] = cell;
    table->count++;
    if (table->reserved > 0) {
        table->reserved--;
    }
    return true;
}

bool otable_load(struct otable *table, struct otable_memory *memory, const uint64_t *cells,
                 uint32_t count)
{
    assert(table->cells == NULL && table->reserved == 0 && count > 0);
    uint64_t homes = (uint64_t)count + count / (SLACK - 1) + 1;
    if (homes > SIZE_MAX_CELLS || !resize_block(table, memory, count)) {
        return false;
    }
    memcpy(table->cells, cells, count * sizeof *cells);
    table->count = count;
    if (!rebuild(table, memory, (uint32_t)homes, 1)) {
        free_block(table, memory);
        return false;
    }
    return true;
}

static void shrink_if_sparse(struct otable *table, struct otable_memory *memory)
{
    uint64_t wanted = (uint64_t)table->count + table->reserved;
    if (wanted == 0) {
        free_block(table, memory);
        return;
    }
    uint64_t fitting = wanted + wanted / 4 + 1;
    if (table->homes > 2 * fitting + 4 || table->size > 3 * fitting + 16) {
        (void)rebuild(table, memory, (uint32_t)fitting, table->reserved + 1);
    }
}

void otable_remove(struct otable *table, struct otable_memory *memory, uint32_t position)
{
    assert(position < table->size && table->cells[position] != 0);
    uint32_t next = position + 1;
    while (table->cells[next] != 0 &&
           otable_home(table, table->cells[next], memory->key_bits) < next) {
        next++;
    }
    memmove(&table->cells[position], &table->cells[position + 1],
            (next - position - 1) * sizeof *table->cells);
    table->cells[next - 1] = 0;
    table->count--;
    shrink_if_sparse(table, memory);
}

/* Whether the `reserved` cells before the last are empty and not homes, given that this holds
 * for all but the first of them. */
static bool has_spare(const struct otable *table, uint32_t reserved)
{
    uint64_t needed = (uint64_t)table->homes + reserved + 1;
    return table->size >= needed && table->cells[table->size - 1 - reserved] == 0;
}

bool otable_reserve(struct otable *table, struct otable_memory *memory)
{
    if (table->reserved == UINT32_MAX) {
        return false;
    }
    table->reserved++;
    uint64_t wanted = (uint64_t)table->count + table->reserved;
    if ((wanted > load_limit(table->homes) && grow(table, memory, wanted)) ||
        (table->cells != NULL && has_spare(table, table->reserved)) ||
        (table->cells != NULL && widen(table, memory, 1))) {
        return true;
    }
    table->reserved--;
    return false;
}

void otable_release(struct otable *table, struct otable_memory *memory)
{
    assert(table->reserved > 0);
    table->reserved--;
    shrink_if_sparse(table, memory);
}

void otable_clear(struct otable *table, struct otable_memory *memory)
{
    free_block(table, memory);
}

void otable_check(const struct otable *table, const struct otable_memory *memory)
{
    if (table->cells == NULL) {
        assert(table->count == 0 && table->homes == 0);
        assert(table->size == 0 && table->reserved == 0);
        return;
    }
    uint32_t shift = 64 - memory->key_bits;
    uint32_t count = 0, run = 0; /* run: start of the current stretch without holes */
    uint64_t last_key = 0;
    for (uint32_t i = 0; i < table->size; i++) {
        uint64_t cell = table->cells[i];
        if (cell == 0) {
            run = i + 1;
            continue;
        }
        uint32_t home = otable_home(table, cell, memory->key_bits);
        assert(cell >> shift >= last_key);
        assert(home <= i && home >= run && home < table->homes);
        last_key = cell >> shift;
        count++;
    }
    assert(count == table->count);
    assert(table->size > table->homes + (uint64_t)table->reserved);
    for (uint32_t i = 0; i <= table->reserved; i++) {
        assert(table->cells[table->size - 1 - i] == 0);
    }
}
