/*
 * Invariants:
 * 1. A waiter enters its queues within its run function, under the locks of its keys' partitions. A
 *    change that the run has not seen is therefore a later commit, and the observer reports it.
 * 2. `ready` of a queue has a bit for each type the key's value may have, as long as some waiter of
 *    the queue has not yet seen the last change of the key. Elements are for the first waiter that
 *    takes them; what one does not take, none of its type does. The entries of a stream are for all
 *    waiters: each sees each change once (`changed`, `seen`).
 * 3. A key is `handed` to at most one waiter, by the transaction that makes it ready: that
 *    transaction hands the waiter its key lock, or reserves the key for it if the same commit
 *    already handed it another key. No other request can therefore take the key in between. While a
 *    queue has a waiter for a ready type that was not handed another key, the key is handed to one
 *    of its waiters. places[i] of a waiter belongs to the i-th key of its request.
 * 4. A waiter that was handed a key always runs. If its wait ends meanwhile, the reason is kept in
 *    `ending` and applies if the run finds nothing. A compare-and-swap on `state` decides which of
 *    hand-off and ending came first. If its client is gone, the run is cancelled, or its commit if
 *    that has to wait (long_run_is_wanted), and the key is handed on. After the commit, an element
 *    whose reply cannot be sent is lost, as in Redis.
 * 5. A waiter leaves its queues under the locks of its keys' partitions and hands on the keys that
 *    are ready. A waiter whose wait has ended leaves without these locks: it holds no key to hand
 *    on.
 * 6. `users` counts the requests that may block; while it is not 0 the registry observes the store.
 *
 * Locks: a shard's lock is a leaf below the store's locks, except for those store_hand_off takes.
 */
#include "server/exec/blocked.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <sys/queue.h>

#include "storage/base/checks.h"
#include "server/net/conn.h"
#include "server/exec/request.h"
#include "server/exec/executor.h"
#include "server/core/commandstats.h"
#include "server/core/server.h"
#include "server/exec/slowlog.h"
#include "server/core/worker.h"

#define SHARDS 64
#define BUCKETS_MIN 16
#define QUEUE_MEMORY (sizeof(struct queue) + 32) /* with its bucket, and malloc's share */

/* A waiter in the queue of one of its keys. */
struct place {
    struct waiter *waiter;
    struct queue *queue;
    uint64_t seen; /* the last change of the key that it has seen; for streams only */
    TAILQ_ENTRY(place) link;
};

struct queue {
    struct queue *bucket_next;
    TAILQ_HEAD(places, place) places;
    struct store_key key;
    uint32_t ready;        /* bit per type, see invariant 2 */
    uint64_t changed;      /* the commit that changed the key last, since there is a queue */
    uint32_t watchful;     /* its waiters that also wait for the end of their stream */
    struct waiter *handed; /* the waiter that was handed the key; or NULL */
    char bytes[];
};

enum waiter_state { WAITS, HANDED_OFF, ENDS };

struct waiter {
    struct request *request;
    struct worker *worker;
    enum item_type type;
    _Atomic int state;
    _Atomic uint64_t turn; /* the commit after which it was handed a key */
    bool looks;            /* a run has begun since it waited: now_ms is set for all reruns */
    bool blocks;           /* its last run called call_block */
    bool is_counted;
    enum blocked_ending ending;
    int64_t deadline_ms; /* 0: none */
    struct event *timer;
    void (*answer)(struct call *call); /* writes the reply at the end; NULL: the run did */
    uint64_t commit;                   /* the wait ends when it is durable; 0: not awaited */
    uint64_t audience;                 /* see struct block_wish */
    bool even_if_gone;
    void *kept; /* for later runs; or NULL */
    size_t kept_len;
    LIST_ENTRY(waiter) of_awaiting; /* worker->awaiting, if commit is not 0 */
    uint32_t place_count;
    struct place places[];
};

struct shard {
    pthread_mutex_t lock;
    struct queue **buckets;
    uint32_t bucket_count; /* 0 or a power of two */
    uint32_t queue_count;
};

