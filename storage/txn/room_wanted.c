/*
 * Requests for room, on disk or in memory, that eviction has to make (evict.c).
 *
 * A size class in which room is wanted has its bit in `wanted` of the partition's (or the extents')
 * eviction, until evict_step of any worker takes it. evict_due of the worker that wants room makes
 * it call evict_step.
 */
#include "storage/txn/room_wanted.h"

#include "storage/txn/wait.h"

bool evict_for(struct store_worker *worker, struct page_file *file, uint32_t size_class,
               int64_t since_ms)
{
    struct store *store = worker->store;
    struct eviction *eviction = file->id == FORMAT_EXTENT_FILE
                                    ? &store->extents_eviction
                                    : &store->partitions[file->id].eviction;
    if (room_policy(store) == STORE_EVICT_NOTHING)
        return false;
    if (eviction->barren_ms[room_number(size_class)] > since_ms) /* of a coarse clock */
        return false;
    eviction->wanted |= room_bit(size_class);
    if (!atomic_exchange_explicit(&worker->evict_due, true, memory_order_relaxed))
        request_notify(worker);
    return true;
}

void evict_for_memory(struct store *store)
{
    if (room_policy(store) == STORE_EVICT_NOTHING)
        return;
    pthread_mutex_lock(&store->maintenance_lock);
    for (uint32_t i = 0; i < store->worker_count; i++) {
        struct store_worker *worker = store->workers[i];
        if (worker && !atomic_exchange(&worker->evict_due, true))
            request_notify(worker);
    }
    pthread_mutex_unlock(&store->maintenance_lock);
}
