/*
 * When, or how often, items were accessed: for eviction and OBJECT IDLETIME or FREQ. Private to
 * storage/.
 *
 * Each item's slot has one word, in an array per segment that is allocated at the first access to
 * an item in it. No array exists unless something needs it: an LRU or LFU policy, or OBJECT
 * IDLETIME.
 *
 *   by time         units of USE_UNIT_MS since base_ms; never 0
 *   by frequency    bits 12-31  second (1024 ms) of the last access, modulo 2^20: 12 days
 *                   bits  4-11  a logarithmic counter, as Redis's: USE_FREQUENCY_NEW at first; from
 *                               n > 5 to n + 1 takes (n - 5) * factor + 1 accesses; one less for
 *                               each decay time without an access
 *                   bits  0-3   the fraction of the way to the next count: keeps small numbers of
 *                               accesses distinguishable, as exact counts would be
 *   0               not accessed since tracking began
 *
 * Threads: what takes a page file is called with its lock held. access_tidy takes the locks itself;
 * the rest needs none.
 */
#ifndef VELLUM_STORE_ACCESS_CLOCK_H
#define VELLUM_STORE_ACCESS_CLOCK_H

#include "storage/cache/page_file.h"

#define USE_UNIT_MS 16
#define USE_FREQUENCY_NEW 5u

static inline enum access_kind access_kind(const struct access_clock *clock)
{
    return (enum access_kind)(atomic_load_explicit(&clock->state, memory_order_relaxed) & 3);
}

/* Selects what is tracked from here on. Another kind than before starts empty. Any thread. */
void access_want(struct access_clock *clock, enum access_kind kind, int64_t now_ms);
void access_drop(struct page_file *file);                           /* all that is tracked */
void access_drop_segment(struct page_file *file, uint32_t segment); /* while it has its class */
/* Frees arrays that are no longer needed. */
void access_tidy(struct page_cache *cache);

/* The item was accessed. random: the caller's generator state, for the probabilistic counter. */
void access_touch(struct page_file *file, uint32_t page, uint32_t slot, int64_t now_ms,
                  uint64_t *random);

/* A write puts an item at new_page, replacing the one at old_page (0: no old one). */
struct access_move {
    uint32_t old_page, old_slot, new_page, new_slot;
    uint32_t given;  /* the word to set for it; 0: it was accessed now */
    bool is_counted; /* this access was already counted for the old one */
    int64_t now_ms;
};
void access_move(struct page_file *file, const struct access_move *move, uint64_t *random);

/* The word for a key with the given idle time or frequency. */
uint32_t access_by_idle(const struct access_clock *clock, int64_t now_ms, int64_t idle_ms);
uint32_t access_by_frequency(int64_t now_ms, uint32_t frequency);

/* What is known about an item. The item with the smallest rank is the best victim. */
int64_t access_idle_ms(const struct page_file *file, uint32_t page, uint32_t slot, int64_t now_ms);
uint32_t access_frequency(const struct page_file *file, uint32_t page, uint32_t slot,
                          int64_t now_ms);
uint64_t access_rank(const struct page_file *file, uint32_t page, uint32_t slot, int64_t now_ms);

#endif