struct blocked {
    struct store *store;
    pthread_mutex_t lock; /* guards is_listening; taken before the store's locks */
    _Atomic bool is_listening;
    _Atomic uint64_t client_count, queue_count, users;
    struct shard shards[SHARDS];
};

/* ---- queues ---- */

static struct shard *shard_of(struct blocked *blocked, const struct store_key *key)
{
    return &blocked->shards[key->hash % SHARDS];
}

static struct queue **bucket_of(const struct shard *shard, const struct store_key *key)
{
    return &shard->buckets[key->hash / SHARDS % shard->bucket_count];
}

static struct queue *find_queue(struct shard *shard, const struct store_key *key)
{
    if (shard->bucket_count == 0)
        return NULL;
    struct queue *queue = *bucket_of(shard, key);
    while (queue != NULL && (queue->key.hash != key->hash || queue->key.db != key->db ||
                             queue->key.len != key->len ||
                             (key->len > 0 && memcmp(queue->bytes, key->data, key->len) != 0)))
        queue = queue->bucket_next;
    return queue;
}

/* False: out of memory, and there are no buckets. Otherwise a failed allocation only means longer
 * chains. */
static bool grow(struct shard *shard)
{
    struct shard grown = {.bucket_count = 2 * shard->bucket_count};
    if (shard->queue_count < shard->bucket_count)
        return true;
    if (grown.bucket_count == 0)
        grown.bucket_count = BUCKETS_MIN;
    grown.buckets = calloc(grown.bucket_count, sizeof *grown.buckets);
    if (grown.buckets == NULL)
        return shard->bucket_count > 0;
    for (uint32_t i = 0; i < shard->bucket_count; i++) {
        for (struct queue *queue; (queue = shard->buckets[i]) != NULL;) {
            shard->buckets[i] = queue->bucket_next;
            struct queue **bucket = bucket_of(&grown, &queue->key);
            queue->bucket_next = *bucket;
            *bucket = queue;
        }
    }
    free(shard->buckets);
    shard->buckets = grown.buckets;
    shard->bucket_count = grown.bucket_count;
    return true;
}

static struct queue *add_queue(struct blocked *blocked, struct shard *shard,
                               const struct store_key *key)
{
    struct queue *queue = grow(shard) ? calloc(1, sizeof *queue + key->len) : NULL;
    if (queue == NULL)
        return NULL;
    TAILQ_INIT(&queue->places);
    queue->key = *key;
    queue->key.data = queue->bytes;
    if (key->len > 0)
        memcpy(queue->bytes, key->data, key->len);
    struct queue **bucket = bucket_of(shard, key);
    queue->bucket_next = *bucket;
    *bucket = queue;
    shard->queue_count++;
    atomic_fetch_add(&blocked->queue_count, 1);
    return queue;
}

static void remove_queue(struct blocked *blocked, struct shard *shard, struct queue *queue)
{
    struct queue **at = bucket_of(shard, &queue->key);
    assert(lock_is_held(&shard->lock) && TAILQ_EMPTY(&queue->places));
    while (*at != queue) {
        assert(*at != NULL);
        at = &(*at)->bucket_next;
    }
    *at = queue->bucket_next;
    free(queue);
    assert(shard->queue_count > 0);
    shard->queue_count--;
    atomic_fetch_sub(&blocked->queue_count, 1);
}

/* Leaves the state WAITS. False: the waiter was in another state already. */
static bool stop_waiting(struct waiter *waiter, enum waiter_state state)
{
    int waits = WAITS;
    return atomic_compare_exchange_strong(&waiter->state, &waits, (int)state);
}

/* A waiter that the same commit handed another key is handed this one as well: it takes from either
 * and hands the other on. */
static bool has_choice(const struct waiter *waiter, uint64_t turn)
{
    return atomic_load(&waiter->state) == HANDED_OFF && atomic_load(&waiter->turn) == turn;
}

