/*
 * The plain model of storage/store.h: the same interface over hash tables in memory. It keeps
 * nothing on disk. The engine is compared with it, and the server's tests can run on it.
 *
 * Invariants:
 * 1. One mutex guards everything: a run function executes under it, alone, so that a transaction
 *    sees and leaves one state. done and ready functions are called without it.
 * 2. A transaction writes into tables of its own (one per database, laid over the store's) and
 *    they are merged only when it ends with STORE_OK: nothing else leaves a trace.
 * 3. `parked` is in the order of store_execute, over all workers; a request runs only when no
 *    earlier one in it conflicts.
 * 4. Values are immutable and counted: an item, a stream and the table may share one.
 * 5. A scan cursor is the hash to go on with; tables are sorted by hash, so it outlives growth.
 * 6. Memory that cannot be had ends the process: the model serves tests.
 */
#include "tests/model/model_store.h"

#include "tests/model/model_private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SWEEP_ENTRIES 16

/* ---- opening and closing ---- */

void model_store_set_waits(struct store *store, uint64_t seed, uint32_t per_mille)
{
    pthread_mutex_lock(&store->mutex);
    store->random = seed;
    store->wait_per_mille = per_mille;
    pthread_mutex_unlock(&store->mutex);
}

enum store_result store_open(const struct store_options *options, struct store **store,
                             char message[STORE_MESSAGE_MAX])
{
    message[0] = '\0';
    if (options->worker_count == 0 || options->worker_count > MODEL_WORKERS_MAX) {
        snprintf(message, STORE_MESSAGE_MAX, "the model store takes 1 to %d workers",
                 MODEL_WORKERS_MAX);
        return STORE_INVALID;
    }
    struct store *opened = model_alloc(sizeof(*opened));
    pthread_mutex_init(&opened->mutex, NULL);
    opened->worker_count = options->worker_count;
    opened->stats.partition_count = options->partition_count;
    opened->stats.worker_count = options->worker_count;
#ifdef VELLUM_WAIT
    model_store_set_waits(opened, 1, 300);
#endif
    *store = opened;
    return STORE_OK;
}

enum store_result store_close(struct store *store)
{
    for (uint32_t i = 0; i < store->worker_count; i++)
        assert(store->workers[i] == NULL);
    for (uint32_t db = 0; db < MODEL_DBS; db++)
        table_clear(&store->dbs[db]);
    pthread_mutex_destroy(&store->mutex);
    free(store);
    return STORE_OK;
}

/* Nothing here depends on sync policy or bounds: memory is all there is. */
void store_set_sync(struct store *store, enum store_sync sync)
{
    (void)store, (void)sync;
}

void store_set_memory(struct store *store, uint64_t memory_bytes)
{
    (void)store, (void)memory_bytes;
}

void store_set_policy(struct store *store, const struct store_policy *policy)
{
    (void)store, (void)policy;
}

bool store_is_over_memory(const struct store *store)
{
    (void)store;
    return false;
}

void store_note_memory(struct store *store, int64_t change)
{
    (void)store, (void)change;
}

bool store_has_memory(struct store *store, uint64_t bytes)
{
    (void)store, (void)bytes;
    return true;
}

void store_give_way(struct store *store, uint64_t bytes)
{
    (void)store, (void)bytes;
}

void store_set_active_expiry(struct store *store, bool active)
{
    atomic_store(&store->keeps_expired, !active);
}

/* Parts that have expired stay: whoever reads them does not show them. */
void store_on_wake(struct store *store, store_waker *waker, void *arg)
{
    (void)store, (void)waker, (void)arg;
}

/* Nothing is deleted but by requests, which need no telling. */
void store_hold_still(struct store *store, int64_t until_ms)
{
    (void)store, (void)until_ms;
}

uint64_t store_take_slowest_ns(struct store *store, enum store_work work)
{
    (void)store, (void)work;
    return 0;
}

