/*
 * Frees the space of flushed databases at the commit. If no key is left at all and no snapshot is
 * open, the dead items' space is freed at once; otherwise the maintenance thread sweeps (sweep.c).
 */
#include "storage/exec/flush.h"

#include <string.h>

#include "storage/txn/wait.h"
#include "storage/value/free.h"

static bool nothing_left(const struct store *store)
{
    if (store->is_ordered && atomic_load(&store->damaged) > 0) /* trees of keys may be left */
        return false;
    for (uint32_t i = 0; i < store->partition_count; i++)
        for (uint32_t db = 0; db <= STORE_HIDDEN_DB; db++)
            if (counter_read(&store->partitions[i].databases[db].keys) > 0)
                return false;
    return true;
}

/* No item is live and no other transaction runs: every slot is free. */
static void empty_partition(struct partition *partition)
{
    struct page_file *file = &partition->file;
    index_clear(&partition->index);
    ttl_clear(&partition->ttl);
    for (uint32_t size_class = 0; size_class < PAGE_FILE_CLASS_MAX; size_class++)
        file->classes[size_class] = (struct page_file_class){0};
    memset(file->segment_free, 0, file->segment_room * sizeof *file->segment_free);
    for (uint32_t segment = 0; segment < file->segment_assigned; segment++)
        if (file->segment_class[segment])
            page_file_assign(file, segment, file->segment_class[segment]);
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