/* Asserts that the queue has waiters, and that one of them has the key that was handed on. */
static void queue_check(const struct queue *queue)
{
    bool is_there = queue->handed == NULL;
    const struct place *at;
    assert(!TAILQ_EMPTY(&queue->places));
    TAILQ_FOREACH (at, &queue->places, link) {
        assert(at->queue == queue);
        is_there = is_there || at->waiter == queue->handed;
    }
    assert(is_there);
}

static bool is_for_all(const struct waiter *waiter)
{
    return waiter->type == TYPE_STREAM;
}

/* Whether the key has something that this waiter has not seen. */
static bool may_take(const struct queue *queue, const struct place *place)
{
    const struct waiter *waiter = place->waiter;
    bool is_ready = (queue->ready >> waiter->type & 1) != 0;
    if (is_for_all(waiter))
        return (is_ready || waiter->even_if_gone) && place->seen != queue->changed;
    return is_ready;
}

/* Hands the key to the first waiter that may take something. Under the lock of the key's
 * partition. */
static void hand_on(struct queue *queue, struct store_worker *from, uint64_t turn)
{
    if (storage_checks_enabled())
        queue_check(queue);
    if (queue->handed != NULL || (queue->ready == 0 && queue->watchful == 0))
        return;
    struct place *at;
    TAILQ_FOREACH (at, &queue->places, link) {
        if (queue->handed != NULL)
            return;
        struct waiter *waiter = at->waiter;
        if (!may_take(queue, at))
            continue;
        if (stop_waiting(waiter, HANDED_OFF)) {
            atomic_store(&waiter->turn, turn);
            queue->handed = waiter;
            store_hand_off(&waiter->request->store, &queue->key, from);
        } else if (has_choice(waiter, turn)) {
            queue->handed = waiter;
            store_hand_off_also(&waiter->request->store, (uint32_t)(at - waiter->places), from);
        }
    }
}

/* False: out of memory. */
static bool enter(struct blocked *blocked, struct waiter *waiter, const struct store_key *key)
{
    struct shard *shard = shard_of(blocked, key);
    struct place *place = &waiter->places[waiter->place_count];
    pthread_mutex_lock(&shard->lock);
    struct queue *queue = find_queue(shard, key);
    if (queue == NULL)
        queue = add_queue(blocked, shard, key);
    if (queue != NULL) {
        *place = (struct place){.waiter = waiter, .queue = queue};
        TAILQ_INSERT_TAIL(&queue->places, place, link);
        queue->watchful += waiter->even_if_gone;
        waiter->place_count++;
    }
    pthread_mutex_unlock(&shard->lock);
    return queue != NULL;
}

static void remove_place(struct place *place)
{
    struct queue *queue = place->queue;
    TAILQ_REMOVE(&queue->places, place, link);
    assert(queue->watchful >= place->waiter->even_if_gone);
    queue->watchful -= place->waiter->even_if_gone;
}

/* Under the lock of the key's partition: the request has ended, or waits again (`stays`). Hands the
 * key on if it is ready. */
static void let_go(struct blocked *blocked, struct place *place, bool stays)
{
    const struct waiter *waiter = place->waiter;
    struct queue *queue = place->queue;
    struct shard *shard = shard_of(blocked, &queue->key);
    pthread_mutex_lock(&shard->lock);
    if (queue->handed == place->waiter)
        queue->handed = NULL;
    if (!stays)
        remove_place(place);
    if (TAILQ_EMPTY(&queue->places))
        remove_queue(blocked, shard, queue);
    else
        hand_on(queue, waiter->worker->store, waiter->request->store.shown);
    pthread_mutex_unlock(&shard->lock);
}

/* No key was handed to it. */
static void leave_all(struct blocked *blocked, struct waiter *waiter)
{
    for (uint32_t i = 0; i < waiter->place_count; i++) {
        struct queue *queue = waiter->places[i].queue;
        struct shard *shard = shard_of(blocked, &queue->key);
        pthread_mutex_lock(&shard->lock);
        assert(queue->handed != waiter);
        remove_place(&waiter->places[i]);
        if (TAILQ_EMPTY(&queue->places))
            remove_queue(blocked, shard, queue);
        pthread_mutex_unlock(&shard->lock);
    }
    waiter->place_count = 0;
}