/* There are no files: what is in memory is all there is. */
enum store_result store_reload(struct store_txn *txn, char message[STORE_MESSAGE_MAX])
{
    (void)txn;
    message[0] = '\0';
    return STORE_OK;
}

void store_set_max_store(struct store *store, uint64_t max_store_bytes)
{
    (void)store, (void)max_store_bytes;
}

int64_t store_clock_ms(struct store *store)
{
    struct timespec now;
    (void)store;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct store_secret store_secret(const struct store *store)
{
    (void)store;
    return (struct store_secret){{1, 2}};
}

uint64_t store_next_sequence(struct store *store)
{
    return atomic_fetch_add_explicit(&store->sequences, 1, memory_order_relaxed) + 1;
}

uint64_t store_durable(const struct store *store)
{
    return store->durable;
}

/* What is not durable yet is with the next store_poll: see store_submit. */
void store_await_durable(struct store *store, int change)
{
    (void)store, (void)change;
}

bool store_has_failed(const struct store *store)
{
    (void)store;
    return false;
}

/* ---- workers ---- */

enum store_result store_attach(struct store *store, uint32_t index, struct store_worker **worker,
                               char message[STORE_MESSAGE_MAX])
{
    assert(index < store->worker_count && store->workers[index] == NULL);
    struct store_worker *attached = model_alloc(sizeof(*attached));
    attached->store = store;
    attached->random = index;
    attached->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (attached->event_fd < 0) {
        snprintf(message, STORE_MESSAGE_MAX, "no eventfd for worker %u", index);
        free(attached);
        return STORE_IO;
    }
    pthread_mutex_lock(&store->mutex);
    store->workers[index] = attached;
    pthread_mutex_unlock(&store->mutex);
    *worker = attached;
    return STORE_OK;
}

void store_detach(struct store_worker *worker)
{
    struct store *store = worker->store;
    assert(worker->parked_count == 0 && worker->waiting_readers == NULL &&
           worker->waiting_uploads == NULL);
    pthread_mutex_lock(&store->mutex);
    for (uint32_t i = 0; i < store->worker_count; i++)
        if (store->workers[i] == worker)
            store->workers[i] = NULL;
    pthread_mutex_unlock(&store->mutex);
    close(worker->event_fd);
    free(worker);
}

int store_worker_fd(const struct store_worker *worker)
{
    return worker->event_fd;
}

uint32_t store_parked(const struct store_worker *worker)
{
    return worker->parked_count;
}

void worker_signal(struct store_worker *worker)
{
    /* Fails only when the counter is at its top, and then the fd is readable already. */
    (void)!write(worker->event_fd, &(uint64_t){1}, sizeof(uint64_t));
}

/* ---- commit ---- */

/* Puts the store's databases in the places the transaction gave them; clears the dropped ones. */
static void commit_map(struct store *store, const int map[STORE_DB_COUNT])
{
    struct table old[STORE_DB_COUNT];
    bool used[STORE_DB_COUNT] = {false};
    memcpy(old, store->dbs, sizeof(old));
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++) {
        memset(&store->dbs[db], 0, sizeof(store->dbs[db]));
        if (map[db] != MAP_EMPTY) {
            store->dbs[db] = old[map[db]];
            used[map[db]] = true;
        }
    }
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
        if (!used[db])
            table_clear(&old[db]);
}

static void commit_table(struct table *below, struct table *written, uint64_t version)
{
    uint64_t bucket_count = written->buckets == NULL ? 0 : (uint64_t)1 << written->bits;
    for (uint64_t i = 0; i < bucket_count; i++)
        for (struct entry *entry = written->buckets[i], *next; entry != NULL; entry = next) {
            next = entry->next;
            struct store_key key = {.data = entry->key, .len = entry->key_len, .hash = entry->hash};
            struct entry *old = table_find(below, &key);
            if (old != NULL)
                table_remove(below, old);
            entry->version = version;
            if (entry->value != NULL)
                table_insert(below, entry);
            else
                entry_free(entry);
        }
    free(written->buckets);
    memset(written, 0, sizeof(*written));
}

