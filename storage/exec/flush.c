/*
 * What a commit that flushed databases gives back: when no key is left at all, the dead items'
 * space, at once; otherwise the keeper sweeps (sweep.c).
 */
#include "storage/exec/flush.h"

#include <string.h>

#include "storage/txn/wait.h"
#include "storage/value/free.h"

static bool nothing_left(const struct store *store)
{
    for (uint32_t i = 0; i < store->partition_count; i++)
        for (uint32_t db = 0; db <= STORE_HIDDEN_DB; db++)
            if (counter_read(&store->partitions[i].databases[db].keys) > 0)
                return false;
    return true;
}

/* No live item, no transaction but this one: every slot is free. */
static void empty_partition(struct partition *partition)
{
    struct space *space = &partition->space;
    index_clear(&partition->index);
    ttl_clear(&partition->ttl);
    for (uint32_t size_class = 0; size_class < SPACE_CLASS_MAX; size_class++)
        space->classes[size_class] = (struct space_class){0};
    memset(space->segment_free, 0, space->segment_room * sizeof *space->segment_free);
    for (uint32_t segment = 0; segment < space->segment_assigned; segment++)
        if (space->segment_class[segment])
            space_assign(space, segment, space->segment_class[segment]);
}

void databases_reclaim(struct store_txn *txn, uint64_t dead, uint64_t commit)
{
    struct store *store = txn->store;
    bool shown = !LIST_EMPTY(&store->snapshots); /* a snapshot still needs the dead items */
    if (dead > 0 && nothing_left(store) && txn->write_count == 0 && !shown) {
        store->generation++;
        for (uint32_t i = 0; i < store->partition_count; i++)
            empty_partition(&store->partitions[i]);
        extent_free_all(store, commit);
    } else if (dead > 0) {
        sweep_ask(store);
    }
}