/* ---- observing the store ---- */

static void note_key(struct blocked *blocked, const struct store_change *change)
{
    struct shard *shard = shard_of(blocked, change->key);
    pthread_mutex_lock(&shard->lock);
    struct queue *queue = find_queue(shard, change->key);
    if (queue != NULL && change->cause != STORE_BY_TAKER) {
        queue->ready = change->fresh == NULL ? 0 : 1u << item_type(change->fresh);
        queue->changed = change->commit;
        hand_on(queue, change->worker, change->commit);
    }
    pthread_mutex_unlock(&shard->lock);
}

static void note_swapped(struct queue *queue, const struct store_change *change)
{
    if ((change->dbs >> queue->key.db & 1) == 0)
        return;
    queue->ready = UINT32_MAX;
    queue->changed = change->commit;
    hand_on(queue, change->worker, change->commit);
}

static void note_flushed(struct queue *queue, const struct store_change *change)
{
    if ((change->dbs >> queue->key.db & 1) == 0)
        return;
    queue->ready = 0;
    queue->changed = change->commit;
    hand_on(queue, change->worker, change->commit);
}

/* SWAPDB may have replaced the values of the keys: each waiter must look its key up again. A flush
 * has removed them, for which some wait, too. */
static void note_databases(struct blocked *blocked, const struct store_change *change)
{
    bool is_swap = change->kind == STORE_CHANGE_SWAP;
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &blocked->shards[i];
        pthread_mutex_lock(&shard->lock);
        for (uint32_t j = 0; j < shard->bucket_count; j++)
            for (struct queue *queue = shard->buckets[j]; queue != NULL; queue = queue->bucket_next)
                if (is_swap)
                    note_swapped(queue, change);
                else
                    note_flushed(queue, change);
        pthread_mutex_unlock(&shard->lock);
    }
}

static void on_change(void *arg, const struct store_change *change)
{
    struct blocked *blocked = arg;
    if (atomic_load_explicit(&blocked->queue_count, memory_order_relaxed) == 0)
        return;
    if (change->kind == STORE_CHANGE_KEY)
        note_key(blocked, change);
    else
        note_databases(blocked, change);
}

/* ---- the registry ---- */

struct blocked *blocked_new(struct store *store)
{
    struct blocked *blocked = calloc(1, sizeof *blocked);
    if (blocked == NULL)
        return NULL;
    blocked->store = store;
    pthread_mutex_init(&blocked->lock, NULL);
    for (uint32_t i = 0; i < SHARDS; i++)
        pthread_mutex_init(&blocked->shards[i].lock, NULL);
    return blocked;
}

void blocked_free(struct blocked *blocked)
{
    if (blocked == NULL)
        return;
    assert(atomic_load(&blocked->queue_count) == 0 && atomic_load(&blocked->users) == 0);
    blocked_rest(blocked);
    for (uint32_t i = 0; i < SHARDS; i++) {
        pthread_mutex_destroy(&blocked->shards[i].lock);
        free(blocked->shards[i].buckets);
    }
    pthread_mutex_destroy(&blocked->lock);
    free(blocked);
}

void blocked_rest(struct blocked *blocked)
{
    pthread_mutex_lock(&blocked->lock);
    if (atomic_load(&blocked->is_listening) && atomic_load(&blocked->users) == 0) {
        /* A request that arrives now is either seen here, or sees that the registry does not
         * observe the store, and waits for the lock. */
        atomic_store(&blocked->is_listening, false);
        if (atomic_load(&blocked->users) > 0)
            atomic_store(&blocked->is_listening, true);
        else
            store_unobserve(blocked->store, on_change, blocked);
    }
    pthread_mutex_unlock(&blocked->lock);
}

