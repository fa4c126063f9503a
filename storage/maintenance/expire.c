/*
 * Names expired keys, to be deleted by removal.c. A walk over the expiry tables, ten times a
 * second, names them as (hash slot, tag) pairs. So do reads that find an expired key, which they
 * treat as absent.
 */
#include "storage/maintenance/expire.h"

#include <assert.h>
#include <stdlib.h>

#include "storage/exec/removal.h"

#define EXPIRY_LIMIT 256u   /* in progress at once, per worker */
#define WALK_ENTRIES 20000u /* table entries per partition and step */

static bool may_begin(const struct store_worker *worker)
{
    return removal_count(worker, STORE_BY_EXPIRY) < EXPIRY_LIMIT;
}

static void begin(struct store_worker *worker, uint32_t slot, uint32_t tag)
{
    struct removal_name name = {.cause = STORE_BY_EXPIRY, .slot = slot, .tag = tag};
    removal_begin(worker, &name);
}

void expire_noted(struct store_worker *worker)
{
    uint32_t count = worker->noted_count;
    assert(count <= EXPIRED_NOTES);
    worker->noted_count = 0; /* a stopping worker starts nothing new */
    for (uint32_t i = 0; i < count && !worker->stopping && may_begin(worker); i++)
        begin(worker, worker->noted[i].slot, worker->noted[i].tag);
}

struct names {
    uint32_t count;
    struct {
        uint16_t slot;
        uint32_t tag;
    } at[EXPIRY_LIMIT];
};

static void note_due(void *arg, uint32_t slot, uint32_t tag)
{
    struct names *names = arg;
    if (names->count == EXPIRY_LIMIT)
        return;
    names->at[names->count].slot = (uint16_t)slot;
    names->at[names->count++].tag = tag;
}

void expire_step(struct store_worker *worker)
{
    struct store *store = worker->store;
    bool walks = !worker->stopping && atomic_load(&store->walks_expired);
    struct names *names = walks ? malloc(sizeof *names) : NULL;
    if (!names)
        return;
    for (uint32_t i = worker->index; i < store->partition_count; i += store->worker_count) {
        struct partition *partition = &store->partitions[i];
        names->count = 0;
        pthread_mutex_lock(&partition->file.lock);
        if (ttl_count(&partition->ttl) > 0)
            ttl_step(&partition->ttl, env_now_ms(&store->env), WALK_ENTRIES, note_due, names);
        pthread_mutex_unlock(&partition->file.lock);
        for (uint32_t j = 0; j < names->count && may_begin(worker); j++)
            begin(worker, names->at[j].slot, names->at[j].tag);
    }
    free(names);
}
