/*
 * Shared by prefetching of keys (prefetch.c) and of paths down their trees (prefetch_trees.c).
 * Private to storage/.
 */
#ifndef VELLUM_STORE_PREFETCH_H
#define VELLUM_STORE_PREFETCH_H

#include "storage/txn/engine.h"

#define PREFETCH_LINE 64

/* A single worker takes each partition's lock once per batch. Several workers take it for one step
 * of one key at a time, so that none of them sleeps while another waits for memory. */
struct prefetch_locks {
    struct store *store;
    bool is_alone;
    uint64_t partitions[2]; /* the partitions of the batch */
};

static inline void prefetch_locks_add(struct prefetch_locks *locks,
                                      const struct partition *partition)
{
    uint32_t number = partition->file.id;
    locks->partitions[number / 64] |= 1ull << (number % 64);
}

static inline void prefetch_locks_each(const struct prefetch_locks *locks,
                                       int (*change)(pthread_mutex_t *))
{
    for (uint32_t word = 0; word < 2 && locks->is_alone; word++)
        for (uint64_t bits = locks->partitions[word]; bits; bits &= bits - 1) {
            uint32_t number = 64 * word + (uint32_t)__builtin_ctzll(bits);
            change(&locks->store->partitions[number].file.lock);
        }
}

static inline void prefetch_enter(const struct prefetch_locks *locks, struct partition *partition)
{
    if (!locks->is_alone)
        pthread_mutex_lock(&partition->file.lock);
}

static inline void prefetch_leave(const struct prefetch_locks *locks, struct partition *partition)
{
    if (!locks->is_alone)
        pthread_mutex_unlock(&partition->file.lock);
}

#endif
