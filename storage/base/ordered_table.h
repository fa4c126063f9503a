/*
 * A small hash table of 64-bit cells in the order of their keys, used by the index and the expiry
 * table. Private to storage/.
 *
 * The upper `key_bits` (at most 32) of a cell are its key and must be evenly distributed; the
 * rest is payload. Several cells may have the same key. A cell is never 0: 0 marks an empty
 * place.
 *
 * It uses linear probing with a home position that ascends with the key: home = key * homes >>
 * key_bits.
 *
 *     keys      00 ........... 3f | 40 ........... 7f | ... | c0 ........... ff |
 *     cells    [ 05 11  .  2e  .  | 41 42 43 60 7a 7c | 80 ..        .  f0 fe ff | ff  .  . 0 ]
 *              <------------------ homes -----------------------------------> <- margin ->
 *
 * Invariants (otable_check):
 *   1. Keys never descend from left to right: a search ends at the first larger key or empty
 *      cell.
 *   2. An entry stands at its home or to the right of it, with no empty cell in between.
 *   3. The last cell is empty, so loops need no bound. Nothing wraps around: entries that do not
 *      fit in the last homes stand in a margin behind them, which is as wide as necessary.
 *   4. The last `reserved` cells before that one are empty and not homes. An insertion moves the
 *      end of the used part, homes included, by at most one, so many insertions need no memory.
 *
 * Because the order does not depend on the table's size, growing and shrinking is one pass from
 * left to right within one block of memory (realloc, no second copy), and a walk by key continues
 * where it stopped, whatever happened to the table in between.
 */
#ifndef VELLUM_ORDERED_TABLE_H
#define VELLUM_ORDERED_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/cell_pool.h"

#define OTABLE_NONE UINT32_MAX

struct otable {
    uint64_t *cells;   /* NULL while the table is empty */
    uint32_t count;    /* entries */
    uint32_t homes;    /* home positions */
    uint32_t size;     /* cells in the block */
    uint32_t reserved; /* insertions guaranteed to succeed */
};
_Static_assert(sizeof(struct otable) == 24, "16384 of them are part of the memory per key");

/* The memory source of one owner's tables. */
struct otable_memory {
    struct cell_pool pool;
    uint32_t key_bits;
};

void otable_memory_init(struct otable_memory *memory, uint32_t key_bits);

/* A table must not be moved while it has entries or reservations: its block points to it.
 * Positions stay valid until the next insertion, removal, reservation or release in the table. */

/* False: no memory; nothing changed. Uses up one reservation, if any. */
bool otable_insert(struct otable *table, struct otable_memory *memory, uint64_t cell);
void otable_remove(struct otable *table, struct otable_memory *memory, uint32_t position);

/* Fills an empty table with these cells, at least one, in the order of their keys. False: no
 * memory; nothing changed. */
bool otable_load(struct otable *table, struct otable_memory *memory, const uint64_t *cells,
                 uint32_t count);

/* Guarantees one more insertion. False: no memory; nothing changed. */
bool otable_reserve(struct otable *table, struct otable_memory *memory);
void otable_release(struct otable *table, struct otable_memory *memory);

void otable_clear(struct otable *table, struct otable_memory *memory); /* reservations too */
void otable_check(const struct otable *table, const struct otable_memory *memory);

static inline uint32_t otable_home(const struct otable *table, uint64_t cell, uint32_t key_bits)
{
    return (uint32_t)((cell >> (64 - key_bits)) * table->homes >> key_bits);
}

/* The cell where `from` (a key with zero payload) stands or would be inserted. Not for an empty
 * table without a block. */
static inline uint32_t otable_probe(const struct otable *table, uint64_t from, uint32_t key_bits)
{
    uint32_t position = otable_home(table, from, key_bits);
    uint64_t cell = table->cells[position];
    while (cell != 0 && cell < from) {
        cell = table->cells[++position];
    }
    return position;
}

/* The first entry at or after `position`. */
static inline uint32_t otable_occupied(const struct otable *table, uint32_t position)
{
    while (position < table->size && table->cells[position] == 0) {
        position++;
    }
    return position < table->size ? position : OTABLE_NONE;
}

/* The first entry whose key is not less than that of `from`. */
static inline uint32_t otable_seek(const struct otable *table, uint64_t from, uint32_t key_bits)
{
    if (table->count == 0) {
        return OTABLE_NONE;
    }
    return otable_occupied(table, otable_probe(table, from, key_bits));
}

#endif
