/* Requests for room that eviction has to make. Private to storage/. */
#ifndef VELLUM_STORE_ROOM_WANTED_H
#define VELLUM_STORE_ROOM_WANTED_H

#include "storage/txn/engine.h"

/* Requests room in a size class of the page file, whose lock is held. False: a search that
 * began after `since_ms` (env_clock_ms) found nothing to evict. */
bool evict_for(struct store_worker *worker, struct page_file *file, uint32_t size_class,
               int64_t since_ms);
/* Index and buffers leave too little memory for frames: makes all workers evict keys, if the policy
 * allows it. */
void evict_for_memory(struct store *store);

/* The place of a class in struct eviction's arrays, and its bit in `wanted`. */
static inline uint32_t room_number(uint32_t size_class)
{
    return size_class > FORMAT_RUN_CLASS ? size_class - FORMAT_RUN_CLASS : size_class;
}

static inline uint64_t room_bit(uint32_t size_class)
{
    return 1ull << room_number(size_class);
}

static inline enum store_evict room_policy(const struct store *store)
{
    return (enum store_evict)atomic_load_explicit(&store->policy.evicts, memory_order_relaxed);
}

#endif
