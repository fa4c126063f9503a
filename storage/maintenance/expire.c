/*
 * Names expired keys, to be deleted by removal.c. A walk over the expiry tables, ten times a
 * second, names them as (hash slot, tag) pairs. So do reads that find an expired key, which they
 * treat as absent.
 *
 * The tables have the times of keys and those of their first parts (store_set_wake); removal.c
 * tells them apart.
 *
 * While more keys are due than may be removed at once, a worker goes on in steps, between which its
 * clients have their turns, for up to a quarter of its time, as Redis does.
 */
#include "storage/maintenance/expire.h"

#include <assert.h>
#include <stdlib.h>

#include "storage/exec/removal.h"
#include "storage/txn/wait.h"

#define EXPIRY_LIMIT 256u   /* in progress at once, per worker */
#define STEP_NS 1000000     /* of processor time */
#define TICK_NS 25000000    /* for the steps of a tenth of a second */
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
    if (worker->stopping || engine_holds_still(worker->store))
        return;
    for (uint32_t i = 0; i < count && may_begin(worker); i++)
        begin(worker, worker->noted[i].slot, worker->noted[i].tag);
}

struct names {
    uint32_t count, most;
    struct {
        uint16_t slot;
        uint32_t tag;
    } at[EXPIRY_LIMIT];
};

static bool note_due(void *arg, uint32_t slot, uint32_t tag)
{
    struct names *names = arg;
    if (names->count == names->most)
        return false;
    names->at[names->count].slot = (uint16_t)slot;
    names->at[names->count++].tag = tag;
    return true;
}

/* Begins to remove as many of the partition's due keys as may be in progress. True: it may have
 * more of them. */
static bool expire_in(struct store_worker *worker, struct partition *partition, struct names *names)
{
    struct store *store = worker->store;
    names->count = 0;
    names->most = EXPIRY_LIMIT - removal_count(worker, STORE_BY_EXPIRY);
    pthread_mutex_lock(&partition->file.lock);
    if (ttl_count(&partition->ttl) > 0)
        ttl_step(&partition->ttl, env_now_ms(&store->env), WALK_ENTRIES, note_due, names);
    pthread_mutex_unlock(&partition->file.lock);
    for (uint32_t i = 0; i < names->count; i++)
        begin(worker, names->at[i].slot, names->at[i].tag);
    return names->count == names->most;
}

static void go_to_next_partition(struct store_worker *worker)
{
    uint32_t next = worker->expire_partition + worker->store->worker_count;
    worker->expire_partition = next < worker->store->partition_count ? next : worker->index;
}

/* Visits the worker's partitions in turn, each as often as it may have more due keys. Ends when it
 * has taken long enough, or too many removals are in progress. */
static void visit_partitions(struct store_worker *worker, struct names *names, int64_t began_ns)
{
    struct store *store = worker->store;
    while (worker->expire_left > 0 && may_begin(worker) && env_clock_ns() - began_ns < STEP_NS) {
        if (expire_in(worker, &store->partitions[worker->expire_partition], names))
            continue;
        worker->expire_left--;
        go_to_next_partition(worker);
    }
}

/* The keys of which more parts are due, in turn. */
static void go_on(struct store_worker *worker)
{
    int64_t began_ns = env_clock_ns(), took_ns = 0;
    while ((worker->stopping || (took_ns < STEP_NS && worker->expire_ns + took_ns < TICK_NS)) &&
           removal_go_on(worker))
        took_ns = env_clock_ns() - began_ns;
    engine_note_work(&worker->store->slowest_ns[STORE_WORK_EXPIRY], took_ns);
    worker->expire_ns += took_ns;
    if (!STAILQ_EMPTY(&worker->waking) && worker->expire_ns < TICK_NS)
        request_notify(worker); /* otherwise the next tick does */
}

/* Names some of the due keys. */
static void walk(struct store_worker *worker)
{
    bool walks = !worker->stopping && atomic_load(&worker->store->walks_expired) &&
                 !engine_holds_still(worker->store);
    struct names *names = walks ? malloc(sizeof *names) : NULL;
    if (!names) {
        worker->expire_left = 0;
        return;
    }
    int64_t began_ns = env_clock_ns();
    visit_partitions(worker, names, began_ns);
    free(names);
    int64_t took_ns = env_clock_ns() - began_ns;
    engine_note_work(&worker->store->slowest_ns[STORE_WORK_EXPIRY], took_ns);
    worker->expire_ns += took_ns;
    if (worker->expire_ns >= TICK_NS) {
        worker->expire_left = 0;
        go_to_next_partition(worker); /* the next tick begins with another one */
    }
    if (worker->expire_left > 0 && may_begin(worker))
        request_notify(worker); /* otherwise the end of a removal does */
}

void expire_step(struct store_worker *worker)
{
    if (!STAILQ_EMPTY(&worker->waking))
        go_on(worker);
    if (worker->expire_left > 0)
        walk(worker);
}

void expire_tick(struct store_worker *worker)
{
    uint32_t count = worker->store->partition_count, workers = worker->store->worker_count;
    worker->expire_ns = 0;
    worker->expire_left =
        worker->index < count ? (count - worker->index + workers - 1) / workers : 0;
}
