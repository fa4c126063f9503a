/*
 * The expiry table: cells of (tag, slot, unit) in ordered tables, and the walk over them.
 *
 * Invariants (ttl_check):
 *   1. Each table is an ordered table with 32 bits of key: (tag >> 8, slot).
 *   2. `count` is the sum of the tables' counts; their blocks are all of the pool's.
 *   3. No unit is 0, so that no cell is; every slot is one of the partition's.
 *   4. The walk stands before the first key of walk_table that is not below walk_key.
 */
#include "storage/index/ttl.h"

#include <assert.h>

#include "storage/index/index.h"

#define KEY_BITS 32
#define KEY_SHIFT (64 - KEY_BITS)
#define KEY_END (UINT64_C(1) << KEY_BITS)
#define UNIT_MAX UINT32_MAX
_Static_assert(INDEX_TAG_BITS - TTL_TABLE_BITS + TTL_SLOT_BITS == KEY_BITS, "identity of a key");

void ttl_init(struct ttl *ttl, uint32_t first_slot, uint32_t slot_count, int64_t now_ms)
{
    assert(slot_count > 0 && slot_count <= 1u << TTL_SLOT_BITS);
    *ttl = (struct ttl){.first_slot = first_slot, .slot_count = slot_count};
    /* Two units early: times that have passed are stored as unit 1, which is then due at once. */
    ttl->base_ms = now_ms - 2 * TTL_UNIT_MS;
    otable_memory_init(&ttl->memory, KEY_BITS);
}

void ttl_clear(struct ttl *ttl)
{
    for (uint32_t i = 0; i < TTL_TABLE_COUNT; i++) {
        otable_clear(&ttl->tables[i], &ttl->memory);
    }
    ttl->count = 0;
    ttl->walk_table = 0;
    ttl->walk_key = 0;
    assert(ttl->memory.pool.bytes == 0);
}

static struct otable *table_of(struct ttl *ttl, uint32_t tag)
{
    assert(tag <= INDEX_TAG_MAX);
    return &ttl->tables[tag % TTL_TABLE_COUNT];
}

static uint64_t key_of(const struct ttl *ttl, uint32_t slot, uint32_t tag)
{
    assert(slot - ttl->first_slot < ttl->slot_count);
    uint64_t upper = tag >> TTL_TABLE_BITS;
    return (upper << TTL_SLOT_BITS | (slot - ttl->first_slot)) << KEY_SHIFT;
}

static uint32_t unit_of(const struct ttl *ttl, int64_t expire_ms)
{
    int64_t since;
    if (__builtin_sub_overflow(expire_ms, ttl->base_ms, &since)) {
        return expire_ms > 0 ? UNIT_MAX : 1;
    }
    int64_t unit = since / TTL_UNIT_MS;
    return unit < 1 ? 1 : unit > UNIT_MAX ? UNIT_MAX : (uint32_t)unit;
}

bool ttl_add(struct ttl *ttl, uint32_t slot, uint32_t tag, int64_t expire_ms)
{
    uint64_t cell = key_of(ttl, slot, tag) | unit_of(ttl, expire_ms);
    if (!otable_insert(table_of(ttl, tag), &ttl->memory, cell)) {
        return false;
    }
    ttl->count++;
    return true;
}

bool ttl_can_load(const struct ttl *ttl, uint32_t table, const uint64_t *cells, uint32_t count)
{
    if (table >= TTL_TABLE_COUNT || ttl->tables[table].count > 0) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = (uint32_t)(cells[i] >> KEY_SHIFT) & ((1u << TTL_SLOT_BITS) - 1);
        bool is_in_order = i == 0 || cells[i] >> KEY_SHIFT >= cells[i - 1] >> KEY_SHIFT;
        if ((cells[i] & UNIT_MAX) == 0 || slot >= ttl->slot_count || !is_in_order) {
            return false;
        }
    }
    return true;
}

bool ttl_load(struct ttl *ttl, uint32_t table, const uint64_t *cells, uint32_t count)
{
    assert(ttl_can_load(ttl, table, cells, count));
    if (!otable_load(&ttl->tables[table], &ttl->memory, cells, count)) {
        return false;
    }
    ttl->count += count;
    return true;
}

bool ttl_remove(struct ttl *ttl, uint32_t slot, uint32_t tag, int64_t expire_ms)
{
    struct otable *table = table_of(ttl, tag);
    uint64_t key = key_of(ttl, slot, tag), cell = key | unit_of(ttl, expire_ms);
    uint32_t position = otable_seek(table, key, KEY_BITS);
    if (position == OTABLE_NONE) {
        return false;
    }
    while (table->cells[position] != 0 && table->cells[position] >> KEY_SHIFT == key >> KEY_SHIFT) {
        if (table->cells[position] == cell) {
            otable_remove(table, &ttl->memory, position);
            ttl->count--;
            return true;
        }
        position++;
    }
    return false;
}