static void publish_counts(struct store *store)
{
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++) {
        atomic_store_explicit(&store->keys[db], store->dbs[db].count, memory_order_relaxed);
        atomic_store_explicit(&store->expires[db], store->dbs[db].expires, memory_order_relaxed);
    }
}

static void txn_commit(struct store_txn *txn)
{
    struct store *store = txn->worker->store;
    if (!txn->dirty)
        return;
    uint64_t version = store->commits + 1;
    model_report(txn);
    commit_map(store, txn->map);
    for (uint32_t db = 0; db < MODEL_DBS; db++)
        commit_table(&store->dbs[db], &txn->written[db], version);
    publish_counts(store);
    store->commits = version;
    /* When waits are wanted, those for durability are too: see store_submit. */
    if (store->wait_per_mille == 0)
        store->durable = version;
}

static void txn_end(struct store_txn *txn, bool keep_readers)
{
    txn_forget_trees(txn);
    for (uint32_t db = 0; db < MODEL_DBS; db++)
        table_clear(&txn->written[db]);
    for (struct chunk *chunk; (chunk = txn->chunks) != NULL;) {
        txn->chunks = chunk->next;
        free(chunk);
    }
    for (struct entry *entry; (entry = txn->held) != NULL;) {
        txn->held = entry->next;
        entry_free(entry);
    }
    for (struct store_reader *reader; (reader = txn->readers) != NULL;) {
        txn->readers = reader->next;
        reader->next = NULL;
        if (!keep_readers)
            store_reader_close(reader);
    }
}

/* ---- requests ---- */

static void remove_expired_keys(struct store *store, const struct store_request *request)
{
    for (uint32_t i = 0; i < request->key_count; i++) {
        struct table *table = &store->dbs[request->keys[i].db];
        struct entry *entry = table_find(table, &request->keys[i]);
        if (entry == NULL || !entry_expired(entry, request->now_ms))
            continue;
        table_remove(table, entry);
        store->stats.expired_keys++;
        publish_counts(store);
    }
}

static struct store_txn *new_txn(struct store_worker *worker, struct store_request *request)
{
    struct store_txn *txn = model_alloc(sizeof(*txn));
    *txn = (struct store_txn){
        .worker = worker, .request = request, .attempt = ++worker->store->attempts};
    for (int db = 0; db < STORE_DB_COUNT; db++)
        txn->map[db] = db;
    return txn;
}

static enum store_result run_request(struct store_worker *worker, struct store_request *request,
                                     uint64_t *loaded, struct store_txn **kept)
{
    struct store *store = worker->store;
    struct store_txn *txn = *kept != NULL ? *kept : new_txn(worker, request);
    *kept = NULL;
    txn->loaded = loaded;
    if (request->now_ms > store->clock_ms)
        store->clock_ms = request->now_ms;
    remove_expired_keys(store, request);
    enum store_result result = request->run(txn, request);
    if (result == STORE_WAIT && txn->keeps) {
        txn->keeps = false;
        *kept = txn;
        return result;
    }
    if (result == STORE_OK)
        txn_commit(txn);
    else if (result == STORE_WAIT)
        store->stats.reruns++;
    txn_end(txn, result == STORE_OK);
    free(txn);
    request->shown = store->commits;
    if (result != STORE_WAIT && request->leave != NULL)
        request->leave(request, result);
    return result;
}

static bool conflict(const struct store_request *a, const struct store_request *b)
{
    if (a->scope == STORE_SCOPE_ALL || b->scope == STORE_SCOPE_ALL)
        return true;
    for (uint32_t i = 0; i < a->key_count; i++)
        for (uint32_t j = 0; j < b->key_count; j++)
            if ((a->keys[i].mode == STORE_EXCLUSIVE || b->keys[j].mode == STORE_EXCLUSIVE) &&
                same_key(&a->keys[i], &b->keys[j]))
                return true;
    return false;
}

