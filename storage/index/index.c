/*
 * The index of a partition: one ordered table per hash slot, and the sums over them.
 *
 * Invariants (index_check):
 *   1. Each table is an ordered table with INDEX_TAG_BITS of key.
 *   2. `count` is the sum of the tables' counts, their blocks are all of the pool's.
 *   3. No entry's page is 0.
 */
#include "storage/index/index.h"

#include <malloc.h>
#include <stdlib.h>

#define LINE_CELLS 8 /* cells in a cache line */

static struct otable *table_of(const struct index *ix, uint32_t slot)
{
    assert(slot - ix->first_slot < ix->slot_count);
    return &ix->tables[slot - ix->first_slot];
}

static uint64_t *cell_at(const struct index *ix, uint32_t slot, uint32_t position)
{
    struct otable *table = table_of(ix, slot);
    assert(position < table->size && table->cells[position] != 0);
    return &table->cells[position];
}

static uint64_t tag_key(uint32_t tag)
{
    assert(tag <= INDEX_TAG_MAX);
    return (uint64_t)tag << INDEX_TAG_SHIFT;
}

bool index_init(struct index *ix, uint32_t first_slot, uint32_t slot_count)
{
    assert(slot_count > 0 && (slot_count & (slot_count - 1)) == 0);
    assert(first_slot % slot_count == 0);
    *ix = (struct index){.first_slot = first_slot, .slot_count = slot_count};
    otable_memory_init(&ix->memory, INDEX_TAG_BITS);
    ix->tables = calloc(slot_count, sizeof *ix->tables);
    return ix->tables != NULL;
}

void index_free(struct index *ix)
{
    if (ix->tables != NULL) {
        index_clear(ix);
        free(ix->tables);
        ix->tables = NULL;
    }
}

void index_clear(struct index *ix)
{
    for (uint32_t i = 0; i < ix->slot_count; i++) {
        otable_clear(&ix->tables[i], &ix->memory);
    }
    counter_set(&ix->count, 0);
    assert(ix->memory.pool.bytes == 0);
}

uint32_t index_find(const struct index *ix, uint32_t slot, uint32_t tag)
{
    const struct otable *table = table_of(ix, slot);
    if (table->count == 0) {
        return INDEX_NONE;
    }
    uint32_t position = otable_probe(table, tag_key(tag), INDEX_TAG_BITS);
    uint64_t entry = table->cells[position];
    return entry != 0 && index_tag(entry) == tag ? position : INDEX_NONE;
}

uint32_t index_next(const struct index *ix, uint32_t slot, uint32_t position)
{
    const uint64_t *entry = cell_at(ix, slot, position);
    return entry[1] != 0 && index_tag(entry[1]) == index_tag(entry[0]) ? position + 1 : INDEX_NONE;
}

uint64_t index_get(const struct index *ix, uint32_t slot, uint32_t position)
{
    return *cell_at(ix, slot, position);
}

void index_prefetch_table(const struct index *ix, uint32_t slot)
{
    __builtin_prefetch(table_of(ix, slot));
}

void index_prefetch(const struct index *ix, uint32_t slot, uint32_t tag)
{
    const struct otable *table = table_of(ix, slot);
    if (table->cells != NULL) {
        const uint64_t *home = &table->cells[otable_home(table, tag_key(tag), INDEX_TAG_BITS)];
        __builtin_prefetch(home);
        __builtin_prefetch(home + LINE_CELLS);
    }
}

bool index_insert(struct index *ix, uint32_t slot, uint32_t tag, uint32_t page, uint32_t item_slot,
                  uint32_t flags)
{
    uint64_t entry = index_entry(tag, page, item_slot, flags);
    if (!otable_insert(table_of(ix, slot), &ix->memory, entry)) {
        return false;
    }
    counter_add(&ix->count, 1);
    return true;
}

bool index_load_slot(struct index *ix, uint32_t slot, const uint64_t *entries, uint32_t count)
{
    if (!otable_load(table_of(ix, slot), &ix->memory, entries, count)) {
        return false;
    }
    counter_add(&ix->count, count);
    return true;
}

bool index_reserve(struct index *ix, uint32_t slot)
{
    return otable_reserve(table_of(ix, slot), &ix->memory);
}

void index_release(struct index *ix, uint32_t slot)
{
    otable_release(table_of(ix, slot), &ix->memory);
}

void index_set(struct index *ix, uint32_t slot, uint32_t position, uint32_t page,
               uint32_t item_slot, uint32_t flags)
{
    uint64_t *entry = cell_at(ix, slot, position);
    *entry = index_entry(index_tag(*entry), page, item_slot, flags);
}

void index_remove(struct index *ix, uint32_t slot, uint32_t position)
{
    otable_remove(table_of(ix, slot), &ix->memory, position);
    counter_add(&ix->count, -1ull);
}

uint32_t index_seek(const struct index *ix, uint32_t slot, uint32_t tag)
{
    return otable_seek(table_of(ix, slot), tag_key(tag), INDEX_TAG_BITS);
}

uint32_t index_after(const struct index *ix, uint32_t slot, uint32_t position)
{
    return otable_occupied(table_of(ix, slot), position + 1);
}

/* Visits one slot from at->tag on. True: its end was reached. */
static bool scan_slot(const struct index *ix, struct index_cursor *at, uint32_t *left,
                      index_visit *visit, void *arg)
{
    uint32_t position = index_seek(ix, at->slot, at->tag);
    for (; position != INDEX_NONE; position = index_after(ix, at->slot, position)) {
        uint64_t entry = index_get(ix, at->slot, position);
        if (*left == 0 && index_tag(entry) != at->tag) {
            at->tag = index_tag(entry);
            return false;
        }
        at->tag = index_tag(entry);
        if (!visit(arg, at->slot, entry)) {
            return false;
        }
        *left -= *left > 0;
    }
    return true;
}

bool index_scan(const struct index *ix, struct index_cursor *at, uint32_t limit, index_visit *visit,
                void *arg)
{
    uint32_t end = ix->first_slot + ix->slot_count;
    uint32_t left = limit > 0 ? limit : 1;
    while (at->slot < end) {
        if (!scan_slot(ix, at, &left, visit, arg)) {
            return true;
        }
        *at = (struct index_cursor){.slot = at->slot + 1};
        if (left == 0) {
            break;
        }
    }
    return at->slot < end;
}

uint64_t index_slot_count(const struct index *ix, uint32_t slot)
{
    return table_of(ix, slot)->count;
}

uint64_t index_bytes(const struct index *ix)
{
    return sizeof *ix + ix->slot_count * sizeof *ix->tables + counter_read(&ix->memory.pool.bytes);
}

void index_check(const struct index *ix)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < ix->slot_count; i++) {
        const struct otable *table = &ix->tables[i];
        otable_check(table, &ix->memory);
        count += table->count;
        for (uint32_t p = 0; p < table->size; p++) {
            assert(table->cells[p] == 0 || index_page(table->cells[p]) != 0);
        }
    }
    assert(count == ix->count);
    cell_pool_check(&ix->memory.pool);
}
