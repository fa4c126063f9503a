/*
 * Logical databases. Each has an id that is part of its items and of their hashes; flushing gives
 * it a new one, swapping exchanges two. So both are one journal record, and no item is touched:
 * those of an id that is no longer in the map are dead, wherever they are met.
 *
 * When no key is left at all, the dead items' space is given back at once; otherwise the keeper
 * sweeps (sweep.c).
 */
#include "engine.h"

#include <string.h>

bool databases_is_dead(const struct store *store, uint32_t id)
{
    return id != FORMAT_HIDDEN && databases_logical(store, id) < 0;
}

bool databases_is_past(const struct store *store, uint32_t id)
{
    return id < store->databases.next_id && databases_is_dead(store, id);
}

int databases_logical(const struct store *store, uint32_t id)
{
    for (int db = 0; db < STORE_DB_COUNT; db++)
        if (store->databases.ids[db] == id)
            return db;
    return -1;
}

static void swap(struct store *store, uint32_t a, uint32_t b)
{
    uint32_t id = store->databases.ids[a];
    store->databases.ids[a] = store->databases.ids[b];
    store->databases.ids[b] = id;
    for (uint32_t i = 0; i < store->partition_count; i++) {
        struct store_db_stats *stats = store->partitions[i].databases, was = stats[a];
        stats[a] = stats[b];
        stats[b] = was;
    }
}

/* Returns how many keys it made dead. */
static uint64_t flush(struct store *store, uint32_t db)
{
    uint64_t keys = 0;
    for (uint32_t i = 0; i < store->partition_count; i++) {
        keys += store->partitions[i].databases[db].keys;
        store->partitions[i].databases[db] = (struct store_db_stats){0};
    }
    if (keys > 0)
        store->databases.ids[db] = store->databases.next_id++;
    return keys;
}

static bool nothing_left(const struct store *store)
{
    for (uint32_t i = 0; i < store->partition_count; i++)
        for (uint32_t db = 0; db <= STORE_HIDDEN_DB; db++)
            if (store->partitions[i].databases[db].keys > 0)
                return false;
    return true;
}

/* No live item, no transaction but this one: every slot is free. */
static void empty_partition(struct partition *partition)
{
    struct space *space = &partition->space;
    index_clear(&partition->index);
    ttl_clear(&partition->ttl);
    for (uint32_t class = 0; class < SPACE_CLASS_MAX; class ++)
        space->classes[class] = (struct space_class){0};
    memset(space->segment_free, 0, space->segment_room * sizeof *space->segment_free);
    for (uint32_t segment = 0; segment < space->segment_assigned; segment++)
        if (space->segment_class[segment])
            space_assign(space, segment, space->segment_class[segment]);
}

uint64_t databases_change(struct store_txn *txn, uint64_t commit)
{
    struct store *store = txn->store;
    uint64_t dead = 0;
    for (uint32_t i = 0; i < txn->swap_count; i++)
        swap(store, txn->swaps[i][0], txn->swaps[i][1]);
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
        if (txn->flush_mask >> db & 1)
            dead += flush(store, db);
    for (uint32_t i = 0; i < store->partition_count; i++)
        store->partitions[i].last_removal = commit;
    return dead;
}

void databases_reclaim(struct store_txn *txn, uint64_t dead, uint64_t commit)
{
    struct store *store = txn->store;
    bool shown = store->snapshots != NULL; /* a snapshot still needs the dead items */
    if (dead > 0 && nothing_left(store) && txn->write_count == 0 && !shown) {
        store->generation++;
        for (uint32_t i = 0; i < store->partition_count; i++)
            empty_partition(&store->partitions[i]);
        extent_free_all(store, commit);
    } else if (dead > 0) {
        sweep_ask(store);
    }
}