/* Does a parked request before `end` (NULL: any) stand in the way? */
static bool must_queue(const struct store *store, const struct store_request *request,
                       const struct store_parked *end)
{
    for (const struct store_parked *p = store->parked; p != end; p = p->next)
        if (conflict(p->request, request))
            return true;
    return false;
}

static void park(struct store_worker *worker, struct store_request *request, uint64_t loaded,
                 struct store_txn *kept)
{
    struct store_parked *parked = model_alloc(sizeof(*parked));
    parked->request = request;
    parked->loaded = loaded;
    parked->kept = kept;
    struct store_parked **link = &worker->store->parked;
    while (*link != NULL)
        link = &(*link)->next;
    *link = parked;
    worker->parked_count++;
    worker_signal(worker);
}

/* ---- waiting to be called ---- */

enum store_result store_wait_register(struct store_txn *txn)
{
    txn->request->registered_waiter = txn; /* a mark */
    return STORE_OK;
}

void store_wait_cancel(struct store_request *request)
{
    request->registered_waiter = NULL;
}

void store_hand_off(struct store_request *request, const struct store_key *key,
                    struct store_worker *from)
{
    struct store *store = request->worker->store;
    struct store_parked *parked = model_alloc(sizeof(*parked));
    (void)key, (void)from;
    assert(request->registered_waiter != NULL);
    request->registered_waiter = NULL;
    request->parked = NULL;
    parked->request = request;
    *(store->handed_off == NULL ? &store->handed_off : &store->last_handed_off->next) = parked;
    store->last_handed_off = parked;
    request->worker->parked_count++;
    worker_signal(request->worker);
}

/* It is the next to run, whatever keys the others have. */
void store_hand_off_also(struct store_request *request, uint32_t index, struct store_worker *from)
{
    (void)request, (void)index, (void)from;
}

/* In place of the transaction that handed the key to them: none before it needs the key. */
static void park_handed_off(struct store *store, struct store_parked **link)
{
    if (store->handed_off == NULL)
        return;
    store->last_handed_off->next = *link;
    *link = store->handed_off;
    store->handed_off = store->last_handed_off = NULL;
}

/* They come by store_poll, as the others do. */
void store_run_handoffs(struct store_worker *worker)
{
    (void)worker;
}

enum store_result store_execute(struct store_worker *worker, struct store_request *request)
{
    struct store *store = worker->store;
    uint64_t loaded = 0;
    struct store_txn *kept = NULL;
    enum store_result result = STORE_WAIT;
    request->worker = worker;
    request->parked = NULL;
    pthread_mutex_lock(&store->mutex);
    if (!must_queue(store, request, NULL))
        result = run_request(worker, request, &loaded, &kept);
    if (result == STORE_WAIT)
        park(worker, request, loaded, kept);
    struct store_parked **end = &store->parked;
    while (*end != NULL)
        end = &(*end)->next;
    park_handed_off(store, end);
    pthread_mutex_unlock(&store->mutex);
    return result;
}

uint64_t store_prefetch(struct store_worker *worker, const struct store_key *keys, uint32_t count)
{
    (void)worker, (void)keys, (void)count;
    return 0;
}

void store_prefetch_trees(struct store_worker *worker,
                          const struct store_prefetch_hint *prefetch_hints, uint32_t count)
{
    (void)worker, (void)prefetch_hints, (void)count;
}

/* The model runs one request at a time under its lock, so no other request can be let in. */
bool store_is_prefetch_run(const struct store_txn *txn)
{
    (void)txn;
    return false;
}

bool store_pause(struct store_txn *txn, bool refuses)
{
    (void)txn, (void)refuses;
    return false;
}

void store_go_on(struct store_txn *txn)
{
    (void)txn;
    assert(!"it was not paused");
}

void store_resume(struct store_request *request)
{
    request->parked = NULL;
    worker_signal(request->worker);
}

