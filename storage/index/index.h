/*
 * The index of one partition, in memory: (hash slot, tag) -> the item's place on disk. Private to
 * storage/. Not thread-safe: one thread at a time.
 *
 * It does not contain keys. The tag is 26 bits of the key's hash; the caller compares the key on
 * the page, and goes on to the next candidate if it is another key. A partition owns a contiguous
 * range of hash slots; each slot has an ordered table (ordered_table.h) of 8-byte entries:
 *
 *     OFFSET  BITS  FIELD
 *         38    26  tag
 *          9    29  page, never 0 (4 KB pages: 2 TB per partition)
 *          3     6  slot of the item within its page
 *          2     1  has an expiry (an entry of the expiry table belongs to it)
 *          1     1  has pages elsewhere: extents of a large value
 *          0     1  likewise: nodes of a collection
 *
 * Cost: at the worst point between growth steps 10.6 B per key for 1 M keys over 16384 hash
 * slots, and 10.1 B for 10 M, headers and unused pages included; up to 12 B where 1 M keys are
 * divided among 16 partitions. An insertion or removal moves the entries of one cluster. A table
 * grows by up to an eighth in one pass over its memory: about a microsecond for 600 entries. If
 * 10 M keys share one {tag}, and so one slot, a step passes over 90 MB twice and blocks the
 * partition for some 60 ms, once in a million insertions.
 *
 * Scans visit entries in (slot, tag) order, which neither growth nor a restart changes.
 */
#ifndef VELLUM_INDEX_H
#define VELLUM_INDEX_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "storage/base/ordered_table.h"

#define INDEX_TAG_BITS 26
#define INDEX_PAGE_BITS 29
#define INDEX_ITEM_SLOT_BITS 6
#define INDEX_TRAIT_BITS 3

#define INDEX_ITEM_SLOT_SHIFT INDEX_TRAIT_BITS
#define INDEX_PAGE_SHIFT (INDEX_ITEM_SLOT_SHIFT + INDEX_ITEM_SLOT_BITS)
#define INDEX_TAG_SHIFT (INDEX_PAGE_SHIFT + INDEX_PAGE_BITS)
_Static_assert(INDEX_TAG_SHIFT + INDEX_TAG_BITS == 64, "an entry is one word");

#define INDEX_TAG_MAX ((1u << INDEX_TAG_BITS) - 1)
#define INDEX_PAGE_MAX ((1u << INDEX_PAGE_BITS) - 1)
#define INDEX_ITEM_SLOT_MAX ((1u << INDEX_ITEM_SLOT_BITS) - 1)

/* What the index knows about an item without reading it. */
enum index_trait { INDEX_TREES = 1, INDEX_LARGE = 2, INDEX_EXPIRES = 4 };
#define INDEX_TRAITS ((1u << INDEX_TRAIT_BITS) - 1)

/* No position. */
#define INDEX_NONE OTABLE_NONE

struct index {
    struct otable *tables; /* one per hash slot */
    uint32_t first_slot, slot_count;
    counter count; /* entries of all tables */
    struct otable_memory memory;
};

/* ---- entries ---- */

static inline uint32_t index_tag(uint64_t entry)
{
    return (uint32_t)(entry >> INDEX_TAG_SHIFT);
}

static inline uint32_t index_page(uint64_t entry)
{
    return (uint32_t)(entry >> INDEX_PAGE_SHIFT) & INDEX_PAGE_MAX;
}

static inline uint32_t index_item_slot(uint64_t entry)
{
    return (uint32_t)(entry >> INDEX_ITEM_SLOT_SHIFT) & INDEX_ITEM_SLOT_MAX;
}

static inline uint32_t index_flags(uint64_t entry)
{
    return (uint32_t)entry & INDEX_TRAITS;
}

