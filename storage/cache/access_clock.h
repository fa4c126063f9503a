/*
 * When, or how often, items were used: for eviction, and whoever asks. Private to storage/.
 *
 * A word for each item's slot, in an array per segment that is made with the first use of an item
 * in it. There are none unless somebody wants to know: a policy by use, or OBJECT IDLETIME.
 *
 *   by time         units of USE_UNIT_MS since base_ms; never 0
 *   by frequency    bits 12-31  second (1024 ms) of the last use, modulo 2^20: 12 days
 *                   bits  4-11  a logarithmic counter, as Redis's: USE_FREQUENCY_NEW at first; from
 *                               n > 5 to n + 1 it takes (n - 5) * factor + 1 uses; one less for
 *                               each decay time without any
 *                   bits  0-3   how far it is on its way to the next: so that few uses are told
 *                               apart, as exact counts would be
 *   0               not used since it is being remembered
 *
 * Threads: everything but access_want is called with the space's lock held.
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

/* What is remembered from here on; of another kind than before: from nothing. Any thread. */
void access_want(struct access_clock *clock, enum access_kind kind, int64_t now_ms);
void access_drop(struct page_file *file);                           /* all that is remembered */
void access_drop_segment(struct page_file *file, uint32_t segment); /* while it has its class */
void access_tidy(
    struct page_cache *cache); /* gives back what nobody wants any more; takes the locks */

/* The item was used. random: a state of the caller's, for the counter's steps by chance. */
void access_touch(struct page_file *file, uint32_t page, uint32_t slot, int64_t now_ms,
                  uint64_t *random);

/* A write puts an item at new_page, in place of one at old_page (0: of none). */
struct access_move {
    uint32_t old_page, old_slot, new_page, new_slot;
    uint32_t given;  /* what is to be remembered of it; 0: that it was used now */
    bool is_counted; /* this use of the old one was, already */
    int64_t now_ms;
};
void access_move(struct page_file *file, const struct access_move *move, uint64_t *random);

/* The word for a key used so long ago, or so often. */
uint32_t access_by_idle(const struct access_clock *clock, int64_t now_ms, int64_t idle_ms);
uint32_t access_by_frequency(int64_t now_ms, uint32_t frequency);

/* What is known of an item; the smaller the rank, the less it would be missed. */
int64_t access_idle_ms(const struct page_file *file, uint32_t page, uint32_t slot, int64_t now_ms);
uint32_t access_frequency(const struct page_file *file, uint32_t page, uint32_t slot,
                          int64_t now_ms);
uint64_t access_rank(const struct page_file *file, uint32_t page, uint32_t slot, int64_t now_ms);

#endif
