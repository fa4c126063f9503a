/*
 * What keys will need, brought nearer before it is used: their lines of the index, their pages'
 * frames and items into the processor's cache, and their pages from the device where they are not
 * in memory. A look-up goes through five places that depend on each other; for a batch of keys each
 * step is done for all of them before the next, so that the waits for memory overlap.
 *
 * Only hints: nothing found here is relied upon later.
 */
#include "store.h"

#include "engine.h"

#define BATCH 16
#define LINE 64
#define ITEM_BYTES 256 /* of a longer item the processor fetches the rest as it is copied */

struct hint {
    struct partition *partition;
    uint32_t slot, tag;
    uint32_t page; /* 0: not known */
    uint32_t item;
};

/* A worker that is alone takes each partition's lock once for the batch; among several each takes
 * it for one step of one key, so that none of them sleeps because another is waiting for memory. */
struct batch {
    struct store_worker *worker;
    bool is_alone;
    uint32_t count;
    struct hint hints[BATCH];
};

static void enter(const struct batch *batch, const struct hint *hint)
{
    if (!batch->is_alone)
        pthread_mutex_lock(&hint->partition->space.lock);
}

static void leave(const struct batch *batch, const struct hint *hint)
{
    if (!batch->is_alone)
        pthread_mutex_unlock(&hint->partition->space.lock);
}

static void find_page(const struct batch *batch, struct hint *hint)
{
    const struct index *index = &hint->partition->index;
    enter(batch, hint);
    uint32_t at = index_find(index, hint->slot, hint->tag);
    if (at != INDEX_NONE) {
        uint64_t entry = index_get(index, hint->slot, at);
        hint->page = index_page(entry);
        hint->item = index_item_slot(entry);
        __builtin_prefetch(&hint->partition->space.table[hint->page]);
    }
    leave(batch, hint);
}

/* Only pages are read whose frames are to be had at once. */
static void fetch_page(const struct batch *batch, const struct hint *hint)
{
    struct space *space = &hint->partition->space;
    enter(batch, hint);
    uint32_t frame = space->table[hint->page];
    if (frame == 0) {
        load_prefetch(batch->worker, space, hint->page);
    } else {
        uint32_t size = format_class_size(space_class_of(space, hint->page));
        const char *item = arena_memory(space->arena, frame) + (size_t)hint->item * size;
        __builtin_prefetch(&arena_frame(space->arena, frame)->state);
        for (uint32_t at = 0; at < size && at < ITEM_BYTES; at += LINE)
            __builtin_prefetch(item + at);
    }
    leave(batch, hint);
}

static void find_pages(struct batch *batch, const struct store_key *keys)
{
    const uint32_t *ids = batch->worker->store->databases.ids;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct hint *hint = &batch->hints[i];
        enter(batch, hint);
        hint->tag = engine_tag(keys[i].hash, ids[keys[i].db]);
        index_prefetch(&hint->partition->index, hint->slot, hint->tag);
        leave(batch, hint);
    }
    for (uint32_t i = 0; i < batch->count; i++)
        find_page(batch, &batch->hints[i]);
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->hints[i].page != 0)
            fetch_page(batch, &batch->hints[i]);
}

static void each_lock(struct store *store, const uint64_t partitions[2],
                      int (*change)(pthread_mutex_t *))
{
    for (uint32_t word = 0; word < 2; word++)
        for (uint64_t bits = partitions[word]; bits; bits &= bits - 1)
            change(&store->partitions[64 * word + (uint32_t)__builtin_ctzll(bits)].space.lock);
}

static void prefetch_batch(struct store_worker *worker, const struct store_key *keys,
                           uint32_t count)
{
    struct store *store = worker->store;
    uint64_t partitions[2] = {0, 0};
    struct batch batch;
    batch.worker = worker;
    batch.is_alone = store->worker_count == 1;
    batch.count = count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = keys[i].slot >> store->slot_shift;
        partitions[number / 64] |= 1ull << (number % 64);
        batch.hints[i] =
            (struct hint){.partition = &store->partitions[number], .slot = keys[i].slot};
        index_prefetch_table(&batch.hints[i].partition->index, keys[i].slot);
    }
    if (batch.is_alone)
        each_lock(store, partitions, pthread_mutex_lock);
    find_pages(&batch, keys);
    if (batch.is_alone)
        each_lock(store, partitions, pthread_mutex_unlock);
}

void store_prefetch(struct store_worker *worker, const struct store_key *keys, uint32_t count)
{
    for (uint32_t done = 0; done < count; done += BATCH)
        prefetch_batch(worker, keys + done, count - done < BATCH ? count - done : BATCH);
}