static struct blocked *registry_of(const struct request *request)
{
    return request->call.server->blocked;
}

enum store_result blocked_prepare(struct request *request)
{
    struct blocked *blocked = registry_of(request);
    atomic_fetch_add(&blocked->users, 1);
    request->may_block = true;
    if (atomic_load(&blocked->is_listening))
        return STORE_OK;
    pthread_mutex_lock(&blocked->lock);
    if (!atomic_load(&blocked->is_listening))
        atomic_store(&blocked->is_listening,
                     store_observe(blocked->store, on_change, blocked) == STORE_OK);
    bool is_listening = atomic_load(&blocked->is_listening);
    pthread_mutex_unlock(&blocked->lock);
    return is_listening ? STORE_OK : STORE_NO_MEMORY;
}

uint64_t blocked_memory(const struct waiter *waiter)
{
    uint64_t bytes = sizeof *waiter + waiter->kept_len;
    for (uint32_t i = 0; i < waiter->place_count; i++)
        bytes += sizeof *waiter->places + QUEUE_MEMORY + waiter->places[i].queue->key.len;
    return bytes;
}

uint64_t blocked_clients(const struct blocked *blocked)
{
    return atomic_load_explicit(&blocked->client_count, memory_order_relaxed);
}

uint64_t blocked_keys(const struct blocked *blocked)
{
    return atomic_load_explicit(&blocked->queue_count, memory_order_relaxed);
}

/* ---- waiting ---- */

/* False: out of memory. */
static bool take_wish(struct waiter *waiter, const struct block_wish *wish)
{
    waiter->audience = wish->audience;
    waiter->even_if_gone = wish->even_if_gone;
    if (wish->kept_len == 0)
        return true;
    waiter->kept = malloc(wish->kept_len);
    if (waiter->kept == NULL)
        return false;
    memcpy(waiter->kept, wish->kept, wish->kept_len);
    waiter->kept_len = wish->kept_len;
    return true;
}

static bool enter_all(struct blocked *blocked, struct waiter *waiter, const struct store_key *keys,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!enter(blocked, waiter, &keys[i]))
            return false;
    return true;
}

/* `wish`: NULL but for streams. NULL: out of memory. */
static struct waiter *make_waiter(struct request *request, enum item_type type,
                                  const struct store_key *keys, uint32_t count,
                                  const struct block_wish *wish)
{
    struct blocked *blocked = registry_of(request);
    struct waiter *waiter = calloc(1, sizeof *waiter + count * sizeof(struct place));
    if (waiter == NULL)
        return NULL;
    waiter->request = request;
    waiter->worker = request->conn->worker;
    waiter->type = type;
    waiter->looks = true;
    if ((wish == NULL || take_wish(waiter, wish)) && enter_all(blocked, waiter, keys, count))
        return waiter;
    leave_all(blocked, waiter);
    free(waiter->kept);
    free(waiter);
    return NULL;
}

/* The waiter has found nothing for itself; then there is nothing for its audience. */
static void see(struct place *place)
{
    uint64_t audience = place->waiter->audience;
    struct place *other;
    place->seen = place->queue->changed;
    if (audience == 0)
        return;
    TAILQ_FOREACH (other, &place->queue->places, link)
        if (other->waiter->audience == audience)
            other->seen = place->queue->changed;
}

/* A key on which this waiter found no element has none for the other waiters either. */
static void note_look(struct blocked *blocked, struct place *place)
{
    struct shard *shard = shard_of(blocked, &place->queue->key);
    pthread_mutex_lock(&shard->lock);
    if (is_for_all(place->waiter))
        see(place);
    else
        place->queue->ready &= ~(1u << place->waiter->type);
    pthread_mutex_unlock(&shard->lock);
}

