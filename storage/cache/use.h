/*
 * When, or how often, items were used: for eviction, and whoever asks. Private to storage/.
 *
 * A word for each item's slot, in an array per segment that is made with the first use of an item
 * in it. There are none unless somebody wants to know: a policy by use, or OBJECT IDLETIME.
 *
 *   by time         units of USE_UNIT_MS since use_base_ms; never 0
 *   by frequency    bits 12-31  second (1024 ms) of the last use, modulo 2^20: 12 days
 *                   bits  4-11  a logarithmic counter, as Redis's: USE_FREQUENCY_NEW at first; from
 *                               n > 5 to n + 1 it takes (n - 5) * factor + 1 uses; one less for
 *                               each decay time without any
 *                   bits  0-3   how far it is on its way to the next: so that few uses are told
 *                               apart, as exact counts would be
 *   0               not used since it is being remembered
 *
 * Threads: everything but use_want is called with the space's lock held.
 */
#ifndef VELLUM_STORE_USE_H
#define VELLUM_STORE_USE_H

#include "storage/txn/engine.h"

#define USE_UNIT_MS 16
#define USE_FREQUENCY_NEW 5u

enum use_kind { USE_IGNORED, USE_TIME, USE_FREQUENCY };

static inline enum use_kind use_kind(const struct store *store)
{
    return (enum use_kind)(atomic_load_explicit(&store->use_state, memory_order_relaxed) & 3);
}

/* What is remembered from here on; of another kind than before: from nothing. Any thread. */
void use_want(struct store *store, enum use_kind kind);
void use_drop(struct space *space);                           /* all that is remembered */
void use_drop_segment(struct space *space, uint32_t segment); /* while it has its class */
void use_tidy(struct store *store); /* gives back what nobody wants any more; takes the locks */

/* The transaction has read this item: used once, however often it looks. */
void use_touch(struct store_txn *txn, struct space *space, uint32_t page, uint32_t slot);
/* Its write puts an item here, in place of one at old_page (0: of none). `given`: what is to be
 * remembered of it; 0: that it was used now. */
void use_write(struct store_txn *txn, struct space *space, const struct write *write);

/* The word for a key used so long ago, or so often. */
uint32_t use_by_idle(const struct store *store, int64_t now_ms, int64_t idle_ms);
uint32_t use_by_frequency(int64_t now_ms, uint32_t frequency);

/* What is known of an item; the smaller the rank, the less it would be missed. */
int64_t use_idle_ms(const struct store *store, const struct space *space, uint32_t page,
                    uint32_t slot, int64_t now_ms);
uint32_t use_frequency(const struct store *store, const struct space *space, uint32_t page,
                       uint32_t slot, int64_t now_ms);
uint64_t use_rank(const struct store *store, const struct space *space, uint32_t page,
                  uint32_t slot, int64_t now_ms);

#endif
