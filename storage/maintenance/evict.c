/*
 * Eviction: chooses the keys to delete when the disk is full, or when memory is full of what only
 * deleting keys can free.
 *
 * A transaction that finds no free slot wants room of one class in one partition, or a run of one
 * class in the extent file. Nothing else would help, since a segment changes its class only when
 * all of it is free. Then a hand moves through the partition's index. The index is in the order
 * of the keys' hashes, so the next entries are a random sample. One in SAMPLE_FACTOR * `samples`
 * keys that would make room is evicted: those accessed longest ago, accessed least often, or
 * expiring first. As for expiry, this file only names the keys, and removal.c deletes them.
 *
 * While the store holds still, only what transactions want is evicted: they had begun before.
 */
#include "storage/maintenance/evict.h"

#include <assert.h>
#include <string.h>

#include "storage/base/checks.h"
#include "storage/exec/removal.h"
#include "storage/cache/access_clock.h"
#include "storage/txn/room_wanted.h"

#define BATCH 16u          /* keys evicted in one step of a partition */
#define UNDER_WAY_MOST 64u /* per worker */
#define SAMPLE_FACTOR 4u   /* candidates per configured sample: make up for Redis's eviction pool */
#define WALK_ENTRIES 20000u
#define ANY_CLASS 0u

struct candidate {
    uint64_t rank; /* the smallest is evicted first */
    uint32_t slot, tag, page, item_slot;
};

struct choice {
    struct store *store;
    struct partition *partition;
    uint32_t size_class;
    int64_t now_ms;
    uint64_t looked_at;
    uint32_t seen, most_seen;
    uint32_t count;
    struct candidate best[BATCH]; /* by rank */
};

/* ---- choosing ---- */

/* For an item in memory, its runs are known. For another one the removal finds out, which loads
 * the item into memory: so useless candidates are not tried over and over. */
static bool may_give_run(const struct choice *choice, uint64_t entry)
{
    const struct page_file *file = &choice->partition->file;
    uint32_t page = index_page(entry), number = file->table[page];
    const struct frame *frame = number ? arena_frame(file->arena, number) : NULL;
    if (!frame || frame->state != FRAME_VALID)
        return true;
    uint32_t size = format_class_size(page_file_class_of(file, page));
    const struct format_item *item =
        (const void *)(arena_memory(file->arena, number) + index_item_slot(entry) * size);
    return item->database == FORMAT_DAMAGED ||
           removal_gives_run(choice->store, item, choice->size_class);
}

/* Nodes of collections are whole pages, so dropping a collection frees whole pages. */
static bool makes_room(const struct choice *choice, uint64_t entry)
{
    uint32_t size_class = choice->size_class, flags = index_flags(entry);
    if (size_class == ANY_CLASS)
        return true;
    if (size_class > FORMAT_RUN_CLASS)
        return flags & INDEX_LARGE && may_give_run(choice, entry);
    return page_file_class_of(&choice->partition->file, index_page(entry)) == size_class ||
           (size_class == format_class_for(PAGE_SIZE) && flags & INDEX_TREES);
}

static uint64_t rank(struct choice *choice, uint32_t slot, uint64_t entry)
{
    const struct partition *partition = choice->partition;
    switch (room_policy(choice->store)) {
    case STORE_EVICT_TTL:
        return ttl_unit(&partition->ttl, slot, index_tag(entry));
    case STORE_EVICT_LRU:
    case STORE_EVICT_LFU:
        return access_rank(&partition->file, index_page(entry), index_item_slot(entry),
                           choice->now_ms);
    case STORE_EVICT_RANDOM:
    case STORE_EVICT_NOTHING: /* changed meanwhile */
        break;
    }
    return choice->seen; /* in the order of the walk */
}

static void insert(struct choice *choice, const struct candidate *fresh)
{
    uint32_t at = choice->count;
    assert(at <= BATCH);
    if (choice->count < BATCH)
        choice->count++;
    else if (choice->best[--at].rank <= fresh->rank)
        return;
    for (; at > 0 && choice->best[at - 1].rank > fresh->rank; at--)
        choice->best[at] = choice->best[at - 1];
    choice->best[at] = *fresh;
}