static inline uint64_t index_entry(uint32_t tag, uint32_t page, uint32_t item_slot, uint32_t flags)
{
    assert(tag <= INDEX_TAG_MAX && page > 0 && page <= INDEX_PAGE_MAX);
    assert(item_slot <= INDEX_ITEM_SLOT_MAX && flags <= INDEX_TRAITS);
    return (uint64_t)tag << INDEX_TAG_SHIFT | (uint64_t)page << INDEX_PAGE_SHIFT |
           (uint64_t)item_slot << INDEX_ITEM_SLOT_SHIFT | flags;
}

/* ---- the index ---- */

/* Slots first_slot ... first_slot + slot_count - 1; slot_count is a power of two, and
 * first_slot a multiple of it. False: no memory. */
__attribute__((warn_unused_result)) bool index_init(struct index *ix, uint32_t first_slot,
                                                    uint32_t slot_count);
void index_free(struct index *ix);
void index_clear(struct index *ix); /* drops all entries and all reservations of index_reserve */

/* The first candidate for a tag, and the one after `position`; INDEX_NONE: no (other)
 * candidate. Positions are valid until the slot's next insert, remove, reserve or release.
 * Slots are absolute hash slots, not counted from first_slot. */
uint32_t index_find(const struct index *ix, uint32_t slot, uint32_t tag);
uint32_t index_next(const struct index *ix, uint32_t slot, uint32_t position);
uint64_t index_get(const struct index *ix, uint32_t slot, uint32_t position);

/* Prefetches the cache lines that index_find will read. */
void index_prefetch_table(const struct index *ix, uint32_t slot);
void index_prefetch(const struct index *ix, uint32_t slot, uint32_t tag);

/* False: no memory; nothing changed. Does not search for an existing entry of the same key. */
__attribute__((warn_unused_result)) bool index_insert(struct index *ix, uint32_t slot, uint32_t tag,
                                                      uint32_t page, uint32_t item_slot,
                                                      uint32_t flags);

/* Fills a slot without entries; the tags must ascend. False: no memory; nothing changed. */
__attribute__((warn_unused_result)) bool index_load_slot(struct index *ix, uint32_t slot,
                                                         const uint64_t *entries, uint32_t count);

/* Guarantees that one more index_insert in this slot will succeed, whatever is removed before;
 * n calls guarantee n. Each insertion uses up a reservation if there is one; unused ones must
 * be released. False: no memory; nothing changed. */
__attribute__((warn_unused_result)) bool index_reserve(struct index *ix, uint32_t slot);
void index_release(struct index *ix, uint32_t slot);

/* Changes an entry in place; the tag stays. */
void index_set(struct index *ix, uint32_t slot, uint32_t position, uint32_t page,
               uint32_t item_slot, uint32_t flags);

void index_remove(struct index *ix, uint32_t slot, uint32_t position);

/* ---- walking ---- */

/* The first entry of a slot whose tag is at least `tag`, and the entry after `position`. */
uint32_t index_seek(const struct index *ix, uint32_t slot, uint32_t tag);
uint32_t index_after(const struct index *ix, uint32_t slot, uint32_t position);

struct index_cursor {
    uint32_t slot, tag; /* the first not yet visited; slot == end of the range: all visited */
};

/* False: stop; this entry is not done. Must not change the index. */
typedef bool index_visit(void *arg, uint32_t slot, uint64_t entry);

/* Visits entries from *at on, in order, at least `limit` of them if there are so many, and
 * moves *at past them. It stops only between tags, so that equal tags are visited in one call;
 * an entry that stops the scan is visited again, with others of its tag, by the next call.
 * Empty slots cost a read of their header and do not count. Entries inserted or removed between
 * calls may be visited or not; an entry that exists all the time is visited. Returns false when
 * the end of the range is reached. */
bool index_scan(const struct index *ix, struct index_cursor *at, uint32_t limit, index_visit *visit,
                void *arg);

/* ---- statistics ---- */

static inline uint64_t index_count(const struct index *ix)
{
    return counter_read(&ix->count);
}

uint64_t index_slot_count(const struct index *ix, uint32_t slot); /* entries of one slot */
uint64_t index_bytes(const struct index *ix); /* headers and allocator included */
void index_check(const struct index *ix);     /* asserts all invariants; slow */

#endif