static enum store_result wait_for(struct call *call, const struct store_key *keys, uint32_t count,
                                  enum item_type type, int64_t timeout_ms,
                                  const struct block_wish *wish)
{
    if (call->outer != NULL)
        return STORE_OK;
    struct request *request = request_of_call(call);
    struct waiter *waiter = request->waiter;
    assert(request->may_block);
    if (waiter == NULL) {
        waiter = request->waiter = make_waiter(request, type, keys, count, wish);
        if (waiter == NULL)
            return STORE_NO_MEMORY;
        waiter->deadline_ms = timeout_ms == 0 ? 0 : call->now_ms + timeout_ms;
    }
    request->store.may_be_refused = false;
    enum store_result result = count > 0 ? store_wait_register(call->txn) : STORE_OK;
    if (result != STORE_OK)
        return result;
    for (uint32_t i = 0; i < waiter->place_count; i++)
        note_look(registry_of(request), &waiter->places[i]);
    waiter->blocks = true;
    atomic_store(&waiter->state, WAITS);
    return STORE_OK;
}

enum store_result call_block(struct call *call, const struct store_key *keys, uint32_t count,
                             enum item_type type, int64_t timeout_ms)
{
    return wait_for(call, keys, count, type, timeout_ms, NULL);
}

enum store_result call_block_for_streams(struct call *call, uint32_t count, int64_t timeout_ms,
                                         const struct block_wish *wish)
{
    return wait_for(call, call->keys, count, TYPE_STREAM, timeout_ms, wish);
}

const void *call_kept(struct call *call)
{
    return call_has_waited(call) ? request_of_call(call)->waiter->kept : NULL;
}

bool call_has_waited(struct call *call)
{
    return call->outer == NULL && request_of_call(call)->waiter != NULL;
}

void blocked_look(struct request *request)
{
    struct waiter *waiter = request->waiter;
    if (waiter == NULL)
        return;
    waiter->blocks = false;
    if (request->began_ns == 0)
        request->began_ns = slowlog_clock(request->call.server);
    if (!waiter->looks) {
        request->call.now_ms = request->store.now_ms =
            store_clock_ms(request->call.server->store); /* the round may have begun long ago */
        if (request->timed_from != 0)
            request->timed_from = commandstats_clock();
    }
    waiter->looks = true;
    request->conn->stands_by = false;
}

void blocked_leave(struct request *request, enum store_result result)
{
    struct waiter *waiter = request->waiter;
    if (waiter == NULL)
        return;
    bool stays = result == STORE_OK && waiter->blocks;
    for (uint32_t i = 0; i < waiter->place_count; i++)
        let_go(registry_of(request), &waiter->places[i], stays);
    if (!stays)
        waiter->place_count = 0;
}

/* ---- waiting for durability ---- */

uint64_t call_written(struct call *call)
{
    return request_of_call(call)->conn->newest_written;
}

static void begin_awaiting(struct waiter *waiter)
{
    struct worker *worker = waiter->worker;
    LIST_INSERT_HEAD(&worker->awaiting, waiter, of_awaiting);
    store_await_durable(worker->server->store, 1);
}

static void stop_awaiting(struct waiter *waiter)
{
    LIST_REMOVE(waiter, of_awaiting);
    store_await_durable(waiter->worker->server->store, -1);
}

enum store_result call_await(struct call *call, uint64_t commit, int64_t timeout_ms,
                             void (*answer)(struct call *call))
{
    answer(call);
    enum store_result result = call_block(call, NULL, 0, TYPE_STRING, timeout_ms);
    if (result != STORE_OK || call->outer != NULL)
        return result;
    struct waiter *waiter = request_of_call(call)->waiter;
    waiter->answer = answer;
    waiter->commit = commit;
    if (commit > 0)
        begin_awaiting(waiter);
    return STORE_OK;
}

void blocked_note_durable(struct worker *worker)
{
    const struct store *store = worker->server->store;
    uint64_t durable = store_has_failed(store) ? UINT64_MAX : store_durable(store);
    struct waiter *next = LIST_FIRST(&worker->awaiting);
    for (struct waiter *waiter; (waiter = next) != NULL;) {
        next = LIST_NEXT(waiter, of_awaiting);
        if (waiter->commit <= durable)
            blocked_end(waiter->request->conn, BLOCKED_TIMEOUT);
    }
}

