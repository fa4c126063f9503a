/*
 * The expiry table of one partition, in memory: which of its keys expire, and about when. Private
 * to storage/. One thread at a time.
 *
 * It serves active expiry alone: the item on disk has the exact time, and reads decide by that. A
 * walk over the table names the keys whose time has passed, by hash slot and tag as the index knows
 * them.
 *
 * It is 256 ordered tables (ordered_table.h), chosen by the tag's low 8 bits, so that each growth
 * step moves only a small part. A cell holds
 *
 *     OFFSET  BITS  FIELD
 *         46    18  tag, upper bits
 *         32    14  hash slot, counted from the partition's first
 *          0    32  expiry in units of 128 ms since the table's base, rounded down; 1 ... 2^32 - 1
 *
 * The range is 17 years from the base (the last start that made the table anew); what lies beyond
 * is kept as the last unit, what lies before as the first. A key is due when its unit has wholly
 * passed: what is named has expired, at most 128 ms and a round of the walk ago. Only what was
 * beyond the range may, after 17 years, be named too early; the caller looks at the item in any
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
    uint32_t walk_table; /* where ttl_step goes on */
    uint64_t walk_key;
    struct otable_memory memory;
    struct otable tables[TTL_TABLE_COUNT];
};

/* The struct must not be moved afterwards. Slots as in index_init. `now_ms`: Unix time. */
void ttl_init(struct ttl *ttl, uint32_t first_slot, uint32_t slot_count, int64_t now_ms);
void ttl_clear(struct ttl *ttl); /* drops all entries and promises, and gives all memory back */

/* False: no memory; nothing changed. Several entries may be equal in everything. */
__attribute__((warn_unused_result)) bool ttl_add(struct ttl *ttl, uint32_t slot, uint32_t tag,
                                                 int64_t expire_ms);

/* Cells as another process has had them in table number `table`: whether they can be those of this
 * one, which is empty; then they become its own. False from ttl_load: no memory; nothing changed.
 */
bool ttl_can_load(const struct ttl *ttl, uint32_t table, const uint64_t *cells, uint32_t count);
__attribute__((warn_unused_result)) bool ttl_load(struct ttl *ttl, uint32_t table,
                                                  const uint64_t *cells, uint32_t count);

/* Removes one entry that was added with these values. False: there is none. */
bool ttl_remove(struct ttl *ttl, uint32_t slot, uint32_t tag, int64_t expire_ms);

/* Promises that one more ttl_add for this tag will succeed, whatever is removed before; each add
 * uses up a promise if there is one for its tag; what is not needed is to be released. */
__attribute__((warn_unused_result)) bool ttl_reserve(struct ttl *ttl, uint32_t tag);
void ttl_release(struct ttl *ttl, uint32_t tag);

/* Walks on from where the last call stopped, over about `budget` entries and at most once around,
 * and names what is due. It stops only between keys that differ. Names an entry in every round
 * until it is removed. `due` must not change the table. Returns how many entries were looked at. */
uint64_t ttl_step(struct ttl *ttl, int64_t now_ms, uint64_t budget,
                  void (*due)(void *arg, uint32_t slot, uint32_t tag), void *arg);

/* The earliest unit in which a key of this name is due; 0: there is none. */
uint32_t ttl_unit(const struct ttl *ttl, uint32_t slot, uint32_t tag);

uint64_t ttl_count(const struct ttl *ttl);
uint64_t ttl_bytes(const struct ttl *ttl);
void ttl_check(const struct ttl *ttl); /* asserts all invariants; slow */

#endif