static bool consider(void *arg, uint32_t slot, uint64_t entry)
{
    struct choice *choice = arg;
    if (choice->seen >= choice->most_seen)
        return false;
    choice->looked_at++;
    bool is_evictable =
        index_flags(entry) & INDEX_EXPIRES ||
        !atomic_load_explicit(&choice->store->policy.only_expiring, memory_order_relaxed);
    if (!is_evictable || !makes_room(choice, entry))
        return true;
    struct candidate fresh = {.rank = rank(choice, slot, entry),
                              .slot = slot,
                              .tag = index_tag(entry),
                              .page = index_page(entry),
                              .item_slot = index_item_slot(entry)};
    choice->seen++;
    insert(choice, &fresh);
    return true;
}

/* Collects the next candidates; returns how many of them to evict. The partition's lock is
 * held. */
static uint32_t choose(struct choice *choice)
{
    struct index_cursor *hand = &choice->partition->eviction_hands[choice->size_class];
    struct index *index = &choice->partition->index;
    assert(lock_is_held(&choice->partition->file.lock));
    uint32_t samples = atomic_load_explicit(&choice->store->policy.samples, memory_order_relaxed);
    choice->most_seen = BATCH * samples * SAMPLE_FACTOR;
    if (hand->slot < index->first_slot)
        *hand = (struct index_cursor){.slot = index->first_slot};
    if (!index_scan(index, hand, WALK_ENTRIES, consider, choice))
        *hand = (struct index_cursor){.slot = index->first_slot};
    uint32_t evicted = (choice->seen + samples * SAMPLE_FACTOR - 1) / (samples * SAMPLE_FACTOR);
    return evicted < choice->count ? evicted : choice->count;
}

/* What a step, in one partition or in all, has visited. */
struct visit {
    uint64_t entries; /* in these partitions */
    uint64_t looked_at, seen;
};

static void add_visit(struct visit *visit, const struct choice *choice)
{
    assert(choice->count <= choice->seen && choice->seen <= choice->looked_at);
    visit->entries += index_count(&choice->partition->index);
    visit->looked_at += choice->looked_at + 1;
    visit->seen += choice->seen;
}

/* Whether two rounds over the entries had no candidate. Under the lock of `eviction`. What is
 * wanted later must not rely on the beginning of such a search: candidates may have come since. */
static bool is_barren(struct eviction *eviction, uint32_t size_class, const struct visit *visit)
{
    uint32_t number = room_number(size_class);
    uint64_t *fruitless = &eviction->fruitless[number];
    if (*fruitless == 0)
        eviction->search_ms[number] = env_clock_ms();
    *fruitless = visit->seen ? 0 : *fruitless + visit->looked_at;
    if (*fruitless <= 2 * visit->entries + BATCH)
        return false;
    *fruitless = 0;
    eviction->barren_ms[number] = eviction->search_ms[number];
    return true;
}

/* Evicts keys of one partition; adds to `visit` what it has looked at. */
static void evict_from(struct store_worker *worker, struct partition *partition,
                       uint32_t size_class, struct visit *visit)
{
    struct store *store = worker->store;
    struct choice choice = {.store = store,
                            .partition = partition,
                            .size_class = size_class,
                            .now_ms = env_now_ms(&store->env)};
    pthread_mutex_lock(&partition->file.lock);
    uint32_t count = choose(&choice);
    add_visit(visit, &choice);
    pthread_mutex_unlock(&partition->file.lock);
    for (uint32_t i = 0; i < count; i++) {
        const struct candidate *candidate = &choice.best[i];
        struct removal_name name = {.cause = STORE_BY_EVICTION,
                                    .slot = candidate->slot,
                                    .tag = candidate->tag,
                                    .page = candidate->page,
                                    .item_slot = candidate->item_slot,
                                    .size_class = size_class > FORMAT_RUN_CLASS ? size_class : 0};
        removal_begin(worker, &name);
    }
}