bool ttl_reserve(struct ttl *ttl, uint32_t tag)
{
    return otable_reserve(table_of(ttl, tag), &ttl->memory);
}

void ttl_release(struct ttl *ttl, uint32_t tag)
{
    otable_release(table_of(ttl, tag), &ttl->memory);
}

/* Units below the result have passed completely. */
static uint64_t passed_units(const struct ttl *ttl, int64_t now_ms)
{
    return now_ms <= ttl->base_ms ? 0 : (uint64_t)(now_ms - ttl->base_ms) / TTL_UNIT_MS;
}

struct walk {
    uint64_t passed, left, seen;
    bool (*due)(void *arg, uint32_t slot, uint32_t tag);
    void *arg;
};

/* Walks the current table from walk_key on, over the keys below `end`. True: its end was
 * reached. */
static bool walk_table(struct ttl *ttl, struct walk *walk, uint64_t end)
{
    const struct otable *table = &ttl->tables[ttl->walk_table];
    uint64_t last_key = UINT64_MAX;
    uint32_t position = otable_seek(table, ttl->walk_key, KEY_BITS);
    for (; position != OTABLE_NONE; position = otable_occupied(table, position + 1)) {
        uint64_t cell = table->cells[position], key = cell >> KEY_SHIFT;
        if (key >= end) {
            return true;
        }
        if (walk->seen >= walk->left && key != last_key) {
            ttl->walk_key = key << KEY_SHIFT;
            return false;
        }
        last_key = key;
        walk->seen++;
        if ((cell & UNIT_MAX) < walk->passed) {
            uint32_t slot = (uint32_t)key & ((1u << TTL_SLOT_BITS) - 1);
            uint32_t tag = (uint32_t)(key >> TTL_SLOT_BITS) << TTL_TABLE_BITS | ttl->walk_table;
            if (!walk->due(walk->arg, ttl->first_slot + slot, tag)) {
                ttl->walk_key = key << KEY_SHIFT;
                return false;
            }
        }
    }
    return true;
}

uint64_t ttl_step(struct ttl *ttl, int64_t now_ms, uint64_t budget,
                  bool (*due)(void *arg, uint32_t slot, uint32_t tag), void *arg)
{
    struct walk walk = {
        .passed = passed_units(ttl, now_ms), .left = budget, .due = due, .arg = arg};
    uint64_t first_key = ttl->walk_key;
    for (uint32_t i = 0; i < TTL_TABLE_COUNT; i++) {
        if (!walk_table(ttl, &walk, KEY_END)) {
            return walk.seen;
        }
        ttl->walk_table = (ttl->walk_table + 1) % TTL_TABLE_COUNT;
        ttl->walk_key = 0;
    }
    /* Completes the round: the part of the first table before the walk's starting point is
     * left. */
    if (walk_table(ttl, &walk, first_key >> KEY_SHIFT)) {
        ttl->walk_key = first_key;
    }
    return walk.seen;
}

uint32_t ttl_unit(const struct ttl *ttl, uint32_t slot, uint32_t tag)
{
    const struct otable *table = &ttl->tables[tag % TTL_TABLE_COUNT];
    uint64_t key = key_of(ttl, slot, tag);
    uint32_t position = otable_seek(table, key, KEY_BITS), unit = 0;
    for (; position != OTABLE_NONE && table->cells[position] >> KEY_SHIFT == key >> KEY_SHIFT;
         position++) {
        uint32_t found = (uint32_t)(table->cells[position] & UNIT_MAX);
        if (unit == 0 || found < unit)
            unit = found;
    }
    return unit;
}

uint64_t ttl_count(const struct ttl *ttl)
{
    return ttl->count;
}

uint64_t ttl_bytes(const struct ttl *ttl)
{
    return sizeof *ttl + counter_read(&ttl->memory.pool.bytes);
}

void ttl_check(const struct ttl *ttl)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < TTL_TABLE_COUNT; i++) {
        const struct otable *table = &ttl->tables[i];
        otable_check(table, &ttl->memory);
        count += table->count;
        for (uint32_t p = 0; p < table->size; p++) {
            uint64_t cell = table->cells[p];
            uint32_t slot = (uint32_t)(cell >> KEY_SHIFT) & ((1u << TTL_SLOT_BITS) - 1);
            assert(cell == 0 || ((cell & UNIT_MAX) != 0 && slot < ttl->slot_count));
        }
    }
    assert(count == ttl->count);
    assert(ttl->walk_table < TTL_TABLE_COUNT && (ttl->walk_key & UNIT_MAX) == 0);
    cell_pool_check(&ttl->memory.pool);
}