bool store_has_waiters(const struct store_request *request)
{
    struct store *store = request->worker->store;
    bool is_behind = false, awaited = false;
    pthread_mutex_lock(&store->mutex);
    for (const struct store_parked *p = store->parked; p != NULL; p = p->next) {
        awaited = awaited || (is_behind && conflict(p->request, request));
        is_behind = is_behind || p->request == request;
    }
    pthread_mutex_unlock(&store->mutex);
    return awaited;
}

/* Runs what is free to run among this worker's parked requests; returns the finished ones. About
 * half of them are left for another time, so that requests overtake each other where they may. */
static struct store_parked *run_parked(struct store_worker *worker)
{
    struct store *store = worker->store;
    struct store_parked *finished = NULL, **finished_end = &finished;
    for (struct store_parked **link = &store->parked, *p; (p = *link) != NULL;) {
        if (p->request->worker == worker && p->request->parked == NULL &&
            !must_queue(store, p->request, p) && (model_random(&store->random) & 1) != 0) {
            p->result = run_request(worker, p->request, &p->loaded, &p->kept);
            if (p->result != STORE_WAIT) {
                *link = p->next;
                park_handed_off(store, link);
                p->next = NULL;
                *finished_end = p;
                finished_end = &p->next;
                worker->parked_count--;
                continue;
            }
        }
        link = &p->next;
    }
    return finished;
}

static void wake_readers(struct store_worker *worker)
{
    struct store_reader *last = worker->waiting_readers;
    while (last != NULL && last->next != NULL)
        last = last->next;
    for (struct store_reader *reader; (reader = worker->waiting_readers) != NULL;) {
        worker->waiting_readers = reader->next;
        reader->next = NULL;
        reader->waiting = false;
        reader->loaded = true;
        bool done = reader == last; /* those that wait again in the meantime stand behind it */
        reader->ready(reader->arg);
        if (done)
            break;
    }
}

void store_poll(struct store_worker *worker)
{
    struct store *store = worker->store;
    uint64_t count;
    (void)!read(worker->event_fd, &count, sizeof(count)); /* empty is fine too */
    pthread_mutex_lock(&store->mutex);
    store->durable = store->commits;
    struct store_parked *finished = run_parked(worker);
    if (worker->parked_count > 0)
        worker_signal(worker);
    pthread_mutex_unlock(&store->mutex);
    for (struct store_parked *p; (p = finished) != NULL;) {
        finished = p->next;
        p->request->done(p->request, p->result);
        free(p);
    }
    wake_readers(worker);
    model_wake_uploads(worker);
}

/* Removes expired items little by little. Not while requests are parked: they may have seen them
 * alive and must see the same when they run again. */
static void sweep(struct store *store)
{
    struct table *table = &store->dbs[store->sweep_db];
    struct entry *entry = NULL;
    for (int i = 0; i < SWEEP_ENTRIES && store->parked == NULL; i++) {
        entry = table_from(table, store->sweep_hash);
        if (entry == NULL)
            break;
        store->sweep_hash = entry->hash + 1;
        if (entry_expired(entry, store->clock_ms)) {
            table_remove(table, entry);
            store->stats.expired_keys++;
        }
    }
    publish_counts(store);
    if (entry == NULL || store->sweep_hash == 0) {
        store->sweep_hash = 0;
        store->sweep_db = (store->sweep_db + 1) % STORE_DB_COUNT;
    }
}

void store_submit(struct store_worker *worker)
{
    struct store *store = worker->store;
    pthread_mutex_lock(&store->mutex);
    if (!atomic_load(&store->keeps_expired))
        sweep(store);
    if (store->durable != store->commits)
        worker_signal(worker);
    pthread_mutex_unlock(&store->mutex);
}

/* ---- streams ---- */

struct store_reader *model_open_reader(struct store_worker *worker, struct value *value,
                                       uint64_t offset)
{
    struct store_reader *opened = model_alloc(sizeof(*opened));
    opened->worker = worker;
    opened->value = value_ref(value);
    opened->position = offset;
    opened->end = value->len;
    return opened;
}