/* ---- steps ---- */

static bool may_begin(const struct store_worker *worker)
{
    return !worker->stopping && removal_count(worker, STORE_BY_EVICTION) < UNDER_WAY_MOST;
}

static uint64_t take_wanted(pthread_mutex_t *lock, struct eviction *eviction)
{
    pthread_mutex_lock(lock);
    uint64_t wanted = eviction->wanted;
    eviction->wanted = 0;
    pthread_mutex_unlock(lock);
    return wanted;
}

static struct partition *next_partition(struct store *store)
{
    uint32_t turn = atomic_fetch_add_explicit(&store->evict_turn, 1, memory_order_relaxed);
    return &store->partitions[turn % store->partition_count];
}

static void evict_slots(struct store_worker *worker, struct partition *partition,
                        uint32_t size_class)
{
    struct visit visit = {0};
    evict_from(worker, partition, size_class, &visit);
    pthread_mutex_lock(&partition->file.lock);
    is_barren(&partition->eviction, size_class, &visit);
    pthread_mutex_unlock(&partition->file.lock);
}

static bool is_over_memory(const struct store *store)
{
    return atomic_load_explicit(&store->over_memory, memory_order_relaxed);
}

/* Room that a key of any partition may give: a run, or memory (ANY_CLASS). In all partitions from
 * the next one on, in each once: other workers take turns meanwhile. If room is wanted in memory
 * and there is no candidate, no key can be evicted. */
static void evict_anywhere(struct store_worker *worker, uint32_t size_class)
{
    struct store *store = worker->store;
    struct visit visit = {0};
    uint32_t first = next_partition(store)->file.id;
    for (uint32_t i = 0; i < store->partition_count; i++) {
        if (!may_begin(worker) || (size_class == ANY_CLASS && !is_over_memory(store)))
            return;
        evict_from(worker, &store->partitions[(first + i) % store->partition_count], size_class,
                   &visit);
    }
    pthread_mutex_lock(&store->extents.lock);
    bool barren = is_barren(&store->extents_eviction, size_class, &visit);
    pthread_mutex_unlock(&store->extents.lock);
    if (size_class == ANY_CLASS && (barren || visit.seen))
        atomic_store(&store->eviction_exhausted, barren);
}

static void evict_large(struct store_worker *worker)
{
    struct store *store = worker->store;
    uint64_t wanted = take_wanted(&store->extents.lock, &store->extents_eviction);
    for (; wanted; wanted &= wanted - 1)
        evict_anywhere(worker, FORMAT_RUN_CLASS + (uint32_t)__builtin_ctzll(wanted));
}

/* A place is a partition, or behind the last one, large values. */
static void evict_in(struct store_worker *worker, uint32_t place)
{
    struct store *store = worker->store;
    if (place == store->partition_count) {
        evict_large(worker);
        return;
    }
    struct partition *partition = &store->partitions[place];
    uint64_t wanted = take_wanted(&partition->file.lock, &partition->eviction);
    for (; wanted; wanted &= wanted - 1)
        evict_slots(worker, partition, (uint32_t)__builtin_ctzll(wanted));
}

/* Only so many removals are under way at a time: each step begins where the last one ended, so that
 * all places have their turn. */
void evict_step(struct store_worker *worker)
{
    struct store *store = worker->store;
    if (room_policy(store) == STORE_EVICT_NOTHING)
        return;
    int64_t began_ns = env_clock_ns();
    uint32_t places = store->partition_count + 1, passed = 0;
    for (; passed < places && may_begin(worker); passed++)
        evict_in(worker, (worker->evict_next_place + passed) % places);
    worker->evict_next_place = (worker->evict_next_place + passed) % places;
    if (is_over_memory(store) && !engine_holds_still(store))
        evict_anywhere(worker, ANY_CLASS);
    engine_note_work(&store->slowest_ns[STORE_WORK_EVICTION], env_clock_ns() - began_ns);
}
