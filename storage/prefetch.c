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

static void find_page(struct hint *hint)
{
    const struct index *index = &hint->partition->index;
    pthread_mutex_lock(&hint->partition->space.lock);
    uint32_t at = index_find(index, hint->slot, hint->tag);
    if (at != INDEX_NONE) {
        uint64_t entry = index_get(index, hint->slot, at);
        hint->page = index_page(entry);
        hint->item = index_item_slot(entry);
        __builtin_prefetch(&hint->partition->space.table[hint->page]);
    }
    pthread_mutex_unlock(&hint->partition->space.lock);
}

/* Only pages are read whose frames are to be had at once. */
static void fetch_page(struct store_worker *worker, const struct hint *hint)
{
    struct space *space = &hint->partition->space;
    pthread_mutex_lock(&space->lock);
    uint32_t frame = space->table[hint->page];
    if (frame == 0) {
        load_prefetch(worker, space, hint->page);
    } else {
        uint32_t size = format_class_size(space_class_of(space, hint->page));
        const char *item = arena_memory(space->arena, frame) + (size_t)hint->item * size;
        __builtin_prefetch(arena_frame(space->arena, frame));
        for (uint32_t at = 0; at < size && at < ITEM_BYTES; at += LINE)
            __builtin_prefetch(item + at);
    }
    pthread_mutex_unlock(&space->lock);
}

static void prefetch_batch(struct store_worker *worker, const struct store_key *keys,
                           uint32_t count)
{
    struct store *store = worker->store;
    struct hint hints[BATCH];
    for (uint32_t i = 0; i < count; i++) {
        struct partition *partition = engine_partition(store, keys[i].slot);
        hints[i] = (struct hint){.partition = partition, .slot = keys[i].slot};
        index_prefetch_table(&partition->index, keys[i].slot);
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_mutex_lock(&hints[i].partition->space.lock);
        hints[i].tag = engine_tag(keys[i].hash, store->databases.ids[keys[i].db]);
        index_prefetch(&hints[i].partition->index, hints[i].slot, hints[i].tag);
        pthread_mutex_unlock(&hints[i].partition->space.lock);
    }
    for (uint32_t i = 0; i < count; i++)
        find_page(&hints[i]);
    for (uint32_t i = 0; i < count; i++)
        if (hints[i].page != 0)
            fetch_page(worker, &hints[i]);
}

void store_prefetch(struct store_worker *worker, const struct store_key *keys, uint32_t count)
{
    for (uint32_t done = 0; done < count; done += BATCH)
        prefetch_batch(worker, keys + done, count - done < BATCH ? count - done : BATCH);
}
