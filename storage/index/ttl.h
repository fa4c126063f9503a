/*
 * The expiry table of one partition, in memory: which of its keys expire, and roughly when.
 * Private to storage/. Not thread-safe: one thread at a time.
 *
 * It serves active expiry alone: the item on disk has the exact time, which decides what a read
 * sees. A walk over the table names the keys whose time has passed, by hash slot and tag as in
 * the index.
 *
 * It consists of 256 ordered tables (ordered_table.h), selected by the tag's low 8 bits, so that
 * each growth step moves only a small part. A cell holds
 *
 *     OFFSET  BITS  FIELD
 *         46    18  tag, upper bits
 *         32    14  hash slot, counted from the partition's first
 *          0    32  expiry in units of 128 ms since the table's base, rounded down; 1 ... 2^32 - 1
 *
 * The range is 17 years from the base (the last start that created the table); later times are
 * stored as the last unit, earlier ones as the first. A key is due when its unit has passed
 * completely: a named key has expired, at most 128 ms and one round of the walk ago. Only a key
 * beyond the range may, after 17 years, be named too early; the caller checks the item in any
 * case.
 *
 * Cost: about 10 B per key with an expiry. A growth step takes about 0.1 ms in a table of 10 M
 * keys.
 */
#ifndef VELLUM_TTL_H
#define VELLUM_TTL_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/ordered_table.h"

#define TTL_TABLE_BITS 8
#define TTL_TABLE_COUNT (1u << TTL_TABLE_BITS)
#define TTL_SLOT_BITS 14
#define TTL_UNIT_MS 128

struct ttl {
    int64_t base_ms;
    uint64_t count;
    uint32_t first_slot, slot_count;
    uint32_t walk_table; /* where ttl_step continues */
    uint64_t walk_key;
    struct otable_memory memory;
    struct otable tables[TTL_TABLE_COUNT];
};

/* The struct must not be moved afterwards. Slots are as in index_init. `now_ms`: Unix time. */
void ttl_init(struct ttl *ttl, uint32_t first_slot, uint32_t slot_count, int64_t now_ms);
void ttl_clear(struct ttl *ttl); /* drops all entries and reservations, and frees all memory */

/* False: no memory; nothing changed. Entries need not be distinct. */
__attribute__((warn_unused_result)) bool ttl_add(struct ttl *ttl, uint32_t slot, uint32_t tag,
                                                 int64_t expire_ms);

/* ttl_can_load: whether the cells, from table number `table` of another process, are valid for
 * this table, which is empty. ttl_load takes them over; false: no memory; nothing changed. */
bool ttl_can_load(const struct ttl *ttl, uint32_t table, const uint64_t *cells, uint32_t count);
__attribute__((warn_unused_result)) bool ttl_load(struct ttl *ttl, uint32_t table,
                                                  const uint64_t *cells, uint32_t count);

/* Removes one entry that was added with these values. False: there is no such entry. */
bool ttl_remove(struct ttl *ttl, uint32_t slot, uint32_t tag, int64_t expire_ms);

/* Guarantees that one more ttl_add for this tag will succeed, whatever is removed before. Each
 * addition uses up a reservation of its tag if there is one; unused ones must be released. */
__attribute__((warn_unused_result)) bool ttl_reserve(struct ttl *ttl, uint32_t tag);
void ttl_release(struct ttl *ttl, uint32_t tag);

/* Continues the walk from where the last call stopped, over about `budget` entries and at most
 * one round, and names keys that are due. It stops only between different keys, or where `due`
 * returns false: it will continue with that key. Names an entry in every round until it is removed.
 * `due` must not change the table. Returns the number of entries visited. */
uint64_t ttl_step(struct ttl *ttl, int64_t now_ms, uint64_t budget,
                  bool (*due)(void *arg, uint32_t slot, uint32_t tag), void *arg);

/* The earliest unit in which a key with this slot and tag is due; 0: no such key. */
uint32_t ttl_unit(const struct ttl *ttl, uint32_t slot, uint32_t tag);

uint64_t ttl_count(const struct ttl *ttl);
uint64_t ttl_bytes(const struct ttl *ttl);
void ttl_check(const struct ttl *ttl); /* asserts all invariants; slow */

#endif