/* ---- the end ---- */

/* The request does not need the registry any more. */
static void drop(struct waiter *waiter)
{
    struct request *request = waiter->request;
    struct blocked *blocked = registry_of(request);
    assert(request->waiter == waiter);
    leave_all(blocked, waiter);
    store_wait_cancel(&request->store);
    if (waiter->commit > 0)
        stop_awaiting(waiter);
    if (waiter->timer != NULL)
        event_free(waiter->timer);
    if (waiter->is_counted)
        atomic_fetch_sub(&blocked->client_count, 1);
    request->waiter = request->conn->waiter = NULL;
    request->conn->stands_by = false;
    free(waiter->kept);
    free(waiter);
}

static void settle(struct request *request)
{
    if (request->waiter != NULL)
        drop(request->waiter);
    assert(request->may_block && atomic_load(&registry_of(request)->users) > 0);
    atomic_fetch_sub(&registry_of(request)->users, 1);
    request->may_block = false;
}

static void write_ending(struct request *request, enum blocked_ending ending)
{
    struct call *call = &request->call;
    bool is_error = ending == BLOCKED_ERROR;
    if (!is_error && request->waiter->answer == NULL)
        return; /* the reply written by the run is the time-out reply */
    resp_truncate(call->reply, request->reply_start);
    if (is_error)
        resp_error(call->reply, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
    else
        request->waiter->answer(call);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct waiter *waiter = arg;
    blocked_end(waiter->request->conn, BLOCKED_TIMEOUT);
}

/* Arms the time-out; false: out of memory. */
static bool arm(struct waiter *waiter)
{
    if (waiter->deadline_ms == 0 || waiter->timer != NULL)
        return true;
    waiter->timer = event_new(waiter->worker->base, -1, 0, on_timer, waiter);
    if (waiter->timer == NULL)
        return false;
    int64_t left_ms = waiter->deadline_ms - worker_now(waiter->worker);
    if (left_ms < 0)
        left_ms = 0;
    const struct timeval left = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000};
    return event_add(waiter->timer, &left) == 0;
}

/* The connection holds the waiter from now on. */
static void stand_by(struct waiter *waiter)
{
    struct conn *conn = waiter->request->conn;
    assert(conn->waiter == NULL || conn->waiter == waiter);
    waiter->looks = false;
    conn->stands_by = true;
    conn->waiter = waiter;
    conn_mark_ready(conn); /* the client may have disconnected meanwhile */
    if (!waiter->is_counted)
        atomic_fetch_add(&registry_of(waiter->request)->client_count, 1);
    waiter->is_counted = true;
}

enum store_result blocked_settle(struct request *request, enum store_result result)
{
    struct waiter *waiter = request->waiter;
    if (result == STORE_WAIT)
        return result;
    if (waiter != NULL && result == STORE_OK && waiter->blocks) {
        bool is_gone = request->conn->transport == NULL; /* no event would end its wait */
        bool waits = !is_gone && waiter->ending == BLOCKED_GOES_ON && arm(waiter);
        if (waits || !stop_waiting(waiter, ENDS)) { /* it may have been handed a key already */
            stand_by(waiter);
            request->began_ns = 0;
            return STORE_WAIT;
        }
        write_ending(request, waiter->ending);
    }
    settle(request);
    return result;
}

void blocked_end(struct conn *conn, enum blocked_ending ending)
{
    struct waiter *waiter = conn->waiter;
    struct request *request = waiter->request;
    assert(request->conn == conn && request->waiter == waiter);
    waiter->ending = ending;
    if (!stop_waiting(waiter, ENDS))
        return;
    write_ending(request, ending);
    settle(request);
    request->timed_from = 0; /* as in Redis, LATENCY HISTOGRAM does not count it */
    executor_finish(&request->call, STORE_OK);
}