void model_join_reader(struct store_txn *txn, struct store_reader *reader)
{
    reader->txn = txn;
    reader->next = txn->readers;
    txn->readers = reader;
}

bool store_needs_reader(const struct store_item *item)
{
    return item->large && item->version != 0;
}

void store_reader_end_after(struct store_reader *reader, uint64_t length)
{
    assert(length > 0 && length <= reader->end - reader->position);
    reader->end = reader->position + length;
}

enum store_result store_reader_open(struct store_txn *txn, const struct store_item *item,
                                    uint64_t offset, struct store_reader **reader)
{
    assert(item->trees == 0 && item->version != 0);
    *reader = model_open_reader(txn->worker, (struct value *)item->origin, offset);
    model_join_reader(txn, *reader);
    return STORE_OK;
}

void store_reader_keep(struct store_reader *reader)
{
    struct store_reader **link = &reader->txn->readers;
    while (*link != reader)
        link = &(*link)->next;
    *link = reader->next;
    reader->next = NULL;
}

void store_reader_on_ready(struct store_reader *reader, void (*ready)(void *arg), void *arg)
{
    reader->ready = ready;
    reader->arg = arg;
}

static void reader_wait(struct store_reader *reader)
{
    struct store_reader **link = &reader->worker->waiting_readers;
    while (*link != NULL)
        link = &(*link)->next;
    *link = reader;
    reader->waiting = true;
    worker_signal(reader->worker);
}

/* Values lie wherever malloc has put them. */
bool store_hold_pages(struct store *store, const void *address, void **start, size_t *size)
{
    (void)store;
    (void)address;
    *start = NULL;
    *size = 0;
    return false;
}

enum store_result store_reader_next(struct store_reader *reader, const struct iovec **vectors,
                                    int *count)
{
    struct store_worker *worker = reader->worker;
    uint64_t left = reader->end - reader->position;
    if (left == 0)
        return STORE_ABSENT;
    if (reader->waiting)
        return STORE_WAIT;
    if (!reader->loaded && model_random(&worker->random) % 1000 < worker->store->wait_per_mille) {
        reader_wait(reader);
        return STORE_WAIT;
    }
    reader->loaded = false;
    reader->handed_out = reader->position;
    *count = 0;
    for (; left > 0 && *count < READER_VECTORS; ++*count) {
        size_t part = STORE_READER_PIECE / READER_VECTORS;
        struct iovec *vector = &reader->vectors[*count];
        vector->iov_base = reader->value->bytes + reader->position;
        vector->iov_len = left < part ? (size_t)left : part;
        reader->position += vector->iov_len;
        left -= vector->iov_len;
    }
    *vectors = reader->vectors;
    return STORE_OK;
}

void store_reader_put_back(struct store_reader *reader, uint64_t taken)
{
    assert(reader->handed_out + taken < reader->position);
    reader->position = reader->handed_out + taken;
}

void store_reader_close(struct store_reader *reader)
{
    if (reader->waiting) {
        struct store_reader **link = &reader->worker->waiting_readers;
        while (*link != reader)
            link = &(*link)->next;
        *link = reader->next;
    }
    value_unref(reader->value);
    free(reader);
}

/* ---- figures ---- */

struct store_db_stats store_db_stats(const struct store *store, uint32_t db)
{
    return (struct store_db_stats){.keys = store->keys[db], .expires = store->expires[db]};
}

void store_stats(const struct store *store, struct store_stats *stats)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)&store->mutex; /* the store itself is not const */
    pthread_mutex_lock(mutex);
    *stats = store->stats;
    pthread_mutex_unlock(mutex);
    stats->commits = store->commits;
    for (uint32_t db = 0; db < STORE_DB_COUNT; db++)
        stats->live_slots += store->keys[db];
}

void store_reset_counters(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->stats.reruns = 0;
    store->stats.expired_keys = 0;
    pthread_mutex_unlock(&store->mutex);
}
